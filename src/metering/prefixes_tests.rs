//! What is cached of a prompt, known before it is sent, and taken back by a count.

use proptest::prelude::*;

use super::*;

const USUAL: Duration = Duration::from_secs(300);
const CENT: Amount = Amount::from_picos(10_000_000_000);

/// A prompt of these messages, 8,000 bytes each; the first stands for all that comes before them. A message may be marked.
fn prompt(messages: &[u64], marked: &[usize]) -> PromptPlaces {
    let mut hash = 0_u64;
    let mut found = Beginnings::default();
    for (at, message) in messages.iter().enumerate() {
        hash = hash
            .wrapping_mul(1_000_003)
            .wrapping_add(*message)
            .wrapping_add(1);
        let place = Beginning {
            turn: u32::try_from(at).unwrap(),
            hash,
            weight: (at as u64 + 1) * 8_000,
        };
        found.all.push(place);
        found.weight = place.weight;
        if marked.contains(&at) {
            found.marks.push(place);
        }
    }
    PromptPlaces::of(found, !marked.is_empty())
}

/// A customer who sends prompts to one target, by the second.
struct Sender {
    prefixes: Prefixes,
    began: Instant,
}

impl Sender {
    fn new() -> Self {
        Self {
            prefixes: Prefixes::default(),
            began: Instant::now(),
        }
    }

    fn at(&self, second: u64) -> Instant {
        self.began + Duration::from_secs(second)
    }

    fn sent<'a>(&self, places: &'a PromptPlaces, second: u64) -> SentPrompt<'a> {
        SentPrompt {
            customer: 1,
            cache: PromptCache::of_target("a/m"),
            places,
            sent: self.at(second),
        }
    }

    /// Sends one that shows text a second later; each message has 2,000 tokens.
    fn shows(&mut self, places: &PromptPlaces, second: u64) {
        let input = places.weight / 4;
        let (sent, now) = (self.sent(places, second), self.at(second + 1));
        self.prefixes.shown(&sent, input, USUAL, now);
    }

    fn leaves(&mut self, places: &PromptPlaces, second: u64) {
        self.shows(places, second);
        let (sent, now) = (self.sent(places, second), self.at(second + 2));
        self.prefixes.uncounted(&sent, CENT, CENT, now);
    }

    fn counts(&mut self, places: &PromptPlaces, second: u64, read: u64) -> Amount {
        self.shows(places, second);
        let counted = CountedPrompt {
            input: places.weight / 4,
            read,
            charge: Amount::from_picos(15_000_000_000),
        };
        let (sent, now) = (self.sent(places, second), self.at(second + 3));
        self.prefixes.counted(&sent, counted, now)
    }

    fn cached(&self, places: &PromptPlaces, second: u64) -> Option<u64> {
        self.prefixes.cached(&self.sent(places, second), true)
    }

    fn known(&self, places: &PromptPlaces, second: u64) -> Option<u64> {
        self.prefixes.known(&self.sent(places, second), true)
    }
}

#[test]
fn what_begins_like_a_prompt_that_was_answered_a_moment_ago_is_cached() {
    let mut sender = Sender::new();
    sender.shows(&prompt(&[1, 2, 3], &[]), 0);
    assert_eq!(sender.cached(&prompt(&[1, 2, 3, 4], &[]), 9), Some(6_000));
    assert_eq!(
        sender.cached(&prompt(&[1, 2, 9], &[]), 9),
        Some(4_000),
        "as far as both begin alike"
    );
    let other = prompt(&[8, 2, 3, 4], &[]);
    assert_eq!(sender.cached(&other, 9), None, "another field");
    let same = prompt(&[1, 2, 3], &[]);
    assert_eq!(sender.cached(&same, 1), None, "nothing was shown by then");
    assert_eq!(sender.cached(&same, 289), Some(6_000));
    assert_eq!(sender.cached(&same, 290), None, "ten seconds early");
    let elsewhere = SentPrompt {
        cache: PromptCache::of_target("b/m"),
        ..sender.sent(&same, 9)
    };
    assert_eq!(sender.prefixes.cached(&elsewhere, true), None);
    let another = SentPrompt {
        customer: 2,
        ..sender.sent(&same, 9)
    };
    assert_eq!(sender.prefixes.cached(&another, true), None);
    assert_eq!(
        sender.prefixes.cached(&sender.sent(&same, 9), false),
        None,
        "a target that was never counted to cache by itself"
    );
}

#[test]
fn a_prompt_too_short_for_any_cache_is_fresh() {
    let mut sender = Sender::new();
    let short = PromptPlaces {
        weight: 64_000,
        ..prompt(&[1, 2], &[])
    };
    let (sent, now) = (sender.sent(&short, 0), sender.at(1));
    sender.prefixes.shown(&sent, 4_000, USUAL, now);
    assert_eq!(sender.cached(&prompt(&[1, 2, 3], &[]), 9), None, "1,000");
}

#[test]
fn marks_say_what_is_cached_up_to_the_last_that_both_have() {
    let mut sender = Sender::new();
    sender.shows(&prompt(&[1, 2, 3, 4], &[1, 3]), 0);
    let cached = |messages: &[u64], marked: &[usize]| {
        let places = prompt(messages, marked);
        sender.prefixes.cached(&sender.sent(&places, 9), false)
    };
    assert_eq!(cached(&[1, 2, 3, 4, 5], &[3, 4]), Some(8_000));
    assert_eq!(cached(&[1, 2, 3, 4, 5], &[1, 4]), Some(4_000));
    assert_eq!(cached(&[1, 2, 3, 4, 5], &[2, 4]), None, "moved");
    assert_eq!(cached(&[1, 2, 3, 4, 5], &[]), None, "and none at all");
}

#[test]
fn a_prefix_that_nobody_counts_is_believed_three_times() {
    let mut sender = Sender::new();
    let with = |tail: u64| prompt(&[1, 2, 3, tail], &[]);
    for round in 0..3 {
        let expected = (round > 0).then_some(6_000);
        assert_eq!(sender.cached(&with(round), round * 10), expected);
        sender.leaves(&with(round), round * 10);
    }
    assert_eq!(sender.cached(&with(9), 40), None, "three in a row");
    sender.leaves(&prompt(&[1, 2, 3, 4, 5], &[]), 40);
    assert_eq!(
        sender.cached(&prompt(&[1, 2, 3, 4, 5, 6], &[]), 50),
        None,
        "nor what has grown out of it"
    );
    sender.counts(&prompt(&[1, 7], &[]), 50, 0);
    assert_eq!(
        sender.cached(&with(9), 60),
        None,
        "a count of something else"
    );
    sender.counts(&with(8), 60, 6_000);
    assert_eq!(sender.cached(&with(9), 70), Some(6_000), "until a count");
}

#[test]
fn what_was_counted_fresh_is_not_known_before_it_is_counted_cached() {
    let mut sender = Sender::new();
    let grown = |length: u64| prompt(&(0..length).collect::<Vec<_>>(), &[]);
    sender.counts(&grown(3), 0, 0);
    assert_eq!(sender.known(&grown(4), 10), Some(6_000), "its first turn");
    sender.counts(&grown(4), 10, 0);
    assert_eq!(sender.known(&grown(5), 20), None, "it was fresh");
    assert_eq!(sender.cached(&grown(5), 20), Some(8_000));
    sender.counts(&grown(5), 20, 7_680);
    assert_eq!(sender.known(&grown(6), 30), Some(10_000));
}

#[test]
fn a_count_takes_back_what_was_booked_for_what_was_cached() {
    let mut sender = Sender::new();
    let with = |tail: u64| prompt(&[1, 2, 3, tail], &[]);
    sender.leaves(&with(0), 0);
    sender.leaves(&with(1), 10);
    sender.leaves(&with(2), 20);
    let fresh = sender.counts(&with(3), 30, 0);
    assert_eq!(fresh, Amount::ZERO);
    let back = sender.counts(&with(4), 40, 6_000);
    assert_eq!(
        back.picos(),
        15_000_000_000,
        "two cents, at most what it was charged"
    );
    assert_eq!(
        sender.counts(&with(5), 50, 6_000).picos(),
        5_000_000_000,
        "the rest"
    );
    assert_eq!(sender.counts(&with(6), 60, 6_000), Amount::ZERO);
}

#[test]
fn one_customer_has_sixty_four_prompts() {
    let mut sender = Sender::new();
    for tail in 0..=64 {
        sender.shows(&prompt(&[tail, 2], &[]), tail);
    }
    assert_eq!(sender.cached(&prompt(&[0, 2], &[]), 70), None);
    assert_eq!(sender.cached(&prompt(&[1, 2], &[]), 70), Some(4_000));
}

#[test]
fn nobody_drives_out_another() {
    let mut sender = Sender::new();
    sender.shows(&prompt(&[1, 2], &[]), 0);
    let long: Vec<u64> = (0..PLACES as u64).collect();
    let now = sender.at(1);
    for customer in 2..(ALL_PLACES / PLACES) as u64 + 100 {
        let mut own = long.clone();
        own[PLACES - 1] = customer;
        let places = prompt(&own, &[]);
        let sent = SentPrompt {
            customer,
            ..sender.sent(&places, 0)
        };
        sender.prefixes.shown(&sent, 5_000, USUAL, now);
    }
    assert!(sender.prefixes.places <= ALL_PLACES);
    assert_eq!(sender.cached(&prompt(&[1, 2], &[]), 9), Some(4_000));
}

proptest! {
    /// However two prompts part: never more than they have in common, and nearly all of it.
    #[test]
    fn what_is_in_common_is_cached_and_no_more(same in 1_usize..700, rest in 0_usize..700) {
        let mut sender = Sender::new();
        let all: Vec<u64> = (0..(same + rest) as u64).collect();
        sender.shows(&prompt(&all, &[]), 0);
        let mut other: Vec<u64> = all[..same].to_vec();
        other.push(u64::MAX);
        let found = sender.cached(&prompt(&other, &[]), 9).unwrap_or(0);
        let truth = same as u64 * 2_000;
        prop_assert!(found <= truth && found + 16_000 >= truth, "{found} of {truth}");
    }
}

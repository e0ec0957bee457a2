//! How much of a prompt its provider has cached, learned from the last finished requests of the same customer at the same target.
//!
//! A provider that counts only at the end of a stream tells nobody what a customer who left has used. But what it cached of the last
//! prompt is still cached while its lifetime lasts, as far as the next prompt begins alike. Kept in memory: hashes and counts, no
//! text. Pure; the clock is passed in.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use farebox_protocol::talk::Beginning;

use super::lifetime::{HOUR, USUAL};

/// Conversations of one customer at one target that are remembered: agents run side by side.
const CONVERSATIONS: usize = 8;
/// Places of a conversation that are remembered; of a longer one, only some in between.
const PLACES: usize = 256;
/// Places of all customers together: 24 MiB. Who comes when all are taken gives up its own first, so nobody drives out another.
const ALL_PLACES: usize = 1 << 20;
/// A picture or document may have been billed as this many tokens, however few its bytes are.
const LARGEST_MEDIA: u64 = 10_000;

/// The beginnings of a prompt at which another may part from it, the whole prompt last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrefixPlaces(Vec<(usize, Beginning)>);

impl PrefixPlaces {
    /// Of all beginnings, so many that memory suffices.
    #[must_use]
    pub fn of(beginnings: &[Beginning]) -> Self {
        let step = beginnings.len().div_ceil(PLACES).max(1);
        let last = beginnings.len().saturating_sub(1);
        let kept = |(at, beginning): (usize, &Beginning)| {
            (at.is_multiple_of(step) || at == last).then_some((at, *beginning))
        };
        Self(beginnings.iter().enumerate().filter_map(kept).collect())
    }

    /// The longest beginning in common.
    fn common(&self, other: &[Beginning]) -> Option<&Beginning> {
        let same = |(at, beginning): &&(usize, Beginning)| {
            other
                .get(*at)
                .is_some_and(|other| other.hash == beginning.hash)
        };
        self.0
            .iter()
            .rev()
            .find(same)
            .map(|(_, beginning)| beginning)
    }
}

/// A finished request whose provider counted its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedRequest {
    /// Where another prompt may part from its.
    pub places: PrefixPlaces,
    /// Tokens of its prompt.
    pub input: u64,
    /// Those of them that are cached now: read from the cache or written to it.
    pub cached: u64,
    /// Whether it was marked for a cache.
    pub marked: bool,
    /// Whether what it wrote lives for an hour.
    pub long: bool,
}

impl FinishedRequest {
    /// Tokens that are cached of a prompt that begins with this beginning of ours. Where the two part, what is left of ours counts at
    /// its most, a token per byte: nobody may count on what another conversation has cached.
    fn cached_of(&self, common: &Beginning) -> u64 {
        let Some((_, whole)) = self.places.0.last() else {
            return 0;
        };
        let bytes = whole.bytes.saturating_sub(common.bytes) as u64;
        let media = whole.media.saturating_sub(common.media) as u64;
        let rest = bytes.saturating_add(media.saturating_mul(LARGEST_MEDIA));
        self.cached.min(self.input.saturating_sub(rest))
    }
}

#[derive(Debug)]
struct RememberedPrompt {
    target: String,
    until: Instant,
    finished: FinishedRequest,
}

impl RememberedPrompt {
    fn size(&self) -> usize {
        self.finished.places.0.len()
    }

    /// Whether a later request is this one and perhaps more.
    fn is_continued_by(&self, later: &FinishedRequest) -> bool {
        let whole = self.finished.places.0.last();
        let places = &later.places.0;
        whole.is_some_and(|(_, whole)| places.iter().any(|(_, place)| place.hash == whole.hash))
    }
}

/// The last finished requests of each customer.
#[derive(Debug, Default)]
pub struct Prefixes {
    customers: HashMap<u64, VecDeque<RememberedPrompt>>,
    places: usize,
}

impl Prefixes {
    /// Remembers a finished request that arrived at `arrived`.
    pub fn remember(
        &mut self,
        customer: u64,
        target: &str,
        finished: FinishedRequest,
        arrived: Instant,
    ) {
        let lifetime = if finished.long { HOUR } else { USUAL };
        self.make_room(customer, target, &finished, arrived);
        if self.places.saturating_add(finished.places.0.len()) > ALL_PLACES {
            return;
        }
        let Some(until) = arrived.checked_add(lifetime) else {
            return;
        };
        self.places = self.places.saturating_add(finished.places.0.len());
        self.customers
            .entry(customer)
            .or_default()
            .push_back(RememberedPrompt {
                target: target.to_owned(),
                until,
                finished,
            });
    }

    /// Forgets what has expired, what this conversation was before, and the customer's oldest beyond what is kept.
    fn make_room(&mut self, customer: u64, target: &str, new: &FinishedRequest, now: Instant) {
        let wanted = new.places.0.len();
        if self.places.saturating_add(wanted) > ALL_PLACES {
            self.customers.retain(|_, of_one| {
                of_one.retain(|old| old.until > now);
                !of_one.is_empty()
            });
            self.places = self
                .customers
                .values()
                .flatten()
                .map(RememberedPrompt::size)
                .sum();
        }
        let Some(own) = self.customers.get_mut(&customer) else {
            return;
        };
        let before: usize = own.iter().map(RememberedPrompt::size).sum();
        own.retain(|old| old.until > now && !(old.target == target && old.is_continued_by(new)));
        while own.iter().filter(|old| old.target == target).count() >= CONVERSATIONS {
            let oldest = own.iter().position(|old| old.target == target);
            oldest.and_then(|at| own.remove(at));
        }
        let others = self.places.saturating_sub(before);
        let size = |own: &VecDeque<RememberedPrompt>| {
            own.iter().map(RememberedPrompt::size).sum::<usize>()
        };
        let all = |own: &VecDeque<RememberedPrompt>| others.saturating_add(size(own));
        while all(own).saturating_add(wanted) > ALL_PLACES && own.pop_front().is_some() {}
        self.places = all(own);
    }

    /// Tokens that a target has probably cached of a prompt; `None` if the customer has finished nothing like it there lately. A
    /// prompt without marks is not looked up in a cache that only marks fill.
    #[must_use]
    pub fn cached(
        &self,
        customer: u64,
        target: &str,
        (prompt, marked): (&[Beginning], bool),
        now: Instant,
    ) -> Option<u64> {
        let own = self.customers.get(&customer)?.iter();
        own.filter(|old| old.target == target && old.until > now)
            .filter(|old| marked || !old.finished.marked)
            .filter_map(|old| Some((old.finished.places.common(prompt)?, &old.finished)))
            .max_by_key(|(common, _)| common.bytes)
            .map(|(common, finished)| finished.cached_of(common))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// A prompt of these messages, 1,000 bytes each; the first stands for all that comes before them.
    fn prompt(messages: &[u64]) -> Vec<Beginning> {
        let mut hash = 0_u64;
        let place = |(at, message): (usize, &u64)| {
            hash = hash
                .wrapping_mul(1_000_003)
                .wrapping_add(*message)
                .wrapping_add(1);
            Beginning {
                hash,
                bytes: at * 1_000,
                media: 0,
            }
        };
        messages.iter().enumerate().map(place).collect()
    }

    fn finished(hashes: &[u64], input: u64, cached: u64) -> FinishedRequest {
        FinishedRequest {
            places: PrefixPlaces::of(&prompt(hashes)),
            input,
            cached,
            marked: false,
            long: false,
        }
    }

    #[test]
    fn what_the_last_request_had_cached_is_cached_of_the_next_one() {
        let (mut prefixes, now) = (Prefixes::default(), Instant::now());
        prefixes.remember(1, "a/m", finished(&[1, 2, 3], 50_000, 48_000), now);
        let cached = |prefixes: &Prefixes, customer, target, hashes: &[u64], after| {
            let later = now + Duration::from_secs(after);
            prefixes.cached(customer, target, (&prompt(hashes), false), later)
        };
        assert_eq!(cached(&prefixes, 1, "a/m", &[1, 2, 3, 4], 9), Some(48_000));
        assert_eq!(
            cached(&prefixes, 1, "a/m", &[1, 2, 9], 9),
            Some(48_000),
            "the last message has at most 1,000 tokens"
        );
        assert_eq!(
            cached(&prefixes, 1, "a/m", &[8, 2, 3, 4], 9),
            None,
            "other tools"
        );
        assert_eq!(
            cached(&prefixes, 1, "a/m", &[1, 2, 3], 300),
            None,
            "too late"
        );
        assert_eq!(
            cached(&prefixes, 2, "a/m", &[1, 2, 3], 9),
            None,
            "another customer"
        );
        assert_eq!(
            cached(&prefixes, 1, "b/m", &[1, 2, 3], 9),
            None,
            "another target"
        );
        // The conversation went on, and nothing of it was cached any more.
        prefixes.remember(1, "a/m", finished(&[1, 2, 3, 4], 60_000, 0), now);
        assert_eq!(cached(&prefixes, 1, "a/m", &[1, 2, 3, 4, 5], 9), Some(0));
    }

    #[test]
    fn marks_decide_which_cache_is_looked_at_and_for_how_long() {
        let (mut prefixes, now) = (Prefixes::default(), Instant::now());
        let long = FinishedRequest {
            marked: true,
            long: true,
            ..finished(&[1, 2], 50_000, 48_000)
        };
        prefixes.remember(1, "a/m", long, now);
        let later = now + Duration::from_secs(3_000);
        let cached = |marked| prefixes.cached(1, "a/m", (&prompt(&[1, 2, 3]), marked), later);
        assert_eq!((cached(true), cached(false)), (Some(48_000), None));
    }

    #[test]
    fn nobody_drives_out_another() {
        let (mut prefixes, now) = (Prefixes::default(), Instant::now());
        prefixes.remember(1, "a/m", finished(&[1, 2], 5_000, 4_000), now);
        let long: Vec<u64> = (0..PLACES as u64).collect();
        for customer in 2..(ALL_PLACES / PLACES) as u64 + 100 {
            let mut own = long.clone();
            own[PLACES - 1] = customer;
            prefixes.remember(customer, "a/m", finished(&own, 5_000, 4_000), now);
        }
        assert!(prefixes.places <= ALL_PLACES);
        let cached = prefixes.cached(1, "a/m", (&prompt(&[1, 2]), false), now);
        assert_eq!(cached, Some(4_000));
    }

    proptest! {
        /// However two prompts part: never more than was cached, and never what only the other had.
        #[test]
        fn nobody_counts_on_what_another_prompt_has_cached(
            same in 1_usize..300, rest in 0_usize..300, cached in 0_u64..900_000, input in 0_u64..900_000,
        ) {
            let (mut prefixes, now) = (Prefixes::default(), Instant::now());
            let all: Vec<u64> = (0..(same + rest) as u64).collect();
            let cached = cached.min(input);
            prefixes.remember(1, "a/m", finished(&all, input, cached), now);
            let mut other: Vec<u64> = all[..same].to_vec();
            other.push(u64::MAX);
            let found = prefixes.cached(1, "a/m", (&prompt(&other), false), now).unwrap_or(0);
            let beyond = (rest as u64) * 1_000;
            prop_assert!(found <= cached && found <= input.saturating_sub(beyond));
        }
    }
}

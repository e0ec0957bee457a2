//! Where conversations were served last, as far as that decides where they go next. Pure; the clock is passed in.
//!
//! A conversation has a home: the first place of its order ([`order`](super::order)). While its home cannot take it, it goes to the
//! next place and stays there, because its prompt is cached there by then. It goes home when its prompt is cached there no longer, or
//! turns out not to be, and after an hour in any case: so a conversation that never rests does not stay away for ever, and every
//! gateway of a fleet, which remembers for itself, finds the same place again.
//!
//! Bounded: whoever is forgotten goes home.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use farebox_ledger::lock;
use tokio::time::Instant;

/// The longest that a conversation stays away from home.
const LONGEST_AWAY: Duration = Duration::from_secs(60 * 60);
/// Conversations of one generation, as many as a table takes before it doubles. Two are remembered, in 6 MiB.
const GENERATION: usize = 28_672;

/// A place, as it is remembered: a number for the target, and its account if that is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) target: u64,
    pub(super) account: Option<usize>,
}

/// The conversations by their hashes.
#[derive(Debug, Default)]
pub(super) struct Conversations(Mutex<Generations>);

/// Those of late, and those before them: when the first are full they become the others, which are forgotten.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<u64, Stay>,
    old: HashMap<u64, Stay>,
}

/// Where a conversation was served last.
#[derive(Debug, Clone, Copy)]
struct Stay {
    seat: Seat,
    /// Since when it is away from home.
    away: Option<Instant>,
    /// How long its prompt is probably cached there.
    until: Instant,
    /// When its first answer there ended: what is asked later should find its prompt cached.
    written: Option<Instant>,
    /// A prompt that should have been cached was not.
    uncached: bool,
}

impl Stay {
    fn is_warm(&self, now: Instant) -> bool {
        let too_long = self.away.is_some_and(|since| now >= since + LONGEST_AWAY);
        now < self.until && !self.uncached && !too_long
    }
}

/// Where a conversation's prompt is probably cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WarmSeat {
    pub(super) seat: Seat,
    pub(super) is_home: bool,
}

impl Conversations {
    /// Where this one's prompt is probably cached, if anywhere. The clock is read only for one that is remembered.
    pub(super) fn find(
        &self,
        conversation: u64,
        clock: impl FnOnce() -> Instant,
    ) -> Option<WarmSeat> {
        let stay = lock(&self.0).get(conversation)?;
        stay.is_warm(clock()).then_some(WarmSeat {
            seat: stay.seat,
            is_home: stay.away.is_none(),
        })
    }

    /// An answer has begun at a seat, which keeps the prompt for so long. Returns whether that made the conversation leave another
    /// one.
    pub(super) fn began(
        &self,
        conversation: u64,
        (seat, is_home): (Seat, bool),
        cached_for: Duration,
        now: Instant,
    ) -> bool {
        // What nobody caches keeps no place.
        if cached_for.is_zero() {
            return !is_home;
        }
        let mut all = lock(&self.0);
        let before = all.get(conversation).filter(|stay| stay.is_warm(now));
        let stays = before.filter(|stay| stay.seat == seat && stay.away.is_none() == is_home);
        let away = (!is_home).then_some(now);
        let stay = Stay {
            until: now + cached_for,
            ..stays.unwrap_or(Stay {
                seat,
                away,
                until: now,
                written: None,
                uncached: false,
            })
        };
        all.put(conversation, stay);
        !is_home && stays.is_none()
    }

    /// What the provider counted of a prompt that was sent to a seat away from home at `sent`.
    pub(super) fn counted(
        &self,
        conversation: u64,
        seat: Seat,
        (sent, cached): (Instant, bool),
        now: Instant,
    ) {
        let mut all = lock(&self.0);
        let Some(stay) = all.get(conversation) else {
            return;
        };
        if stay.seat != seat || stay.away.is_none() {
            return;
        }
        let expected = stay.written.is_some_and(|written| sent >= written);
        all.put(
            conversation,
            Stay {
                written: stay.written.or(Some(now)),
                uncached: expected && !cached,
                ..stay
            },
        );
    }
}

impl Generations {
    fn get(&self, conversation: u64) -> Option<Stay> {
        let young = self.young.get(&conversation);
        young.or_else(|| self.old.get(&conversation)).copied()
    }

    fn put(&mut self, conversation: u64, stay: Stay) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(conversation, stay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: Seat = Seat {
        target: 1,
        account: Some(0),
    };
    const NEXT: Seat = Seat {
        target: 1,
        account: Some(2),
    };
    const OTHER: Seat = Seat {
        target: 2,
        account: Some(0),
    };
    const CACHED: Duration = Duration::from_secs(300);
    const MINUTE: Duration = Duration::from_secs(60);

    fn away(all: &Conversations, now: Instant) -> Option<Seat> {
        let found = all.find(7, || now).filter(|found| !found.is_home);
        found.map(|found| found.seat)
    }

    #[test]
    fn a_conversation_stays_away_while_it_is_used_and_an_hour_at_most() {
        let (all, start) = (Conversations::default(), Instant::now());
        assert!(!all.began(7, (HOME, true), CACHED, start));
        assert!(all.find(7, || start).is_some_and(|found| found.is_home));
        assert!(all.began(7, (NEXT, false), CACHED, start), "it leaves");
        for minute in 0..60 {
            let now = start + MINUTE * minute;
            assert_eq!(away(&all, now), Some(NEXT), "minute {minute}");
            assert!(!all.began(7, (NEXT, false), CACHED, now) || minute == 0);
        }
        let now = start + MINUTE * 60;
        assert_eq!(all.find(7, || now), None, "whatever is warm");
        // Its home still cannot take it: it leaves once more, for another hour.
        assert!(all.began(7, (NEXT, false), CACHED, now));
        assert_eq!(away(&all, now), Some(NEXT));
        assert!(!all.began(7, (HOME, true), CACHED, now + MINUTE));
        assert_eq!(away(&all, now + MINUTE), None, "at home again");
    }

    #[test]
    fn it_goes_home_when_what_is_cached_is_over() {
        let (all, start) = (Conversations::default(), Instant::now());
        all.began(7, (NEXT, false), CACHED, start);
        let almost = start + CACHED - Duration::from_millis(1);
        assert_eq!(away(&all, almost), Some(NEXT));
        assert_eq!(all.find(7, || start + CACHED), None);
        all.began(7, (NEXT, false), MINUTE * 720, start);
        assert_eq!(away(&all, start + MINUTE * 59), Some(NEXT));
        assert_eq!(all.find(7, || start + MINUTE * 60), None);
    }

    #[test]
    fn it_goes_home_when_its_prompt_was_not_cached_there() {
        let (all, start) = (Conversations::default(), Instant::now());
        let at = |secs| start + Duration::from_secs(secs);
        all.began(7, (NEXT, false), CACHED, at(0));
        // Nothing of it can have been cached when it came, nor for what was asked beside it.
        all.counted(7, NEXT, (at(0), false), at(5));
        all.counted(7, NEXT, (at(3), false), at(6));
        assert_eq!(away(&all, at(7)), Some(NEXT));
        all.counted(7, NEXT, (at(7), true), at(8));
        all.counted(7, HOME, (at(7), false), at(9));
        assert_eq!(away(&all, at(9)), Some(NEXT), "another place's count");
        all.counted(7, NEXT, (at(9), false), at(10));
        assert_eq!(all.find(7, || at(10)), None);
        // It leaves for a third place: there it begins anew.
        assert!(all.began(7, (OTHER, false), CACHED, at(11)));
        assert_eq!(away(&all, at(12)), Some(OTHER));
    }

    #[test]
    fn a_million_conversations_are_not_remembered() {
        let (all, now) = (Conversations::default(), Instant::now());
        let many = match std::env::var_os("FAREBOX_FULL") {
            Some(_) => 1_000_000,
            None => 200_000,
        };
        for conversation in 0..many {
            all.began(conversation, (NEXT, false), CACHED, now);
            // One that goes on is not driven out.
            all.began(u64::MAX, (HOME, true), CACHED, now);
        }
        let known = lock(&all.0);
        assert!(known.young.len() + known.old.len() <= 2 * GENERATION);
        let [young, old] = [&known.young, &known.old].map(HashMap::capacity);
        assert!(young <= GENERATION && old <= GENERATION, "{young}, {old}");
        // A table is filled to seven eighths, and has a byte for each place.
        let places = 2 * GENERATION / 7 * 8;
        assert!(places * (size_of::<(u64, Stay)>() + 1) <= 6 << 20);
        drop(known);
        assert!(all.find(u64::MAX, || now).is_some());
        assert!(all.find(many - 1, || now).is_some() && all.find(0, || now).is_none());
    }
}

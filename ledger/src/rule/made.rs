//! Keys that owner keys make: how many, and what each may be given. Pure.

use std::fmt;

use crate::rule::key::KeyRecord;
use crate::{Amount, Cap, Caps, KeyStatus, Refusal, Timestamp, UtcDay};

/// What owner keys of one customer have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MadeKeys {
    /// That are neither revoked nor expired.
    pub(crate) live: i64,
    /// In the last minute.
    pub(crate) lately: i64,
}

/// How many keys the owner keys of a customer make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeBound {
    /// That are neither revoked nor expired.
    Live,
    /// In a minute.
    Minute,
}

impl MadeBound {
    /// How many.
    pub const fn most(self) -> i64 {
        match self {
            Self::Live => 1_000,
            Self::Minute => 60,
        }
    }
}

impl fmt::Display for MadeBound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.most();
        match self {
            Self::Live => write!(
                out,
                "owner keys of this customer have made {most} keys that are not revoked or expired, and make no more; revoke some, or \
                 let them expire earlier"
            ),
            Self::Minute => write!(
                out,
                "owner keys of a customer make at most {most} keys a minute"
            ),
        }
    }
}

impl MadeKeys {
    /// The instant after which a key was made in the last minute.
    pub(crate) const fn minute(now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.millis().saturating_sub(60_000))
    }

    /// Refuses one more.
    pub(crate) const fn check(self) -> Result<(), Refusal> {
        if self.live >= MadeBound::Live.most() {
            return Err(Refusal::TooManyMade(MadeBound::Live));
        }
        if self.lately >= MadeBound::Minute.most() {
            return Err(Refusal::TooManyMade(MadeBound::Minute));
        }
        Ok(())
    }

    /// Counts a key that was made now, or changed.
    pub(crate) fn count(&mut self, before: Option<&KeyRecord>, after: &KeyRecord, now: Timestamp) {
        let live = |key: &KeyRecord| i64::from(is_live(key, now));
        self.live = (self.live.saturating_add(live(after))).saturating_sub(before.map_or(0, live));
        if before.is_none() && after.counts_in.is_some() {
            self.lately = self.lately.saturating_add(1);
        }
    }
}

fn is_live(key: &KeyRecord, now: Timestamp) -> bool {
    let has_ended = key.settings.expires_at.is_some_and(|end| end <= now);
    key.counts_in.is_some() && key.stored_status != KeyStatus::Revoked && !has_ended
}

/// Refuses caps with which a key may spend more than the key that made it has room for. A limit that is no higher than it was is fine.
pub(crate) fn check_room(
    (before, after): (&Caps, &Caps),
    of: &Cap,
    room: Amount,
    today: UtcDay,
) -> Result<(), Refusal> {
    let find = |caps: &Caps| {
        let mut all = caps.iter();
        let found = all
            .find(|counted| (counted.cap.interval, &counted.cap.model) == (of.interval, &of.model));
        found.map(|counted| (counted.cap.limit, counted.room(today)))
    };
    match (find(before), find(after)) {
        (Some((before, _)), Some((after, _))) if after <= before => Ok(()),
        (_, Some((limit, left))) if left > room => Err(Refusal::AboveRoom { limit, left, room }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::cap::PastSpending;
    use crate::{CapInterval, CapMaker};

    fn usd(text: &str) -> Amount {
        Amount::from_usd_str(text).unwrap_or_default()
    }

    fn capped(known: &Caps, limit: &str) -> (Cap, Caps) {
        let cap = Cap {
            interval: CapInterval::Total,
            model: None,
            limit: usd(limit),
        };
        let (mut caps, nothing) = (known.clone(), PastSpending::NONE);
        let set = caps.set(
            &cap,
            CapMaker::Owner,
            UtcDay::of(Timestamp::from_millis(0)),
            nothing,
        );
        assert_eq!(set, Ok(()));
        (cap, caps)
    }

    #[test]
    fn what_a_key_has_left_is_at_most_the_room_of_the_key_that_makes_it() {
        let (today, room, none) = (
            UtcDay::of(Timestamp::from_millis(0)),
            usd("2"),
            Caps::default(),
        );
        let check = |before: &Caps, limit: &str| {
            let (cap, after) = capped(before, limit);
            check_room((before, &after), &cap, room, today)
        };
        assert_eq!(check(&none, "2"), Ok(()));
        let above = |limit, left| {
            Err(Refusal::AboveRoom {
                limit: usd(limit),
                left: usd(left),
                room,
            })
        };
        assert_eq!(
            check(&none, "2.000000000001"),
            above("2.000000000001", "2.000000000001")
        );
        let (_, mut five) = capped(&none, "5");
        five.resize("small", today, Amount::ZERO, usd("4"));
        assert_eq!(check(&five, "6"), Ok(()), "it holds four of them");
        assert_eq!(check(&five, "6.5"), above("6.5", "2.5"));
        let (_, nine) = capped(&none, "9");
        assert_eq!(check(&nine, "8"), Ok(()), "what is lowered is fine");
    }

    #[test]
    fn a_thousand_live_ones_and_sixty_a_minute() {
        let made = |live, lately| MadeKeys { live, lately }.check();
        assert_eq!(made(999, 59), Ok(()));
        assert_eq!(made(1_000, 0), Err(Refusal::TooManyMade(MadeBound::Live)));
        assert_eq!(made(60, 60), Err(Refusal::TooManyMade(MadeBound::Minute)));
    }
}

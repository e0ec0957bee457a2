//! Caps by default: those of the house bind a key or customer for which its seller has set none. Pure.
//!
//! They stand among its caps and count as its own do. They are brought in line when the key or customer is next used or shown, and count
//! from the instant at which the default came, so it does not matter when that is: until then nothing was held or charged.

use serde::{Deserialize, Serialize};

use super::{Cap, CapMaker, Caps, CountedCap, PastSpending};
use crate::{Amount, UtcDay};

/// A cap of the house.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DefaultCap {
    #[serde(flatten)]
    pub(crate) cap: Cap,
    /// The number of the act with which it came: one that went and came back is another one.
    pub(crate) number: i64,
    /// When it came.
    pub(crate) since: UtcDay,
}

/// What caps lack to be in line with those of the house.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// No more than other limits, or fewer.
    Limits,
    /// What was spent and is held from this day on.
    Counts(UtcDay),
}

impl CountedCap {
    fn is_of_default(&self, of: &DefaultCap) -> bool {
        self.default_act == Some(of.number)
            && self.cap.is_of(of.cap.interval, of.cap.model.as_deref())
    }

    /// The limit of the house in it.
    fn default_limit(&self) -> Option<Amount> {
        self.limits().seller.filter(|_| self.is_default())
    }
}

impl Caps {
    /// Whether its seller has set one.
    fn has_sellers(&self) -> bool {
        let mut all = self.0.iter();
        all.any(|counted| counted.own_limits().seller.is_some())
    }

    /// Those of the house that bind it.
    fn wanted<'house>(&self, house: &'house [DefaultCap]) -> &'house [DefaultCap] {
        if self.has_sellers() { &[] } else { house }
    }

    /// What has to be done to bring it in line with the caps of the house; `None` if it is.
    pub(crate) fn behind(&self, house: &[DefaultCap]) -> Option<Behind> {
        let wanted = self.wanted(house);
        let defaults = self.0.iter().filter(|counted| counted.is_default());
        let known = |of: &DefaultCap| self.0.iter().find(|counted| counted.is_of_default(of));
        let is_same =
            |of: &DefaultCap| known(of).and_then(CountedCap::default_limit) == Some(of.cap.limit);
        if defaults.count() == wanted.len() && wanted.iter().all(is_same) {
            return None;
        }
        let new = wanted.iter().filter(|of| known(of).is_none());
        let since = new.map(|of| of.cap.interval.window(of.since)).min();
        Some(since.map_or(Behind::Limits, Behind::Counts))
    }

    /// Brings it in line with the caps of the house. One that is new counts from `today`, or from when it came to the house.
    pub(crate) fn follow(
        &mut self,
        house: &[DefaultCap],
        today: Option<UtcDay>,
        spending: PastSpending<'_>,
    ) {
        let wanted = self.wanted(house);
        self.drop_others(wanted);
        for of in wanted {
            let place = (of.cap.interval, of.cap.model.as_deref());
            let mut known = self.0.iter_mut();
            match known.find(|known| known.cap.is_of(place.0, place.1)) {
                Some(known) => {
                    let limits = known.limits();
                    known.limit_to(limits.with(CapMaker::Seller, Some(of.cap.limit)));
                    known.default_act = Some(of.number);
                }
                None => self.0.push(CountedCap {
                    default_act: Some(of.number),
                    ..CountedCap::begun(&of.cap, today.unwrap_or(of.since), spending)
                }),
            }
        }
    }

    /// Removes all that bind by default.
    pub(super) fn drop_defaults(&mut self) {
        self.drop_others(&[]);
    }

    /// Removes what binds by default and is none of these. An owner's limit stays.
    fn drop_others(&mut self, wanted: &[DefaultCap]) {
        self.0.retain_mut(|counted| {
            if !counted.is_default() || wanted.iter().any(|of| counted.is_of_default(of)) {
                return true;
            }
            counted.default_act = None;
            counted.limit_to(counted.limits().with(CapMaker::Seller, None))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CapInterval, KeyId, OpenHold, OperationId, Refusal};

    fn picos(picos: i64) -> Amount {
        Amount::from_picos(picos)
    }

    const fn day(number: i64) -> UtcDay {
        UtcDay(number)
    }

    fn cap(interval: CapInterval, limit: i64) -> Cap {
        Cap {
            interval,
            model: None,
            limit: picos(limit),
        }
    }

    fn house(number: i64, since: i64, caps: &[Cap]) -> Vec<DefaultCap> {
        let one = |cap: &Cap| DefaultCap {
            cap: cap.clone(),
            number,
            since: day(since),
        };
        caps.iter().map(one).collect()
    }

    fn limits(caps: &Caps) -> Vec<(CapInterval, i64, bool)> {
        let one = |counted: &CountedCap| {
            (
                counted.cap.interval,
                counted.cap.limit.picos(),
                counted.is_default(),
            )
        };
        caps.iter().map(one).collect()
    }

    #[test]
    fn a_default_counts_from_when_it_came() {
        let of_house = house(1, 20_000, &[cap(CapInterval::Day, 100)]);
        let mut caps = Caps::default();
        assert_eq!(caps.behind(&[]), None);
        assert_eq!(caps.behind(&of_house), Some(Behind::Counts(day(20_000))));
        let at = |number: i64| day(number).begin();
        let hours = [
            (at(19_999), "m".to_owned(), picos(500)),
            (at(20_000), "m".to_owned(), picos(30)),
        ];
        let hold = OpenHold {
            request: OperationId::from_bytes([1; 16]),
            key: KeyId::from_random(1),
            amount: picos(20),
            used: Amount::ZERO,
            slug: "m".to_owned(),
            family: "chat".to_owned(),
            at: at(20_000),
            epoch: 1,
        };
        let spending = PastSpending {
            hours: &hours,
            holds: &[(&hold, day(20_000))],
        };
        // A day later: what was not used is as if it had been brought in line at once.
        caps.follow(&of_house, None, spending);
        assert_eq!(caps.behind(&of_house), None);
        assert_eq!(caps.room("m", day(20_000), picos(900)), picos(50));
        assert_eq!(caps.room("m", day(20_001), picos(900)), picos(100));
        // Lowered below what is held: no room, and what is held stays.
        let lower = house(1, 20_000, &[cap(CapInterval::Day, 40)]);
        assert_eq!(caps.behind(&lower), Some(Behind::Limits));
        caps.follow(&lower, None, PastSpending::NONE);
        assert_eq!(caps.room("m", day(20_000), picos(900)), Amount::ZERO);
        let counts = caps.iter().next().and_then(|cap| cap.counts(day(20_000)));
        assert_eq!(counts.map(|counts| counts.held), Some(picos(20)));
        // It went and came back: counted anew.
        let again = house(2, 20_001, &[cap(CapInterval::Day, 40)]);
        assert_eq!(caps.behind(&again), Some(Behind::Counts(day(20_001))));
        caps.follow(&[], None, PastSpending::NONE);
        assert!(caps.is_empty() && caps.behind(&[]).is_none());
        caps.follow(&again, None, PastSpending::NONE);
        assert_eq!(caps.room("m", day(20_001), picos(900)), picos(40));
    }

    #[test]
    fn what_the_seller_set_wins_and_an_owner_only_lowers() {
        let (today, daily) = (day(20_000), cap(CapInterval::Day, 100));
        let of_house = house(1, 20_000, &[daily.clone(), cap(CapInterval::Month, 900)]);
        let mut caps = Caps::default();
        caps.follow(&of_house, None, PastSpending::NONE);
        let above = caps.set(
            &cap(CapInterval::Day, 101),
            CapMaker::Owner,
            today,
            PastSpending::NONE,
        );
        assert!(matches!(above, Err(Refusal::Limit(_))), "{above:?}");
        let below = cap(CapInterval::Day, 60);
        caps.set(&below, CapMaker::Owner, today, PastSpending::NONE)
            .unwrap();
        assert_eq!(
            caps.behind(&of_house),
            None,
            "an owner's limit stands beside a default"
        );
        // No state of a key tells of defaults.
        let told = serde_json::to_value(caps.settings()).unwrap();
        assert_eq!(
            told,
            serde_json::json!([{"interval": "day", "model": null, "limit": "0.00000000006", "made_by": "owner"}])
        );
        let gone = caps.clear(CapInterval::Month, None, CapMaker::Seller);
        assert!(matches!(gone, Err(Refusal::NotApplicable(_))), "{gone:?}");
        // The seller's own one, even a higher one of another time, takes the place of all defaults.
        let weekly = cap(CapInterval::Week, 5_000);
        caps.set(&weekly, CapMaker::Seller, today, PastSpending::NONE)
            .unwrap();
        let (of_owner, own) = (
            (CapInterval::Day, 60, false),
            (CapInterval::Week, 5_000, false),
        );
        assert_eq!(limits(&caps), [of_owner, own]);
        assert_eq!(caps.behind(&of_house), None);
        // Without it they are back, beside what the owner set.
        caps.clear(CapInterval::Week, None, CapMaker::Seller)
            .unwrap();
        assert!(caps.behind(&of_house).is_some());
        caps.follow(&of_house, Some(today), PastSpending::NONE);
        let monthly = (CapInterval::Month, 900, true);
        assert_eq!(limits(&caps), [(CapInterval::Day, 60, true), monthly]);
        caps.clear(CapInterval::Day, None, CapMaker::Seller)
            .unwrap();
        assert_eq!(limits(&caps), [(CapInterval::Day, 100, true), monthly]);
        caps.follow(&[], None, PastSpending::NONE);
        assert!(caps.is_empty());
    }
}

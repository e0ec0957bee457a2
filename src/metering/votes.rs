//! What customers' requests have shown about a target: each customer has one vote a day, the median of its own requests.
//!
//! A vote counts once the customer was charged enough at the target that day, so that a crowd of cheap keys decides nothing; nobody
//! replaces another's vote. The votes of thirty days together say what is known. Pure; the day is passed in.

use std::collections::{BTreeMap, HashMap};

use farebox_ledger::{Amount, VOTE_DAYS};

/// What a customer must have been charged at a target on a day for its vote to count: 0.50 USD.
const PAID: Amount = Amount::from_picos(500_000_000_000);
/// Votes from which on something is known.
const KNOWN: usize = 10;
/// Requests of one customer and day that are remembered: their median hardly moves after that.
const REQUESTS: usize = 101;

/// The votes on one question about one target.
#[derive(Debug, Clone, Default)]
pub struct Votes {
    /// By day and customer.
    cast: BTreeMap<(i64, u64), u64>,
    /// What requests have shown today, by customer.
    today: HashMap<u64, Vec<u64>>,
    day: i64,
}

impl Votes {
    /// Adds what one request has shown.
    pub fn observe(&mut self, customer: u64, day: i64, value: u64) {
        if day > self.day {
            self.day = day;
            self.today.clear();
        }
        let seen = self.today.entry(customer).or_default();
        if day == self.day && seen.len() < REQUESTS {
            seen.push(value);
        }
    }

    /// Counts a customer's vote of a day, if its requests have shown anything new. Returns the vote.
    pub fn cast(&mut self, customer: u64, day: i64) -> Option<u64> {
        let seen = self.today.get(&customer).filter(|_| day == self.day)?;
        let vote = median(seen)?;
        let before = self.cast.insert((day, customer), vote);
        self.cast
            .retain(|(other, _), _| *other > day.saturating_sub(VOTE_DAYS));
        (before != Some(vote)).then_some(vote)
    }

    /// Takes the stored votes in place of those known so far. What a customer's requests have shown today goes where its vote is gone:
    /// an operator has reset it.
    pub fn restore(&mut self, stored: impl IntoIterator<Item = (i64, u64, u64)>) {
        let before = std::mem::take(&mut self.cast);
        self.cast = stored
            .into_iter()
            .map(|(day, customer, vote)| ((day, customer), vote))
            .collect();
        let gone =
            |place: &(i64, u64)| before.contains_key(place) && !self.cast.contains_key(place);
        let day = self.day;
        self.today.retain(|customer, _| !gone(&(day, *customer)));
    }

    /// How many votes count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cast.len()
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cast.is_empty()
    }

    /// The vote below which this many percent of all lie; `None` while too few count.
    #[must_use]
    pub fn at(&self, percent: usize) -> Option<u64> {
        if self.cast.len() < KNOWN {
            return None;
        }
        let mut votes: Vec<u64> = self.cast.values().copied().collect();
        votes.sort_unstable();
        let place = votes.len().saturating_sub(1).saturating_mul(percent) / 100;
        votes.get(place).copied()
    }
}

fn median(values: &[u64]) -> Option<u64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// What each customer was charged at one target today.
#[derive(Debug, Clone, Default)]
pub struct Paid {
    day: i64,
    charged: HashMap<u64, i64>,
}

impl Paid {
    /// Adds a charge, and says whether the customer's votes of that day count.
    pub fn add(&mut self, customer: u64, day: i64, charge: Amount) -> bool {
        if day > self.day {
            self.day = day;
            self.charged.clear();
        }
        if day < self.day {
            return false;
        }
        let charged = self.charged.entry(customer).or_default();
        *charged = charged.saturating_add(charge.picos());
        *charged >= PAID.picos()
    }
}

/// Whether a target leaves out the reasoning that customers turn off, judging by its counts.
#[derive(Debug, Clone, Default)]
pub struct Obedience {
    /// By day and customer: whether it reasoned all the same.
    shown: BTreeMap<(i64, u64), bool>,
}

impl Obedience {
    /// Adds what one answer has shown. Returns whether that is news of this day, which is to be kept: at most two answers a day are.
    pub fn observe(&mut self, customer: u64, day: i64, reasoned: bool) -> bool {
        let today =
            (self.shown.range((day, 0)..=(day, u64::MAX))).any(|(_, known)| *known >= reasoned);
        if !today {
            self.shown.insert((day, customer), reasoned);
            self.shown
                .retain(|(other, _), _| *other > day.saturating_sub(VOTE_DAYS));
        }
        !today
    }

    /// Takes what is stored in place of what was known so far.
    pub fn restore(&mut self, stored: impl IntoIterator<Item = (i64, u64, u64)>) {
        self.shown = (stored.into_iter())
            .map(|(day, customer, reasoned)| ((day, customer), reasoned > 0))
            .collect();
    }

    /// Whether it has always obeyed in thirty days; `None` before anybody has seen it.
    #[must_use]
    pub fn obeys(&self) -> Option<bool> {
        (!self.shown.is_empty()).then(|| !self.shown.values().any(|reasoned| *reasoned))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_customer_votes_once_a_day_by_its_own_median() {
        let mut votes = Votes::default();
        for value in [10, 1_000, 20, 30, 40] {
            votes.observe(1, 7, value);
        }
        assert_eq!(votes.cast(1, 7), Some(30));
        assert_eq!(votes.cast(1, 7), None, "nothing new");
        votes.observe(1, 8, 50);
        assert_eq!((votes.cast(1, 8), votes.len()), (Some(50), 2));
        assert_eq!(votes.at(50), None, "two of ten");
        (2..10).for_each(|customer| {
            votes.observe(customer, 8, 60);
            votes.cast(customer, 8);
        });
        assert_eq!((votes.len(), votes.at(50)), (10, Some(60)));
    }

    #[test]
    fn a_reset_takes_what_was_seen_today_too() {
        let mut votes = Votes::default();
        votes.observe(1, 7, 10);
        votes.cast(1, 7);
        votes.restore([(6, 2, 90)]);
        assert_eq!((votes.len(), votes.cast(1, 7)), (1, None));
        votes.observe(1, 7, 20);
        assert_eq!(votes.cast(1, 7), Some(20));
    }

    #[test]
    fn a_target_that_once_reasoned_although_told_not_to_does_not_obey_for_thirty_days() {
        let mut told = Obedience::default();
        assert_eq!(told.obeys(), None);
        assert!(told.observe(1, 7, false));
        assert!(!told.observe(2, 7, false), "no news");
        assert_eq!(told.obeys(), Some(true));
        assert!(told.observe(2, 7, true));
        assert!(!told.observe(2, 7, false), "what it did stays");
        assert_eq!(told.obeys(), Some(false));
        assert!(told.observe(1, 7 + VOTE_DAYS, false));
        assert_eq!(told.obeys(), Some(true));
        let mut other = Obedience::default();
        other.restore([(7, 1, 0), (8, 2, 1)]);
        assert_eq!(other.obeys(), Some(false));
        other.restore([]);
        assert_eq!(other.obeys(), None, "reset");
    }

    #[test]
    fn who_paid_too_little_there_that_day_does_not_count() {
        let mut paid = Paid::default();
        let cents = |cents: i64| Amount::from_picos(cents * 10_000_000_000);
        assert!(!paid.add(1, 7, cents(49)));
        assert!(!paid.add(2, 7, cents(49)));
        assert!(paid.add(1, 7, cents(1)));
        assert!(!paid.add(1, 8, cents(1)), "another day");
    }

    proptest! {
        /// However many cheap requests one customer sends, it moves the middle by no more than one place.
        #[test]
        fn one_customer_moves_the_middle_by_one_place(
            honest in prop::collection::vec(900_u64..1_100, 10..60), lies in prop::collection::vec(0_u64..1_000_000, 1..300),
        ) {
            let mut votes = Votes::default();
            for (customer, value) in honest.iter().enumerate() {
                votes.observe(customer as u64, 7, *value);
                votes.cast(customer as u64, 7);
            }
            let mut sorted = honest.clone();
            sorted.sort_unstable();
            let middle = (sorted.len() - 1) / 2;
            for lie in lies {
                votes.observe(9_999, 7, lie);
                votes.cast(9_999, 7);
            }
            let found = votes.at(50).unwrap();
            prop_assert!(found >= sorted[middle.saturating_sub(1)] && found <= sorted[(middle + 1).min(sorted.len() - 1)]);
        }
    }
}

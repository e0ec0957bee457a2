//! What our own requests to a provider's targets may cost in a day. An attacker can make us ask, but not for more than this.

use std::collections::HashMap;
use std::sync::Mutex;

use farebox_ledger::{Amount, lock};

/// The money spent today, by target.
#[derive(Debug, Default)]
pub(super) struct Purse(Mutex<HashMap<String, Day>>);

#[derive(Debug, Clone, Copy)]
struct Day {
    number: i64,
    spent: Amount,
}

impl Purse {
    /// Takes the price of a request to a target; false if that would exceed the day's budget.
    pub(super) fn take(&self, model: &str, price: Amount, day: i64, budget: Amount) -> bool {
        let mut days = lock(&self.0);
        let today = days.entry(model.to_owned()).or_insert(Day {
            number: day,
            spent: Amount::ZERO,
        });
        if today.number != day {
            *today = Day {
                number: day,
                spent: Amount::ZERO,
            };
        }
        let spent = today.spent.checked_add(price);
        let within = spent.filter(|spent| *spent <= budget);
        today.spent = within.unwrap_or(today.spent);
        within.is_some()
    }

    /// Notes what the requests of all gateways have cost: those before a restart, and those of others.
    pub(super) fn known(&self, model: &str, spent: Amount, day: i64) {
        let mut days = lock(&self.0);
        let unknown = Day {
            number: day,
            spent: Amount::ZERO,
        };
        let today = days.entry(model.to_owned()).or_insert(unknown);
        if today.number != day {
            *today = unknown;
        }
        today.spent = today.spent.max(spent);
    }

    /// Replaces what was taken for a request by what it cost.
    pub(super) fn correct(&self, model: &str, taken: Amount, cost: Amount, day: i64) {
        let mut days = lock(&self.0);
        if let Some(today) = days.get_mut(model).filter(|today| today.number == day) {
            let others = today.spent.checked_sub(taken);
            let spent = others.and_then(|others| others.checked_add(cost));
            today.spent = spent.unwrap_or(today.spent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_budget_and_counts_what_was_billed() {
        let (purse, cent) = (Purse::default(), Amount::from_usd_str("0.01").unwrap());
        let budget = Amount::from_usd_str("0.03").unwrap();
        let granted = |day| {
            (0..10)
                .filter(|_| purse.take("m", cent, day, budget))
                .count()
        };
        assert_eq!(granted(1), 3);
        purse.correct("m", cent, Amount::ZERO, 1);
        assert_eq!(granted(1), 1);
        assert!(
            purse.take("other", cent, 1, budget),
            "each target has its own"
        );
        assert!(purse.take("m", cent, 2, budget));
        purse.correct("m", cent, budget, 1);
        purse.correct("m", cent, budget, 2);
        assert_eq!(granted(2), 0, "it was dearer than expected");
        purse.known("m", cent, 2);
        assert_eq!(granted(2), 0, "less than what is known here");
        purse.known("m", cent, 3);
        assert_eq!(granted(3), 2, "others have spent a cent");
        purse.known("new", budget, 3);
        assert!(!purse.take("new", cent, 3, budget));
    }
}

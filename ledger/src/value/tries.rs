//! What a request's failed tries may have cost, by target: named facts of its bill, so that the rollup adds each sum to the target
//! that may bill it.
//!
//! `exposure` and `cost` of a bill are sums over all targets. A fact `failed PROVIDER/MODEL` gives the share of a target that
//! failed before another one answered: `0.012`, or `0.012 0.008` if the operator's own price is known.

use super::bill::cost;
use crate::{Amount, Bill, CostSource, Refusal};

/// The prefix of these facts' names.
const FAILED: &str = "failed ";
/// Takes the place of a target's name for what was held beyond the last checkpoint when a gateway died. Nobody knows how much of it
/// a provider bills.
pub(crate) const UNMETERED: &str = "(gateway)";
/// The number of targets with a fact of their own; the rest is attributed to the target that answered.
const MOST: usize = 16;

/// What a target may bill for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owed {
    /// Beyond the charge, at the catalog's prices; below zero where a count shows that earlier ones billed less than was booked.
    pub exposure: Amount,
    /// At the operator's own prices, where they are known.
    pub cost: Option<Amount>,
}

impl Owed {
    /// Both sums; a sum that does not fit becomes the largest amount.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        let sum = |one: Amount, other: Amount| {
            Amount::from_picos(one.picos().saturating_add(other.picos()))
        };
        let cost = match (self.cost, more.cost) {
            (Some(one), Some(other)) => Some(sum(one, other)),
            (one, other) => one.or(other),
        };
        Self {
            exposure: sum(self.exposure, more.exposure),
            cost,
        }
    }

    fn text(self) -> String {
        match self.cost {
            Some(cost) => format!("{} {cost}", self.exposure),
            None => self.exposure.to_string(),
        }
    }

    fn of(text: &str) -> Option<Self> {
        let amount = |text: &str| {
            Amount::from_usd_str(text)
                .ok()
                .filter(|amount| !amount.is_negative())
        };
        match text.split_once(' ') {
            Some((exposure, cost)) => Some(Self {
                exposure: amount(exposure)?,
                cost: Some(amount(cost)?),
            }),
            None => Some(Self {
                exposure: amount(text)?,
                cost: None,
            }),
        }
    }
}

impl Bill {
    /// Adds what a failed try at a target may cost.
    pub fn owe(&mut self, target: &str, owed: Owed) {
        if owed == Owed::default() {
            return;
        }
        let sum = Owed {
            exposure: self.exposure,
            cost: self.cost,
        }
        .and(owed);
        (self.exposure, self.cost) = (sum.exposure, sum.cost);
        if target == self.target {
            return;
        }
        let name = format!("{FAILED}{target}");
        let known = self.facts.get(&name).and_then(|text| Owed::of(text));
        let text = known.unwrap_or_default().and(owed).text();
        // A bill with too many facts is refused, and with it the charge: what has no room stays in the sums alone.
        let fits = self
            .facts_bytes()
            .saturating_add(name.len())
            .saturating_add(text.len())
            <= Self::MAX_FACT_BYTES;
        if fits && (known.is_some() || self.failed().count() < MOST) {
            self.facts.insert(name, text);
        }
    }

    /// What failed tries at other targets may have cost, ordered by target name.
    pub fn failed(&self) -> impl Iterator<Item = (&str, Owed)> {
        self.facts
            .iter()
            .filter_map(|(name, text)| Some((name.strip_prefix(FAILED)?, Owed::of(text)?)))
    }

    /// What the answer told, where that is its cost.
    pub fn told_cost(&self) -> Option<Amount> {
        match self.cost_source {
            CostSource::Told => self.provider_cost,
            CostSource::Listed | CostSource::Doubted => None,
        }
    }

    /// Where [`Bill::own_cost`] is from, in a word.
    pub fn cost_source(&self) -> &'static str {
        match self.cost_source {
            CostSource::Listed if self.cost.is_none() => "none",
            CostSource::Listed | CostSource::Told | CostSource::Doubted => {
                self.cost_source.as_str()
            }
        }
    }

    fn owed_by_failed(&self) -> Owed {
        self.failed()
            .fold(Owed::default(), |sum, (_, owed)| sum.and(owed))
    }

    /// What the answering target may bill beyond the charge, and its cost: everything that the failed tries do not account for, and
    /// what it told in the place of what its `cost` says.
    pub fn owed(&self) -> Owed {
        let (all, failed) = (
            self.exposure.picos(),
            self.owed_by_failed().exposure.picos(),
        );
        Owed {
            exposure: Amount::from_picos(all.saturating_sub(failed)),
            cost: self.told_cost().or(self.listed_cost()),
        }
    }

    /// What the answer cost at the operator's own prices, if they are known.
    pub fn listed_cost(&self) -> Option<Amount> {
        let failed = self.owed_by_failed().cost.unwrap_or_default();
        let listed = |cost: Amount| cost.picos().saturating_sub(failed.picos()).max(0);
        self.cost.map(|cost| Amount::from_picos(listed(cost)))
    }

    /// What the request cost its operator, failed tries included; `None` if nobody says.
    pub fn own_cost(&self) -> Option<Amount> {
        self.owed().and(self.owed_by_failed()).cost
    }

    /// Checks that facts of failed tries are well-formed and within the bill's sums. What the count of this request takes back of
    /// earlier ones' exposure may go below them, by what it costs.
    pub(crate) fn check_failed(&self) -> Result<(), Refusal> {
        let named = self
            .facts
            .keys()
            .filter(|name| name.starts_with(FAILED))
            .count();
        let failed = self.owed_by_failed();
        let most = cost(&self.lines).unwrap_or_default();
        let below = failed
            .exposure
            .picos()
            .saturating_sub(self.exposure.picos());
        let within = below <= most.picos() && failed.cost <= self.cost;
        if named != self.failed().count() || !within {
            return Err(Refusal::Limit(
                "the failed tries of this bill do not add up".to_owned(),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owed(exposure: i64, cost: Option<i64>) -> Owed {
        Owed {
            exposure: Amount::from_picos(exposure),
            cost: cost.map(Amount::from_picos),
        }
    }

    #[test]
    fn each_target_keeps_what_it_may_bill() {
        let (exposure, target) = (Amount::from_picos(5), "a/one".to_owned());
        let mut bill = Bill {
            target,
            exposure,
            cost: Some(Amount::from_picos(50)),
            ..Bill::default()
        };
        bill.owe("b/two", owed(7, None));
        bill.owe("a/one", owed(2, None));
        bill.owe("b/two", owed(1, Some(3)));
        bill.owe("c/three", owed(0, None));
        assert_eq!(
            (bill.exposure.picos(), bill.cost.map(Amount::picos)),
            (15, Some(53))
        );
        assert_eq!(bill.owed(), owed(7, Some(50)));
        assert_eq!(
            bill.failed().collect::<Vec<_>>(),
            [("b/two", owed(8, Some(3)))]
        );
        assert_eq!(bill.check_failed(), Ok(()));
        bill.exposure = Amount::from_picos(7);
        assert!(bill.check_failed().is_err(), "more than the whole");
        bill.facts.insert("failed d".to_owned(), "-1".to_owned());
        assert!(bill.check_failed().is_err());
        for number in 0..40 {
            bill.owe(&format!("x/{number}"), owed(1, None));
        }
        assert!(bill.facts.len() <= 17, "few facts");
    }

    #[test]
    fn a_count_takes_back_no_more_than_its_request_costs() {
        let line = crate::BillLine {
            what: "input".into(),
            count: 10,
            rate: Amount::from_picos(2),
            class: None,
        };
        let bill = |exposure| Bill {
            target: "a/one".to_owned(),
            exposure: Amount::from_picos(exposure),
            lines: vec![line.clone()],
            ..Bill::default()
        };
        assert_eq!(bill(-20).check_failed(), Ok(()));
        assert!(bill(-21).check_failed().is_err());
        let mut failed = bill(-5);
        failed.owe("b/two", owed(4, None));
        assert_eq!(
            (failed.exposure.picos(), failed.owed()),
            (-1, owed(-5, None))
        );
        assert_eq!(failed.check_failed(), Ok(()));
    }

    #[test]
    fn however_long_the_names_of_failed_targets_are_the_bill_can_be_charged() {
        let mut bill = Bill::default();
        for fact in ["removed", "lost"] {
            bill.facts.insert(fact.to_owned(), "x".repeat(1_024));
        }
        for number in 0..40 {
            bill.owe(
                &format!("{}/{}{number}", "p".repeat(64), "m".repeat(198)),
                owed(1_000_000_000_001, Some(1)),
            );
            assert_eq!(bill.total(), Ok(Amount::ZERO), "after {number}");
        }
        bill.owe(UNMETERED, owed(1, None));
        assert_eq!(
            (bill.total(), bill.exposure.picos()),
            (Ok(Amount::ZERO), 40_000_000_000_041)
        );
        assert!(bill.failed().count() > 3);
    }

    #[test]
    fn a_told_cost_stands_beside_those_of_failed_tries() {
        let picos = Amount::from_picos;
        let failed = Owed {
            cost: Some(picos(5)),
            ..Owed::default()
        };
        let bill = |cost: Option<i64>, source| {
            let mut bill = Bill {
                target: "a/m".to_owned(),
                cost: cost.map(picos),
                provider_cost: Some(picos(70)),
                cost_source: source,
                ..Bill::default()
            };
            bill.owe("b/m", failed);
            bill
        };
        for (cost, source, own, answered) in [
            (Some(100), CostSource::Listed, 105, 100),
            (Some(100), CostSource::Doubted, 105, 100),
            (Some(100), CostSource::Told, 75, 70),
            (None, CostSource::Told, 75, 70),
        ] {
            let bill = bill(cost, source);
            let found = (bill.own_cost(), bill.owed().cost);
            assert_eq!(
                found,
                (Some(picos(own)), Some(picos(answered))),
                "{source:?}"
            );
        }
        assert_eq!(Bill::default().cost_source(), "none");
        assert_eq!(Bill::default().own_cost(), None);
    }
}

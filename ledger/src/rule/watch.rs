//! When a customer's money is worth telling: its balance is low, gone or back, or much of a cap is charged. Pure.
//!
//! Judged on balances and on what was charged, never on held money, which comes and goes. What was told last stands beside the
//! account, so that each is told once and a request that crosses nothing looks nothing up.

use crate::{Amount, EventKind};

/// What was told of a balance since it was last well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum BalanceTold {
    #[default]
    Nothing,
    Low,
    /// That it is used up.
    Depleted,
}

impl BalanceTold {
    /// As both databases store it.
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::Nothing => 0,
            Self::Low => 1,
            Self::Depleted => 2,
        }
    }

    pub(crate) fn of(code: i64) -> Option<Self> {
        let mut all = [Self::Nothing, Self::Low, Self::Depleted].into_iter();
        all.find(|told| told.code() == code)
    }
}

/// What is kept of a customer to know when something has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CustomerWatch {
    /// The number of its newest event.
    pub(crate) seq: i64,
    /// Its last top-up, a tenth of which is low unless something else was set.
    pub(crate) last_top_up: Amount,
    pub(crate) told: BalanceTold,
}

impl CustomerWatch {
    /// The balance below which it is low; `set` is the customer's own setting.
    pub(crate) fn threshold(&self, set: Option<Amount>) -> Amount {
        set.unwrap_or(tenth(self.last_top_up))
    }

    /// What a balance is worth telling, and what has been told then.
    ///
    /// It is told again only after it was well in between: a tenth above the threshold. That it is used up can be told again once
    /// it has been a tenth of the threshold.
    pub(crate) fn judge(
        &self,
        set: Option<Amount>,
        balance: Amount,
    ) -> (BalanceTold, Option<EventKind>) {
        let low = self.threshold(set);
        let well = Amount::from_picos(low.picos().saturating_add(tenth(low).picos()));
        let told = self.told;
        if !balance.is_positive() {
            let news = (told != BalanceTold::Depleted).then_some(EventKind::BalanceDepleted);
            return (BalanceTold::Depleted, news);
        }
        if balance >= well {
            let news = (told != BalanceTold::Nothing).then_some(EventKind::BalanceRestored);
            return (BalanceTold::Nothing, news);
        }
        match told {
            BalanceTold::Nothing if balance < low => {
                (BalanceTold::Low, Some(EventKind::BalanceLow))
            }
            BalanceTold::Depleted if balance >= tenth(low) => (BalanceTold::Low, None),
            told => (told, None),
        }
    }
}

const fn tenth(amount: Amount) -> Amount {
    Amount::from_picos(amount.picos().div_euclid(10))
}

/// The share of a cap worth telling that is charged, in per cent: 0, 80 or 100.
pub(crate) fn cap_level(charged: Amount, limit: Amount) -> u8 {
    let (charged, limit) = (i128::from(charged.picos()), i128::from(limit.picos()));
    if charged >= limit {
        100
    } else if charged.saturating_mul(10) >= limit.saturating_mul(8) {
        80
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(cents: i64) -> Amount {
        Amount::from_picos(cents.saturating_mul(10_000_000_000))
    }

    /// What is told of these balances, one after the other, with a last top-up of 10 USD.
    fn told(balances: &[i64], set: Option<Amount>) -> Vec<Option<EventKind>> {
        let mut watch = CustomerWatch {
            last_top_up: usd(1_000),
            ..CustomerWatch::default()
        };
        let each = balances.iter().map(|balance| {
            let (told, news) = watch.judge(set, usd(*balance));
            watch.told = told;
            news
        });
        each.collect()
    }

    #[test]
    fn each_is_told_once_until_the_balance_is_well() {
        use EventKind::{BalanceDepleted, BalanceLow, BalanceRestored};
        assert_eq!(
            told(&[500, 100, 99, 50, 101, 109, 99, 110, 99, 0, 0], None),
            [
                None,
                None,
                Some(BalanceLow),
                None,
                None,
                None,
                None,
                Some(BalanceRestored),
                Some(BalanceLow),
                Some(BalanceDepleted),
                None,
            ]
        );
        assert_eq!(
            told(&[0, 1, 0, 10, 0], None),
            [
                Some(BalanceDepleted),
                None,
                None,
                None,
                Some(BalanceDepleted)
            ],
            "a cent between is no news"
        );
        assert_eq!(
            told(&[300, 200, 0, 1], Some(Amount::ZERO)),
            [None, None, Some(BalanceDepleted), Some(BalanceRestored)],
            "nothing is low for who set it so"
        );
    }

    #[test]
    fn a_cap_is_told_at_80_and_at_100_per_cent() {
        for (charged, level) in [(0, 0), (79, 0), (80, 80), (99, 80), (100, 100), (130, 100)] {
            assert_eq!(cap_level(usd(charged), usd(100)), level, "{charged}");
        }
        let most = Amount::from_picos(i64::MAX);
        assert_eq!(cap_level(most, most), 100);
    }
}

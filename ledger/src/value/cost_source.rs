//! Which cost of an answer is its operator's: what the answer told, what the target's `cost` says, or nothing.

use serde::{Deserialize, Serialize};

use crate::Amount;

/// What an answer said about its own cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToldCost {
    /// Nothing.
    Nothing,
    /// This.
    Amount(Amount),
    /// Something that is no amount: negative, no number.
    Unreadable,
}

/// Where the cost of an answer is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// From the target's `cost`, if it has one; the answer told none.
    #[default]
    Listed,
    /// From the answer.
    Told,
    /// As `Listed`; what the answer told cannot be.
    Doubted,
}

impl CostSource {
    /// A told cost that is this many times the listed one, or less than its like part, is in another unit.
    // Discounts, other tiers and stale lists are far within it; cents, ticks and credits are not.
    const MOST: i128 = 10;

    /// Picks the cost of an answer. What no `cost` contradicts is believed.
    #[must_use]
    pub fn between(told: ToldCost, listed: Option<Amount>) -> Self {
        let told = match told {
            ToldCost::Nothing => return Self::Listed,
            ToldCost::Unreadable => return Self::Doubted,
            ToldCost::Amount(told) => told,
        };
        let times = |amount: Amount| i128::from(amount.picos()).saturating_mul(Self::MOST);
        let fits = |listed: Amount| {
            let (told, listed_picos) = (i128::from(told.picos()), i128::from(listed.picos()));
            told <= times(listed) && listed_picos <= told.saturating_mul(Self::MOST)
        };
        let plausible = !told.is_negative() && told <= Amount::MAX_COST;
        if plausible && listed.is_none_or(fits) {
            Self::Told
        } else {
            Self::Doubted
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Told => "told",
            Self::Doubted => "doubted",
        }
    }

    pub(crate) fn of(word: &str) -> Option<Self> {
        let all = [Self::Listed, Self::Told, Self::Doubted];
        all.into_iter().find(|source| source.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_counts_within_ten_times_and_a_tenth_of_the_list() {
        let picos = Amount::from_picos;
        let amount = |picos| ToldCost::Amount(Amount::from_picos(picos));
        for (told, listed, source) in [
            (ToldCost::Nothing, None, CostSource::Listed),
            (ToldCost::Nothing, Some(100), CostSource::Listed),
            (ToldCost::Unreadable, None, CostSource::Doubted),
            (ToldCost::Unreadable, Some(100), CostSource::Doubted),
            (amount(77), None, CostSource::Told),
            (amount(0), None, CostSource::Told),
            (amount(100), Some(100), CostSource::Told),
            (amount(1_000), Some(100), CostSource::Told),
            (amount(1_001), Some(100), CostSource::Doubted),
            (amount(10), Some(100), CostSource::Told),
            (amount(9), Some(100), CostSource::Doubted),
            (amount(0), Some(100), CostSource::Doubted),
            (amount(0), Some(0), CostSource::Told),
            (amount(1), Some(0), CostSource::Doubted),
            (amount(-1), None, CostSource::Doubted),
            (amount(i64::MAX), None, CostSource::Doubted),
            (amount(i64::MAX), Some(i64::MAX), CostSource::Doubted),
        ] {
            let found = CostSource::between(told, listed.map(picos));
            assert_eq!(found, source, "{told:?} {listed:?}");
        }
    }
}

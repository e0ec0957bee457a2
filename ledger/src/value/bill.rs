//! The bill of a request: what was counted, at which rates, and how the request ended.
//!
//! A bill is part of the charge entry and hashed with it, so its fields are as frozen as those of an entry: later versions add data
//! as [`BillFacts`].

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Amount, CostSource, EndReason, Refusal, Served, Usage};

/// Everything about how one request ended. `lines` sum to charge + loss.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bill {
    /// The public slug.
    pub slug: String,
    /// The wire family: `chat`, `responses` or `messages`.
    pub family: String,
    /// Provider and upstream model name of the last answer, `provider/model`; empty if none was reached.
    pub target: String,
    /// The HTTP status the customer got.
    pub status: u16,
    /// Why the request ended.
    pub end_reason: EndReason,
    /// From the request's arrival to the first answer byte, milliseconds.
    pub first_byte_ms: Option<u32>,
    /// From the request's arrival to its end, milliseconds.
    pub total_ms: u32,
    /// The id in the upstream's answer, when it had one.
    pub answer_id: Option<String>,
    /// The hold's final size.
    pub hold: Amount,
    /// The part of the cost that the balance did not cover: the operator's loss.
    pub loss: Amount,
    /// Who counted; `None` if nothing was produced and so nobody counted. See [`Bill::counted_by`].
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// Disjoint token counts.
    pub usage: Usage,
    /// Count times rate, one line for each priced thing.
    pub lines: Vec<BillLine>,
    /// What the operator may owe a provider beyond the charge, for requests that were cut, broken, disputed or free after dispatch,
    /// and for failed attempts.
    #[serde(default)]
    pub exposure: Amount,
    /// What the request cost at the operator's own prices, if they are known. What it cost, [`Bill::own_cost`] says.
    #[serde(default)]
    pub cost: Option<Amount>,
    /// Where the answer's cost is from.
    #[serde(default, skip_serializing_if = "is_listed")]
    pub cost_source: CostSource,
    /// What the answer said that it costs. Part of no charge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_cost: Option<Amount>,
    /// What the answer was billed as.
    #[serde(default, skip_serializing_if = "Served::is_ordinary")]
    pub served: Served,
    /// Further facts by name, sorted; later versions can add some without a new format. Never named like what has a field (`pairs.rs`).
    #[serde(default)]
    pub facts: BillFacts,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde passes it")]
fn is_listed(source: &CostSource) -> bool {
    *source == CostSource::Listed
}

/// Named facts, sorted by name.
pub type BillFacts = std::collections::BTreeMap<String, String>;

impl Bill {
    /// Who counted what is charged; `None` if no provider answered and nothing is charged. Entries of earlier versions name the
    /// provider there, and their hashes cover that word, so it is dropped here and not corrected in the journal.
    pub fn counted_by(&self) -> Option<Evidence> {
        let nothing = self.lines.is_empty() && self.usage == Usage::default();
        self.evidence.filter(|_| !nothing)
    }

    /// Largest plausible count: far above any request, far below where an hour's sum could overflow.
    pub(crate) const MAX_COUNT: u64 = 1_000_000_000_000;
}

impl Bill {
    // Room on the disk is reserved for the end of every hold: this bounds how much of it a bill can need.
    pub(crate) const MAX_FACT_BYTES: usize = 4096;

    /// Bytes of all facts, with their names.
    pub(crate) fn facts_bytes(&self) -> usize {
        self.facts
            .iter()
            .map(|(name, value)| name.len().saturating_add(value.len()))
            .fold(0, usize::saturating_add)
    }
}

/// Who counted the usage of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The provider's own usage.
    Provider,
    /// Counted here, because the provider's usage was missing.
    Local,
    /// Counted here, because the provider's usage was absurd.
    Disputed,
    /// Taken from a checkpoint, after a crash.
    Recovered,
    /// Counted here for a customer who left; how much of the prompt was cached is known from their last finished request.
    Learned,
}

/// One line of a bill: `count` × `rate` picodollars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillLine {
    /// What was bought: `input`, `cache_read`, …, `images`, `request`.
    pub what: Cow<'static, str>,
    /// Tokens, pictures or requests, as `what` says.
    pub count: u64,
    /// Picodollars for one.
    pub rate: Amount,
    /// The class at whose rate it is charged: `fast`, `flex`, `us`, `fast,us`; `None` is standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Cow<'static, str>>,
}

/// Σ count × rate, exactly.
///
/// # Errors
/// [`Refusal::Limit`] when a rate is negative, or the sum overflows or exceeds [`Amount::MAX_COST`]: the counts are then wrong, and
/// the caller treats them as disputed.
pub fn cost(lines: &[BillLine]) -> Result<Amount, Refusal> {
    let absurd =
        || Refusal::Limit("the lines of this bill do not add up to a plausible cost".to_owned());
    let mut sum = Amount::ZERO;
    for line in lines {
        if line.rate.is_negative() {
            return Err(absurd());
        }
        sum = Amount::times(line.rate, line.count)
            .and_then(|part| sum.checked_add(part))
            .ok_or_else(absurd)?;
    }
    if sum > Amount::MAX_COST {
        Err(absurd())
    } else {
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_is_exact_or_refused() {
        let line = |count, rate| BillLine {
            what: Cow::Borrowed("input"),
            count,
            rate: Amount::from_picos(rate),
            class: None,
        };
        assert_eq!(
            cost(&[line(100, 3_000_000), line(7, 15_000_000)]).unwrap(),
            Amount::from_picos(405_000_000)
        );
        assert!(cost(&[line(u64::MAX, 2)]).is_err());
        assert!(cost(&[line(1, i64::MAX)]).is_err());
        assert!(cost(&[line(1, -1)]).is_err());
    }
}

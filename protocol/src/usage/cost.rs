//! What a provider says about its own price of an answer. Which member of a usage says it is a fact of the service, so that all are
//! kept until it is known who answered.

use super::UsageSlot;

/// More digits than this are not a price.
const MOST_DIGITS: usize = 40;
/// Characters that are kept of what is no amount.
const MOST_KEPT: usize = 40;

/// The member of a usage in which a service says what an answer costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostField {
    /// `cost`, or its `total_cost`, in USD. Of an answer that `is_byok` it is a fee: what the service behind bills for one's own key
    /// there, `cost_details.upstream_inference_cost`, comes on top.
    Usd,
    /// `cost_in_usd_ticks`, in 1e-10 USD.
    Ticks,
}

/// All that a usage says about costs: each in picodollars, or the beginning of what is no amount.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SaidCosts {
    usd: Option<Result<i64, Box<str>>>,
    ticks: Option<Result<i64, Box<str>>>,
    behind: Option<Result<i64, Box<str>>>,
    is_byok: bool,
}

impl SaidCosts {
    /// What the answer costs in picodollars, as this member says, or its words if they are no amount.
    pub fn told(&self, field: CostField) -> Option<Result<i64, &str>> {
        let (said, more) = match field {
            CostField::Usd if self.is_byok => (self.usd.as_ref()?, Some(self.behind.as_ref()?)),
            CostField::Usd => (self.usd.as_ref()?, None),
            CostField::Ticks => (self.ticks.as_ref()?, None),
        };
        let more = more.map_or(Ok(0), |more| more.as_ref().map(|picos| *picos));
        let both = (said.as_ref())
            .and_then(|said| Ok(said.saturating_add(more?)))
            .map_err(AsRef::as_ref);
        Some(both)
    }

    /// Merges what a later frame says.
    pub fn merge(&mut self, later: &Self) {
        for (place, said) in [
            (&mut self.usd, &later.usd),
            (&mut self.ticks, &later.ticks),
            (&mut self.behind, &later.behind),
        ] {
            if said.is_some() {
                place.clone_from(said);
            }
        }
        self.is_byok |= later.is_byok;
    }

    /// Takes a member of a usage; `false` if it says nothing about costs.
    pub(super) fn take(&mut self, slot: UsageSlot, said: &str) -> bool {
        let (place, ticks) = match slot {
            UsageSlot::Cost => (&mut self.usd, false),
            UsageSlot::CostTicks => (&mut self.ticks, true),
            UsageSlot::CostBehind => (&mut self.behind, false),
            UsageSlot::IsByok => {
                self.is_byok = said == "true";
                return true;
            }
            _ => return false,
        };
        let words = || said.chars().take(MOST_KEPT).collect();
        *place = Some(picos(said, ticks).ok_or_else(words));
        true
    }
}

/// A decimal number in USD, or in ticks of 1e-10 USD, as picodollars; what is finer is cut off. `None` if it is no such number.
fn picos(text: &str, ticks: bool) -> Option<i64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [whole, fraction].concat();
    let plain = !whole.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || digits.len() > MOST_DIGITS {
        return None;
    }
    let scale = if ticks { 2 } else { 12 };
    let point = i32::try_from(whole.len())
        .ok()?
        .checked_add(scale)?
        .checked_add(exponent)?;
    let kept = usize::try_from(point.max(0)).ok()?;
    if kept > MOST_DIGITS {
        return None;
    }
    digits.truncate(kept);
    digits.extend(std::iter::repeat_n('0', kept.saturating_sub(digits.len())));
    if digits.is_empty() {
        return Some(0);
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::picos;

    #[test]
    fn a_price_is_read_to_the_picodollar() {
        for (text, ticks, picodollars) in [
            ("0.00012", false, Some(120_000_000)),
            ("1.2e-05", false, Some(12_000_000)),
            ("1.2E+0", false, Some(1_200_000_000_000)),
            ("0", false, Some(0)),
            ("1e-13", false, Some(0)),
            ("0.0000000000019", false, Some(1)),
            ("37756000", true, Some(3_775_600_000)),
            ("-0.1", false, None),
            ("1e99", false, None),
            ("\"1\"", false, None),
            ("true", false, None),
            ("99999999999", false, None),
        ] {
            assert_eq!(picos(text, ticks), picodollars, "{text}");
        }
    }
}

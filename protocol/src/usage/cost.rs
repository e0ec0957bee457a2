//! What a provider says about its own price of an answer. Kept to be compared with its invoice; it decides nothing.

/// More digits than this are not a price.
const MOST_DIGITS: usize = 40;

/// A decimal number in USD, or in ticks of 1e-10 USD, as picodollars; what is finer is cut off. `None` if it is no such number.
pub(super) fn picos(text: &str, ticks: bool) -> Option<i64> {
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

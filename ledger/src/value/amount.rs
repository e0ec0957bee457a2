//! Money: whole picodollars (1e-12 USD) in an `i64`.
//!
//! Every operation is checked and none uses a float, so a sum of counts times rates is either exact or refused. The text form is an
//! exact decimal number of US dollars. What an account may do with an amount is decided in `account`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) const PICOS_PER_USD: u64 = 1_000_000_000_000;
const PLACES: usize = 12;

/// An amount of money, in picodollars. May be negative in journal entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Amount(i64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The most a key may hold: 1,000,000 USD.
    pub const MAX_BALANCE: Self = Self(1_000_000_000_000_000_000);
    /// The largest single top-up: 100,000 USD.
    pub const MAX_TOP_UP: Self = Self(100_000_000_000_000_000);
    /// The most that may ever be paid onto one key: 9,000,000 USD.
    // Just below where an `i64` of picodollars ends (9.22 million USD), so no sum within one customer can overflow.
    pub const MAX_LIFETIME_CREDIT: Self = Self(9_000_000_000_000_000_000);
    /// The largest plausible cost of one request: 1,000,000 USD. More is a mistake in the counts.
    pub const MAX_COST: Self = Self::MAX_BALANCE;

    /// From picodollars.
    #[must_use]
    pub const fn from_picos(picos: i64) -> Self {
        Self(picos)
    }

    /// As picodollars.
    #[must_use]
    pub const fn picos(self) -> i64 {
        self.0
    }

    /// Below zero.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Above zero.
    #[must_use]
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// The sum, unless it overflows.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference, unless it overflows.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The amount with the other sign, unless it overflows.
    #[must_use]
    pub fn checked_neg(self) -> Option<Self> {
        self.0.checked_neg().map(Self)
    }

    /// `count` × `rate`, unless it overflows.
    #[must_use]
    pub fn times(rate: Self, count: u64) -> Option<Self> {
        let product = i128::from(rate.0).checked_mul(i128::from(count))?;
        i64::try_from(product).ok().map(Self)
    }

    /// The sum of all, unless it overflows on the way.
    pub fn checked_sum(amounts: impl IntoIterator<Item = Self>) -> Option<Self> {
        amounts.into_iter().try_fold(Self::ZERO, Self::checked_add)
    }

    /// Reads an exact decimal number of dollars: an optional sign, digits, at most 12 decimals.
    ///
    /// # Errors
    /// [`AmountError`] when the text is anything else or too large.
    pub fn from_usd_str(text: &str) -> Result<Self, AmountError> {
        let (negative, digits) = match text.as_bytes().first() {
            Some(b'-') => (true, text.get(1..).unwrap_or_default()),
            Some(b'+') => (false, text.get(1..).unwrap_or_default()),
            _ => (false, text),
        };
        let magnitude = magnitude(digits, PLACES).ok_or_else(|| {
            AmountError::new(
                text,
                "write it as a decimal number of US dollars, like 12.50",
            )
        })?;
        let signed = if negative {
            0_i64.checked_sub_unsigned(magnitude)
        } else {
            0_i64.checked_add_unsigned(magnitude)
        };
        signed
            .map(Self)
            .ok_or_else(|| AmountError::new(text, "it is too large"))
    }

    /// Reads what a person typed as a payment: digits and at most 6 decimals, nothing ambiguous.
    ///
    /// # Errors
    /// [`AmountError`], which says what to type instead.
    pub fn parse_payment(text: &str) -> Result<Self, AmountError> {
        let error = |advice: &str| Err(AmountError::new(text, advice));
        if text.is_empty() {
            return error("type a number of US dollars, like 12.50");
        }
        if text.contains(char::is_whitespace) {
            return error("type it without spaces, like 1000.50");
        }
        if text.contains([',', '\'', '_']) {
            return error(
                "it is ambiguous: type 1000 for a thousand dollars, 1.50 for one dollar and a half",
            );
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['e', 'E']) {
            return error("type it without an exponent, like 1000");
        }
        if text.starts_with(['+', '-']) {
            return error("type it without a sign, like 12.50");
        }
        if text.starts_with('$') || text.to_ascii_lowercase().ends_with("usd") {
            return error("type only the number of US dollars, like 12.50");
        }
        match text.split_once('.') {
            Some((_, decimals)) if decimals.len() > 6 => {
                return error("type at most 6 decimals, like 0.000001");
            }
            Some((whole, decimals)) if whole.is_empty() || decimals.is_empty() => {
                return error("type digits on both sides of the point, like 0.50");
            }
            _ => {}
        }
        let Some(magnitude) = magnitude(text, 6) else {
            let number = text
                .replacen('.', "", 1)
                .bytes()
                .all(|byte| byte.is_ascii_digit());
            return error(if number {
                "it is too large"
            } else {
                "type a number of US dollars, like 12.50"
            });
        };
        0_i64
            .checked_add_unsigned(magnitude)
            .map(Self)
            .ok_or_else(|| AmountError::new(text, "it is too large"))
    }

    /// Reads what a person typed as a correction: like [`Amount::parse_payment`], with one sign allowed in front.
    ///
    /// # Errors
    /// As [`Amount::parse_payment`].
    pub fn parse_adjustment(text: &str) -> Result<Self, AmountError> {
        match text.strip_prefix('-') {
            Some(digits) => Self::parse_payment(digits)?
                .checked_neg()
                .ok_or_else(|| AmountError::new(text, "it is too large")),
            None => Self::parse_payment(text.strip_prefix('+').unwrap_or(text)),
        }
    }

    /// For screens: exactly `places` decimals, rounded down (towards negative infinity). At most 12.
    #[must_use]
    pub fn show(self, places: usize) -> String {
        let places = places.min(PLACES);
        let unit = PLACES
            .checked_sub(places)
            .and_then(|cut| u32::try_from(cut).ok())
            .map_or(1, |cut| 10_i128.saturating_pow(cut));
        let floored = i128::from(self.0).div_euclid(unit).saturating_mul(unit);
        let (sign, whole, decimals) = parts(floored);
        match decimals.get(..places) {
            Some(shown) if !shown.is_empty() => format!("{sign}{whole}.{shown}"),
            _ => format!("{sign}{whole}"),
        }
    }
}

/// Exact, at least two decimals, no trailing zeros beyond them.
impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&exact(i128::from(self.0)))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Self::from_usd_str(&String::deserialize(input)?).map_err(serde::de::Error::custom)
    }
}

/// Text that is not an amount; the message says what to type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an amount: {advice}")]
pub struct AmountError {
    text: String,
    advice: String,
}

impl AmountError {
    fn new(text: &str, advice: &str) -> Self {
        Self {
            text: text.chars().take(40).collect(),
            advice: advice.to_owned(),
        }
    }
}

/// A sum in picodollars, larger than an [`Amount`] can be, as an [`Amount`] displays itself.
pub fn exact(picos: i128) -> String {
    let (sign, whole, decimals) = parts(picos);
    let significant = decimals.trim_end_matches('0').len().max(2);
    format!(
        "{sign}{whole}.{}",
        decimals.get(..significant).unwrap_or(&decimals)
    )
}

/// Sign, whole dollars and all twelve decimals.
fn parts(picos: i128) -> (&'static str, u128, String) {
    let (unit, magnitude) = (u128::from(PICOS_PER_USD), picos.unsigned_abs());
    let sign = if picos < 0 { "-" } else { "" };
    (
        sign,
        magnitude.div_euclid(unit),
        format!("{:012}", magnitude.rem_euclid(unit)),
    )
}

/// Unsigned decimal text as picodollars; `None` when it is not digits with an optional point, or overflows.
fn magnitude(text: &str, places: usize) -> Option<u64> {
    let (whole, decimals) = text
        .split_once('.')
        .map_or((text, None), |(whole, decimals)| (whole, Some(decimals)));
    let decimals = match decimals {
        Some("") => return None,
        Some(decimals) => decimals,
        None => "",
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > places || !digits(whole) || !digits(decimals) {
        return None;
    }
    let fraction: u64 = format!("{decimals:0<PLACES$}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(PICOS_PER_USD)?
        .checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Amount {
        Amount::from_usd_str(text).unwrap()
    }

    #[test]
    fn text_is_exact_both_ways() {
        for (picos, text) in [
            (5_000_000_000_000, "5.00"),
            (4_999_979_000_000, "4.999979"),
            (-21_300_000_000, "-0.0213"),
            (1, "0.000000000001"),
            (0, "0.00"),
            (i64::MAX, "9223372.036854775807"),
            (i64::MIN, "-9223372.036854775808"),
        ] {
            assert_eq!(Amount::from_picos(picos).to_string(), text);
            assert_eq!(exact(picos.into()), text);
            assert_eq!(usd(text).picos(), picos);
        }
        assert_eq!(exact(9_223_372_036_854_775_807_000), "9223372036.854775807");
        assert_eq!(usd("12.5"), usd("+12.50"));
        for wrong in [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "1e3",
            "1,000",
            " 1",
            "1.0000000000001",
            "9223373",
            "--1",
            "٣",
        ] {
            assert!(Amount::from_usd_str(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn payments_are_never_guessed() {
        assert_eq!(
            Amount::parse_payment("1000.000001").unwrap(),
            usd("1000.000001")
        );
        for wrong in [
            "1,000",
            "1e3",
            " 5",
            "5 ",
            "+5",
            "-5",
            "$5",
            "5USD",
            "",
            "5.",
            ".5",
            "0.0000001",
            "1_000",
            "1'000",
            "99999999999999999999",
        ] {
            assert!(Amount::parse_payment(wrong).is_err(), "{wrong}");
        }
        assert!(
            Amount::parse_payment("1,000")
                .unwrap_err()
                .to_string()
                .contains("type 1000")
        );
        assert!(
            Amount::parse_payment("1e3")
                .unwrap_err()
                .to_string()
                .contains("without an exponent")
        );
        assert!(
            Amount::parse_payment("test")
                .unwrap_err()
                .to_string()
                .ends_with("type a number of US dollars, like 12.50")
        );
        assert!(
            Amount::parse_payment("99999999999999.5")
                .unwrap_err()
                .to_string()
                .contains("too large")
        );
        assert_eq!(Amount::parse_adjustment("-5").unwrap(), usd("-5"));
        assert_eq!(Amount::parse_adjustment("+5").unwrap(), usd("5"));
        assert!(Amount::parse_adjustment("--5").is_err());
    }

    #[test]
    fn screens_round_down() {
        assert_eq!(usd("4.999979").show(2), "4.99");
        assert_eq!(usd("-0.0213").show(2), "-0.03");
        assert_eq!(usd("4.999979").show(0), "4");
        assert_eq!(usd("4.999979").show(12), "4.999979000000");
        assert_eq!(Amount::from_picos(i64::MIN).show(2), "-9223372.04");
    }

    #[test]
    fn overflow_is_an_answer() {
        assert_eq!(Amount::times(Amount::from_picos(i64::MAX), 2), None);
        assert_eq!(Amount::times(Amount::from_picos(3), u64::MAX), None);
        assert_eq!(Amount::times(usd("0.000003"), 1_000_000), Some(usd("3")));
        assert_eq!(
            Amount::checked_sum([Amount::from_picos(i64::MAX), Amount::from_picos(1)]),
            None
        );
        assert_eq!(
            Amount::checked_sum([usd("1"), usd("2.5")]),
            Some(usd("3.50"))
        );
    }
}

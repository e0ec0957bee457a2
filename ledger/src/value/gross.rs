//! What a payment was in its own currency, tax included: whole ten-thousandths of a unit.
//!
//! No currency has smaller parts, and a processor's numbers in any of them fit. Nothing is ever converted: what a payment bought is
//! an [`Amount`](crate::Amount) of its own.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const PARTS: i64 = 10_000;
const PLACES: usize = 4;

/// An amount in a currency that is named beside it. Never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Gross(i64);

impl Gross {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The most that a payment may be: 100 billion of its currency.
    pub const MAX: Self = Self(1_000_000_000_000_000);

    /// From ten-thousandths; `None` below zero or above [`Gross::MAX`].
    #[must_use]
    pub const fn from_parts(parts: i64) -> Option<Self> {
        if parts < 0 || parts > Self::MAX.0 {
            None
        } else {
            Some(Self(parts))
        }
    }

    /// As ten-thousandths.
    #[must_use]
    pub const fn parts(self) -> i64 {
        self.0
    }

    /// Above zero.
    #[must_use]
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// Reads a decimal number: digits, and at most four decimals.
    ///
    /// # Errors
    /// [`GrossError`], which says what to type.
    pub fn parse(text: &str) -> Result<Self, GrossError> {
        let wrong = || GrossError(text.chars().take(40).collect());
        let (whole, decimals) = match text.split_once('.') {
            Some((_, "")) => return Err(wrong()),
            Some(parts) => parts,
            None => (text, ""),
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || decimals.len() > PLACES || !digits(whole) || !digits(decimals) {
            return Err(wrong());
        }
        let fraction: i64 = format!("{decimals:0<PLACES$}")
            .parse()
            .map_err(|_| wrong())?;
        let whole: i64 = whole.parse().map_err(|_| wrong())?;
        whole
            .checked_mul(PARTS)
            .and_then(|parts| parts.checked_add(fraction))
            .and_then(Self::from_parts)
            .ok_or_else(wrong)
    }
}

impl fmt::Display for Gross {
    /// With two decimals, or as many more as there are.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:04}", self.0.rem_euclid(PARTS));
        let shown = decimals.trim_end_matches('0').len().max(2);
        let decimals = decimals.get(..shown).unwrap_or(&decimals);
        write!(out, "{}.{decimals}", self.0.div_euclid(PARTS))
    }
}

impl Serialize for Gross {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Gross {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(input)?).map_err(serde::de::Error::custom)
    }
}

/// Text that is not an amount of a payment; the message says what to type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an amount of a payment: type it in the payment's currency, with at most 4 decimals, like 12.50"
)]
pub struct GrossError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_exact_both_ways() {
        for (parts, text) in [
            (0, "0.00"),
            (125_000, "12.50"),
            (1, "0.0001"),
            (1_190, "0.119"),
            (Gross::MAX.parts(), "100000000000.00"),
        ] {
            let gross = Gross::from_parts(parts).unwrap();
            assert_eq!(gross.to_string(), text);
            assert_eq!(Gross::parse(text).unwrap(), gross);
        }
        assert_eq!(Gross::parse("7").unwrap(), Gross::parse("7.0").unwrap());
        for wrong in [
            "",
            "-1",
            "+1",
            "1.",
            ".5",
            "1,5",
            "1e3",
            "1.00001",
            "100000000000.0001",
            "99999999999999999999",
            "٣",
        ] {
            assert!(Gross::parse(wrong).is_err(), "{wrong}");
        }
    }
}

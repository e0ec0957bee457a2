//! Amounts as processors write them: whole numbers of a currency's smallest part. How many parts a unit has is the currency's.

use farebox_ledger::Gross;

/// Currencies whose unit has no parts.
const WHOLE: [&str; 15] = [
    "BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF",
    "XOF", "XPF",
];
/// Currencies whose unit has a thousand parts, of which cards charge whole tens.
const THOUSANDTHS: [&str; 5] = ["BHD", "JOD", "KWD", "OMR", "TND"];

/// Currencies without parts that are written with two all the same.
const WRITTEN_WITH_PARTS: [&str; 2] = ["ISK", "UGX"];
/// The most that a card is charged: eight digits.
const MOST: i64 = 99_999_999;

/// Ten-thousandths of a unit, as [`Gross`] counts them, in a currency's smallest part.
fn part(currency: &str) -> i64 {
    match currency {
        whole if WHOLE.contains(&whole) => 10_000,
        third if THOUSANDTHS.contains(&third) => 10,
        _ => 100,
    }
}

/// Ten-thousandths of the least sum that differs from another.
fn step(currency: &str) -> i64 {
    match part(currency) {
        10 => 100,
        _ if WRITTEN_WITH_PARTS.contains(&currency) => 10_000,
        part => part,
    }
}

/// How many digits behind the point a sum may have that a card is charged.
pub(crate) fn places(currency: &str) -> usize {
    match step(currency) {
        10_000 => 0,
        _ => 2,
    }
}

/// A sum with its currency, with as many digits as the currency has: `1700 JPY`, `11.90 EUR`, `3.570 KWD`.
pub(crate) fn shown(currency: &str, sum: Gross) -> String {
    let (whole, rest) = (sum.parts() / 10_000, sum.parts() % 10_000);
    match part(currency) {
        10_000 => format!("{whole} {currency}"),
        10 => format!("{whole}.{:03} {currency}", rest / 10),
        _ => format!("{whole}.{:02} {currency}", rest / 100),
    }
}

/// Whether a unit has a hundred parts, as the dollar has; others are worth something of another order.
pub(crate) fn has_cents(currency: &str) -> bool {
    step(currency) == 100 && part(currency) == 100
}

/// An amount in smallest parts; `None` if the currency cannot express it, or a card cannot be charged it.
pub(crate) fn minor(currency: &str, amount: Gross) -> Option<i64> {
    let minor = amount.parts() / part(currency);
    (amount.parts() % step(currency) == 0 && minor <= MOST).then_some(minor)
}

/// Smallest parts as an amount; `None` for a number that no payment has.
pub(crate) fn from_minor(currency: &str, minor: i64) -> Option<Gross> {
    minor
        .checked_mul(part(currency))
        .and_then(Gross::from_parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_currency_has_its_parts() {
        let gross = |text: &str| Gross::parse(text).unwrap();
        for (currency, text, parts) in [
            ("EUR", "11.90", 1_190),
            ("USD", "0.50", 50),
            ("JPY", "1500", 1_500),
            ("KWD", "1.250", 1_250),
            ("UGX", "5000", 500_000),
        ] {
            assert_eq!(minor(currency, gross(text)), Some(parts), "{currency}");
            assert_eq!(from_minor(currency, parts), Some(gross(text)), "{currency}");
        }
        for (currency, text, wanted) in [
            ("EUR", "11.9", "11.90 EUR"),
            ("JPY", "1700", "1700 JPY"),
            ("KWD", "3.57", "3.570 KWD"),
        ] {
            assert_eq!(shown(currency, gross(text)), wanted);
        }
        for (currency, text) in [
            ("EUR", "0.001"),
            ("EUR", "1000000"),
            ("JPY", "0.5"),
            ("KWD", "1.255"),
            ("UGX", "0.50"),
        ] {
            assert_eq!(minor(currency, gross(text)), None, "{currency} {text}");
        }
        for wrong in [-1, i64::MAX, i64::MIN] {
            assert_eq!(from_minor("EUR", wrong), None);
        }
    }
}

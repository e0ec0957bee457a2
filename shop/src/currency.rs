//! Amounts as processors write them: whole numbers of a currency's smallest part. How many parts a unit has is the currency's.

use farebox_ledger::Gross;

/// Currencies whose unit has no parts.
const WHOLE: [&str; 15] = [
    "BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF",
    "XOF", "XPF",
];
/// Currencies whose unit has a thousand parts, of which cards charge whole tens.
const THOUSANDTHS: [&str; 5] = ["BHD", "JOD", "KWD", "OMR", "TND"];

/// Ten-thousandths of a unit, as [`Gross`] counts them, in a currency's smallest part.
fn part(currency: &str) -> i64 {
    match currency {
        whole if WHOLE.contains(&whole) => 10_000,
        third if THOUSANDTHS.contains(&third) => 10,
        _ => 100,
    }
}

/// An amount in smallest parts; `None` if the currency cannot express it, or a card cannot be charged it.
pub(crate) fn minor(currency: &str, amount: Gross) -> Option<i64> {
    let part = part(currency);
    let charged = if part == 10 { 100 } else { part };
    (amount.parts() % charged == 0).then(|| amount.parts() / part)
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
        for (currency, text) in [("EUR", "0.001"), ("JPY", "0.5"), ("KWD", "1.255")] {
            assert_eq!(minor(currency, gross(text)), None, "{currency} {text}");
        }
        for wrong in [-1, i64::MAX, i64::MIN] {
            assert_eq!(from_minor("EUR", wrong), None);
        }
    }
}

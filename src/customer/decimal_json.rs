//! JSON whose numbers are exact decimals: an amount is written digit by digit and never passes through a float.

use farebox_ledger::{Amount, MetadataPairs};
use serde::ser::{Error, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DecimalJson {
    Null,
    Bool(bool),
    Count(u64),
    /// The digits of a decimal number.
    Number(String),
    Text(String),
    List(Vec<DecimalJson>),
    Object(Vec<(&'static str, DecimalJson)>),
    /// A caller's own texts.
    Texts(MetadataPairs),
}

impl DecimalJson {
    /// An object with its fields in this order.
    pub(super) fn object<const N: usize>(fields: [(&'static str, Self); N]) -> Self {
        Self::Object(fields.into())
    }

    /// The document as text.
    pub(super) fn document(&self) -> String {
        // Every number here consists of digits, so writing cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for DecimalJson {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => out.serialize_unit(),
            Self::Bool(value) => out.serialize_bool(*value),
            Self::Count(value) => out.serialize_u64(*value),
            Self::Number(digits) => RawValue::from_string(digits.clone())
                .map_err(S::Error::custom)?
                .serialize(out),
            Self::Text(text) => out.serialize_str(text),
            Self::List(items) => {
                let mut list = out.serialize_seq(Some(items.len()))?;
                items
                    .iter()
                    .try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Object(fields) => {
                let mut map = out.serialize_map(Some(fields.len()))?;
                fields
                    .iter()
                    .try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
            Self::Texts(texts) => texts.serialize(out),
        }
    }
}

impl From<Amount> for DecimalJson {
    fn from(amount: Amount) -> Self {
        Self::Number(amount.to_string())
    }
}

impl From<u64> for DecimalJson {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for DecimalJson {
    fn from(count: u32) -> Self {
        Self::Count(u64::from(count))
    }
}

impl From<bool> for DecimalJson {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for DecimalJson {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for DecimalJson {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Self>> From<Option<T>> for DecimalJson {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// An amount in another unit, exactly: the number of times `unit` picodollars fit.
pub(super) fn in_units(amount: Amount, unit: u64) -> DecimalJson {
    let (mut rest, sign) = (
        amount.picos().unsigned_abs(),
        if amount.is_negative() { "-" } else { "" },
    );
    let mut digits = format!("{sign}{}", rest / unit);
    rest %= unit;
    if rest > 0 {
        digits.push('.');
    }
    // Units are products of 2 and 5, so this terminates.
    while rest > 0 {
        let tenfold = u128::from(rest) * 10;
        digits.push_str(&(tenfold / u128::from(unit)).to_string());
        rest = u64::try_from(tenfold % u128::from(unit)).unwrap_or_default();
    }
    DecimalJson::Number(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_every_digit() {
        let amount = Amount::from_usd_str("9007199.254740993001").unwrap();
        let document = DecimalJson::object([
            ("a", amount.into()),
            (
                "b",
                DecimalJson::List(vec![DecimalJson::Null, "x\"y".into()]),
            ),
        ])
        .document();
        assert_eq!(document, r#"{"a":9007199.254740993001,"b":[null,"x\"y"]}"#);
        for (usd, unit, digits) in [
            ("5.00", 2_000_000, "2500000"),
            ("0.000348", 2_000_000, "174"),
            ("0.000000000001", 2_000_000, "0.0000005"),
            ("-1.5", 10_000_000_000, "-150"),
            ("0.000348", 10_000_000_000, "0.0348"),
        ] {
            assert_eq!(
                in_units(Amount::from_usd_str(usd).unwrap(), unit),
                DecimalJson::Number(digits.to_owned()),
                "{usd}"
            );
        }
    }
}

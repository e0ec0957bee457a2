//! Types of members: how each is read from what somebody typed, with words about what to write instead, how it is written, and how the
//! OpenAPI document describes it.

use std::borrow::Cow;
use std::str::FromStr;

use farebox_ledger::{
    Amount, AutoTopUpOff, CapInterval, CapMaker, CustomerId, CustomerStatus, Gross, KeyId,
    KeyStatus, ReversalKind, Timestamp,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::{dates, values};

/// Types that are one text: what each holds, its schema, and how it is read.
macro_rules! texts {
    ($($(#[$said:meta])* $name:ident($held:ty): $schema:tt, $read:expr;)*) => {$(
        $(#[$said])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub $held);

        impl From<$name> for $held {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                $read(text).map(Self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(input)?;
                text.parse().map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

texts! {
    /// USD; what is read is paid, and more than zero.
    #[derive(Copy)]
    Usd(Amount): { "type": "string", "pattern": "^[0-9]+([.][0-9]+)?$" }, values::payment;
    /// USD with a sign.
    #[derive(Copy)]
    SignedUsd(Amount): { "type": "string", "pattern": "^[+-]?[0-9]+([.][0-9]+)?$" }, values::correction;
    /// An amount in a payment's own currency.
    #[derive(Copy)]
    PaidAmount(Gross): { "type": "string", "pattern": "^[0-9]+([.][0-9]+)?$" }, values::gross;
    /// An instant, or the first one of a day.
    #[derive(Copy)]
    Instant(Timestamp): { "type": "string" }, dates::instant;
    /// When something ends: at an instant, or at the end of a day.
    #[derive(Copy)]
    Expiry(Timestamp): { "type": "string" }, dates::expiry;
    /// What was paid in.
    Currency(String): { "type": "string" }, values::currency;
    /// One line of text.
    OneLine(String): { "type": "string" }, values::one_line;
    /// A customer's id.
    #[derive(Copy)]
    CustomerName(CustomerId): { "type": "string", "pattern": "^c_[0-9a-z]{10}$" }, values::customer_id;
    /// A key's id.
    #[derive(Copy)]
    KeyName(KeyId): { "type": "string" }, values::key_id;
}

/// A whole number above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Count(#[schemars(range(min = 1))] pub u32);

impl From<Count> for u32 {
    fn from(count: Count) -> Self {
        count.0
    }
}

/// What is one of a few words: as it is written in JSON.
pub trait Worded: Serialize + Copy + 'static {
    /// All of them.
    const ALL: &'static [Self];
}

/// One of a few words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Word<W>(pub W);

macro_rules! worded {
    ($($of:ident: $($one:ident),+;)*) => {$(
        impl Worded for $of {
            const ALL: &'static [Self] = &[$(Self::$one),+];
        }
    )*};
}

worded! {
    AutoTopUpOff: Failures, Dispute;
    CapInterval: Day, Week, Month, Total;
    CapMaker: Seller, Owner;
    CustomerStatus: Active, Suspended, Closed;
    KeyStatus: Active, Blocked, Expired, Revoked;
    ReversalKind: Refund, Dispute, DisputeWon;
}

impl<W: Worded> FromStr for Word<W> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = W::ALL.iter().find(|one| json!(one) == text);
        let wanted = || format!("write {}", one_of(&json!(W::ALL)));
        found.map(|one| Self(*one)).ok_or_else(wanted)
    }
}

/// `a, b or c`, of a list of words.
#[must_use]
pub fn one_of(words: &Value) -> String {
    let words = words.as_array().into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => String::new(),
    }
}

impl<'de, W: Worded> Deserialize<'de> for Word<W> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(input)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl<W: Worded> JsonSchema for Word<W> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": W::ALL })
    }
}

//! Types of members: how each is read from what somebody typed, with words about what to write instead, how it is written, and how the
//! OpenAPI document describes it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use farebox_ledger::{
    Amount, AutoTopUpOff, CapInterval, CapMaker, CustomerId, CustomerStatus, Grant, GrantKind,
    GrantStatus, Gross, KeyId, KeyStatus, PlanAfter, ReservationId, ReversalKind, Scope,
    SubscriptionStatus, Timestamp, TokenRole, search,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::dates;

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
    Usd(Amount): { "type": "string", "pattern": "^[0-9]+([.][0-9]+)?$" }, read_payment;
    /// USD with a sign.
    #[derive(Copy)]
    SignedUsd(Amount): { "type": "string", "pattern": "^[+-]?[0-9]+([.][0-9]+)?$" }, read_correction;
    /// An amount in a payment's own currency.
    #[derive(Copy)]
    PaidAmount(Gross): { "type": "string", "pattern": "^[0-9]+([.][0-9]+)?$" }, read_gross;
    /// An instant, or the first one of a day.
    #[derive(Copy)]
    Instant(Timestamp): { "type": "string" }, dates::instant;
    /// When something ends: at an instant, or at the end of a day.
    #[derive(Copy)]
    Expiry(Timestamp): { "type": "string" }, dates::expiry;
    /// What was paid in.
    Currency(String): { "type": "string" }, read_currency;
    /// One line of text.
    OneLine(String): { "type": "string" }, read_line;
    /// A customer's id.
    #[derive(Copy)]
    CustomerName(CustomerId): { "type": "string", "pattern": "^c_[0-9a-z]{10}$" }, customer_id;
    /// A reservation's id.
    #[derive(Copy)]
    ReservationName(ReservationId): { "type": "string" }, reservation_id;
    /// A key's id.
    #[derive(Copy)]
    KeyName(KeyId): { "type": "string" }, key_id;
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

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = text.parse().ok().filter(|count| *count > 0);
        let wanted = || "write a whole number above 0".to_owned();
        count.map(Self).ok_or_else(wanted)
    }
}

/// A grant's place in the order of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Priority(#[schemars(range(min = 0, max = Grant::LAST_PRIORITY))] pub u8);

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = text
            .parse()
            .ok()
            .filter(|place| *place <= Grant::LAST_PRIORITY);
        let wanted = || {
            format!(
                "write a whole number between 0 and {}",
                Grant::LAST_PRIORITY
            )
        };
        place.map(Self).ok_or_else(wanted)
    }
}

impl<'de> Deserialize<'de> for Priority {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(input)?;
        number.to_string().parse().map_err(D::Error::custom)
    }
}

/// Pairs of names and values: in JSON an object.
pub(crate) fn pairs<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Vec<(String, String)>, D::Error> {
    let pairs = Option::<BTreeMap<String, String>>::deserialize(input)?;
    Ok(pairs.into_iter().flatten().collect())
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
    GrantKind: Promotional, Paid;
    GrantStatus: Pending, Active, Exhausted, Expired, Voided;
    KeyStatus: Active, Blocked, Expired, Revoked;
    PlanAfter: Balance, Stop;
    ReversalKind: Refund, Dispute, DisputeWon;
    SubscriptionStatus: Active, Lapsed, Paused, Ended;
    TokenRole: Read, Sell, Manage;
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

// --- how texts are read ---

/// A key's id. Of a secret that was pasted instead, the id in it: a refusal would print the secret.
pub fn key_id(text: &str) -> Result<KeyId, String> {
    search::key_id(text).map_err(|error| error.to_string())
}

/// A customer's id.
pub fn customer_id(text: &str) -> Result<CustomerId, String> {
    text.parse::<CustomerId>()
        .map_err(|error| error.to_string())
}

fn reservation_id(text: &str) -> Result<ReservationId, String> {
    text.parse::<ReservationId>()
        .map_err(|error| error.to_string())
}

/// A key's id, or a customer's.
pub fn scope(text: &str) -> Result<Scope, String> {
    if text.starts_with("c_") {
        customer_id(text).map(Scope::Customer)
    } else {
        key_id(text).map(Scope::Key)
    }
}

/// A slug that is not empty.
pub fn slug(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("write slugs with commas between them".to_owned())
    } else {
        Ok(text.trim().to_owned())
    }
}

/// A label that is not empty.
pub fn label(text: &str) -> Result<OneLine, String> {
    if text.trim().is_empty() {
        Err("the label is empty; write who has this key".to_owned())
    } else {
        text.parse()
    }
}

/// How a refusal of a text with control characters begins.
pub const ONE_LINE: &str = "write one line, without control characters";

/// A text without line ends and other control characters, which no table shows.
fn read_line(text: &str) -> Result<String, String> {
    match text.chars().find(|character| character.is_control()) {
        None => Ok(text.to_owned()),
        Some(control) => {
            let code = u32::from(control);
            Err(format!("{ONE_LINE}; this has U+{code:04X}"))
        }
    }
}

/// An amount that is paid; nothing is no payment.
fn read_payment(text: &str) -> Result<Amount, String> {
    match Amount::parse_payment(text) {
        Ok(Amount::ZERO) => Err("type more than zero, like 12.50".to_owned()),
        read => read.map_err(|error| error.to_string()),
    }
}

/// A correction: an amount with a sign; without a sign it is a credit.
fn read_correction(text: &str) -> Result<Amount, String> {
    let amount = Amount::parse_adjustment(text).map_err(|error| error.to_string())?;
    if amount == Amount::ZERO {
        Err("a correction of zero changes nothing".to_owned())
    } else {
        Ok(amount)
    }
}

/// An amount in a payment's currency.
fn read_gross(text: &str) -> Result<Gross, String> {
    Gross::parse(text).map_err(|error| error.to_string())
}

/// What was paid in.
fn read_currency(text: &str) -> Result<String, String> {
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        Ok(text.to_owned())
    } else {
        Err("write three capital letters, like EUR".to_owned())
    }
}

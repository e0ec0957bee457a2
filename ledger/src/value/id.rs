//! Names of things: keys, customers, operations and instants.
//!
//! All are plain numbers in the store and text outside. Ids are chosen by callers ([`OperationId::new`] takes clock and
//! randomness), so that operations can be repeated and tests are deterministic.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// Crockford's base 32, lower case: no `i`, `l`, `o`, `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Defines a public id: 50 random bits, shown as a letter and ten characters.
macro_rules! public_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(i64);

        impl $name {
            /// Number of characters after the prefix.
            pub const CHARS: usize = 10;

            /// From any random number; only the low 50 bits count.
            #[must_use]
            pub const fn from_random(bits: u64) -> Self {
                Self((bits & ((1 << 50) - 1)).cast_signed())
            }

            /// The number the store keeps. Always in `0..2^50`.
            #[must_use]
            pub const fn to_i64(self) -> i64 {
                self.0
            }

            /// The inverse of [`Self::to_i64`]; `None` when out of range.
            #[must_use]
            pub const fn from_i64(number: i64) -> Option<Self> {
                if number >= 0 && number < (1 << 50) {
                    Some(Self(number))
                } else {
                    None
                }
            }

            /// The ten characters without the prefix.
            #[must_use]
            pub fn chars(self) -> String {
                encode(u128::from(self.0.cast_unsigned()), Self::CHARS)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!($prefix, "{}"), self.chars())
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            /// Takes the ten characters with or without the prefix, in either case.
            fn from_str(text: &str) -> Result<Self, IdError> {
                let digits = text.strip_prefix($prefix).unwrap_or(text);
                let number = decode(digits, Self::CHARS).ok_or_else(|| {
                    IdError(format!(
                        concat!("{:?} is not a ", $what, " id; they look like ", $prefix, "7f3q9d2xw1"),
                        text
                    ))
                })?;
                u64::try_from(number)
                    .map(Self::from_random)
                    .map_err(|_| IdError(format!(concat!("{:?} is not a ", $what, " id"), text)))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                String::deserialize(input)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}

public_id! {
    /// The public id of a key: 50 random bits, shown as `k_` and ten characters. It is also the key's row id, and part of its secret.
    KeyId, "k_", "key"
}

public_id! {
    /// The public id of a customer: 50 random bits, shown as `c_` and ten characters. It is also the customer's row id. A customer that
    /// was made for a key has that key's ten characters.
    CustomerId, "c_", "customer"
}

public_id! {
    /// The public id of a token of the admin API: 50 random bits, shown as `t_` and ten characters. It is also the token's row id.
    TokenId, "t_", "token"
}

public_id! {
    /// The public id of a lot of vouchers: 50 random bits, shown as `l_` and ten characters. It is also the lot's row id.
    LotId, "l_", "lot"
}

public_id! {
    /// The public id of a reservation: 50 random bits, shown as `r_` and ten characters. It is also the reservation's row id.
    ReservationId, "r_", "reservation"
}

public_id! {
    /// The public id of a grant: 50 random bits, shown as `g_` and ten characters. It is also the grant's row id.
    GrantId, "g_", "grant"
}

public_id! {
    /// The public id of a subscription to a plan: 50 random bits, shown as `s_` and ten characters. It is also the subscription's row id.
    SubscriptionId, "s_", "subscription"
}

/// The first 64 bits of a hash: what ids are made of that follow from something.
pub(crate) fn number_of(hash: Sha256) -> u64 {
    let digest: [u8; 32] = hash.finalize().into();
    let mut bits = [0; 8];
    bits.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(bits)
}

impl GrantId {
    /// The id of a grant that follows from an operation: the same for every repetition.
    pub(crate) fn derived(operation: OperationId, number: u64) -> Self {
        Self::from_random(number_of(
            Sha256::new_with_prefix(b"farebox grant")
                .chain_update(operation.to_bytes())
                .chain_update(number.to_be_bytes()),
        ))
    }
}

impl SubscriptionId {
    /// The id of a subscription that follows from an operation: the same for every repetition.
    pub(crate) fn derived(operation: OperationId) -> Self {
        Self(GrantId::derived(operation, u64::MAX).0)
    }
}

impl CustomerId {
    /// The id with a key's ten characters.
    #[must_use]
    pub const fn made_for(key: KeyId) -> Self {
        Self(key.0)
    }

    /// The key with the same ten characters, which need not exist.
    #[must_use]
    pub const fn first_key(self) -> KeyId {
        KeyId(self.0)
    }
}

/// A key alone, or a customer with all of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// One key.
    Key(KeyId),
    /// A customer, whatever its keys.
    Customer(CustomerId),
}

impl From<KeyId> for Scope {
    fn from(key: KeyId) -> Self {
        Self::Key(key)
    }
}

impl From<CustomerId> for Scope {
    fn from(customer: CustomerId) -> Self {
        Self::Customer(customer)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => key.fmt(out),
            Self::Customer(customer) => customer.fmt(out),
        }
    }
}

impl FromStr for Scope {
    type Err = IdError;

    /// A customer's id begins with `c_`; everything else is read as a key's.
    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.starts_with("c_") {
            text.parse().map(Self::Customer)
        } else {
            text.parse().map(Self::Key)
        }
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

/// The id of one ledger operation, chosen by its caller: 48 bits of milliseconds, then 80 random bits, so ids sort by time. A
/// request's id is the id of its hold and of the charge that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId([u8; 16]);

impl OperationId {
    const CHARS: usize = 26;

    /// A fresh id from the caller's clock and randomness (only the low 80 bits of `random` count).
    #[must_use]
    pub fn new(now: Timestamp, random: u128) -> Self {
        let time = u128::from(now.millis().max(0).cast_unsigned() & ((1 << 48) - 1));
        Self((time << 80 | random & ((1 << 80) - 1)).to_be_bytes())
    }

    /// As stored: 16 bytes, big-endian, so that byte order is time order.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// As stored, without a copy.
    pub(crate) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Another id of the same instant.
    pub(crate) const fn twin(self, random: u128) -> Self {
        let time = u128::from_be_bytes(self.0) >> 80;
        Self((time << 80 | random & ((1 << 80) - 1)).to_be_bytes())
    }

    /// The id of what follows from this operation: the same for every repetition, and dated as this one, because ids sort by time.
    pub(crate) fn derived(self, of: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::new_with_prefix(of)
            .chain_update(self.to_bytes())
            .finalize()
            .into();
        let mut random = [0; 16];
        random.copy_from_slice(&digest[..16]);
        self.twin(u128::from_be_bytes(random))
    }

    /// The inverse of [`OperationId::to_bytes`].
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&encode(u128::from_be_bytes(self.0), Self::CHARS))
    }
}

impl FromStr for OperationId {
    type Err = IdError;

    /// Parses the 26 characters, with or without a leading `req_`, `op_` or `evt_`.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = text
            .strip_prefix("req_")
            .or_else(|| text.strip_prefix("op_"))
            .or_else(|| text.strip_prefix("evt_"))
            .unwrap_or(text);
        let number = decode(digits, Self::CHARS);
        number
            .map(|number| Self(number.to_be_bytes()))
            .ok_or_else(|| IdError(format!("{text:?} is not a request or operation id")))
    }
}

impl Serialize for OperationId {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

/// A text that is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdError(String);

/// An instant: milliseconds since 1970-01-01 UTC, from the caller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// After everything that is dated: the last instant that is written with four digits of a year.
    pub const NEVER: Self = Self(253_402_300_799_999);

    /// From milliseconds since 1970.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// The first instant of an hour since 1970.
    #[must_use]
    pub const fn of_hour(hour: i64) -> Self {
        Self(hour.saturating_mul(3_600_000))
    }

    /// Whole hours since 1970; the unit of usage rollups.
    #[must_use]
    pub const fn hour(self) -> i64 {
        self.0.div_euclid(3_600_000)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(out, "{instant:.3}"),
            Err(_) => write!(out, "{} ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let read = String::deserialize(input)?.parse::<jiff::Timestamp>();
        read.map(|instant| Self(instant.as_millisecond()))
            .map_err(serde::de::Error::custom)
    }
}

fn encode(mut number: u128, chars: usize) -> String {
    let mut text = vec![b'0'; chars];
    for place in text.iter_mut().rev() {
        *place = usize::try_from(number & 31)
            .ok()
            .and_then(|digit| ALPHABET.get(digit))
            .copied()
            .unwrap_or(b'0');
        number >>= 5;
    }
    String::from_utf8(text).unwrap_or_default()
}

fn decode(text: &str, chars: usize) -> Option<u128> {
    if text.len() != chars {
        return None;
    }
    let mut number: u128 = 0;
    for byte in text.bytes() {
        let digit = ALPHABET
            .iter()
            .position(|known| *known == byte.to_ascii_lowercase())?;
        number = number.checked_mul(32)?.checked_add(digit as u128)?;
    }
    Some(number)
}

//! Values in columns: how this crate's types are read from either database, and written to it.
//!
//! Each store brings a [`RowColumns`] over its own rows, and selects columns in the order in which they are read, because looking each
//! one up by name is most of the cost of a read. A value that does not fit its type is an error of the read, never a guess.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use crate::rule::answer::AnswerId;
use crate::rule::auto_top_up::AutoTopUp;
use crate::rule::defaults::StandingDefaults;
use crate::rule::payment::WaitingReversal;
use crate::rule::watch::BalanceTold;
use crate::{
    Amount, Caps, CustomerId, CustomerStatus, EventKind, GrantId, GrantKind, GrantStatus, Gross,
    KeyId, KeyStatus, LotId, MetadataPairs, MoneyPart, OperationId, PaidPeriods, PersonalData,
    PersonalHash, PlanTerms, ReservationId, SecretHash, Served, ServedRegion, ServedTier,
    StatementMonth, SubscriptionId, Timestamp, TokenId, TokenRole, Usage, UsageKind, UsageRow,
    UtcDay, WindowId, WindowPlace,
};

/// The cause of an error in another library.
pub(crate) type BoxedCause = Box<dyn Error + Send + Sync>;

/// A row whose content this program would not write.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    /// The column has another type.
    #[error("column {at} cannot be read: {source}")]
    Column { at: usize, source: BoxedCause },
    /// The text is not what it should be.
    #[error("a stored {what} cannot be read: {source}")]
    Text {
        what: &'static str,
        source: BoxedCause,
    },
    /// No such value exists, or not together with the others of the row.
    #[error("a stored {0} cannot be read")]
    Value(&'static str),
}

/// What a decoder returns.
pub(crate) type Decoded<T> = Result<T, Malformed>;

pub(crate) fn present<T>(value: Option<T>, what: &'static str) -> Decoded<T> {
    value.ok_or(Malformed::Value(what))
}

/// A row's columns, taken in the order in which they were selected.
pub(crate) trait RowColumns: Sized {
    /// The next column, a number.
    fn maybe_number(&mut self) -> Decoded<Option<i64>>;
    /// The next column, a text.
    fn maybe_str(&mut self) -> Decoded<Option<&str>>;
    /// The next column, bytes.
    fn maybe_bytes(&mut self) -> Decoded<Option<&[u8]>>;

    /// The next column, or as many as the type has.
    fn read<T: Stored>(&mut self) -> Decoded<T> {
        T::read(self)
    }

    fn number(&mut self) -> Decoded<i64> {
        self.read()
    }

    fn str(&mut self) -> Decoded<&str> {
        present(self.maybe_str()?, "text")
    }

    /// The next column, JSON, if there is any.
    fn maybe_json<T: serde::de::DeserializeOwned>(
        &mut self,
        what: &'static str,
    ) -> Decoded<Option<T>> {
        let json = self.maybe_str()?.map(serde_json::from_str);
        json.transpose().map_err(|error| Malformed::Text {
            what,
            source: error.into(),
        })
    }

    /// The next column, a code; `of` has its meaning.
    fn code<T>(&mut self, what: &'static str, of: fn(i64) -> Option<T>) -> Decoded<T> {
        present(of(self.number()?), what)
    }

    /// The counts that every bill hashes, of an entry or a rollup.
    fn usage(&mut self) -> Decoded<Usage> {
        let mut usage = Usage::default();
        for kind in UsageKind::FIRST {
            usage[kind] = self.read()?;
        }
        Ok(usage)
    }

    fn rollup(&mut self) -> Decoded<UsageRow> {
        let mut row = UsageRow {
            requests: self.read()?,
            usage: self.usage()?,
            charge: self.read()?,
            loss: self.read()?,
            exposure: self.read()?,
            cost: self.read()?,
            ..UsageRow::default()
        };
        for kind in UsageKind::LATER {
            row.usage[kind] = self.read()?;
        }
        row.told = self.read()?;
        Ok(row)
    }

    /// What a row of a rollup was served as.
    fn served(&mut self) -> Decoded<Served> {
        Ok(Served {
            tier: present(ServedTier::of(self.str()?), "tier")?,
            place: present(ServedRegion::of(self.str()?), "place")?,
            context_band: self.read()?,
            account: self.read()?,
        })
    }
}

/// A value on its way to a column; `None` is NULL.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnValue<'row> {
    Number(Option<i64>),
    Text(Option<Cow<'row, str>>),
    Bytes(Option<&'row [u8]>),
}

impl ColumnValue<'_> {
    /// Whether it is a text with U+0000, which PostgreSQL cannot store and no parameter can carry.
    pub(crate) fn has_nul(&self) -> bool {
        match self {
            Self::Text(text) => text.as_ref().is_some_and(|text| text.contains('\0')),
            Self::Number(_) | Self::Bytes(_) => false,
        }
    }
}

/// A type that stands in one column, or in several beside each other.
pub(crate) trait Stored: Sized {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self>;
    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>);

    /// Its columns' values.
    fn values(&self) -> Vec<ColumnValue<'_>> {
        let mut values = Vec::new();
        self.write(&mut values);
        values
    }
}

/// A type that stands in one column, which may be NULL.
pub(crate) trait StoredAlone: Sized {
    /// What it is called when it cannot be read.
    const WHAT: &'static str;
    const NULL: ColumnValue<'static>;

    fn maybe(columns: &mut impl RowColumns) -> Decoded<Option<Self>>;
    fn value(&self) -> ColumnValue<'_>;
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        Ok((columns.read()?, columns.read()?))
    }

    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
        self.0.write(values);
        self.1.write(values);
    }
}

impl<A: Stored, B: Stored, C: Stored> Stored for (A, B, C) {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        Ok((columns.read()?, columns.read()?, columns.read()?))
    }

    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
        self.0.write(values);
        self.1.write(values);
        self.2.write(values);
    }
}

impl<T: StoredAlone> Stored for Option<T> {
    #[inline]
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        T::maybe(columns)
    }

    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
        values.push(self.as_ref().map_or(T::NULL, T::value));
    }
}

/// Both are there, or neither.
impl<A: StoredAlone, B: StoredAlone> Stored for Option<(A, B)> {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        match (A::maybe(columns)?, B::maybe(columns)?) {
            (Some(first), Some(second)) => Ok(Some((first, second))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(Malformed::Value(B::WHAT)),
            (None, Some(_)) => Err(Malformed::Value(A::WHAT)),
        }
    }

    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
        let (first, second) = self.as_ref().map(|(a, b)| (a, b)).unzip();
        values.push(first.map_or(A::NULL, A::value));
        values.push(second.map_or(B::NULL, B::value));
    }
}

/// How types that stand alone are read and written: what each is called when it cannot be read, its value of what the column has, and
/// what the column has of it.
macro_rules! stored {
    ($($kind:ident $maybe:ident {
        $($type:ty, $what:literal, |$found:ident| $of:expr, |$own:ident| $to:expr;)+
    })+) => {$($(
        impl StoredAlone for $type {
            const WHAT: &'static str = $what;
            const NULL: ColumnValue<'static> = ColumnValue::$kind(None);

            #[inline]
            fn maybe(columns: &mut impl RowColumns) -> Decoded<Option<Self>> {
                match columns.$maybe()? {
                    Some($found) => present($of, $what).map(Some),
                    None => Ok(None),
                }
            }

            fn value(&self) -> ColumnValue<'_> {
                let $own = self;
                ColumnValue::$kind(Some($to))
            }
        }

        impl Stored for $type {
            #[inline]
            fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
                present(Self::maybe(columns)?, $what)
            }

            fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
                values.push(self.value());
            }
        }
    )+)+};
}

/// Types that stand in a column as JSON, which such plain values can always be written as.
macro_rules! json {
    ($($type:ty, $what:literal;)+) => {$(
        impl StoredAlone for $type {
            const WHAT: &'static str = $what;
            const NULL: ColumnValue<'static> = ColumnValue::Text(None);

            fn maybe(columns: &mut impl RowColumns) -> Decoded<Option<Self>> {
                columns.maybe_json($what)
            }

            fn value(&self) -> ColumnValue<'_> {
                let text = serde_json::to_string(self).unwrap_or_default();
                ColumnValue::Text(Some(Cow::Owned(text)))
            }
        }

        impl Stored for $type {
            fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
                present(Self::maybe(columns)?, $what)
            }

            fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
                values.push(self.value());
            }
        }
    )+};
}

json! {
    Vec<String>, "list of models";
    Box<AutoTopUp>, "auto top-up";
    PersonalData, "personal data";
    WindowPlace, "place of a window";
    Box<PaidPeriods>, "periods that were paid";
    Box<PlanTerms>, "terms of a plan";
    Box<StandingDefaults>, "set of defaults";
    Box<MetadataPairs>, "metadata";
}

/// The same of lists, which are mostly empty: NULL then, so that an empty one is none of ours.
macro_rules! json_lists {
    ($($type:ty, $what:literal;)+) => {$(
        impl StoredAlone for $type {
            const WHAT: &'static str = $what;
            const NULL: ColumnValue<'static> = ColumnValue::Text(None);

            fn maybe(columns: &mut impl RowColumns) -> Decoded<Option<Self>> {
                let stored: Option<Self> = columns.maybe_json($what)?;
                match stored {
                    Some(list) if list.is_empty() => Err(Malformed::Value($what)),
                    stored => Ok(stored),
                }
            }

            fn value(&self) -> ColumnValue<'_> {
                let text = || serde_json::to_string(self).unwrap_or_default();
                let text = (!self.is_empty()).then(text);
                ColumnValue::Text(text.map(Cow::Owned))
            }
        }

        impl Stored for $type {
            fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
                Ok(Self::maybe(columns)?.unwrap_or_default())
            }

            fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
                values.push(self.value());
            }
        }
    )+};
}

json_lists! {
    Caps, "list of caps";
    Vec<WaitingReversal>, "list of what went back";
    Vec<MoneyPart>, "list of parts";
}

/// The meaning of a published code never changes.
const fn role_code(role: TokenRole) -> i64 {
    match role {
        TokenRole::Read => 1,
        TokenRole::Sell => 2,
        TokenRole::Manage => 3,
    }
}

const fn key_status_code(status: KeyStatus) -> i64 {
    match status {
        // Expired follows from the clock and is never stored.
        KeyStatus::Active | KeyStatus::Expired => 1,
        KeyStatus::Blocked => 2,
        KeyStatus::Revoked => 3,
    }
}

pub(crate) const fn customer_status_code(status: CustomerStatus) -> i64 {
    match status {
        CustomerStatus::Active => 1,
        CustomerStatus::Suspended => 2,
        CustomerStatus::Closed => 3,
    }
}

/// The code of a value of a list that only ever grows at its end: its place, from 1.
fn code_in<T: PartialEq>(value: T, all: &[T]) -> i64 {
    let before = all.iter().take_while(|one| **one != value).count();
    i64::try_from(before).unwrap_or(i64::MAX).saturating_add(1)
}

/// The value with such a code.
fn of_code<T: Copy>(code: i64, all: &[T]) -> Option<T> {
    let place = usize::try_from(code.checked_sub(1)?).ok()?;
    all.get(place).copied()
}

/// The value with this code.
fn coded<T: Copy>(code: i64, all: &[T], code_of: fn(T) -> i64) -> Option<T> {
    all.iter().copied().find(|value| code_of(*value) == code)
}

stored! {
    Number maybe_number {
        i64, "number", |number| Some(number), |own| *own;
        u8, "number", |number| Self::try_from(number).ok(), |own| i64::from(*own);
        u16, "number", |number| Self::try_from(number).ok(), |own| i64::from(*own);
        u32, "number", |number| Self::try_from(number).ok(), |own| i64::from(*own);
        // Counts are bounded long before this could saturate.
        u64, "number", |number| Self::try_from(number).ok(), |own| i64::try_from(*own).unwrap_or(i64::MAX);
        bool, "number", |number| Some(number != 0), |own| i64::from(*own);
        Amount, "number", |picos| Some(Self::from_picos(picos)), |own| own.picos();
        Gross, "amount of a payment", |parts| Self::from_parts(parts), |own| own.parts();
        Timestamp, "number", |millis| Some(Self::from_millis(millis)), |own| own.millis();
        TokenRole, "role", |code| coded(code, &Self::ALL, role_code), |own| role_code(*own);
        KeyStatus, "status", |code| coded(code, &[Self::Active, Self::Blocked, Self::Revoked], key_status_code), |own| key_status_code(*own);
        CustomerStatus, "status", |code| coded(code, &[Self::Active, Self::Suspended, Self::Closed], customer_status_code), |own| customer_status_code(*own);
        BalanceTold, "warning", |code| Self::of(code), |own| own.code();
        UtcDay, "number", |number| Some(Self(number)), |own| own.number();
        StatementMonth, "month", |day| Some(Self::of(UtcDay(day).begin())), |own| own.first().number();
        KeyId, "key's id", |number| Self::from_i64(number), |own| own.to_i64();
        CustomerId, "customer's id", |number| Self::from_i64(number), |own| own.to_i64();
        TokenId, "token's id", |number| Self::from_i64(number), |own| own.to_i64();
        ReservationId, "reservation's id", |number| Self::from_i64(number), |own| own.to_i64();
        GrantId, "grant's id", |number| Self::from_i64(number), |own| own.to_i64();
        SubscriptionId, "subscription's id", |number| Self::from_i64(number), |own| own.to_i64();
        WindowId, "window's id", |number| Self::from_i64(number), |own| own.to_i64();
        GrantKind, "kind of grant", |code| of_code(code, &Self::ALL), |own| code_in(*own, &Self::ALL);
        GrantStatus, "status of a grant", |code| of_code(code, &Self::ALL), |own| code_in(*own, &Self::ALL);
        LotId, "lot's id", |number| Self::from_i64(number), |own| own.to_i64();
    }
    Text maybe_str {
        EventKind, "kind of event", |name| Self::named(name), |own| own.as_str().into();
        String, "text", |text| Some(text.to_owned()), |own| own.into();
        Arc<str>, "text", |text| Some(text.into()), |own| Cow::Borrowed(&**own);
    }
    Bytes maybe_bytes {
        [u8; 32], "hash", |bytes| bytes.try_into().ok(), |own| own;
        AnswerId, "hash", |bytes| bytes.try_into().ok().map(Self), |own| &own.0;
        SecretHash, "hash", |bytes| bytes.try_into().ok().map(Self), |own| &own.0;
        PersonalHash, "hash", |bytes| bytes.try_into().ok().map(Self), |own| &own.0;
        OperationId, "operation's id", |bytes| bytes.try_into().ok().map(Self::from_bytes), |own| own.as_bytes();
    }
}

//! All described tables.

use super::columns::{ColumnValue, Decoded, Malformed, RowColumns, Stored, StoredAlone as _};
use super::description::{Described, DescribedRow, TableColumn, columns, table, tables, whole};
use super::owners::{ExternalIdRow, ListedCustomer};
use super::rows::TableRows;
use crate::book::head::Hash;
use crate::book::house_act::{ChainedHouseAct, HouseBook};
use crate::rule::answer::{AnswerId, KeptAnswer};
use crate::rule::defaults::{DefaultsRow, StandingDefaults};
use crate::rule::link::SignInLink;
use crate::rule::payment::{PaymentStatus, Registers, WaitingReversal};
use crate::rule::voucher::Voucher;
use crate::value::reference;
use crate::{
    Amount, ApiAnswer, CustomerId, Event, EventKind, FilesAct, GrantKind, GrantRecord, Gross,
    HouseAct, HouseSubject, KeyId, LedgerError, Lot, LotId, OperationId, OwnCost, PaidPeriods,
    PaidSum, Payment, PlanTerms, PlanWindow, PublishedSlug, Reservation, ReservationId, RunSum,
    SecretHash, Session, StatementMonth, Subscription, Timestamp, Token, TokenDay, TokenId,
    TokenRole, UtcDay,
};

tables! {
    sessions: Session;
    links: SignInLink;
    /// Those with particulars, by their folded references.
    payments: Payment;
    tokens: Token;
    /// Of those days from which the bounds of today are reckoned.
    token_days: TokenDay;
    reservations: Reservation;
    grants: GrantRecord;
    subscriptions: Subscription;
    plan_windows: PlanWindow;
    /// Kept for repetitions.
    answers: KeptAnswer;
    lots: Lot;
    /// By the hashes of their codes.
    vouchers: Voucher;
    defaults: DefaultsRow;
    /// What they are on is written before.
    house_acts: ChainedHouseAct;
    /// Configurations that came into force.
    files_acts: FilesAct;
    @ read only
    external_ids: ExternalIdRow;
}

whole! { Token, Lot, Reservation, GrantRecord, Subscription, ListedCustomer }

table! { "sessions" of Session, by [u8; 32] = "token", |session| session.token.0, in order "token";
    token: SecretHash = "token";
    key: KeyId = "key";
    at: Timestamp = "at";
    expires: Timestamp = "expires";
}

table! { "links" of SignInLink, by [u8; 32] = "token", |link| link.token.0, in order "token";
    token: SecretHash = "token";
    key: KeyId = "key";
    expires: Timestamp = "expires";
}

table! { "payments" of Payment, by String = "folded", |payment| reference::folded(&payment.reference), in order "folded";
    reference: String = "reference" [changes];
    customer: CustomerId = "customer" [changes];
    paid: PaidSum;
    credit: Amount = "credit" [changes];
    registers: Registers;
    waiting: Vec<WaitingReversal> = "waiting" [changes];
    plan: Option<Box<PaidPeriods>> = "plan" [changes];
    status: PaymentStatus = "status" "why" [changes];
    actor: String = "actor" [changes];
    token: Option<TokenId> = "token" [changes];
    at: Timestamp = "at" [changes];
}

/// Those whose money came, of which something is not booked.
pub(crate) const UNAPPLIED: &str = "WHERE status = 2 OR waiting IS NOT NULL ORDER BY at, folded";

columns! { PaidSum {
    currency: String = "currency" [changes];
    gross: Gross = "gross" [changes];
    tax: Gross = "tax" [changes];
} }

columns! { Registers {
    refunded: Gross = "refunded" [changes];
    withdrawn: Gross = "withdrawn" [changes];
    reinstated: Gross = "reinstated" [changes];
} }

/// A code, and why it is unapplied.
impl Stored for PaymentStatus {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        match (columns.number()?, columns.read()?) {
            (1, None) => Ok(Self::Booked),
            (2, Some(why)) => Ok(Self::Unapplied { why }),
            (3, None) => Ok(Self::Returned),
            _ => Err(Malformed::Value("status of a payment")),
        }
    }

    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
        let (code, why) = match self {
            Self::Booked => (1, None),
            Self::Unapplied { why } => (2, Some(why)),
            Self::Returned => (3, None),
        };
        values.extend([
            ColumnValue::Number(Some(code)),
            why.map_or(String::NULL, String::value),
        ]);
    }
}

table! { "tokens" of Token, by TokenId = "id", |token| token.id, in order "created_at, id";
    id: TokenId = "id";
    label: String = "label";
    role: TokenRole = "role";
    daily: Option<Amount> = "daily";
    expires_at: Option<Timestamp> = "expires_at";
    is_revoked: bool = "revoked" [changes];
    secret: SecretHash = "secret";
    created_at: Timestamp = "created_at";
    created_by: String = "created_by";
}

table! { "token_days" of TokenDay, by (TokenId, UtcDay) = "token" "day", |day| (day.token, day.day), in order "token, day", may be there;
    token: TokenId = "token";
    day: UtcDay = "day";
    booked: Amount = "booked" [changes];
    payments: i64 = "payments" [changes];
    customers: i64 = "customers" [changes];
    keys: i64 = "keys" [changes];
    reissues: i64 = "reissues" [changes];
    reversed: Amount = "reversed" [changes];
    reversed_payments: i64 = "reversed_payments" [changes];
    unapplied: i64 = "unapplied" [changes];
}

table! { "reservations" of Reservation, by ReservationId = "id", |kept| kept.id, in order "id";
    id: ReservationId = "id";
    token: TokenId = "token";
    customer: Option<CustomerId> = "customer";
    credit: Amount = "credit";
    until: Timestamp = "until" [changes];
    at: Timestamp = "at";
}

// One that is kept no longer may be removed by anybody.
table! { "answers" of KeptAnswer, by AnswerId = "id", |kept| kept.id, in order "id", may be there;
    id: AnswerId = "id";
    token: Option<TokenId> = "token";
    at: Timestamp = "at" [changes];
    operation: Option<OperationId> = "operation" [changes];
    body: SecretHash = "body" [changes];
    answer: ApiAnswer;
}

columns! { ApiAnswer {
    status: u16 = "status" [changes];
    body: String = "answer" [changes];
} }

table! { "lots" of Lot, by LotId = "id", |lot| lot.id, in order "created_at, id";
    id: LotId = "id";
    count: u32 = "count";
    amount: Amount = "amount";
    expires_at: Option<Timestamp> = "expires_at";
    once_per_customer: bool = "once";
    kind: GrantKind = "kind";
    plan: Option<Box<PlanTerms>> = "plan";
    is_void: bool = "void" [changes];
    redeemed: u32 = "redeemed" [changes];
    created_at: Timestamp = "created_at";
    created_by: String = "created_by";
    made_by: OperationId = "operation";
}

table! { "vouchers" of Voucher, by [u8; 32] = "code", |voucher| voucher.code.0, in order "lot, number";
    code: SecretHash = "code";
    lot: LotId = "lot";
    number: u32 = "number";
    redeemed: Option<(CustomerId, OperationId)> = "customer" "operation" [changes];
}

// Two gateways that set the first ones at once meet at their acts.
table! { "defaults" of DefaultsRow, by i64 = "id", |row| row.id, in order "id", may be there;
    id: i64 = "id";
    state: Box<StandingDefaults> = "state" [changes];
}

table! { "house_acts" of ChainedHouseAct, by OperationId = "operation", |chained| chained.act.operation, in order "seq";
    act: HouseAct;
    state: String = "state";
    hash: Hash = "hash";
}

/// The newest of them.
pub(crate) const NEWEST_HOUSE_ACT: &str = "WHERE seq = (SELECT max(seq) FROM house_acts)";

columns! { HouseAct {
    seq: i64 = "seq";
    at: Timestamp = "at";
    actor: String = "actor";
    act: String = "act";
    of: HouseSubject = "token" "lot";
    operation: OperationId = "operation";
    details: String = "details";
} }

table! { "files_acts" of FilesAct, by OperationId = "operation", |act| act.operation, in order "operation", may be there;
    operation: OperationId = "operation";
    at: Timestamp = "at";
    actor: String = "actor";
    details: String = "details";
}

/// A token, or a lot, or else the defaults.
impl Stored for HouseSubject {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        match (columns.read()?, columns.read()?) {
            (Some(token), None) => Ok(Self::Token(token)),
            (None, Some(lot)) => Ok(Self::Lot(lot)),
            (None, None) => Ok(Self::Defaults),
            (Some(_), Some(_)) => Err(Malformed::Value("subject of an act")),
        }
    }

    fn write<'row>(&'row self, values: &mut Vec<ColumnValue<'row>>) {
        values.extend(match self {
            Self::Token(token) => [token.value(), LotId::NULL],
            Self::Lot(lot) => [TokenId::NULL, lot.value()],
            Self::Defaults => [TokenId::NULL, LotId::NULL],
        });
    }
}

// Not in the list: it is too large to be copied whole. What a gateway does not know whether it has told, it tells under the same id.
table! { "events" of Event, by OperationId = "id", |event| event.id, in order "position", may be there;
    id: OperationId = "id";
    kind: EventKind = "kind";
    at: Timestamp = "at";
    customer: Option<CustomerId> = "customer";
    seq: Option<i64> = "seq";
    data: String = "data";
}

columns! { OwnCost {
    hour: i64 = "hour";
    target: String = "target";
    cost: Amount = "cost";
} }

columns! { RunSum {
    month: StatementMonth = "month";
    run: String = "run";
    requests: u64 = "requests";
    charge: Amount = "charge";
} }

columns! { PublishedSlug {
    slug: String = "slug";
    since: Timestamp = "published_at";
} }

/// A row of a table in the list.
pub(crate) trait ListedRow: DescribedRow {
    fn of(set: &TableSet) -> &TableRows<Self>;
    fn of_mut(set: &mut TableSet) -> &mut TableRows<Self>;
}

/// Does something with every table.
pub(crate) trait TableVisitor<'set> {
    type Error;

    fn table<T: DescribedRow>(&mut self, rows: &'set TableRows<T>) -> Result<(), Self::Error>;
}

/// Reads whole tables.
pub(crate) trait TableReader {
    type Error;

    async fn all<T: DescribedRow>(&mut self) -> Result<Vec<T>, Self::Error>;
}

/// A row of a table that callers read whole.
pub trait WholeRow: Sized {
    /// Its table.
    const TABLE: WholeTable;

    /// The rows, if they are of this table.
    ///
    /// # Errors
    /// When they are of another one, which a store never answers with.
    fn of(rows: WholeRows) -> Result<Vec<Self>, LedgerError>;
}

impl HouseBook {
    /// Everything that acts of the house tell of, and these acts.
    pub(crate) async fn read<R: TableReader>(reader: &mut R) -> Result<Self, R::Error> {
        Ok(Self {
            tokens: reader.all().await?,
            token_days: reader.all().await?,
            lots: reader.all().await?,
            vouchers: reader.all().await?,
            defaults: reader.all().await?,
            acts: reader.all().await?,
        })
    }
}

impl TableSet {
    /// A row that is there.
    pub(crate) fn get<T: ListedRow>(&self, key: &T::Key) -> Option<&T> {
        T::of(self).get(key)
    }

    /// All rows that are there and known.
    pub(crate) fn iter<T: ListedRow>(&self) -> impl Iterator<Item = &T> {
        T::of(self).iter()
    }

    /// Stores a row as it is.
    pub(crate) fn put<T: ListedRow>(&mut self, row: T) {
        (self.known, self.changed) = (true, true);
        T::of_mut(self).put(row);
    }

    /// Removes a row.
    pub(crate) fn take<T: ListedRow>(&mut self, key: &T::Key) -> Option<T> {
        let gone = T::of_mut(self).take(key);
        self.changed |= gone.is_some();
        gone
    }

    /// Removes the rows of which this is true.
    pub(crate) fn remove<T: ListedRow>(&mut self, which: impl Fn(&T) -> bool) {
        let gone: Vec<T::Key> = self.iter().filter(|row| which(row)).map(T::key).collect();
        for key in gone {
            self.take::<T>(&key);
        }
    }

    /// A row as the database has it.
    pub(crate) fn fetched<T: ListedRow>(&mut self, row: T) {
        self.known = true;
        T::of_mut(self).fetched(row);
    }

    pub(crate) const fn is_changed(&self) -> bool {
        self.changed
    }

    /// Forgets all rows.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.known) {
            self.changed = false;
            self.forget();
        }
    }
}

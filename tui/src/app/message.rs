//! The requests from the state to the store, and the store's messages to the state. Nothing else passes between them.

use std::path::PathBuf;

use farebox_ledger::{
    Amount, AuditRecord, Customer, CustomerId, FilesAct, HouseAct, JournalEntry, Key, KeyId,
    MarginQuery, OpenHold, OperationId, PublishedSlug, Scope, SlugHour, SlugUse, Timestamp, Totals,
    VerifyReport,
};

use super::customers::{CustomersPage, CustomersRequest};
use super::detail::{BalanceCheck, DetailData};
use super::form::ConsoleExport;
use super::keys::{KeysPage, KeysRequest, MatchCount};
use super::modal::{ActOutcome, ApplyError, Hidden, Hit, ListedOperation, OutcomeLookup};
use super::money::sums::{MarginView, SumsPage};
use super::party_filter::KeyFilter;
use crate::admin::{LiveEvent, OneRequest, StatusReport};
use crate::plan::Pending;
use farebox_selling::waiting::WaitingThing;

/// Work to be done outside the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    LoadKeys(KeysRequest),
    CountKeys {
        generation: u64,
        filter: KeyFilter,
    },
    /// Read these again, with what they spent in 24 hours.
    Visible(Vec<KeyId>),
    LoadCustomers(CustomersRequest),
    /// Read these again.
    VisibleCustomers(Vec<CustomerId>),
    /// The keys that are folded into a customer's line.
    LoadKeysOf(CustomerId),
    LoadDetail {
        of: Scope,
        debounce: bool,
    },
    MoreEntries {
        of: Scope,
        before: i64,
    },
    /// Sum up the entries of a customer, for its page or that of one of its keys.
    CheckBooks {
        of: Scope,
        customer: CustomerId,
    },
    LoadHolds,
    LoadAudit {
        before: Option<i64>,
    },
    LoadSlugs,
    /// Sums for one of the two tabs that show some.
    LoadMargins {
        view: MarginView,
        query: MarginQuery,
    },
    /// What waits for a person.
    LoadWaiting,
    /// What every slug did in the hours of this range.
    LoadSpend {
        from: Timestamp,
        to: Timestamp,
    },
    Verify,
    LoadRequest(OperationId),
    /// Look for something by any of its names. It may be a secret.
    Find(Hidden),
    /// What these keys are called.
    LoadLabels(Vec<KeyId>),
    Apply(Box<Pending>),
    /// Query now whether an unknown operation happened.
    Resolve(Box<Pending>),
    /// The outcome was seen: remove it from disk.
    Forget(OperationId),
    Export {
        what: ConsoleExport,
        filter: KeyFilter,
        json: bool,
        path: PathBuf,
    },
    WriteSecret {
        path: PathBuf,
        text: Hidden,
    },
    Copy(Hidden),
    /// Have the terminal report the mouse, or leave it to the terminal.
    Mouse(bool),
    ReadStatus,
}

/// A result from outside.
#[derive(Debug)]
pub(crate) enum Message {
    Keys(KeysPage),
    KeysFailed {
        generation: u64,
        error: String,
    },
    Count {
        generation: u64,
        count: MatchCount,
    },
    Visible(Vec<(Key, Option<Amount>)>),
    Customers(CustomersPage),
    VisibleCustomers(Vec<Customer>),
    KeysOf {
        customer: CustomerId,
        keys: Result<Vec<Key>, String>,
    },
    Detail(Box<DetailData>),
    DetailFailed {
        of: Scope,
        error: String,
    },
    Entries {
        of: Scope,
        before: i64,
        entries: Vec<JournalEntry>,
        end: bool,
    },
    Checked {
        of: Scope,
        check: BalanceCheck,
    },
    Holds(Result<Vec<OpenHold>, String>),
    Audit {
        before: Option<i64>,
        records: Result<Vec<AuditRecord>, String>,
        end: bool,
    },
    Slugs {
        used: Vec<SlugUse>,
        published: Vec<PublishedSlug>,
    },
    Margins {
        view: MarginView,
        query: MarginQuery,
        answer: Result<SumsPage, String>,
    },
    Spend(Result<Vec<SlugHour>, String>),
    Waiting(Result<Vec<WaitingThing>, String>),
    Verified {
        report: Result<VerifyReport, String>,
        took_ms: u64,
        at: Timestamp,
    },
    Request {
        request: OperationId,
        entry: Result<Option<Box<JournalEntry>>, String>,
        known: Option<Box<OneRequest>>,
    },
    Found(Result<Hit, String>),
    FilesActs(Vec<FilesAct>),
    HouseActs(Vec<HouseAct>),
    Labels(Vec<(KeyId, String)>),
    Applied {
        operation: OperationId,
        result: Result<ActOutcome, ApplyError>,
    },
    Resolved {
        operation: OperationId,
        tries: u32,
        found: OutcomeLookup,
        outcome: ActOutcome,
    },
    Operations(Vec<ListedOperation>),
    Exported(Result<String, String>),
    SecretWritten(Result<String, String>),
    Copied,
    Status(Result<Box<StatusReport>, String>),
    Live(Vec<LiveEvent>),
    /// The running totals, read twice a second; `Err` if the ledger cannot be read.
    Pulse {
        now: Timestamp,
        totals: Result<Totals, String>,
    },
}

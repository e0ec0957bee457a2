//! The requests from the state to the store, and the store's messages to the state. Nothing else passes between them.

use std::path::PathBuf;

use farebox_ledger::{
    Amount, AuditRecord, Entry, FilesAct, Key, KeyId, MarginQuery, OpenHold, OperationId,
    PublishedSlug, SlugUse, Timestamp, Totals, VerifyReport,
};

use super::detail::{Check, DetailData};
use super::form::Export;
use super::keys::{Count, KeyFilter, KeysPage, KeysRequest};
use super::margins::{Answer, View};
use super::modal::{ApplyError, Found, Hidden, Hit, Listed, Outcome};
use crate::admin::{LiveEvent, OneRequest, Status};
use crate::plan::Pending;

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
    LoadDetail {
        id: KeyId,
        debounce: bool,
    },
    MoreEntries {
        id: KeyId,
        before: i64,
    },
    CheckKey(KeyId),
    LoadHolds,
    LoadAudit {
        before: Option<i64>,
    },
    LoadSlugs,
    /// Sums for one of the two screens that show some.
    LoadMargins {
        view: View,
        query: MarginQuery,
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
        what: Export,
        filter: KeyFilter,
        json: bool,
        path: PathBuf,
    },
    WriteSecret {
        path: PathBuf,
        text: Hidden,
    },
    Copy(Hidden),
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
        count: Count,
    },
    Visible(Vec<(Key, Option<Amount>)>),
    Detail(Box<DetailData>),
    DetailFailed {
        id: KeyId,
        error: String,
    },
    Entries {
        id: KeyId,
        before: i64,
        entries: Vec<Entry>,
        end: bool,
    },
    Checked {
        id: KeyId,
        check: Check,
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
        view: View,
        query: MarginQuery,
        answer: Result<Answer, String>,
    },
    Verified {
        report: Result<VerifyReport, String>,
        took_ms: u64,
        at: Timestamp,
    },
    Request {
        request: OperationId,
        entry: Result<Option<Box<Entry>>, String>,
        known: Option<Box<OneRequest>>,
    },
    Found(Result<Hit, String>),
    FilesActs(Vec<FilesAct>),
    Labels(Vec<(KeyId, String)>),
    Applied {
        operation: OperationId,
        result: Result<Outcome, ApplyError>,
    },
    Resolved {
        operation: OperationId,
        tries: u32,
        found: Found,
        outcome: Option<Outcome>,
    },
    Operations(Vec<Listed>),
    Exported(Result<String, String>),
    SecretWritten(Result<String, String>),
    Copied,
    Status(Result<Box<Status>, String>),
    Live(Vec<LiveEvent>),
    /// The running totals, read twice a second; `Err` if the ledger cannot be read.
    Pulse {
        now: Timestamp,
        totals: Result<Totals, String>,
    },
}

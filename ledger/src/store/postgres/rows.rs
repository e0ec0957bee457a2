//! Rows: how this crate's types are read from PostgreSQL's columns.
//!
//! A value that does not fit its type is an error of the read, never a guess.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::trouble::{Trouble, words};
use crate::batch::tx::{StoredHold, StoredKey};
use crate::book::audit::Record;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::{AuditHead, Hash, Head};
use crate::rule::limit::Traffic;
use crate::store::stored;
use crate::{
    Account, Amount, AuditRecord, Bill, EndReason, Entry, Key, KeyId, KeySettings, LedgerError,
    OpenHold, OperationId, SecretHash, Session, Timestamp, Usage, UsageRow,
};

/// A row whose content this program would not write.
#[derive(Debug)]
pub(super) struct Malformed(pub(super) String);

impl From<Malformed> for Trouble {
    fn from(Malformed(why): Malformed) -> Self {
        Self::Failed(why)
    }
}

impl From<Malformed> for LedgerError {
    fn from(Malformed(why): Malformed) -> Self {
        Self::Unavailable(why)
    }
}

type Read<T> = Result<T, Malformed>;

fn malformed(what: &str) -> Malformed {
    Malformed(format!("a stored {what} cannot be read"))
}

/// A row's columns, taken in the order in which they were selected.
pub(super) struct Columns<'row> {
    row: &'row Row,
    next: usize,
}

impl<'row> Columns<'row> {
    pub(super) const fn of(row: &'row Row) -> Self {
        Self { row, next: 0 }
    }

    /// The next column.
    pub(super) fn take<T: FromSql<'row>>(&mut self) -> Read<T> {
        let at = self.next;
        self.next = at.saturating_add(1);
        self.row
            .try_get(at)
            .map_err(|error| Malformed(words(&error)))
    }

    pub(super) fn amount(&mut self) -> Read<Amount> {
        self.take().map(Amount::from_picos)
    }

    pub(super) fn at(&mut self) -> Read<Timestamp> {
        self.take().map(Timestamp::from_millis)
    }

    fn maybe_at(&mut self) -> Read<Option<Timestamp>> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_millis))
    }

    pub(super) fn key(&mut self) -> Read<KeyId> {
        KeyId::from_i64(self.take()?).ok_or_else(|| malformed("key's id"))
    }

    pub(super) fn operation(&mut self) -> Read<OperationId> {
        Ok(OperationId::from_bytes(self.bytes("operation's id")?))
    }

    fn maybe_operation(&mut self) -> Read<Option<OperationId>> {
        let bytes: Option<&[u8]> = self.take()?;
        bytes
            .map(|bytes| exact(bytes, "operation's id").map(OperationId::from_bytes))
            .transpose()
    }

    pub(super) fn hash(&mut self) -> Read<Hash> {
        self.bytes("hash")
    }

    pub(super) fn secret(&mut self) -> Read<SecretHash> {
        self.bytes("hash").map(SecretHash)
    }

    fn bytes<const N: usize>(&mut self, what: &str) -> Read<[u8; N]> {
        exact(self.take()?, what)
    }

    /// The next column, for a number stored in a wider type.
    pub(super) fn small<T: TryFrom<i64>>(&mut self) -> Read<T> {
        T::try_from(self.take()?).map_err(|_| malformed("number"))
    }

    fn maybe_small<T: TryFrom<i64>>(&mut self) -> Read<Option<T>> {
        self.take::<Option<i64>>()?
            .map(|number| T::try_from(number).map_err(|_| malformed("number")))
            .transpose()
    }

    /// The seven counts, of an entry or a rollup.
    pub(super) fn usage(&mut self) -> Read<Usage> {
        Ok(Usage {
            input: self.small()?,
            cache_read: self.small()?,
            cache_write: self.small()?,
            cache_write_1h: self.small()?,
            output: self.small()?,
            reasoning: self.small()?,
            images: self.small()?,
        })
    }

    /// The counts and amounts of a rollup's row: requests, the seven counts, charge, loss, exposure, cost.
    pub(super) fn rollup(&mut self) -> Read<UsageRow> {
        Ok(UsageRow {
            requests: self.small()?,
            usage: self.usage()?,
            charge: self.amount()?,
            loss: self.amount()?,
            exposure: self.amount()?,
            cost: self.amount()?,
            ..UsageRow::default()
        })
    }
}

fn exact<const N: usize>(bytes: &[u8], what: &str) -> Read<[u8; N]> {
    bytes.try_into().map_err(|_| malformed(what))
}

/// Selects what [`stored_key`] takes, in its order; conditions may follow.
pub(super) const SELECT_KEY: &str = "SELECT k.id, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, \
     k.old_secret, k.old_until, a.credit, a.spent, a.held, k.created_at, k.created_by, a.last_at, k.audit_seq, k.audit_last, \
     k.audit_hash, a.seq, a.last, a.hash, a.opened, a.running, \
     a.paced_to FROM keys k JOIN accounts a ON a.id = k.id";

/// A key, and its traffic at all gateways.
pub(super) fn stored_key(row: &Row) -> Read<(StoredKey, Traffic)> {
    let mut columns = Columns::of(row);
    let key = Key {
        id: columns.key()?,
        settings: KeySettings {
            label: columns.take()?,
            models: columns.take::<Option<&str>>()?.map(models).transpose()?,
            expires_at: columns.maybe_at()?,
            rate: columns.maybe_small()?,
            concurrency: columns.maybe_small()?,
        },
        stored_status: stored::status_of(columns.take()?).ok_or_else(|| malformed("status"))?,
        secret: columns.secret()?,
        old_secret: {
            let old: Option<&[u8]> = columns.take()?;
            let old = old
                .map(|bytes| exact(bytes, "hash").map(SecretHash))
                .transpose()?;
            let until = columns.maybe_at()?;
            if old.is_some() != until.is_some() {
                return Err(malformed("old secret"));
            }
            old.zip(until)
        },
        account: Account {
            credit: columns.amount()?,
            spent: columns.amount()?,
            held: columns.amount()?,
        },
        created_at: columns.at()?,
        created_by: columns.take()?,
        last_entry_at: columns.maybe_at()?,
    };
    let last_at = key.last_entry_at;
    let audit = AuditHead {
        seq: columns.take()?,
        last: columns.take()?,
        hash: columns.hash()?,
    };
    let head = Head {
        seq: columns.take()?,
        last: columns.take()?,
        hash: columns.hash()?,
        last_at,
    };
    let traffic = Traffic {
        opened: columns.take()?,
        running: columns.take()?,
        paced_to: columns.take()?,
    };
    Ok((StoredKey { key, audit, head }, traffic))
}

fn models(json: &str) -> Read<Vec<String>> {
    serde_json::from_str(json).map_err(|_| malformed("list of models"))
}

/// Selects what [`stored_entry`] takes, in its order; a condition may follow.
pub(super) const SELECT_ENTRY: &str = "SELECT e.position, e.seq, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, \
     e.actor, e.reference, e.reason, e.refunds, e.format, e.hash, e.slug, coalesce(e.family, e.target, e.end_reason, e.answer_id, \
     e.lines, e.facts, coalesce(e.status, e.first_byte_ms, e.total_ms, e.hold, e.loss, e.evidence, e.input, e.cache_read, \
     e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images)::text) IS NOT NULL, \
     e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, \
     e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e";

pub(super) fn stored_entry(row: &Row) -> Read<ChainedEntry> {
    let mut columns = Columns::of(row);
    let mut entry = Entry {
        position: columns.take()?,
        seq: columns.take()?,
        key: columns.key()?,
        operation: columns.operation()?,
        kind: stored::kind_of(columns.take()?).ok_or_else(|| malformed("kind of entry"))?,
        amount: columns.amount()?,
        balance_after: columns.amount()?,
        at: columns.at()?,
        actor: columns.take()?,
        reference: columns.take()?,
        reason: columns.take()?,
        refunds: columns.maybe_operation()?,
        bill: None,
    };
    let (format, hash) = (columns.take()?, columns.hash()?);
    let (slug, billed): (Option<String>, bool) = (columns.take()?, columns.take()?);
    if slug.is_none() && billed {
        return Err(malformed("entry"));
    }
    entry.bill = slug.map(|slug| bill(&mut columns, slug)).transpose()?;
    Ok(ChainedEntry {
        entry,
        format,
        hash,
    })
}

fn bill(columns: &mut Columns<'_>, slug: String) -> Read<Bill> {
    let bill = Bill {
        slug,
        family: columns.take()?,
        target: columns.take()?,
        status: columns.small()?,
        end_reason: EndReason::from(columns.take::<&str>()?),
        first_byte_ms: columns.maybe_small()?,
        total_ms: columns.small()?,
        answer_id: columns.take()?,
        hold: columns.amount()?,
        loss: columns.amount()?,
        evidence: columns
            .take::<Option<i64>>()?
            .map(|code| stored::evidence_of(code).ok_or_else(|| malformed("evidence")))
            .transpose()?,
        usage: columns.usage()?,
        lines: stored::lines_of(columns.take()?).map_err(|_| malformed("bill"))?,
        ..Bill::default()
    };
    match columns.take::<Option<&str>>()? {
        None => Ok(bill),
        Some(json) => {
            let pairs = serde_json::from_str(json).map_err(|_| malformed("list of facts"))?;
            bill.with_pairs(pairs)
                .ok_or_else(|| malformed("list of facts"))
        }
    }
}

/// Selects what [`stored_hold`] takes; a condition may follow.
pub(super) const SELECT_HOLD: &str =
    "SELECT request, key, amount, used, slug, family, at, epoch, opened, checkpoint FROM holds";

pub(super) fn stored_hold(row: &Row) -> Read<StoredHold> {
    let mut columns = Columns::of(row);
    let open = OpenHold {
        request: columns.operation()?,
        key: columns.key()?,
        amount: columns.amount()?,
        used: columns.amount()?,
        slug: columns.take()?,
        family: columns.take()?,
        at: columns.at()?,
        epoch: columns.take()?,
    };
    let opened = columns.amount()?;
    let checkpoint = columns.take::<Option<&str>>()?;
    let checkpoint = checkpoint
        .map(|json| serde_json::from_str(json).map_err(|_| malformed("checkpoint")))
        .transpose()?;
    Ok(StoredHold {
        open,
        opened,
        checkpoint,
    })
}

/// Selects what [`stored_act`] takes; a condition may follow.
pub(super) const SELECT_ACT: &str =
    "SELECT position, at, actor, act, key, operation, details, seq, state, format, hash FROM audit";

pub(super) fn stored_act(row: &Row) -> Read<ChainedAct> {
    let mut columns = Columns::of(row);
    let record = AuditRecord {
        position: columns.take()?,
        at: columns.at()?,
        actor: columns.take()?,
        act: columns.take()?,
        key: columns.key()?,
        operation: columns.operation()?,
        details: columns.take()?,
    };
    let record = Record {
        record,
        seq: columns.take()?,
        state: columns.take()?,
    };
    Ok(ChainedAct {
        record,
        format: columns.take()?,
        hash: columns.hash()?,
    })
}

/// Selects what [`session`] takes; a condition may follow.
pub(super) const SELECT_SESSION: &str = "SELECT token, key, at, expires FROM sessions";

pub(super) fn session(row: &Row) -> Read<Session> {
    let mut columns = Columns::of(row);
    Ok(Session {
        token: columns.secret()?,
        key: columns.key()?,
        at: columns.at()?,
        expires: columns.at()?,
    })
}

/// A count as it is stored; counts are bounded long before this could saturate.
pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

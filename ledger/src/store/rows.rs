//! The one decoder of rows: how this crate's types are read from the columns of either database.
//!
//! Each store brings a [`RowColumns`] over its own rows, and selects the columns listed here in this order, because looking each one up
//! by name is most of the cost of a read. A value that does not fit its type is an error of the read, never a guess.

use std::error::Error;

use super::stored;
use crate::book::audit::ActRecord;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::{AuditHead, EntryHead, Hash, StoredCustomer};
use crate::rule::hold::StoredHold;
use crate::rule::key::KeyRecord;
use crate::rule::watch::{BalanceTold, CustomerWatch};
use crate::{
    Account, Amount, AuditRecord, Bill, Caps, Customer, CustomerId, CustomerSettings, EndReason,
    FilesAct, JournalEntry, Key, KeyId, KeySettings, OpenHold, OperationId, OwnCost, PersonalData,
    PersonalHash, PublishedSlug, SecretHash, Served, ServedRegion, ServedTier, Session, Timestamp,
    TokenId, Totals, Usage, UsageRow, UtcDay,
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

/// A row's columns, taken in the order in which they were selected.
pub(crate) trait RowColumns {
    /// The next column, a number.
    fn maybe_number(&mut self) -> Decoded<Option<i64>>;
    /// The next column, a text.
    fn maybe_str(&mut self) -> Decoded<Option<&str>>;
    /// The next column, bytes.
    fn maybe_bytes(&mut self) -> Decoded<Option<&[u8]>>;

    fn number(&mut self) -> Decoded<i64> {
        present(self.maybe_number()?, "number")
    }

    /// The next column, for a number stored in a wider type.
    fn small<T: TryFrom<i64>>(&mut self) -> Decoded<T> {
        T::try_from(self.number()?).map_err(|_| Malformed::Value("number"))
    }

    fn maybe_small<T: TryFrom<i64>>(&mut self) -> Decoded<Option<T>> {
        self.maybe_number()?
            .map(|number| T::try_from(number).map_err(|_| Malformed::Value("number")))
            .transpose()
    }

    fn str(&mut self) -> Decoded<&str> {
        present(self.maybe_str()?, "text")
    }

    fn text(&mut self) -> Decoded<String> {
        self.str().map(str::to_owned)
    }

    fn maybe_text(&mut self) -> Decoded<Option<String>> {
        Ok(self.maybe_str()?.map(str::to_owned))
    }

    fn amount(&mut self) -> Decoded<Amount> {
        self.number().map(Amount::from_picos)
    }

    fn at(&mut self) -> Decoded<Timestamp> {
        self.number().map(Timestamp::from_millis)
    }

    fn maybe_at(&mut self) -> Decoded<Option<Timestamp>> {
        Ok(self.maybe_number()?.map(Timestamp::from_millis))
    }

    fn key(&mut self) -> Decoded<KeyId> {
        KeyId::from_i64(self.number()?).ok_or(Malformed::Value("key's id"))
    }

    fn customer(&mut self) -> Decoded<CustomerId> {
        CustomerId::from_i64(self.number()?).ok_or(Malformed::Value("customer's id"))
    }

    /// The next column: the token of the admin API that made the row, if one did.
    fn maybe_token(&mut self) -> Decoded<Option<TokenId>> {
        let number = self.maybe_number()?;
        number
            .map(|number| present(TokenId::from_i64(number), "token's id"))
            .transpose()
    }

    /// The next two columns: a customer, and its key if there is one.
    fn customer_and_key(&mut self) -> Decoded<(CustomerId, Option<KeyId>)> {
        let customer = self.customer()?;
        let key = stored::key_of(customer, self.maybe_number()?);
        Ok((customer, present(key, "key's id")?))
    }

    fn operation(&mut self) -> Decoded<OperationId> {
        exact(self.maybe_bytes()?, "operation's id").map(OperationId::from_bytes)
    }

    fn maybe_operation(&mut self) -> Decoded<Option<OperationId>> {
        let bytes = self.maybe_bytes()?;
        bytes
            .map(|bytes| exact(Some(bytes), "operation's id").map(OperationId::from_bytes))
            .transpose()
    }

    fn hash(&mut self) -> Decoded<Hash> {
        exact(self.maybe_bytes()?, "hash")
    }

    fn secret(&mut self) -> Decoded<SecretHash> {
        self.hash().map(SecretHash)
    }

    fn maybe_secret(&mut self) -> Decoded<Option<SecretHash>> {
        let bytes = self.maybe_bytes()?;
        bytes
            .map(|bytes| exact(Some(bytes), "hash").map(SecretHash))
            .transpose()
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
        of(self.number()?).ok_or(Malformed::Value(what))
    }

    /// The counts that every bill hashes, of an entry or a rollup.
    fn usage(&mut self) -> Decoded<Usage> {
        Ok(Usage {
            input: self.small()?,
            cache_read: self.small()?,
            cache_write: self.small()?,
            cache_write_1h: self.small()?,
            output: self.small()?,
            reasoning: self.small()?,
            images: self.small()?,
            ..Usage::default()
        })
    }

    /// The [`rollup_columns`].
    fn rollup(&mut self) -> Decoded<UsageRow> {
        let mut row = UsageRow {
            requests: self.small()?,
            usage: self.usage()?,
            charge: self.amount()?,
            loss: self.amount()?,
            exposure: self.amount()?,
            cost: self.amount()?,
            ..UsageRow::default()
        };
        row.usage.cache_write_12h = self.small()?;
        row.usage.calls = self.small()?;
        Ok(row)
    }

    /// The [`served_columns`].
    fn served(&mut self) -> Decoded<Served> {
        Ok(Served {
            tier: present(ServedTier::of(self.str()?), "tier")?,
            place: present(ServedRegion::of(self.str()?), "place")?,
            context_band: self.small()?,
            account: self.text()?,
        })
    }
}

/// The counts and amounts of a rollup's row.
macro_rules! rollup_columns {
    () => {
        "requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, images, charge, loss, exposure, cost, \
         cache_write_12h, calls"
    };
}
pub(crate) use rollup_columns;

/// What a row of a rollup was served as.
macro_rules! served_columns {
    () => {
        "tier, place, context_band, account"
    };
}
pub(crate) use served_columns;

fn present<T>(value: Option<T>, what: &'static str) -> Decoded<T> {
    value.ok_or(Malformed::Value(what))
}

fn exact<const N: usize>(bytes: Option<&[u8]>, what: &'static str) -> Decoded<[u8; N]> {
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(Malformed::Value(what))
}

/// What [`key_record`] takes, of `keys k`.
macro_rules! key_columns {
    () => {
        "k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, \
         k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by"
    };
}
pub(crate) use key_columns;

pub(crate) fn key_record(columns: &mut impl RowColumns) -> Decoded<KeyRecord> {
    Ok(KeyRecord {
        id: columns.key()?,
        belongs_to: columns.customer()?,
        is_owner: columns.number()? != 0,
        made_by: columns
            .maybe_number()?
            .map(|number| present(KeyId::from_i64(number), "key's id"))
            .transpose()?,
        token: columns.maybe_token()?,
        settings: KeySettings {
            label: columns.text()?,
            models: columns.maybe_json("list of models")?,
            expires_at: columns.maybe_at()?,
            rate: columns.maybe_small()?,
            concurrency: columns.maybe_small()?,
        },
        stored_status: columns.code("status", stored::status_of)?,
        secret: columns.secret()?,
        old_secret: match (columns.maybe_secret()?, columns.maybe_at()?) {
            (Some(secret), Some(until)) => Some((secret, until)),
            (None, None) => None,
            _ => return Err(Malformed::Value("old secret")),
        },
        caps: caps(columns)?,
        used_at: columns.maybe_at()?,
        created_at: columns.at()?,
        created_by: columns.text()?,
    })
}

/// What [`stored_customer`] takes, of `accounts a`.
macro_rules! customer_columns {
    () => {
        "a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, \
         a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at, a.audit_seq, a.audit_last, a.audit_hash, a.seq, a.last, a.hash, \
         a.event_seq, a.last_top_up, a.told, a.opened"
    };
}
pub(crate) use customer_columns;

pub(crate) fn stored_customer(columns: &mut impl RowColumns) -> Decoded<StoredCustomer> {
    let customer = Customer {
        id: columns.customer()?,
        settings: CustomerSettings {
            label: columns.text()?,
            external_id: columns.maybe_text()?,
            price_list: columns.maybe_text()?,
            low_balance: columns.maybe_number()?.map(Amount::from_picos),
            rate: columns.maybe_small()?,
            concurrency: columns.maybe_small()?,
        },
        status: columns.code("status", stored::customer_status_of)?,
        account: Account {
            credit: columns.amount()?,
            spent: columns.amount()?,
            held: columns.amount()?,
        },
        claim: columns.amount()?,
        caps: caps(columns)?,
        auto_top_up: columns.maybe_json("auto top-up")?.map(Box::new),
        personal: columns.maybe_secret()?.map(|hash| PersonalHash(hash.0)),
        created_at: columns.at()?,
        created_by: columns.text()?,
        token: columns.maybe_token()?,
        last_entry_at: columns.maybe_at()?,
    };
    let last_at = customer.last_entry_at;
    Ok(StoredCustomer {
        customer,
        audit: AuditHead {
            seq: columns.number()?,
            last: columns.number()?,
            hash: columns.hash()?,
        },
        head: EntryHead {
            seq: columns.number()?,
            last: columns.number()?,
            hash: columns.hash()?,
            last_at,
        },
        watch: CustomerWatch {
            seq: columns.number()?,
            last_top_up: columns.amount()?,
            told: columns.code("warning", BalanceTold::of)?,
        },
        opened: columns.number()?,
    })
}

/// A key with its customer: the [`key_columns`], then the [`customer_columns`].
pub(crate) fn whole_key(columns: &mut impl RowColumns) -> Decoded<Key> {
    Ok(Key {
        own: key_record(columns)?,
        customer: stored_customer(columns)?.customer,
    })
}

/// A customer and the text of its personal data.
pub(crate) fn personal_data(columns: &mut impl RowColumns) -> Decoded<(CustomerId, PersonalData)> {
    let customer = columns.customer()?;
    let data = columns.maybe_json("personal data")?;
    Ok((customer, present(data, "personal data")?))
}

/// Without caps there is NULL, so that an empty list is none of ours.
fn caps(columns: &mut impl RowColumns) -> Decoded<Caps> {
    let stored: Option<Caps> = columns.maybe_json("list of caps")?;
    match stored {
        Some(caps) if caps.is_empty() => Err(Malformed::Value("list of caps")),
        stored => Ok(stored.unwrap_or_default()),
    }
}

/// What [`stored_entry`] takes, of `entries e`: with the column of its predecessor's position, that of its slug, and whether there
/// is anything of a bill.
macro_rules! entry_columns {
    ($prev:literal, $slug:literal, $billed:literal) => {
        concat!(
            "e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, \
             e.refunds, ",
            $prev,
            ", e.format, e.hash, ",
            $slug,
            ", ",
            $billed,
            ", e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, \
             e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts"
        )
    };
}
pub(crate) use entry_columns;

pub(crate) fn stored_entry(columns: &mut impl RowColumns) -> Decoded<ChainedEntry> {
    let (position, seq) = (columns.number()?, columns.number()?);
    let (customer, key) = columns.customer_and_key()?;
    let mut entry = JournalEntry {
        position,
        seq,
        customer,
        key,
        operation: columns.operation()?,
        kind: columns.code("kind of entry", stored::kind_of)?,
        amount: columns.amount()?,
        balance_after: columns.amount()?,
        at: columns.at()?,
        actor: columns.text()?,
        reference: columns.maybe_text()?,
        reason: columns.maybe_text()?,
        refunds: columns.maybe_operation()?,
        bill: None,
    };
    let (prev, format, hash) = (columns.number()?, columns.number()?, columns.hash()?);
    let (slug, billed) = (columns.maybe_text()?, columns.number()? != 0);
    entry.bill = match slug {
        Some(slug) => Some(bill(columns, slug)?),
        None if billed => return Err(Malformed::Value("bill without a slug")),
        None => None,
    };
    Ok(ChainedEntry {
        entry,
        prev,
        format,
        hash,
    })
}

fn bill(columns: &mut impl RowColumns, slug: String) -> Decoded<Bill> {
    let bill = Bill {
        slug,
        family: columns.text()?,
        target: columns.text()?,
        status: columns.small()?,
        end_reason: EndReason::from(columns.str()?),
        first_byte_ms: columns.maybe_small()?,
        total_ms: columns.small()?,
        answer_id: columns.maybe_text()?,
        hold: columns.amount()?,
        loss: columns.amount()?,
        evidence: columns
            .maybe_number()?
            .map(|code| present(stored::evidence_of(code), "evidence"))
            .transpose()?,
        usage: columns.usage()?,
        lines: stored::lines_of(columns.str()?).map_err(|error| Malformed::Text {
            what: "bill",
            source: error.into(),
        })?,
        ..Bill::default()
    };
    match columns.maybe_json("list of facts")? {
        None => Ok(bill),
        Some(pairs) => present(bill.with_pairs(pairs), "list of facts"),
    }
}

/// What [`stored_hold`] takes, of `holds h`.
macro_rules! hold_columns {
    () => {
        "h.request, h.key, h.opened, h.amount, h.used, h.slug, h.family, h.at, h.epoch, h.day, h.checkpoint, h.moves"
    };
}
pub(crate) use hold_columns;

pub(crate) fn stored_hold(columns: &mut impl RowColumns) -> Decoded<StoredHold> {
    let (request, key, opened) = (columns.operation()?, columns.key()?, columns.amount()?);
    let open = OpenHold {
        request,
        key,
        amount: columns.amount()?,
        used: columns.amount()?,
        slug: columns.text()?,
        family: columns.text()?,
        at: columns.at()?,
        epoch: columns.number()?,
    };
    Ok(StoredHold {
        open,
        opened,
        day: UtcDay(columns.number()?),
        checkpoint: columns.maybe_json("checkpoint")?,
        moves: columns.small()?,
    })
}

/// What [`stored_act`] takes, of `audit`, with the column of its predecessor's position.
macro_rules! act_columns {
    ($prev:literal) => {
        concat!(
            "position, customer, key, at, actor, act, operation, details, seq, state, ",
            $prev,
            ", format, hash"
        )
    };
}
pub(crate) use act_columns;

pub(crate) fn stored_act(columns: &mut impl RowColumns) -> Decoded<ChainedAct> {
    let position = columns.number()?;
    let (customer, key) = columns.customer_and_key()?;
    let record = AuditRecord {
        position,
        customer,
        key,
        at: columns.at()?,
        actor: columns.text()?,
        act: columns.text()?,
        operation: columns.operation()?,
        details: columns.text()?,
    };
    Ok(ChainedAct {
        record: ActRecord {
            record,
            seq: columns.number()?,
            state: columns.text()?,
        },
        prev: columns.number()?,
        format: columns.number()?,
        hash: columns.hash()?,
    })
}

/// What [`session`] takes, of `sessions`.
macro_rules! session_columns {
    () => {
        "token, key, at, expires"
    };
}
pub(crate) use session_columns;

pub(crate) fn session(columns: &mut impl RowColumns) -> Decoded<Session> {
    Ok(Session {
        token: columns.secret()?,
        key: columns.key()?,
        at: columns.at()?,
        expires: columns.at()?,
    })
}

/// A sign-in link: its token, key and expiry.
pub(crate) fn link(columns: &mut impl RowColumns) -> Decoded<(SecretHash, KeyId, Timestamp)> {
    Ok((columns.secret()?, columns.key()?, columns.at()?))
}

/// A slug, and when it was published.
pub(crate) fn published(columns: &mut impl RowColumns) -> Decoded<PublishedSlug> {
    Ok(PublishedSlug {
        slug: columns.text()?,
        since: columns.at()?,
    })
}

/// Hour, target and cost.
pub(crate) fn own_cost(columns: &mut impl RowColumns) -> Decoded<OwnCost> {
    Ok(OwnCost {
        hour: columns.number()?,
        target: columns.text()?,
        cost: columns.amount()?,
    })
}

/// Operation, instant, actor and details.
pub(crate) fn files_act(columns: &mut impl RowColumns) -> Decoded<FilesAct> {
    Ok(FilesAct {
        operation: columns.operation()?,
        at: columns.at()?,
        actor: columns.text()?,
        details: columns.text()?,
    })
}

/// Counts of keys, entries and holds, then the sums: credit, spent, held, loss, exposure, cost.
pub(crate) fn totals(columns: &mut impl RowColumns) -> Decoded<Totals> {
    Ok(Totals {
        keys: columns.small()?,
        entries: columns.small()?,
        holds: columns.small()?,
        credit: sum(columns)?,
        spent: sum(columns)?,
        held: sum(columns)?,
        loss: sum(columns)?,
        exposure: sum(columns)?,
        cost: sum(columns)?,
    })
}

/// A sum over all keys, stored as text because it may exceed 64 bits.
fn sum(columns: &mut impl RowColumns) -> Decoded<i128> {
    let text = columns.str()?;
    // Sums of ordinary ledgers fit 64 bits, which are read in a quarter of the time; every batch of a file reads four.
    let small = text.parse::<i64>().map(i128::from);
    small
        .or_else(|_| text.parse())
        .map_err(|error| Malformed::Text {
            what: "sum",
            source: error.into(),
        })
}

/// A count as it is stored; counts are bounded long before this could saturate.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A limit as a parameter.
pub(crate) fn rows_at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

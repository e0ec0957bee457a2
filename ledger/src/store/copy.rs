//! Copies a whole ledger into an empty one on the other kind of store: entry by entry, hashes unchanged.
//!
//! Only what follows from the entries (accounts, hourly sums, totals) is recomputed on the way; `verify` runs on both ends and
//! finds whatever does not follow. The source is locked against every writer for the whole copy; the target gets its name, or its
//! commit, only if it holds the same keys with the same chains. `sqlite::copy` and `postgres::copy` only read and write parts; this
//! file decides which, and in what order, and knows neither store.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use crate::batch::rows::Rows;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::{Hash, StoredCustomer};
use crate::rule::hold::StoredHold;
use crate::rule::key::KeyRecord;
use crate::rule::payment::PaymentAddressee;
use crate::table::list::TableSet;
use crate::value::reference;
use crate::{
    Account, Amount, CustomerId, DeliveryStep, Event, JournalEntry, LedgerError, OperationId,
    OwnCost, PersonalData, PublishedSlug, Taught, Timestamp, VerifyReport,
};

/// Rows per part: enough to be quick, and few enough for memory.
pub(crate) const ROWS: u32 = 1_000;

/// Added to the version of the schema when a ledger was moved. No program knows such a version, so none of any age serves it.
pub(crate) const MOVED: i32 = 1_000_000;

/// Why a moved ledger is not opened.
pub(crate) const MOVED_AWAY: &str = "was moved to another store by `farebox ledger copy`, which alone may be served; it can still be read";

/// The identity of a ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyIdentity {
    pub(crate) ledger: [u8; 16],
    pub(crate) generation: i64,
    pub(crate) made_at: Timestamp,
}

/// Rows that belong to no chain.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    pub(crate) holds: Vec<StoredHold>,
    pub(crate) slugs: Vec<PublishedSlug>,
    pub(crate) taught: Taught,
    pub(crate) own_costs: Vec<OwnCost>,
    pub(crate) personal: Vec<(CustomerId, PersonalData)>,
    pub(crate) addressees: Vec<(String, CustomerId, Option<PersonalData>)>,
    pub(crate) tables: TableSet,
    /// What is on its way to webhooks.
    pub(crate) deliveries: Vec<DeliveryStep>,
    /// What customers owe for payments that went back.
    pub(crate) claims: Vec<(CustomerId, Amount)>,
}

impl Rest {
    /// Adds everything to a target's rows, as new. No gateway of the target opened these holds: the first to start ends them.
    pub(crate) fn put(self, rows: &mut Rows) {
        for mut hold in self.holds {
            hold.open.epoch = 0;
            rows.put_hold(hold);
        }
        rows.changes.teach(&self.taught);
        for own in &self.own_costs {
            rows.own_cost(own);
        }
        rows.tables = self.tables;
        for (customer, claim) in self.claims {
            rows.set_claim(customer, claim);
        }
        rows.changes.deliveries = self.deliveries;
        for slug in &self.slugs {
            rows.changes.publish(&slug.slug, slug.since);
        }
        for (customer, data) in self.personal {
            rows.set_personal(customer, Some(data));
        }
        for (payment, customer, data) in self.addressees {
            let to = data.map_or(PaymentAddressee::Nobody, PaymentAddressee::Buyer);
            rows.address(&payment, customer, to);
        }
    }
}

/// A batch of rows in transit.
#[derive(Debug)]
pub(crate) enum CopyBatch {
    Customers(Vec<StoredCustomer>),
    Keys(Vec<KeyRecord>),
    Acts(Vec<ChainedAct>),
    /// With the references that these entries are the first to use.
    Entries(Vec<ChainedEntry>, Vec<(String, OperationId)>),
    Events(Vec<Event>),
    Rest(Box<Rest>),
}

/// Either side: its customers and its keys, [`ROWS`] at a time, in the order of their numbers.
pub(crate) trait Side {
    async fn customers(&mut self, after: i64) -> Result<Vec<StoredCustomer>, LedgerError>;
    async fn keys(&mut self, after: i64) -> Result<Vec<KeyRecord>, LedgerError>;
}

/// The source, which nobody can write to meanwhile.
pub(crate) trait SourceLedger: Side {
    async fn identity(&mut self) -> Result<CopyIdentity, LedgerError>;
    async fn verify(&mut self) -> Result<VerifyReport, LedgerError>;
    /// In the order of their positions.
    async fn acts(&mut self, after: i64) -> Result<Vec<ChainedAct>, LedgerError>;
    /// In the order of their positions.
    async fn entries(&mut self, after: i64) -> Result<Vec<ChainedEntry>, LedgerError>;
    /// In their order, after this one.
    async fn events(&mut self, after: Option<OperationId>) -> Result<Vec<Event>, LedgerError>;
    async fn rest(&mut self) -> Result<Rest, LedgerError>;
    /// Marks it as moved: it can be read, and is never served or written again.
    async fn retire(self) -> Result<(), LedgerError>;
}

pub(crate) trait TargetLedger: Side {
    async fn begin(&mut self, identity: CopyIdentity) -> Result<(), LedgerError>;
    async fn write(&mut self, part: CopyBatch) -> Result<(), LedgerError>;
    /// Makes it a usable ledger, and verifies it.
    async fn finish(self) -> Result<VerifyReport, LedgerError>;
}

/// Copies everything, and returns what `verify` says about the result.
// Customers come first and keys second, because each row names rows before it.
pub(crate) async fn copy<S: SourceLedger, T: TargetLedger>(
    mut source: S,
    mut target: T,
    progress: &mut impl FnMut(u64, u64),
) -> Result<VerifyReport, LedgerError> {
    let before = source.verify().await?;
    if let Some(fault) = before.faults.first() {
        return Err(LedgerError::unusable(format!(
            "the ledger is not sound and was not copied; `ledger verify` says: {fault}"
        )));
    }
    target.begin(source.identity().await?).await?;
    let mut after = -1;
    loop {
        let customers = source.customers(after).await?;
        let Some(last) = customers.last() else { break };
        after = last.customer.id.to_i64();
        target.write(CopyBatch::Customers(customers)).await?;
    }
    let mut after = -1;
    loop {
        let keys = source.keys(after).await?;
        let Some(last) = keys.last() else { break };
        after = last.id.to_i64();
        target.write(CopyBatch::Keys(keys)).await?;
    }
    // Acts before entries: the file's trigger requires a credit's reference to be registered before its act. Old ledgers can
    // contain twins, two entries whose references are equal by today's comparison; the second of them is never registered.
    let mut after = 0;
    loop {
        let acts = source.acts(after).await?;
        let Some(last) = acts.last() else { break };
        after = last.record.record.position;
        target.write(CopyBatch::Acts(acts)).await?;
    }
    entries(&mut source, &mut target, before.entries, progress).await?;
    let mut after = None;
    loop {
        let events = source.events(after).await?;
        let Some(last) = events.last() else { break };
        after = Some(last.id);
        target.write(CopyBatch::Events(events)).await?;
    }
    target
        .write(CopyBatch::Rest(Box::new(source.rest().await?)))
        .await?;
    if digest(&mut source).await? != digest(&mut target).await? {
        return Err(LedgerError::unavailable(
            "the copy has other customers, keys or chains; it was thrown away".to_owned(),
        ));
    }
    let report = target.finish().await?;
    // Last, so that whatever fails before leaves the source as it was.
    source.retire().await?;
    Ok(report)
}

async fn entries<S: SourceLedger, T: TargetLedger>(
    source: &mut S,
    target: &mut T,
    all: u64,
    progress: &mut impl FnMut(u64, u64),
) -> Result<(), LedgerError> {
    let (mut after, mut done) = (0, 0_u64);
    let mut taken: HashSet<String> = HashSet::new();
    loop {
        let entries = source.entries(after).await?;
        let Some(last) = entries.last() else {
            return Ok(());
        };
        after = last.entry.position;
        done = done.saturating_add(u64::try_from(entries.len()).unwrap_or_default());
        let mut names = Vec::new();
        for ChainedEntry { entry, .. } in &entries {
            // Of such twins, the first has the reference.
            let folded = entry
                .reference
                .as_deref()
                .map(reference::folded)
                .filter(|folded| !taken.contains(folded));
            if let Some(folded) = folded {
                taken.insert(folded.clone());
                names.push((folded, entry.operation));
            }
        }
        target.write(CopyBatch::Entries(entries, names)).await?;
        progress(done, all);
    }
}

/// Settings and money of customers, the ends of their chains, and their keys.
async fn digest(side: &mut impl Side) -> Result<Hash, LedgerError> {
    let (mut digest, mut after) = (Sha256::new(), -1);
    loop {
        let customers = side.customers(after).await?;
        let Some(last) = customers.last() else { break };
        after = last.customer.id.to_i64();
        for StoredCustomer {
            customer,
            head,
            audit,
            watch,
            opened,
        } in &customers
        {
            let Account {
                credit,
                spent,
                held,
            } = customer.account;
            for number in [
                customer.id.to_i64(),
                credit.picos(),
                spent.picos(),
                *opened,
                held.picos(),
                customer.claim.picos(),
                head.seq,
                audit.seq,
                watch.seq,
                watch.last_top_up.picos(),
            ] {
                digest.update(number.to_be_bytes());
            }
            digest.update(head.hash);
            digest.update(audit.hash);
            digest.update(crate::book::audit::state(customer, None));
        }
    }
    after = -1;
    loop {
        let keys = side.keys(after).await?;
        let Some(last) = keys.last() else {
            return Ok(digest.finalize().into());
        };
        after = last.id.to_i64();
        for key in &keys {
            digest.update(key.id.to_i64().to_be_bytes());
            digest.update(key.belongs_to.to_i64().to_be_bytes());
            digest.update(crate::book::audit::state_1(key));
        }
    }
}

/// The account after an entry, from the one before it; `None` if that is impossible.
pub(crate) fn replayed(before: Account, entry: &JournalEntry) -> Option<Account> {
    let mut after = before;
    if entry.kind.changes_credit() {
        after.credit = after.credit.checked_add(entry.amount)?;
    } else {
        after.spent = after.spent.checked_sub(entry.amount)?;
    }
    Some(after)
}

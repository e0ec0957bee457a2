//! The ledger in one SQLite file.
//!
//! One writer thread per process gathers operations into batches (`writer`, `batching`); other threads sync and checkpoint its log
//! (`upkeep`); readers have their own connections (`readers`). Several processes may have the file open: SQLite's locks order their
//! batches, and every batch decides on the newest rows: it fetches what an operation needs (`fetch`), applies it in memory and writes
//! the difference (`flush`). Cached keys for authentication (`remembered`) and the rows that a batch keeps for the next one are used
//! only while they equal the file. The schema repeats the rules of `account`, so that even a faulty
//! program cannot store an impossible account.

mod absent;
mod backup;
mod batch;
#[cfg(test)]
mod batch_tests;
#[cfg(test)]
mod bill_file_tests;
#[cfg(test)]
mod caps_tests;
mod copy;
mod defaults;
mod deliveries;
mod descriptors;
mod ends;
mod events;
mod fetch;
mod file_id;
mod files;
mod flush;
mod gate;
mod header;
#[cfg(test)]
mod header_tests;
mod index;
mod job;
mod key_cache;
#[cfg(test)]
mod key_cache_tests;
mod lessons;
mod lists;
mod location;
mod lock;
mod log_readers;
mod migrations;
mod paths;
mod readers;
mod reads;
mod reopen;
mod room;
#[cfg(test)]
mod room_tests;
mod rows;
mod state;
mod statements;
mod tables;
#[cfg(test)]
mod tests;
mod totals;
mod troubles;
mod upkeep;
mod verify;
mod visitor;
mod wall_clock;
mod worker;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use async_trait::async_trait;
use tokio::sync::watch;

pub(crate) use copy::{CopySource, CopyTarget};
pub use lock::ServeLock;
pub use paths::belongs_to_ledger;
pub use reopen::FilesCheck;

use crate::batch::operation::OperationClass;
use crate::book::anchor::Anchor;
use crate::book::margin;
use crate::store::Store;
use crate::store::bill_file::{Left, Unsettled};
use crate::store::trouble_record::{LedgerWork, TroubleRecord};
use crate::table::list::UNAPPLIED;
use crate::value::clock;
use crate::{
    Addressees, Amount, AuditRecord, Customer, CustomerBy, CustomerId, CustomerQuery, Durability,
    EntryQuery, FilesAct, Finish, GrantQuery, GrantRecord, HouseAct, JournalEntry, Key, KeyId,
    KeyQuery, Ledger, LedgerError, LedgerTrouble, MarginQuery, Margins, OpenHold, OpenMode,
    Operation, OperationId, Outcome, OwnCost, Payment, PersonalData, PublishedSlug, RunQuery,
    RunSum, Scope, SecretHash, SlugHour, SlugUse, Subscription, SubscriptionId, Taught, Timestamp,
    Token, TokenDay, Totals, UsageRow, UtcDay, VendorIds, VerifyReport, WholeRows, WholeTable,
    WriterStats,
};
use ends::EndedKeys;
use file_id::FileId;
use job::BatchWork;
use key_cache::KeyCache;
use location::Location;
use readers::Readers;
use wall_clock::WallClock;
use writer::WriterHandle;

/// How long the log may become before new holds are refused, unless it is set.
// The log is copied all the time and cut from `LOG_LOUD` on, so one of this size has a reader that lets nothing be copied. Lower, and a
// long read stops the sale; higher, and it may fill the disk, on which settlements go on.
const LOG_LIMIT: u64 = 1 << 30;

/// A ledger in one SQLite file.
#[derive(Debug)]
pub struct SqliteLedger {
    path: PathBuf,
    mode: OpenMode,
    durability: Durability,
    /// How long the log may become before new holds are refused.
    log_limit: Arc<AtomicU64>,
    /// Replaced when the path leads to a copy of the same ledger.
    opened: RwLock<Arc<Opened>>,
    /// A file in the ledger's place that turned out to be another ledger. This lock is held while the path is reopened.
    other: Mutex<Option<FileId>>,
    log_missing: AtomicU32,
    fatal: watch::Sender<Option<String>>,
    record: Arc<TroubleRecord>,
    /// Only in the gateway.
    wall_clock: Option<WallClock>,
    /// Only in the gateway.
    unsettled: Option<Unsettled>,
}

/// One opened file.
#[derive(Debug)]
struct Opened {
    location: Arc<Location>,
    readers: Readers,
    /// Only in the gateway.
    remembered: Option<Arc<KeyCache>>,
    ended: EndedKeys,
    writer: Option<WriterHandle>,
}

impl SqliteLedger {
    /// Opens a ledger file. Blocks for milliseconds.
    ///
    /// # Errors
    /// [`LedgerError::Misplaced`] when there is none; [`LedgerError::Unusable`] when the file is not a ledger, newer than this program
    /// or accessible to everyone. Nothing was created or changed then.
    pub fn open(
        path: impl AsRef<Path>,
        mode: OpenMode,
        durability: Durability,
    ) -> Result<Self, LedgerError> {
        let path = path.as_ref().to_owned();
        let fatal = watch::Sender::new(None);
        let whole = files::open_ledger(&path, mode)?;
        if mode == OpenMode::Write {
            files::refuse_clock(&path, &whole.1, &whole.0)?;
        }
        let log_limit = Arc::new(AtomicU64::new(LOG_LIMIT));
        let unsettled =
            (mode == OpenMode::Serve).then(|| Unsettled::beside(&whole.1.real, whole.1.ledger));
        let record = TroubleRecord::new(troubles::slow);
        let opened = Opened::start(whole, mode, durability, &log_limit, (&fatal, &record))?;
        let (other, log_missing) = (Mutex::default(), AtomicU32::default());
        let wall_clock = (mode == OpenMode::Serve).then(WallClock::default);
        let opened = RwLock::new(Arc::new(opened));
        Ok(Self {
            path,
            mode,
            durability,
            log_limit,
            opened,
            other,
            log_missing,
            fatal,
            record,
            wall_clock,
            unsettled,
        })
    }

    /// The ledger's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the writer has stopped for good and returns the reason. The process should then exit with an error.
    pub async fn fatal(&self) -> String {
        let mut watcher = self.fatal.subscribe();
        let reason = watcher
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }

    /// The writer's state.
    pub fn stats(&self) -> WriterStats {
        let opened = self.opened();
        (opened.writer.as_ref()).map_or_else(WriterStats::default, WriterHandle::stats)
    }

    /// Writes what is waiting and stops the writer; later changes are [`LedgerError::Unavailable`]. May be called twice. Who is the
    /// last to write leaves everything in the one file, so that a copy of a stopped ledger is complete; bills that could not be booked
    /// wait in another one.
    pub fn close(&self) -> Left {
        let opened = self.opened();
        let Some(writer) = &opened.writer else {
            return Left::default();
        };
        let ended = writer.close();
        let due = writer.take_due();
        let left = match &self.unsettled {
            Some(unsettled) => unsettled.close(&due),
            None => Left::without_bills(due.len()),
        };
        if ended && !self.record.stands(LedgerWork::Writer) {
            files::fold_log(&opened.location);
        }
        left
    }

    /// Copies the ledger to a new file while others write to it, and verifies the copy.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when the file exists or the copy cannot be made or is not sound; nothing of it is left.
    pub async fn backup(&self, to: &Path) -> Result<VerifyReport, LedgerError> {
        let to = to.to_owned();
        self.current()?
            .readers
            .alone(move |conn, _| Ok(backup::backup(conn, &to)))
            .await?
    }

    /// Extends an anchor over what was appended since.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`] when the ledger cannot be read.
    pub async fn anchor(&self, since: &Anchor, now: Timestamp) -> Result<Anchor, LedgerError> {
        let since = since.clone();
        self.current()?
            .readers
            .alone(move |conn, _| backup::anchor(conn, &since, now))
            .await
    }

    /// As [`Ledger::verify`], and compares the ledger with its anchors.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`] when the ledger cannot be read.
    pub async fn verify_with(&self, anchors: Vec<Anchor>) -> Result<VerifyReport, LedgerError> {
        let check = move |conn: &rusqlite::Connection, wanted: &dyn Fn() -> bool| {
            verify::verify(conn, &anchors, wanted)
        };
        self.current()?.readers.alone(check).await
    }

    async fn submit(&self, work: BatchWork) -> Result<Outcome, LedgerError> {
        if work.class() == OperationClass::Hold && self.record.stands(LedgerWork::Recovery) {
            return Err(LedgerError::unavailable("ending its open holds".to_owned()));
        }
        match &self.current()?.writer {
            Some(writer) => writer.submit(work).await,
            None => Err(LedgerError::unavailable("it was opened read-only")),
        }
    }
}

impl Drop for SqliteLedger {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Store for SqliteLedger {
    fn place(&self) -> String {
        self.path().display().to_string()
    }

    fn stats(&self) -> WriterStats {
        Self::stats(self)
    }

    fn troubles(&self) -> Vec<LedgerTrouble> {
        self.look_for_trouble();
        self.record.standing()
    }

    async fn fatal(&self) -> String {
        Self::fatal(self).await
    }

    fn unsettled(&self) -> Option<&Unsettled> {
        self.unsettled.as_ref()
    }

    fn close(&self) -> Left {
        Self::close(self)
    }

    async fn backup(&self, to: &Path) -> Result<VerifyReport, LedgerError> {
        Self::backup(self, to).await
    }

    async fn anchor(&self, since: &Anchor, now: Timestamp) -> Result<Anchor, LedgerError> {
        Self::anchor(self, since, now).await
    }

    async fn verify_with(&self, anchors: Vec<Anchor>) -> Result<VerifyReport, LedgerError> {
        Self::verify_with(self, anchors).await
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn apply(&self, operation: Operation) -> Result<Outcome, LedgerError> {
        self.submit(BatchWork::Apply(operation)).await
    }

    async fn find_key(&self, id: KeyId) -> Result<Option<Key>, LedgerError> {
        let opened = self.current()?;
        let read = || opened.readers.point(|conn| reads::find_key(conn, id));
        let mut found = match &opened.remembered {
            Some(remembered) => remembered.find(id, read),
            None => read(),
        };
        if let Ok(Some(key)) = &mut found {
            key.customer.reckon(clock::now);
        }
        found
    }

    async fn find_keys(&self, ids: &[KeyId]) -> Result<Vec<Key>, LedgerError> {
        let (ids, readers) = (ids.to_vec(), &self.current()?.readers);
        readers
            .scan(move |conn, _| lists::find_keys(conn, &ids))
            .await
    }

    async fn ended(&self, keys: &[KeyId]) -> Result<Vec<KeyId>, LedgerError> {
        self.current()?.ended_of(keys).await
    }

    async fn list_keys(&self, query: KeyQuery) -> Result<Vec<Key>, LedgerError> {
        self.scan(move |conn, wanted| lists::list_keys(conn, &query, wanted))
            .await
    }

    async fn customer(&self, by: CustomerBy<'_>) -> Result<Option<Customer>, LedgerError> {
        let found = self.point(|conn| reads::customer(conn, by))?;
        Ok(found.map(|customer| customer.reckoned_at(clock::now)))
    }

    async fn list_customers(&self, query: CustomerQuery) -> Result<Vec<Customer>, LedgerError> {
        self.scan(move |conn, _| lists::list_customers(conn, &query))
            .await
    }

    async fn grants(&self, query: GrantQuery) -> Result<Vec<GrantRecord>, LedgerError> {
        self.point(|conn| lists::grants(conn, &query))
    }

    async fn due_grants(&self, now: Timestamp) -> Result<Vec<CustomerId>, LedgerError> {
        self.point(|conn| lists::due_grants(conn, now))
    }

    async fn personal_data(&self, id: CustomerId) -> Result<Option<PersonalData>, LedgerError> {
        self.point(|conn| reads::personal_data(conn, id))
    }

    async fn addressees(&self, id: CustomerId) -> Result<Addressees, LedgerError> {
        self.point(|conn| reads::addressees(conn, id))
    }

    fn abandon_hold(&self, finish: Arc<Finish>) {
        match &self.opened().writer {
            Some(writer) => writer.resolve(finish),
            None => {
                tracing::error!(request = %finish.request, "cannot end a hold: the ledger was opened read-only")
            }
        }
    }

    fn stopped(&self) -> bool {
        let opened = self.opened();
        (opened.writer.as_ref()).is_none_or(WriterHandle::stopped)
    }

    fn vendor_ids(&self) -> VendorIds {
        VendorIds::of_ledger(self.opened().location.ledger)
    }

    async fn open_holds(
        &self,
        of: Option<Scope>,
        limit: usize,
    ) -> Result<Vec<OpenHold>, LedgerError> {
        self.scan(move |conn, _| reads::open_holds(conn, of, limit))
            .await
    }

    async fn entries(&self, query: EntryQuery) -> Result<Vec<JournalEntry>, LedgerError> {
        self.scan(move |conn, wanted| reads::entries(conn, &query, wanted))
            .await
    }

    async fn entry(&self, operation: OperationId) -> Result<Option<JournalEntry>, LedgerError> {
        self.point(|conn| reads::entry(conn, operation))
    }

    async fn entry_by_answer(
        &self,
        key: KeyId,
        answer_id: &str,
    ) -> Result<Option<JournalEntry>, LedgerError> {
        let answer = answer_id.to_owned();
        self.scan(move |conn, wanted| reads::entry_by_answer(conn, key, &answer, wanted))
            .await
    }

    async fn usage(
        &self,
        key: KeyId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<UsageRow>, LedgerError> {
        self.scan(move |conn, _| reads::usage(conn, key, from, to))
            .await
    }

    async fn usage_by_key(
        &self,
        customer: CustomerId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<BTreeMap<KeyId, Vec<UsageRow>>, LedgerError> {
        self.scan(move |conn, _| reads::usage_by_key(conn, customer, from, to))
            .await
    }

    async fn usage_by_run(&self, query: RunQuery) -> Result<Vec<RunSum>, LedgerError> {
        self.scan(move |conn, _| reads::usage_by_run(conn, query))
            .await
    }

    async fn given(&self, customer: CustomerId) -> Result<Amount, LedgerError> {
        self.current()?.readers.given(customer).await
    }

    async fn spent_since(
        &self,
        ids: &[KeyId],
        since: Timestamp,
    ) -> Result<Vec<Amount>, LedgerError> {
        let ids = ids.to_vec();
        self.scan(move |conn, _| lists::spent_since(conn, &ids, since))
            .await
    }

    async fn margins(&self, query: MarginQuery) -> Result<Margins, LedgerError> {
        self.scan(move |conn, wanted| lists::margins(conn, query, wanted))
            .await
    }

    async fn slug_hours(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<SlugHour>, LedgerError> {
        self.scan(move |conn, wanted| lists::slug_hours(conn, (from, to), wanted))
            .await
    }

    async fn slug_use(&self, since: Timestamp) -> Result<Vec<SlugUse>, LedgerError> {
        self.scan(move |conn, wanted| reads::slug_use(conn, since, wanted))
            .await
    }

    async fn totals(&self) -> Result<Totals, LedgerError> {
        self.point(reads::totals)
    }

    async fn audit(
        &self,
        of: Option<Scope>,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditRecord>, LedgerError> {
        self.scan(move |conn, _| reads::audit(conn, of, before, limit))
            .await
    }

    async fn act(&self, operation: OperationId) -> Result<Option<AuditRecord>, LedgerError> {
        self.point(|conn| reads::act(conn, operation))
    }

    async fn verify(&self) -> Result<VerifyReport, LedgerError> {
        self.verify_with(Vec::new()).await
    }

    async fn published(&self) -> Result<Vec<PublishedSlug>, LedgerError> {
        self.scan(|conn, _| reads::published(conn)).await
    }

    async fn taught(&self) -> Result<Taught, LedgerError> {
        self.current()?.readers.taught().await
    }

    async fn payment(&self, reference: &str) -> Result<Option<Payment>, LedgerError> {
        let readers = &self.current()?.readers;
        readers.payment(reference)
    }

    async fn unapplied(&self) -> Result<Vec<Payment>, LedgerError> {
        self.current()?.readers.rows(UNAPPLIED, ()).await
    }

    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>, LedgerError> {
        let id = id.to_i64();
        self.current()?.readers.find("WHERE id = ?1", [id])
    }

    async fn find_token(&self, secret: SecretHash) -> Result<Option<Token>, LedgerError> {
        self.current()?.readers.find("WHERE secret = ?1", [secret])
    }

    async fn token_days(&self, since: UtcDay) -> Result<Vec<TokenDay>, LedgerError> {
        let readers = &self.current()?.readers;
        let which = "WHERE day >= ?1 ORDER BY token, day";
        readers.rows(which, [since]).await
    }

    async fn whole(&self, table: WholeTable) -> Result<WholeRows, LedgerError> {
        table.read(&self.current()?.readers).await
    }

    async fn last_act(&self, of: Scope) -> Result<i64, LedgerError> {
        self.scan(move |conn, _| reads::last_act(conn, of)).await
    }

    async fn entry_by_reference(
        &self,
        reference: &str,
    ) -> Result<Option<JournalEntry>, LedgerError> {
        let readers = &self.current()?.readers;
        readers.point(|conn| reads::entry_by_reference(conn, reference))
    }

    async fn house_acts(&self) -> Result<Vec<HouseAct>, LedgerError> {
        self.current()?.readers.house_acts().await
    }

    async fn files_acts(
        &self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<FilesAct>, LedgerError> {
        let readers = &self.current()?.readers;
        readers.files_acts(before, limit).await
    }

    async fn own_costs(&self, from: Timestamp, to: Timestamp) -> Result<Vec<OwnCost>, LedgerError> {
        let (first, last) = margin::hours(from, to);
        self.scan(move |conn, _| reads::own_costs(conn, first, last))
            .await
    }

    async fn has_link(&self, token: SecretHash, now: Timestamp) -> Result<bool, LedgerError> {
        self.point(|conn| reads::has_link(conn, token, now))
    }

    async fn find_session(
        &self,
        token: SecretHash,
        now: Timestamp,
    ) -> Result<Option<KeyId>, LedgerError> {
        self.point(|conn| reads::find_session(conn, token, now))
    }
}

//! The ledger in a PostgreSQL database that several gateways share.
//!
//! Operations wait in `lanes`, so that a key locked by another gateway delays only its own operations. Each lane's `writer` gathers
//! them into batches: `fetch` locks their keys and reads what they need, `batch::apply` decides them in memory, `flush` writes the
//! difference and commits. Gateways are nodes with epochs (`node`); the first statement of every batch fences off a node
//! that the others have declared dead. All of it runs on its own thread.
//!
//! No row is cached from one batch to the next, and no batch updates sums over all keys.

mod anchors;
mod blockers;
mod closing;
mod confirmations;
mod connector;
mod copy;
mod defaults;
mod deliveries;
mod events;
mod facts;
mod faults;
mod fetch;
mod flush;
mod job;
mod kept_totals;
mod key_reads;
mod lanes;
mod lessons;
mod link;
mod lists;
mod locking;
mod migrations;
mod needs;
mod node;
mod owner_tables;
mod probe_leases;
mod readers;
mod reads;
mod rows;
mod servers;
mod silence;
mod standby;
mod start;
mod state;
mod table_rows;
mod tables;
mod tls;
mod trouble;
mod verify;
mod visitor;
mod writer;
mod writes;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use async_trait::async_trait;
use tokio::sync::oneshot;

use crate::batch::operation::Operation;
use crate::batch::outcome::Outcome;
use crate::book::anchor::Anchor;
use crate::book::margin;
use crate::store::Store;
use crate::store::address::Database;
use crate::store::bill_file::{Left, Unsettled};
use crate::table::list::UNAPPLIED;
use crate::value::clock::{self, now};
use crate::{
    Addressees, Amount, AuditRecord, Cause, Customer, CustomerBy, CustomerId, CustomerQuery,
    EntryQuery, FilesAct, Finish, Gateway, GrantQuery, GrantRecord, HouseAct, JournalEntry, Key,
    KeyId, KeyQuery, Ledger, LedgerError, LedgerTrouble, MarginQuery, Margins, OpenHold, OpenMode,
    Opening, OperationId, OwnCost, Payment, PersonalData, ProbeLease, PublishedSlug, ResolveHold,
    RunQuery, RunSum, Scope, SecretHash, Server, SlugHour, SlugUse, Subscription, SubscriptionId,
    Taught, Timestamp, Token, TokenDay, Totals, UsageRow, UtcDay, VendorIds, VerifyReport,
    WholeRows, WholeTable, WriterStats, lock,
};
pub use confirmations::AcceptedLoss;
use connector::Connector;
pub(crate) use copy::{CopySource, CopyTarget};
use facts::ServerPurpose;
use kept_totals::KeptTotals;
use key_reads::KeyReads;
use readers::Readers;
use state::Shared;

/// Requests for more entries than this run without a time limit, on their own connection.
const LONG: usize = 10_000;

/// A ledger in a PostgreSQL database.
pub struct PostgresLedger {
    place: String,
    connector: Connector,
    readers: Arc<Readers>,
    key_reads: Arc<KeyReads>,
    writer: Option<Arc<Shared>>,
    thread: Mutex<Option<Thread>>,
    totals: Option<KeptTotals>,
    vendor_ids: VendorIds,
}

impl std::fmt::Debug for PostgresLedger {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PostgresLedger")
            .field("place", &self.place)
            .field("writer", &self.writer)
            .finish_non_exhaustive()
    }
}

/// The thread that owns all connections.
struct Thread {
    quit: oneshot::Sender<()>,
    handle: JoinHandle<()>,
}

impl PostgresLedger {
    /// Connects to a database with a ledger.
    ///
    /// # Errors
    /// [`LedgerError::Misplaced`] when there is none; [`LedgerError::Unusable`] when the database cannot be reached or used.
    pub async fn open(database: &Database, opening: &Opening) -> Result<Self, LedgerError> {
        let mode = opening.mode;
        let place = database.to_string();
        let purpose = match mode {
            OpenMode::ReadOnly if opening.standby => ServerPurpose::Standby,
            OpenMode::ReadOnly => ServerPurpose::Read,
            OpenMode::Serve | OpenMode::Write => ServerPurpose::Write,
        };
        let connector = Connector::new(database, purpose, opening.allow_single)?;
        let starting_with = connector.clone();
        let (quit, quitting) = oneshot::channel();
        let (started, starting) = oneshot::channel();
        let crowded = Arc::default();
        let runtime = start::runtime(&crowded).map_err(|error| {
            LedgerError::unavailable(Cause::of("no runtime for the ledger", error))
        })?;
        let opening = opening.clone();
        let run = move || {
            runtime.block_on(async move {
                let made = start::start(starting_with, opening, crowded).await;
                let stop_now = made.is_err();
                if started.send(made).is_ok() && !stop_now {
                    // Ends with the ledger, which closes its writer first.
                    let _ = quitting.await;
                }
            });
        };
        let handle = std::thread::Builder::new()
            .name("ledger-postgres".to_owned())
            .spawn(run)
            .map_err(|error| {
                LedgerError::unavailable(Cause::of("no thread for the ledger", error))
            })?;
        let stopped = |_| LedgerError::unavailable("the ledger's thread stopped".to_owned());
        let made = starting.await.map_err(stopped)?;
        let made = made.map_err(|error| error.at(&place))?;
        let totals = (mode == OpenMode::Serve).then(KeptTotals::default);
        Ok(Self {
            place,
            connector,
            readers: made.readers,
            key_reads: Arc::default(),
            writer: made.writer,
            thread: Mutex::new(Some(Thread { quit, handle })),
            totals,
            vendor_ids: VendorIds::of_ledger(made.ledger),
        })
    }

    async fn submit(&self, operation: Operation) -> Result<Outcome, LedgerError> {
        match &self.writer {
            Some(writer) => writer.submit(operation).await,
            None => Err(LedgerError::unavailable("it was opened read-only")),
        }
    }

    /// The epoch of this gateway, for a write beside the batches.
    fn epoch_to_write_with(&self) -> Result<i64, LedgerError> {
        let no_gateway = || LedgerError::unavailable("this program is no gateway".to_owned());
        let writer = self.writer.as_ref().ok_or_else(no_gateway)?;
        writer.epoch_to_write_with()?.ok_or_else(no_gateway)
    }
}

impl Drop for PostgresLedger {
    fn drop(&mut self) {
        let _ = Store::close(self);
        let thread = lock(&self.thread).take();
        if let Some(Thread { quit, handle }) = thread {
            let _ = quit.send(());
            if handle.join().is_err() {
                tracing::error!("the ledger's thread panicked");
            }
        }
    }
}

#[async_trait]
impl Store for PostgresLedger {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn stats(&self) -> WriterStats {
        let writer = self.writer.as_ref();
        writer.map(|writer| writer.stats()).unwrap_or_default()
    }

    fn troubles(&self) -> Vec<LedgerTrouble> {
        let mut troubles = self.connector.record().standing();
        let lapsed = self.writer.as_ref().is_some_and(|writer| writer.lapsed());
        if lapsed && !troubles.iter().any(|trouble| trouble.stops) {
            troubles.push(state::lapse());
        }
        troubles
    }

    async fn gateways(&self) -> Result<Vec<Gateway>, LedgerError> {
        self.readers
            .with(|link| async move { node::gateways(&link).await })
            .await
    }

    fn servers(&self) -> Vec<Server> {
        self.connector.list()
    }

    fn announce(&self, configuration: String) {
        if let Some(writer) = &self.writer {
            writer.announce(configuration);
        }
    }

    async fn fatal(&self) -> String {
        match &self.writer {
            Some(writer) => writer.fatal().await,
            None => std::future::pending().await,
        }
    }

    fn unsettled(&self) -> Option<&Unsettled> {
        self.writer.as_ref()?.unsettled.get()
    }

    async fn store_late(&self, bills: &[&Finish]) -> Result<(), LedgerError> {
        closing::store_late(&self.readers, self.writer.as_deref(), bills).await
    }

    fn close(&self) -> Left {
        let close = |writer| closing::close(&self.readers, writer);
        self.writer.as_ref().map_or_else(Left::default, close)
    }

    async fn backup(&self, _to: &Path) -> Result<VerifyReport, LedgerError> {
        let why = "back up a ledger on PostgreSQL with the database's own tools, pg_basebackup or pg_dump";
        Err(LedgerError::unavailable(why.to_owned()))
    }

    async fn anchor(&self, _since: &Anchor, now: Timestamp) -> Result<Anchor, LedgerError> {
        // Its commit would wait for a standby that is not there.
        if let Some(why) = self.writer.as_ref().and_then(|writer| writer.uncertain()) {
            return Err(LedgerError::unavailable(why));
        }
        self.readers
            .with(|link| async move { anchors::anchor(&link, now).await })
            .await
    }

    fn anchored(&self, newest: &Anchor) {
        if let Some(writer) = &self.writer {
            writer.confirmed.anchored(newest.clone());
        }
    }

    async fn verify_with(&self, anchors: Vec<Anchor>) -> Result<VerifyReport, LedgerError> {
        self.readers
            .alone(|link| async move { verify::verify(&link, &anchors).await })
            .await
    }
}

#[async_trait]
impl Ledger for PostgresLedger {
    async fn apply(&self, operation: Operation) -> Result<Outcome, LedgerError> {
        self.submit(operation).await
    }

    async fn find_key(&self, id: KeyId) -> Result<Option<Key>, LedgerError> {
        let found = self.key_reads.find(&self.readers, id).await?;
        Ok(found.map(|key| key.reckoned_at(clock::now)))
    }

    async fn find_keys(&self, ids: &[KeyId]) -> Result<Vec<Key>, LedgerError> {
        lists::find_keys(&self.readers, ids).await
    }

    async fn ended(&self, keys: &[KeyId]) -> Result<Vec<KeyId>, LedgerError> {
        lists::ended(&self.readers, keys).await
    }

    async fn list_keys(&self, query: KeyQuery) -> Result<Vec<Key>, LedgerError> {
        let query = &query;
        self.readers
            .with(|link| async move { lists::list_keys(&link, query).await })
            .await
    }

    async fn customer(&self, by: CustomerBy<'_>) -> Result<Option<Customer>, LedgerError> {
        self.readers
            .with(|link| async move { reads::customer(&link, by).await })
            .await
    }

    async fn list_customers(&self, query: CustomerQuery) -> Result<Vec<Customer>, LedgerError> {
        let query = &query;
        self.readers
            .with(|link| async move { lists::list_customers(&link, query).await })
            .await
    }

    async fn grants(&self, query: GrantQuery) -> Result<Vec<GrantRecord>, LedgerError> {
        let query = &query;
        self.readers
            .with(|link| async move { lists::grants(&link, query).await })
            .await
    }

    async fn due_grants(&self, now: Timestamp) -> Result<Vec<CustomerId>, LedgerError> {
        self.readers
            .with(|link| async move { lists::due_grants(&link, now).await })
            .await
    }

    async fn personal_data(&self, id: CustomerId) -> Result<Option<PersonalData>, LedgerError> {
        self.readers
            .with(|link| async move { reads::personal_data(&link, id).await })
            .await
    }

    async fn addressees(&self, id: CustomerId) -> Result<Addressees, LedgerError> {
        self.readers
            .with(|link| async move { reads::addressees(&link, id).await })
            .await
    }

    fn abandon_hold(&self, finish: Arc<Finish>) {
        match &self.writer {
            Some(writer) => writer.resolve(ResolveHold(finish).into()),
            None => {
                tracing::error!(request = %finish.request, "cannot end a hold: the ledger was opened read-only")
            }
        }
    }

    fn stopped(&self) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.stopped())
    }

    fn node(&self) -> Option<&str> {
        self.writer.as_ref().map(|writer| writer.name.as_str())
    }

    fn vendor_ids(&self) -> VendorIds {
        self.vendor_ids
    }

    fn lapsed(&self) -> bool {
        self.writer
            .as_ref()
            .is_some_and(|writer| writer.lapsed() || writer.fenced())
    }

    async fn open_holds(
        &self,
        of: Option<Scope>,
        limit: usize,
    ) -> Result<Vec<OpenHold>, LedgerError> {
        self.readers
            .with(|link| async move { reads::open_holds(&link, of, limit).await })
            .await
    }

    async fn entries(&self, query: EntryQuery) -> Result<Vec<JournalEntry>, LedgerError> {
        let query = &query;
        if query.limit.is_none_or(|limit| limit > LONG) {
            return self
                .readers
                .alone(|link| async move { reads::entries(&link, query).await })
                .await;
        }
        self.readers
            .with(|link| async move { reads::entries(&link, query).await })
            .await
    }

    async fn entry(&self, operation: OperationId) -> Result<Option<JournalEntry>, LedgerError> {
        self.readers
            .with(|link| async move { reads::entry(&link, operation).await })
            .await
    }

    async fn entry_by_answer(
        &self,
        key: KeyId,
        answer_id: &str,
    ) -> Result<Option<JournalEntry>, LedgerError> {
        self.readers
            .with(|link| async move { reads::entry_by_answer(&link, key, answer_id).await })
            .await
    }

    async fn usage(
        &self,
        key: KeyId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<UsageRow>, LedgerError> {
        self.readers
            .with(|link| async move { reads::usage(&link, key, from, to).await })
            .await
    }

    async fn usage_by_key(
        &self,
        customer: CustomerId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<BTreeMap<KeyId, Vec<UsageRow>>, LedgerError> {
        self.readers
            .with(|link| async move { reads::usage_by_key(&link, customer, from, to).await })
            .await
    }

    async fn usage_by_run(&self, query: RunQuery) -> Result<Vec<RunSum>, LedgerError> {
        self.readers
            .with(|link| async move { reads::usage_by_run(&link, query).await })
            .await
    }

    async fn given(&self, customer: CustomerId) -> Result<Amount, LedgerError> {
        reads::given(&self.readers, customer).await
    }

    async fn spent_since(
        &self,
        ids: &[KeyId],
        since: Timestamp,
    ) -> Result<Vec<Amount>, LedgerError> {
        self.readers
            .with(|link| async move { lists::spent_since(&link, ids, since).await })
            .await
    }

    async fn margins(&self, query: MarginQuery) -> Result<Margins, LedgerError> {
        self.readers
            .with(|link| async move { lists::margins(&link, query).await })
            .await
    }

    async fn slug_hours(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<SlugHour>, LedgerError> {
        self.readers
            .with(|link| async move { lists::slug_hours(&link, from, to).await })
            .await
    }

    async fn slug_use(&self, since: Timestamp) -> Result<Vec<SlugUse>, LedgerError> {
        self.readers
            .with(|link| async move { reads::slug_use(&link, since).await })
            .await
    }

    async fn totals(&self) -> Result<Totals, LedgerError> {
        match &self.totals {
            Some(kept) => kept.get(&self.readers).await,
            None => kept_totals::read(&self.readers).await,
        }
    }

    async fn audit(
        &self,
        of: Option<Scope>,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditRecord>, LedgerError> {
        self.readers
            .with(|link| async move { reads::audit(&link, of, before, limit).await })
            .await
    }

    async fn act(&self, operation: OperationId) -> Result<Option<AuditRecord>, LedgerError> {
        reads::act(&self.readers, operation).await
    }

    async fn verify(&self) -> Result<VerifyReport, LedgerError> {
        self.verify_with(Vec::new()).await
    }

    async fn published(&self) -> Result<Vec<PublishedSlug>, LedgerError> {
        self.readers
            .with(|link| async move { reads::published(&link).await })
            .await
    }

    async fn taught(&self) -> Result<Taught, LedgerError> {
        lessons::read(&self.readers).await
    }

    async fn lease_probe(&self, place: &str) -> Result<ProbeLease, LedgerError> {
        probe_leases::lease(&self.readers, place, self.epoch_to_write_with()?).await
    }

    async fn tell(&self, place: &str, found: &str) -> Result<(), LedgerError> {
        probe_leases::tell(&self.readers, place, found, self.epoch_to_write_with()?).await
    }

    async fn payment(&self, reference: &str) -> Result<Option<Payment>, LedgerError> {
        self.readers.payment(reference).await
    }

    async fn unapplied(&self) -> Result<Vec<Payment>, LedgerError> {
        self.readers.rows(UNAPPLIED, &[]).await
    }

    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>, LedgerError> {
        let id = id.to_i64();
        self.readers.find("WHERE id = $1", &[&id]).await
    }

    async fn find_token(&self, secret: SecretHash) -> Result<Option<Token>, LedgerError> {
        let secret = secret.0.as_slice();
        self.readers.find("WHERE secret = $1", &[&secret]).await
    }

    async fn token_days(&self, since: UtcDay) -> Result<Vec<TokenDay>, LedgerError> {
        let which = "WHERE day >= $1 ORDER BY token, day";
        self.readers.rows(which, &[&since.number()]).await
    }

    async fn whole(&self, table: WholeTable) -> Result<WholeRows, LedgerError> {
        table.read(&*self.readers).await
    }

    async fn last_act(&self, of: Scope) -> Result<i64, LedgerError> {
        self.readers
            .with(|link| async move { reads::last_act(&link, of).await })
            .await
    }

    async fn entry_by_reference(
        &self,
        reference: &str,
    ) -> Result<Option<JournalEntry>, LedgerError> {
        self.readers
            .with(|link| async move { reads::entry_by_reference(&link, reference).await })
            .await
    }

    async fn house_acts(&self) -> Result<Vec<HouseAct>, LedgerError> {
        self.readers.house_acts().await
    }

    async fn files_acts(
        &self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<FilesAct>, LedgerError> {
        self.readers.files_acts(before, limit).await
    }

    async fn generations(&self) -> Result<Vec<(i64, Timestamp)>, LedgerError> {
        reads::generations(&self.readers).await
    }

    async fn own_costs(&self, from: Timestamp, to: Timestamp) -> Result<Vec<OwnCost>, LedgerError> {
        let (first, last) = margin::hours(from, to);
        self.readers
            .with(|link| async move { reads::own_costs(&link, first, last).await })
            .await
    }

    async fn has_link(&self, token: SecretHash, now: Timestamp) -> Result<bool, LedgerError> {
        reads::has_link(&self.readers, token, now).await
    }

    async fn find_session(
        &self,
        token: SecretHash,
        now: Timestamp,
    ) -> Result<Option<KeyId>, LedgerError> {
        self.readers
            .with(|link| async move { reads::find_session(&link, token, now).await })
            .await
    }
}

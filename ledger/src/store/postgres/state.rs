//! State shared by a process's callers, writer and node: the queue, the lease, and whether everything has stopped.
//!
//! The only decision made here is whether an operation may wait at all.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::confirmations::Confirmed;
use super::facts::Backend;
use super::job::{Job, OutcomeAnswer, OutcomeCaller};
use super::lanes::{Lane, LaneQueue};
use super::link::Link;
use super::migrations::{VERSION, changed};
use crate::batch::operation::{Operation, OperationClass};
use crate::batch::outcome::Outcome;
use crate::store::bill_file::Unsettled;
use crate::store::copy::MOVED;
use crate::store::replies::Caller;
use crate::store::trouble_record::{LedgerWork, TroubleRecord};
use crate::value::clock;
use crate::{CustomerId, Finish, LedgerError, OperationId, Refusal, Timestamp, lock};
use crate::{Durability, Fault, LedgerTrouble, Opening, TroubleKind, WriterStats};

/// New holds are refused while this many operations wait.
// Some forty full batches, which a writer that is well commits in about a second: more have gathered only where it stands still. Ends of
// holds are always taken, because nobody else can bill them.
const MAX_QUEUE: usize = 20_000;
/// How many lost entries a message lists; `ledger accept` lists all of them.
const MOST_TOLD: usize = 10;
/// A node whose last renewal is older than this opens and extends nothing, because others may soon declare it dead.
// Three seconds shorter than the others' `SILENCE`, so that nobody ends the holds of a node that still sells. Still shorter, and two
// rounds of `ROUND` that fail would stop the sale; they just fit.
const LEASE: Duration = Duration::from_secs(7);
/// From this many dropped connections on, nothing is sold: each may hold locks, and each counts against the server's limit.
const MOST_DROPPED: usize = 4;
/// Why no commit is certain enough to sell by.
const UNCERTAIN: &[LedgerWork] = &[
    LedgerWork::Confirmed,
    LedgerWork::Standby,
    LedgerWork::Abandoned,
];

/// A connection that was given up in the middle of something.
#[derive(Debug, Clone)]
pub(super) struct Dropped {
    pub(super) backend: Backend,
    since: Timestamp,
}

/// State shared by callers, the writer and the node.
pub(super) struct Shared {
    pub(super) queue: Mutex<LaneQueue>,
    wake: [Notify; 3],
    /// Whether several requests ran here when a batch was last taken.
    crowded: Arc<AtomicBool>,
    pub(super) stats: Mutex<WriterStats>,
    pub(super) record: Arc<TroubleRecord>,
    pub(super) fatal: watch::Sender<Option<String>>,
    pub(super) drained: watch::Sender<bool>,
    /// The node's epoch; 0 before it has one, and in programs that are not gateways.
    pub(super) epoch: AtomicI64,
    /// When the last renewal that the server confirmed was requested.
    renewed: Mutex<Option<Instant>>,
    /// Server processes of connections that were dropped in the middle of something.
    dropped: Mutex<Vec<Dropped>>,
    /// What the database has confirmed to this gateway.
    pub(super) confirmed: Confirmed,
    pub(super) durability: Durability,
    pub(super) allow_single: bool,
    /// The name of this process among those that share the ledger.
    pub(super) name: String,
    /// Requests whose holds this process is opening or has open, with their customers.
    running: Mutex<HashMap<OperationId, CustomerId>>,
    /// Holds that could not be ended yet, with the server's SQLSTATE; `None` if it gave none.
    unresolved: Mutex<HashMap<OperationId, Option<String>>>,
    /// Holds this process has ever requested.
    asked: AtomicU64,
    /// Hashes of the files that run here.
    configuration: Mutex<String>,
    /// Bills that nobody books any more.
    due: Mutex<Vec<Arc<Finish>>>,
    /// Where they are kept at a stop; only in a gateway with a state file.
    pub(super) unsettled: OnceLock<Unsettled>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Shared")
            .field("epoch", &self.epoch)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(
        opening: &Opening,
        confirmed: Confirmed,
        crowded: Arc<AtomicBool>,
        record: Arc<TroubleRecord>,
    ) -> Self {
        Self {
            queue: Mutex::default(),
            wake: Default::default(),
            crowded,
            stats: Mutex::default(),
            record,
            fatal: watch::Sender::new(None),
            drained: watch::Sender::new(false),
            epoch: AtomicI64::new(0),
            renewed: Mutex::default(),
            dropped: Mutex::default(),
            confirmed,
            durability: opening.durability,
            allow_single: opening.allow_single,
            name: format!("{}:{}", host(), std::process::id()),
            running: Mutex::default(),
            unresolved: Mutex::default(),
            asked: AtomicU64::new(0),
            configuration: Mutex::default(),
            due: Mutex::default(),
            unsettled: OnceLock::new(),
        }
    }

    /// Runs an operation in one of the next batches and waits for its commit.
    pub(super) async fn submit(&self, operation: Operation) -> Result<Outcome, LedgerError> {
        let (caller, answer) = Caller::new();
        self.enqueue(operation, Some(caller));
        answer.await.unwrap_or_else(|_| {
            Err(LedgerError::unknown(
                "the ledger's writer stopped".to_owned(),
            ))
        })
    }

    /// Repeats an operation until its outcome is known. Nobody waits for it.
    pub(super) fn resolve(&self, operation: Operation) {
        self.enqueue(operation, None);
    }

    fn enqueue(&self, mut operation: Operation, caller: Option<OutcomeCaller>) {
        operation.clean();
        let moved = operation.moves().map(|moved| moved.request);
        let ended = operation.finish().map(|finish| finish.request);
        let customer = match operation.opens() {
            Some(new) => Some(new.customer),
            None => moved.or(ended).and_then(|request| self.runs(request)),
        };
        let job = Job {
            operation,
            customer,
            caller,
        };
        let class = job.operation.class();
        let begins = class == OperationClass::Hold || moved.is_some();
        let mut queue = lock(&self.queue);
        let refused = match &queue.closed {
            Some(reason) => Some(reason.clone()),
            None if class == OperationClass::Hold && queue.waiting() >= MAX_QUEUE => {
                Some("too many operations are waiting".to_owned())
            }
            None if begins => self.refuses_to_begin(),
            None => None,
        };
        if let Some(reason) = refused {
            drop(queue);
            return self.refuse(job, LedgerError::unavailable(reason));
        }
        if let Some(new) = job.operation.opens() {
            // Registered before anything can be committed: a hold found in the database but not here belongs to no request.
            lock(&self.running).insert(new.request, new.customer);
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
        let lane = queue.push(job, Instant::now());
        drop(queue);
        if let Some(lane) = lane {
            self.wake(lane);
        }
    }

    /// Notes the schema that the ledger has now: into one of another version nothing is written. A ledger that was moved comes back
    /// no more; the end of its epoch ends this gateway.
    pub(super) fn note_schema(&self, version: i32) {
        if version == VERSION || version > MOVED {
            if self.record.end(LedgerWork::Schema) {
                tracing::warn!("the ledger has this version's schema again");
            }
            return;
        }
        let fault = changed(version);
        let why = fault.to_string();
        if self.record.set(LedgerWork::Schema, fault) {
            tracing::error!(why, "selling stops");
        }
    }

    /// Why nothing may be written, if the ledger has a schema of another version.
    pub(super) fn displaced(&self) -> Option<String> {
        self.record.words_of(&[LedgerWork::Schema])
    }

    /// Why no hold may begin or grow now, if that is so.
    fn refuses_to_begin(&self) -> Option<String> {
        let known = (self.record).words_of(&[LedgerWork::DatabaseClock, LedgerWork::Schema]);
        known.or_else(|| self.uncertain()).or_else(|| {
            let known = || self.record.words_of(&[LedgerWork::Renewal]);
            (self.lapsed()).then(|| known().unwrap_or_else(|| lapse().fault.to_string()))
        })
    }

    /// What this gateway reports about itself: its files, holds ever requested, and open holds.
    pub(super) fn report(&self) -> (String, u64, usize) {
        (
            lock(&self.configuration).clone(),
            self.asked.load(Ordering::Relaxed),
            lock(&self.running).len(),
        )
    }

    pub(super) fn announce(&self, configuration: String) {
        *lock(&self.configuration) = configuration;
    }

    /// The customer of a request that runs here.
    fn runs(&self, request: OperationId) -> Option<CustomerId> {
        lock(&self.running).get(&request).copied()
    }

    /// Notes whether several requests run here.
    // Not whether the last batch had several operations: while nobody waits for the callers, batches are small.
    pub(super) fn note_crowd(&self) {
        let crowded = lock(&self.running).len() > 1;
        self.crowded.store(crowded, Ordering::Relaxed);
    }

    const fn alarm(&self, lane: Lane) -> &Notify {
        let [common, rest, locked] = &self.wake;
        match lane {
            Lane::Common => common,
            Lane::Rest => rest,
            Lane::Locked => locked,
        }
    }

    /// Tells a lane that work is waiting.
    pub(super) fn wake(&self, lane: Lane) {
        self.alarm(lane).notify_one();
    }

    /// Waits until a lane is woken.
    pub(super) async fn woken(&self, lane: Lane) {
        self.alarm(lane).notified().await;
    }

    /// Tells every lane that no more work will come.
    pub(super) fn wake_all(&self) {
        for alarm in &self.wake {
            alarm.notify_one();
            alarm.notify_waiters();
        }
    }

    /// The reply, if somebody waits for it; forgets the request if its hold has ended or was never opened.
    pub(super) fn answer(
        &self,
        job: Job,
        outcome: Result<Outcome, LedgerError>,
    ) -> Option<OutcomeAnswer> {
        if let Some(request) = job.ends() {
            lock(&self.unresolved).remove(&request);
        }
        let opened = job.operation.opens().map(|new| new.request);
        let over = match &outcome {
            Ok(_) | Err(LedgerError::Refused(Refusal::NoSuchHold(_))) if job.ends().is_some() => {
                job.ends()
            }
            // The id was used by an earlier attempt, which may have opened the hold.
            Err(LedgerError::Refused(Refusal::OperationUsed(_))) => None,
            Err(LedgerError::Refused(_) | LedgerError::Unavailable(_)) => opened,
            Ok(_)
            | Err(LedgerError::Unknown(_) | LedgerError::Unusable(_) | LedgerError::Misplaced(_)) => {
                None
            }
        };
        // Nobody hears a refusal of the rules here: the hold is ended as one that no request knows.
        let refused = match &outcome {
            Err(LedgerError::Refused(refusal)) if job.caller.is_none() => {
                tracing::error!(request = ?job.ends(), %refusal, "cannot end a hold as it was metered; it is ended at its checkpoint");
                job.ends()
            }
            _ => None,
        };
        if let Some(request) = over.or(refused) {
            lock(&self.running).remove(&request);
        }
        job.answer(outcome)
    }

    /// Keeps the end of a hold that could not be written, to try it again for as long as this gateway runs.
    pub(super) fn put_back(&self, job: Job, sqlstate: Option<&str>, why: &LedgerError) {
        if let Some(request) = job.ends() {
            let known = lock(&self.unresolved).insert(request, sqlstate.map(str::to_owned));
            if known.is_none_or(|known| known.as_deref() != sqlstate) {
                tracing::error!(%request, sqlstate, error = %why, "cannot end a hold yet; it is tried again until it is ended");
            }
        }
        lock(&self.queue).put_back(job, Instant::now());
        // Its writer may be a different one, which is idle.
        self.wake(Lane::Rest);
    }

    /// Replies that nothing was done. A bill that nobody waits for is kept for whoever closes the ledger.
    pub(super) fn refuse(&self, job: Job, error: LedgerError) {
        match job.caller {
            Some(caller) => caller.reply(Err(error)),
            None => lock(&self.due).extend(job.operation.resolution()),
        }
    }

    /// Bills that are due at the end are kept beside the state file, if there is one.
    pub(super) fn keep_beside(&self, state: Option<&Path>, ledger: [u8; 16]) {
        if let Some(state) = state {
            self.unsettled
                .get_or_init(|| Unsettled::beside(state, ledger));
        }
    }

    /// Refuses what waits when nothing will be written any more.
    pub(super) fn refuse_waiting(&self) {
        let waiting = lock(&self.queue).drain();
        for job in waiting {
            self.refuse(job, LedgerError::unavailable("the ledger has stopped"));
        }
    }

    pub(super) fn has_due(&self) -> bool {
        !lock(&self.due).is_empty()
    }

    /// The bills that were not booked; call it when the writer has ended.
    pub(super) fn take_due(&self) -> Vec<Arc<Finish>> {
        std::mem::take(&mut lock(&self.due))
    }

    /// Those of these requests that are unknown here.
    pub(super) fn unknown(&self, mut requests: Vec<OperationId>) -> Vec<OperationId> {
        let running = lock(&self.running);
        requests.retain(|request| !running.contains_key(request));
        requests
    }

    /// A lease begins with the epoch, because even the first renewal may never get through.
    pub(super) fn begin_lease(&self, now: Instant) {
        lock(&self.renewed).get_or_insert(now);
    }

    /// Records a renewal that was requested at this instant.
    pub(super) fn renewed(&self, asked: Instant) {
        *lock(&self.renewed) = Some(asked);
    }

    /// Whether others may soon declare this node dead.
    pub(super) fn lapsed(&self) -> bool {
        lock(&self.renewed).is_some_and(|renewed| renewed.elapsed() >= LEASE)
    }

    /// Why no commit is certain now, if that is so.
    pub(super) fn uncertain(&self) -> Option<String> {
        self.record.words_of(UNCERTAIN)
    }

    /// The epoch, for a write beside the batches: without a standby its commit would wait for one. `None` of a program that is no gateway.
    pub(super) fn epoch_to_write_with(&self) -> Result<Option<i64>, LedgerError> {
        match (self.uncertain(), self.epoch.load(Ordering::SeqCst)) {
            (Some(why), _) => Err(LedgerError::unavailable(why)),
            (None, epoch) => Ok(Some(epoch).filter(|epoch| *epoch > 0)),
        }
    }

    /// Whether something that was confirmed is missing.
    pub(super) fn has_lost(&self) -> bool {
        self.record.stands(LedgerWork::Confirmed)
    }

    /// Records what the database has lost of what it had confirmed; an empty list ends that state.
    pub(super) fn lost(&self, lost: &[String], stale: Option<String>) {
        let gone_back = (!lost.is_empty()).then(|| {
            let (some, more) = lost.split_at(lost.len().min(MOST_TOLD));
            let more = if more.is_empty() {
                String::new()
            } else {
                format!(" and {} more", more.len())
            };
            let why = format!(
                "the database has gone back in time: {}{more}",
                some.join(", ")
            );
            let remedy = "if another server was promoted, fence this one and bring that one back; otherwise find out what was lost, then \
                 `farebox ledger accept --lost`";
            (why, remedy)
        });
        let fence = "stop it and rebuild it as a standby; docs/FLEET.md";
        let Some((why, remedy)) = stale.map(|stale| (stale, fence)).or(gone_back) else {
            if self.record.end(LedgerWork::Confirmed) {
                tracing::warn!(
                    "nothing is missing any more, or the loss was accepted; selling goes on"
                );
            }
            return;
        };
        let cause = format!("nothing is sold: {why}");
        let fault = Fault::new(TroubleKind::Uncertain, cause, remedy);
        if self.record.set(LedgerWork::Confirmed, fault) {
            tracing::error!(why, "selling stops");
        }
    }

    /// Drops a connection. No cancel request is sent: the server may be working for it until a standby is back. The server process
    /// then keeps waiting, with its locks, and counts against the connection limit.
    pub(super) fn drop_link(&self, link: &mut Option<Link>) {
        let Some(link) = link.take().filter(|link| !link.client.is_closed()) else {
            return;
        };
        let mut dropped = lock(&self.dropped);
        dropped.push(Dropped {
            backend: link.facts.backend.clone(),
            since: super::now(),
        });
        self.tell_dropped(
            dropped.len(),
            "it is not known yet whether the database still works for them",
        );
    }

    /// Too many of them, and nothing is sold.
    fn tell_dropped(&self, dropped: usize, what: &str) {
        lock(&self.stats).dropped = dropped;
        let fault = (dropped >= MOST_DROPPED).then(|| {
            let cause = format!("nothing is sold: this gateway gave up {dropped} connections, and {what}");
            let remedy = "one that waits for a standby ends when a standby streams (do not end it otherwise), any other by itself within \
                 seconds";
            Fault::new(TroubleKind::Uncertain, cause, remedy)
        });
        self.record.note(LedgerWork::Abandoned, fault);
    }

    /// The dropped connections for which the server may still be working.
    pub(super) fn dropped(&self) -> Vec<Dropped> {
        lock(&self.dropped).clone()
    }

    /// Forgets those dropped connections that can do no harm any more, and says what the others do.
    pub(super) fn keep_dropped(&self, at_work: &[(Backend, String)]) {
        let mut dropped = lock(&self.dropped);
        let mut said = Vec::new();
        dropped.retain(|dropped| {
            let found = at_work
                .iter()
                .find(|(backend, _)| *backend == dropped.backend);
            said.extend(found.map(|(backend, state)| {
                format!("process {} ({state}) since {}", backend.pid, dropped.since)
            }));
            found.is_some()
        });
        let what = format!("the database still works for them: {}", said.join(", "));
        self.tell_dropped(dropped.len(), &what);
    }

    /// Whether others have declared this node dead.
    pub(super) fn fenced(&self) -> bool {
        self.fatal.borrow().is_some()
    }

    pub(super) fn stats(&self) -> WriterStats {
        let queued = lock(&self.queue).waiting();
        let mut unresolved_by: BTreeMap<String, usize> = BTreeMap::new();
        for sqlstate in lock(&self.unresolved).values() {
            let count = unresolved_by
                .entry(sqlstate.clone().unwrap_or_default())
                .or_default();
            *count = count.saturating_add(1);
        }
        WriterStats {
            queued,
            unresolved: unresolved_by.values().sum(),
            unresolved_by,
            ..lock(&self.stats).clone()
        }
    }

    pub(super) fn stopped(&self) -> bool {
        lock(&self.queue).closed.is_some()
    }

    /// Resolves when the writer has stopped for good, with the reason.
    pub(super) async fn fatal(&self) -> String {
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

    /// Accepts no more operations; waiting ones are still written.
    pub(super) fn close(&self) {
        lock(&self.queue).close("the ledger is closed");
        self.wake_all();
    }

    /// Ends when everything that waited has been written or given up.
    pub(super) async fn drained(&self) {
        let mut watcher = self.drained.subscribe();
        let _ = watcher.wait_for(|drained| *drained).await;
    }
}

/// A lease that is over before anything is known of its renewal, as after the whole process stood still.
pub(super) fn lapse() -> LedgerTrouble {
    let cause = format!(
        "the database cannot be reached: this gateway's lease was not renewed for {} s",
        LEASE.as_secs()
    );
    let remedy = "it is renewed every second: if this does not end, look at the database and the network to it";
    LedgerTrouble {
        fault: Fault::new(TroubleKind::Unreachable, cause, remedy),
        since: clock::now(),
        lasts: Duration::ZERO,
        stops: true,
    }
}

/// This machine's name, to distinguish gateways.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        "gateway".to_owned()
    } else {
        name.to_owned()
    }
}

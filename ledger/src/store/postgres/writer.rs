//! The writer of a lane: queue → batch → one transaction → replies.
//!
//! All operations that wait in the lane share a transaction. Nothing is confirmed before the server has answered its COMMIT. If no
//! answer comes, the same operations are applied again under the same locks, which wait for the first attempt; their ids ensure
//! that each has one effect. When the time limit is reached, their outcome is reported as unknown.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::connector::Connector;
use super::job::Job;
use super::lanes::{Lane, NextWork, TakenBatch};
use super::link::Link;
use super::locking::Locked;
use super::needs::WantedRows;
use super::state::Shared;
use super::trouble::TransactionTrouble;
use super::{faults, fetch, flush, node};
use crate::batch::outcome::Outcome;
use crate::store::replies::Replies;
use crate::store::trouble_record::{LedgerWork, WorkUnderWay};
use crate::{Cause, CustomerId, Durability, Fault, LedgerError, Refusal, TroubleKind, lock};

/// Locked keys written concurrently, each on a connection that is opened when needed.
// Fewer, and customers that other gateways keep locked wait for each other; more, and every gateway takes more of the server's
// connections, which end first in a large fleet.
const LOCKED_AT_ONCE: usize = 4;
/// How long each of the two round trips may take. Longer than `lock_timeout`, so that a wait for a lock ends by itself.
const TRIP: Duration = Duration::from_secs(4);
/// How long a batch is tried while nothing can have happened.
// Customers wait meanwhile, and may try again after the 503 that follows.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a batch is repeated after a commit without an answer.
// Longer, because only a repetition can tell whether the commit took effect; without one the caller gets *unknown*.
const PATIENCE_UNKNOWN: Duration = Duration::from_secs(10);
/// Pause between two attempts to connect.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Attempts at a batch when others were in the way.
// The server has undone each of them, so trying again is safe; but a batch that meets the same trouble each time keeps its lane waiting.
const ATTEMPTS: usize = 8;

/// Why a batch was given up.
struct GivenUpBatch {
    error: LedgerError,
    sqlstate: Option<String>,
    jobs: Vec<Job>,
}

/// The writers of a process: one for each lane, and a few for keys that are locked elsewhere.
pub(super) struct Lanes {
    pub(super) shared: Arc<Shared>,
    pub(super) connector: Connector,
    pub(super) ledger: [u8; 16],
}

impl Lanes {
    /// Writes until the ledger is closed and everything is written.
    pub(super) async fn run(self, link: Link) {
        let rest = self.writer(Lane::Rest, Some(link));
        let common = self.writer(Lane::Common, None);
        let keys: Vec<_> = (0..LOCKED_AT_ONCE)
            .map(|_| self.writer(Lane::Locked, None))
            .collect();
        let keys: Vec<_> = keys
            .into_iter()
            .map(|writer| tokio::spawn(writer.run()))
            .collect();
        let common = tokio::spawn(common.run());
        let rest = tokio::spawn(rest.run());
        let _ = common.await;
        lock(&self.shared.queue).common_ended = true;
        self.shared.wake_all();
        for writer in keys {
            let _ = writer.await;
        }
        let link = rest.await.ok().flatten();
        // Skipped by a batch that was committed just before another lane stopped.
        self.shared.refuse_waiting();
        self.leave(link).await;
        self.shared.drained.send_replace(true);
    }

    /// Ends this node's epoch, so that the others need not wait for its silence. The writer's own connection may lead to a server
    /// that is gone, and nothing has used it since.
    async fn leave(&self, link: Option<Link>) {
        let epoch = self.shared.epoch.load(Ordering::SeqCst);
        // With bills that are due, the others wait for its silence: until then a start can still book them.
        if self.shared.has_due() || epoch == 0 || self.shared.fenced() {
            return;
        }
        let begun = Instant::now();
        // Not one to the server before a promotion, which may be silent, or take what it is told for nothing.
        let current = self.connector.servers().number();
        let mut link = link.filter(|link| !link.client.is_closed() && link.number == current);
        loop {
            let why = match link.take() {
                Some(link) => match tokio::time::timeout(TRIP, node::leave(&link, epoch)).await {
                    Ok(Ok(())) => return,
                    Ok(Err(trouble)) => trouble.words(),
                    Err(_) => "the database did not answer in time".to_owned(),
                },
                None => match self.connector.connect().await {
                    Ok(fresh) => {
                        link = Some(fresh);
                        continue;
                    }
                    Err(why) => why.to_string(),
                },
            };
            if begun.elapsed() >= PATIENCE {
                return tracing::warn!(
                    why,
                    "cannot record that this gateway has stopped; the others will notice its silence"
                );
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    fn writer(&self, lane: Lane, link: Option<Link>) -> LaneWriter {
        let (shared, connector) = (Arc::clone(&self.shared), self.connector.clone());
        LaneWriter {
            lane,
            shared,
            connector,
            link,
            ledger: self.ledger,
        }
    }
}

struct LaneWriter {
    lane: Lane,
    shared: Arc<Shared>,
    connector: Connector,
    link: Option<Link>,
    ledger: [u8; 16],
}

impl LaneWriter {
    /// Writes batches until the ledger is closed and everything in the lane is written. Returns its connection.
    async fn run(mut self) -> Option<Link> {
        while let Some(TakenBatch { jobs, customer }) = self.next_batch().await {
            if customer.is_some() {
                // Another customer may be ready whose job woke the writer beside this one, or none.
                self.shared.wake(Lane::Locked);
            }
            let done = self.process(jobs).await;
            if let Some(customer) = customer {
                lock(&self.shared.queue).written(customer, Instant::now());
            }
            if done.is_break() {
                break;
            }
        }
        // Another writer of this lane may not have learned of the end.
        self.shared.wake(self.lane);
        self.link
    }

    /// Waits for operations or a retry; `None` when closed and everything was tried.
    async fn next_batch(&mut self) -> Option<TakenBatch> {
        loop {
            let (gathering, retry_in) = {
                let mut queue = lock(&self.shared.queue);
                let gathering = match queue.next(self.lane, Instant::now()) {
                    NextWork::Batch(taken) => {
                        self.shared.note_crowd();
                        return Some(taken);
                    }
                    NextWork::Gathering(until) => Some(until),
                    NextWork::Nothing if queue.is_over(self.lane) => return None,
                    NextWork::Nothing => None,
                };
                let retry_in = if self.lane == Lane::Rest {
                    queue.retry_in(Instant::now())
                } else {
                    None
                };
                if retry_in == Some(Duration::ZERO) {
                    return Some(TakenBatch {
                        jobs: queue.take_unresolved(),
                        customer: None,
                    });
                }
                (gathering, retry_in)
            };
            let woken = self.shared.woken(self.lane);
            if let Some(until) = gathering {
                // Timed out or woken: the next iteration finds out.
                let _ = tokio::time::timeout_at(until, woken).await;
            } else if let Some(wait) = retry_in {
                let _ = tokio::time::timeout(wait, woken).await;
            } else {
                woken.await;
            }
        }
    }

    async fn process(&mut self, jobs: Vec<Job>) -> std::ops::ControlFlow<()> {
        let mut groups = VecDeque::from([jobs]);
        while let Some(jobs) = groups.pop_front() {
            match self.commit(&jobs).await {
                Ok(outcomes) => self.answer(jobs, outcomes),
                Err(TransactionTrouble::Fenced) => {
                    let jobs = groups.into_iter().chain([jobs]).flatten().collect();
                    self.stop(
                        "the other gateways considered this one dead and ended its holds",
                        jobs,
                    )
                    .await;
                    return std::ops::ControlFlow::Break(());
                }
                // One of them cannot be stored, or they block others: try each one alone.
                Err(
                    TransactionTrouble::Failed(_)
                    | TransactionTrouble::Rejected { .. }
                    | TransactionTrouble::Retry(_),
                ) if jobs.len() > 1 => {
                    groups.extend(jobs.into_iter().map(|job| vec![job]));
                }
                Err(TransactionTrouble::Unknown(why)) => self.give_up(GivenUpBatch {
                    error: LedgerError::Unknown(self.shared.record.worded(why)),
                    sqlstate: None,
                    jobs,
                }),
                Err(trouble) => {
                    let sqlstate = trouble.sqlstate().map(str::to_owned);
                    self.give_up(GivenUpBatch {
                        error: LedgerError::unavailable(self.shared.record.worded(trouble.cause())),
                        sqlstate,
                        jobs,
                    });
                }
            }
        }
        std::ops::ControlFlow::Continue(())
    }

    /// Replies to the decided ones, and moves the others to their customers' lanes.
    fn answer(&self, jobs: Vec<Job>, outcomes: Vec<Option<Result<Outcome, Refusal>>>) {
        let (mut replies, mut skipped) = (Vec::with_capacity(jobs.len()), Vec::new());
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            match outcome {
                Some(outcome) => {
                    let outcome = outcome.map_err(LedgerError::Refused);
                    replies.extend(self.shared.answer(job, outcome));
                }
                None => skipped.push(job),
            }
        }
        Replies(replies).send();
        if !skipped.is_empty() {
            let customers: BTreeSet<_> = skipped.iter().map(|job| job.customer).collect();
            lock(&self.shared.queue).skip(skipped, Instant::now());
            for _ in customers.iter().take(LOCKED_AT_ONCE) {
                self.shared.wake(Lane::Locked);
            }
        }
    }

    /// Reports the failure, and keeps operations without a caller: whatever the error was, only another attempt can end a hold
    /// with its bill. Once the ledger is closed, that is one of the next start.
    fn give_up(&self, given_up: GivenUpBatch) {
        let closing = lock(&self.shared.queue).closed.is_some();
        let mut replies = Vec::with_capacity(given_up.jobs.len());
        for job in given_up.jobs {
            if job.caller.is_none() && !closing {
                self.shared
                    .put_back(job, given_up.sqlstate.as_deref(), &given_up.error);
                continue;
            }
            if job.caller.is_none() {
                self.shared.refuse(job, given_up.error.clone());
                continue;
            }
            replies.extend(self.shared.answer(job, Err(given_up.error.clone())));
        }
        Replies(replies).send();
    }

    /// Stops all writing: every waiting operation is refused, and bills are kept as exposure.
    async fn stop(&mut self, why: &str, mut jobs: Vec<Job>) {
        {
            let mut queue = lock(&self.shared.queue);
            queue.closed = Some(why.to_owned());
            jobs.extend(queue.drain());
        }
        self.shared.wake_all();
        tracing::error!(why, "the ledger has stopped");
        let bills = jobs.iter().filter_map(|job| job.operation.finish());
        let bills = bills.map(AsRef::as_ref);
        let epoch = self.shared.epoch.load(Ordering::SeqCst);
        let stored = match &self.link {
            Some(link) => node::store_late_bills(link, epoch, bills).await,
            None => Err(TransactionTrouble::Lost("not connected".into())),
        };
        let cause = format!("the ledger's writer has stopped: {why}");
        let remedy = "it starts again by itself where a service manager restarts it; otherwise start the gateway again";
        let fault = Fault::new(TroubleKind::Stopped, cause, remedy);
        self.shared.record.set(LedgerWork::Writer, fault);
        self.shared.fatal.send_replace(Some(why.to_owned()));
        match stored {
            Ok(()) => jobs.retain(|job| job.caller.is_some()),
            Err(trouble) => tracing::error!(
                ?trouble,
                "cannot store bills of requests that other gateways have ended"
            ),
        }
        for job in jobs {
            self.shared
                .refuse(job, LedgerError::unavailable(why.to_owned()));
        }
    }

    /// Applies operations in one transaction, repeatedly until the outcome is known or the time limit is reached.
    async fn commit(&mut self, jobs: &[Job]) -> Result<Outcomes, TransactionTrouble> {
        let under_way = self.shared.record.begin(self.lane.work());
        match self.commit_with(jobs, &under_way).await {
            Ok(outcomes) => {
                under_way.succeeded();
                Ok(outcomes)
            }
            Err(trouble) => {
                if let Some(fault) = self.fault_of(&trouble) {
                    under_way.failed(fault);
                }
                Err(trouble)
            }
        }
    }

    /// What a failure is told as, unless the record says already why nothing was sent.
    fn fault_of(&self, trouble: &TransactionTrouble) -> Option<Fault> {
        let known = self.shared.uncertain().is_some();
        faults::of_batch(trouble).filter(|_| !known)
    }

    async fn commit_with(
        &mut self,
        jobs: &[Job],
        under_way: &WorkUnderWay,
    ) -> Result<Outcomes, TransactionTrouble> {
        let begun = Instant::now();
        let mut unknown: Option<Cause> = None;
        let mut attempts = 0_usize;
        loop {
            // Once an outcome is unknown, only waiting for the customer's lock can tell.
            let skips = self.lane == Lane::Common && attempts == 0;
            let trouble = match self
                .attempt(
                    jobs,
                    if skips { Locked::Skip } else { Locked::Wait },
                    under_way,
                )
                .await
            {
                Ok(outcomes) => {
                    self.note(jobs.len(), begun);
                    return Ok(outcomes);
                }
                Err(trouble) => trouble,
            };
            attempts = attempts.saturating_add(1);
            if let Some(fault) = self.fault_of(&trouble) {
                under_way.met(fault);
            }
            match &trouble {
                TransactionTrouble::Fenced => return Err(trouble),
                // Undone this time, but an earlier attempt may have gone through.
                TransactionTrouble::Failed(_) | TransactionTrouble::Rejected { .. }
                    if unknown.is_none() =>
                {
                    return Err(trouble);
                }
                TransactionTrouble::Retry(_)
                | TransactionTrouble::Busy(_)
                | TransactionTrouble::Failed(_)
                | TransactionTrouble::Rejected { .. } => {
                    if attempts >= ATTEMPTS {
                        return Err(unknown.map_or(trouble, TransactionTrouble::Unknown));
                    }
                }
                TransactionTrouble::Lost(_) => self.shared.drop_link(&mut self.link),
                TransactionTrouble::Unknown(why) => {
                    tracing::warn!(%why, "a commit got no answer; its operations are repeated");
                    let mut stats = lock(&self.shared.stats);
                    stats.unknown_commits = stats.unknown_commits.saturating_add(1);
                    drop(stats);
                    unknown = Some(why.clone());
                    self.shared.drop_link(&mut self.link);
                }
            }
            let patience = if unknown.is_some() {
                PATIENCE_UNKNOWN
            } else {
                PATIENCE
            };
            if begun.elapsed() >= patience {
                return Err(unknown.map_or(trouble, TransactionTrouble::Unknown));
            }
            if self.link.is_none() {
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }

    fn note(&self, operations: usize, begun: Instant) {
        lock(&self.shared.stats).note(operations, begun.elapsed());
    }

    async fn attempt(
        &mut self,
        jobs: &[Job],
        locked: Locked,
        under_way: &WorkUnderWay,
    ) -> Result<Outcomes, TransactionTrouble> {
        if let Some(why) = self.shared.uncertain() {
            // Sent now, it would wait, with its locks, for a standby that is not there.
            self.link = None;
            return Err(TransactionTrouble::Lost(why.into()));
        }
        if let Some(why) = self.shared.displaced() {
            return Err(TransactionTrouble::Lost(why.into()));
        }
        let number = self.connector.servers().number();
        let link = match &mut self.link {
            Some(link) if !link.client.is_closed() && link.number == number => link,
            place => {
                let connecting = self.connector.connect_for_batches();
                let link = connecting.await.map_err(TransactionTrouble::Lost)?;
                under_way.done_by(link.process());
                let confirmed = tokio::time::timeout(TRIP, node::confirm(&link, &self.shared));
                if !confirmed.await.map_err(too_late)?? {
                    return Err(TransactionTrouble::Lost(
                        self.shared.uncertain().unwrap_or_default().into(),
                    ));
                }
                place.insert(link)
            }
        };
        under_way.done_by(link.process());
        let place = TransactionContext {
            shared: &self.shared,
            ledger: self.ledger,
        };
        let result = transaction(link, jobs, &place, locked).await;
        if matches!(
            result,
            Err(TransactionTrouble::Retry(_)
                | TransactionTrouble::Busy(_)
                | TransactionTrouble::Failed(_)
                | TransactionTrouble::Rejected { .. }
                | TransactionTrouble::Fenced)
        ) {
            let undone = tokio::time::timeout(TRIP, link.client.batch_execute("ROLLBACK")).await;
            if !matches!(undone, Ok(Ok(()))) {
                self.shared.drop_link(&mut self.link);
            }
        }
        result
    }
}

/// The outcome of each operation of a batch; `None` if its customer was skipped.
type Outcomes = Vec<Option<Result<Outcome, Refusal>>>;

/// Where a transaction takes place.
struct TransactionContext<'writer> {
    shared: &'writer Shared,
    ledger: [u8; 16],
}

fn too_late(_: tokio::time::error::Elapsed) -> TransactionTrouble {
    TransactionTrouble::Lost("the database did not answer in time".into())
}

async fn transaction(
    link: &Link,
    jobs: &[Job],
    place: &TransactionContext<'_>,
    locked: Locked,
) -> Result<Outcomes, TransactionTrouble> {
    let epoch = place.shared.epoch.load(Ordering::SeqCst);
    if let [job] = jobs
        && job.operation.begins_epoch()
    {
        let run = tokio::time::timeout(TRIP, node::begin(link, epoch, &place.shared.name))
            .await
            .map_err(too_late)??;
        place.shared.confirmed.renewed(run);
        place.shared.epoch.store(run.epoch, Ordering::SeqCst);
        return Ok(vec![Some(Ok(Outcome::Epoch(run.epoch)))]);
    }
    let mut wanted = WantedRows {
        flushed: place.shared.durability == Durability::Strict,
        ..WantedRows::default()
    };
    jobs.iter().for_each(|job| wanted.add(&job.operation));
    // Also waits for the locks of customers whose holds do not exist yet: a commit without an answer may still be under way.
    let customers = jobs.iter().filter_map(|job| job.customer);
    wanted.customers.extend(customers);
    let fetched = async {
        let dead = if wanted.dead {
            fetch::add_dead(link, &mut wanted).await?
        } else {
            Vec::new()
        };
        let mut rows = fetch::fetch(link, &wanted, place.ledger, epoch, locked).await?;
        rows.dead = dead;
        Ok::<_, TransactionTrouble>(rows)
    };
    let mut rows = tokio::time::timeout(TRIP, fetched)
        .await
        .map_err(too_late)??;
    let skipped: BTreeSet<CustomerId> = match locked {
        Locked::Skip => jobs
            .iter()
            .filter_map(|job| job.customer)
            .filter(|customer| !rows.customers.contains_key(customer))
            .collect(),
        Locked::Wait => BTreeSet::new(),
    };
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in jobs {
        if job
            .customer
            .is_some_and(|customer| skipped.contains(&customer))
        {
            outcomes.push(None);
            continue;
        }
        outcomes.push(Some(job.operation.apply(&mut rows)));
    }
    let late =
        |_| TransactionTrouble::Unknown("the database did not answer a commit in time".into());
    tokio::time::timeout(TRIP, flush::flush(link, &rows))
        .await
        .map_err(late)??;
    place.shared.confirmed.note(&rows);
    Ok(outcomes)
}

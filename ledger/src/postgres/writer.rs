//! The one writer of a process: queue → batch → one transaction → replies.
//!
//! All waiting operations share a transaction. Nothing is confirmed before the server has answered its COMMIT. When that answer
//! does not come, the same operations are applied again under the same locks, which wait for the first attempt: their ids make
//! sure that each has one effect. When patience is over their outcome is reported as unknown.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::batch::Wanted;
use super::link::{Connector, Link};
use super::shared::{Job, Shared, lock};
use super::trouble::Trouble;
use super::{fetch, flush, node};
use crate::apply::apply;
use crate::operation::{Operation, Outcome};
use crate::sqlite::Durability;
use crate::tx::Fault;
use crate::{LedgerError, Refusal};

/// A batch never has more operations, so that nobody waits behind a huge one.
const MAX_BATCH: usize = 512;
/// How long each of the two trips may take. Longer than `lock_timeout`, so that a wait for a lock ends by itself.
const TRIP: Duration = Duration::from_secs(4);
/// How long a batch is tried while nothing can have happened.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a batch is repeated after a commit that was not answered.
const PATIENCE_UNKNOWN: Duration = Duration::from_secs(10);
/// Between two attempts to connect, and before abandoned holds are tried again.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Attempts of a batch that others were in the way of.
const ATTEMPTS: usize = 8;

/// Why a batch was given up.
struct GivenUp {
    error: LedgerError,
    jobs: Vec<Job>,
}

/// The writer's side.
pub(super) struct Writer {
    shared: Arc<Shared>,
    connector: Connector,
    link: Option<Link>,
    ledger: [u8; 16],
    name: String,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, connector: Connector, link: Link, ledger: [u8; 16], name: String) -> Self {
        Self { shared, connector, link: Some(link), ledger, name }
    }

    /// Writes batches until the ledger is closed and everything is written.
    pub(super) async fn run(mut self) {
        while let Some(jobs) = self.next_batch().await {
            if self.process(jobs).await.is_break() {
                break;
            }
        }
        let left = lock(&self.shared.queue).unresolved.len();
        if left > 0 {
            tracing::error!(holds = left, "holds stay open; the other gateways will end them at their checkpoints");
        } else if let Some(link) = &self.link {
            node::leave(link, self.shared.epoch.load(Ordering::SeqCst)).await;
        }
        self.shared.drained.send_replace(true);
    }

    /// Waits for operations or a retry; `None` when closed and everything was tried.
    async fn next_batch(&mut self) -> Option<Vec<Job>> {
        let mut last_try = false;
        loop {
            {
                let mut queue = lock(&self.shared.queue);
                let closing = queue.closed.is_some();
                if !queue.jobs.is_empty() {
                    return Some(take(&mut queue.jobs));
                }
                if queue.unresolved.is_empty() && closing {
                    return None;
                }
                if !queue.unresolved.is_empty() && last_try {
                    let mut waiting: VecDeque<Job> = std::mem::take(&mut queue.unresolved).into();
                    let jobs = take(&mut waiting);
                    queue.unresolved = waiting.into();
                    return Some(jobs);
                }
            }
            let retry = !lock(&self.shared.queue).unresolved.is_empty();
            if retry {
                last_try = tokio::time::timeout(RETRY_AFTER, self.shared.wake.notified()).await.is_err();
            } else {
                self.shared.wake.notified().await;
            }
        }
    }

    async fn process(&mut self, jobs: Vec<Job>) -> std::ops::ControlFlow<()> {
        let mut groups = VecDeque::from([jobs]);
        while let Some(jobs) = groups.pop_front() {
            match self.commit(&jobs).await {
                Ok(outcomes) => {
                    for (job, outcome) in jobs.into_iter().zip(outcomes) {
                        self.shared.answer(job, outcome.map_err(LedgerError::Refused));
                    }
                }
                Err(Trouble::Fenced) => {
                    let jobs = groups.into_iter().chain([jobs]).flatten().collect();
                    self.stop("the other gateways considered this one dead and ended its holds", jobs).await;
                    return std::ops::ControlFlow::Break(());
                }
                // One of them cannot be stored, or they are in the way of others: each for itself.
                Err(Trouble::Failed(_) | Trouble::Retry(_)) if jobs.len() > 1 => {
                    groups.extend(jobs.into_iter().map(|job| vec![job]));
                }
                Err(Trouble::Failed(why)) => self.give_up(GivenUp { error: LedgerError::Unavailable(why), jobs }, false),
                Err(Trouble::Retry(why) | Trouble::Lost(why)) => {
                    self.give_up(GivenUp { error: LedgerError::Unavailable(why), jobs }, true);
                }
                Err(Trouble::Unknown(why)) => self.give_up(GivenUp { error: LedgerError::Unknown(why), jobs }, true),
            }
        }
        std::ops::ControlFlow::Continue(())
    }

    /// Reports the failure, and keeps what nobody waits for.
    fn give_up(&self, given_up: GivenUp, again: bool) {
        let closing = self.shared.stopped();
        for job in given_up.jobs {
            if job.reply.is_none() && again && !closing {
                lock(&self.shared.queue).unresolved.push(job);
                continue;
            }
            if job.reply.is_none() {
                tracing::error!(error = %given_up.error, "cannot end a hold; recovery will end it at its checkpoint");
            }
            self.shared.answer(job, Err(given_up.error.clone()));
        }
    }

    /// Nothing is written any more: every operation that waits is refused, and bills are kept as exposure.
    async fn stop(&mut self, why: &str, mut jobs: Vec<Job>) {
        {
            let mut queue = lock(&self.shared.queue);
            queue.closed = Some(why.to_owned());
            jobs.extend(queue.jobs.drain(..));
            jobs.append(&mut queue.unresolved);
        }
        tracing::error!(why, "the ledger has stopped");
        let bills = jobs.iter().filter_map(|job| match &job.operation {
            Operation::Finish(finish) | Operation::Resolve(finish) => Some(finish.as_ref()),
            _ => None,
        });
        let epoch = self.shared.epoch.load(Ordering::SeqCst);
        if let Some(link) = &self.link
            && let Err(trouble) = node::store_late_bills(link, epoch, bills).await
        {
            tracing::error!(?trouble, "cannot store bills of requests that other gateways have ended");
        }
        lock(&self.shared.stats).stopped = true;
        self.shared.fatal.send_replace(Some(why.to_owned()));
        for job in jobs {
            job.reply(Err(LedgerError::Unavailable(why.to_owned())));
        }
    }

    /// Applies operations in one transaction, as often as it takes to know what became of it or until patience is over.
    async fn commit(&mut self, jobs: &[Job]) -> Result<Vec<Result<Outcome, Refusal>>, Trouble> {
        let begun = Instant::now();
        let mut unknown: Option<String> = None;
        let mut attempts = 0_usize;
        loop {
            let trouble = match self.attempt(jobs).await {
                Ok(outcomes) => {
                    self.note(jobs.len(), begun);
                    return Ok(outcomes);
                }
                Err(trouble) => trouble,
            };
            attempts = attempts.saturating_add(1);
            match &trouble {
                Trouble::Fenced => return Err(trouble),
                // Undone this time; an earlier attempt may still have gone through.
                Trouble::Failed(_) if unknown.is_none() => return Err(trouble),
                Trouble::Retry(_) | Trouble::Failed(_) => {
                    if attempts >= ATTEMPTS {
                        return Err(unknown.map_or(trouble, Trouble::Unknown));
                    }
                }
                Trouble::Lost(_) => self.drop_link(),
                Trouble::Unknown(why) => {
                    tracing::warn!(why, "a commit got no answer; its operations are repeated");
                    let mut stats = lock(&self.shared.stats);
                    stats.unknown_commits = stats.unknown_commits.saturating_add(1);
                    drop(stats);
                    unknown = Some(why.clone());
                    self.drop_link();
                }
            }
            let patience = if unknown.is_some() { PATIENCE_UNKNOWN } else { PATIENCE };
            if begun.elapsed() >= patience {
                return Err(unknown.map_or(trouble, Trouble::Unknown));
            }
            if self.link.is_none() {
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }

    fn note(&self, operations: usize, begun: Instant) {
        lock(&self.shared.stats).note(operations, begun.elapsed());
    }

    /// Gives the connection up. No cancel is sent: the server may be at work for it until a standby is back.
    fn drop_link(&mut self) {
        if let Some(link) = self.link.take()
            && !link.client.is_closed()
        {
            self.shared.drop_at_work(link.backend.clone());
        }
    }

    async fn attempt(&mut self, jobs: &[Job]) -> Result<Vec<Result<Outcome, Refusal>>, Trouble> {
        if let Some(why) = self.shared.uncertain() {
            // Sent now, it would wait with its locks for a standby that is not there.
            self.link = None;
            return Err(Trouble::Lost(why));
        }
        let link = match &mut self.link {
            Some(link) if !link.client.is_closed() => link,
            place => {
                let link = self.connector.connect().await.map_err(Trouble::Lost)?;
                if !node::confirm(&link, &self.shared).await? {
                    return Err(Trouble::Lost(self.shared.uncertain().unwrap_or_default()));
                }
                place.insert(link)
            }
        };
        let result = transaction(link, jobs, &self.shared, self.ledger, &self.name).await;
        if matches!(result, Err(Trouble::Retry(_) | Trouble::Failed(_) | Trouble::Fenced)) {
            let undone = tokio::time::timeout(TRIP, link.client.batch_execute("ROLLBACK")).await;
            if !matches!(undone, Ok(Ok(()))) {
                self.drop_link();
            }
        }
        result
    }
}

/// At most a batch. What ends the holds of dead nodes, or begins an epoch, goes alone.
fn take(jobs: &mut VecDeque<Job>) -> Vec<Job> {
    let alone = |job: &Job| matches!(job.operation, Operation::Recover { .. } | Operation::BeginEpoch { .. });
    let count = match jobs.iter().position(alone) {
        Some(0) => 1,
        Some(at) => at.min(MAX_BATCH),
        None => jobs.len().min(MAX_BATCH),
    };
    jobs.drain(..count).collect()
}

async fn transaction(
    link: &Link,
    jobs: &[Job],
    shared: &Shared,
    ledger: [u8; 16],
    name: &str,
) -> Result<Vec<Result<Outcome, Refusal>>, Trouble> {
    let too_long = |_| Trouble::Lost("the database did not answer in time".to_owned());
    let epoch = shared.epoch.load(Ordering::SeqCst);
    if let [Job { operation: Operation::BeginEpoch { .. }, .. }] = jobs {
        let run = tokio::time::timeout(TRIP, node::begin(link, epoch, name)).await.map_err(too_long)??;
        shared.confirmed.renewed(run);
        shared.epoch.store(run.epoch, Ordering::SeqCst);
        return Ok(vec![Ok(Outcome::Epoch(run.epoch))]);
    }
    let mut wanted = Wanted { flushed: shared.durability == Durability::Strict, ..Wanted::default() };
    jobs.iter().for_each(|job| wanted.add(&job.operation));
    let fetched = async {
        let dead = if wanted.dead { fetch::add_dead(link, &mut wanted).await? } else { Vec::new() };
        let mut batch = fetch::fetch(link, &wanted, ledger, epoch).await?;
        batch.dead = dead.into_iter().collect();
        Ok::<_, Trouble>(batch)
    };
    let mut batch = tokio::time::timeout(TRIP, fetched).await.map_err(too_long)??;
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in jobs {
        outcomes.push(match apply(&mut batch, &job.operation) {
            Ok(outcome) => Ok(outcome),
            Err(Fault::Refused(refusal)) => Err(refusal),
            Err(Fault::Store(never)) => match never {},
        });
    }
    let late = |_| Trouble::Unknown("the database did not answer a commit in time".to_owned());
    tokio::time::timeout(TRIP, flush::flush(link, &batch)).await.map_err(late)??;
    shared.confirmed.note(&batch);
    Ok(outcomes)
}

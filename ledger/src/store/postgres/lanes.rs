//! The queue, split into lanes, so that a customer locked by another gateway delays only its own operations.
//!
//! Operations of running requests wait in the common lane, whose batches skip locked customers. One that was skipped gets its own
//! lane, which waits for its lock; all other operations (payments, keys, sessions, recovery) share one lane. The operations of one
//! running request keep their order.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::job::Job;
use crate::CustomerId;
use crate::batch::batching::{Batching, MAX_BATCH};
use crate::store::trouble_record::LedgerWork;

/// How long a customer that was found locked keeps its lane. Each batch that finds it locked restarts this time.
// A customer that several gateways serve is found locked again and again: without its own lane each batch of the common lane would skip it
// and try anew. A second after the last of these it is most likely free, and a common batch is cheaper than one of its own.
const KEPT: Duration = Duration::from_secs(1);
/// The delay before operations that could not be written are tried again.
// What the server rejected once it mostly rejects again; nobody waits for the answer, and the money stays held meanwhile.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Which operations a connection writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Holds of customers that nobody else has locked.
    Common,
    /// Everything except holds of requests that run here.
    Rest,
    /// One of the customers that are locked elsewhere.
    Locked,
}

impl Lane {
    /// As what its batches are told.
    pub(super) const fn work(self) -> LedgerWork {
        match self {
            Self::Common => LedgerWork::Commit,
            Self::Rest => LedgerWork::Payments,
            Self::Locked => LedgerWork::LockedCustomer,
        }
    }
}

/// A batch, and the customer if it comes from a customer's lane.
pub(super) struct TakenBatch {
    pub(super) jobs: Vec<Job>,
    pub(super) customer: Option<CustomerId>,
}

/// The next work in a lane.
pub(super) enum NextWork {
    Batch(TakenBatch),
    /// A batch is being gathered until then.
    Gathering(Instant),
    Nothing,
}

/// Jobs of running requests, gathered into batches as large as the last one.
#[derive(Default)]
struct Gathered {
    jobs: VecDeque<Job>,
    batching: Batching,
    /// How long the writer that has looked waits for more.
    until: Option<Instant>,
}

impl Gathered {
    /// Adds a job, and returns whether to wake a writer: the first job starts the wait for a batch, the last ends it.
    fn push(&mut self, job: Job) -> bool {
        self.jobs.push_back(job);
        self.jobs.len() == 1 || self.jobs.len() >= self.batching.expected
    }

    fn next(&mut self, customer: Option<CustomerId>, now: Instant, closed: bool) -> NextWork {
        if self.jobs.is_empty() {
            self.until = None;
            return NextWork::Nothing;
        }
        let until = *self
            .until
            .get_or_insert_with(|| now.checked_add(self.batching.patience()).unwrap_or(now));
        if self.jobs.len() < self.batching.expected && now < until && !closed {
            return NextWork::Gathering(until);
        }
        self.until = None;
        let jobs = some(&mut self.jobs);
        self.batching.note(jobs.len());
        NextWork::Batch(TakenBatch { jobs, customer })
    }
}

/// A customer with its own lane.
struct CustomerLane {
    gathered: Gathered,
    /// Whether a batch of it is being written.
    busy: bool,
    until: Instant,
}

/// The waiting operations.
#[derive(Default)]
pub(super) struct LaneQueue {
    common: Gathered,
    rest: VecDeque<Job>,
    locked: HashMap<CustomerId, CustomerLane>,
    /// Operations without a caller that could not be written. The `Rest` lane retries them.
    pub(super) unresolved: VecDeque<Job>,
    retry_at: Option<Instant>,
    pub(super) closed: Option<String>,
    /// Whether the common lane has ended, so that no further customer gets a lane.
    pub(super) common_ended: bool,
}

impl LaneQueue {
    /// Puts a job into its lane, and returns which lane to wake.
    pub(super) fn push(&mut self, job: Job, now: Instant) -> Option<Lane> {
        let Some(customer) = job.customer else {
            self.rest.push_back(job);
            return Some(Lane::Rest);
        };
        if let Some(lane) = self.locked.get_mut(&customer) {
            // Also where the lane is idle: a job that overtook an earlier one of its request would end a hold before it was raised.
            if lane.busy || !lane.gathered.jobs.is_empty() || lane.until > now {
                let wakes = lane.gathered.push(job);
                return (wakes && !lane.busy).then_some(Lane::Locked);
            }
            self.locked.remove(&customer);
        }
        self.common.push(job).then_some(Lane::Common)
    }

    pub(super) fn waiting(&self) -> usize {
        let of_locked: usize = self
            .locked
            .values()
            .map(|lane| lane.gathered.jobs.len())
            .sum();
        self.common
            .jobs
            .len()
            .saturating_add(self.rest.len())
            .saturating_add(of_locked)
    }

    /// Takes everything that waits, because nothing will be written any more.
    pub(super) fn drain(&mut self) -> Vec<Job> {
        let of_locked = self
            .locked
            .values_mut()
            .flat_map(|lane| lane.gathered.jobs.drain(..));
        self.common
            .jobs
            .drain(..)
            .chain(self.rest.drain(..))
            .chain(of_locked)
            .chain(self.unresolved.drain(..))
            .collect()
    }

    /// The next batch of a lane.
    pub(super) fn next(&mut self, lane: Lane, now: Instant) -> NextWork {
        let closed = self.closed.is_some();
        match lane {
            Lane::Common => self.common.next(None, now, closed),
            Lane::Rest if self.rest.is_empty() => NextWork::Nothing,
            Lane::Rest => NextWork::Batch(TakenBatch {
                jobs: some(&mut self.rest),
                customer: None,
            }),
            Lane::Locked => self.next_of_locked(now, closed),
        }
    }

    /// A batch of any customer, or else the time at which the first will be ready.
    fn next_of_locked(&mut self, now: Instant, closed: bool) -> NextWork {
        let mut first: Option<Instant> = None;
        for (customer, lane) in self.locked.iter_mut().filter(|(_, lane)| !lane.busy) {
            match lane.gathered.next(Some(*customer), now, closed) {
                NextWork::Nothing => {}
                NextWork::Gathering(until) => {
                    first = Some(first.map_or(until, |first| first.min(until)))
                }
                batch @ NextWork::Batch(_) => {
                    lane.busy = true;
                    return batch;
                }
            }
        }
        first.map_or(NextWork::Nothing, NextWork::Gathering)
    }

    /// Keeps what could not be written, to retry it soon.
    pub(super) fn put_back(&mut self, job: Job, now: Instant) {
        self.unresolved.push_back(job);
        self.retry_at = now.checked_add(RETRY_AFTER);
    }

    /// Accepts no more operations.
    pub(super) fn close(&mut self, why: &str) {
        self.closed.get_or_insert_with(|| why.to_owned());
    }

    /// How long until the retry of what could not be written; `None` if there is nothing.
    pub(super) fn retry_in(&self, now: Instant) -> Option<Duration> {
        let wait = self
            .retry_at
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        (!self.unresolved.is_empty()).then_some(wait)
    }

    /// A batch of what could not be written before.
    pub(super) fn take_unresolved(&mut self) -> Vec<Job> {
        some(&mut self.unresolved)
    }

    /// Whether a lane gets no more work.
    pub(super) fn is_over(&self, lane: Lane) -> bool {
        self.closed.is_some()
            && match lane {
                Lane::Common => self.common.jobs.is_empty(),
                Lane::Rest => self.rest.is_empty() && self.unresolved.is_empty(),
                // Until the common lane has ended, its last batch may still skip a customer.
                Lane::Locked => {
                    self.common_ended
                        && self
                            .locked
                            .values()
                            .all(|lane| lane.gathered.jobs.is_empty())
                }
            }
    }

    /// Gives these jobs' customers their own lanes, and moves everything that has arrived for them since.
    pub(super) fn skip(&mut self, jobs: Vec<Job>, now: Instant) {
        let until = now.checked_add(KEPT).unwrap_or(now);
        for job in jobs {
            let Some(customer) = job.customer else {
                continue;
            };
            let new = || CustomerLane {
                gathered: Gathered::default(),
                busy: false,
                until,
            };
            self.locked
                .entry(customer)
                .or_insert_with(new)
                .gathered
                .jobs
                .push_back(job);
        }
        // What came while the batch was tried would otherwise be written before what was skipped.
        let common = std::mem::take(&mut self.common.jobs);
        for job in common {
            match job
                .customer
                .and_then(|customer| self.locked.get_mut(&customer))
            {
                Some(lane) => lane.gathered.jobs.push_back(job),
                None => self.common.jobs.push_back(job),
            }
        }
    }

    /// Notes that a customer's batch is written.
    pub(super) fn written(&mut self, customer: CustomerId, now: Instant) {
        if let Some(lane) = self.locked.get_mut(&customer) {
            lane.busy = false;
        }
        self.locked
            .retain(|_, lane| lane.busy || !lane.gathered.jobs.is_empty() || lane.until > now);
    }
}

/// At most one batch. Operations that end the holds of dead nodes, or begin an epoch, go alone.
fn some(jobs: &mut VecDeque<Job>) -> Vec<Job> {
    // They read whatever holds there are, so that nothing in their batch may change them; and a batch of 500 ends is long enough.
    let alone = |job: &Job| job.operation.recovers() || job.operation.begins_epoch();
    let count = match jobs.iter().position(alone) {
        Some(0) => 1,
        Some(at) => at.min(MAX_BATCH),
        None => jobs.len().min(MAX_BATCH),
    };
    jobs.drain(..count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Amount, NewHold, OperationId, Timestamp};

    fn open(key: u64, number: u8) -> Job {
        let request = OperationId::from_bytes([number; 16]);
        let (amount, at) = (Amount::from_picos(1), Timestamp::from_millis(1));
        let customer = CustomerId::from_random(key);
        let new = NewHold {
            request,
            customer,
            key: customer.first_key(),
            ways: vec![crate::HoldWay::exactly(amount)],
            slug: String::new(),
            family: String::new(),
            at,
        };
        Job {
            operation: new.into(),
            customer: Some(customer),
            caller: None,
        }
    }

    fn rest() -> Job {
        let now = Timestamp::from_millis(1);
        Job {
            operation: crate::Publish {
                slugs: Vec::new(),
                now,
            }
            .into(),
            customer: None,
            caller: None,
        }
    }

    /// The next batch, after the wait for a full one.
    fn taken(queue: &mut LaneQueue, lane: Lane, now: Instant) -> Vec<Job> {
        match queue.next(lane, now) {
            NextWork::Batch(taken) => taken.jobs,
            NextWork::Gathering(until) => taken(queue, lane, until),
            NextWork::Nothing => Vec::new(),
        }
    }

    fn numbers(queue: &mut LaneQueue, lane: Lane, now: Instant) -> Vec<u8> {
        let number = |job: &Job| {
            let opened = job.operation.opens();
            opened.map_or(0, |new| new.request.to_bytes()[0])
        };
        taken(queue, lane, now).iter().map(number).collect()
    }

    #[test]
    fn a_skipped_customer_keeps_its_order_and_nobody_waits_for_it() {
        let (mut queue, now) = (LaneQueue::default(), Instant::now());
        assert_eq!(queue.push(rest(), now), Some(Lane::Rest));
        for (key, number) in [(1, 1), (2, 2), (1, 3)] {
            queue.push(open(key, number), now);
        }
        let first = taken(&mut queue, Lane::Common, now);
        let (hot, done): (Vec<Job>, Vec<Job>) = first
            .into_iter()
            .partition(|job| job.customer == Some(CustomerId::from_random(1)));
        assert_eq!(done.len(), 1);
        queue.push(open(1, 4), now);
        queue.push(open(2, 5), now);
        queue.skip(hot, now);
        assert_eq!(
            queue.push(open(1, 6), now),
            Some(Lane::Locked),
            "a new one goes behind them"
        );
        assert_eq!(numbers(&mut queue, Lane::Common, now), [5]);
        assert_eq!(numbers(&mut queue, Lane::Locked, now), [1, 3, 4, 6]);
        assert_eq!(queue.push(open(1, 7), now), None, "its lane is busy");
        assert!(
            matches!(queue.next(Lane::Locked, now), NextWork::Nothing),
            "one batch of a key at a time"
        );
        queue.written(CustomerId::from_random(1), now);
        assert_eq!(numbers(&mut queue, Lane::Locked, now), [7]);
        queue.written(CustomerId::from_random(1), now);
        assert_eq!(
            queue.push(open(1, 8), now),
            Some(Lane::Locked),
            "for a while the key keeps its lane"
        );
        assert_eq!(numbers(&mut queue, Lane::Locked, now), [8]);
        queue.written(CustomerId::from_random(1), now);
        assert_eq!(queue.push(open(1, 9), now + KEPT), Some(Lane::Common));
        queue.put_back(open(2, 10), now);
        assert_eq!(
            (queue.retry_in(now), queue.retry_in(now + RETRY_AFTER)),
            (Some(RETRY_AFTER), Some(Duration::ZERO))
        );
        assert_eq!(
            (queue.take_unresolved().len(), queue.retry_in(now)),
            (1, None)
        );
        queue.closed = Some("closed".to_owned());
        assert!(!queue.is_over(Lane::Common) && !queue.is_over(Lane::Locked));
        assert_eq!((queue.waiting(), queue.drain().len()), (2, 2));
        queue.common_ended = true;
        assert!(
            [Lane::Common, Lane::Rest, Lane::Locked]
                .into_iter()
                .all(|lane| queue.is_over(lane))
        );
    }

    #[test]
    fn a_customer_with_a_lane_waits_for_as_many_as_came_last_time() {
        let (mut queue, now, key) = (
            LaneQueue::default(),
            Instant::now(),
            CustomerId::from_random(1),
        );
        queue.skip((0..8).map(|number| open(1, number)).collect(), now);
        assert_eq!(taken(&mut queue, Lane::Locked, now).len(), 8);
        queue.written(key, now);
        assert_eq!(queue.push(open(1, 8), now), Some(Lane::Locked));
        let NextWork::Gathering(until) = queue.next(Lane::Locked, now) else {
            panic!("one is not enough")
        };
        assert_eq!(
            queue.push(open(1, 9), now),
            None,
            "nobody is woken for the second"
        );
        let still = |queue: &mut LaneQueue, at| matches!(queue.next(Lane::Locked, at), NextWork::Gathering(end) if end == until);
        assert!(
            still(&mut queue, now + (until - now) / 2),
            "a second look does not begin the wait anew"
        );
        assert_eq!(numbers(&mut queue, Lane::Locked, until), [8, 9]);
    }
}

//! Heavy work, such as reading a large body or a document, on a few threads of its own; the customers who want it take turns.
//!
//! A hundred jobs of one customer delay another's first job by about one job of each waiting customer, not by a hundred. One
//! thread is left for customers who are within their budget of CPU time (`turns/budget.rs`) and have no job running, so that they
//! need not wait for those who are not. A job keeps its place until it has ended, even if its request was dropped meanwhile:
//! otherwise customers who disconnect could start any number of jobs. Must not know what the work is.

mod budget;
mod work;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::Instant;

use budget::Budgets;
pub use budget::{OF_CUSTOMER, UNPAID};
use farebox_door::byte_room::Holder;
pub use work::{Work, WorkUndone};

/// The threads give way to those that serve requests: a tenth of a contested CPU is theirs.
// Below 10 a large body would be felt in the latency of streams on the same CPU; at 19 a busy gateway would hardly read one,
// and its customers would run into `PATIENCE`.
const NICE: i32 = 10;

/// The places for heavy work, and the customers who wait for one.
#[derive(Debug)]
pub struct Turns {
    state: Mutex<TurnsState>,
    /// The threads, which start as they are needed. Without them, those of the caller's runtime do the work.
    threads: Option<Runtime>,
    /// Jobs that did not get their turn in time.
    refused: AtomicU64,
    /// Microseconds of CPU time, on these threads and on those that serve requests.
    aside: AtomicU64,
    inline: AtomicU64,
}

#[derive(Debug)]
struct TurnsState {
    free: usize,
    /// Each waiting customer once, the next one first, with the waiting jobs.
    lines: VecDeque<(Holder, VecDeque<oneshot::Sender<WorkTurn>>)>,
    /// Jobs under way.
    running: HashMap<Holder, usize>,
    budgets: Budgets,
}

/// A place; handed on when dropped.
#[derive(Debug)]
struct WorkTurn {
    turns: Arc<Turns>,
    holder: Holder,
}

/// What an observer sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkCounts {
    /// Jobs that wait for a thread.
    pub waiting: usize,
    /// Customers who are beyond their budget.
    pub over_budget: usize,
    /// Jobs that did not get their turn in time.
    pub refused: u64,
    /// CPU time on the threads of heavy work.
    pub aside: Duration,
    /// CPU time of such work on the threads that serve requests.
    pub inline: Duration,
}

impl Turns {
    /// Turns on threads of their own: half as many as CPUs, and at least two, one for customers beyond their budget and one for the
    /// others. Should the system refuse the threads, those of the caller's runtime do the work.
    #[must_use]
    pub fn start() -> Arc<Self> {
        let cpus = std::thread::available_parallelism().map_or(2, usize::from);
        // The other half stays for relaying: with as many threads as CPUs, heavy work of many customers would delay every
        // stream. With one place there would be none to reserve.
        let places = cpus.div_ceil(2).max(2);
        let threads = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(places)
            .thread_name("heavy-work")
            .on_thread_start(|| {
                // Where that is not allowed, they compete as equals.
                let _ = rustix::process::nice(NICE);
            })
            .build();
        let mut turns = Self::here(places);
        turns.threads = threads.ok();
        Arc::new(turns)
    }

    /// Turns on the threads of the caller's runtime, whose paused clock then waits for them; at least two places.
    fn here(places: usize) -> Self {
        let (refused, aside, inline) = Default::default();
        Self {
            threads: None,
            state: Mutex::new(TurnsState {
                free: places.max(2),
                lines: VecDeque::new(),
                running: HashMap::new(),
                budgets: Budgets::default(),
            }),
            refused,
            aside,
            inline,
        }
    }

    /// For tests with a paused clock.
    #[cfg(test)]
    pub(crate) fn of_test() -> Arc<Self> {
        Arc::new(Self::here(usize::MAX))
    }

    /// Does a customer's work as soon as it is the customer's turn, however long that takes; `None` if the work panics.
    pub async fn run<T, F>(self: Arc<Self>, holder: Holder, work: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let turn = self.turn(holder).await?;
        turn.run(work, true).await.map(|(done, _)| done)
    }

    /// The counters, for an observer.
    pub fn counts(&self) -> WorkCounts {
        let mut state = self.lock();
        let waiting = state.lines.iter().map(|(_, line)| line.len()).sum();
        WorkCounts {
            waiting,
            over_budget: state.budgets.over(Instant::now()),
            refused: self.refused.load(Ordering::Relaxed),
            aside: Duration::from_micros(self.aside.load(Ordering::Relaxed)),
            inline: Duration::from_micros(self.inline.load(Ordering::Relaxed)),
        }
    }

    async fn turn(self: &Arc<Self>, holder: Holder) -> Option<WorkTurn> {
        let coming = {
            let mut state = self.lock();
            if state.may_start(holder, Instant::now()) {
                state.start(holder);
                return Some(WorkTurn {
                    turns: Arc::clone(self),
                    holder,
                });
            }
            let (sender, coming) = oneshot::channel();
            match state
                .lines
                .iter_mut()
                .find(|(waiting, _)| *waiting == holder)
            {
                Some((_, line)) => line.push_back(sender),
                None => state.lines.push_back((holder, VecDeque::from([sender]))),
            }
            coming
        };
        coming.await.ok()
    }

    fn lock(&self) -> MutexGuard<'_, TurnsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnsState {
    /// The last place is for a customer within its budget who has no job yet.
    fn may_start(&mut self, holder: Holder, now: Instant) -> bool {
        // Were the last place given to anybody, a few customers with long jobs would hold all of them, and a customer with one
        // small body would wait as long as their longest job.
        self.free >= 2 || self.free == 1 && self.is_first(holder, now)
    }

    fn is_first(&mut self, holder: Holder, now: Instant) -> bool {
        !self.running.contains_key(&holder) && self.budgets.is_within(holder, now)
    }

    fn start(&mut self, holder: Holder) {
        self.free -= 1;
        *self.running.entry(holder).or_default() += 1;
    }

    fn end(&mut self, holder: Holder) {
        self.free += 1;
        if let Some(running) = self.running.get_mut(&holder) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(&holder);
            }
        }
    }

    /// The job that starts next, if a place is free for one.
    fn next(&mut self, now: Instant) -> Option<(Holder, oneshot::Sender<WorkTurn>)> {
        for (_, line) in &mut self.lines {
            // Requests that were dropped while they waited; their customer must not be passed over for a job that nobody wants.
            line.retain(|waiting| !waiting.is_closed());
        }
        self.lines.retain(|(_, line)| !line.is_empty());
        let waiting: Vec<Holder> = self.lines.iter().map(|(holder, _)| *holder).collect();
        let first = waiting
            .iter()
            .position(|holder| self.free >= 1 && self.is_first(*holder, now));
        // Customers within their budget go first even if others wait longer: those pay for their excess with waiting, not with
        // money.
        let at = first.or((self.free >= 2).then_some(0))?;
        let (holder, mut line) = self.lines.remove(at)?;
        let job = line.pop_front()?;
        if !line.is_empty() {
            // Behind all others: one job for each customer and round.
            self.lines.push_back((holder, line));
        }
        self.start(holder);
        Some((holder, job))
    }
}

impl WorkTurn {
    /// Does the work on one of the threads, and books its CPU time; `None` if it panics.
    async fn run<T, F>(self, work: F, paid: bool) -> Option<(T, Duration)>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (turns, holder) = (Arc::clone(&self.turns), self.holder);
        let booking = Arc::clone(&turns);
        let job = move || {
            // Moved into the job, so that a dropped request does not free the place while the thread is still busy.
            let _turn = self;
            let (done, took) = farebox_door::cpu::measured(work);
            booking.aside.fetch_add(micros(took), Ordering::Relaxed);
            let mut state = booking.lock();
            state.budgets.book(holder, took, paid, Instant::now());
            (done, took)
        };
        let working = match &turns.threads {
            Some(threads) => threads.spawn_blocking(job),
            None => tokio::task::spawn_blocking(job),
        };
        working.await.ok()
    }
}

impl Drop for WorkTurn {
    fn drop(&mut self) {
        let mut started = Vec::new();
        let mut state = self.turns.lock();
        state.end(self.holder);
        while let Some(next) = state.next(Instant::now()) {
            started.push(next);
        }
        // `send` may drop a turn, which takes the lock again.
        drop(state);
        for (holder, job) in started {
            // If the job was given up at this moment, its turn is dropped here, and goes to the job after it.
            let _ = job.send(WorkTurn {
                turns: Arc::clone(&self.turns),
                holder,
            });
        }
    }
}

impl Drop for Turns {
    /// A task may hold them last, and a runtime that ends in a task must not wait for its threads.
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

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
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::byte_room::Holder;
use budget::Budgets;
pub use budget::{OF_CUSTOMER, UNPAID};
pub use work::{Busy, Work};

/// The threads give way to those that serve requests: a tenth of a contested CPU is theirs.
const NICE: i32 = 10;

/// The turns of all heavy work.
static ALL: LazyLock<Turns> = LazyLock::new(|| Turns::new(places()));

/// Half of the CPUs, and at least two: one for customers beyond their budget, one for the others. Unit tests share the turns, and
/// their paused clocks would run on while a job waits for the jobs of other tests.
fn places() -> usize {
    if cfg!(test) {
        return usize::MAX;
    }
    std::thread::available_parallelism().map_or(2, |cpus| cpus.get().div_ceil(2).max(2))
}

/// The places for heavy work, and the customers who wait for one.
#[derive(Debug)]
struct Turns {
    state: Mutex<State>,
    /// Jobs that did not get their turn in time.
    refused: AtomicU64,
    /// Microseconds of CPU time, on these threads and on those that serve requests.
    aside: AtomicU64,
    inline: AtomicU64,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Each waiting customer once, the next one first, with the waiting jobs.
    lines: VecDeque<(Holder, VecDeque<oneshot::Sender<Turn>>)>,
    /// Jobs under way.
    running: HashMap<Holder, usize>,
    budgets: Budgets,
}

/// A place; handed on when dropped.
#[derive(Debug)]
struct Turn {
    turns: &'static Turns,
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

/// Does a customer's work as soon as it is the customer's turn, however long that takes; `None` if the work panics.
pub async fn run<T, F>(holder: Holder, work: F) -> Option<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let turn = ALL.turn(holder).await?;
    turn.run(work, true).await.map(|(done, _)| done)
}

/// The counters, for an observer.
#[must_use]
pub fn counts() -> WorkCounts {
    let mut state = ALL.lock();
    let waiting = state.lines.iter().map(|(_, line)| line.len()).sum();
    WorkCounts {
        waiting,
        over_budget: state.budgets.over(Instant::now()),
        refused: ALL.refused.load(Ordering::Relaxed),
        aside: Duration::from_micros(ALL.aside.load(Ordering::Relaxed)),
        inline: Duration::from_micros(ALL.inline.load(Ordering::Relaxed)),
    }
}

impl Turns {
    /// As many places as jobs may run at the same time; at least two.
    fn new(places: usize) -> Self {
        let (refused, aside, inline) = Default::default();
        Self {
            state: Mutex::new(State {
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

    async fn turn(&'static self, holder: Holder) -> Option<Turn> {
        let coming = {
            let mut state = self.lock();
            if state.may_start(holder, Instant::now()) {
                state.start(holder);
                return Some(Turn {
                    turns: self,
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The last place is for a customer within its budget who has no job yet.
    fn may_start(&mut self, holder: Holder, now: Instant) -> bool {
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
    fn next(&mut self, now: Instant) -> Option<(Holder, oneshot::Sender<Turn>)> {
        for (_, line) in &mut self.lines {
            line.retain(|waiting| !waiting.is_closed());
        }
        self.lines.retain(|(_, line)| !line.is_empty());
        let waiting: Vec<Holder> = self.lines.iter().map(|(holder, _)| *holder).collect();
        let first = waiting
            .iter()
            .position(|holder| self.free >= 1 && self.is_first(*holder, now));
        let at = first.or((self.free >= 2).then_some(0))?;
        let (holder, mut line) = self.lines.remove(at)?;
        let job = line.pop_front()?;
        if !line.is_empty() {
            self.lines.push_back((holder, line));
        }
        self.start(holder);
        Some((holder, job))
    }
}

impl Turn {
    /// Does the work on one of the threads, and books its CPU time; `None` if it panics.
    async fn run<T, F>(self, work: F, paid: bool) -> Option<(T, Duration)>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (turns, holder) = (self.turns, self.holder);
        let job = move || {
            let _turn = self;
            let (done, took) = budget::measured(work);
            turns.aside.fetch_add(micros(took), Ordering::Relaxed);
            let mut state = turns.lock();
            state.budgets.book(holder, took, paid, Instant::now());
            (done, took)
        };
        // A paused clock waits for jobs of its own runtime only.
        let threads = THREADS.as_ref().filter(|_| !cfg!(test));
        let working = match threads {
            Some(threads) => threads.spawn_blocking(job),
            None => tokio::task::spawn_blocking(job),
        };
        working.await.ok()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut started = Vec::new();
        let mut state = self.turns.lock();
        state.end(self.holder);
        while let Some(next) = state.next(Instant::now()) {
            started.push(next);
        }
        drop(state);
        for (holder, job) in started {
            // If the job was given up at this moment, its turn is dropped here, and goes to the job after it.
            let _ = job.send(Turn {
                turns: self.turns,
                holder,
            });
        }
    }
}

/// The threads, which start as they are needed. Should the system refuse them, those of the runtime do the work.
static THREADS: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(places())
        .thread_name("heavy-work")
        .on_thread_start(|| {
            // Where that is not allowed, they compete as equals.
            let _ = rustix::process::nice(NICE);
        })
        .build()
        .ok()
});

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

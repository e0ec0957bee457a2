//! CPU time: what some work took, and budgets of it that refill as time passes. Waiting for a CPU is nobody's fault and counts for
//! nobody.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

/// CPU time for each second, and how much of it may be saved up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuBudget {
    /// For each second.
    pub rate: Duration,
    /// The most that may be saved up and spent at once.
    pub burst: Duration,
}

/// What is used of a budget, and when that was.
#[derive(Debug, Default)]
pub struct BudgetUsed {
    time: Duration,
    at: Option<Instant>,
}

impl BudgetUsed {
    /// What is used now, to be added to.
    pub fn now(&mut self, of: CpuBudget, now: Instant) -> &mut Duration {
        let passed = self
            .at
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.at = Some(now);
        // A float is enough: this decides about order, never about money.
        let refilled = of.rate.mul_f64(passed.as_secs_f64());
        self.time = self.time.saturating_sub(refilled);
        &mut self.time
    }
}

/// Does some work, and measures the CPU time of this thread that it took.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = cpu_time();
    let done = work();
    (done, cpu_time().saturating_sub(before))
}

/// The same for work that waits in between, on whichever threads.
pub async fn measured_future<F: Future>(work: F) -> (F::Output, Duration) {
    let (mut work, mut took) = (pin!(work), Duration::ZERO);
    let done = std::future::poll_fn(|context| {
        let (polled, more) = measured(|| work.as_mut().poll(context));
        took = took.saturating_add(more);
        polled
    })
    .await;
    (done, took)
}

fn cpu_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    // The kernel has this clock for every thread; without it nothing would be counted, and nobody refused.
    time.map_or(Duration::ZERO, Duration::from)
}

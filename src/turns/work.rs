//! The work that one request makes before it is paid for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Turn, Turns, budget, micros};
use crate::byte_room::Holder;

/// Larger bodies are never read on a thread that serves requests: this much JSON takes about a millisecond.
const SMALL: usize = 256 * 1024;
/// How long a request waits for its customer's turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a request has made a customer's budget pay so far.
#[derive(Debug)]
pub struct Work {
    turns: Arc<Turns>,
    holder: Holder,
    spent: Duration,
}

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// The customer's turn did not come in time.
    Late,
    /// It panicked.
    Broken,
}

impl Work {
    /// The work of a customer's request.
    #[must_use]
    pub fn of(turns: &Arc<Turns>, holder: Holder) -> Self {
        Self {
            turns: Arc::clone(turns),
            holder,
            spent: Duration::ZERO,
        }
    }

    /// Reads a body of this size: here if it is small and the customer within its budget, else aside.
    ///
    /// # Errors
    /// [`Busy`].
    pub async fn read<T, F>(&mut self, bytes: usize, work: F) -> Result<T, Busy>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let within = |work: &Self| {
            let mut state = work.turns.lock();
            state.budgets.is_within(work.holder, Instant::now())
        };
        if bytes > SMALL || !within(self) {
            return self.aside(work).await;
        }
        let (done, took) = budget::measured(work);
        self.spent += took;
        self.turns.inline.fetch_add(micros(took), Ordering::Relaxed);
        let mut state = self.turns.lock();
        state.budgets.book(self.holder, took, false, Instant::now());
        Ok(done)
    }

    /// Does work on another thread when it is the customer's turn.
    ///
    /// # Errors
    /// [`Busy`].
    pub async fn aside<T, F>(&mut self, work: F) -> Result<T, Busy>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let turn: Turn = match timeout(PATIENCE, self.turns.turn(self.holder)).await {
            Ok(turn) => turn.ok_or(Busy::Broken)?,
            Err(_) => {
                self.turns.refused.fetch_add(1, Ordering::Relaxed);
                return Err(Busy::Late);
            }
        };
        let (done, took) = turn.run(work, false).await.ok_or(Busy::Broken)?;
        self.spent += took;
        Ok(done)
    }

    /// Notes that the request was admitted: it pays for its work.
    pub fn paid(&mut self) {
        let spent = std::mem::take(&mut self.spent);
        let mut state = self.turns.lock();
        state.budgets.pay(self.holder, spent, Instant::now());
    }
}

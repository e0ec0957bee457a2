//! The work that one request makes before it is paid for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Turns, WorkTurn, micros};
use farebox_door::byte_room::Holder;

/// Larger bodies are never read on a thread that serves requests: this much JSON takes about a millisecond.
// Lower, and ordinary requests pay for a hop to another thread and back; higher, and the streams that share the serving thread
// stand still while it reads.
const SMALL: usize = 256 * 1024;
/// How long a request waits for its customer's turn.
// Longer, and clients give up and repeat the request while the first still waits, which adds to the load; shorter, and a burst
// of large bodies is refused that would have been served.
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
pub enum WorkUndone {
    /// The customer's turn did not come in time.
    Late,
    /// The work panicked; nothing it did counts.
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
    /// [`WorkUndone`].
    pub async fn read<T, F>(&mut self, bytes: usize, work: F) -> Result<T, WorkUndone>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let within = |work: &Self| {
            let mut state = work.turns.lock();
            state.budgets.is_within(work.holder, Instant::now())
        };
        // Aside means in line. Whoever is beyond the budget waits there even with small bodies: thousands of them would
        // otherwise fill the serving threads without ever meeting a limit.
        if bytes > SMALL || !within(self) {
            return self.aside(work).await;
        }
        let (done, took) = farebox_door::cpu::measured(work);
        self.spent += took;
        self.turns.inline.fetch_add(micros(took), Ordering::Relaxed);
        let mut state = self.turns.lock();
        // Unpaid until admitted, because most requests that cost work and bring nothing are refused after this.
        state.budgets.book(self.holder, took, false, Instant::now());
        Ok(done)
    }

    /// Does work on another thread when it is the customer's turn.
    ///
    /// # Errors
    /// [`WorkUndone`].
    pub async fn aside<T, F>(&mut self, work: F) -> Result<T, WorkUndone>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let turn: WorkTurn = match timeout(PATIENCE, self.turns.turn(self.holder)).await {
            Ok(turn) => turn.ok_or(WorkUndone::Broken)?,
            Err(_) => {
                self.turns.refused.fetch_add(1, Ordering::Relaxed);
                return Err(WorkUndone::Late);
            }
        };
        let (done, took) = turn.run(work, false).await.ok_or(WorkUndone::Broken)?;
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

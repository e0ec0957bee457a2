//! A few blocking threads for one kind of heavy work, such as reading documents; the keys that wait take turns.
//!
//! A hundred jobs of one key delay another key's first job by about one job of each waiting key, not by a hundred. A job keeps its
//! place until it has ended, even if its request was dropped meanwhile: otherwise customers who disconnect could start any number
//! of jobs. Must not know what the work is.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::byte_room::Holder;

/// The places for one kind of work, and the keys that wait for one.
#[derive(Debug)]
pub struct Turns(Mutex<State>);

#[derive(Debug)]
struct State {
    free: usize,
    /// Each waiting key once, the next one first, with its waiting jobs.
    lines: VecDeque<(Holder, VecDeque<oneshot::Sender<Turn>>)>,
}

/// A place; handed on when dropped.
#[derive(Debug)]
struct Turn(&'static Turns);

impl Turns {
    /// As many places as jobs may run at the same time.
    #[must_use]
    pub const fn new(places: usize) -> Self {
        Self(Mutex::new(State {
            free: places,
            lines: VecDeque::new(),
        }))
    }

    /// Does a key's work on a blocking thread as soon as it is the key's turn; `None` if the work panics.
    pub async fn run<T, F>(&'static self, holder: Holder, work: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let turn = self.turn(holder).await?;
        let working = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        working.await.ok()
    }

    async fn turn(&'static self, holder: Holder) -> Option<Turn> {
        let coming = {
            let mut state = self.lock();
            if let Some(free) = state.free.checked_sub(1) {
                state.free = free;
                return Some(Turn(self));
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

    /// The next job, if one waits; else the place becomes free.
    fn next(&self) -> Option<oneshot::Sender<Turn>> {
        let mut state = self.lock();
        while let Some((holder, mut line)) = state.lines.pop_front() {
            line.retain(|waiting| !waiting.is_closed());
            let next = line.pop_front();
            if !line.is_empty() {
                state.lines.push_back((holder, line));
            }
            if next.is_some() {
                return next;
            }
        }
        state.free += 1;
        None
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(next) = self.0.next() {
            // If the job was given up at this moment, the turn comes back here, is dropped, and goes to the job after it.
            let _ = next.send(Turn(self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    /// A job that is running and ends when told to.
    async fn blocked(
        turns: &'static Turns,
    ) -> (tokio::task::JoinHandle<Option<()>>, mpsc::Sender<()>) {
        let (end, ended) = mpsc::channel();
        let (begin, begun) = oneshot::channel();
        let job = tokio::spawn(turns.run(Holder(1), move || {
            begin.send(()).unwrap();
            ended.recv().unwrap();
        }));
        begun.await.unwrap();
        (job, end)
    }

    #[tokio::test]
    async fn a_key_with_many_jobs_delays_another_by_one() {
        static TURNS: Turns = Turns::new(1);
        let (_running, end) = blocked(&TURNS).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut jobs = Vec::new();
        for (key, count) in [(1, 20), (2, 2), (3, 1)] {
            for _ in 0..count {
                let order = Arc::clone(&order);
                jobs.push(tokio::spawn(
                    TURNS.run(Holder(key), move || order.lock().unwrap().push(key)),
                ));
                tokio::task::yield_now().await;
            }
        }
        end.send(()).unwrap();
        for job in jobs {
            job.await.unwrap().unwrap();
        }
        assert_eq!(order.lock().unwrap()[..6], [1, 2, 3, 1, 2, 1]);
        assert_eq!(TURNS.lock().free, 1);
    }

    #[tokio::test]
    async fn a_job_that_was_left_keeps_its_place_until_it_ends_and_one_that_waits_does_not() {
        static TURNS: Turns = Turns::new(1);
        let (running, end) = blocked(&TURNS).await;
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        let left = tokio::spawn(TURNS.run(Holder(1), || ()));
        tokio::task::yield_now().await;
        left.abort();
        let (begin, mut begun) = oneshot::channel();
        let waiting = tokio::spawn(TURNS.run(Holder(2), move || begin.send(()).unwrap()));
        tokio::task::yield_now().await;
        assert!(
            begun.try_recv().is_err(),
            "the work that was left still runs"
        );
        end.send(()).unwrap();
        waiting.await.unwrap().unwrap();
        begun.await.unwrap();
    }
}

//! The live feed: the last requests and each new one, for its readers. Memory is bounded: a reader that falls behind is
//! disconnected, and requests never wait for a reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use farebox_ledger::lock;
use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::proxy::Record;

/// How many ended requests a new reader gets first.
const REMEMBERED: usize = 200;
/// How many requests a reader may fall behind.
const SLACK: usize = 1_024;

/// The stream of ended requests.
#[derive(Debug)]
pub struct LiveRing {
    past: Mutex<VecDeque<Arc<Record>>>,
    coming: Sender<Arc<Record>>,
}

impl Default for LiveRing {
    fn default() -> Self {
        Self {
            past: Mutex::new(VecDeque::with_capacity(REMEMBERED)),
            coming: broadcast::channel(SLACK).0,
        }
    }
}

impl LiveRing {
    /// Adds an ended request.
    pub fn push(&self, record: Arc<Record>) {
        let mut past = lock(&self.past);
        if past.len() >= REMEMBERED {
            past.pop_front();
        }
        past.push_back(Arc::clone(&record));
        // Sent under the lock, so that a reader that subscribes now sees every request exactly once. Having no reader is fine.
        let _ = self.coming.send(record);
    }

    /// Starts reading: the remembered requests, oldest first, then each one as it ends.
    pub fn follow(&self) -> LiveFollower {
        let past = lock(&self.past);
        LiveFollower {
            past: past.clone(),
            coming: self.coming.subscribe(),
        }
    }

    /// The number of readers.
    pub fn readers(&self) -> usize {
        self.coming.receiver_count()
    }
}

/// One reader.
#[derive(Debug)]
pub struct LiveFollower {
    past: VecDeque<Arc<Record>>,
    coming: Receiver<Arc<Record>>,
}

impl LiveFollower {
    /// The next request; `None` if this reader was too slow and has missed some.
    pub async fn next(&mut self) -> Option<Arc<Record>> {
        match self.past.pop_front() {
            Some(record) => Some(record),
            None => self.coming.recv().await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::OperationId;
    use farebox_protocol::Family;
    use tokio::time::Instant;

    use super::*;
    use crate::proxy::Failure;

    fn record(number: u16) -> Arc<Record> {
        let id = OperationId::new(
            farebox_ledger::Timestamp::from_millis(0),
            u128::from(number),
        );
        let mut record = Record::refused(
            &Failure::Internal,
            Family::Chat,
            crate::proxy::RefusedFacts::default(),
            id,
            Instant::now(),
            crate::proxy::Origin::default(),
        );
        record.status = number;
        Arc::new(record)
    }

    #[tokio::test]
    async fn a_reader_gets_the_past_and_then_each_new_one_once() {
        let live = LiveRing::default();
        (0..250).for_each(|number| live.push(record(number)));
        let mut reader = live.follow();
        live.push(record(250));
        for expected in 50..=250 {
            assert_eq!(reader.next().await.unwrap().status, expected);
        }
    }

    #[tokio::test]
    async fn a_slow_reader_is_let_go() {
        let live = LiveRing::default();
        let mut reader = live.follow();
        (0..2_000).for_each(|number| live.push(record(number)));
        assert!(reader.next().await.is_none());
        assert_eq!(live.readers(), 1);
        drop(reader);
        assert_eq!(live.readers(), 0);
    }
}

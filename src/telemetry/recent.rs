//! The last requests, refused ones too, for an operator who has an id and asks what became of it.
//!
//! Requests of nobody's key have a room of their own: strangers cannot push a customer's request out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::proxy::{Record, record};
use farebox_ledger::lock;

/// Requests of customers that are remembered.
pub const REMEMBERED: usize = 10_000;
/// Requests without a valid key that are remembered.
const STRANGERS: usize = 1_000;

/// What is remembered.
#[derive(Debug, Default)]
pub struct Recent {
    customers: Mutex<VecDeque<Arc<Record>>>,
    strangers: Mutex<VecDeque<Arc<Record>>>,
}

impl Recent {
    pub(super) fn note(&self, record: &Arc<Record>) {
        let (room, most) = match record.key {
            Some(_) => (&self.customers, REMEMBERED),
            None => (&self.strangers, STRANGERS),
        };
        let mut room = lock(room);
        if room.len() >= most {
            room.pop_front();
        }
        room.push_back(Arc::clone(record));
    }

    /// The request with this id: ours, or that of its answer.
    pub fn find(&self, id: &str) -> Option<Arc<Record>> {
        let ours = record::operation(id);
        let is_it = |record: &Record| match ours {
            Some(ours) => record.request_id == ours,
            None => record.answer_id.as_deref() == Some(id),
        };
        [&self.customers, &self.strangers]
            .into_iter()
            .find_map(|room| {
                let room = lock(room);
                room.iter().rev().find(|record| is_it(record)).cloned()
            })
    }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{KeyId, OperationId, Timestamp};
    use farebox_protocol::Family;
    use tokio::time::Instant;

    use super::*;
    use crate::proxy::{Failure, Origin, RefusedFacts};

    fn refused(number: u128, key: Option<KeyId>) -> Arc<Record> {
        let known = RefusedFacts {
            key,
            ..RefusedFacts::default()
        };
        let id = OperationId::new(Timestamp::from_millis(1), number);
        let failure = Failure::Overloaded;
        let (now, origin) = (Instant::now(), Origin::default());
        Arc::new(Record::refused(
            &failure,
            Family::Chat,
            known,
            id,
            now,
            origin,
        ))
    }

    #[test]
    fn the_last_ten_thousand_are_found_and_strangers_push_none_of_them_out() {
        let recent = Recent::default();
        let key = Some(KeyId::from_random(1));
        let first = refused(0, key);
        recent.note(&first);
        for number in 1..=20_000 {
            recent.note(&refused(number, None));
        }
        let id = |number| record::request_id(refused(number, None).request_id);
        assert_eq!(recent.find(&id(0)).map(|found| found.key), Some(key));
        assert!(recent.find(&id(20_000)).is_some() && recent.find(&id(19_000)).is_none());
        for number in 30_000..40_000 {
            recent.note(&refused(number, key));
        }
        assert!(recent.find(&id(0)).is_none() && recent.find(&id(30_000)).is_some());
        assert!(recent.find("chatcmpl-1").is_none());
    }
}

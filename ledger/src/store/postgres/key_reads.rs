//! Shared reads of single keys: those that arrive while a statement is under way wait for the next one, which answers all of them.
//!
//! Every request reads its key during authentication. A read never joins a statement that has already been sent, so its result is
//! never older than the request for it. Callers of the same key share what was read and copy it where they wait: memory that another
//! thread frees is cold when this one gets it back.

use std::sync::{Arc, Mutex};

use super::link::Link;
use super::readers::Readers;
use super::{faults, lists};
use crate::batch::rows::ById;
use crate::store::replies::{Caller, CallerValue, Replies};
use crate::store::trouble_record::LedgerWork;
use crate::{Key, KeyId, LedgerError, lock};

type KeyReadResult = Result<Option<Arc<Key>>, LedgerError>;

/// The callers that wait for each key.
#[derive(Debug, Default)]
pub(super) struct KeyReads(Mutex<WaitingReads>);

#[derive(Debug, Default)]
struct WaitingReads {
    readers: Vec<(KeyId, Caller<KeyReadResult>)>,
    /// Whether statements are being sent, one after another.
    busy: bool,
}

impl KeyReads {
    /// One key, read by the next statement.
    pub(super) async fn find(
        self: &Arc<Self>,
        readers: &Arc<Readers>,
        id: KeyId,
    ) -> Result<Option<Key>, LedgerError> {
        let (caller, answer) = Caller::new();
        let begins = {
            let mut waiting = lock(&self.0);
            waiting.readers.push((id, caller));
            !std::mem::replace(&mut waiting.busy, true)
        };
        if begins {
            // A separate task, because the caller may leave.
            let (shared, with) = (Arc::clone(self), Arc::clone(readers));
            readers.spawn(async move { shared.run(&with).await });
        }
        let closed = |_| LedgerError::unavailable("the ledger is closed".to_owned());
        let found = answer.await.map_err(closed)??;
        Ok(found.map(Arc::unwrap_or_clone))
    }

    async fn run(&self, readers: &Readers) {
        while let Some(waiting) = self.take() {
            let mut ids: Vec<KeyId> = waiting.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids.dedup();
            let asked = &ids;
            let under_way = readers.record().begin(LedgerWork::KeyRead);
            let reading = &under_way;
            let read = |link: Arc<Link>| async move {
                reading.done_by(link.process());
                lists::read_keys(&link, asked).await
            };
            let found = readers.read(read).await;
            under_way.ended(found.as_ref().err().map(faults::of));
            let found = found.map_err(|why| readers.unavailable(why));
            let shared = |key: Key| (key.id, Arc::new(key));
            let found: Result<ById<_, _>, _> =
                found.map(|keys| keys.into_iter().map(shared).collect());
            let answer = |(id, caller)| {
                let keys = found.as_ref().map_err(Clone::clone);
                let value = keys.map(|keys| keys.get(&id).cloned());
                CallerValue { caller, value }
            };
            Replies(waiting.into_iter().map(answer).collect()).send();
        }
    }

    /// The waiting callers; `None` if there are none, and then the next caller starts again.
    fn take(&self) -> Option<Vec<(KeyId, Caller<KeyReadResult>)>> {
        let mut waiting = lock(&self.0);
        waiting.busy = !waiting.readers.is_empty();
        waiting.busy.then(|| std::mem::take(&mut waiting.readers))
    }
}

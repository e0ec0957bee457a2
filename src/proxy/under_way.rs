//! The requests that are at a target now, by their ids, for an operator who asks where one of them is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use farebox_ledger::OperationId;

use crate::upstream::{Progress, ProgressStage};

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct UnderWay(Arc<Mutex<HashMap<OperationId, Arc<Progress>>>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Entered {
    all: UnderWay,
    id: OperationId,
    pub(super) progress: Arc<Progress>,
}

impl UnderWay {
    pub(super) fn enter(&self, id: OperationId) -> Entered {
        let progress = Arc::<Progress>::default();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(id, Arc::clone(&progress));
        Entered {
            all: self.clone(),
            id,
            progress,
        }
    }

    /// Where this request is, if it runs.
    #[must_use]
    pub fn find(&self, id: OperationId) -> Option<ProgressStage> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&id).map(|progress| progress.stage())
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.id);
    }
}

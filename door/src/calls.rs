//! Places for calls to a third party that may be slow. Half of them are for those who are known, so that strangers keep no customer
//! waiting; nobody takes more than two at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Places of each half.
const PLACES: usize = 8;
/// Places that one caller takes at once.
const OF_ONE: usize = 2;
/// How long a call waits for its place.
const PATIENCE: Duration = Duration::from_secs(10);

/// The places; `C` names a caller.
#[derive(Debug)]
pub struct CallPlaces<C> {
    known: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    taken: Arc<Mutex<HashMap<C, usize>>>,
}

/// A place, until dropped.
#[derive(Debug)]
pub struct CallPlace<C: Eq + Hash> {
    caller: C,
    taken: Arc<Mutex<HashMap<C, usize>>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<C> Default for CallPlaces<C> {
    fn default() -> Self {
        Self {
            known: Arc::new(Semaphore::new(PLACES)),
            strangers: Arc::new(Semaphore::new(PLACES)),
            taken: Arc::default(),
        }
    }
}

impl<C: Clone + Eq + Hash> CallPlaces<C> {
    /// A place for somebody who is known; it may take a moment.
    pub async fn of_known(&self, caller: C) -> Option<CallPlace<C>> {
        self.take(&self.known, caller).await
    }

    /// A place of the strangers' half, after a wait; `None` if there was none, or if the caller has as many as one may.
    pub async fn of_stranger(&self, caller: C) -> Option<CallPlace<C>> {
        self.take(&self.strangers, caller).await
    }

    async fn take(&self, places: &Arc<Semaphore>, caller: C) -> Option<CallPlace<C>> {
        let mut place = {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let own = taken.entry(caller.clone()).or_default();
            if *own >= OF_ONE {
                return None;
            }
            *own += 1;
            CallPlace {
                caller,
                taken: Arc::clone(&self.taken),
                _permit: None,
            }
        };
        let permit = timeout(PATIENCE, Arc::clone(places).acquire_owned()).await;
        place._permit = Some(permit.ok()?.ok()?);
        Some(place)
    }
}

impl<C: Eq + Hash> Drop for CallPlace<C> {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.caller) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn strangers_leave_half_of_the_places_and_one_caller_takes_two() {
        let calls = CallPlaces::default();
        let mut held = Vec::new();
        for stranger in 0..4 {
            for _ in 0..OF_ONE {
                held.push(calls.of_stranger(stranger).await.unwrap());
            }
            assert!(calls.of_stranger(stranger).await.is_none());
        }
        assert!(calls.of_stranger(9).await.is_none(), "after ten seconds");
        assert!(calls.of_known(100).await.is_some());
        held.clear();
        assert!(calls.of_stranger(9).await.is_some());
        assert!(
            calls.taken.lock().unwrap().is_empty(),
            "nobody is remembered"
        );
    }
}

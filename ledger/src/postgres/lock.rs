//! A lock that no panic can poison for good.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

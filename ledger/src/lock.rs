//! Locks a mutex even after a panic has poisoned it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it, even where somebody has panicked with it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

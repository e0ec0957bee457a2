//! Pins that targets refuse. A field that is pinned to the standard may be one that a service does not know: after three refusals the
//! target gets no pins until the files are loaded again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Refusals until a target's pins rest.
const MOST: u32 = 3;

/// What targets have refused since the files were loaded.
#[derive(Debug, Default)]
pub struct Pins {
    refused: Mutex<RefusedPins>,
    /// Some target has refused something, which is rare.
    any: AtomicBool,
}

#[derive(Debug, Default)]
struct RefusedPins {
    /// The snapshot in which they did.
    generation: u64,
    targets: HashMap<String, u32>,
}

impl Pins {
    /// What was refused in this snapshot; `None` in an older one than the newest that refused something. A request may run for an
    /// hour under the snapshot that it was admitted under, and says nothing about files that were loaded since.
    fn of(&self, generation: u64) -> Option<MutexGuard<'_, RefusedPins>> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.generation < generation {
            *refused = RefusedPins {
                generation,
                ..RefusedPins::default()
            };
        }
        (refused.generation == generation).then_some(refused)
    }

    /// Whether a target's pins rest in this snapshot. Its name is asked for only where some target has refused a pin.
    pub(super) fn rest(&self, target: impl FnOnce() -> String, generation: u64) -> bool {
        self.any.load(Ordering::Relaxed)
            && self.of(generation).is_some_and(|refused| {
                let times = refused.targets.get(&target());
                times.is_some_and(|times| *times >= MOST)
            })
    }

    /// Notes that a target has refused a pinned field.
    pub(super) fn refuse(&self, target: &str, generation: u64) {
        self.any.store(true, Ordering::Relaxed);
        if let Some(mut refused) = self.of(generation) {
            *refused.targets.entry(target.to_owned()).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_rests_after_three_refusals_until_the_next_snapshot() {
        let pins = Pins::default();
        for _ in 0..2 {
            pins.refuse("acme/large", 1);
        }
        let rest = |name: &str, generation| pins.rest(|| name.to_owned(), generation);
        assert!(!rest("acme/large", 1));
        pins.refuse("acme/large", 1);
        assert!(rest("acme/large", 1) && !rest("acme/small", 1));
        assert!(!rest("acme/large", 2));
    }

    #[test]
    fn what_an_older_snapshot_is_refused_says_nothing_about_the_files_now() {
        let pins = Pins::default();
        let rest = |generation| pins.rest(|| "acme/large".to_owned(), generation);
        for _ in 0..MOST {
            pins.refuse("acme/large", 2);
        }
        assert!(rest(2));
        pins.refuse("acme/large", 1);
        assert!(!rest(1), "an older request keeps its pins");
        assert!(rest(2), "and takes nothing from the newer count");
        pins.refuse("acme/large", 3);
        assert!(!rest(3), "the next files begin anew");
    }
}

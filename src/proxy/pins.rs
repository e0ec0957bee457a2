//! Pins that targets refuse. A field that is pinned to the standard may be one that a service does not know: after three customers'
//! refusals the target gets no pins until the files are loaded again.
//!
//! A refusal is one that names the field as its parameter, or one that is gone without the pins. One customer can write requests that
//! are refused, and a message can quote whatever a customer wrote, so neither decides alone.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use farebox_ledger::{CustomerId, lock};

/// Customers whose requests were refused until a target's pins rest for everybody.
// One or two customers may be one person, who could switch off for all what keeps them from dearer service.
const MOST: usize = 3;

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
    /// Whose requests, at most [`MOST`] of them.
    targets: HashMap<String, BTreeSet<CustomerId>>,
}

impl Pins {
    /// What was refused in this snapshot; `None` in an older one than the newest that refused something. A request may run for an
    /// hour under the snapshot that it was admitted under, and says nothing about files that were loaded since.
    fn of(&self, generation: u64) -> Option<MutexGuard<'_, RefusedPins>> {
        let mut refused = lock(&self.refused);
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
                let whose = refused.targets.get(&target());
                whose.is_some_and(|whose| whose.len() >= MOST)
            })
    }

    /// Notes that a target has refused a pinned field of a customer's request.
    pub(super) fn refuse(&self, target: &str, customer: CustomerId, generation: u64) {
        self.any.store(true, Ordering::Relaxed);
        if let Some(mut refused) = self.of(generation) {
            let whose = refused.targets.entry(target.to_owned()).or_default();
            if whose.len() < MOST {
                whose.insert(customer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(pins: &Pins, customer: u64, generation: u64) {
        pins.refuse("acme/large", CustomerId::from_random(customer), generation);
    }

    #[test]
    fn a_pin_rests_once_three_customers_were_refused_until_the_next_snapshot() {
        let pins = Pins::default();
        let rest = |name: &str, generation| pins.rest(|| name.to_owned(), generation);
        for customer in [1, 2, 2, 1, 2, 2] {
            refuse(&pins, customer, 1);
            assert!(!rest("acme/large", 1), "two customers, however often");
        }
        refuse(&pins, 3, 1);
        assert!(rest("acme/large", 1) && !rest("acme/small", 1));
        assert!(!rest("acme/large", 2));
    }

    #[test]
    fn what_an_older_snapshot_is_refused_says_nothing_about_the_files_now() {
        let pins = Pins::default();
        let rest = |generation| pins.rest(|| "acme/large".to_owned(), generation);
        for customer in 1..=3 {
            refuse(&pins, customer, 2);
        }
        assert!(rest(2));
        refuse(&pins, 4, 1);
        assert!(!rest(1), "an older request keeps its pins");
        assert!(rest(2), "and takes nothing from the newer count");
        refuse(&pins, 4, 3);
        assert!(!rest(3), "the next files begin anew");
    }
}

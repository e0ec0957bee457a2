//! Limits how many requests run at one provider at the same time. One key gets at most half of the places.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::byte_room::Holder;

/// A bounded number of places.
#[derive(Debug)]
pub(super) struct Places {
    most: u32,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: u32,
    by: HashMap<Holder, u32>,
}

/// One place; given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    holder: Holder,
}

impl Places {
    pub(super) fn new(most: u32) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    /// A place for a key, unless all are taken or the key already has half of them.
    pub(super) fn take(self: &Arc<Self>, holder: Holder) -> Result<Place, ()> {
        let mut taken = self.lock();
        let own = taken.by.get(&holder).copied().unwrap_or_default();
        if taken.all >= self.most || own >= self.most.div_ceil(2) {
            return Err(());
        }
        taken.all += 1;
        taken.by.insert(holder, own + 1);
        Ok(Place {
            places: Arc::clone(self),
            holder,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(own) = taken.by.get_mut(&self.holder) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.by.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_at_most_half_and_all_have_at_most_all() {
        let places = Places::new(4);
        let (ann, bob) = (Holder(1), Holder(2));
        let first = places.take(ann).unwrap();
        let _second = places.take(ann).unwrap();
        assert!(places.take(ann).is_err(), "half of four");
        let _bobs: Vec<Place> = (0..2).map(|_| places.take(bob).unwrap()).collect();
        assert!(places.take(Holder(3)).is_err(), "all four are taken");
        drop(first);
        assert!(places.take(Holder(3)).is_ok());
    }

    #[test]
    fn a_single_place_can_be_anybodys_and_nobody_is_remembered() {
        let places = Places::new(1);
        drop(places.take(Holder(1)).unwrap());
        assert!(places.take(Holder(2)).is_ok());
        assert!(places.lock().by.is_empty());
        assert!(Places::new(0).take(Holder(1)).is_err());
    }
}

//! Keys and customers brought in line with the defaults of the house when they are read for a batch.

use super::{Rows, SpentHour};
use crate::rule::cap::{Behind, PastSpending};
use crate::rule::defaults::StandingDefaults;
use crate::rule::hold::StoredHold;
use crate::rule::limit::{Traffic, TrafficLimits};
use crate::{Caps, OpenHold, Scope, Timestamp, UtcDay};

/// What a key or customer spent, as the database has it.
#[derive(Debug, Default)]
pub(crate) struct StoredSpending {
    /// Charges of the hours that were asked for.
    pub(crate) hours: Vec<SpentHour>,
    /// All open holds.
    pub(crate) holds: Vec<StoredHold>,
}

impl Rows {
    /// Brings a key or customer that was just read in line with the defaults. Where that needs what it spent, it is the hour since when: the
    /// store reads that, and calls [`Rows::follow`].
    pub(crate) fn fit(&mut self, of: Scope) -> Option<Timestamp> {
        let standing = self.defaults.clone();
        let (by_default, house) = StandingDefaults::of(standing.as_deref(), of);
        let behind = match of {
            Scope::Key(key) => {
                let row = self.keys.get_mut(&key)?;
                row.key.defaults = by_default;
                row.key.caps.behind(house)
            }
            Scope::Customer(customer) => {
                let customer = &mut self.customers.get_mut(&customer)?.stored.customer;
                customer.defaults = by_default;
                customer.caps.behind(house)
            }
        };
        match (behind, self.count_unlike(of)) {
            (Some(Behind::Counts(day)), _) => return Some(day.begin()),
            // What runs is counted, whenever it began.
            (_, Some(true)) => return Some(self.now()),
            (None, None) => return None,
            (Some(Behind::Limits), _) | (None, Some(false)) => {}
        }
        self.change_caps(of, |caps| caps.follow(house, None, PastSpending::NONE));
        self.count_running(of, 0);
        None
    }

    /// The same, with what it was charged in the hours since then as the database has it, and all of its open holds there.
    pub(crate) fn follow(&mut self, of: Scope, stored: StoredSpending) {
        let standing = self.defaults.clone();
        let (_, house) = StandingDefaults::of(standing.as_deref(), of);
        let hours: Vec<SpentHour> = stored
            .hours
            .into_iter()
            .chain(self.hours_added(of))
            .collect();
        let holds = self.holds_now(of, stored.holds);
        let holds: Vec<(&OpenHold, UtcDay)> =
            holds.iter().map(|hold| (&hold.open, hold.day)).collect();
        let spending = PastSpending {
            hours: &hours,
            holds: &holds,
        };
        // What counts in its caps may be another key's; of its requests at once there are its own.
        let own = holds.iter().filter(|(hold, _)| of == hold.key.into());
        let running = own.count();
        self.change_caps(of, |caps| caps.follow(house, None, spending));
        self.count_running(of, running);
    }

    /// Whether the traffic of a key must be counted from now on, or no more; `None` if that stays as it is.
    fn count_unlike(&self, of: Scope) -> Option<bool> {
        let Scope::Key(key) = of else { return None };
        let row = self.keys.get(&key)?;
        let limited = self.is_shared() && TrafficLimits::of_key(&row.key).is_some();
        (limited != row.traffic.is_some()).then_some(limited)
    }

    /// Counts what runs of a key whose limit is new, or nothing any more of one that has none.
    fn count_running(&mut self, of: Scope, running: usize) {
        let (Some(limited), Scope::Key(key)) = (self.count_unlike(of), of) else {
            return;
        };
        let running = i64::try_from(running).unwrap_or(i64::MAX);
        self.touch_key(key, |row| {
            row.traffic = limited.then_some(Traffic {
                running,
                ..Traffic::default()
            });
            row.counts_changed = true;
        });
    }

    fn change_caps(&mut self, of: Scope, change: impl FnOnce(&mut Caps)) {
        match of {
            Scope::Key(key) => self.touch_key(key, |row| {
                change(&mut row.key.caps);
                row.counts_changed = true;
            }),
            Scope::Customer(customer) => self.touch_customer(customer, |row| {
                change(&mut row.stored.customer.caps);
                row.caps_changed = true;
            }),
        }
    }

    /// The open holds of a key or customer: those of the database, as this batch has left them, and those that it has opened.
    fn holds_now(&self, of: Scope, stored: Vec<StoredHold>) -> Vec<StoredHold> {
        let is_stored = |hold: &StoredHold| {
            let mut all = stored.iter();
            all.any(|known| known.open.request == hold.open.request)
        };
        let open = self.holds.values().filter_map(|row| row.now.as_ref());
        let new = open.filter(|hold| self.is_in(of, hold.open.key) && !is_stored(hold));
        let new: Vec<StoredHold> = new.cloned().collect();
        let known =
            stored
                .into_iter()
                .filter_map(|hold| match self.holds.get(&hold.open.request) {
                    Some(row) => row.now.clone(),
                    None => Some(hold),
                });
        known.chain(new).collect()
    }
}

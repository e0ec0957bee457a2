//! Keys and customers as reads show them: with what they have by default.

use crate::batch::rows::StoredSpending;
use crate::rule::cap::{Behind, PastSpending};
use crate::rule::defaults::StandingDefaults;
use crate::table::columns::{Decoded, RowColumns};
use crate::{ByDefault, Caps, Customer, Key, OpenHold, Scope, Timestamp, UtcDay};

/// What was read of an owner of caps, and the defaults at that instant.
#[derive(Debug)]
pub(crate) struct FoundOwner<T> {
    pub(crate) one: T,
    standing: Option<Box<StandingDefaults>>,
}

/// A key, or a customer.
pub(crate) trait HasDefaults: Sized {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self>;

    /// What is brought in line in it.
    fn parts(&mut self) -> Vec<(Scope, Option<&mut ByDefault>, &mut Caps)>;
}

impl HasDefaults for Key {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        Self::read(columns)
    }

    fn parts(&mut self) -> Vec<(Scope, Option<&mut ByDefault>, &mut Caps)> {
        let (own, customer) = (&mut self.own, &mut self.customer);
        let maker = own.counts_in.map(Scope::Key);
        let mut parts = vec![
            (own.id.into(), Some(&mut own.defaults), &mut own.caps),
            (
                customer.id.into(),
                Some(&mut customer.defaults),
                &mut customer.caps,
            ),
        ];
        parts.extend(maker.map(|maker| (maker, None, &mut self.of_maker)));
        parts
    }
}

impl HasDefaults for Customer {
    fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        columns.read()
    }

    fn parts(&mut self) -> Vec<(Scope, Option<&mut ByDefault>, &mut Caps)> {
        vec![(self.id.into(), Some(&mut self.defaults), &mut self.caps)]
    }
}

impl<T: HasDefaults> FoundOwner<T> {
    pub(crate) fn read(columns: &mut impl RowColumns) -> Decoded<Self> {
        Ok(Self {
            one: T::read(columns)?,
            standing: columns.read()?,
        })
    }

    /// Fills in what it has by default, and says which caps count from which instant: what was spent and is held since then is read next.
    pub(crate) fn fit(&mut self) -> Vec<(Scope, Timestamp)> {
        let mut behind = Vec::new();
        // Most ledgers have none, and most keys no caps.
        if self.standing.is_none() && self.one.parts().iter().all(|(.., caps)| caps.is_empty()) {
            return behind;
        }
        for (of, by_default, caps) in self.one.parts() {
            let (settings, house) = StandingDefaults::of(self.standing.as_deref(), of);
            if let Some(by_default) = by_default {
                *by_default = settings;
            }
            match caps.behind(house) {
                Some(Behind::Counts(day)) => behind.push((of, day.begin())),
                Some(Behind::Limits) => follow(caps, house, StoredSpending::default()),
                None => {}
            }
        }
        behind
    }

    /// Brings the caps of one in line.
    pub(crate) fn follow(&mut self, of: Scope, spending: StoredSpending) {
        let (_, house) = StandingDefaults::of(self.standing.as_deref(), of);
        let mut parts = self.one.parts();
        if let Some((.., caps)) = parts.iter_mut().find(|(known, ..)| *known == of) {
            follow(caps, house, spending);
        }
    }
}

fn follow(caps: &mut Caps, house: &[crate::rule::cap::DefaultCap], spending: StoredSpending) {
    let holds = spending.holds.iter();
    let holds: Vec<(&OpenHold, UtcDay)> = holds.map(|hold| (&hold.open, hold.day)).collect();
    let spending = PastSpending {
        hours: &spending.hours,
        holds: &holds,
    };
    caps.follow(house, None, spending);
}

//! Defaults in the reference store: whoever they bind is brought in line at once, one by one.

use serde_json::json;

use super::operations::Done;
use super::{State, next};
use crate::book::house_act::HouseSubject;
use crate::{ByDefault, Cap, DefaultSettings, Defaults, Scope, SetDefaults, UtcDay, clock};

/// What stands: the settings, and the caps with the numbers of the acts with which they came, in the order in which they did.
#[derive(Debug, Clone, Default)]
pub(super) struct House {
    set: Defaults,
    of_keys: Vec<(Cap, i64)>,
    of_customers: Vec<(Cap, i64)>,
}

fn is_same(a: &Cap, b: &Cap) -> bool {
    (a.interval, &a.model) == (b.interval, &b.model)
}

/// The caps that were there and still are, with their limits of now, and then those that are new.
fn stand(before: &[(Cap, i64)], set: &[Cap], number: i64) -> Vec<(Cap, i64)> {
    let mut all = Vec::new();
    for (known, since) in before {
        if let Some(cap) = set.iter().find(|cap| is_same(cap, known)) {
            all.push((cap.clone(), *since));
        }
    }
    for cap in set {
        if before.iter().all(|(known, _)| !is_same(cap, known)) {
            all.push((cap.clone(), number));
        }
    }
    all
}

fn shown(set: &DefaultSettings) -> ByDefault {
    ByDefault {
        rate: set.rate,
        concurrency: set.concurrency,
        low_balance: set.low_balance,
    }
}

/// Whether two say the same, in any order.
fn says(set: &DefaultSettings, known: &DefaultSettings) -> bool {
    shown(set) == shown(known)
        && set.caps.len() == known.caps.len()
        && set.caps.iter().all(|cap| known.caps.contains(cap))
}

impl State {
    pub(super) fn set_defaults(&mut self, new: &SetDefaults) -> Done<()> {
        let SetDefaults { defaults, act } = new;
        let mut acts = self.house_acts.iter();
        if acts.any(|known| known.operation == act.operation && known.act == "set_defaults") {
            return Ok(());
        }
        self.check_unused(act.operation)?;
        defaults.check()?;
        let known = &self.house.set;
        if says(&defaults.key, &known.key) && says(&defaults.customer, &known.customer) {
            return Ok(());
        }
        let number = next(self.house_acts.len());
        let of = |set: &DefaultSettings| {
            json!({
                "rate": set.rate, "concurrency": set.concurrency, "low_balance": set.low_balance,
                "caps": set.caps,
            })
        };
        let details = json!({ "key": of(&defaults.key), "customer": of(&defaults.customer) });
        let details = details.to_string();
        self.write_house_act(HouseSubject::Defaults, "set_defaults", act, details);
        self.house = House {
            set: defaults.clone(),
            of_keys: stand(&self.house.of_keys, &defaults.key.caps, number),
            of_customers: stand(&self.house.of_customers, &defaults.customer.caps, number),
        };
        let keys = self.keys.keys().copied().map(Scope::Key);
        let customers = self.customers.keys().copied().map(Scope::Customer);
        let all: Vec<Scope> = keys.chain(customers).collect();
        all.into_iter().try_for_each(|of| self.fit_house(of))
    }

    /// Brings a key or customer in line.
    pub(super) fn fit_house(&mut self, of: Scope) -> Done<()> {
        let caps = match of {
            Scope::Key(key) => {
                if let Some(key) = self.keys.get_mut(&key) {
                    key.defaults = shown(&self.house.set.key);
                }
                self.house.of_keys.clone()
            }
            Scope::Customer(customer) => {
                if let Some(customer) = self.customers.get_mut(&customer) {
                    customer.defaults = shown(&self.house.set.customer);
                }
                self.house.of_customers.clone()
            }
        };
        self.follow_caps(of, &caps, UtcDay::of(clock::now()))
    }
}

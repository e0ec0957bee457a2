//! What keys and customers have that set nothing of their own: the defaults of the house, which a gateway takes from its catalog. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::rule::cap::{DefaultCap, PastSpending};
use crate::{Act, Amount, Cap, CapMaker, Caps, CustomerSettings, Refusal, Scope, UtcDay};

/// The defaults of the house.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Defaults {
    /// Of keys.
    pub key: DefaultSettings,
    /// Of customers.
    pub customer: DefaultSettings,
}

/// What those of a kind have that set nothing of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefaultSettings {
    /// [`CustomerSettings::rate`], or that of a key.
    pub rate: Option<u32>,
    /// [`CustomerSettings::concurrency`], or that of a key.
    pub concurrency: Option<u32>,
    /// [`CustomerSettings::low_balance`]; keys have none.
    pub low_balance: Option<Amount>,
    /// Caps of those for whom the seller set none.
    pub caps: Vec<Cap>,
}

/// The defaults of the house to put into force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetDefaults {
    /// All of them: what is not said is none.
    pub defaults: Defaults,
    /// By whom and when.
    pub act: Act,
}

/// What a key or customer has by default, caps apart. It is stored with none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ByDefault {
    /// Requests each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Requests at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// The balance below which it is low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_balance: Option<Amount>,
}

/// What was set, or else a default.
pub(super) const fn own_or<T: Copy>(own: Option<T>, default: Option<T>) -> Option<T> {
    match own {
        Some(_) => own,
        None => default,
    }
}

/// The defaults in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct StandingDefaults {
    pub(crate) key: StandingSettings,
    pub(crate) customer: StandingSettings,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct StandingSettings {
    #[serde(flatten)]
    pub(crate) defaults: ByDefault,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) caps: Vec<DefaultCap>,
}

/// The only row of their table: there is none while there are no defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DefaultsRow {
    pub(crate) id: i64,
    pub(crate) state: Box<StandingDefaults>,
}

impl DefaultsRow {
    pub(crate) const ID: i64 = 1;

    pub(crate) fn of(state: StandingDefaults) -> Self {
        Self {
            id: Self::ID,
            state: Box::new(state),
        }
    }
}

impl Defaults {
    /// Refuses what a key or customer could not be set to.
    ///
    /// # Errors
    /// [`Refusal::Limit`] or [`Refusal::NotApplicable`].
    pub fn check(&self) -> Result<(), Refusal> {
        self.key.check()?;
        if self.key.low_balance.is_some() {
            let text = "a low balance is a customer's, not a key's";
            return Err(Refusal::NotApplicable(text.to_owned()));
        }
        self.customer.check()
    }

    /// As an act tells of them.
    pub(crate) fn details(&self) -> Value {
        json!({ "key": self.key.details(), "customer": self.customer.details() })
    }
}

impl DefaultSettings {
    fn check(&self) -> Result<(), Refusal> {
        let settings = CustomerSettings {
            low_balance: self.low_balance,
            ..CustomerSettings::default()
        };
        settings.check()?;
        self.caps
            .iter()
            .enumerate()
            .try_for_each(|(at, cap)| Self::check_cap(cap, self.caps.get(..at).unwrap_or_default()))
    }

    /// Refuses a cap that nobody could set who has these.
    ///
    /// # Errors
    /// [`Refusal::Limit`].
    pub fn check_cap(cap: &Cap, before: &[Cap]) -> Result<(), Refusal> {
        let mut caps = Caps::default();
        let is_same = |known: &Cap| (known.interval, &known.model) == (cap.interval, &cap.model);
        if let Some(known) = before.iter().find(|known| is_same(known)) {
            return Err(Refusal::Limit(format!("there is a cap of {known} already")));
        }
        let mut all = before.iter().chain([cap]);
        all.try_for_each(|cap| caps.set(cap, CapMaker::Seller, UtcDay(0), PastSpending::NONE))
    }

    const fn by_default(&self) -> ByDefault {
        ByDefault {
            rate: self.rate,
            concurrency: self.concurrency,
            low_balance: self.low_balance,
        }
    }

    fn details(&self) -> Value {
        json!({
            "rate": self.rate,
            "concurrency": self.concurrency,
            "low_balance": self.low_balance,
            "caps": self.caps,
        })
    }
}

impl StandingDefaults {
    /// What keys or customers have by default, and their caps.
    pub(crate) fn of(standing: Option<&Self>, of: Scope) -> (ByDefault, &[DefaultCap]) {
        let settings = standing.map(|standing| match of {
            Scope::Key(_) => &standing.key,
            Scope::Customer(_) => &standing.customer,
        });
        settings.map_or((ByDefault::default(), &[]), |settings| {
            (settings.defaults, settings.caps.as_slice())
        })
    }

    /// Whether it says what these say.
    pub(crate) fn is(&self, defaults: &Defaults) -> bool {
        self.key.is(&defaults.key) && self.customer.is(&defaults.customer)
    }

    /// What stands when these are put into force on a day, with the act of this number.
    pub(crate) fn changed(&self, defaults: &Defaults, (number, today): (i64, UtcDay)) -> Self {
        Self {
            key: self.key.changed(&defaults.key, (number, today)),
            customer: (self.customer).changed(&defaults.customer, (number, today)),
        }
    }
}

impl StandingSettings {
    fn is(&self, set: &DefaultSettings) -> bool {
        let of_set = |cap: &Cap| self.caps.iter().any(|standing| standing.cap == *cap);
        self.defaults == set.by_default()
            && self.caps.len() == set.caps.len()
            && set.caps.iter().all(of_set)
    }

    /// A cap that stood stays where it was, with its new limit, and what it counted; new ones follow.
    fn changed(&self, set: &DefaultSettings, (number, since): (i64, UtcDay)) -> Self {
        let same = |a: &Cap, b: &Cap| a.interval == b.interval && a.model == b.model;
        let kept = self.caps.iter().filter_map(|standing| {
            let cap = set.caps.iter().find(|cap| same(cap, &standing.cap))?;
            Some(DefaultCap {
                cap: cap.clone(),
                ..standing.clone()
            })
        });
        let is_new = |cap: &&Cap| self.caps.iter().all(|standing| !same(cap, &standing.cap));
        let new = set.caps.iter().filter(is_new).map(|cap| DefaultCap {
            cap: cap.clone(),
            number,
            since,
        });
        Self {
            defaults: set.by_default(),
            caps: kept.chain(new).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CapInterval;

    fn cap(interval: CapInterval, model: Option<&str>, limit: i64) -> Cap {
        Cap {
            interval,
            model: model.map(str::to_owned),
            limit: Amount::from_picos(limit),
        }
    }

    fn caps(caps: &[Cap]) -> Defaults {
        Defaults {
            key: DefaultSettings {
                caps: caps.to_vec(),
                ..DefaultSettings::default()
            },
            ..Defaults::default()
        }
    }

    #[test]
    fn a_cap_that_stays_keeps_its_number() {
        let (day, month) = (
            cap(CapInterval::Day, None, 5),
            cap(CapInterval::Month, None, 9),
        );
        let none = StandingDefaults::default();
        assert!(none.is(&Defaults::default()));
        let first = none.changed(&caps(std::slice::from_ref(&month)), (3, UtcDay(7)));
        assert!(first.is(&caps(std::slice::from_ref(&month))) && !first.is(&Defaults::default()));
        let lower = cap(CapInterval::Month, None, 8);
        let second = first.changed(&caps(&[day.clone(), lower.clone()]), (4, UtcDay(9)));
        let numbers = |of: &StandingDefaults| -> Vec<_> {
            let caps = of.key.caps.iter();
            caps.map(|of| (of.cap.clone(), of.number, of.since))
                .collect()
        };
        assert_eq!(
            numbers(&second),
            [(lower, 3, UtcDay(7)), (day.clone(), 4, UtcDay(9))]
        );
        let third = second.changed(&caps(std::slice::from_ref(&day)), (5, UtcDay(9)));
        let back = third.changed(&caps(&[day, month.clone()]), (6, UtcDay(9)));
        assert_eq!(numbers(&back).last(), Some(&(month, 6, UtcDay(9))));
        let json = serde_json::to_string(&back).unwrap();
        assert_eq!(
            serde_json::from_str::<StandingDefaults>(&json).unwrap(),
            back
        );
    }

    #[test]
    fn what_nobody_could_set_is_no_default() {
        let fine = cap(CapInterval::Day, None, 5);
        let other = cap(CapInterval::Day, Some("m"), 7);
        assert_eq!(caps(&[fine.clone(), other]).check(), Ok(()));
        for bad in [
            cap(CapInterval::Week, None, 4),
            cap(CapInterval::Week, None, 0),
            cap(CapInterval::Day, None, 5),
        ] {
            let refused = caps(&[fine.clone(), bad.clone()]).check();
            assert!(
                matches!(refused, Err(Refusal::Limit(_))),
                "{bad}: {refused:?}"
            );
        }
        let of_key = Defaults {
            key: DefaultSettings {
                low_balance: Some(Amount::ZERO),
                ..DefaultSettings::default()
            },
            ..Defaults::default()
        };
        assert!(of_key.check().is_err());
    }
}

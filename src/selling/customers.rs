//! Customers: create them, change what was set, stop and close them.

use std::collections::BTreeMap;

use farebox_ledger::{
    Act, Amount, Customer, CustomerAct, CustomerChange, CustomerId, CustomerSettings, NewCustomer,
    PersonalData,
};

use super::Deed;
use super::values::Setting;
use crate::clock;

/// What is said of a person; what is not said stays.
#[derive(Debug, Clone, Default)]
pub struct PersonalEdit {
    /// Name on receipts.
    pub name: Option<String>,
    /// Address on receipts.
    pub address: Option<String>,
    /// Pairs that are added, or get another value.
    pub metadata: BTreeMap<String, String>,
}

impl PersonalEdit {
    /// What is said of a person of whom nothing is known; `None` if nothing is said.
    #[must_use]
    pub fn data(self) -> Option<PersonalData> {
        self.over(None)
    }

    /// What is known afterwards; `None` if nothing is said.
    fn over(self, known: Option<PersonalData>) -> Option<PersonalData> {
        if self.name.is_none() && self.address.is_none() && self.metadata.is_empty() {
            return None;
        }
        let mut data = known.unwrap_or_default();
        data.name = self.name.or(data.name);
        data.address = self.address.or(data.address);
        data.metadata.extend(self.metadata);
        data.salt = clock::random();
        Some(data)
    }
}

/// What is to be set on a customer; what is not said stays, or is the default.
#[derive(Debug, Clone, Default)]
pub struct CustomerEdit {
    /// A name for people.
    pub label: Option<String>,
    /// Its name in the seller's own system.
    pub external_id: Option<Setting<String>>,
    /// The balance below which it is low.
    pub low_balance: Option<Setting<Amount>>,
    /// Requests per second, of all its keys.
    pub rate: Option<Setting<u32>>,
    /// Requests at once, of all its keys.
    pub concurrency: Option<Setting<u32>>,
    /// Name, address and metadata.
    pub personal: PersonalEdit,
}

impl CustomerEdit {
    fn over(&self, settings: &CustomerSettings) -> CustomerSettings {
        let mut settings = settings.clone();
        if let Some(label) = &self.label {
            settings.label.clone_from(label);
        }
        if let Some(external_id) = &self.external_id {
            settings.external_id.clone_from(&external_id.0);
        }
        settings.low_balance = self.low_balance.map_or(settings.low_balance, |set| set.0);
        settings.rate = self.rate.map_or(settings.rate, |set| set.0);
        settings.concurrency = self.concurrency.map_or(settings.concurrency, |set| set.0);
        settings
    }
}

/// A new customer, without keys or money.
pub fn create(edit: CustomerEdit, act: Act) -> Deed {
    new(edit, act).into()
}

/// The same, not done yet.
pub fn new(edit: CustomerEdit, act: Act) -> NewCustomer {
    NewCustomer {
        id: clock::customer_id(),
        settings: edit.over(&CustomerSettings::default()),
        personal: edit.personal.data(),
        act,
    }
}

/// The acts that make an edit true. Data of a person is an act of its own, and settings that would not change are none beside it.
pub fn set(
    customer: &Customer,
    known: Option<PersonalData>,
    edit: CustomerEdit,
    actor: &str,
) -> Vec<Deed> {
    let settings = edit.over(&customer.settings);
    let described = edit.personal.over(known);
    let mut acts = Vec::new();
    if described.is_none() || settings != customer.settings {
        acts.push(CustomerAct::Set(settings));
    }
    acts.extend(described.map(CustomerAct::Describe));
    let deeds = acts.into_iter().map(|change| {
        let act = super::act(actor.to_owned());
        self::change(customer.id, change, act)
    });
    deeds.collect()
}

/// One change.
pub fn change(customer: CustomerId, change: CustomerAct, act: Act) -> Deed {
    CustomerChange {
        customer,
        change,
        act,
    }
    .into()
}

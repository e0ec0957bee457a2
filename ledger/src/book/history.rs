//! What acts tell about a customer and its keys, compared with what they are like.

use std::collections::BTreeSet;

use super::audit::{self, ActRecord};
use super::reader::CustomerRows;
use crate::KeyId;
use crate::rule::link::SignInLink;

/// What the acts say about a customer and its keys, each by the newest act that says it.
pub(super) struct ToldStates {
    /// Whether an act has told what the customer is like.
    customer: bool,
    /// Keys of which none has.
    keys: BTreeSet<KeyId>,
    links: Vec<SignInLink>,
}

impl ToldStates {
    pub(super) fn of(rows: &CustomerRows) -> Self {
        Self {
            customer: false,
            keys: rows.keys.iter().map(|(key, _)| key.id).collect(),
            links: rows.links.clone(),
        }
    }

    /// Compares what an act says, unless a newer one has, and returns the faults.
    pub(super) fn by(&mut self, name: &str, rows: &CustomerRows, act: &ActRecord) -> Vec<String> {
        let record = &act.record;
        let names = audit::names_customer(&act.state);
        let customer = (names && !self.customer).then_some(&rows.stored.customer);
        self.customer |= names;
        let key = record.key.filter(|key| self.keys.remove(key));
        let key = key.and_then(|key| rows.key(key));
        if record.act == "link" {
            self.links.retain(|link| {
                Some(link.key) != record.key
                    || audit::link_details(&link.token, link.expires) != record.details
            });
        }
        let mut faults = Vec::new();
        let (of_customer, of_key) = audit::differs(&act.state, customer, key);
        if of_customer {
            faults.push(format!(
                "{name}: settings, status or caps were changed without an audit record"
            ));
        }
        if let Some(key) = key.filter(|_| of_key) {
            faults.push(format!(
                "{name}: key {}: settings, status or secret were changed without an audit record",
                key.id
            ));
        }
        faults
    }

    /// What no act has said.
    pub(super) fn faults(&self, name: &str, rows: &CustomerRows) -> Vec<String> {
        let mut faults: Vec<String> = self
            .keys
            .iter()
            .map(|key| format!("{name}: key {key}: no act tells of its creation"))
            .collect();
        let customer = &rows.stored.customer;
        let first = rows.key(customer.id.first_key());
        let is_upgraded = first.is_some_and(|key| audit::is_as_upgraded(customer, key));
        if !self.customer && !is_upgraded {
            faults.push(format!(
                "{name}: settings, status or caps were changed without an audit record"
            ));
        }
        if !self.links.is_empty() {
            faults.push(format!(
                "{name}: has a sign-in link without an audit record"
            ));
        }
        faults
    }
}

//! Auto top-up under `/api/v1`: what is told of payments that failed.

use farebox_ledger::Outcome;
use farebox_selling::auto_top_up::{AutoTopUpDocument, TopUpFailedDocument};
use farebox_selling::value::CustomerName;
use serde_json::{Value, json};

use super::call::ToldTo;
use crate::clock;

/// Who sells charges cards of customers that it may not read: it is told no more than that the failure is known.
pub(super) fn failed(outcome: &Outcome, told: &ToldTo) -> (u16, Value) {
    let Outcome::Customer(customer) = outcome else {
        return (told.status, json!({}));
    };
    let known = told.token.may_read(customer).then_some(customer);
    let document = TopUpFailedDocument {
        reference: told.named.clone(),
        customer: CustomerName(customer.id),
        auto_top_up: known.and_then(|known| AutoTopUpDocument::of(known, clock::now())),
    };
    (told.status, json!(document))
}

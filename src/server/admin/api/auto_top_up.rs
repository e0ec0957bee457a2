//! Auto top-up under `/api/v1`: what is told of rules, of owners who came to a shop, and of payments that were asked for or failed.

use farebox_ledger::{Outcome, TokenRole, TopUpWish};
use farebox_selling::auto_top_up::{
    AutoTopUpDocument, TopUpFailedDocument, VisitDocument, WantedDocument,
};
use farebox_selling::value::CustomerName;
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::{ApiCall, ToldTo};
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

/// A rule that was set or removed. Who sells is told no more than that of a customer that it may not read.
pub(super) fn ruled(outcome: &Outcome, told: &ToldTo) -> (u16, Value) {
    let document = farebox_selling::document(outcome);
    let Outcome::Customer(customer) = outcome else {
        return (told.status, document);
    };
    if told.token.may_read(customer) {
        return (told.status, document);
    }
    let rule = json!({ "id": document["id"], "auto_top_up": document["auto_top_up"] });
    (told.status, rule)
}

pub(super) fn visited(outcome: &Outcome, told: &ToldTo) -> (u16, Value) {
    let Outcome::Key(key) = outcome else {
        return (told.status, json!({}));
    };
    (told.status, json!(VisitDocument::from(&**key)))
}

/// A payment that was asked for. Who sells sees those that a rule of its own asked for, as long as that stands.
pub(super) async fn wanted(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let unknown = || {
        let message = format!("no rule asks for {:?}", call.parameter());
        ApiError::new(404, "top_up_not_found", message)
    };
    let (customer, number) = TopUpWish::named(call.parameter()).ok_or_else(unknown)?;
    let found = call.ledger().find_customer(customer).await?;
    let found = found.ok_or_else(unknown)?;
    let by = found.auto_top_up.as_ref().and_then(|auto| auto.by);
    if call.sells() && by != Some(call.token.id) {
        return Err(unknown());
    }
    let mut document = WantedDocument::of(&found, number, call.now).ok_or_else(unknown)?;
    if call.token.role == TokenRole::Read {
        document.processor_ref = None;
    }
    Ok(json!(document).into())
}

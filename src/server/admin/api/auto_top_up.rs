//! Auto top-up under `/api/v1`: the rule, and payments that failed.

use std::sync::Arc;

use farebox_ledger::{Outcome, TopUpWish};
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use crate::clock;
use crate::selling::{auto_top_up, documents};

pub(super) async fn set(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (body, customer) = (&call.body, call.customer_id()?);
    let rule = auto_top_up::rule(
        body.usd("threshold")?.unwrap_or_default(),
        body.usd("amount")?,
        body.usd("target")?,
        body.count("per_month")?.unwrap_or_default(),
    );
    let rule = rule.map_err(|why| ApiError::bad("missing_field", why))?;
    call.perform(auto_top_up::set(customer, rule, call.act()))
        .await
}

pub(super) async fn clear(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let deed = auto_top_up::clear(call.customer_id()?, call.act());
    Ok(documents::outcome(&call.apply(deed).await?).into())
}

/// Who sells charges cards of customers that it may not read: it is told no more than that the failure is known.
pub(super) async fn failed(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let named = call.parameter().to_owned();
    let deed = auto_top_up::failed(&named, call.body.text("reason"), call.act());
    let deed = deed.ok_or_else(|| {
        let message = format!(
            "{named:?} is not the reference of a top_up.wanted; they look like {}",
            TopUpWish::EXAMPLE
        );
        ApiError::new(404, "top_up_not_found", message)
    })?;
    let (token, status) = (call.token.clone(), call.route.status);
    let show = move |outcome: &Outcome| {
        let Outcome::Customer(customer) = outcome else {
            return (status, json!({}));
        };
        let rule = match token.may_read(customer) {
            true => auto_top_up::document(customer, clock::now()),
            false => Value::Null,
        };
        let document = json!({ "reference": named, "customer": customer.id, "auto_top_up": rule });
        (status, document)
    };
    call.perform_as(deed, Arc::new(show)).await
}

//! Subscriptions to plans under `/api/v1`.

use farebox_ledger::{Outcome, SubscriptionId};
use farebox_selling::plan::PlanSoldDocument;
use farebox_selling::subscription::{
    self, KnownSubscription, SoldPlanDocument, WhichSubscriptions,
};
use farebox_selling::value::CustomerName;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::{ApiCall, NamedInPath as _, ToldTo};
use super::money;
use super::pages::{self, ListPage};

/// The list's name in its cursors.
const LIST: &str = "subscriptions";

/// Whose subscriptions.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WhoseSubscriptions {
    /// Only subscriptions of this customer
    customer: Option<CustomerName>,
}

pub(super) async fn on_sale(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let config = call.admin.front.proxy.config.current();
    let plans = config.catalog.sold_plans();
    Ok(pages::whole(plans.map(SoldPlanDocument::from)))
}

pub(super) async fn list(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (which, page): (WhichSubscriptions, ListPage) = (call.read()?, call.read()?);
    let named = match call.parameters.is_empty() {
        true => call.read::<WhoseSubscriptions>()?.customer,
        false => None,
    };
    let whose = call.whose(named, LIST).await?;
    let after = page.place(LIST)?;
    let place = |known: &KnownSubscription| {
        let (at, id) = subscription::place(known);
        (at.millis(), id.to_i64())
    };
    let mut found = which.read(call.ledger(), whose).await?;
    found.retain(|known| {
        after.is_none_or(|after| place(known) > after) && page.spans(known.of.state.created_at)
    });
    let row = |known: &KnownSubscription| known.document(call.now);
    page.answer(LIST, &found, row, place)
}

pub(super) async fn show(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let found = subscription::find(call.ledger(), SubscriptionId::named(call)?).await?;
    call.check_may_read(&found.customer)?;
    Ok(json!(found.document(call.now)).into())
}

/// Periods that were sold or given: as a payment, 200 if it was known, and 202 if it could not be booked. What the customer has is shown to
/// those who may read it.
pub(super) fn sold(outcome: &Outcome, told: &ToldTo) -> (u16, Value) {
    let (status, shown) = match outcome {
        Outcome::Payment(_) => money::moved(outcome, told),
        Outcome::PlanAnswer(answer) if answer.repeated => (200, Value::Null),
        _ => (told.status, Value::Null),
    };
    let mut document = json!(PlanSoldDocument::of(outcome));
    if !shown.is_null() && shown["customer"].is_null() {
        document["subscription"] = Value::Null;
    }
    if let (Value::Object(all), Value::Object(shown)) = (&mut document, shown) {
        all.extend(shown);
    }
    (status, document)
}

/// A subscription that was changed. What its customer uses of it is shown to those who may read it.
pub(super) fn changed(outcome: &Outcome, told: &ToldTo) -> (u16, Value) {
    let mut document = farebox_selling::document(outcome);
    if let Outcome::PlanAnswer(answer) = outcome
        && !told.token.may_read(&answer.customer)
    {
        (document["period"], document["windows"]) = (Value::Null, json!([]));
    }
    (told.status, document)
}

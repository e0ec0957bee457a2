//! Grants under `/api/v1`.

use farebox_ledger::{GrantId, GrantRecord, Outcome, Timestamp};
use farebox_selling::grant::{self, GrantDocument, WhichGrants};
use farebox_selling::value::CustomerName;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::{ApiCall, NamedInPath as _, ToldTo};
use super::pages::{self, ListPage};

/// The list's name in its cursors.
const LIST: &str = "grants";

/// Whose grants.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WhoseGrants {
    /// Only grants of this customer
    customer: Option<CustomerName>,
}

pub(super) async fn list(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (which, page): (WhichGrants, ListPage) = (call.read()?, call.read()?);
    let named = match call.parameters.is_empty() {
        true => call.read::<WhoseGrants>()?.customer,
        false => None,
    };
    let whose = call.whose(named, LIST).await?;
    let after = page.place(LIST)?.and_then(pages::grant_place);
    let after = after.or(page.until().map(before_instant));
    let most = page.rows()?.saturating_add(1);
    let mut found = which.read(call.ledger(), whose, after, Some(most)).await?;
    found.retain(|record| page.since().is_none_or(|since| record.created_at >= since));
    let place = |record: &GrantRecord| (record.created_at.millis(), record.grant.id.to_i64());
    let row = |record: &GrantRecord| GrantDocument::of(record, call.now);
    page.answer(LIST, &found, row, place)
}

/// A place before everything of an instant, where the newest are first.
fn before_instant(until: Timestamp) -> (Timestamp, GrantId) {
    (until, GrantId::from_random(0))
}

pub(super) async fn show(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let found = grant::find(call.ledger(), GrantId::named(call)?).await?;
    if call.sells() {
        let of = found.grant.customer;
        call.check_may_read(&farebox_selling::reads::customer(call.ledger(), of).await?)?;
    }
    Ok(json!(GrantDocument::of(&found, call.now)).into())
}

/// A grant that was given: 200 if it was known.
pub(super) fn given(outcome: &Outcome, told: &ToldTo) -> (u16, Value) {
    let known = match outcome {
        Outcome::GrantAnswer(answer) => answer.repeated,
        _ => false,
    };
    let status = if known { 200 } else { told.status };
    (status, farebox_selling::document(outcome))
}

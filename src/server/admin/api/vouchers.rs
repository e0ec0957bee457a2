//! Lots of vouchers under `/api/v1`.

use farebox_ledger::{Lot, LotId};
use serde_json::Value;

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use super::pages::ListPage;
use crate::selling::documents;
use crate::selling::vouchers::{self, LotTerms};

/// The list's name in its cursors.
const LIST: &str = "vouchers";

pub(super) async fn create(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let body = &call.body;
    let terms = LotTerms {
        count: body.count("count")?.map_or(0, |count| count as usize),
        amount: body.usd("amount")?.unwrap_or_default(),
        expires: body.expiry("expires_at")?,
        once_per_customer: body.flag("once_per_customer"),
    };
    let deed = vouchers::create(terms, call.act());
    call.perform(deed.map_err(|why| ApiError::bad("invalid_field", why))?)
        .await
}

pub(super) async fn list(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (query, page) = (&call.query, ListPage::of(&call.query)?);
    let (since, until) = (query.instant("since")?, query.instant("until")?);
    let status = query.text("status");
    let after = page.place(LIST)?;
    let place = |lot: &Lot| (lot.created_at.millis(), lot.id.to_i64());
    let mut found = call.ledger().lots().await?;
    found.retain(|lot| {
        after.is_none_or(|after| place(lot) > after)
            && since.is_none_or(|since| lot.created_at >= since)
            && until.is_none_or(|until| lot.created_at < until)
            && (status.as_deref()).is_none_or(|word| documents::lot_status(lot, call.now) == word)
    });
    let more = found.len() > page.limit;
    found.truncate(page.limit);
    let next = found.last().filter(|_| more).map(place);
    let rows: Vec<Value> = found
        .iter()
        .map(|lot| documents::lot(lot, call.now))
        .collect();
    Ok(page.answer(LIST, rows, next))
}

pub(super) async fn void(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let lot = call.parameter().parse::<LotId>();
    let lot = lot.map_err(|error| ApiError::new(404, "lot_not_found", error.to_string()))?;
    call.perform(vouchers::void(lot, call.act())).await
}

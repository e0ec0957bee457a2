//! What `/api/v1` reads of journal, usage, payments, requests and models.

use std::collections::BTreeMap;

use farebox_ledger::search;
use farebox_ledger::{
    EntryQuery, Event, KeyId, MarginBy, MarginOrder, MarginQuery, OperationId, Payment, Timestamp,
    UsageRow, document,
};
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use super::fields::of_field;
use super::pages::{self, ListPage};
use super::table::ApiTask;
use crate::proxy::record;
use crate::selling::{documents, values};
use crate::server::admin::requests;

/// The list's name in its cursors.
const LIST: &str = "entries";
/// How far back sums go unless a request says.
const USUAL_DAYS: i64 = 30;
/// How far back a charge is looked for by its answer's id: no index has these, because one would cost every settlement.
const ANSWER_DAYS: i64 = 7;
const DAY_MS: i64 = 86_400_000;

pub(super) async fn entries(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (query, page) = (&call.query, ListPage::of(&call.query)?);
    let mut asked = EntryQuery {
        since: query.instant("since")?,
        until: query.instant("until")?,
        before: page.place(LIST)?.map(|(position, _)| position),
        limit: Some(page.limit.saturating_add(1)),
        ..EntryQuery::default()
    };
    if call.route.task == ApiTask::EntriesOf {
        asked.customer = Some(call.customer().await?.id);
    } else {
        asked.customer = query.customer("customer")?;
        let key = query.text("key").map(|id| values::key_id(&id)).transpose();
        asked.key = key.map_err(|why| of_field("key", &why))?;
    }
    if let Some(id) = asked.customer.filter(|_| call.sells()) {
        call.check_may_read(&crate::selling::reads::customer(call.ledger(), id).await?)?;
    } else if call.sells() {
        let message = "a token that sells reads the journal of one customer; name it: ?customer=";
        return Err(ApiError::new(403, "not_yours", message));
    }
    if let Some(reference) = query.text("reference") {
        let mut found = search::with_reference(call.ledger(), &reference).await?;
        found.retain(|entry| {
            (asked.customer).is_none_or(|customer| entry.customer == customer)
                && asked.key.is_none_or(|key| entry.key == Some(key))
                && asked.since.is_none_or(|since| entry.at >= since)
                && asked.until.is_none_or(|until| entry.at < until)
        });
        found.reverse();
        let rows: Vec<Value> = found.iter().map(document::json).collect();
        return Ok(pages::whole(&rows));
    }
    let mut found = call.ledger().entries(asked).await?;
    found.reverse();
    let more = found.len() > page.limit;
    found.truncate(page.limit);
    let next = found.last().filter(|_| more);
    let next = next.map(|entry| (entry.position, 0));
    Ok(page.answer(LIST, documents::entries(&found), next))
}

/// `since` and `until` of sums.
fn times(call: &ApiCall<'_>) -> Result<(Timestamp, Timestamp), ApiError> {
    let until = call.query.instant("until")?.unwrap_or(call.now);
    let usual = until.millis().saturating_sub(USUAL_DAYS * DAY_MS);
    let since = call.query.instant("since")?;
    let since = since.unwrap_or(Timestamp::from_millis(usual));
    if since >= until {
        return Err(of_field("since", "it is not before `until`"));
    }
    Ok((since, until))
}

pub(super) async fn usage(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer().await?;
    let (since, until) = times(call)?;
    let used: BTreeMap<KeyId, Vec<UsageRow>> =
        (call.ledger().usage_by_key(customer.id, since, until)).await?;
    let rows = used.iter().flat_map(|(key, rows)| {
        rows.iter().map(move |row| {
            json!({
                "key": key,
                "hour": row.hour,
                "slug": row.slug,
                "requests": row.requests,
                "usage": row.usage,
                "charge": row.charge,
            })
        })
    });
    let mut rows: Vec<Value> = rows.collect();
    rows.sort_by_key(|row| row["hour"].as_str().map(str::to_owned));
    Ok(pages::whole(&rows))
}

/// Events after one that the caller has, oldest first: who goes on from the last one it got misses none.
pub(super) async fn events(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let page = ListPage::of(&call.query)?;
    let after = call.query.text("after");
    let after = after.map(|id| id.parse::<OperationId>()).transpose();
    let after =
        after.map_err(|_| of_field("after", "send the `id` of an event as it was, as in evt_…"))?;
    let found = call.admin.ledger.events(after, page.limit).await?;
    let next = found.last().map(|event| event.document()["id"].clone());
    let rows: Vec<Value> = found.iter().map(Event::document).collect();
    let has_more = rows.len() == page.limit;
    Ok(json!({ "data": rows, "has_more": has_more, "next_cursor": next }).into())
}

pub(super) async fn unapplied(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let found = call.ledger().unapplied().await?;
    let rows: Vec<Value> = found.iter().map(documents::payment).collect();
    Ok(pages::whole(&rows))
}

pub(super) async fn payment(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    Ok(documents::payment(&own_payment(call).await?).into())
}

/// The payment that the path names, if this token may see it.
pub(super) async fn own_payment(call: &ApiCall<'_>) -> Result<Payment, ApiError> {
    let reference = call.parameter();
    let found = call.ledger().payment(reference).await?;
    let found = found.ok_or_else(|| {
        ApiError::new(
            404,
            "payment_not_found",
            format!(
                "there is no payment {reference:?} with particulars; a top-up by command has none until something of it goes back, and \
                 stands under /entries?reference="
            ),
        )
    })?;
    if call.sells() && found.token != Some(call.token.id) {
        let message = format!("payment {reference:?} was not booked by this token");
        return Err(ApiError::new(403, "not_yours", message));
    }
    Ok(found)
}

pub(super) async fn request(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let id = call.parameter();
    let mut found = requests::find(call.admin, id).await;
    if found.is_none() {
        found = by_answer(call, id).await?;
    }
    let unknown = || ApiError::new(404, "request_not_found", requests::unknown());
    let found = found.ok_or_else(unknown)?;
    if call.sells() {
        let customer = found["entry"]["customer"].as_str();
        let customer = customer
            .and_then(|id| id.parse().ok())
            .ok_or_else(unknown)?;
        call.check_may_read(&crate::selling::reads::customer(call.ledger(), customer).await?)?;
    }
    Ok(found.into())
}

/// A charge of the last days, found by its answer's id.
async fn by_answer(call: &ApiCall<'_>, id: &str) -> Result<Option<Value>, ApiError> {
    let oldest = call.now.millis().saturating_sub(ANSWER_DAYS * DAY_MS);
    let since = Some(Timestamp::from_millis(oldest));
    let found = search::by_answer(call.ledger(), id, since).await?;
    Ok(found.map(|entry| {
        json!({
            "request_id": entry.request().map(record::request_id),
            "record": null,
            "running": null,
            "under_way": null,
            "entry": document::json(&entry),
        })
    }))
}

pub(super) fn models(call: &ApiCall<'_>) -> ApiReply {
    let config = call.admin.front.proxy.config.current();
    let rows: Vec<Value> = config.catalog.rows().iter().map(|row| json!(row)).collect();
    pages::whole(&rows)
}

pub(super) async fn margin(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (from, to) = times(call)?;
    let by = match call.query.text("by").as_deref() {
        Some("target") => MarginBy::Target,
        Some("class") => MarginBy::Class,
        Some("day") => MarginBy::Day,
        _ => MarginBy::Key,
    };
    let limit = ListPage::of(&call.query)?.limit;
    let asked = MarginQuery {
        by,
        from,
        to,
        order: MarginOrder::Charge,
        reverse: false,
        limit,
    };
    let margins = call.ledger().margins(asked).await?;
    Ok(documents::margins(&margins).into())
}

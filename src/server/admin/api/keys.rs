//! Keys and caps under `/api/v1`.

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::key::Change;
use farebox_ledger::{
    Cap, Key, KeyId, KeyOrder, KeyPlace, KeyQuery, KeySettings, KeyStatus, Membership, Outcome,
    Timestamp,
};
use serde_json::json;

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use super::fields::{FieldValues, of_field};
use super::pages::{self, ListPage};
use super::table::ApiTask;
use crate::selling::keys::{self, KeyEdit};
use crate::selling::values::{self, Setting};
use crate::selling::{caps, documents};

/// The list's name in its cursors.
const LIST: &str = "keys";

pub(super) async fn list(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer().await?;
    let (query, page) = (&call.query, ListPage::of(&call.query)?);
    let place = page.place(LIST)?.and_then(pages::key_place);
    let order = KeyOrder::Created;
    let asked = KeyQuery {
        order,
        after: place.or(query.instant("since")?.map(before_instant)),
        customer: Some(customer.id),
        label: query.text("label"),
        status: query.text("status").and_then(|word| status(&word)),
        now: call.now,
        limit: page.limit.saturating_add(1),
        ..KeyQuery::default()
    };
    let mut found = call.ledger().list_keys(asked).await?;
    if let Some(until) = query.instant("until")? {
        found.retain(|key| key.created_at < until);
    }
    let more = found.len() > page.limit;
    found.truncate(page.limit);
    let next = found.last().filter(|_| more).map(|key| {
        let KeyPlace { value, key } = order.place(key);
        (value, key.to_i64())
    });
    let row = |key: &Key| documents::key(key, call.now);
    Ok(page.answer(LIST, found.iter().map(row).collect(), next))
}

/// A place before everything of an instant.
fn before_instant(since: Timestamp) -> KeyPlace {
    KeyPlace {
        value: since.millis().saturating_sub(1),
        key: KeyId::from_random(u64::MAX),
    }
}

fn status(word: &str) -> Option<KeyStatus> {
    use KeyStatus::{Active, Blocked, Expired, Revoked};
    [Active, Blocked, Expired, Revoked]
        .into_iter()
        .find(|status| status.to_string() == word)
}

pub(super) async fn show(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let etag = call.ledger().last_act(call.key_id()?.into()).await?;
    let key = call.key().await?;
    Ok(ApiReply::from(documents::key(&key, call.now)).tagged(etag))
}

/// What a body says of a key.
pub(super) fn new_key(body: &FieldValues, label: Option<String>) -> Result<KeyEdit, ApiError> {
    Ok(KeyEdit {
        label,
        models: match body.setting("models", |body, name| Ok(body.texts(name)))? {
            Some(Setting(None)) => Some(vec!["all".to_owned()]),
            Some(Setting(Some(models))) => Some(models),
            None => None,
        },
        expires: body.setting("expires_at", FieldValues::expiry)?,
        rate: body.setting("rate", FieldValues::count)?,
        concurrency: body.setting("concurrency", FieldValues::count)?,
    })
}

/// The settings that a body leaves a key with.
fn settings(call: &ApiCall<'_>, known: &KeySettings) -> Result<KeySettings, ApiError> {
    let edit = new_key(&call.body, call.body.text("label"))?;
    edit.over(known)
        .map_err(|why| ApiError::bad("invalid_field", why))
}

/// Creates a key. One of a token that sells has the customer's ten characters, so that it is the first one.
pub(super) async fn create(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer_id()?;
    let settings = settings(call, &KeySettings::default())?;
    let is_owner = call.body.flag("owner");
    let deed = if call.sells() {
        keys::first(customer, settings, is_owner, call.act())
    } else {
        let within = Membership {
            customer: Some(customer),
            is_owner,
            made_by: None,
        };
        keys::create(settings, within, None, call.act())
    };
    call.perform(deed).await
}

pub(super) async fn edit(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let id = call.key_id()?;
    loop {
        let base = call.edit_base(id.into()).await?;
        let key = call.key().await?;
        let settings = settings(call, &key.settings)?;
        let deed = keys::change(id, Change::Set(settings), call.act());
        if call.edit(base, vec![deed]).await? {
            return show(call).await;
        }
    }
}

pub(super) async fn change(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let change = match call.route.task {
        ApiTask::Block => Change::Block,
        _ => Change::Unblock,
    };
    let deed = keys::change(call.key_id()?, change, call.act());
    call.perform(deed).await
}

/// Revokes a key, and first the keys that it made if the body says so.
pub(super) async fn revoke(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let key = call.key_id()?;
    if call.body.flag("with_made") {
        for made in keys::made_by(call.ledger(), key).await? {
            call.apply(keys::change(made, Change::Revoke, call.act()))
                .await?;
        }
    }
    call.perform(keys::change(key, Change::Revoke, call.act()))
        .await
}

pub(super) async fn rotate(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let hours = match call.body.text("overlap").as_deref() {
        Some("1h") => Some(1),
        Some("24h") => Some(24),
        _ => None,
    };
    let overlap = hours.map(|hours: u64| Duration::from_secs(hours * 60 * 60));
    call.perform(keys::rotate(call.key_id()?, overlap, call.act()))
        .await
}

pub(super) async fn reissue(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    call.perform(keys::reissue(call.key_id()?, call.act()))
        .await
}

pub(super) async fn link(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let key = call.key_id()?;
    let (deed, expires) = keys::link(key, call.act());
    let status = call.route.status;
    let show = move |_: &Outcome| (status, json!({ "key": key, "expires_at": expires }));
    call.perform_as(deed, Arc::new(show)).await
}

pub(super) async fn caps(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let scope = call.scope()?;
    match call.route.task {
        ApiTask::CapsOfKey => drop(call.key().await?),
        _ => drop(call.customer().await?),
    }
    let read = caps::read(call.ledger(), scope).await?;
    Ok(caps::document(scope, &read).into())
}

pub(super) async fn set_cap(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let scope = call.scope()?;
    let interval = values::interval(&call.body.required("interval"));
    let cap = Cap {
        interval: interval.map_err(|why| of_field("interval", &why))?,
        model: call.body.text("model"),
        limit: call.body.usd("limit")?.unwrap_or_default(),
    };
    let status = call.route.status;
    let show = move |outcome: &Outcome| {
        let left = caps::left(outcome.clone());
        (status, caps::document(scope, &left))
    };
    call.perform_as(caps::set(scope, cap, call.act()), Arc::new(show))
        .await
}

pub(super) async fn clear_cap(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let scope = call.scope()?;
    let interval = values::interval(&call.query.required("interval"));
    let interval = interval.map_err(|why| of_field("interval", &why))?;
    let model = call.query.text("model");
    let outcome = call
        .apply(caps::clear(scope, interval, model, call.act()))
        .await?;
    Ok(caps::document(scope, &caps::left(outcome)).into())
}

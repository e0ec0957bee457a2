//! Keys and caps under `/api/v1`.

use std::sync::Arc;

use farebox_ledger::{
    Key, KeyId, KeyOrder, KeyPlace, KeyQuery, KeyStatus, Outcome, Scope, Timestamp,
};
use farebox_selling::cap::CapsDocument;
use farebox_selling::key::{EditKey, KeyDocument};
use farebox_selling::link::{LinkDocument, LinkKind, MakeLink};
use farebox_selling::reads;
use farebox_selling::value::{Instant, KeyName, OneLine, Word};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::{ApiCall, NamedInPath, ToldTo};
use super::pages::{self, ListPage};

/// The list's name in its cursors.
const LIST: &str = "keys";

/// Which keys.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct KeysQuery {
    /// Only keys in this state
    status: Option<Word<KeyStatus>>,
    /// Only keys whose label contains this text
    label: Option<OneLine>,
}

pub(super) async fn list(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer().await?;
    let (which, page): (KeysQuery, ListPage) = (call.read()?, call.read()?);
    let place = page.place(LIST)?.and_then(pages::key_place);
    let order = KeyOrder::Created;
    let asked = KeyQuery {
        order,
        after: place.or(page.since().map(before_instant)),
        customer: Some(customer.id),
        label: which.label.map(Into::into),
        status: which.status.map(|Word(status)| status),
        now: call.now,
        limit: page.rows()?.saturating_add(1),
        ..KeyQuery::default()
    };
    let mut found = call.ledger().list_keys(asked).await?;
    found.retain(|key| page.until().is_none_or(|until| key.created_at < until));
    let place = |key: &Key| {
        let KeyPlace { value, key } = order.place(key);
        (value, key.to_i64())
    };
    let row = |key: &Key| KeyDocument::of(key, call.now);
    page.answer(LIST, &found, row, place)
}

/// A place before everything of an instant.
fn before_instant(since: Timestamp) -> KeyPlace {
    KeyPlace {
        value: since.millis().saturating_sub(1),
        key: KeyId::from_random(u64::MAX),
    }
}

pub(super) async fn show(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let etag = call.ledger().last_act(KeyId::named(call)?.into()).await?;
    let key = call.key().await?;
    Ok(ApiReply::from(json!(KeyDocument::of(&key, call.now))).tagged(etag))
}

pub(super) async fn edit(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    call.act::<EditKey>().await?;
    show(call).await
}

pub(super) async fn link(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (key, asked) = (KeyId::named(call)?, call.read::<MakeLink>()?);
    let kind = asked.kind.map_or(LinkKind::SignIn, |Word(kind)| kind);
    let config = call.admin.front.proxy.config.current();
    if kind == LinkKind::Shop && config.catalog.shop.pay_url.is_none() {
        let message = "`[shop]` of the catalog has no `pay_url`, so there is no shop";
        return Err(ApiError::new(409, "not_applicable", message));
    }
    let (deed, expires) = farebox_selling::link::link(key, kind, call.doer().act());
    let status = call.status;
    let document = json!(LinkDocument {
        key: KeyName(key),
        link: None,
        expires_at: Instant(expires),
    });
    let show = move |_: &Outcome| (status, document.clone());
    call.perform(deed, None, Arc::new(show)).await
}

pub(super) async fn caps(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let scope = Scope::named(call)?;
    match scope {
        Scope::Key(_) => drop(call.key().await?),
        Scope::Customer(_) => drop(call.customer().await?),
    }
    let read = reads::caps(call.ledger(), scope).await?;
    Ok(json!(CapsDocument::of(scope, &read)).into())
}

/// The caps of whom an act was done to.
pub(super) fn caps_left(outcome: &Outcome, told: &ToldTo) -> (u16, Value) {
    (told.status, json!(CapsDocument::left(outcome)))
}

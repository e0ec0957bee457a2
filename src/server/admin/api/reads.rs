//! What `/api/v1` reads of journal, usage, payments, requests and models.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use farebox_ledger::search;
use farebox_ledger::{
    Customer, CustomerId, EntryQuery, Event, EventKind, KeyId, MarginBy, MarginOrder, MarginQuery,
    OperationId, Payment, Timestamp, UsageRow, document,
};
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use super::pages::{self, ListPage};
use super::read::of_field;
use crate::config::Shop;
use crate::server::admin::requests;
use farebox_selling::entry::{MarginsDocument, UsageDocument};
use farebox_selling::payment::PaymentDocument;
use farebox_selling::request::{RequestDocument, ShopDocument};
use farebox_selling::token::TokenDocument;
use farebox_selling::value::{Count, CustomerName, Instant, KeyName, OneLine};
use farebox_selling::waiting;
use schemars::JsonSchema;
use serde::Deserialize;

/// The list's name in its cursors.
const LIST: &str = "entries";
/// How far back sums go unless a request says.
const USUAL_DAYS: i64 = 30;
/// How far back a charge is looked for by its answer's id: no index has these, because one would cost every settlement.
const ANSWER_DAYS: i64 = 7;
const DAY_MS: i64 = 86_400_000;

/// Which entries.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WhichEntries {
    /// Only the entry with this reference
    reference: Option<OneLine>,
}

/// Whose entries.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WhoseEntries {
    /// Only entries of this customer
    customer: Option<CustomerName>,
    /// Only entries of this key
    key: Option<KeyName>,
}

/// A name that is kept for later, and what another handler answers.
pub(super) async fn reserved(_: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let message = "this name is kept for a later version";
    Err(ApiError::new(501, "not_built", message))
}

pub(super) async fn entries(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (page, whose): (ListPage, WhoseEntries) = (call.read()?, call.read()?);
    let mut asked = EntryQuery {
        customer: whose.customer.map(Into::into),
        key: whose.key.map(Into::into),
        since: page.since(),
        until: page.until(),
        before: page.place(LIST)?.map(|(position, _)| position),
        limit: Some(page.rows()?.saturating_add(1)),
    };
    if !call.parameters.is_empty() {
        asked.customer = Some(call.customer().await?.id);
    }
    if let Some(id) = asked.customer.filter(|_| call.sells()) {
        call.check_may_read(&farebox_selling::reads::customer(call.ledger(), id).await?)?;
    } else if call.sells() {
        let message = "a token that sells reads the journal of one customer; name it: ?customer=";
        return Err(ApiError::new(403, "not_yours", message));
    }
    if let Some(OneLine(reference)) = call.read::<WhichEntries>()?.reference {
        let mut found = search::with_reference(call.ledger(), &reference).await?;
        found.retain(|entry| {
            (asked.customer).is_none_or(|customer| entry.customer == customer)
                && asked.key.is_none_or(|key| entry.key == Some(key))
                && page.spans(entry.at)
        });
        found.reverse();
        return Ok(pages::whole(found.iter().map(document::json)));
    }
    let mut found = call.ledger().entries(asked).await?;
    found.reverse();
    page.answer(LIST, &found, document::json, |entry| (entry.position, 0))
}

/// Between two instants.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TimesQuery {
    /// From this instant on, in whole hours; 30 days ago unless you say
    since: Option<Instant>,
    /// Before this instant; now unless you say
    until: Option<Instant>,
}

/// `since` and `until` of sums.
fn times(call: &ApiCall<'_>) -> Result<(Timestamp, Timestamp), ApiError> {
    let TimesQuery { since, until } = call.read()?;
    let until = until.map_or(call.now, Into::into);
    let usual = until.millis().saturating_sub(USUAL_DAYS * DAY_MS);
    let since = since.map_or(Timestamp::from_millis(usual), Into::into);
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
    let of = |(key, rows): (&KeyId, &Vec<UsageRow>)| {
        let rows = rows.iter().map(|row| UsageDocument::of(*key, row));
        rows.collect::<Vec<_>>()
    };
    let mut rows: Vec<UsageDocument> = used.iter().flat_map(of).collect();
    rows.sort_by_key(|row| row.hour.0);
    Ok(pages::whole(rows))
}

/// Which events.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EventsQuery {
    /// Rows of a page, at most 200; 50 unless you say
    limit: Option<Count>,
    /// The id of the last event that you got; from the oldest one on unless you say
    after: Option<OneLine>,
    /// Only events of this type, as top_up.wanted
    r#type: Option<OneLine>,
}

/// Events that one call passes over, at most, to find some for its caller.
const PASSED_OVER: usize = 10_000;

/// Events after one that the caller has, oldest first: who goes on from the last one it got misses none.
pub(super) async fn events(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let EventsQuery {
        limit,
        after,
        r#type: kind,
    } = call.read()?;
    let most = pages::rows(limit)?;
    let kind = kind.map(|OneLine(name)| EventKind::named(&name).ok_or(name));
    let kind = kind.transpose();
    let kind = kind.map_err(|name| of_field("type", &format!("there are no events {name:?}")))?;
    let after = after.map(|id| id.0.parse::<OperationId>()).transpose();
    let mut after =
        after.map_err(|_| of_field("after", "send the `id` of an event as it was, as in evt_…"))?;
    let (mut rows, mut has_more, mut passed): (Vec<Value>, _, _) = (Vec::new(), true, 0);
    let mut seen = SeenCustomers::default();
    while has_more && rows.len() < most && passed < PASSED_OVER {
        let found = call.admin.ledger.events(after, pages::MOST).await?;
        has_more = found.len() == pages::MOST;
        for event in found {
            if rows.len() == most {
                has_more = true;
                break;
            }
            (after, passed) = (Some(event.id), passed.saturating_add(1));
            if kind.is_none_or(|kind| event.kind == kind) && seen.shows(call, &event).await? {
                rows.push(event.document());
            }
        }
    }
    let next = after.map(|id| format!("evt_{id}"));
    Ok(json!({ "data": rows, "has_more": has_more, "next_cursor": next }).into())
}

/// Customers whose events one call has met.
#[derive(Default)]
struct SeenCustomers(BTreeMap<CustomerId, Option<Customer>>);

impl SeenCustomers {
    /// Whether a token is shown an event. One that sells is shown those of customers that it made, and what a rule of its own asks for, or the
    /// owner of a subscription that it began.
    async fn shows(&mut self, call: &ApiCall<'_>, event: &Event) -> Result<bool, ApiError> {
        if !call.sells() {
            return Ok(true);
        }
        let Some(id) = event.customer else {
            return Ok(false);
        };
        if let Entry::Vacant(place) = self.0.entry(id) {
            place.insert(call.ledger().find_customer(id).await?);
        }
        let customer = self.0.get(&id).and_then(Option::as_ref);
        Ok(customer.is_some_and(|customer| {
            if event.kind == EventKind::TopUpWanted {
                let by = customer.auto_top_up.as_ref().and_then(|auto| auto.by);
                return by == Some(call.token.id);
            }
            let began = event.kind == EventKind::PlanEndWanted
                && customer
                    .grants
                    .plans
                    .iter()
                    .any(|of| of.state.created_by == call.token.label && event.is_of(of.id));
            began || call.token.may_read(customer)
        }))
    }
}

/// Which payments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct PaymentsQuery {
    /// Payments that could not be booked, and were neither assigned nor sent back
    #[schemars(extend("enum" = ["unapplied"]))]
    #[serde(rename = "status")]
    _status: Option<String>,
}

pub(super) async fn unapplied(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let found = call.ledger().unapplied().await?;
    Ok(pages::whole(found.iter().map(PaymentDocument::from)))
}

pub(super) async fn waiting(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    Ok(pages::whole(waiting::read(call.ledger(), call.now).await?))
}

pub(super) async fn payment(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    Ok(json!(PaymentDocument::from(&own_payment(call).await?)).into())
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
        call.check_may_read(&farebox_selling::reads::customer(call.ledger(), customer).await?)?;
    }
    Ok(found.into())
}

/// A charge of the last days, found by its answer's id.
async fn by_answer(call: &ApiCall<'_>, id: &str) -> Result<Option<Value>, ApiError> {
    let oldest = call.now.millis().saturating_sub(ANSWER_DAYS * DAY_MS);
    let since = Some(Timestamp::from_millis(oldest));
    let found = search::by_answer(call.ledger(), id, since).await?;
    Ok(found.map(|entry| json!(RequestDocument::from(&entry))))
}

pub(super) async fn token(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let read = TokenDocument::read(call.ledger(), &call.token, call.now).await?;
    Ok(json!(read).into())
}

pub(super) async fn shop(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let front = &call.admin.front;
    let config = front.proxy.config.current();
    let shop = Shop::clone(&config.catalog.shop);
    Ok(json!(ShopDocument {
        name: shop.name,
        contact: shop.contact,
        pay_url: shop.pay_url,
        note: shop.note,
        address: shop.address,
        tax_id: shop.tax_id,
        terms_url: shop.terms_url,
        privacy_url: shop.privacy_url,
        public_url: front.public_url.to_string(),
    })
    .into())
}

/// At whose prices.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ModelsQuery {
    /// What this customer is offered, at its prices
    customer: Option<CustomerName>,
    /// What customers with this price list are offered; for tokens that do not sell
    price_list: Option<OneLine>,
}

pub(super) async fn models(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let asked: ModelsQuery = call.read()?;
    let config = call.admin.front.proxy.config.current();
    let unknown = |why: String| ApiError::new(404, "price_list_unknown", why);
    let name = match (asked.customer, asked.price_list) {
        (Some(CustomerName(id)), _) => {
            let customer = farebox_selling::reads::customer(call.ledger(), id).await?;
            call.check_may_read(&customer)?;
            customer.settings.price_list
        }
        (None, Some(_)) if call.sells() => {
            let message =
                "a token that sells reads the prices of one customer; name it: ?customer=";
            return Err(ApiError::new(403, "not_yours", message));
        }
        (None, name) => name.map(Into::into),
    };
    let catalog = match name {
        None => &config.catalog,
        Some(name) => &config.catalog.list(&name).map_err(unknown)?.catalog,
    };
    Ok(pages::whole(catalog.rows()))
}

/// Which sums.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MarginsQuery {
    /// For each of these; key unless you say
    #[schemars(extend("enum" = ["key", "customer", "slug", "target", "provider", "account", "class", "day"]))]
    by: Option<String>,
    /// How many rows, at most 200; the total is over all
    limit: Option<Count>,
}

pub(super) async fn margin(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (from, to) = times(call)?;
    let MarginsQuery { by, limit } = call.read()?;
    let by = match by.as_deref() {
        Some("customer") => MarginBy::Customer,
        Some("slug") => MarginBy::Slug,
        Some("target") => MarginBy::Target,
        Some("provider") => MarginBy::Provider,
        Some("account") => MarginBy::Account,
        Some("class") => MarginBy::Class,
        Some("day") => MarginBy::Day,
        _ => MarginBy::Key,
    };
    let limit = pages::rows(limit)?;
    let asked = MarginQuery {
        by,
        from,
        to,
        order: MarginOrder::Charge,
        reverse: false,
        limit,
    };
    let margins = call.ledger().margins(asked).await?;
    Ok(json!(MarginsDocument::from(&margins)).into())
}

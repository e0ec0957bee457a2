//! Stripe Checkout: begins sessions and reads them back, and reads the events of its webhook. Card numbers never come here.
//!
//! Requests are forms, as its own libraries send them. A payment is named by its payment intent, which every event about it carries.

mod account;
mod back;
mod card;
mod plans;

use std::collections::BTreeMap;

use async_trait::async_trait;
use farebox_ledger::Gross;
use farebox_toml::{Diagnostic, HiddenText};
use reqwest::Url;
use salvo::http::HeaderMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::checkout::Checkout;
use crate::client::{self, below, form};
use crate::currency::{from_minor, minor};
use crate::processor::{
    BadMessage, CardCharge, Charged, FoundCheckout, OpenCheckout, PaidCheckout, Processor,
    ProcessorMessage, Unavailable, Ways,
};

/// The shapes of this version are read here: the newest of Stripe's own library.
const VERSION: &str = "2026-10-28.endive";
/// The events that a shop which sells plans lives by, beside the others.
const EVENTS_OF_PLANS: [&str; 4] = [
    "invoice.paid",
    "invoice.payment_failed",
    "customer.subscription.updated",
    "customer.subscription.deleted",
];
/// The events that a shop lives by.
const EVENTS: [&str; 8] = [
    "checkout.session.completed",
    "checkout.session.async_payment_succeeded",
    "checkout.session.async_payment_failed",
    "checkout.session.expired",
    "payment_intent.succeeded",
    "charge.refunded",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.funds_reinstated",
];

/// One account of the processor, as one shop uses it.
#[derive(Debug)]
pub(crate) struct Stripe {
    pub(crate) client: reqwest::Client,
    pub(crate) api: String,
    pub(crate) key: HiddenText,
    pub(crate) webhook: Vec<HiddenText>,
    /// The shop whose checkouts count.
    pub(crate) shop: String,
}

#[derive(Deserialize)]
struct StripeSession {
    id: String,
    url: Option<String>,
    status: Option<String>,
    payment_status: String,
    payment_intent: Option<Value>,
    subscription: Option<Value>,
    invoice: Option<Value>,
    customer: Option<Value>,
    amount_total: Option<i64>,
    currency: Option<String>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct StripeList<T> {
    data: Vec<T>,
}

#[derive(Deserialize)]
struct StripeEvent {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: StripeEventData,
}

#[derive(Deserialize)]
struct StripeEventData {
    /// Read by whoever knows its kind; never as a tree.
    object: Box<RawValue>,
    /// What of it was another one before.
    #[serde(default)]
    previous_attributes: Value,
}

#[async_trait]
impl Processor for Stripe {
    async fn begin(&self, checkout: &Checkout, back: &Ways) -> Result<OpenCheckout, Unavailable> {
        let pairs = session_form(checkout, back)?;
        let url = self.url(&["v1", "checkout", "sessions"])?;
        let once = checkout.idempotency_key();
        let session: Option<StripeSession> = answered(self.post(url, &pairs, &once)).await?;
        let open = session.and_then(|StripeSession { id, url, .. }| Some((id, url?)));
        open.map(|(id, page)| OpenCheckout { id, page })
            .ok_or_else(|| Unavailable("the processor began no checkout".to_owned()))
    }

    async fn close(&self, id: &str) -> Result<bool, Unavailable> {
        let url = self.url(&["v1", "checkout", "sessions", id, "expire"])?;
        let request = self.post(url, &[], &format!("farebox-close-{id}"));
        let reply = client::send(request).await.map_err(Unavailable)?;
        match reply.status {
            200 | 404 => Ok(true),
            // It is complete, or was closed before: its state says which.
            400 => {
                let url = self.url(&["v1", "checkout", "sessions", id])?;
                let get = self.signed(self.client.get(url));
                let session: Option<StripeSession> = answered(get).await?;
                Ok(session.is_none_or(|session| session.status.as_deref() == Some("expired")))
            }
            status => Err(Unavailable(format!("it answered {status}"))),
        }
    }

    async fn charge(&self, of: &CardCharge<'_>) -> Result<Charged, Unavailable> {
        card::charge(self, of).await
    }

    async fn portal(&self, subscription: &str, back: &str) -> Result<Option<String>, Unavailable> {
        plans::portal(self, subscription, back).await
    }

    async fn end(&self, subscription: &str, wish: &str) -> Result<bool, Unavailable> {
        plans::end(self, subscription, wish).await
    }

    async fn findings(&self, public_url: &str, has_plans: bool) -> Vec<Diagnostic> {
        account::findings(self, public_url, has_plans).await
    }

    async fn find(&self, id: &str) -> Result<Option<FoundCheckout>, Unavailable> {
        if id.len() > 200 || !id.starts_with("cs_") {
            return Ok(None);
        }
        let url = self.url(&["v1", "checkout", "sessions", id])?;
        let session: Option<StripeSession> = answered(self.signed(self.client.get(url))).await?;
        let Some(session) = session else {
            return Ok(None);
        };
        let pairs = session.metadata.unwrap_or_default();
        let Some(checkout) = Checkout::from_pairs(&pairs) else {
            return Ok(None);
        };
        let payment = match (
            session.payment_status.as_str(),
            name(session.invoice.as_ref()),
        ) {
            ("paid", Some(invoice)) => plans::intent_of(self, &invoice).await?,
            ("paid", None) => name(session.payment_intent.as_ref()),
            _ => None,
        };
        Ok(Some(FoundCheckout {
            checkout,
            payment,
            subscription: name(session.subscription.as_ref()),
        }))
    }

    fn signature_header(&self) -> &'static str {
        "stripe-signature"
    }

    async fn message(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: i64,
    ) -> Result<ProcessorMessage, BadMessage> {
        self.check_signature(headers, body, &self.webhook, now)?;
        let event: StripeEvent = read(body)?;
        match event.kind.as_str() {
            "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
                self.paid(object(&event.data.object)?)
            }
            "checkout.session.async_payment_failed" | "checkout.session.expired" => {
                self.ended(object(&event.data.object)?)
            }
            "payment_intent.succeeded" => card::paid(self, object(&event.data.object)?),
            "invoice.paid" => plans::paid(self, object(&event.data.object)?).await,
            "invoice.payment_failed" => plans::failed(self, &object(&event.data.object)?),
            "customer.subscription.updated" | "customer.subscription.deleted" => {
                let told = object(&event.data.object)?;
                plans::changed(self, event.id, told, &event.data.previous_attributes).await
            }
            "charge.refunded" => back::refunded(self, event.id, object(&event.data.object)?).await,
            "charge.dispute.funds_withdrawn" => {
                let dispute = object(&event.data.object)?;
                back::disputed(self, event.id, "dispute", dispute).await
            }
            "charge.dispute.funds_reinstated" => {
                let dispute = object(&event.data.object)?;
                back::disputed(self, event.id, "dispute-won", dispute).await
            }
            _ => nothing("an event of another kind"),
        }
    }
}

impl Stripe {
    fn url(&self, parts: &[&str]) -> Result<Url, Unavailable> {
        below(&self.api, parts).ok_or_else(|| Unavailable("its address is not usable".to_owned()))
    }

    fn signed(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        request
            .bearer_auth(self.key.reveal())
            .header("stripe-version", VERSION)
    }

    fn post(&self, url: Url, pairs: &[(String, String)], once: &str) -> reqwest::RequestBuilder {
        self.signed(self.client.post(url))
            .header("idempotency-key", once)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form(pairs))
    }

    fn is_ours(&self, metadata: Option<&BTreeMap<String, String>>) -> bool {
        metadata.and_then(|pairs| pairs.get("farebox_shop")) == Some(&self.shop)
    }

    fn paid(&self, session: StripeSession) -> Result<ProcessorMessage, BadMessage> {
        if !self.is_ours(session.metadata.as_ref()) {
            return nothing("a checkout of another shop");
        }
        let unreadable = |what: &str| BadMessage::Unreadable(format!("{}: {what}", session.id));
        let checkout = asked(&session)?;
        if session.payment_status != "paid" {
            return Ok(ProcessorMessage::Waiting(checkout));
        }
        if checkout.offer.plan.is_some() {
            return nothing("a checkout whose invoice tells of its payment");
        }
        let reference = name(session.payment_intent.as_ref())
            .ok_or_else(|| unreadable("it names no payment intent"))?;
        let (currency, gross) = money(session.currency.as_deref(), session.amount_total)
            .ok_or_else(|| unreadable("it names no amount"))?;
        let owner = name(session.customer.as_ref());
        Ok(ProcessorMessage::Paid(PaidCheckout {
            id: session.id,
            owner: owner.filter(|_| checkout.again.is_some()),
            reference,
            checkout,
            currency,
            gross,
        }))
    }

    fn ended(&self, session: StripeSession) -> Result<ProcessorMessage, BadMessage> {
        if !self.is_ours(session.metadata.as_ref()) {
            return nothing("a checkout of another shop");
        }
        asked(&session).map(ProcessorMessage::Ended)
    }
}

impl From<Unavailable> for BadMessage {
    fn from(away: Unavailable) -> Self {
        Self::Away(away)
    }
}

fn nothing(why: &str) -> Result<ProcessorMessage, BadMessage> {
    Ok(ProcessorMessage::Nothing(why.to_owned()))
}

/// What this shop asked.
fn asked(session: &StripeSession) -> Result<Checkout, BadMessage> {
    let pairs = session.metadata.clone().unwrap_or_default();
    Checkout::from_pairs(&pairs).ok_or_else(|| {
        let why = "its metadata is not what this shop wrote";
        BadMessage::Unreadable(format!("{}: {why}", session.id))
    })
}

/// An id, or the object that stands in its place.
fn name(named: Option<&Value>) -> Option<String> {
    let id = named.and_then(|named| named.as_str().or_else(|| named.get("id")?.as_str()));
    id.map(str::to_owned)
}

fn money(currency: Option<&str>, parts: Option<i64>) -> Option<(String, Gross)> {
    let currency = currency?.to_ascii_uppercase();
    let gross = from_minor(&currency, parts?)?;
    Some((currency, gross))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, BadMessage> {
    serde_json::from_slice(body).map_err(|error| BadMessage::Unreadable(error.to_string()))
}

fn object<T: DeserializeOwned>(object: &RawValue) -> Result<T, BadMessage> {
    serde_json::from_str(object.get()).map_err(|error| BadMessage::Unreadable(error.to_string()))
}

/// The document of an answer; `None` if there is no such thing.
async fn answered<T: DeserializeOwned>(
    request: reqwest::RequestBuilder,
) -> Result<Option<T>, Unavailable> {
    let reply = client::send(request).await.map_err(Unavailable)?;
    match reply.status {
        200 => serde_json::from_slice(&reply.body)
            .map(Some)
            .map_err(|error| Unavailable(format!("its answer cannot be read: {error}"))),
        404 => Ok(None),
        status => {
            let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            // Its messages shorten keys themselves; only their kind is told on.
            let error = said.get("error");
            let kind = error.and_then(|error| error.get("code").or_else(|| error.get("type")));
            let kind = kind.and_then(Value::as_str).unwrap_or("no reason");
            Err(Unavailable(format!("it answered {status} ({kind})")))
        }
    }
}

/// The form that begins a session.
fn session_form(checkout: &Checkout, back: &Ways) -> Result<Vec<(String, String)>, Unavailable> {
    let price = minor(&checkout.currency, checkout.offer.price)
        .ok_or_else(|| Unavailable("no card is charged this price".to_owned()))?;
    let item = |field: &str| format!("line_items[0]{field}");
    // What its payments are known by: an intent's metadata, which its charge has, too; a subscription's, which its invoices have.
    let (mode, kept) = match back.every {
        Some(_) => ("subscription", "subscription_data"),
        None => ("payment", "payment_intent_data"),
    };
    let mut pairs = vec![
        ("mode".to_owned(), mode.to_owned()),
        (
            "success_url".to_owned(),
            format!("{}{{CHECKOUT_SESSION_ID}}", back.paid),
        ),
        ("cancel_url".to_owned(), back.left.clone()),
        ("expires_at".to_owned(), back.closes_at.to_string()),
        // What is paid is what is asked, in the shop's currency.
        ("adaptive_pricing[enabled]".to_owned(), "false".to_owned()),
        (item("[quantity]"), "1".to_owned()),
        (
            item("[price_data][currency]"),
            checkout.currency.to_ascii_lowercase(),
        ),
        (item("[price_data][unit_amount]"), price.to_string()),
        (item("[price_data][product_data][name]"), back.what.clone()),
    ];
    if let Some(period) = back.every {
        let (interval, count) = plans::recurring(period);
        let every = |field: &str| item(&format!("[price_data][recurring]{field}"));
        pairs.push((every("[interval]"), interval.to_owned()));
        pairs.push((every("[interval_count]"), count.to_string()));
    }
    if checkout.again.is_some() {
        pairs.push(("customer_creation".to_owned(), "always".to_owned()));
        let stores = "payment_intent_data[setup_future_usage]".to_owned();
        pairs.push((stores, "off_session".to_owned()));
    }
    for (name, value) in checkout.pairs() {
        pairs.push((format!("metadata[{name}]"), value.clone()));
        pairs.push((format!("{kept}[metadata][{name}]"), value));
    }
    Ok(pairs)
}

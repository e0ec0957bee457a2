//! Stripe Checkout: begins sessions and reads them back, and reads the events of its webhook. Card numbers never come here.
//!
//! Requests are forms, as its own libraries send them. A payment is named by its payment intent, which every event about it carries.

use std::collections::BTreeMap;

use async_trait::async_trait;
use farebox_ledger::Gross;
use farebox_toml::HiddenText;
use reqwest::Url;
use salvo::http::HeaderMap;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::checkout::Checkout;
use crate::client::{self, below, form};
use crate::currency::{from_minor, minor};
use crate::processor::{
    BadMessage, FoundCheckout, MoneyBack, PaidCheckout, Processor, ProcessorMessage, Unavailable,
    Ways,
};
use crate::signature;

/// The shapes of this version are read here.
const VERSION: &str = "2024-06-20";

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
    payment_status: String,
    payment_intent: Option<Value>,
    amount_total: Option<i64>,
    currency: Option<String>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Charge {
    payment_intent: Option<Value>,
    amount_refunded: i64,
    currency: String,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Dispute {
    id: String,
    amount: i64,
    currency: String,
    payment_intent: Option<Value>,
    #[serde(default)]
    status: String,
    #[serde(default)]
    balance_transactions: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Intent {
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct StripeList<T> {
    data: Vec<T>,
    #[serde(default)]
    has_more: bool,
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
}

#[async_trait]
impl Processor for Stripe {
    async fn begin(&self, checkout: &Checkout, back: &Ways) -> Result<String, Unavailable> {
        let pairs = session_form(checkout, back)?;
        let url = self.url(&["v1", "checkout", "sessions"])?;
        let request = self
            .signed(self.client.post(url))
            .header("idempotency-key", checkout.idempotency_key())
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form(&pairs));
        let session: Option<StripeSession> = answered(request).await?;
        let page = session.and_then(|session| session.url);
        page.ok_or_else(|| Unavailable("the processor began no checkout".to_owned()))
    }

    async fn find(&self, id: &str) -> Result<Option<FoundCheckout>, Unavailable> {
        if id.len() > 200 || !id.starts_with("cs_") {
            return Ok(None);
        }
        let url = self.url(&["v1", "checkout", "sessions", id])?;
        let session: Option<StripeSession> = answered(self.signed(self.client.get(url))).await?;
        Ok(session.and_then(|session| {
            let checkout = Checkout::from_pairs(&session.metadata.clone().unwrap_or_default())?;
            let paid = session.payment_status == "paid";
            let payment = paid.then(|| name(session.payment_intent.as_ref()));
            Some(FoundCheckout {
                checkout,
                payment: payment.flatten(),
            })
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
        let header = headers
            .get(self.signature_header())
            .and_then(|value| value.to_str().ok())
            .ok_or(BadMessage::Forged("there is no signature"))?;
        signature::check(header, body, &self.webhook, now).map_err(BadMessage::Forged)?;
        let event: StripeEvent = read(body)?;
        match event.kind.as_str() {
            "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
                self.paid(object(&event.data.object)?)
            }
            "checkout.session.async_payment_failed" => {
                nothing("the payment failed; nothing was booked for it")
            }
            "charge.refunded" => self.refunded(event.id, object(&event.data.object)?),
            "charge.dispute.funds_withdrawn" => {
                self.disputed(event.id, "dispute", object(&event.data.object)?)
                    .await
            }
            "charge.dispute.funds_reinstated" => {
                self.disputed(event.id, "dispute-won", object(&event.data.object)?)
                    .await
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

    fn is_ours(&self, metadata: Option<&BTreeMap<String, String>>) -> bool {
        metadata.and_then(|pairs| pairs.get("farebox_shop")) == Some(&self.shop)
    }

    fn paid(&self, session: StripeSession) -> Result<ProcessorMessage, BadMessage> {
        if !self.is_ours(session.metadata.as_ref()) {
            return nothing("a checkout of another shop");
        }
        if session.payment_status != "paid" {
            return nothing("the checkout is not paid yet");
        }
        let unreadable = |what: &str| BadMessage::Unreadable(format!("{}: {what}", session.id));
        let checkout = Checkout::from_pairs(&session.metadata.clone().unwrap_or_default())
            .ok_or_else(|| unreadable("its metadata is not what this shop wrote"))?;
        let reference = name(session.payment_intent.as_ref())
            .ok_or_else(|| unreadable("it names no payment intent"))?;
        let (currency, gross) = money(session.currency.as_deref(), session.amount_total)
            .ok_or_else(|| unreadable("it names no amount"))?;
        Ok(ProcessorMessage::Paid(PaidCheckout {
            reference,
            checkout,
            currency,
            gross,
        }))
    }

    fn refunded(&self, event: String, charge: Charge) -> Result<ProcessorMessage, BadMessage> {
        // The intent's metadata is copied to its charge.
        if !self.is_ours(charge.metadata.as_ref()) {
            return nothing("a refund of another shop's payment");
        }
        back(
            event,
            "refund",
            charge.payment_intent.as_ref(),
            money(Some(&charge.currency), Some(charge.amount_refunded)),
        )
    }

    /// A dispute does not say whose payment it is about, nor what other disputes of it took.
    async fn disputed(
        &self,
        event: String,
        kind: &'static str,
        dispute: Dispute,
    ) -> Result<ProcessorMessage, BadMessage> {
        let Some(intent) = name(dispute.payment_intent.as_ref()) else {
            return nothing("a dispute without a payment intent");
        };
        let url = self.url(&["v1", "payment_intents", &intent])?;
        let found: Option<Intent> = answered(self.signed(self.client.get(url))).await?;
        if !self.is_ours(found.and_then(|found| found.metadata).as_ref()) {
            return nothing("a dispute of another shop's payment");
        }
        let mut url = self.url(&["v1", "disputes"])?;
        url.query_pairs_mut()
            .append_pair("payment_intent", &intent)
            .append_pair("limit", "100");
        let others: Option<StripeList<Dispute>> =
            answered(self.signed(self.client.get(url))).await?;
        let others = others.map_or_else(Vec::new, |listed| {
            debug_assert!(!listed.has_more, "a payment has a handful of disputes");
            listed.data
        });
        let counts = |other: &&Dispute| {
            other.id != dispute.id
                && match kind {
                    "dispute" => !other.balance_transactions.is_empty(),
                    _ => other.status == "won",
                }
        };
        let mut sum = dispute.amount;
        for other in others.iter().filter(counts) {
            sum = sum.saturating_add(other.amount);
        }
        back(
            event,
            kind,
            dispute.payment_intent.as_ref(),
            money(Some(&dispute.currency), Some(sum)),
        )
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

fn back(
    event: String,
    kind: &'static str,
    intent: Option<&Value>,
    money: Option<(String, Gross)>,
) -> Result<ProcessorMessage, BadMessage> {
    let Some(payment) = name(intent) else {
        return nothing("it is about no payment intent");
    };
    let unreadable = || BadMessage::Unreadable(format!("{event}: its amount is none"));
    let (_, cumulative) = money.ok_or_else(unreadable)?;
    Ok(ProcessorMessage::Back(MoneyBack {
        event,
        payment,
        kind,
        cumulative,
    }))
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
    let mut pairs = vec![
        ("mode".to_owned(), "payment".to_owned()),
        (
            "success_url".to_owned(),
            format!("{}{{CHECKOUT_SESSION_ID}}", back.paid),
        ),
        ("cancel_url".to_owned(), back.left.clone()),
        (item("[quantity]"), "1".to_owned()),
        (
            item("[price_data][currency]"),
            checkout.currency.to_ascii_lowercase(),
        ),
        (item("[price_data][unit_amount]"), price.to_string()),
        (item("[price_data][product_data][name]"), back.what.clone()),
    ];
    for (name, value) in checkout.pairs() {
        pairs.push((format!("metadata[{name}]"), value.clone()));
        // A charge has its intent's metadata, which says whose refund it is.
        pairs.push((format!("payment_intent_data[metadata][{name}]"), value));
    }
    Ok(pairs)
}

//! A processor without money: its page offers test cards, and its callbacks are signed and sent as a real one's are. For the demo
//! and for trials; nothing leaves the machine.
//!
//! Of payments it remembers nothing: a checkout's id carries what was asked, sealed with a key that only this shop has. Which checkout a
//! subscription is of it forgets when it stops.

mod plans;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use farebox_door::{BodyRule, Door, DoorPath, Method, PathCaller, UnreadBody};
use farebox_ledger::{clock, lock};
use farebox_toml::{Diagnostic, HiddenText};
use maud::{Markup, html};
use salvo::http::{HeaderMap, StatusCode};
use salvo::prelude::{Depot, Request, Response, handler};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::answer;
use crate::checkout::Checkout;
use crate::client;
use crate::pages;
use crate::processor::{
    BadMessage, CardCharge, Charged, FoundCheckout, MoneyBack, OpenCheckout, PaidCheckout,
    Processor, ProcessorMessage, SubscriptionNews, Unavailable, Ways,
};
use crate::signature;

/// How often a callback is sent that is not acknowledged, and the rest after the first.
const DELIVERIES: u32 = 12;
const REST: Duration = Duration::from_millis(250);

/// The page of test cards, and its form.
pub(crate) const PATHS: [DoorPath; 2] = [
    DoorPath::read("/test-cards", PathCaller::Anybody),
    DoorPath::new(
        Method::Post,
        "/test-cards",
        BodyRule::Form,
        PathCaller::Anybody,
    ),
];

/// The simulated processor of one shop.
#[derive(Debug)]
pub(crate) struct SimulatedProcessor {
    pub(crate) client: reqwest::Client,
    /// Signs ids and callbacks.
    pub(crate) secret: HiddenText,
    pub(crate) public_url: String,
    /// Where callbacks go.
    pub(crate) webhook: String,
    /// The checkouts of subscriptions, by their names.
    pub(crate) subscriptions: Mutex<BTreeMap<String, String>>,
}

/// What an id carries.
#[derive(Serialize, Deserialize)]
struct Sealed {
    asked: BTreeMap<String, String>,
    paid: String,
    left: String,
}

/// A callback's body.
#[derive(Serialize, Deserialize)]
struct Callback {
    event: String,
    kind: SimulatedEvent,
    checkout: String,
    /// Which payment of it: 0 is the first.
    payment: u32,
}

/// What a callback tells of a payment, or of the subscription that it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SimulatedEvent {
    Paid,
    Failed,
    Canceled,
    Refunded,
    Disputed,
}

impl Callback {
    fn new(kind: SimulatedEvent, checkout: &str, payment: u32) -> Self {
        Self {
            event: format!("sim_{}", hex::encode(clock::random::<12>())),
            kind,
            checkout: checkout.to_owned(),
            payment,
        }
    }
}

impl SimulatedProcessor {
    fn seal(&self, text: &[u8]) -> String {
        let signed = signature::sign(&self.secret, 0, text);
        let mac = signed.rsplit('=').next().unwrap_or_default();
        format!("sim_{}.{mac}", URL_SAFE_NO_PAD.encode(text))
    }

    fn open(&self, id: &str) -> Option<(Checkout, Sealed)> {
        let (text, mac) = id.strip_prefix("sim_")?.split_once('.')?;
        let text = URL_SAFE_NO_PAD.decode(text).ok()?;
        let header = format!("t=0,v1={mac}");
        let secrets = std::slice::from_ref(&self.secret);
        signature::check(&header, &text, secrets, 0).ok()?;
        let sealed: Sealed = serde_json::from_slice(&text).ok()?;
        Some((Checkout::from_pairs(&sealed.asked)?, sealed))
    }

    /// Sends a callback, beside what else goes on.
    fn send(self: &Arc<Self>, callback: Callback) {
        tokio::spawn(Arc::clone(self).deliver(callback));
    }

    /// Sends a callback until it is acknowledged.
    async fn deliver(self: Arc<Self>, callback: Callback) {
        let body = serde_json::to_vec(&callback).unwrap_or_default();
        let mut rest = REST;
        for _ in 0..DELIVERIES {
            let now = clock::now().millis() / 1_000;
            let signed = signature::sign(&self.secret, now, &body);
            let request = self
                .client
                .post(&self.webhook)
                .header("simulated-signature", signed)
                .body(body.clone());
            match client::send(request).await {
                Ok(reply) if (200..300).contains(&reply.status) => return,
                Ok(reply) => tracing::info!(status = reply.status, "a callback was not accepted"),
                Err(why) => tracing::info!(why, "a callback did not arrive"),
            }
            tokio::time::sleep(rest).await;
            rest = rest.saturating_mul(2).min(Duration::from_secs(30));
        }
        tracing::warn!("a callback was given up");
    }
}

/// A name that follows from a checkout.
fn name(what: &str) -> String {
    let digest = hex::encode(Sha256::digest(what.as_bytes()));
    format!("sim_{}", digest.get(..24).unwrap_or_default())
}

/// A payment's own name.
fn payment(id: &str, number: u32) -> String {
    match number {
        0 => name(id),
        number => name(&format!("payment {number} {id}")),
    }
}

/// The name of the subscription that a checkout began, if it did.
fn subscription(id: &str, checkout: &Checkout) -> Option<String> {
    let plan = checkout.offer.plan.as_ref();
    plan.map(|_| name(&format!("subscription {id}")))
}

#[async_trait]
impl Processor for Arc<SimulatedProcessor> {
    async fn begin(&self, checkout: &Checkout, back: &Ways) -> Result<OpenCheckout, Unavailable> {
        let pairs = checkout.pairs().into_iter();
        let sealed = Sealed {
            asked: pairs
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            paid: back.paid.clone(),
            left: back.left.clone(),
        };
        let text = serde_json::to_vec(&sealed).map_err(|error| Unavailable(error.to_string()))?;
        let id = self.seal(&text);
        Ok(OpenCheckout {
            page: format!("{}/test-cards?checkout={id}", self.public_url),
            id,
        })
    }

    /// Its checkouts are open for ever; no money moves.
    async fn close(&self, _: &str) -> Result<bool, Unavailable> {
        Ok(true)
    }

    async fn charge(&self, of: &CardCharge<'_>) -> Result<Charged, Unavailable> {
        Ok(Charged::Paid {
            currency: of.checkout.currency.clone(),
            gross: of.checkout.offer.price,
        })
    }

    async fn portal(&self, subscription: &str, _: &str) -> Result<Option<String>, Unavailable> {
        let known = lock(&self.subscriptions).get(subscription).cloned();
        Ok(known.map(|id| format!("{}/test-cards?checkout={id}&of=plan", self.public_url)))
    }

    /// No time passes here: it tells of the end at once, as the last period is over. What is paid still runs.
    async fn end(&self, subscription: &str, _: &str) -> Result<bool, Unavailable> {
        let known = lock(&self.subscriptions).get(subscription).cloned();
        if let Some(id) = &known {
            self.send(Callback::new(SimulatedEvent::Canceled, id, 0));
        }
        Ok(known.is_some())
    }

    async fn findings(&self, _: &str, _: bool) -> Vec<Diagnostic> {
        Vec::new()
    }

    async fn find(&self, id: &str) -> Result<Option<FoundCheckout>, Unavailable> {
        Ok(self.open(id).map(|(checkout, _)| FoundCheckout {
            subscription: subscription(id, &checkout),
            checkout,
            payment: Some(payment(id, 0)),
        }))
    }

    fn signature_header(&self) -> &'static str {
        "simulated-signature"
    }

    async fn message(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: i64,
    ) -> Result<ProcessorMessage, BadMessage> {
        self.check_signature(headers, body, std::slice::from_ref(&self.secret), now)?;
        let unreadable = |why: &str| BadMessage::Unreadable(why.to_owned());
        let callback: Callback =
            serde_json::from_slice(body).map_err(|error| unreadable(&error.to_string()))?;
        let (checkout, _) = self
            .open(&callback.checkout)
            .ok_or_else(|| unreadable("a checkout of another shop"))?;
        let (id, number, price) = (&callback.checkout, callback.payment, checkout.offer.price);
        let reference = payment(id, number);
        let plan = subscription(id, &checkout);
        let back = |kind| {
            ProcessorMessage::Back(MoneyBack {
                event: callback.event.clone(),
                payment: reference.clone(),
                kind,
                cumulative: price,
                whole: price,
            })
        };
        Ok(match (callback.kind, plan) {
            (SimulatedEvent::Refunded, _) => back("refund"),
            (SimulatedEvent::Disputed, _) => back("dispute"),
            (SimulatedEvent::Paid, Some(plan)) => {
                lock(&self.subscriptions).insert(plan.clone(), id.clone());
                ProcessorMessage::Period(plans::period(plan, reference, number, checkout, now))
            }
            (SimulatedEvent::Paid, None) => ProcessorMessage::Paid(PaidCheckout {
                id: callback.checkout,
                reference,
                currency: checkout.currency.clone(),
                gross: price,
                owner: checkout.again.map(|_| "sim_owner".to_owned()),
                checkout,
            }),
            (SimulatedEvent::Canceled, Some(subscription)) => {
                ProcessorMessage::Subscription(SubscriptionNews {
                    event: callback.event,
                    subscription,
                    checkout,
                    is_over: true,
                })
            }
            (SimulatedEvent::Failed, _) => {
                ProcessorMessage::Odd(format!("{reference} was not paid"))
            }
            (SimulatedEvent::Canceled, None) => {
                ProcessorMessage::Nothing("a checkout of no plan".to_owned())
            }
        })
    }

    fn pages(&self, door: Door) -> Door {
        PATHS.into_iter().fold(door, |door, path| {
            door.path(path, TestCards(Self::clone(self)))
        })
    }
}

/// The page of test cards, and what its button does.
#[derive(Debug)]
struct TestCards(Arc<SimulatedProcessor>);

#[handler]
impl TestCards {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let asked = req.query::<String>("checkout").unwrap_or_default();
        let form = match UnreadBody::of(depot).form().await {
            Ok(form) => form,
            Err(fault) => return answer::fault(res, fault),
        };
        let posted = form.get("checkout");
        let id = posted.map_or(asked, str::to_owned);
        let Some((checkout, sealed)) = self.0.open(&id) else {
            let text = "This is no checkout of this shop.";
            return answer::page(res, StatusCode::NOT_FOUND, pages::bare("Test cards", text));
        };
        if let Some(told) = plans::posted(&self.0, &id, &form) {
            return answer::page(res, StatusCode::OK, told);
        }
        if posted.is_none() && req.query::<String>("of").is_some() {
            return answer::page(res, StatusCode::OK, plans::page(&id, &checkout, 0, None));
        }
        if posted.is_none() {
            return answer::page(
                res,
                StatusCode::OK,
                cards(&id, &checkout, &sealed.left, None),
            );
        }
        match form.get("card") {
            Some("good") => {
                let callback = Callback::new(SimulatedEvent::Paid, &id, 0);
                self.0.send(callback);
                answer::see_other(res, &format!("{}{id}", sealed.paid));
            }
            _ => {
                let text = "This card was declined. Nothing was charged; try another card.";
                let again = cards(&id, &checkout, &sealed.left, Some(text));
                answer::page(res, StatusCode::OK, again);
            }
        }
    }
}

fn cards(id: &str, checkout: &Checkout, left: &str, told: Option<&str>) -> Markup {
    let (price, currency) = (checkout.offer.price, &checkout.currency);
    let content = html! {
        h1 { "Pay " (price) " " (currency) }
        p.lead { "A page of test cards: no card is charged, and nothing leaves this machine." }
        @if let Some(told) = told { p.problem role="alert" { (told) } }
        form.card method="post" action="/test-cards" {
            input type="hidden" name="checkout" value=(id);
            label for="card" { "Card" }
            select #card name="card" {
                option value="good" { "4242 4242 4242 4242, which pays" }
                option value="declined" { "4000 0000 0000 0002, which is declined" }
            }
            button.primary { "Pay" }
        }
        p { a href=(left) { "Back to the shop without paying" } }
    };
    pages::narrow("Test cards", &content)
}

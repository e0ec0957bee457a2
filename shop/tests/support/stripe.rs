//! A processor that answers as Stripe's API does, as far as a shop uses it, and is strict about what it is sent. What it sends and
//! takes is judged by the published library: `judged.rs`.

pub(crate) mod plans;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hmac::{Hmac, KeyInit, Mac};
use salvo::http::StatusCode;
use salvo::prelude::{Request, Response, Router, handler};
use serde_json::{Value, json};
use sha2::Sha256;

use plans::Subscriptions;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct SeenRequest {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) form: BTreeMap<String, String>,
}

/// What was sent for a charge, and what was answered.
type AskedCharge = (BTreeMap<String, String>, (u16, Value));

/// What a stored card says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CardMood {
    #[default]
    Pays,
    Declined,
    AsksForItsOwner,
    TakesItsTime,
}

#[derive(Debug, Default)]
struct Account {
    sessions: BTreeMap<String, Value>,
    by_key: BTreeMap<String, (BTreeMap<String, String>, String)>,
    disputes: Vec<Value>,
    plans: Subscriptions,
    /// What each subscription costs.
    sums: BTreeMap<String, Value>,
    begun: Vec<SeenRequest>,
    endpoints: Vec<Value>,
    /// The stored card of each customer.
    cards: BTreeMap<String, String>,
    mood: CardMood,
    /// Charges of stored cards by idempotency key: what was sent, and what was answered.
    charges: BTreeMap<String, AskedCharge>,
    loses_answers: bool,
    cannot_charge: bool,
    is_down: bool,
    /// Requests are read, and nothing is ever answered.
    is_silent: bool,
    unanswered: usize,
    /// How long it takes to find a session, and how often it did.
    pace: std::time::Duration,
    found: usize,
}

#[derive(Clone)]
pub(crate) struct FakeStripe {
    account: Arc<Mutex<Account>>,
    pub(crate) base: String,
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    farebox_ledger::clock::now().millis() / 1_000
}

/// A signature header.
pub(crate) fn signed(secret: &str, at: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{at}.{body}").as_bytes());
    format!("t={at},v1={}", hex::encode(mac.finalize().into_bytes()))
}

pub(crate) fn event(id: &str, kind: &str, object: &Value) -> Value {
    json!({ "id": id, "object": "event", "type": kind, "livemode": false, "data": { "object": object } })
}

impl FakeStripe {
    pub(crate) async fn start() -> Self {
        let account = Arc::new(Mutex::new(Account {
            endpoints: vec![endpoint(&format!("{}/webhook", super::SHOP), &["*"])],
            ..Account::default()
        }));
        let at = |what| Api {
            account: Arc::clone(&account),
            what,
        };
        let sessions = Router::with_path("v1/checkout/sessions")
            .post(at(Call::Begin))
            .push(
                Router::with_path("{id}")
                    .get(at(Call::Session))
                    .push(Router::with_path("expire").post(at(Call::Expire))),
            );
        let router = Router::new()
            .push(sessions)
            .push(Router::with_path("v1/charges/{id}").get(at(Call::Charge)))
            .push(Router::with_path("v1/payment_intents").post(at(Call::Charges)))
            .push(Router::with_path("v1/customers/{id}/payment_methods").get(at(Call::Cards)))
            .push(Router::with_path("v1/invoice_payments").get(at(Call::InvoicePayments)))
            .push(Router::with_path("v1/subscriptions/{id}").goal(at(Call::Subscription)))
            .push(Router::with_path("v1/billing_portal/sessions").post(at(Call::Portal)))
            .push(Router::with_path("v1/account").get(at(Call::Account)))
            .push(Router::with_path("v1/webhook_endpoints").get(at(Call::Endpoints)))
            .push(Router::with_path("v1/disputes").get(at(Call::Disputes)));
        let base = super::serve(router).await;
        Self { account, base }
    }

    pub(crate) fn down(&self, is_down: bool) {
        self.account.lock().unwrap().is_down = is_down;
    }

    /// From now on it takes every request and answers none.
    pub(crate) fn silent(&self, is_silent: bool) {
        self.account.lock().unwrap().is_silent = is_silent;
    }

    /// How many requests it took without an answer.
    pub(crate) fn unanswered(&self) -> usize {
        self.account.lock().unwrap().unanswered
    }

    /// What stored cards say from now on.
    pub(crate) fn mood(&self, mood: CardMood) {
        self.account.lock().unwrap().mood = mood;
    }

    /// From now on everything is done, and no answer of a charge arrives.
    pub(crate) fn loses_answers(&self, loses: bool) {
        self.account.lock().unwrap().loses_answers = loses;
    }

    /// A customer's card is gone.
    pub(crate) fn forget_cards(&self) {
        self.account.lock().unwrap().cards.clear();
    }

    /// The payments of stored cards that succeeded: their wishes, and the intents.
    pub(crate) fn charged(&self) -> Vec<(String, Value)> {
        let account = self.account.lock().unwrap();
        let paid = account
            .charges
            .iter()
            .filter(|(_, (_, (status, intent)))| *status == 200 && intent["status"] == "succeeded");
        paid.map(|(key, (_, (_, intent)))| (key.clone(), intent.clone()))
            .collect()
    }

    /// The form of a wish's charge.
    pub(crate) fn asked(&self, wish: &str) -> BTreeMap<String, String> {
        self.account.lock().unwrap().charges[wish].0.clone()
    }

    /// How many charges were asked for.
    pub(crate) fn asked_to_charge(&self) -> usize {
        self.account.lock().unwrap().charges.len()
    }

    /// What the account's webhook endpoints are.
    pub(crate) fn endpoints(&self, endpoints: Vec<Value>) {
        self.account.lock().unwrap().endpoints = endpoints;
    }

    /// The account is not complete.
    pub(crate) fn cannot_charge(&self) {
        self.account.lock().unwrap().cannot_charge = true;
    }

    /// From now on it takes so long to find a session.
    pub(crate) fn slow(&self, pace: std::time::Duration) {
        self.account.lock().unwrap().pace = pace;
    }

    /// How often it was asked for a session.
    pub(crate) fn found(&self) -> usize {
        self.account.lock().unwrap().found
    }

    pub(crate) fn begun(&self) -> Vec<SeenRequest> {
        self.account.lock().unwrap().begun.clone()
    }

    pub(crate) fn session(&self, id: &str) -> Value {
        self.account.lock().unwrap().sessions[id].clone()
    }

    /// Pays the checkout of a page; returns its id and the event about it.
    pub(crate) fn pay(&self, page: &str) -> (String, Value) {
        let id = page.rsplit('/').next().unwrap().to_owned();
        let name = format!("evt_paid_{id}");
        let session = self.complete(&id, "paid");
        (id, event(&name, "checkout.session.completed", &session))
    }

    /// Completes a checkout whose bank pays later; `pay_later` is then followed by its success or failure.
    pub(crate) fn pay_later(&self, page: &str) -> (String, Value) {
        let id = page.rsplit('/').next().unwrap().to_owned();
        let session = self.complete(&id, "unpaid");
        let name = format!("evt_later_{id}");
        (id, event(&name, "checkout.session.completed", &session))
    }

    /// Only what is open can be completed.
    fn complete(&self, id: &str, payment_status: &str) -> Value {
        let mut account = self.account.lock().unwrap();
        let session = account.sessions.get_mut(id).expect("a session");
        assert!(
            session["status"] == "open" || session["status"] == "complete",
            "{session}"
        );
        let n = id.rsplit('_').next().unwrap();
        session["payment_status"] = json!(payment_status);
        session["status"] = json!("complete");
        if session["mode"] == "payment" {
            session["payment_intent"] = json!(format!("pi_{n}"));
        }
        let mut session = session.clone();
        if session["mode"] == "subscription" {
            for (name, value) in account.begin_subscription(&session, n) {
                session[name] = value;
            }
            account.sessions.insert(id.to_owned(), session.clone());
        }
        if let Some(customer) = session["customer"].as_str() {
            account.cards.insert(customer.to_owned(), format!("pm_{n}"));
        }
        session
    }

    /// The charge of a paid session, with what was refunded so far.
    pub(crate) fn charge(&self, id: &str, refunded: i64) -> Value {
        self.account.lock().unwrap().charge(id, refunded).unwrap()
    }

    /// A dispute of a paid session, which the account knows from now on.
    pub(crate) fn dispute(&self, id: &str, name: &str, amount: i64, status: &str) -> Value {
        let currency = self.session(id)["currency"].as_str().unwrap().to_owned();
        self.dispute_in(&currency, id, name, (amount, amount), status)
    }

    /// The same in another currency than the charge's; `settled` is what it takes from the account, in euros.
    pub(crate) fn dispute_in(
        &self,
        currency: &str,
        id: &str,
        name: &str,
        (amount, settled): (i64, i64),
        status: &str,
    ) -> Value {
        let session = self.session(id);
        let taken = json!({ "id": "txn_1", "object": "balance_transaction", "amount": -settled, "currency": "eur" });
        let dispute = json!({ "id": name, "object": "dispute", "amount": amount, "currency": currency,
            "charge": format!("ch_{id}"), "payment_intent": session["payment_intent"], "status": status,
            "metadata": {}, "balance_transactions": [taken] });
        let mut account = self.account.lock().unwrap();
        account.disputes.retain(|known| known["id"] != name);
        account.disputes.push(dispute.clone());
        dispute
    }
}

/// A webhook endpoint of the account.
pub(crate) fn endpoint(url: &str, events: &[&str]) -> Value {
    json!({ "id": "we_1", "object": "webhook_endpoint", "url": url, "status": "enabled", "enabled_events": events,
        "api_version": VERSION, "livemode": false })
}

/// What a session takes, beside its lines and metadata.
const SESSION: [&str; 7] = [
    "mode",
    "success_url",
    "cancel_url",
    "expires_at",
    "adaptive_pricing[enabled]",
    "customer_creation",
    "payment_intent_data[setup_future_usage]",
];
/// What a charge in another currency comes to on the account, in cents of a euro.
pub(crate) const SETTLED: i64 = 1_000;
/// The version of the newest library.
pub(crate) const VERSION: &str = "2026-10-28.endive";

enum Call {
    Charges,
    Cards,
    Account,
    Endpoints,
    Expire,
    Begin,
    Session,
    Charge,
    Disputes,
    InvoicePayments,
    Subscription,
    Portal,
}

struct Api {
    account: Arc<Mutex<Account>>,
    what: Call,
}

fn refuse(res: &mut Response, status: StatusCode, code: &str) {
    res.status_code(status);
    let error =
        json!({ "error": { "type": "invalid_request_error", "code": code, "message": code } });
    res.body(error.to_string());
}

#[handler]
impl Api {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let form = match self.what {
            Call::Begin | Call::Charges | Call::Subscription | Call::Portal => body(req).await,
            _ => BTreeMap::new(),
        };
        let headers: BTreeMap<String, String> = req
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        if self.is_silent() {
            std::future::pending::<()>().await;
        }
        if matches!(self.what, Call::Session) {
            let pace = {
                let mut account = self.account.lock().unwrap();
                account.found += 1;
                account.pace
            };
            tokio::time::sleep(pace).await;
        }
        let mut account = self.account.lock().unwrap();
        if account.is_down {
            return refuse(res, StatusCode::SERVICE_UNAVAILABLE, "api_connection_error");
        }
        if headers.get("authorization").map(String::as_str) != Some("Bearer sk_test_of_the_tests") {
            return refuse(res, StatusCode::UNAUTHORIZED, "api_key_invalid");
        }
        assert_eq!(headers["stripe-version"], VERSION);
        let id = req.param::<String>("id").unwrap_or_default();
        let found = match self.what {
            Call::Begin => return account.begin(SeenRequest { headers, form }, res),
            Call::Charges => return account.charge_stored(&headers["idempotency-key"], form, res),
            Call::Cards => {
                let card = account.cards.get(&id);
                let data: Vec<_> = card
                    .map(|card| json!({ "id": card, "type": "card" }))
                    .into_iter()
                    .collect();
                Some(json!({ "object": "list", "data": data, "has_more": false }))
            }
            Call::Session => account.sessions.get(&id).cloned(),
            Call::Charge => account.charge(id.strip_prefix("ch_").unwrap_or_default(), 0),
            Call::InvoicePayments => {
                let url = format!("http://query.invalid/?{}", req.uri().query().unwrap());
                let url = reqwest::Url::parse(&url).unwrap();
                Some(account.invoice_payments(&url.query_pairs().into_owned().collect()))
            }
            Call::Subscription if form.is_empty() => account.plans.known.get(&id).cloned(),
            Call::Subscription => account.end_with_period(&id, &headers["idempotency-key"], form),
            Call::Portal => Some(account.open_portal(form)),
            Call::Account => Some(json!({ "id": "acct_1", "object": "account",
                "charges_enabled": !account.cannot_charge })),
            Call::Endpoints => {
                Some(json!({ "object": "list", "data": account.endpoints, "has_more": false }))
            }
            Call::Expire => match account.sessions.get_mut(&id) {
                Some(session) if session["status"] == "open" => {
                    session["status"] = json!("expired");
                    Some(session.clone())
                }
                Some(_) => return refuse(res, StatusCode::BAD_REQUEST, "resource_not_open"),
                None => None,
            },
            Call::Disputes => {
                let charge = req.query::<String>("charge").unwrap();
                let of = |dispute: &&Value| dispute["charge"] == charge.as_str();
                let data: Vec<_> = account.disputes.iter().filter(of).cloned().collect();
                Some(json!({ "object": "list", "data": data, "has_more": false }))
            }
        };
        match found {
            Some(found) => {
                res.body(found.to_string());
            }
            None => refuse(res, StatusCode::NOT_FOUND, "resource_missing"),
        }
    }
}

impl Api {
    /// Whether this request gets no answer.
    fn is_silent(&self) -> bool {
        let mut account = self.account.lock().unwrap();
        account.unanswered += usize::from(account.is_silent);
        account.is_silent
    }
}

async fn body(req: &mut Request) -> BTreeMap<String, String> {
    let bytes = req.payload().await.unwrap().clone();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let url = reqwest::Url::parse(&format!("http://form.invalid/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

impl Account {
    /// The charge of a paid session. What came of it on the account is in euros, at a rate of the bank's.
    fn charge(&self, id: &str, refunded: i64) -> Option<Value> {
        let session = self.sessions.get(id)?;
        let (amount, currency) = (&session["amount_total"], &session["currency"]);
        let settled = if currency == "eur" {
            amount.clone()
        } else {
            json!(SETTLED)
        };
        Some(
            json!({ "id": format!("ch_{id}"), "object": "charge", "amount": amount,
            "amount_refunded": refunded, "currency": currency,
            "payment_intent": session["payment_intent"], "metadata": session["metadata"],
            "balance_transaction": { "id": "txn_0", "object": "balance_transaction", "amount": settled,
            "currency": "eur" } }),
        )
    }

    fn charge_stored(&mut self, key: &str, form: BTreeMap<String, String>, res: &mut Response) {
        let known = [
            "amount",
            "currency",
            "customer",
            "payment_method",
            "off_session",
            "confirm",
            "description",
        ];
        let is_known = |name: &&String| {
            known.contains(&name.as_str()) || name.starts_with("metadata[farebox_")
        };
        if !form.keys().all(|name| is_known(&name))
            || form["off_session"] != "true"
            || form["confirm"] != "true"
        {
            return refuse(res, StatusCode::BAD_REQUEST, "parameter_invalid");
        }
        if self.cards.get(&form["customer"]) != form.get("payment_method") {
            return refuse(res, StatusCode::BAD_REQUEST, "resource_missing");
        }
        let amount: i64 = form["amount"].parse().unwrap();
        if let Some((first, _)) = self.charges.get(key)
            && *first != form
        {
            return refuse(res, StatusCode::BAD_REQUEST, "idempotency_error");
        }
        let id = format!("pi_stored_{}", self.charges.len() + 1);
        let metadata: BTreeMap<&str, &str> = (form.iter())
            .filter_map(|(name, value)| {
                Some((
                    name.strip_prefix("metadata[")?.strip_suffix(']')?,
                    value.as_str(),
                ))
            })
            .collect();
        let intent = |status: &str, received: i64| {
            json!({ "id": id, "object": "payment_intent", "status": status, "amount": amount,
                "amount_received": received, "currency": form["currency"], "customer": form["customer"],
                "metadata": metadata })
        };
        let card_error = |code: &str, decline: &str| {
            (
                402,
                json!({ "error": { "type": "card_error", "code": code, "decline_code": decline, "message": code } }),
            )
        };
        let fresh = match self.mood {
            CardMood::Pays => (200, intent("succeeded", amount)),
            CardMood::TakesItsTime => (200, intent("processing", 0)),
            CardMood::Declined => card_error("card_declined", "insufficient_funds"),
            CardMood::AsksForItsOwner => {
                card_error("authentication_required", "authentication_required")
            }
        };
        let session = json!({ "amount_total": amount, "currency": form["currency"], "payment_intent": id, "metadata": metadata });
        self.sessions.entry(id.clone()).or_insert(session);
        let (_, (status, answer)) = self
            .charges
            .entry(key.to_owned())
            .or_insert_with(|| (form.clone(), fresh));
        if self.loses_answers {
            return refuse(res, StatusCode::INTERNAL_SERVER_ERROR, "api_error");
        }
        res.status_code(StatusCode::from_u16(*status).unwrap());
        res.body(answer.to_string());
    }

    fn begin(&mut self, seen: SeenRequest, res: &mut Response) {
        let form = seen.form.clone();
        let known = |name: &str| {
            SESSION.contains(&name)
                || [
                    "line_items[0][",
                    "metadata[farebox_",
                    "payment_intent_data[metadata][farebox_",
                    "subscription_data[metadata][farebox_",
                ]
                .iter()
                .any(|begin| name.starts_with(begin))
        };
        if let Some(name) = form.keys().find(|name| !known(name)) {
            return refuse(
                res,
                StatusCode::BAD_REQUEST,
                &format!("parameter_unknown {name}"),
            );
        }
        let amount: i64 = form["line_items[0][price_data][unit_amount]"]
            .parse()
            .unwrap();
        let metadata: BTreeMap<&str, &str> = form
            .iter()
            .filter_map(|(name, value)| {
                let name = name.strip_prefix("metadata[")?.strip_suffix(']')?;
                Some((name, value.as_str()))
            })
            .collect();
        assert!(metadata.len() <= 50, "{metadata:?}");
        let renews = form["mode"] == "subscription";
        assert_eq!(
            renews,
            form.contains_key("line_items[0][price_data][recurring][interval]")
        );
        let copies = if renews {
            "subscription_data"
        } else {
            "payment_intent_data"
        };
        let other = if renews {
            "payment_intent_data"
        } else {
            "subscription_data"
        };
        assert!(!form.keys().any(|name| name.starts_with(other)), "{form:?}");
        for (name, value) in &metadata {
            assert!(
                name.len() <= 40 && value.chars().count() <= 500,
                "{name}: {value}"
            );
            let copied = form.get(&format!("{copies}[metadata][{name}]"));
            assert_eq!(copied.map(String::as_str), Some(*value));
        }
        let stores = form.contains_key("payment_intent_data[setup_future_usage]");
        let makes = form.get("customer_creation").map(String::as_str) == Some("always");
        if stores != makes {
            return refuse(
                res,
                StatusCode::BAD_REQUEST,
                "a card is stored for a customer",
            );
        }
        let closes: i64 = form["expires_at"].parse().unwrap();
        let left = closes - now();
        if !(30 * 60..=86_400).contains(&left)
            && !self.by_key.contains_key(&seen.headers["idempotency-key"])
        {
            return refuse(res, StatusCode::BAD_REQUEST, "invalid expires_at");
        }
        let key = seen.headers["idempotency-key"].clone();
        self.begun.push(seen);
        if let Some((first, id)) = self.by_key.get(&key) {
            if *first != form {
                return refuse(res, StatusCode::BAD_REQUEST, "idempotency_error");
            }
            res.body(self.sessions[id].to_string());
            return;
        }
        let n = self.sessions.len() + 1;
        let id = format!("cs_test_{n}");
        let session = json!({
            "id": id, "object": "checkout.session", "mode": form["mode"], "status": "open", "payment_status": "unpaid",
            "amount_total": amount, "currency": form["line_items[0][price_data][currency]"],
            "customer": makes.then(|| format!("cus_{n}")),
            "payment_intent": null, "subscription": null, "invoice": null, "expires_at": closes, "metadata": metadata,
            "success_url": form["success_url"], "cancel_url": form["cancel_url"],
            "url": format!("https://checkout.example/pay/{id}"),
        });
        self.by_key.insert(key, (form, id.clone()));
        res.body(session.to_string());
        self.sessions.insert(id, session);
    }
}

//! A gateway's admin API in memory, as far as a sell token reaches: strict about references, external ids and idempotency keys, and
//! able to be away, to lose its answers, and to stand still in the middle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farebox_ledger::{Amount, CustomerId, Gross};
use salvo::http::{Method, StatusCode};
use salvo::prelude::{Request, Response, Router, handler};
use serde_json::{Value, json};

/// What the next requests meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Weather {
    #[default]
    Fine,
    /// Nothing is done.
    Away,
    /// Everything is done, and no answer arrives.
    LosesAnswers,
    /// The n-th change from now is done, and then nothing is answered for a long time.
    StandsAfter(u32),
    /// The n-th change from now is not done, and nothing is answered.
    StandsBefore(u32),
}

#[derive(Debug, Clone)]
pub(crate) struct BookedTopUp {
    pub(crate) customer: String,
    pub(crate) status: &'static str,
    pub(crate) body: Value,
    /// Refunded, withdrawn, reinstated.
    pub(crate) registers: BTreeMap<String, Gross>,
}

#[derive(Debug, Default)]
pub(crate) struct BooksState {
    pub(crate) customers: BTreeMap<String, Value>,
    pub(crate) payments: BTreeMap<String, BookedTopUp>,
    pub(crate) secrets: Vec<String>,
    pub(crate) used_keys: Vec<String>,
    /// Customers whose payments cannot be booked.
    pub(crate) closed: Vec<String>,
    once: BTreeMap<(String, String), (Value, u16, Value)>,
    weather: Weather,
}

#[derive(Clone)]
pub(crate) struct Books {
    pub(crate) state: Arc<Mutex<BooksState>>,
    pub(crate) base: String,
}

impl Books {
    pub(crate) async fn start() -> Self {
        let state = Arc::new(Mutex::new(BooksState::default()));
        let api = Api(Arc::clone(&state));
        let router = Router::with_path("api/v1/{**rest}").goal(api);
        let base = super::serve(router).await;
        Self { state, base }
    }

    pub(crate) fn weather(&self, weather: Weather) {
        self.state.lock().unwrap().weather = weather;
    }

    /// A customer that somebody else made.
    pub(crate) fn customer(&self) -> String {
        let id = CustomerId::from_random(rand_id()).to_string();
        let document = json!({ "id": id, "external_id": null, "keys": [] });
        self.state
            .lock()
            .unwrap()
            .customers
            .insert(id.clone(), document);
        id
    }

    /// Every payment with whose it is.
    pub(crate) fn payments(&self) -> Vec<(String, String)> {
        let state = self.state.lock().unwrap();
        let each = state.payments.iter();
        each.map(|(reference, of)| (reference.clone(), of.customer.clone()))
            .collect()
    }

    pub(crate) fn payment(&self, reference: &str) -> BookedTopUp {
        self.state.lock().unwrap().payments[reference].clone()
    }

    pub(crate) fn customers(&self) -> Vec<Value> {
        self.state
            .lock()
            .unwrap()
            .customers
            .values()
            .cloned()
            .collect()
    }
}

fn rand_id() -> u64 {
    u64::from_le_bytes(farebox_ledger::clock::random::<8>())
}

struct Api(Arc<Mutex<BooksState>>);

type Told = (u16, Value);

fn refused(status: u16, code: &str) -> Told {
    (
        status,
        json!({ "error": { "code": code, "message": code, "details": null }, "request_id": "req_1" }),
    )
}

#[handler]
impl Api {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let path = req.uri().path().trim_start_matches("/api/v1/").to_owned();
        let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
        let header = |name: &str| {
            let value = req
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok());
            value.map(str::to_owned)
        };
        assert_eq!(
            header("authorization").as_deref(),
            Some("Bearer fb-token-sell")
        );
        let (is_post, once) = (req.method() == Method::POST, header("idempotency-key"));
        let external = req.query::<String>("external_id");
        let body: Value = if is_post {
            serde_json::from_slice(req.payload().await.unwrap()).unwrap()
        } else {
            Value::Null
        };
        let mut stands = false;
        let told = {
            let mut state = self.0.lock().unwrap();
            let weather = state.weather;
            let before = is_post && weather == Weather::StandsBefore(0);
            if is_post {
                state.weather = match weather {
                    Weather::StandsAfter(n) => Weather::StandsAfter(n.saturating_sub(1)),
                    Weather::StandsBefore(n) => Weather::StandsBefore(n.saturating_sub(1)),
                    other => other,
                };
            }
            stands |= before || is_post && weather == Weather::StandsAfter(0);
            match weather {
                Weather::Away => refused(503, "ledger_unavailable"),
                _ if before => refused(503, "ledger_unavailable"),
                _ if is_post => {
                    let told = state.post_once(&parts, &once.unwrap(), &body);
                    if weather == Weather::LosesAnswers {
                        refused(503, "ledger_unavailable")
                    } else {
                        told
                    }
                }
                _ => state.get(&parts, external.as_deref()),
            }
        };
        if stands {
            tokio::time::sleep(Duration::from_secs(120)).await;
        }
        res.status_code(StatusCode::from_u16(told.0).unwrap());
        res.body(told.1.to_string());
    }
}

impl BooksState {
    fn post_once(&mut self, parts: &[String], once: &str, body: &Value) -> Told {
        let is_visible = once.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(is_visible && (1..=255).contains(&once.len()), "{once:?}");
        let place = (parts.join("/"), once.to_owned());
        if let Some((first, status, answer)) = self.once.get(&place) {
            return if first == body {
                (*status, answer.clone())
            } else {
                refused(422, "idempotency_mismatch")
            };
        }
        let told = self.post(parts, body);
        if told.0 < 300 {
            let mut stored = told.1.clone();
            if let Some(fields) = stored.as_object_mut() {
                fields.remove("secret");
            }
            self.once.insert(place, (body.clone(), told.0, stored));
        }
        told
    }

    fn post(&mut self, parts: &[String], body: &Value) -> Told {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            ["customers"] => self.make_customer(body),
            ["customers", id, "keys"] => self.make_key(id, body),
            ["keys", id, "reissue"] if self.used_keys.contains(&id.to_owned()) => {
                refused(409, "key_used")
            }
            ["keys", id, "reissue"] => (200, json!({ "id": id, "secret": self.secret(id) })),
            ["customers", id, "top-ups"] => self.top_up(id, body),
            ["customers", id, "reversals"] => self.reverse(id, body),
            _ => refused(404, "not_found"),
        }
    }

    fn make_customer(&mut self, body: &Value) -> Told {
        let external = body["external_id"].as_str().unwrap();
        if self
            .customers
            .values()
            .any(|known| known["external_id"] == external)
        {
            return refused(409, "external_id_used");
        }
        let name = body["name"].as_str().unwrap_or_default();
        if name.contains("refused") {
            return refused(409, "not_applicable");
        }
        let id = CustomerId::from_random(rand_id()).to_string();
        let document = json!({ "id": id, "label": body["label"], "external_id": external, "status": "active",
            "personal": { "name": body["name"], "address": body["address"] }, "keys": [] });
        self.customers.insert(id, document.clone());
        (201, document)
    }

    fn make_key(&mut self, customer: &str, body: &Value) -> Told {
        assert_eq!(body["owner"], true);
        let Some(document) = self.customers.get_mut(customer) else {
            return refused(404, "customer_not_found");
        };
        let keys = document["keys"].as_array_mut().unwrap();
        if !keys.is_empty() {
            return refused(403, "not_allowed");
        }
        let id = customer.replace("c_", "k_");
        keys.push(json!({ "id": id }));
        let secret = self.secret(&id);
        (201, json!({ "id": id, "secret": secret }))
    }

    fn secret(&mut self, key: &str) -> String {
        let secret = format!(
            "sk-fb-{}-{}",
            key.trim_start_matches("k_"),
            self.secrets.len()
        );
        self.secrets.push(secret.clone());
        secret
    }

    fn top_up(&mut self, customer: &str, body: &Value) -> Told {
        if !self.customers.contains_key(customer) {
            return refused(404, "customer_not_found");
        }
        let reference = body["reference"].as_str().unwrap();
        Amount::from_usd_str(body["amount"].as_str().unwrap()).unwrap();
        let mut status = 201;
        match self.payments.get(reference) {
            Some(known) if known.customer == customer && known.body == *body => status = 200,
            Some(_) => return refused(409, "reference_used"),
            None => {
                let is_closed = self.closed.contains(&customer.to_owned());
                let booked = BookedTopUp {
                    customer: customer.to_owned(),
                    status: if is_closed { "unapplied" } else { "booked" },
                    body: body.clone(),
                    registers: BTreeMap::new(),
                };
                if is_closed {
                    status = 202;
                }
                self.payments.insert(reference.to_owned(), booked);
            }
        }
        (
            status,
            json!({ "payment": self.shown(reference), "entry": null, "customer": { "id": customer } }),
        )
    }

    fn reverse(&mut self, customer: &str, body: &Value) -> Told {
        let kind = body["kind"].as_str().unwrap().to_owned();
        assert!(["refund", "dispute", "dispute-won"].contains(&kind.as_str()));
        let cumulative = Gross::parse(body["cumulative"].as_str().unwrap()).unwrap();
        let reference = body["payment"].as_str().unwrap();
        assert!(body["reference"].as_str().unwrap().starts_with("evt_"));
        let Some(payment) = self.payments.get_mut(reference) else {
            return refused(404, "payment_not_found");
        };
        assert_eq!(payment.customer, customer);
        let register = payment.registers.entry(kind).or_default();
        *register = cumulative.max(*register);
        (
            200,
            json!({ "payment": self.shown(reference), "entry": null, "customer": { "id": customer } }),
        )
    }

    fn shown(&self, reference: &str) -> Value {
        let payment = &self.payments[reference];
        json!({ "reference": reference, "customer": payment.customer, "status": payment.status })
    }

    fn get(&self, parts: &[String], external: Option<&str>) -> Told {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            ["customers"] => {
                let of = |known: &&Value| known["external_id"].as_str() == external;
                let data: Vec<_> = self.customers.values().filter(of).cloned().collect();
                (
                    200,
                    json!({ "data": data, "has_more": false, "next_cursor": null }),
                )
            }
            ["customers", id] => match self.customers.get(id) {
                Some(document) => (200, document.clone()),
                None => refused(404, "customer_not_found"),
            },
            ["payments", reference] if self.payments.contains_key(reference) => {
                (200, self.shown(reference))
            }
            ["payments", reference, "receipt"] if self.payments.contains_key(reference) => {
                let payment = &self.payments[reference];
                (
                    200,
                    json!({ "number": format!("{}-1-1", payment.customer), "at": "2026-11-24T10:00:00Z",
                    "customer": payment.customer, "reference": reference, "currency": "EUR", "net": "10.00",
                    "tax": "1.90", "gross": "11.90", "credit": "10.00" }),
                )
            }
            ["models"] => (
                200,
                json!({ "data": [{ "model": "Small & fast", "customer_slug": "small", "provider": "Sim",
                "best_path": "chat", "best_environments": [], "service_price": "1.00 / 2.00" }] }),
            ),
            _ => refused(404, "payment_not_found"),
        }
    }
}

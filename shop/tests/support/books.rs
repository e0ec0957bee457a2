//! A gateway's admin API in memory, as far as a sell token reaches: strict about references, external ids and idempotency keys, and
//! able to be away, to lose its answers, and to stand still in the middle.

pub(crate) mod plans;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farebox_ledger::{Amount, CustomerId, Gross, Timestamp, clock};
use salvo::http::{Method, StatusCode};
use salvo::prelude::{Request, Response, Router, handler};
use serde_json::{Value, json};

use plans::PlanBooks;

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
    /// Live reservations by id: credit, customer and until when.
    pub(crate) reserved: BTreeMap<String, (Amount, Option<String>, Timestamp)>,
    reservations: usize,
    /// What may be reserved at once, in US dollars; 0 is 50.
    pub(crate) most: i64,
    pub(crate) role: Option<&'static str>,
    /// Rules of automatic top-ups by customer, as they were set.
    pub(crate) rules: BTreeMap<String, Value>,
    /// Wishes by reference, and the events that tell of them, in order.
    pub(crate) wishes: BTreeMap<String, Value>,
    events: Vec<String>,
    /// Links of the dashboard that nobody used, and whom they bring.
    pub(crate) links: BTreeMap<String, String>,
    pub(crate) plans: PlanBooks,
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

    /// From now on nothing can be booked on this customer.
    pub(crate) fn close(&self, customer: &str) {
        let mut state = self.state.lock().unwrap();
        state.closed.push(customer.to_owned());
    }

    /// A rule asks for money; returns the wish's name. It is told only as long as the rule is there.
    pub(crate) fn wish(&self, customer: &str) -> String {
        self.wish_that_is(customer, "wanted", 86_400_000)
    }

    /// One that is this already when it is told, and has so many milliseconds left.
    pub(crate) fn wish_that_is(&self, customer: &str, status: &str, left: i64) -> String {
        let mut state = self.state.lock().unwrap();
        let reference = format!("auto-top-up:{customer}-{}", state.wishes.len() + 1);
        let until = Timestamp::from_millis(clock::now().millis() + left);
        let rule = &state.rules[customer];
        let wish = json!({ "reference": reference, "customer": customer, "amount": rule["amount"],
            "until": until, "status": status, "processor_ref": rule["processor_ref"] });
        state.wishes.insert(reference.clone(), wish);
        state.events.push(reference.clone());
        reference
    }

    /// What became of a wish: its status, as soon as it is another one than this.
    pub(crate) async fn after(&self, reference: &str, before: &str) -> Value {
        for _ in 0..1_500 {
            let wish = self.state.lock().unwrap().wishes[reference].clone();
            if wish["status"] != before {
                return wish;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{reference} is still {before}");
    }

    /// How many checkouts have credit kept for them.
    pub(crate) fn reserved(&self) -> usize {
        self.state.lock().unwrap().reserved.len()
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
        if header("authorization").as_deref() != Some("Bearer fb-token-sell") {
            let (status, told) = refused(401, "unauthorized");
            res.status_code(StatusCode::from_u16(status).unwrap());
            res.body(told.to_string());
            return;
        }
        let (is_post, once) = (req.method() == Method::POST, header("idempotency-key"));
        let external = req.query::<String>("external_id");
        let after = req.query::<String>("after");
        let kind = req.query::<String>("type").unwrap_or_default();
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
                _ if req.method() == Method::DELETE => state.release(&parts),
                _ => state.get(&parts, external.as_deref(), (&kind, after.as_deref())),
            }
        };
        if stands {
            tokio::time::sleep(Duration::from_secs(120)).await;
        }
        res.status_code(StatusCode::from_u16(told.0).unwrap());
        if told.0 != 204 {
            res.body(told.1.to_string());
        }
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
            ["reservations"] => self.reserve(body),
            ["customers", id, "auto-top-up"] => self.set_rule(id, body),
            ["top-ups", reference, "failed"] => match self.wishes.get_mut(reference) {
                Some(wish) if wish["status"] == "wanted" || wish["status"] == "failed" => {
                    wish["status"] = json!("failed");
                    wish["reason"] = body["reason"].clone();
                    (200, wish.clone())
                }
                Some(_) => refused(409, "not_applicable"),
                None => refused(404, "top_up_not_found"),
            },
            ["visits"] => match self.links.remove(body["link"].as_str().unwrap()) {
                Some(customer) => {
                    let until = Timestamp::from_millis(clock::now().millis() + 86_400_000);
                    (
                        201,
                        json!({ "customer": customer, "key": "k_1", "until": until }),
                    )
                }
                None => refused(404, "link_not_found"),
            },
            ["customers"] => self.make_customer(body),
            ["customers", id, "keys"] => self.make_key(id, body),
            ["keys", id, "reissue"] if self.used_keys.contains(&id.to_owned()) => {
                refused(409, "key_used")
            }
            ["keys", id, "reissue"] => (200, json!({ "id": id, "secret": self.secret(id) })),
            ["customers", id, "top-ups"] => self.top_up(id, body),
            ["customers", id, "plans"] => self.sell_plan(id, body),
            ["subscriptions", id, act] => self.change_plan(id, act, body),
            ["customers", id, "reversals"] => self.reverse(id, body),
            _ => refused(404, "not_found"),
        }
    }

    /// What may be reserved now; whatever has ended is gone.
    fn reservable(&mut self) -> Amount {
        let now = clock::now();
        self.reserved.retain(|_, (_, _, until)| *until > now);
        let live = self.reserved.values().map(|(credit, _, _)| *credit);
        let live = Amount::checked_sum(live).unwrap();
        self.most_reservable().checked_sub(live).unwrap()
    }

    fn most_reservable(&self) -> Amount {
        let most = if self.most == 0 { 50 } else { self.most };
        Amount::from_usd_str(&most.to_string()).unwrap()
    }

    fn reserve(&mut self, body: &Value) -> Told {
        let credit = Amount::from_usd_str(body["credit"].as_str().unwrap()).unwrap();
        let asked: Timestamp = serde_json::from_value(body["until"].clone()).unwrap();
        let customer = body["customer"].as_str().map(str::to_owned);
        if let Some(customer) = &customer {
            if !self.customers.contains_key(customer) {
                return refused(404, "customer_not_found");
            }
            if self.closed.contains(customer) {
                return refused(409, "customer_not_active");
            }
            if body["plan"].is_string() && self.renews(customer, &body["plan"]) {
                return refused(409, "has_plan");
            }
        }
        let now = clock::now().millis();
        assert!(asked.millis() > now, "{body}");
        let goes_on = body["id"].as_str();
        let longest = if goes_on.is_some() { 14 * 1_440 } else { 30 };
        let most = now + longest * 60_000;
        let until = Timestamp::from_millis(asked.millis().min(most));
        let free = self.reservable();
        let id = match goes_on {
            Some(id) => match self.reserved.get(id) {
                Some((of, whose, _)) if *of == credit && *whose == customer => id.to_owned(),
                _ => return refused(404, "reservation_not_found"),
            },
            None if credit > free => {
                let ends = self.reserved.values().map(|(_, _, until)| *until);
                let free_at = ends.max().filter(|_| credit <= self.most_reservable());
                let details = json!({ "free_at": free_at, "most": free });
                let error =
                    json!({ "code": "sold_out", "message": "sold out", "details": details });
                return (409, json!({ "error": error, "request_id": "req_1" }));
            }
            None => {
                self.reservations += 1;
                format!("r_{}", self.reservations)
            }
        };
        let told = json!({ "id": id, "credit": credit, "customer": customer, "until": until });
        self.reserved.insert(id, (credit, customer, until));
        (201, told)
    }

    fn release(&mut self, parts: &[String]) -> Told {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            ["reservations", id] => drop(self.reserved.remove(id)),
            ["customers", id, "auto-top-up"] if self.rules.contains_key(id) => {
                self.rules.remove(id);
                self.wishes.retain(|_, wish| wish["customer"] != id);
            }
            _ => return refused(404, "not_found"),
        }
        (204, Value::Null)
    }

    fn set_rule(&mut self, customer: &str, body: &Value) -> Told {
        let usd = |name: &str| Amount::from_usd_str(body[name].as_str().unwrap()).unwrap();
        assert!(usd("threshold").is_positive() && usd("threshold") < usd("amount"));
        assert!(body["per_month"].as_u64().unwrap() > 0);
        assert!(body["processor_ref"].as_str().unwrap().len() <= 128);
        self.rules.insert(customer.to_owned(), body.clone());
        (200, json!({ "id": customer, "auto_top_up": body }))
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
        let amount = Amount::from_usd_str(body["amount"].as_str().unwrap()).unwrap();
        let reservation = body["reservation"].as_str().unwrap_or_default();
        let free = self.reservable();
        let has_room = self.reserved.remove(reservation).is_some() || amount <= free;
        let mut status = 201;
        match self.payments.get(reference) {
            Some(known) if known.customer == customer && known.body == *body => status = 200,
            Some(_) => return refused(409, "reference_used"),
            None => {
                let as_asked = body["currency"] == body["expected_currency"]
                    && body["gross"] == body["expected_gross"];
                assert_eq!(as_asked, body["tax"].is_string(), "{body}");
                let is_closed =
                    self.closed.contains(&customer.to_owned()) || !has_room || !as_asked;
                let booked = BookedTopUp {
                    customer: customer.to_owned(),
                    status: if is_closed { "unapplied" } else { "booked" },
                    body: body.clone(),
                    registers: BTreeMap::new(),
                };
                if is_closed {
                    status = 202;
                }
                if let Some(wish) = self.wishes.get_mut(reference) {
                    wish["status"] = json!("booked");
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
        let event = body["reference"].as_str().unwrap();
        assert!(event.starts_with("evt_") || event.starts_with("sim_"));
        let Some(payment) = self.payments.get_mut(reference) else {
            return refused(404, "payment_not_found");
        };
        assert_eq!(payment.customer, customer);
        // As a share of the payment, whatever currency both are in.
        let whole = Gross::parse(body["whole"].as_str().unwrap()).unwrap();
        let gross = Gross::parse(payment.body["gross"].as_str().unwrap()).unwrap();
        let share = i128::from(gross.parts()) * i128::from(cumulative.parts());
        let share = (share / i128::from(whole.parts())).min(i128::from(gross.parts()));
        let cumulative = Gross::from_parts(i64::try_from(share).unwrap()).unwrap();
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

    fn get(
        &self,
        parts: &[String],
        external: Option<&str>,
        (kind, after): (&str, Option<&str>),
    ) -> Told {
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
            ["events"] if kind == "plan.end_wanted" => self.ends_after(after),
            ["events"] => {
                assert_eq!(kind, "top_up.wanted");
                let from = after.map_or(0, |id| id["evt_".len()..].parse::<usize>().unwrap());
                let mut told = Vec::new();
                for (at, reference) in self.events.iter().enumerate().skip(from) {
                    if let Some(wish) = self.wishes.get(reference) {
                        let data = json!({ "reference": reference, "amount": wish["amount"],
                            "balance": "1.00", "threshold": "2.00", "until": wish["until"] });
                        told.push(
                            json!({ "id": format!("evt_{}", at + 1), "type": "top_up.wanted",
                            "customer": wish["customer"], "data": data }),
                        );
                    }
                }
                (
                    200,
                    json!({ "data": told, "has_more": false, "next_cursor": null }),
                )
            }
            ["top-ups", reference] => match self.wishes.get(reference) {
                Some(wish) => (200, wish.clone()),
                None => refused(404, "top_up_not_found"),
            },
            ["token"] => (
                200,
                json!({ "id": "t_1", "label": "shop", "role": self.role.unwrap_or("sell"), "daily": "100.00",
                "expires_at": null, "reserved": "0.00", "reservable": "50.00",
                "most_reservable": self.most_reservable(), "highest_balance": "1000000.00" }),
            ),
            ["shop"] => (
                200,
                json!({ "name": "Key Corner", "contact": null, "pay_url": format!("{}/", super::SHOP), "note": null,
                "address": "1 Market Square, 10115 Berlin", "tax_id": "DE123456789",
                "terms_url": "https://shop.example/terms", "privacy_url": null,
                "public_url": "https://llm.example" }),
            ),
            ["plans"] => (
                200,
                json!({ "data": self.plans.sold, "has_more": false, "next_cursor": null }),
            ),
            ["customers", id, "plans"] => self.plans_of(id),
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
                    json!({ "number": format!("{}-1-1", payment.customer), "at": "2026-11-24T10:00:00Z", "kind": "receipt",
                    "seller": { "name": "Key Corner", "address": "1 Market Square", "tax_id": "DE123456789" },
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

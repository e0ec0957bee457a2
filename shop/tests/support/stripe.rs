//! A processor that answers as Stripe's API does, as far as a shop uses it, and is strict about what it is sent. What it sends and
//! takes is judged by the published library: `judged.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hmac::{Hmac, KeyInit, Mac};
use salvo::http::StatusCode;
use salvo::prelude::{Request, Response, Router, handler};
use serde_json::{Value, json};
use sha2::Sha256;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct SeenRequest {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) form: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Account {
    sessions: BTreeMap<String, Value>,
    by_key: BTreeMap<String, (BTreeMap<String, String>, String)>,
    disputes: Vec<Value>,
    begun: Vec<SeenRequest>,
    is_down: bool,
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
        let account = Arc::new(Mutex::new(Account::default()));
        let at = |what| Api {
            account: Arc::clone(&account),
            what,
        };
        let sessions = Router::with_path("v1/checkout/sessions")
            .post(at(Call::Begin))
            .push(Router::with_path("{id}").get(at(Call::Session)));
        let router = Router::new()
            .push(sessions)
            .push(Router::with_path("v1/payment_intents/{id}").get(at(Call::Intent)))
            .push(Router::with_path("v1/disputes").get(at(Call::Disputes)));
        let base = super::serve(router).await;
        Self { account, base }
    }

    pub(crate) fn down(&self, is_down: bool) {
        self.account.lock().unwrap().is_down = is_down;
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
        let mut account = self.account.lock().unwrap();
        let session = account.sessions.get_mut(&id).expect("a session");
        session["payment_status"] = json!("paid");
        session["status"] = json!("complete");
        let session = session.clone();
        let name = format!("evt_paid_{id}");
        (id, event(&name, "checkout.session.completed", &session))
    }

    /// The charge of a paid session, with what was refunded so far.
    pub(crate) fn charge(&self, id: &str, refunded: i64) -> Value {
        let session = self.session(id);
        json!({ "id": format!("ch_{id}"), "object": "charge", "amount": session["amount_total"],
            "amount_refunded": refunded, "currency": session["currency"],
            "payment_intent": session["payment_intent"], "metadata": session["metadata"] })
    }

    /// A dispute of a paid session, which the account knows from now on.
    pub(crate) fn dispute(&self, id: &str, name: &str, amount: i64, status: &str) -> Value {
        let session = self.session(id);
        let dispute = json!({ "id": name, "object": "dispute", "amount": amount, "currency": session["currency"],
            "charge": format!("ch_{id}"), "payment_intent": session["payment_intent"], "status": status,
            "metadata": {}, "balance_transactions": [{ "id": "txn_1", "object": "balance_transaction" }] });
        let mut account = self.account.lock().unwrap();
        account.disputes.retain(|known| known["id"] != name);
        account.disputes.push(dispute.clone());
        dispute
    }
}

enum Call {
    Begin,
    Session,
    Intent,
    Disputes,
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
            Call::Begin => body(req).await,
            _ => BTreeMap::new(),
        };
        let headers: BTreeMap<String, String> = req
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
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
        let id = req.param::<String>("id").unwrap_or_default();
        let found = match self.what {
            Call::Begin => return account.begin(SeenRequest { headers, form }, res),
            Call::Session => account.sessions.get(&id).cloned(),
            Call::Intent => account.intent(&id),
            Call::Disputes => {
                let intent = req.query::<String>("payment_intent").unwrap();
                let of = |dispute: &&Value| dispute["payment_intent"] == intent.as_str();
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

async fn body(req: &mut Request) -> BTreeMap<String, String> {
    let bytes = req.payload().await.unwrap().clone();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let url = reqwest::Url::parse(&format!("http://form.invalid/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

impl Account {
    fn intent(&self, id: &str) -> Option<Value> {
        let mut sessions = self.sessions.values();
        let session = sessions.find(|session| session["payment_intent"] == id)?;
        Some(json!({ "id": id, "object": "payment_intent", "metadata": session["metadata"] }))
    }

    fn begin(&mut self, seen: SeenRequest, res: &mut Response) {
        let form = seen.form.clone();
        let known = |name: &str| {
            ["mode", "success_url", "cancel_url"].contains(&name)
                || [
                    "line_items[0][",
                    "metadata[farebox_",
                    "payment_intent_data[metadata][farebox_",
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
        for (name, value) in &metadata {
            assert!(
                name.len() <= 40 && value.chars().count() <= 500,
                "{name}: {value}"
            );
            let copied = form.get(&format!("payment_intent_data[metadata][{name}]"));
            assert_eq!(copied.map(String::as_str), Some(*value));
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
            "id": id, "object": "checkout.session", "mode": "payment", "status": "open", "payment_status": "unpaid",
            "amount_total": amount, "currency": form["line_items[0][price_data][currency]"],
            "payment_intent": format!("pi_{n}"), "metadata": metadata,
            "success_url": form["success_url"], "cancel_url": form["cancel_url"],
            "url": format!("https://checkout.example/pay/{id}"),
        });
        self.by_key.insert(key, (form, id.clone()));
        res.body(session.to_string());
        self.sessions.insert(id, session);
    }
}

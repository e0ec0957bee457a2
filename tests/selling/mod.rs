//! The seller's API: who may call, what a repetition does, what is refused, and that its own description is true.

mod acting;
mod bodies;
mod described;
mod edits;
mod figures;
mod fleet;
mod golden;
mod grants;
mod lists;
mod lost;
mod once;
mod plans;
mod price_lists;
mod roles;
mod shop;
mod speaks_up;
mod stolen;
mod tokens;
mod vouchers;
mod walk;
mod ways;

use farebox::clock;
use farebox_ledger::{Amount, Ledger, NewToken, Perform, Timestamp, Token, TokenRole, TokenSecret};
use serde_json::Value;

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, CATALOG, Gateway, act, routes, talking};

/// A program of the seller's, with its token.
pub(crate) struct Program {
    pub(crate) base: String,
    pub(crate) client: reqwest::Client,
    pub(crate) token: Token,
    pub(crate) secret: String,
}

/// A token in a ledger.
pub(crate) async fn new_token(
    ledger: &dyn Ledger,
    label: &str,
    role: TokenRole,
    expires_at: Option<Timestamp>,
) -> (Token, String) {
    let daily = (role == TokenRole::Sell).then_some("100");
    new_token_of(ledger, label, role, daily, expires_at).await
}

/// The same, with this daily bound.
pub(crate) async fn new_token_of(
    ledger: &dyn Ledger,
    label: &str,
    role: TokenRole,
    daily: Option<&str>,
    expires_at: Option<Timestamp>,
) -> (Token, String) {
    let secret = TokenSecret::generate(clock::random());
    let new = NewToken {
        id: clock::token_id(),
        secret: secret.hash(),
        label: label.to_owned(),
        role,
        daily: daily.map(|usd| Amount::from_usd_str(usd).unwrap()),
        expires_at,
        act: act(),
    };
    let token = ledger.perform(new).await.unwrap();
    (token, secret.reveal().to_owned())
}

/// Plans beside the test models.
const PLANS: &str = r#"
[[plan]]
name      = "coder"
title     = "Coder, monthly"
price     = "20.00"
allowance = "25.00"
period    = "month"
windows   = [ { per = "5h", usd = "4.00" }, { per = "day", usd = "8.00" } ]
carry     = "5.00"
grace     = "6h"

[[plan]]
name      = "team"
title     = "Team, monthly"
price     = "40.00"
allowance = "50.00"
period    = "month"

[[plan]]
name      = "free"
title     = "Free, weekly"
price     = "0"
allowance = "1.00"
period    = "week"

[[plan]]
name      = "daily"
title     = "Daily"
price     = "1.00"
allowance = "1.00"
period    = "day"

[[plan]]
name      = "fifth"
title     = "One too many"
price     = "1.00"
allowance = "1.00"
period    = "day"
"#;

/// A gateway before an upstream that talks, which sells plans, too.
pub(crate) async fn gateway() -> (ScriptedUpstream, Gateway) {
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let catalog = format!("{CATALOG}{PLANS}");
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    (upstream, gateway)
}

impl Program {
    /// A program with a new token of this role, which is its label, too.
    pub(crate) async fn new(gateway: &Gateway, role: TokenRole) -> Self {
        let (token, secret) = new_token(&*gateway.ledger, role.as_str(), role, None).await;
        Self {
            base: format!("{}/api/v1", gateway.admin),
            client: gateway.client.clone(),
            token,
            secret,
        }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        self.client
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.secret)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::read(self.request("GET", path).send().await.unwrap()).await
    }

    /// A POST under this idempotency key.
    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        let request = self.request("POST", path).header("idempotency-key", key);
        Answer::read(request.json(body).send().await.unwrap()).await
    }

    /// A POST under a key of its own.
    pub(crate) async fn tries(&self, path: &str, body: &Value) -> Answer {
        self.post(path, &clock::operation_id().to_string(), body)
            .await
    }

    /// The same, which must be answered like this.
    pub(crate) async fn does(&self, path: &str, body: &Value, status: u16) -> Value {
        let answer = self.tries(path, body).await;
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.text);
        answer.json()
    }

    /// A new customer's id.
    pub(crate) async fn customer(&self, label: &str) -> String {
        let body = serde_json::json!({ "label": label });
        text(&self.does("/customers", &body, 201).await, "id")
    }
}

/// A member of a document.
pub(crate) fn text(document: &Value, name: &str) -> String {
    let found = document[name].as_str();
    found
        .unwrap_or_else(|| panic!("no {name} in {document}"))
        .to_owned()
}

/// The code of an error, whose shape is checked.
pub(crate) fn code(answer: &Answer) -> String {
    let error = answer.json();
    let shape = |value: &Value| {
        let members = value.as_object().unwrap();
        members.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(shape(&error), ["error", "request_id"], "{}", answer.text);
    assert_eq!(shape(&error["error"]), ["code", "message", "details"]);
    assert!(error["request_id"].as_str().unwrap().starts_with("req_"));
    assert!(!error["error"]["message"].as_str().unwrap().is_empty());
    text(&error["error"], "code")
}

//! The interface, row by row: one test for each row of `docs/interface.md`, of the same name and in the same order.
//!
//! `tests/tidy` compares the two. A refusal is checked in [`Desk::refused`]: status, text, form of the body, and that it cost nothing.

mod endpoints;
mod errors;
mod service;

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, CATALOG, Gateway, HOME, TestKey, ask, routes, talking};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const NATIVE: &str = "/native/v1/messages";
/// The shipped files, which `docs/interface.md` and `README.md` show.
const SHIPPED: (&str, &str) = (
    include_str!("../catalog.toml"),
    include_str!("../routes.toml"),
);

/// A gateway, what is behind it, and a key.
struct Desk {
    upstream: ScriptedUpstream,
    gateway: Gateway,
    key: TestKey,
}

impl Desk {
    /// The key has this balance. `test-model` takes two tools and pictures of 1,000 bytes; `test-blind` only text.
    async fn with(usd: &str) -> Self {
        let upstream = ScriptedUpstream::start(talking("PONG")).await;
        let small = "max_output = 64_000, tools = 2, image_bytes = 1_000 }";
        let catalog = CATALOG.replace("max_output = 64_000 }", small);
        let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
        let key = gateway.key(usd).await;
        Self {
            upstream,
            gateway,
            key,
        }
    }

    /// Asks with other headers than the key's.
    async fn asked_by(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let url = format!("{}{path}", self.gateway.base);
        let mut request = match path.ends_with("models") {
            true => self.gateway.client.get(url),
            false => (self.gateway.client.post(url)).json(&ask(Family::Chat, "test-model", false)),
        };
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::read(request.send().await.unwrap()).await
    }

    /// The answer is a refusal with this status and these words, `…` between them, and cost nothing. Returns the error.
    async fn refused(&self, answer: &Answer, status: u16, says: &str) -> Value {
        assert_eq!(answer.status, status, "{}", answer.text);
        let body = answer.json();
        assert_eq!(body["type"], "error");
        assert_eq!(body["request_id"], answer.header("x-request-id").unwrap());
        let error = body["error"].clone();
        for member in ["type", "code", "param", "message"] {
            assert!(error.get(member).is_some(), "{member}: {error}");
        }
        let message = error["message"].as_str().unwrap();
        for words in says.split(" … ") {
            assert!(message.contains(words), "{words}: {message}");
        }
        assert!(self.upstream.requests().is_empty(), "{message}");
        assert!(self.gateway.charges(&self.key).await.is_empty());
        error
    }

    /// The same of a body that this key sends.
    async fn refuses(&self, path: &str, body: &Value, status: u16, says: &str) -> Value {
        let answer = self.gateway.post(path, &self.key, body).await;
        self.refused(&answer, status, says).await
    }

    /// The same of a chat request with these fields.
    async fn refuses_chat(&self, fields: Value, status: u16, says: &str) -> Value {
        self.refuses(CHAT, &with(fields), status, says).await
    }

    async fn available(&self) -> String {
        let account = self.gateway.account(&self.key).await.customer.account;
        account.available().to_string()
    }
}

/// A chat request to `test-model` with these fields.
fn with(fields: Value) -> Value {
    let mut body = ask(Family::Chat, "test-model", false);
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// A message with this part.
fn saying(part: Value) -> Value {
    json!([{ "role": "user", "content": [{ "type": "text", "text": "What is this?" }, part] }])
}

fn picture(bytes: usize) -> Value {
    let data = "A".repeat(bytes.div_ceil(3) * 4);
    json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{data}") } })
}

fn tools(count: usize, schema: &Value) -> Value {
    let tool = |at: usize| json!({ "type": "function", "function": { "name": format!("f{at}"), "parameters": schema } });
    (0..count).map(tool).collect()
}

fn ids(list: &Value) -> Vec<&str> {
    let entries = list["data"].as_array().unwrap().iter();
    entries.map(|entry| entry["id"].as_str().unwrap()).collect()
}

/// Every `model` of an answer, whole or streamed, is this name.
fn all_name(answer: &str, name: &str) {
    let models: Vec<&str> = answer.split("\"model\":").skip(1).collect();
    let wanted = format!("\"{name}\"");
    let named = |model: &&str| model.trim_start().starts_with(&wanted);
    assert!(
        !models.is_empty() && models.iter().all(named),
        "{name}: {answer}"
    );
}

fn page(name: &str) -> String {
    std::fs::read_to_string(std::path::Path::new(HOME).join(name)).unwrap()
}

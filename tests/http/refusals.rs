//! Every row of the error table, in order of precedence: status, headers and body, word for word, on both path families.
//!
//! Each request is also wrong in every way that comes after its step, so a step that moved would show.

use std::sync::Arc;

use farebox::clock;
use farebox_door::byte_room::{ByteRoom, ByteShare, Holder};
use farebox_ledger::key::Change;
use farebox_ledger::{KeySettings, Secret, Timestamp};
use farebox_protocol::Family;
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::support::upstream::{Gate, Reply, Script, ScriptedUpstream, Speech};
use crate::support::{Answer, Gateway, TestKey, ask, path, speech_for, talking};

const HUGE: usize = 33 * 1024 * 1024;
/// Unknown model, no messages, and a field that is refused.
const WRONG_IN_EVERY_WAY: &str = r#"{"model":"nope","service_tier":"batch"}"#;

/// What a client sees, without what differs from run to run.
struct Rows {
    gateway: Gateway,
    family: Family,
    text: String,
}

impl Rows {
    async fn send(
        &mut self,
        name: &str,
        key: &TestKey,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) {
        let answer = self.gateway.send(path, key, body, &[]).await;
        self.add(name, &answer);
    }

    fn add(&mut self, name: &str, answer: &Answer) {
        let id = answer.header("x-request-id").unwrap().to_owned();
        assert_eq!(answer.header("request-id"), Some(id.as_str()));
        assert_eq!(answer.json()["request_id"], id);
        let headers: Vec<String> = ["x-should-retry", "retry-after", "retry-after-ms"]
            .iter()
            .filter_map(|name| Some(format!(" {name}={}", answer.header(name)?)))
            .collect();
        let body = answer
            .text
            .replace(&id, "ID")
            .replace(&self.gateway.base, "BASE");
        self.text += &format!(
            "{name}\n  {}{}\n  {body}\n",
            answer.status,
            headers.concat()
        );
    }

    fn path(&self) -> &'static str {
        path(self.family)
    }

    fn body(&self, model: &str, stream: bool) -> Value {
        ask(self.family, model, stream)
    }
}

/// Enough for a body to be read, and for nothing else.
const TO_BE_READ: &str = "0.00001";

async fn keys_and_limits(rows: &mut Rows) {
    let path = rows.path();
    let nobody = TestKey {
        secret: "sk-proj-abcdef".to_owned(),
        ..rows.gateway.key(TO_BE_READ).await
    };
    let wrong = if rows.family == Family::Messages {
        "/native/v1/v1/messages"
    } else {
        "/v1/v1/chat/completions"
    };
    rows.send(
        "404 path, before the key is looked at",
        &nobody,
        wrong,
        vec![b'x'; HUGE],
    )
    .await;
    rows.send("401 key, before the body", &nobody, path, vec![b'x'; HUGE])
        .await;
    for (name, to) in [("blocked", Change::Block), ("revoked", Change::Revoke)] {
        let busy = KeySettings {
            concurrency: Some(0),
            ..KeySettings::default()
        };
        let key = rows.gateway.key_with(TO_BE_READ, busy).await;
        rows.gateway.change(&key, to).await;
        let guessed = TestKey {
            secret: Secret::generate(key.id, clock::random())
                .reveal()
                .to_owned(),
            ..key.clone()
        };
        rows.send(
            &format!("401 another secret of a key that is {name}"),
            &guessed,
            path,
            WRONG_IN_EVERY_WAY,
        )
        .await;
        rows.send(
            &format!("403 {name}, before the rate"),
            &key,
            path,
            vec![b'x'; HUGE],
        )
        .await;
    }
    let old = KeySettings {
        expires_at: Some(Timestamp::from_millis(1)),
        ..KeySettings::default()
    };
    let key = rows.gateway.key_with(TO_BE_READ, old).await;
    rows.send("403 expired", &key, path, WRONG_IN_EVERY_WAY)
        .await;

    let room = Arc::clone(&rows.gateway.front.body_room);
    let full = filled(&room);
    let busy = KeySettings {
        concurrency: Some(0),
        ..KeySettings::default()
    };
    let key = rows.gateway.key_with(TO_BE_READ, busy).await;
    rows.send(
        "429 concurrency, before the bytes in flight",
        &key,
        path,
        vec![b'x'; HUGE],
    )
    .await;
    let slow = KeySettings {
        rate: Some(1),
        ..KeySettings::default()
    };
    let key = rows.gateway.key_with(TO_BE_READ, slow).await;
    rows.gateway.send(path, &key, "{}", &[]).await;
    rows.send("429 rate", &key, path, vec![b'x'; HUGE]).await;
    let key = rows.gateway.key(TO_BE_READ).await;
    rows.send(
        "503 bytes in flight, before the size",
        &key,
        path,
        vec![b'x'; HUGE],
    )
    .await;
    drop(full);
    rows.send("413 size", &key, path, vec![b'x'; HUGE]).await;
}

async fn bodies_and_models(rows: &mut Rows) {
    let path = rows.path();
    let key = rows.gateway.key(TO_BE_READ).await;
    rows.send("400 not JSON", &key, path, "{\"model\":").await;
    rows.send(
        "400 bad body, before the model",
        &key,
        path,
        WRONG_IN_EVERY_WAY,
    )
    .await;
    for name in ["gpt-4o", "", "test-mode", "test-old"] {
        let body = rows.body(name, false).to_string();
        rows.send(
            &format!("404 model {name:?}, before the balance"),
            &key,
            path,
            body,
        )
        .await;
    }
    let only = KeySettings {
        models: Some(vec!["test-blind".to_owned()]),
        ..KeySettings::default()
    };
    let limited = rows.gateway.key_with(TO_BE_READ, only).await;
    let body = rows.body("test-model", false).to_string();
    rows.send("403 model not allowed", &limited, path, body)
        .await;
    let body = rows.body("test-blind", true).to_string();
    rows.send("400 abilities, before the balance", &limited, path, body)
        .await;
}

async fn money(rows: &mut Rows, upstream: &ScriptedUpstream) {
    let path = rows.path();
    let empty = rows.gateway.key("0").await;
    let body = rows.body("test-model", false).to_string();
    rows.send("429 depleted", &empty, path, body.clone()).await;
    let little = rows.gateway.key("0.0005").await;
    rows.send("429 larger than the balance", &little, path, body.clone())
        .await;
    assert_eq!(
        upstream.requests().len(),
        0,
        "nothing refused reaches the upstream"
    );

    let (gate, key) = (Gate::new(), rows.gateway.key("0.002").await);
    let opened = gate.clone();
    upstream.follow(Script::by(move |seen, _| {
        speech_for(seen, "PONG").gated(&opened)
    }));
    let first = rows.gateway.send(path, &key, body.clone(), &[]);
    let second = async {
        upstream.request(0).await;
        let waiting = rows.gateway.send(path, &key, body.clone(), &[]);
        let refused = rows.gateway.waited_out(waiting).await;
        gate.open();
        refused
    };
    let (served, refused) = tokio::join!(first, second);
    assert_eq!(served.status, 200);
    rows.add("429 enough, but held by a running request", &refused);

    let key = rows.gateway.key("5.00").await;
    upstream.follow(Reply::whole(
        500,
        "text/html",
        "<html>proxy of org-abcdef1234</html>",
    ));
    rows.send("no target left", &key, path, body.clone()).await;
    upstream.follow(
        Reply::error(429, "rate_limit_error", None, "slow down").header("retry-after", "3600"),
    );
    rows.send(
        "no target left, and the upstream asks for an hour",
        &key,
        path,
        body.clone(),
    )
    .await;
    for charge in rows.gateway.charges(&key).await {
        assert_eq!(charge.amount.picos(), 0, "released before it is answered");
    }
    rows.gateway.settled().await;
    rows.gateway.ledger.close();
    rows.send("429 before the ledger", &empty, path, body.clone())
        .await;
    rows.send("503 ledger", &key, path, body).await;
}

async fn table(family: Family) -> String {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let mut rows = Rows {
        gateway,
        family,
        text: String::new(),
    };
    keys_and_limits(&mut rows).await;
    bodies_and_models(&mut rows).await;
    money(&mut rows, &upstream).await;
    rows.text
}

#[tokio::test]
async fn the_table_of_chat() {
    insta::assert_snapshot!(table(Family::Chat).await);
}

#[tokio::test]
async fn the_table_of_messages() {
    insta::assert_snapshot!(table(Family::Messages).await);
}

#[tokio::test]
async fn responses_say_the_same_as_chat() {
    let lines = |text: String| {
        text.lines()
            .filter(|line| !line.contains("not JSON"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (chat, responses) = (
        lines(table(Family::Chat).await),
        lines(table(Family::Responses).await),
    );
    let same = |line: &&String| {
        !line.contains("`messages`") && !line.contains("`input`") && !line.contains("needs")
    };
    let differing: Vec<_> = chat
        .iter()
        .zip(&responses)
        .filter(|(a, b)| a != b && same(a))
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
}

#[tokio::test]
async fn free_paths_have_a_rate_of_their_own() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let asking = futures_util::stream::iter(0..200).map(|_| gateway.get("/v1/models", &key));
    // With 1,024 descriptors a gateway takes fewer than 200 connections from one peer.
    let answers: Vec<_> = asking.buffer_unordered(40).collect().await;
    let served = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(
        (20..200).contains(&served),
        "a burst of 20 is served, and then 10 a second: {served}"
    );
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].clone()),
            (429, json!("rate_limit_exceeded"))
        );
        let wait: u32 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=30).contains(&wait));
    }
    let paid = gateway
        .post(
            path(Family::Chat),
            &key,
            &ask(Family::Chat, "test-model", false),
        )
        .await;
    assert_eq!(
        paid.status, 200,
        "and paid requests are not counted with them"
    );
}

#[tokio::test]
async fn an_error_before_the_first_byte_of_a_stream_is_an_ordinary_error() {
    for family in Family::ALL {
        let upstream =
            ScriptedUpstream::start(Speech::new(family, "x").stream().reset_after(0)).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", true))
            .await;
        let status = if family == Family::Messages { 529 } else { 503 };
        assert_eq!(
            (
                answer.status,
                answer.header("content-type"),
                answer.header("retry-after")
            ),
            (status, Some("application/json"), Some("5"))
        );
        assert_eq!(
            gateway
                .account(&key)
                .await
                .customer
                .account
                .available()
                .to_string(),
            "5.00"
        );
    }
}

/// Whoever reads the log finds the key and the model of each refusal, as far as they could be known.
#[tokio::test]
async fn a_refusal_is_reported_with_its_key_and_its_model() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let (key, poor) = (gateway.key("5.00").await, gateway.key("0").await);
    let native = "/native/v1/messages/count_tokens";
    let cut = r#"{"messages":[{"role":"user","content":"x"}],"model":"test-alias","n":"many"}"#;
    let cases = [
        (
            &key,
            "/v1/chat/completions",
            r#"{"service_tier":"batch","messages":[],"model":"test-model"}"#,
            "test-model",
            "test-model",
        ),
        (
            &key,
            "/v1/chat/completions",
            cut,
            "test-alias",
            "test-model",
        ),
        (
            &key,
            "/v1/chat/completions",
            r#"{"model":"test-model","messages":[{"role":"user","content":"x"}],"x":1}"#,
            "test-model",
            "test-model",
        ),
        (
            &key,
            "/v1/responses",
            r#"{"model":"test-alias","input":"x","background":true}"#,
            "test-alias",
            "test-model",
        ),
        (
            &key,
            "/native/v1/messages",
            r#"{"model":"test-old","messages":[{"role":"user","content":"x"}]}"#,
            "test-old",
            "test-old",
        ),
        (
            &key,
            "/native/v1/messages",
            r#"{"model":"nobody","max_tokens":0}"#,
            "nobody",
            "",
        ),
        (
            &key,
            native,
            r#"{"model":"test-alias","messages":"x"}"#,
            "test-alias",
            "test-model",
        ),
        (
            &key,
            "/v1/chat/completions",
            r#"{"model":"test-model","messages":["#,
            "test-model",
            "test-model",
        ),
        (
            &key,
            "/v1/chat/completions",
            r#"{"model":["test-model"]}"#,
            "",
            "",
        ),
        (&key, "/v1/chat/completions", "not JSON", "", ""),
        (
            &poor,
            "/v1/chat/completions",
            // Not read: the key has nothing available.
            r#"{"model":"test-alias","messages":[{"role":"user","content":"x"}]}"#,
            "",
            "",
        ),
    ];
    for (number, (key, path, body, asked, slug)) in cases.into_iter().enumerate() {
        let answer = gateway.send(path, key, body, &[]).await;
        let records = gateway.records.all();
        let record = records.last().unwrap();
        assert_eq!(
            (records.len(), record.status),
            (number + 1, answer.status),
            "{body}"
        );
        assert_eq!(
            (record.key, record.asked.as_str(), record.slug.as_str()),
            (Some(key.id), asked, slug),
            "{body}"
        );
    }
    for (name, asked) in [
        (key.secret.as_str(), "(a key)"),
        ("sk-proj-0123", "(a key)"),
        ("a\u{202e}b\nc", "abc"),
    ] {
        gateway
            .post(
                "/v1/chat/completions",
                &key,
                &ask(Family::Chat, name, false),
            )
            .await;
        assert_eq!(gateway.records.all().pop().unwrap().asked, asked);
    }
    for path in [
        "/v1/models/test-old",
        "/v1/generation?id=req_0",
        "/v1/usage?form=csv",
    ] {
        let status = gateway.get(path, &key).await.status;
        let record = gateway.records.all().pop().unwrap();
        assert_eq!(
            (record.status, record.key, record.free),
            (status, Some(key.id), true),
            "{path}"
        );
    }
}

/// Shares of many keys that leave no room for another.
fn filled(room: &Arc<ByteRoom>) -> Vec<ByteShare> {
    let mut shares = Vec::new();
    while room.total() - room.in_use() >= 4 {
        let mut share = room.share(Holder(u64::MAX - shares.len() as u64), usize::MAX);
        assert!(share.grow_to((room.total() - room.in_use()) / 4));
        shares.push(share);
    }
    shares
}

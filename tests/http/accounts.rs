//! Several accounts of one provider: a conversation keeps its account, so that it finds its prompt cached.
//!
//! The provider here is as strict as ever, and caches as real ones do: what an account has read is cached at that account alone, as
//! far as the next prompt begins alike.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use crate::support::cluster::Cluster;
use crate::support::load::{self, Dice, new_ledger, sized};
use crate::support::process::{Served, client};
use crate::support::skip::skip;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{Answer, CATALOG, Gateway, TestKey, chat, pass, path, routes};

const ACCOUNTS: usize = 3;
/// Customers and turns, small for every day.
const SESSIONS: (u64, u64) = (9, 20);
const TURNS: (u64, u64) = (18, 30);

/// What the accounts of the provider have cached, and which of them refuse everything.
#[derive(Clone, Default)]
struct Caches(Arc<Mutex<CachesState>>);

#[derive(Default)]
struct CachesState {
    known: HashMap<String, HashSet<String>>,
    refusing: BTreeSet<String>,
    /// Tokens of prompts, and those that were cached.
    input: u64,
    cached: u64,
}

impl CachesState {
    /// Reads a prompt with an account: its tokens, and those of them that were cached there.
    fn read(&mut self, account: &str, parts: &[String]) -> (u64, u64) {
        let known = self.known.entry(account.to_owned()).or_default();
        let (mut prompt, mut tokens, mut cached) = (String::new(), 0, 0);
        for part in parts {
            prompt.push_str(part);
            tokens += part.len() as u64 / 4;
            if !known.insert(prompt.clone()) && cached == tokens - part.len() as u64 / 4 {
                cached = tokens;
            }
        }
        self.input += tokens;
        self.cached += cached;
        (tokens, cached)
    }

    fn share(&self) -> f64 {
        self.cached as f64 / self.input as f64
    }
}

/// Which key a request came with.
fn account(seen: &Seen) -> String {
    let key = seen.header("x-api-key").or(seen.header("authorization"));
    key.unwrap().rsplit('_').next().unwrap().to_owned()
}

/// Whether the gateway asks for itself, because customers were refused.
fn is_ours(seen: &Seen) -> bool {
    seen.json()["messages"][0]["content"] == "ping"
}

/// The parts of a prompt as a cache sees them: without its marks.
fn parts(body: &Value) -> Vec<String> {
    let unmarked = |part: &Value| {
        let mut part = part.clone();
        if let Some(blocks) = part["content"].as_array_mut() {
            for block in blocks {
                block.as_object_mut().unwrap().remove("cache_control");
            }
        }
        part.to_string()
    };
    let outside = [&body["tools"], &body["system"]].map(Value::to_string);
    let messages = body["messages"].as_array().unwrap().iter().map(unmarked);
    outside.into_iter().chain(messages).collect()
}

impl Caches {
    async fn provider(&self) -> ScriptedUpstream {
        let caches = self.clone();
        ScriptedUpstream::start(Script::by(move |seen, _| caches.reply(seen))).await
    }

    fn reply(&self, seen: &Seen) -> Reply {
        assert_eq!(seen.header("x-session-id"), None);
        let (account, body) = (account(seen), seen.json());
        if is_ours(seen) {
            return Speech::new(Family::Chat, "pong").whole();
        }
        let mut state = self.0.lock().unwrap();
        if state.refusing.contains(&account) {
            let told = Reply::error(429, "rate_limit_error", None, "slow down");
            return told.header("retry-after", "1");
        }
        if seen.path.contains("count_tokens") {
            return Reply::json(200, &json!({ "input_tokens": 7 }));
        }
        let (tokens, cached) = state.read(&account, &parts(&body));
        let usage = ReportedUsage {
            input: tokens - cached,
            cache_read: cached,
            output: 5,
            ..ReportedUsage::default()
        };
        let family = match seen.path.contains("/messages") {
            true => Family::Messages,
            false => Family::Chat,
        };
        Speech::new(family, "go on").usage(usage).whole()
    }

    fn refuse(&self, account: Option<&str>) {
        self.0.lock().unwrap().refusing = account.into_iter().map(str::to_owned).collect();
    }

    fn share(&self) -> f64 {
        self.0.lock().unwrap().share()
    }
}

/// The routes to this provider, with three accounts.
fn three(provider: &ScriptedUpstream, more: &str) -> String {
    let keys = r#"keys = [ { env = "KEY_A" }, { env = "KEY_B" }, { env = "KEY_C" } ]"#;
    let keys = format!("{keys}\n{more}");
    routes(&provider.base_url()).replacen(r#"key      = { env = "UPSTREAM_KEY" }"#, &keys, 1)
}

/// A session of a coding client: it grows by a few thousand characters each turn, and names itself in one of the ways that clients
/// have, or not at all.
struct CodingSession {
    number: u64,
    messages: Vec<Value>,
}

impl CodingSession {
    fn new(number: u64) -> Self {
        Self {
            number,
            messages: Vec::new(),
        }
    }

    /// The request of the next turn: its path, its header, its body.
    fn turn(&mut self) -> (&'static str, Option<String>, Value) {
        let (number, turn) = (self.number, self.messages.len());
        let filler = |words: &str, many: usize| format!("{words} {number} ").repeat(many);
        let native = number % 5 == 1;
        for message in &mut self.messages {
            // Clients mark the end of the conversation, and nothing else.
            if let Some(block) = message["content"].get_mut(0) {
                block.as_object_mut().unwrap().remove("cache_control");
            }
        }
        let said = filler(&format!("turn {turn}: the file says"), 60);
        let content = match native {
            true => {
                json!([{ "type": "text", "text": said, "cache_control": { "type": "ephemeral" } }])
            }
            false => json!(said),
        };
        self.messages
            .push(json!({ "role": "user", "content": content }));
        let system = filler("You are a coding agent and read files", 250);
        let name = format!("session-{number}");
        let mut body = json!({ "model": "test-model", "max_tokens": 64 });
        let (mut header, family) = (
            None,
            if native {
                Family::Messages
            } else {
                Family::Chat
            },
        );
        let mut messages = self.messages.clone();
        if native {
            body["system"] = system.into();
            let user = json!({ "device_id": "d", "account_uuid": "", "session_id": name });
            body["metadata"] = json!({ "user_id": user.to_string() });
        } else {
            messages.insert(0, json!({ "role": "system", "content": system }));
        }
        match number % 5 {
            0 => header = Some(name),
            2 => body["prompt_cache_key"] = name.into(),
            3 => body["session_id"] = name.into(),
            _ => {}
        }
        body["messages"] = messages.into();
        let answer = if native {
            json!([{ "type": "text", "text": "go on" }])
        } else {
            json!("go on")
        };
        self.messages
            .push(json!({ "role": "assistant", "content": answer }));
        (path(family), header, body)
    }
}

/// What one account alone would have cached of these sessions.
fn alone(sessions: u64, turns: u64) -> f64 {
    let mut state = CachesState::default();
    for number in 0..sessions {
        let mut session = CodingSession::new(number);
        for _ in 0..turns {
            let (_, _, body) = session.turn();
            state.read("alone", &parts(&body));
        }
    }
    state.share()
}

/// The accounts that customers' requests went to, from this request on.
fn used(provider: &ScriptedUpstream, from: usize) -> Vec<String> {
    let requests = provider.requests();
    let customers = requests[from..].iter().filter(|seen| !is_ours(seen));
    customers.map(account).collect()
}

/// The account of the three that has neither most nor fewest conversations.
fn middle(used: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for account in used {
        *counts.entry(account).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| *count);
    counts[counts.len() / 2].0.to_owned()
}

async fn ask(gateway: &Gateway, key: &TestKey, session: &mut CodingSession) {
    let (path, header, body) = session.turn();
    let header = header.as_deref().map(|name| ("x-session-id", name));
    let headers = [header, Some(("content-type", "application/json"))];
    let headers: Vec<_> = headers.into_iter().flatten().collect();
    let answer = gateway.send(path, key, body.to_string(), &headers).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test]
async fn sessions_keep_their_cached_share_through_an_accounts_pause_and_return() {
    let (sessions, turns) = (sized(SESSIONS.0, 20), sized(TURNS.0, TURNS.1));
    let caches = Caches::default();
    let provider = caches.provider().await;
    let gateway = Gateway::start(CATALOG, &three(&provider, "")).await;
    let mut all = Vec::new();
    for number in 0..sessions {
        all.push((gateway.key("50").await, CodingSession::new(number)));
    }
    let third = turns / 3;
    let (mut homes, mut last) = (Vec::new(), 0);
    for turn in 0..turns {
        if turn == third {
            caches.refuse(Some(&middle(&homes)));
        } else if turn == 2 * third {
            caches.refuse(None);
        } else if turn == turns - 2 {
            // All are silent for longer than anything is cached.
            pass(Duration::from_secs(301)).await;
        }
        last = provider.requests().len();
        for (key, session) in &mut all {
            ask(&gateway, key, session).await;
        }
        let used = used(&provider, last);
        match turn {
            0 => homes = used,
            _ if turn < third => assert_eq!(used, homes, "turn {turn}"),
            _ => {}
        }
    }
    assert_eq!(used(&provider, last), homes, "all are at home again");
    let (share, best) = (caches.share(), alone(sessions, turns));
    println!(
        "cached: {share:.4}, one account: {best:.4}, {:.4} of it",
        share / best
    );
    assert!(share >= 0.95 * best, "{share} of {best}");

    // What the operator sees of it.
    let status = gateway.ask("/status").await.json();
    let accounts = status["providers"][0]["accounts"]
        .as_array()
        .unwrap()
        .clone();
    let sum = |name: &str| -> u64 {
        let of = accounts
            .iter()
            .map(|account| account[name].as_u64().unwrap());
        of.sum()
    };
    let left = homes.iter().filter(|home| **home == middle(&homes)).count() as u64;
    assert_eq!(
        (accounts.len(), sum("requests")),
        (ACCOUNTS, sessions * turns)
    );
    assert_eq!(sum("spills"), left, "each of its conversations left once");
    let state = caches.0.lock().unwrap();
    assert_eq!((sum("input"), sum("cached")), (state.input, state.cached));
}

/// Runs the sessions at a fleet of three, each turn at the gateway that the balancer chooses; their cached share.
async fn at_a_fleet(
    cluster: &'static Cluster,
    (sessions, turns): (u64, u64),
    mut balance: impl FnMut(u64) -> u64,
) -> f64 {
    let caches = Caches::default();
    let provider = caches.provider().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
    std::fs::write(folder.path().join("routes.toml"), three(&provider, "")).unwrap();
    let address = cluster.url(&cluster.database());
    let ledger = new_ledger(&address).await;
    let keys = ["KEY_A", "KEY_B", "KEY_C"].map(|name| (name, format!("upstream-secret-of-{name}")));
    let mut environment = keys
        .each_ref()
        .map(|(name, secret)| (*name, secret.as_str()))
        .to_vec();
    environment.extend([
        ("FAREBOX_ALLOW_SINGLE", "true"),
        ("FAREBOX_LEDGER", &*address),
    ]);
    let gateways: Vec<Served> = (0..3)
        .map(|_| Served::start_with(folder.path(), &[], &environment))
        .collect();
    let mut all = Vec::new();
    for number in 0..sessions {
        all.push((load::key(&*ledger, "50").await, CodingSession::new(number)));
    }
    let client = client();
    for turn in 0..turns {
        if turn == turns / 3 {
            caches.refuse(Some(&middle(&used(&provider, 0))));
        } else if turn == 2 * turns / 3 {
            caches.refuse(None);
        }
        // Customers do not wait for one another.
        let asking = all.iter_mut().map(|(key, session)| {
            let gateway = &gateways[balance(session.number) as usize];
            let (path, header, body) = session.turn();
            let base = gateway.base.trim_end_matches("/v1");
            let mut sent = client
                .post(format!("{base}{path}"))
                .bearer_auth(&key.secret);
            if let Some(name) = header {
                sent = sent.header("x-session-id", name);
            }
            let sent = sent.json(&body).send();
            async {
                let answer = Answer::read(sent.await.unwrap()).await;
                assert_eq!(answer.status, 200, "{}", answer.text);
            }
        });
        futures_util::future::join_all(asking).await;
    }
    caches.share()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_keep_their_cached_share_at_a_fleet_of_three() {
    let Some(cluster) = Cluster::shared() else {
        return skip("accounts at a fleet: PostgreSQL is not installed");
    };
    let size = (sized(SESSIONS.0, 20), sized(TURNS.0, TURNS.1));
    let best = alone(size.0, size.1);
    let kept = at_a_fleet(cluster, size, |session| session % 3).await;
    let mut dice = Dice::new(3);
    let any = at_a_fleet(cluster, size, |_| dice.below(3)).await;
    println!("one account: {best:.4}; a key at one gateway: {kept:.4}; at any: {any:.4}");
    assert!(kept >= 0.95 * best, "{kept} of {best}");
    assert!(any >= 0.90 * best, "{any} of {best}");
}

#[tokio::test]
async fn the_same_name_means_nothing_between_customers_and_slugs() {
    let caches = Caches::default();
    let provider = caches.provider().await;
    let gateway = Gateway::start(CATALOG, &three(&provider, "")).await;
    let body = chat("test-model", false).to_string();
    let headers = [
        ("x-session-id", "mine"),
        ("content-type", "application/json"),
    ];
    for _ in 0..12 {
        let key = gateway.key("5").await;
        for _ in 0..2 {
            let answer = gateway
                .send("/v1/chat/completions", &key, body.clone(), &headers)
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
    }
    let used = used(&provider, 0);
    let pairs: Vec<_> = used.chunks(2).collect();
    assert!(pairs.iter().all(|pair| pair[0] == pair[1]), "{used:?}");
    let accounts: BTreeSet<_> = used.iter().collect();
    assert!(accounts.len() > 1, "{used:?}");
}

#[tokio::test]
async fn names_of_any_size_and_kind_are_served_or_refused_in_words() {
    let caches = Caches::default();
    let provider = caches.provider().await;
    let gateway = Gateway::start(CATALOG, &three(&provider, "")).await;
    let key = gateway.key("5").await;
    let with = |name: &str, value: Value| {
        let mut body = chat("test-model", false);
        body[name] = value;
        body
    };
    for wrong in [
        json!(null),
        json!(5),
        json!({ "a": [] }),
        json!(["x"]),
        json!(""),
    ] {
        let answer = gateway
            .post(
                "/v1/chat/completions",
                &key,
                &with("session_id", wrong.clone()),
            )
            .await;
        assert_eq!(answer.status, 200, "{wrong}: {}", answer.text);
    }
    // The field is the gateway's: it goes nowhere, and nobody is told that it was left out.
    let sent = provider.requests();
    assert!(
        sent.iter()
            .all(|seen| seen.json().get("session_id").is_none())
    );
    let used: BTreeSet<_> = used(&provider, 0).into_iter().collect();
    assert_eq!(
        used.len(),
        1,
        "what is no name is none: their opening decides"
    );
    let ten = "x".repeat(10 << 20);
    let answer = gateway
        .post(
            "/v1/chat/completions",
            &key,
            &with("prompt_cache_key", json!(ten)),
        )
        .await;
    assert_eq!(answer.status, 400, "more text than the model reads");
    assert!(
        answer.text.contains("context_length_exceeded"),
        "{}",
        answer.text
    );
    let answer = gateway
        .post(
            "/v1/chat/completions",
            &key,
            &with("session_id", json!(ten)),
        )
        .await;
    assert_eq!(answer.status, 400, "the same: {}", answer.text);
    let long = "y".repeat(60_000);
    let headers = [
        ("x-session-id", &*long),
        ("content-type", "application/json"),
    ];
    let body = chat("test-model", false).to_string();
    let answer = gateway
        .send("/v1/chat/completions", &key, body, &headers)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test]
async fn counting_tokens_follows_the_conversation() {
    let caches = Caches::default();
    let provider = caches.provider().await;
    let gateway = Gateway::start(CATALOG, &three(&provider, "")).await;
    let key = gateway.key("5").await;
    let body = json!({ "model": "test-model", "max_tokens": 64, "messages": [{ "role": "user", "content": "hi" }] });
    for session in 0..6 {
        let name = format!("s-{session}");
        let headers = [
            ("x-session-id", &*name),
            ("content-type", "application/json"),
        ];
        for path in ["/native/v1/messages", "/native/v1/messages/count_tokens"] {
            let mut body = body.clone();
            if path.ends_with("count_tokens") {
                body.as_object_mut().unwrap().remove("max_tokens");
            }
            let answer = gateway.send(path, &key, body.to_string(), &headers).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
    }
    let used = used(&provider, 0);
    assert_eq!(used.len(), 12);
    assert!(used.chunks(2).all(|pair| pair[0] == pair[1]), "{used:?}");
    assert!(used.iter().collect::<BTreeSet<_>>().len() > 1, "{used:?}");
}

#[tokio::test]
async fn requests_are_divided_one_by_one_where_the_seller_says_so() {
    let caches = Caches::default();
    let provider = caches.provider().await;
    let gateway = Gateway::start(CATALOG, &three(&provider, "keys_by = \"request\"")).await;
    let key = gateway.key("5").await;
    for _ in 0..30 {
        let answer = gateway
            .post("/v1/chat/completions", &key, &chat("test-model", false))
            .await;
        assert_eq!(answer.status, 200);
    }
    let used: BTreeSet<_> = used(&provider, 0).into_iter().collect();
    assert_eq!(used.len(), ACCOUNTS);
}

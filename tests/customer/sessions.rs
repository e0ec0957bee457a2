//! The dashboard over HTTP: sessions, cookies, links, origins, exports, what is never shown, and its speed.

use std::time::Instant;

use farebox::clock;
use farebox_ledger::key::Change;
use farebox_ledger::{KeySettings, NewLink, Perform, Secret, SecretHash, Timestamp};
use reqwest::header::{COOKIE, ORIGIN, SET_COOKIE};

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, TestKey, act, chat, talking};

/// A client that behaves like a browser, without the page.
pub(crate) struct Visitor<'a> {
    gateway: &'a Gateway,
    pub(crate) client: reqwest::Client,
    pub(crate) cookie: String,
}

impl<'a> Visitor<'a> {
    pub(crate) fn new(gateway: &'a Gateway) -> Self {
        let redirects = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .redirect(redirects)
            .build()
            .unwrap();
        Self {
            gateway,
            client,
            cookie: String::new(),
        }
    }

    pub(crate) async fn signed_in(gateway: &'a Gateway, key: &TestKey) -> Self {
        let mut visitor = Self::new(gateway);
        let answer = visitor.post("login", &[("key", &key.secret)], None).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some("/dashboard")),
            "{}",
            answer.text
        );
        visitor.keep(&answer);
        visitor
    }

    fn keep(&mut self, answer: &Answer) {
        let set = answer.header("set-cookie").expect("a cookie").to_owned();
        self.cookie = set.split(';').next().unwrap().to_owned();
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let url = format!("{}/dashboard{path}", self.gateway.base);
        Answer::read(
            self.client
                .get(url)
                .header(COOKIE, &self.cookie)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        form: &[(&str, &str)],
        origin: Option<&str>,
    ) -> Answer {
        let body = form
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join("&");
        let url = format!("{}/dashboard/{path}", self.gateway.base);
        let mut request = self
            .client
            .post(url)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        if !self.cookie.is_empty() {
            request = request.header(COOKIE, &self.cookie);
        }
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        Answer::read(request.send().await.unwrap()).await
    }
}

pub(super) async fn gateway() -> (ScriptedUpstream, Gateway) {
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let gateway = Gateway::before(&upstream).await;
    (upstream, gateway)
}

#[tokio::test]
async fn the_id_in_the_answer_is_in_every_export() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5").await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let (id, request) = (
        answer.json()["id"].as_str().unwrap().to_owned(),
        answer.header("x-request-id").unwrap().to_owned(),
    );
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let csv = visitor.get("/requests.csv").await.text;
    let column = csv
        .lines()
        .next()
        .unwrap()
        .split(',')
        .position(|name| name == "answer_id")
        .unwrap();
    assert_eq!(
        csv.lines().nth(1).unwrap().split(',').nth(column),
        Some(id.as_str()),
        "{csv}"
    );
    let json = visitor.get("/requests.json").await.json();
    assert_eq!(json["requests"][0]["answer_id"], id, "{json}");
    let receipt = gateway
        .get(&format!("/v1/generation?id={request}"), &key)
        .await
        .json();
    assert_eq!(receipt["data"]["answer_id"], id, "{receipt}");
    let charge = gateway.charges(&key).await.remove(0);
    assert_eq!(farebox_ledger::document::json(&charge)["answer_id"], id);
    assert!(farebox_ledger::document::row(&charge).contains(&id));
}

#[tokio::test]
async fn a_key_opens_a_session_and_is_never_shown() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.owner("5.00").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let visitor = Visitor::new(&gateway);
    let login = visitor.get("").await;
    assert_eq!(login.status, 200);
    assert!(login.text.contains("name=\"key\"") && login.header("set-cookie").is_none());
    let policy = login.header("content-security-policy").unwrap();
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(rule), "{rule}");
    }
    assert!(
        !login.text.contains("<style")
            && !login.text.contains(" style=")
            && !login.text.contains(" onclick")
    );

    let answer = visitor
        .post(
            "login",
            &[("key", &format!("  {}%0A", key.secret))],
            Some(&gateway.base),
        )
        .await;
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    for part in [
        "farebox=",
        "; HttpOnly",
        "; SameSite=Lax",
        "; Path=/",
        "; Max-Age=43200",
    ] {
        assert!(cookie.contains(part), "{part} in {cookie}");
    }
    assert!(
        !cookie.contains("Secure"),
        "plain http has no secure cookies"
    );
    let visitor = Visitor::signed_in(&gateway, &key).await;
    for path in [
        "",
        "/requests",
        "/payments",
        "/setup",
        "/models",
        "/requests.csv",
        "/requests.json",
        "/usage.csv",
        "/usage.json",
    ] {
        let page = visitor.get(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert!(
            !page.text.contains(&key.secret) && !page.text.contains("upstream-model"),
            "{path}"
        );
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
    }
    let overview = visitor.get("").await.text;
    assert!(overview.contains("Prompts and answers are never stored"));
    let token = visitor.cookie.split_once('=').unwrap().1;
    assert!(!overview.contains(token));
    assert!(
        gateway
            .ledger
            .find_session(SecretHash::of(token), clock::now())
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        !std::fs::read(gateway.ledger_path())
            .unwrap()
            .windows(64)
            .any(|bytes| bytes == token.as_bytes())
    );
}

#[tokio::test]
async fn wrong_and_stopped_keys_do_not_sign_in() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let visitor = Visitor::new(&gateway);
    let stranger = Secret::generate(clock::key_id(), clock::random());
    let other_secret = Secret::generate(key.id, clock::random());
    let cut = &key.secret[..key.secret.len() - 3];
    for wrong in [
        "",
        "sk-fb-<script>",
        cut,
        stranger.reveal(),
        other_secret.reveal(),
    ] {
        let answer = visitor.post("login", &[("key", wrong)], None).await;
        assert_eq!(answer.status, 401, "{wrong}");
        assert!(answer.header("set-cookie").is_none());
        assert!(
            wrong.is_empty() || !answer.text.contains(wrong),
            "what was typed is not sent back"
        );
    }
    assert_eq!(
        visitor
            .post("login", &[("nothing", "x")], None)
            .await
            .status,
        401
    );
    gateway.change(&key, Change::Block).await;
    let blocked = visitor.post("login", &[("key", &key.secret)], None).await;
    assert_eq!(blocked.status, 403);
    assert!(blocked.text.contains("this key is blocked"));
}

#[tokio::test]
async fn sessions_end_with_block_revoke_rotate_and_sign_out() {
    let (_upstream, gateway) = gateway().await;
    let secret = SecretHash::of("another");
    let changes = [
        Change::Block,
        Change::Revoke,
        Change::Rotate {
            secret,
            old_until: Some(Timestamp::from_millis(i64::MAX)),
        },
    ];
    for change in changes {
        let key = gateway.key("5.00").await;
        let visitor = Visitor::signed_in(&gateway, &key).await;
        assert!(visitor.get("").await.text.contains("id=\"available\""));
        gateway.change(&key, change.clone()).await;
        let after = visitor.get("").await;
        assert!(
            after.text.contains("name=\"key\"") && after.text.contains("session has ended"),
            "{change:?}"
        );
        assert!(after.header("set-cookie").unwrap().contains("Max-Age=0"));
        assert_eq!(
            visitor.get("/requests").await.header("location"),
            Some("/dashboard")
        );
        assert_eq!(visitor.get("/requests.csv").await.status, 401);
        assert_eq!(visitor.get("/live").await.status, 401);
    }
    let key = gateway.key("5.00").await;
    let visitor = Visitor::signed_in(&gateway, &key).await;
    assert_eq!(visitor.post("logout", &[], None).await.status, 303);
    assert!(
        visitor.get("").await.text.contains("name=\"key\""),
        "the cookie is worth nothing after signing out"
    );
}

#[tokio::test]
async fn signing_out_everywhere_ends_every_session_of_the_key_and_no_other() {
    let (_upstream, gateway) = gateway().await;
    let (key, other) = (gateway.key("5.00").await, gateway.key("5.00").await);
    let (here, there) = (
        Visitor::signed_in(&gateway, &key).await,
        Visitor::signed_in(&gateway, &key).await,
    );
    let stranger = Visitor::signed_in(&gateway, &other).await;
    assert!(here.get("").await.text.contains("Sign out everywhere"));
    assert_eq!(here.post("logout-everywhere", &[], None).await.status, 303);
    for ended in [&here, &there] {
        assert!(ended.get("").await.text.contains("name=\"key\""));
    }
    assert!(stranger.get("").await.text.contains("id=\"available\""));
}

#[tokio::test]
async fn sign_ins_of_a_key_have_a_rate_and_hold_up_nobody_else() {
    let (_upstream, gateway) = gateway().await;
    let (key, other) = (gateway.key("5.00").await, gateway.key("5.00").await);
    let visitor = Visitor::new(&gateway);
    let begun = Instant::now();
    let mut statuses = Vec::new();
    for _ in 0..60 {
        statuses.push(
            visitor
                .post("login", &[("key", &key.secret)], None)
                .await
                .status,
        );
    }
    let let_in = statuses.iter().filter(|status| **status == 303).count();
    assert!(
        statuses.iter().all(|status| [303, 429].contains(status)),
        "{statuses:?}"
    );
    let most = 20 + 10 * (begun.elapsed().as_secs() + 1);
    assert!(
        u64::try_from(let_in).unwrap() <= most,
        "{let_in} sign-ins in {:?}",
        begun.elapsed()
    );
    Visitor::signed_in(&gateway, &other).await;
}

#[tokio::test]
async fn a_file_that_is_downloaded_counts_among_the_running_requests() {
    let (_upstream, gateway) = gateway().await;
    let one = KeySettings {
        concurrency: Some(1),
        ..KeySettings::default()
    };
    let key = gateway.key_with("5.00", one).await;
    let visitor = Visitor::signed_in(&gateway, &key).await;
    for file in ["/requests.csv", "/requests.json", "/usage.csv"] {
        assert_eq!(visitor.get(file).await.status, 200);
    }
    let running = gateway
        .front
        .rate_limits
        .enter_free(&gateway.account(&key).await, tokio::time::Instant::now())
        .unwrap();
    assert_eq!(visitor.get("/requests.csv").await.status, 429);
    assert_eq!(visitor.get("").await.status, 200, "a view is short");
    drop(running);
    assert_eq!(visitor.get("/requests.csv").await.status, 200);
}

#[tokio::test]
async fn a_session_of_a_rotated_secret_ends_with_its_overlap() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let overlap = Timestamp::from_millis(clock::now().millis() + 3_600_000);
    let change = Change::Rotate {
        secret: SecretHash::of("another"),
        old_until: Some(overlap),
    };
    gateway.change(&key, change).await;
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let token = SecretHash::of(visitor.cookie.split_once('=').unwrap().1);
    let before = Timestamp::from_millis(overlap.millis() - 1);
    assert_eq!(
        gateway.ledger.find_session(token, before).await.unwrap(),
        Some(key.id)
    );
    assert_eq!(
        gateway.ledger.find_session(token, overlap).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn forged_cookies_and_foreign_origins_get_nothing() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let mut visitor = Visitor::signed_in(&gateway, &key).await;
    let good = visitor.cookie.clone();
    for origin in [
        "https://evil.example",
        "null",
        "http://127.0.0.1:1",
        &format!("{}.evil.example", gateway.base),
    ] {
        for path in ["login", "enter", "logout", "test"] {
            let answer = visitor
                .post(path, &[("key", &key.secret), ("token", "x")], Some(origin))
                .await;
            assert_eq!(answer.status, 403, "{path} from {origin}");
            assert!(answer.header("set-cookie").is_none());
        }
    }
    assert!(
        visitor.get("").await.text.contains("id=\"available\""),
        "a foreign sign-out did nothing"
    );
    let zeros = format!("farebox={}", "0".repeat(64));
    for forged in [
        zeros.as_str(),
        "farebox=",
        "farebox=';DROP TABLE sessions",
        "__Host-farebox=abc",
        "farebox=%00",
    ] {
        visitor.cookie = forged.to_owned();
        assert!(
            visitor.get("").await.text.contains("name=\"key\""),
            "{forged}"
        );
        assert_eq!(visitor.get("/usage.json").await.status, 401, "{forged}");
    }
    visitor.cookie = format!("other=1; {good}; farebox=short");
    assert!(visitor.get("").await.text.contains("id=\"available\""));
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let in_an_hour = Timestamp::from_millis(clock::now().millis() + 3_600_000);
    let token = farebox::customer::new_token();
    gateway
        .ledger
        .perform(NewLink {
            key: key.id,
            token: SecretHash::of(&token),
            expires: in_an_hour,
            act: act(),
        })
        .await
        .unwrap();
    let mut visitor = Visitor::new(&gateway);
    let landing = visitor.get("/enter").await;
    assert!(
        landing.status == 200
            && landing.text.contains("name=\"token\"")
            && landing.header("set-cookie").is_none()
    );
    let entered = visitor.post("enter", &[("token", &token)], None).await;
    assert_eq!(entered.status, 303, "{}", entered.text);
    visitor.keep(&entered);
    assert!(visitor.get("").await.text.contains("id=\"available\""));
    let again = visitor.post("enter", &[("token", &token)], None).await;
    assert_eq!(again.status, 401, "a link works once");
    assert!(!again.text.contains(&token));

    let late = farebox::customer::new_token();
    gateway
        .ledger
        .perform(NewLink {
            key: key.id,
            token: SecretHash::of(&late),
            expires: Timestamp::from_millis(1),
            act: act(),
        })
        .await
        .unwrap();
    for bad in [late.as_str(), "", "x", "%F0%9F%92%A5"] {
        assert_eq!(
            visitor.post("enter", &[("token", bad)], None).await.status,
            401,
            "{bad}"
        );
    }
}

#[tokio::test]
async fn on_https_the_cookie_is_bound_to_the_host() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::published(&upstream, "https://api.example.com").await;
    let key = gateway.key("5.00").await;
    let mut visitor = Visitor::new(&gateway);
    let answer = visitor
        .post(
            "login",
            &[("key", &key.secret)],
            Some("https://api.example.com"),
        )
        .await;
    let cookie = answer
        .headers
        .get(SET_COOKIE)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        cookie.starts_with("__Host-farebox=")
            && cookie.ends_with("; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    visitor.keep(&answer);
    let setup = visitor.get("/setup").await.text;
    assert!(
        setup.contains("https://api.example.com/v1")
            && setup.contains("https://api.example.com/native")
    );
    assert!(
        !setup.contains("127.0.0.1"),
        "only the public URL is printed"
    );
    visitor.cookie = visitor.cookie.replace("__Host-farebox", "farebox");
    assert!(
        visitor.get("").await.text.contains("name=\"key\""),
        "a cookie without the prefix does not count"
    );
}

//! Bad days, each caused for real on the real program, and read as an operator would: in the log, in `/status`, in the metrics, in an
//! open console, and in the runbook, `docs/operations.md`.
//!
//! Further bad days: of the machine (`bad_machines.rs`), of a fleet (`bad_fleets.rs`), a full disk (`money::storage`), a key's exposure
//! (`money::stop`), a request that was refused (`show.rs`).

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use farebox_protocol::Family;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::block_in_place;

use super::identity::{move_all, put_back};
use crate::support::process::{Served, client, json as document};
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Speech};
use crate::support::{CATALOG, routes, talking};

/// What is waited for takes two seconds at most, on a machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway before an upstream, and the secrets of three keys with money.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) served: Served,
    pub(crate) keys: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn start(base_url: &str) -> Self {
        Self::of(&routes(base_url))
    }

    /// With this `routes.toml`.
    pub(crate) fn of(routes: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
        fs::write(folder.path().join("routes.toml"), routes).unwrap();
        let keys = (0..3).map(|number| key(folder.path(), number)).collect();
        let served = Served::start_with(folder.path(), &[], &[("UPSTREAM_KEY", "a-secret-word")]);
        let ledger = folder.path().join("farebox.db").display().to_string();
        let served = served.watched(&ledger);
        Self {
            folder,
            served,
            keys,
        }
    }

    /// One small request of a key: the status.
    pub(crate) async fn ask(&self, key: usize, words: &str, stream: bool) -> u16 {
        let body = json!({ "model": "test-model", "stream": stream, "messages": [{ "role": "user", "content": words }] });
        let request = client()
            .post(format!("{}/v1/chat/completions", self.served.base))
            .bearer_auth(&self.keys[key].1)
            .json(&body);
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let _ = answer.text().await;
        status
    }

    /// One request that is not answered: its id.
    pub(crate) async fn refused(&self) -> String {
        let body = json!({ "model": "test-model", "messages": [{ "role": "user", "content": "Say PONG" }] });
        let request = client()
            .post(format!("{}/v1/chat/completions", self.served.base))
            .bearer_auth(&self.keys[0].1)
            .json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 503);
        let id = &answer.headers()["x-request-id"];
        id.to_str().unwrap().to_owned()
    }

    /// A request of every key, until the gateway tells of this alert.
    async fn ask_until_told(&self, kind: &str, subject: &str) -> Value {
        let begun = Instant::now();
        while alert(&self.served, kind, subject).await.is_none() {
            assert!(begun.elapsed() < PATIENCE, "{}", self.served.log());
            for key in 0..self.keys.len() {
                self.ask(key, "Say PONG", false).await;
            }
        }
        told(&self.served, kind, subject).await
    }
}

fn key(folder: &Path, number: usize) -> (String, String) {
    let reference = format!("inv-{number}");
    let made = ["keys", "create", "--label", "t", "--balance", "10"];
    let mut arguments = [&made[..], &["--reference", &reference]].concat();
    if number == 0 {
        arguments.push("--new-ledger");
    }
    let made = document(folder, &arguments);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

/// The alert of this kind about this subject, if it stands.
pub(crate) async fn alert(served: &Served, kind: &str, subject: &str) -> Option<Value> {
    let status: Value = serde_json::from_str(&served.read("/status").await).unwrap();
    let alerts = status["alerts"].as_array().unwrap();
    let found = alerts
        .iter()
        .find(|alert| alert["kind"] == kind && alert["subject"] == subject);
    found.cloned()
}

/// Lines of the log about this alert with these words.
pub(crate) fn lines(served: &Served, words: &str, kind: &str, subject: &str) -> usize {
    let (kind, subject) = (
        format!("alert=\"{kind}\""),
        format!("subject=\"{subject}\""),
    );
    let log = served.log();
    let lines = log.lines().filter(|line| line.contains(words));
    lines
        .filter(|line| line.contains("WARN") && line.contains(&kind) && line.contains(&subject))
        .count()
}

async fn until(served: &Served, what: &str, ready: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !ready().await {
        assert!(
            begun.elapsed() < PATIENCE,
            "waited in vain for {what}:\n{}",
            served.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until an alert is told, and finds it in the log, in `/status`, in the metrics and in the manual.
pub(crate) async fn told(served: &Served, kind: &str, subject: &str) -> Value {
    until(served, kind, async || {
        alert(served, kind, subject).await.is_some()
    })
    .await;
    let found = alert(served, kind, subject)
        .await
        .unwrap_or_else(|| panic!("{kind} flaps:\n{}", served.log()));
    for field in [
        "severity",
        "since",
        "means",
        "reason",
        "customers",
        "remedy",
        "text",
    ] {
        assert!(
            found[field].as_str().is_some_and(|text| !text.is_empty()),
            "{field}: {found}"
        );
    }
    logged(served, kind, subject).await;
    let severity = found["severity"].as_str().unwrap();
    let series =
        format!("farebox_alert{{kind=\"{kind}\",severity=\"{severity}\",subject=\"{subject}\"}} 1");
    let metrics = served.read("/metrics").await;
    assert!(metrics.contains(&series), "{series}\n{metrics}");
    let manual = include_str!("../../docs/operations.md");
    let rules = include_str!("../../deploy/alerts.yml");
    assert!(
        manual.contains(&format!("\n#### `{kind}`\n\n*{severity}:*")),
        "{kind} is not in the manual"
    );
    assert!(
        rules.contains(&format!("kind=\"{kind}\"")),
        "{kind} has no rule"
    );
    if let Some(screen) = &served.screen {
        block_in_place(|| screen.until(&format!("{kind} {subject}")));
        // A reason becomes more exact as more is known.
        until(served, "a console that shows it", async || {
            let Some(now) = alert(served, kind, subject).await else {
                return false;
            };
            let shown = |field: &&str| screen.shows(now[*field].as_str().unwrap());
            block_in_place(|| ["reason", "customers", "remedy"].iter().all(shown))
        })
        .await;
    }
    found
}

/// Waits for the line at its beginning.
pub(crate) async fn logged(served: &Served, kind: &str, subject: &str) {
    until(served, "a line", async || {
        lines(served, "an alert begins", kind, subject) >= 1
    })
    .await;
}

/// Waits until it is over, and finds its last line.
pub(crate) async fn over(served: &Served, kind: &str, subject: &str) {
    until(served, "an end", async || {
        alert(served, kind, subject).await.is_none()
    })
    .await;
    if let Some(screen) = &served.screen {
        block_in_place(|| screen.until_gone(&format!("{kind} {subject}")));
    }
    until(served, "a last line", async || {
        lines(served, "an alert ends", kind, subject) >= 1
    })
    .await;
}

fn says(alert: &Value, words: &str) {
    let reason = alert["reason"].as_str().unwrap_or_default();
    assert!(reason.contains(words), "{words:?} is not in {alert}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_told_once_and_its_end_too() {
    let refused = Reply::error(
        401,
        "invalid_request_error",
        Some("invalid_api_key"),
        "Incorrect API key provided",
    );
    let upstream = ScriptedUpstream::start(refused).await;
    upstream.list(401, &[]);
    let place = Place::start(&upstream.base_url());
    assert_eq!(place.ask(0, "Say PONG", false).await, 503);
    let account = told(&place.served, "account_refused", "up").await;
    says(&account, "401");
    says(&account, "Incorrect API key provided");
    let dead = told(&place.served, "slug_dead", "test-model").await;
    says(&dead, "up/upstream-model-1");
    assert!(
        alert(&place.served, "slug_dead", "test-blind")
            .await
            .is_some(),
        "it has the same account"
    );
    for number in 0..30 {
        place.ask(number % 3, "Say PONG", false).await;
    }
    assert_eq!(
        lines(&place.served, "an alert begins", "account_refused", "up"),
        1,
        "not one for each request"
    );

    upstream.follow(talking("PONG"));
    let begun = Instant::now();
    while place.ask(0, "Say PONG", false).await != 200 {
        assert!(begun.elapsed() < PATIENCE, "{}", place.served.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    over(&place.served, "account_refused", "up").await;
    over(&place.served, "slug_dead", "test-model").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_account_is_told_however_it_is_said() {
    for (status, kind, message) in [
        (429, "insufficient_quota", "You exceeded your current quota"),
        (402, "payment_required", "Insufficient credits"),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
        ),
    ] {
        let upstream = ScriptedUpstream::start(Reply::error(status, kind, None, message)).await;
        let place = Place::start(&upstream.base_url());
        assert_eq!(place.ask(0, "Say PONG", false).await, 503);
        says(&told(&place.served, "account_refused", "up").await, message);
        told(&place.served, "slug_dead", "test-model").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_base_path_and_a_wrong_model_are_told() {
    for (status, code, message) in [
        (404, None, "Not Found"),
        (
            404,
            Some("model_not_found"),
            "The model `upstream-model-1` does not exist",
        ),
        (403, None, "Project does not have access to model"),
    ] {
        let upstream =
            ScriptedUpstream::start(Reply::error(status, "invalid_request_error", code, message))
                .await;
        let place = Place::start(&upstream.base_url());
        assert_eq!(place.ask(0, "Say PONG", false).await, 503);
        let subject = "test-model at up/upstream-model-1";
        says(
            &told(&place.served, "target_refuses", subject).await,
            message,
        );
        told(&place.served, "slug_dead", "test-model").await;
        assert!(
            alert(&place.served, "slug_dead", "test-blind")
                .await
                .is_none(),
            "nobody has asked for it"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_be_reached_is_paused_for_all_and_used_again() {
    let upstream =
        ScriptedUpstream::start(Reply::error(500, "server_error", None, "worn out")).await;
    let place = Place::start(&upstream.base_url());
    let subject = "test-model at up/upstream-model-1";
    // Two customers meet it, and the gateway's own request does, too.
    let paused = place.ask_until_told("target_paused", subject).await;
    says(&paused, "worn out");
    told(&place.served, "slug_dead", "test-model").await;
    upstream.follow(talking("PONG"));
    over(&place.served, "target_paused", subject).await;
    over(&place.served, "slug_dead", "test-model").await;

    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let place = Place::start(&upstream.base_url());
    assert_eq!(place.ask(0, "Say PONG", false).await, 200);
    drop(upstream);
    let paused = place.ask_until_told("target_paused", subject).await;
    assert!(!paused["reason"].as_str().unwrap().is_empty());
    told(&place.served, "slug_dead", "test-model").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_for_one_customer_names_it() {
    let script = |seen: &crate::support::upstream::Seen, _| {
        if String::from_utf8_lossy(&seen.body).contains("worn out") {
            Reply::error(500, "server_error", None, "this prompt is too much")
        } else {
            Speech::new(Family::Chat, "PONG").whole()
        }
    };
    let upstream = ScriptedUpstream::start(Script::by(script)).await;
    let place = Place::start(&upstream.base_url());
    for _ in 0..5 {
        assert_eq!(place.ask(0, "be worn out", false).await, 503);
        assert_eq!(place.ask(1, "Say PONG", false).await, 200);
    }
    let paused = told(
        &place.served,
        "target_paused_for",
        "test-model at up/upstream-model-1",
    )
    .await;
    // The customer has its first key's ten characters.
    says(&paused, &place.keys[0].0.replacen("k_", "c_", 1));
    says(&paused, "this prompt is too much");
    assert!(
        alert(&place.served, "slug_dead", "test-model")
            .await
            .is_none(),
        "others are served"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_customer_alone_with_a_failing_target_is_enough() {
    let upstream =
        ScriptedUpstream::start(Reply::error(500, "server_error", None, "worn out")).await;
    let place = Place::start(&upstream.base_url());
    for _ in 0..5 {
        assert_eq!(place.ask(0, "Say PONG", false).await, 503);
    }
    says(
        &told(
            &place.served,
            "target_failing",
            "test-model at up/upstream-model-1",
        )
        .await,
        "worn out",
    );
    told(&place.served, "slug_dead", "test-model").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endings_that_break_and_counts_that_are_missing_are_told() {
    let speech = || Speech::new(Family::Chat, "one two three four five six");
    let upstream = ScriptedUpstream::start(speech().stream().close_after(3)).await;
    let place = Place::start(&upstream.base_url());
    for _ in 0..5 {
        place.ask(0, "Say PONG", true).await;
        upstream.follow(speech().whole());
        assert_eq!(
            place.ask(1, "Say PONG", false).await,
            200,
            "so that it is not paused"
        );
        upstream.follow(speech().stream().close_after(3));
    }
    says(
        &told(&place.served, "endings_break", "up/upstream-model-1").await,
        "5 of 10",
    );

    upstream.follow(speech().claims(Value::Null).whole());
    for number in 0..5 {
        assert_eq!(place.ask(number % 2 + 1, "Say PONG", false).await, 200);
    }
    let missing = told(&place.served, "miscount", "up/upstream-model-1 (missing)").await;
    says(&missing, "came without usage");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_edit_is_told_until_it_is_mended() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let place = Place::start(&upstream.base_url());
    let catalog = place.folder.path().join("catalog.toml");
    fs::write(&catalog, CATALOG.replace("vision\"", "vison\"")).unwrap();
    let rejected = told(&place.served, "edit_rejected", "").await;
    says(&rejected, "catalog.toml:");
    says(&rejected, "vison");
    assert_eq!(
        place.ask(0, "Say PONG", false).await,
        200,
        "the last good files are in force"
    );
    fs::write(&catalog, CATALOG).unwrap();
    over(&place.served, "edit_rejected", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_moved_away_is_told_until_it_is_back() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let place = Place::start(&upstream.base_url());
    let away = place.folder.path().join("away");
    move_all(place.folder.path(), &away);
    let displaced = told(&place.served, "ledger_displaced", "").await;
    says(&displaced, "cannot be written");
    assert_eq!(place.ask(0, "Say PONG", false).await, 503);
    put_back(&away, place.folder.path());
    over(&place.served, "ledger_displaced", "").await;
    assert_eq!(place.ask(0, "Say PONG", false).await, 200);
}

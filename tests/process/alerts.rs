//! The shipped alerts for Prometheus: their own tests, and that the gateway exports every series they use.

use std::collections::BTreeSet;
use std::process::Command;

use farebox::telemetry::alerts;
use farebox_protocol::Family;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::bad_days::{Place, logged, told};
use crate::support::skip::installed;
use crate::support::upstream::{Gate, Reply, ScriptedUpstream, Speech};
use crate::support::{Gateway, chat, talking};

/// Series of a ledger on PostgreSQL, which this gateway does not have; `money::failover` looks for them.
pub(crate) const OF_DATABASES: [&str; 5] = [
    "farebox_ledger_standbys",
    "farebox_ledger_single",
    "farebox_ledger_unknown_commits_total",
    "farebox_nodes",
    "farebox_nodes_differ",
];

/// The file with what stands between two marks replaced by `text`; with `FAREBOX_BLESS=1` it is written, too.
fn filled(path: &str, (begin, end): (&str, &str), text: &str) -> (String, String) {
    let path = format!("{}/{path}", crate::support::HOME);
    let is = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = is.split_once(begin).expect("the first mark");
    let (_, after) = rest.split_once(end).expect("the second mark");
    let should = format!("{before}{begin}{text}{end}{after}");
    if std::env::var_os("FAREBOX_BLESS").is_some() {
        std::fs::write(&path, &should).unwrap();
        return (should.clone(), should);
    }
    (is, should)
}

/// The runbook with what the list says of each alert as the first paragraph below its heading; with `FAREBOX_BLESS=1` it is written.
fn runbook() -> (String, String) {
    let path = format!("{}/docs/operations.md", crate::support::HOME);
    let is = std::fs::read_to_string(&path).unwrap();
    let mut should = is.clone();
    for row in alerts::table().lines().skip(2) {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [kind, severity, means, customers, remedy] = cells[..] else {
            panic!("five cells: {row}")
        };
        let heading = format!("\n#### {kind}\n\n");
        let (before, rest) = (should.split_once(&heading)).unwrap_or_else(|| panic!("{heading}"));
        let (_, after) = rest.split_once('\n').expect("a paragraph of one line");
        let told = format!("*{severity}:* {means}. Customers see: {customers}. Do: {remedy}.");
        should = format!("{before}{heading}{told}\n{after}");
    }
    if std::env::var_os("FAREBOX_BLESS").is_some() {
        std::fs::write(&path, &should).unwrap();
        return (should.clone(), should);
    }
    (is, should)
}

#[test]
fn documents_and_rules_say_what_the_list_of_alerts_says() {
    let (is, should) = runbook();
    assert!(
        is == should,
        "docs/operations.md: FAREBOX_BLESS=1 writes it"
    );
    let marks = (
        "- name: farebox-now\n    rules:\n",
        "\n  # A ledger on PostgreSQL",
    );
    let (is, should) = filled("deploy/alerts.yml", marks, &alerts::rules());
    assert!(is == should, "deploy/alerts.yml: FAREBOX_BLESS=1 writes it");
}

#[test]
fn the_shipped_alerts_pass_their_own_tests() {
    if !installed("promtool", "the alerts for Prometheus") {
        return;
    }
    let deploy = std::path::Path::new(crate::support::HOME).join("deploy");
    let run = Command::new("promtool")
        .args(["test", "rules", "alerts_test.yml"])
        .current_dir(deploy)
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(run.status.success(), "{said}");
}

#[tokio::test]
async fn the_alerts_look_at_series_that_there_are() {
    let rules = include_str!("../../deploy/alerts.yml");
    let name = |word: &str| word.starts_with("farebox_").then(|| word.to_owned());
    let named = |text: &str| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter_map(name)
            .collect()
    };
    let wanted: BTreeSet<String> = named(rules);
    assert!(wanted.len() > 5, "{wanted:?}");
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    gateway.settled().await;
    let told: BTreeSet<String> = named(&gateway.ask("/metrics").await.text);
    // Files are not watched in this test, so their state is not exported.
    let elsewhere = |name: &str| name == "farebox_config_current" || OF_DATABASES.contains(&name);
    let missing: Vec<&String> = wanted
        .difference(&told)
        .filter(|name| !elsewhere(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A request with a place among its customer's counts, with its hold or before; a refused one whose body still comes does not.
#[tokio::test]
async fn what_is_in_flight_has_a_place() {
    let gate = Gate::new();
    let waits = Speech::new(Family::Chat, "PONG").whole().gated(&gate);
    let upstream = ScriptedUpstream::start(waits).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    let in_flight = async || {
        let metrics = gateway.ask("/metrics").await.text;
        let line = metrics
            .lines()
            .find(|line| line.starts_with("farebox_requests_in_flight "));
        line.unwrap().to_owned()
    };
    let refused = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\ncontent-length: 9\r\n\r\n{{",
        "sk-nobody"
    );
    let address = gateway.base.trim_start_matches("http://");
    let mut stranger = TcpStream::connect(address).await.unwrap();
    stranger.write_all(refused.as_bytes()).await.unwrap();
    assert_eq!(
        stranger.read_u8().await.unwrap(),
        b'H',
        "it is refused, and its body still comes"
    );
    assert_eq!(in_flight().await, "farebox_requests_in_flight 0");
    let body = chat("test-model", false);
    let two = async {
        upstream.request(1).await;
        let running = in_flight().await;
        gate.open();
        running
    };
    let path = "/v1/chat/completions";
    let asked = (
        gateway.post(path, &key, &body),
        gateway.post(path, &key, &body),
    );
    let (one, other, running) = tokio::join!(asked.0, asked.1, two);
    assert_eq!((one.status, other.status), (200, 200));
    assert_eq!(running, "farebox_requests_in_flight 2");
    gateway.settled().await;
    assert_eq!(in_flight().await, "farebox_requests_in_flight 0");
}

/// One refused request is enough: the alert is told before anybody asks a second time. How soon is in the test's output.
#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_told_before_a_second_customer_asks() {
    let refusals = [
        (401, "invalid_api_key", "account_refused", "up"),
        (402, "payment_required", "account_refused", "up"),
        (429, "insufficient_quota", "account_refused", "up"),
        (
            404,
            "model_not_found",
            "target_refuses",
            "test-model at up/upstream-model-1",
        ),
        (404, "model_not_found", "slug_dead", "test-model"),
    ];
    for (status, code, kind, subject) in refusals {
        let refusal = Reply::error(status, "invalid_request_error", Some(code), "no");
        let upstream = ScriptedUpstream::start(refusal).await;
        let place = Place::start(&upstream.base_url());
        let id = place.refused().await;
        let request = place.served.read(&format!("/requests/{id}")).await;
        let request: Value = serde_json::from_str(&request).unwrap();
        let cause = instant(&request["record"]["at"]);
        // Whoever reads `/status` makes the gateway look; the log is told without being asked.
        logged(&place.served, kind, subject).await;
        let alert = told(&place.served, kind, subject).await;
        assert_eq!(upstream.requests().len(), 1, "one request, and no other");
        let since = instant(&alert["since"]);
        assert!(cause <= since, "the cause comes first");
        println!("{kind} after {status}: {} ms later", since - cause);
    }
}

fn instant(at: &Value) -> i64 {
    let at: jiff::Timestamp = at.as_str().unwrap().parse().unwrap();
    at.as_millisecond()
}

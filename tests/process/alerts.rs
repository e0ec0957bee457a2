//! The shipped alerts for Prometheus: their own tests, and that the gateway exports every series they use.

use std::collections::BTreeSet;
use std::process::Command;

use farebox::telemetry::alerts;

use crate::support::skip::installed;
use crate::support::upstream::ScriptedUpstream;
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
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
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

#[test]
fn documents_and_rules_say_what_the_list_of_alerts_says() {
    let marks = ("process::alerts -->\n", "<!-- end of alerts -->");
    let (is, should) = filled("docs/operations.md", marks, &alerts::table());
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
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");
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

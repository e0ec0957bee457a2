//! What targets have taught: kept over restarts, shown to the operator, and forgotten on request.

use farebox_ledger::{CustomerId, Excess, Fact, Facts, Lesson, Perform, Taught};
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::bodies::{PROSE, said};
use super::hidden;
use crate::support::billing::{Bills, Manner};
use crate::support::process;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Gateway, TestKey, path, routes};

const TARGET: &str = "up/upstream-model-1";

/// What `/status` says of the first target's standard class.
async fn taught(gateway: &Gateway) -> Value {
    gateway.ask("/status").await.json()["targets"][0]["taught"][0].clone()
}

/// Asks not to reason.
async fn ask_plainly(gateway: &Gateway, key: &TestKey) {
    let mut body = said(Family::Chat, json!("Tell a story."), 4_000);
    (body["stream"], body["reasoning_effort"]) = (json!(true), json!("none"));
    let answer = gateway.post(path(Family::Chat), key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    gateway.settled().await;
}

#[tokio::test]
async fn only_a_long_answer_teaches_a_pace_and_a_restart_keeps_it() {
    let bills = Bills::default();
    let upstream = ScriptedUpstream::start(bills.answering("Yes.", Manner::default())).await;
    let (catalog, routes) = (hidden::catalog(""), routes(&upstream.base_url()));
    let gateway = Gateway::fresh(&catalog, &routes).await;
    let key = gateway.key("5").await;
    for _ in 0..5 {
        ask_plainly(&gateway, &key).await;
    }
    let known = taught(&gateway).await;
    assert_eq!(known["own_tokens"], json!(0), "trivial answers");
    upstream.follow(bills.answering(&PROSE.repeat(40), Manner::default()));
    ask_plainly(&gateway, &key).await;
    let known = taught(&gateway).await;
    assert!(known["own_tokens"].as_u64() > Some(300), "{known}");
    assert_eq!(known["hides"], json!(false), "it showed all of it");
    // Stopped long before its next exchange with the ledger.
    let (path, _, folder) = gateway.stop_and_keep().await;
    let again =
        Gateway::fresh_with(&catalog, &routes, |settings| settings.ledger = path.into()).await;
    let kept = async {
        while taught(&again).await != known {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let kept = tokio::time::timeout(std::time::Duration::from_secs(60), kept).await;
    kept.expect("what was learned outlives the restart");
    let reasoning = Manner {
        hidden: 2_000,
        thinking: 40_000,
        ..Manner::default()
    };
    upstream.follow(bills.answering(&PROSE.repeat(4), reasoning));
    ask_plainly(&again, &key).await;
    assert_eq!(taught(&again).await["hides"], json!(true));
    again.stop().await;
    drop(folder);
}

#[tokio::test]
async fn the_command_forgets_what_a_target_has_taught() {
    let bills = Bills::default();
    let upstream = ScriptedUpstream::start(bills.answering("Yes.", Manner::default())).await;
    let gateway = Gateway::fresh(&hidden::catalog(""), &routes(&upstream.base_url())).await;
    let began = taught(&gateway).await;
    let lesson = |class: &str| Lesson {
        tokens: 90_000,
        millis: 1_000_000,
        theirs: 1_100_000,
        ours: 1_000_000,
        facts: Facts::default().with(Fact::Caches),
        ..Lesson::empty(TARGET, class)
    };
    let excess = |number, tokens| Excess {
        target: TARGET.to_owned(),
        customer: CustomerId::from_random(number),
        tokens,
        at: farebox::clock::now(),
    };
    let shown = Taught {
        lessons: vec![lesson("standard"), lesson("fast")],
        excesses: vec![excess(1, 9_000), excess(2, 5_000)],
    };
    gateway.ledger.perform(shown).await.unwrap();
    let calibrations = &gateway.front.proxy.calibrations;
    let exchange = async || {
        let exchanged = calibrations.exchange(&gateway.front.proxy.ledger).await;
        exchanged.unwrap();
        gateway.ask("/status").await.json()
    };
    let status = exchange().await;
    assert_eq!(
        status["targets"][0]["taught"][0],
        json!({"class": "standard", "pace": 88_235, "own_tokens": 90_000, "ratio": 1_090, "own_prompts": 1_000_000,
            "hides": false, "caches": true, "writes_unmarked": false, "limit_proved": false})
    );
    let other = &status["targets"][0]["taught"][1];
    assert_eq!(
        (&other["class"], &other["own_tokens"]),
        (&json!("fast"), &json!(90_000))
    );
    let excess = json!({"tokens": 9_000, "customers": 2});
    assert_eq!(status["targets"][0]["excess"], excess);
    let alerts = status["alerts"].as_array().unwrap();
    let alert = alerts
        .iter()
        .find(|alert| alert["kind"] == "limit_exceeded");
    let told = alert.unwrap()["text"].as_str().unwrap();
    for word in [
        TARGET,
        "9000 tokens",
        "limit = \"text\"",
        "limit = \"none\"",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let folder = gateway.ledger_path().parent().unwrap().to_owned();
    let run = |target: &'static str| {
        let folder = folder.clone();
        tokio::task::spawn_blocking(move || {
            let command = [
                "--ledger",
                "farebox.db",
                "targets",
                "reset",
                target,
                "--json",
            ];
            process::farebox(&folder, &command).output().unwrap()
        })
    };
    let unknown = run("up/nobody").await.unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(said.contains("nothing is known of up/nobody"), "{said}");
    let reset = run(TARGET).await.unwrap();
    let said: Value = serde_json::from_slice(&reset.stdout).unwrap();
    assert_eq!(said, json!({"target": TARGET, "classes": 2, "excesses": 2}));
    let status = exchange().await;
    assert_eq!(status["targets"][0]["taught"], json!([began]));
    assert_eq!(status["targets"][0]["excess"], json!(null));
    assert_eq!(run(TARGET).await.unwrap().status.code(), Some(1), "twice");
}

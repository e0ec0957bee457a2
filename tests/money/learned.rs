//! What targets have taught: kept over restarts, shown to the operator, and forgotten on request.

use farebox_ledger::{CustomerId, Question, VOTE_DAYS, Vote};
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::bodies::{PROSE, said};
use super::hidden;
use crate::support::billing::{Bills, Manner};
use crate::support::process;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Gateway, TestKey, path, routes};

const TARGET: &str = "up/upstream-model-1";

/// What `/status` says of the first target.
async fn learned(gateway: &Gateway) -> Value {
    gateway.ask("/status").await.json()["targets"][0]["learned"].clone()
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
async fn only_a_long_answer_teaches_that_a_target_obeys_and_a_restart_keeps_it() {
    let bills = Bills::default();
    let upstream = ScriptedUpstream::start(bills.answering("Yes.", Manner::default())).await;
    let (catalog, routes) = (hidden::catalog(""), routes(&upstream.base_url()));
    let gateway = Gateway::start(&catalog, &routes).await;
    let key = gateway.key("5").await;
    for _ in 0..5 {
        ask_plainly(&gateway, &key).await;
    }
    assert_eq!(
        learned(&gateway).await["obeys"],
        json!(null),
        "trivial answers"
    );
    upstream.follow(bills.answering(&PROSE.repeat(40), Manner::default()));
    ask_plainly(&gateway, &key).await;
    assert_eq!(learned(&gateway).await["obeys"], json!(true));
    // Stopped long before its next exchange with the ledger.
    let (path, _, folder) = gateway.stop_and_keep().await;
    let again =
        Gateway::start_with(&catalog, &routes, |settings| settings.ledger = path.into()).await;
    let kept = async {
        while learned(&again).await["obeys"] != json!(true) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let kept = tokio::time::timeout(std::time::Duration::from_secs(60), kept).await;
    kept.expect("what was learned outlives the restart");
    let reasoning = Manner {
        hidden: 400,
        thinking: 40_000,
        ..Manner::default()
    };
    upstream.follow(bills.answering(&PROSE.repeat(40), reasoning));
    ask_plainly(&again, &key).await;
    assert_eq!(learned(&again).await["obeys"], json!(false));
    again.stop().await;
    drop(folder);
}

#[tokio::test]
async fn the_command_forgets_what_a_target_has_taught() {
    let bills = Bills::default();
    let upstream = ScriptedUpstream::start(bills.answering("Yes.", Manner::default())).await;
    let gateway = Gateway::start(&hidden::catalog(""), &routes(&upstream.base_url())).await;
    let today = farebox::clock::now().millis() / 86_400_000;
    let vote = |number: u64, question, value| Vote {
        target: TARGET.to_owned(),
        question,
        day: today - (number as i64 % VOTE_DAYS),
        customer: CustomerId::from_random(number + 1),
        value,
    };
    let votes = (0..12).flat_map(|number| {
        [
            vote(number, Question::Pace, 90_000),
            vote(number, Question::Count, 1_100),
        ]
    });
    gateway.ledger.vote(votes.collect()).await.unwrap();
    let calibrations = &gateway.front.proxy.calibrations;
    calibrations
        .exchange(&gateway.front.proxy.ledger)
        .await
        .unwrap();
    let known = learned(&gateway).await;
    assert_eq!(
        known,
        json!({"pace": {"median": 90_000, "p95": 90_000}, "pace_votes": 12, "count": 1_100, "count_votes": 12, "obeys": null})
    );
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
    assert_eq!(said, json!({"target": TARGET, "forgotten": 24}));
    calibrations
        .exchange(&gateway.front.proxy.ledger)
        .await
        .unwrap();
    let known = learned(&gateway).await;
    assert_eq!(
        (&known["pace"], &known["pace_votes"], &known["count"]),
        (&json!(null), &json!(0), &json!(1_000))
    );
    assert_eq!(run(TARGET).await.unwrap().status.code(), Some(1), "twice");
}

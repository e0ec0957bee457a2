//! Native streams in scripts that a vendor's tokenizer cuts finer than ours, left early: the charge is near that vendor's count.
//!
//! The counts are the public tokenizer's own (`bench/token_factors.py --fixture`).

use farebox_ledger::Evidence;
use farebox_protocol::{Family, ReportedUsage};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::support::upstream::{ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, ask, path, routes};

/// What is charged of output, in thousandths of the tokenizer's count, at a target of this upstream name.
async fn left(text: &str, truth: u64, upstream_model: &str) -> u64 {
    let speech = Speech::new(Family::Messages, text)
        .usage(ReportedUsage {
            input: 100,
            output: truth,
            ..ReportedUsage::default()
        })
        .in_pieces_of(40)
        .stream();
    // All of the text, and nothing behind it.
    let pieces = text.chars().count().div_ceil(40);
    let shown = crate::support::load::before_pieces(Family::Messages) + pieces;
    let upstream = ScriptedUpstream::start(speech.stall_after(shown)).await;
    let routes = routes(&upstream.base_url()).replace("upstream-model-1", upstream_model);
    assert!(routes.contains(upstream_model), "{routes}");
    let gateway = Gateway::start(CATALOG, &routes).await;
    let key = gateway.key("5").await;
    let mut body = ask(Family::Messages, "test-model", true);
    body["max_tokens"] = json!(60_000);
    let sent = gateway
        .client
        .post(format!("{}{}", gateway.base, path(Family::Messages)))
        .bearer_auth(&key.secret)
        .json(&body);
    let mut answer = sent.send().await.unwrap().bytes_stream();
    let mut read = Vec::new();
    while String::from_utf8_lossy(&read).matches("text_delta").count() < pieces {
        read.extend(answer.next().await.unwrap().unwrap());
    }
    drop(answer);
    gateway.settled().await;
    let bill = gateway.charges(&key).await.pop().unwrap().bill.unwrap();
    assert_eq!(bill.end_reason.as_str(), "client_gone");
    assert_eq!(bill.evidence, Some(Evidence::Local));
    bill.usage.output * 1_000 / truth
}

#[tokio::test]
async fn a_native_stream_left_early_is_charged_as_its_vendor_counts() {
    let counts: Value =
        serde_json::from_str(include_str!("../fixtures/tokenizers/counts.json")).unwrap();
    for (language, text) in [
        (
            "russian",
            include_str!("../fixtures/tokenizers/russian.txt"),
        ),
        (
            "georgian",
            include_str!("../fixtures/tokenizers/georgian.txt"),
        ),
        ("hindi", include_str!("../fixtures/tokenizers/hindi.txt")),
        ("thai", include_str!("../fixtures/tokenizers/thai.txt")),
        ("tamil", include_str!("../fixtures/tokenizers/tamil.txt")),
    ] {
        let truth = counts[language]["claude"].as_u64().unwrap();
        let share = left(text.trim(), truth, "claude-sonnet-4-5").await;
        let before = left(text.trim(), truth, "some-model").await;
        println!("| {language} | {before} ‰ | {share} ‰ |");
        assert!((900..=1_100).contains(&share), "{language}: {share}");
        assert!(before < 560, "{language}: {before} without factors");
    }
}

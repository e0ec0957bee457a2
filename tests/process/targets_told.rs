//! One truth about a target: whatever is told of it ends when the gateway itself finds it well, before any customer asks, and the pages
//! beside an alert say the same.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::bad_days::{Place, alert, lines, over, told};
use crate::support::upstream::{Reply, ScriptedUpstream};
use crate::support::{routes, talking};

/// Between two questions of the gateway's own.
const EVERY: Duration = Duration::from_secs(5);
/// The same and more, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// The target of `test-model`, as `/status` shows it.
async fn target(place: &Place) -> Value {
    let status: Value = serde_json::from_str(&place.served.read("/status").await).unwrap();
    let targets = status["targets"].as_array().unwrap();
    let found = targets.iter().find(|target| target["slug"] == "test-model");
    found.unwrap().clone()
}

/// Alert and state in one look: they never contradict each other.
async fn is_well(place: &Place) -> bool {
    let target = target(place).await;
    assert!(
        target["state"] == "closed" || !target["alert"].is_null(),
        "paused, and nothing is told: {target}"
    );
    target["state"] == "closed" && target["alert"].is_null()
}

async fn gets_well(place: &Place) {
    let begun = Instant::now();
    while !is_well(place).await {
        assert!(begun.elapsed() < PATIENCE, "{}", place.served.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether a request is one of the gateway's own.
fn is_ours(upstream: &ScriptedUpstream, number: usize) -> bool {
    let asked = upstream.requests()[number].json().to_string();
    asked.contains("ping") && !asked.contains("PONG")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_for_money_ends_with_our_own_answer_and_not_with_the_list() {
    let drained = Reply::error(402, "payment_required", None, "Insufficient credits");
    let upstream = ScriptedUpstream::start(drained).await;
    let place = Place::start(&upstream.base_url());
    assert_eq!(place.ask(0, "Say PONG", false).await, 503);
    let account = told(&place.served, "account_refused", "up").await;
    assert!(
        account["remedy"]
            .as_str()
            .unwrap()
            .starts_with("pay the provider"),
        "{account}"
    );
    assert_eq!(target(&place).await["alert"], "account_refused");
    // The list answers all the time, and the gateway's own question is refused as the customer's was.
    let begun = Instant::now();
    while upstream.requests().len() < 2 {
        assert!(begun.elapsed() < PATIENCE, "{}", place.served.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        alert(&place.served, "account_refused", "up")
            .await
            .is_some()
    );
    assert_eq!(
        lines(&place.served, "an alert ends", "account_refused", "up"),
        0
    );
    assert_eq!(
        target(&place).await["state"],
        "open",
        "our own was refused, too"
    );

    upstream.follow(talking("PONG"));
    let paid = Instant::now();
    gets_well(&place).await;
    over(&place.served, "account_refused", "up").await;
    over(&place.served, "slug_dead", "test-model").await;
    println!("ended {} ms after it was paid", paid.elapsed().as_millis());
    for number in 1..upstream.requests().len() {
        assert!(is_ours(&upstream, number), "no customer has asked again");
    }
    assert_eq!(place.ask(1, "Say PONG", false).await, 200);
}

/// Without a budget nothing of our own is sent: the list, which is free, proves nothing, and a customer's answer is what is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_for_money_stands_without_a_budget_until_a_customer_is_served() {
    let drained = Reply::error(402, "payment_required", None, "Insufficient credits");
    let upstream = ScriptedUpstream::start(drained).await;
    upstream.list(200, &[]);
    let files = routes(&upstream.base_url());
    let budget = "[provider.up]\nprobe_budget = \"0\"\n";
    let place = Place::of(&files.replacen("[provider.up]\n", budget, 1));
    assert_eq!(place.ask(0, "Say PONG", false).await, 503);
    told(&place.served, "account_refused", "up").await;
    upstream.follow(talking("PONG"));
    tokio::time::sleep(EVERY + Duration::from_secs(1)).await;
    assert_eq!(upstream.requests().len(), 1, "the customer's alone");
    assert_eq!(target(&place).await["alert"], "account_refused");
    assert_eq!(place.ask(1, "Say PONG", false).await, 200);
    over(&place.served, "account_refused", "up").await;
    over(&place.served, "slug_dead", "test-model").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_key_ends_with_the_accounts_list() {
    let refused = Reply::error(401, "invalid_request_error", Some("invalid_api_key"), "no");
    let upstream = ScriptedUpstream::start(refused).await;
    upstream.list(401, &[]);
    let place = Place::start(&upstream.base_url());
    assert_eq!(place.ask(0, "Say PONG", false).await, 503);
    let account = told(&place.served, "account_refused", "up").await;
    let remedy = account["remedy"].as_str().unwrap();
    assert!(remedy.contains("replace the secret"), "{account}");
    upstream.list(200, &[]);
    gets_well(&place).await;
    over(&place.served, "account_refused", "up").await;
    over(&place.served, "slug_dead", "test-model").await;
    assert_eq!(upstream.requests().len(), 1, "the list is free, and enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_that_one_customer_met_end_with_our_own_answer() {
    let worn = Reply::error(500, "server_error", None, "worn out");
    let upstream = ScriptedUpstream::start(worn).await;
    let place = Place::start(&upstream.base_url());
    for _ in 0..5 {
        assert_eq!(place.ask(0, "Say PONG", false).await, 503);
    }
    let subject = "test-model at up/upstream-model-1";
    told(&place.served, "target_failing", subject).await;
    upstream.follow(talking("PONG"));
    gets_well(&place).await;
    over(&place.served, "target_failing", subject).await;
    over(&place.served, "slug_dead", "test-model").await;
    let last = upstream.requests().len() - 1;
    assert!(is_ours(&upstream, last));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_can_be_reached_again_is_well_before_anybody_asks() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let port = upstream
        .base_url()
        .split([':', '/'])
        .nth(4)
        .unwrap()
        .to_owned();
    let place = Place::start(&upstream.base_url());
    drop(upstream);
    for _ in 0..5 {
        assert_eq!(place.ask(0, "Say PONG", false).await, 503);
    }
    let subject = "test-model at up/upstream-model-1";
    told(&place.served, "target_paused", subject).await;
    told(&place.served, "slug_dead", "test-model").await;
    // It has not even a list, but there is a connection.
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}"))
        .await
        .unwrap();
    let mended = Instant::now();
    let answering = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4_096]).await;
            let nothing =
                b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(nothing).await;
        }
    });
    gets_well(&place).await;
    over(&place.served, "target_paused", subject).await;
    over(&place.served, "slug_dead", "test-model").await;
    let took = mended.elapsed();
    assert!(took < EVERY + PATIENCE, "{took:?}");
    answering.abort();
}

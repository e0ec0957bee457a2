//! Pages of the dashboard: whose requests they list, what changes while they are open, how many, and how fast.

use std::time::{Duration, Instant};

use farebox::clock;
use farebox_ledger::key::Change;
use futures_util::StreamExt;
use reqwest::header::COOKIE;

use super::sessions::{Visitor, gateway};
use crate::support::{TestKey, big_ledger, chat, sized};

#[tokio::test]
async fn pages_of_requests_stay_with_their_key() {
    let (_upstream, gateway) = gateway().await;
    let (key, other) = (gateway.owner("5.00").await, gateway.key("5.00").await);
    let foreign = gateway
        .post("/v1/chat/completions", &other, &chat("test-model", false))
        .await;
    for _ in 0..55 {
        assert_eq!(
            gateway
                .post("/v1/chat/completions", &key, &chat("test-model", false))
                .await
                .status,
            200
        );
    }
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let first = visitor.get("/requests").await.text;
    assert_eq!(first.matches("data-label=\"Receipt\"").count(), 50);
    let older = first
        .split("/dashboard/requests?before=")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let second = visitor.get(&format!("/requests?before={older}")).await.text;
    assert_eq!(second.matches("data-label=\"Receipt\"").count(), 5);
    for bad in [foreign.header("x-request-id").unwrap(), "req_x", "1", "%27"] {
        assert_eq!(
            visitor.get(&format!("/requests?before={bad}")).await.status,
            404,
            "{bad}"
        );
    }
    let csv = visitor.get("/requests.csv").await;
    assert_eq!(csv.text.lines().count(), 56, "{}", csv.text);
    assert!(
        csv.header("content-disposition")
            .unwrap()
            .contains("attachment; filename=\"farebox-requests-")
    );
    let json = visitor.get("/requests.json").await.json();
    let requests = json["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 55);
    assert!(!csv.text.contains(foreign.header("x-request-id").unwrap()));
    assert_eq!(
        visitor
            .get("/requests.csv?from=2020-01-01&to=2020-02-01")
            .await
            .text
            .lines()
            .count(),
        1
    );
    assert_eq!(
        visitor
            .get("/requests.json?from=2020-01-01&to=2020-02-01")
            .await
            .json()["requests"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    assert_eq!(
        visitor
            .get("/requests.csv?from=2000-01-01&to=2020-02-01")
            .await
            .status,
        400
    );
    let payments = visitor.get("/payments").await.text;
    assert!(payments.contains("Top-up") && payments.contains(&format!("first-{}", key.id)));
}

#[tokio::test]
async fn the_live_parts_come_and_end_with_the_session() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let url = format!("{}/dashboard/live?range=24h", gateway.base);
    let sent = visitor
        .client
        .get(url)
        .header(COOKIE, &visitor.cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(sent.headers()["content-type"], "text/event-stream");
    let mut events = sent.bytes_stream();
    let mut next =
        async || String::from_utf8(events.next().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(next().await.contains("5.00 USD"));
    gateway
        .post(
            "/native/v1/messages",
            &key,
            &crate::support::chat("test-model", false),
        )
        .await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let available = gateway
        .account(&key)
        .await
        .customer
        .account
        .available()
        .to_string();
    let moved = async {
        while !next()
            .await
            .contains(&format!("\"title\":\"{available} USD"))
        {}
    };
    tokio::time::timeout(Duration::from_secs(60), moved)
        .await
        .expect("the balance moves");
    gateway.change(&key, Change::Block).await;
    let over = async { while !next().await.starts_with("event: over") {} };
    tokio::time::timeout(Duration::from_secs(60), over)
        .await
        .expect("a block ends the stream");
}

#[tokio::test]
async fn open_pages_of_a_key_are_bounded() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let open = async || {
        let url = format!("{}/dashboard/live", gateway.base);
        visitor
            .client
            .get(url)
            .header(COOKIE, &visitor.cookie)
            .send()
            .await
            .unwrap()
    };
    let mut pages = Vec::new();
    for _ in 0..16 {
        pages.push(open().await);
        assert_eq!(pages.last().unwrap().status(), 200);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(open().await.status(), 429);
    drop(pages);
    let places = async {
        while open().await.status() != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), places)
        .await
        .expect("closed pages give their places back");
}

#[tokio::test]
async fn an_open_page_does_not_hold_up_a_stop() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let url = format!("{}/dashboard/live", gateway.base);
    let mut live = visitor
        .client
        .get(url)
        .header(COOKIE, &visitor.cookie)
        .send()
        .await
        .unwrap();
    assert!(live.chunk().await.unwrap().is_some());
    let Visitor { .. } = visitor;
    let began = Instant::now();
    gateway.stop().await;
    // A page that held it up would do so until the requests' 30 s are over.
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_page_is_small_and_fast_with_a_long_history() {
    let (_upstream, gateway) = gateway().await;
    let entries = sized(10_000, 1_000_000);
    big_ledger::generate(&(gateway.ledger.clone() as _), 1, entries, clock::now()).await;
    let key = TestKey {
        id: big_ledger::key_id(0),
        secret: big_ledger::secret(0).reveal().to_owned(),
    };
    let visitor = Visitor::signed_in(&gateway, &key).await;
    visitor.get("").await;
    let mut times = Vec::new();
    for _ in 0..15 {
        let began = Instant::now();
        let page = visitor.get("").await;
        times.push(began.elapsed());
        assert_eq!(page.status, 200);
        assert!(page.text.len() < 150_000, "{} bytes", page.text.len());
        tokio::time::sleep(Duration::from_millis(120)).await;
    }
    times.sort();
    let (median, size) = (times[7], visitor.get("").await.text.len());
    println!(
        "{entries} entries: median {median:?}, worst {:?}, {size} bytes",
        times[14]
    );
    // A busy machine must not fail the build: the promised time is asserted at full size, in a release build.
    assert!(
        cfg!(debug_assertions) || median < Duration::from_millis(20),
        "{median:?}"
    );
    for path in ["/requests", "/requests?status=ok"] {
        assert_eq!(visitor.get(path).await.status, 200);
        tokio::time::sleep(Duration::from_millis(120)).await;
    }
}

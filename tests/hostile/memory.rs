//! How much memory others can make the gateway use: customers with heads, documents and tiny values, a provider with many large
//! answers at once and frames after the last one.

use std::fs;
use std::time::Duration;

use farebox_protocol::Family;
use futures_util::future::join_all;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::load::UPSTREAM_KEY;
use crate::support::pdf::pdf;
use crate::support::process::{Served, client, json};
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, ask, chat, path, routes, talking};

/// The most memory that the process ever had, MiB.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_unfinished_heads_of_395_kb_cost_64_kib_each() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
    fs::write(
        folder.path().join("routes.toml"),
        routes(&upstream.base_url()),
    )
    .unwrap();
    json(
        folder.path(),
        &["keys", "create", "--new-ledger", "--label", "t"],
    );
    let served = Served::start_with(folder.path(), &[], &[UPSTREAM_KEY]);
    let (before, address) = (
        peak(served.id()),
        served.base.trim_start_matches("http://").to_owned(),
    );
    // Half of them stay just below the bound, so that they are kept until their ten seconds are over.
    let senders = (0..300).map(|number| {
        let length = if number % 2 == 0 { 395_000 } else { 60_000 };
        let (head, address) = (
            format!("HEAD / HTTP/1.1\r\nhost: x\r\nx-a: {}", "y".repeat(length)),
            address.clone(),
        );
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // A head that is too large is refused before all of it was taken.
            let _ = tokio::time::timeout(Duration::from_secs(5), stream.write_all(head.as_bytes()))
                .await;
            stream
        }
    });
    let connections = join_all(senders).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let grown = peak(served.id()) - before;
    assert!(
        grown < 60,
        "{grown} MiB for 300 heads, of which each may take 64 KiB"
    );
    drop(connections);
}

/// A reading that goes on after its customer has left still takes its place, so that leaving starts no more of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_are_sent_and_left_are_read_two_at_a_time() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
    fs::write(
        folder.path().join("routes.toml"),
        routes(&upstream.base_url()),
    )
    .unwrap();
    let made = json(
        folder.path(),
        &["keys", "create", "--new-ledger", "--label", "nothing-on-it"],
    );
    let served = Served::start_with(folder.path(), &[], &[UPSTREAM_KEY]);
    // 20 MB of text in 40 KB.
    let document = STANDARD.encode(pdf(&[&"some words ".repeat(1_800_000)]));
    let source =
        serde_json::json!({"type": "base64", "media_type": "application/pdf", "data": document});
    let content = serde_json::json!([{"type": "document", "source": source}]);
    let messages = serde_json::json!([{"role": "user", "content": content}]);
    let body = serde_json::json!({"model": "test-model", "max_tokens": 9, "messages": messages})
        .to_string();
    let head = format!(
        "POST /native/v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n",
        made["secret"].as_str().unwrap(),
        body.len()
    );
    let (before, address) = (peak(served.id()), served.base.trim_start_matches("http://"));
    for _ in 0..30 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .await
            .unwrap();
        // Time enough for the reading to begin; nothing is answered before it ends.
        let _ = tokio::time::timeout(Duration::from_millis(50), stream.read_u8()).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let grown = peak(served.id()) - before;
    assert!(grown < 500, "{grown} MiB for documents of 20 MB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_answers_of_66_mb_at_once_fit_into_the_bound() {
    let large = Reply::whole(
        200,
        "application/json",
        [b"{\"id\":\"".as_slice(), &vec![b'x'; 66_000_000], b"\"}"].concat(),
    );
    let upstream = ScriptedUpstream::start(Script::by(move |_, _| large.clone())).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
    fs::write(
        folder.path().join("routes.toml"),
        routes(&upstream.base_url()),
    )
    .unwrap();
    let key = |number: u32| {
        let label = format!("k{number}");
        let create = ["keys", "create", "--label", &label, "--balance", "50"];
        let mut create = [&create[..], &["--reference", &label]].concat();
        if number == 0 {
            create.push("--new-ledger");
        }
        let made = json(folder.path(), &create);
        made["secret"].as_str().unwrap().to_owned()
    };
    let keys: Vec<String> = (0..5).map(key).collect();
    let served = Served::start_with(folder.path(), &[], &[UPSTREAM_KEY]);
    let before = peak(served.id());
    let client = client();
    let asking = (0..20).map(|number| {
        let request = client
            .post(format!("{}/v1/chat/completions", served.base))
            .bearer_auth(&keys[number % 5]);
        let sent = request.json(&chat("test-model", false)).send();
        // Waiting for memory is as good as being refused here: only the memory used matters.
        async {
            tokio::time::timeout(Duration::from_secs(8), sent)
                .await
                .map(|answer| answer.unwrap().status().as_u16())
        }
    });
    let statuses = join_all(asking).await;
    assert!(upstream.requests().len() >= 5, "{statuses:?}");
    let grown = peak(served.id()) - before;
    assert!(grown < 450, "{grown} MiB for twenty answers: {statuses:?}");
}

#[tokio::test]
async fn frames_behind_the_final_usage_are_not_read_on() {
    for family in Family::ALL {
        let frame = |at: usize| {
            format!(
                ": {at} {}\n\ndata: {{\"type\":\"ping\",\"x\":\"{}\"}}\n\n",
                "x".repeat(100),
                "y".repeat(60_000)
            )
        };
        let mut frames = Speech::new(family, "PONG").stream().texts();
        // The terminal marker never comes; a thousand other frames do.
        if frames
            .last()
            .is_some_and(|last| last.contains("[DONE]") || last.contains("message_stop"))
        {
            frames.pop();
        }
        let end = frames.len();
        frames.extend((0..1_000).map(frame));
        let upstream = ScriptedUpstream::start(Reply::events(frames)).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", true))
            .await;
        assert!(answer.text.contains("PONG"), "{}", answer.text.len());
        assert!(
            answer.text.len() < 3 << 20,
            "{} bytes were passed on",
            answer.text.len()
        );
        gateway.settled().await;
        let charges = gateway.charges(&key).await;
        assert_eq!(
            (
                charges.len(),
                charges[0].bill.as_ref().unwrap().end_reason.to_string()
            ),
            (1, "stop".to_owned()),
            "{family}"
        );
        let sent = upstream.requests()[0]
            .sent
            .load(std::sync::atomic::Ordering::SeqCst);
        assert!(
            sent < end + 500,
            "{family}: {sent} of {} frames were taken",
            end + 1_000
        );
    }
}

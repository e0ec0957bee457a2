//! What bad bodies one after another do not show: a large one that is served, all of them at once, and floods of small requests.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_ledger::TokenSecret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::town::{ALLOWED, Listener, Shown, Town};
use super::{BadBody, LONGEST, WHOLE, call, exchange};
use crate::support::process::{ask, client, token};
use crate::support::sized;

/// A request of 20 MiB that is served: a picture of one point, and much behind it.
fn picture() -> Vec<u8> {
    let png = [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(),
        &[0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0, 0, 0, 0],
    ];
    let picture = STANDARD.encode(png.concat()) + &"A".repeat(20 << 20);
    let url = format!("data:image/png;base64,{picture}");
    let content = serde_json::json!([{ "type": "image_url", "image_url": { "url": url } }]);
    let messages = serde_json::json!([{ "role": "user", "content": content }]);
    let body = serde_json::json!({ "model": "test-model", "max_tokens": 1, "messages": messages });
    body.to_string().into_bytes()
}

fn head(path: &str, kind: &str, credentials: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n{credentials}")
}

pub(super) async fn a_large_body_that_is_served_takes_less_than_three_times_itself(
    town: &Town,
) -> String {
    let (program, at) = town.at(Listener::Customers).unwrap();
    let body = picture();
    // The other customers have used up their budget of CPU time.
    let credentials = format!("authorization: Bearer {}\r\n", town.good);
    let head = head("/v1/chat/completions", "application/json", &credentials);
    let served = call(program, at, &head, (BadBody::Zeros, &body)).await;
    assert_eq!(served.status, 200, "{served:?}");
    assert!(served.memory < 3 * body.len() as u64, "{served:?}");
    format!("served, {} MiB: {served:?}", body.len() >> 20)
}

/// Everything bad, many times at once and with every credential, while a customer asks.
pub(super) async fn all_at_once_leave_a_customer_served(town: &Town) -> String {
    let (program, at) = town.at(Listener::Customers).unwrap();
    let mut bad: Vec<(String, BadBody, Arc<Vec<u8>>)> = Vec::new();
    for body in BadBody::ALL {
        let bytes = Arc::new(body.bytes(WHOLE));
        for shown in [Shown::Nothing, Shown::NoMoney, Shown::Money] {
            let credentials = town.credentials(Listener::Customers, shown);
            for path in [
                "/v1/chat/completions",
                "/native/v1/messages",
                "/v1/vouchers",
            ] {
                let head = head(path, body.content_type(), &credentials);
                bad.push((head, body, Arc::clone(&bytes)));
            }
        }
    }
    let credentials = town.credentials(Listener::Customers, Shown::Money);
    let large = head("/v1/chat/completions", "application/json", &credentials);
    bad.push((large, BadBody::Zeros, Arc::new(picture())));
    let times = usize::try_from(sized(1, 8)).unwrap();
    program.begin();
    let sending: Vec<_> = std::iter::repeat_n(bad, times)
        .flatten()
        .map(|(head, body, bytes)| {
            tokio::spawn(async move { exchange(at, &head, (body, &bytes)).await })
        })
        .collect();
    let (many, begun) = (sending.len(), Instant::now());
    let (mut asked, mut most) = (0, 0);
    while asked < 10 || sending.iter().any(|one| !one.is_finished()) {
        let answer = ask(&client(), &town.gateway.base, "test-model", &town.good).await;
        assert!(answer.is_ok(), "{asked}: {answer:?}");
        asked += 1;
        most = most.max(program.status("VmHWM:"));
        assert!(most < ALLOWED && begun.elapsed() < 2 * LONGEST, "{most}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let most = most >> 20;
    format!("{many} at once: {asked} requests of a customer served, at most {most} MiB resident")
}

/// Four thousand requests for the API's document on one connection, which nobody reads.
pub(super) async fn constants_leave_the_health_check_alone(town: &Town) -> String {
    let (program, at) = town.at(Listener::Admin).unwrap();
    let before = program.cpu();
    let requests = "GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(4_000);
    let mut flood = TcpStream::connect(at).await.unwrap();
    let _ =
        tokio::time::timeout(Duration::from_secs(1), flood.write_all(requests.as_bytes())).await;
    let reading = tokio::spawn(async move {
        let mut taken = vec![0; 1 << 20];
        while flood.read(&mut taken).await.is_ok_and(|read| read > 0) {}
    });
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let begun = Instant::now();
        let answer = client()
            .get(format!("{}/healthz", town.gateway.admin))
            .send()
            .await;
        assert_eq!(answer.unwrap().status().as_u16(), 200);
        slowest = slowest.max(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    reading.abort();
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let cpu = program.cpu() - before;
    format!("health beside 4,000 documents: {slowest:?}; CPU {cpu:?}")
}

/// Wrong tokens of the right form, all of them answered, and then a right one from the same address.
pub(super) async fn wrong_tokens_lock_no_right_one_out(town: &Town, folder: &Path) -> String {
    let (program, at) = town.at(Listener::Admin).unwrap();
    let (before, begun) = (program.cpu(), Instant::now());
    let many = usize::try_from(sized(3_000, 19_000)).unwrap();
    let mut flood = String::new();
    for number in 0..many {
        let mut random = [7; 32];
        random[..8].copy_from_slice(&number.to_be_bytes());
        let wrong = TokenSecret::generate(random);
        let connection = ["keep-alive", "close"][usize::from(number + 1 == many)];
        flood += &format!(
            "GET /api/v1/customers HTTP/1.1\r\nhost: localhost\r\nconnection: {connection}\r\nauthorization: Bearer {}\r\n\r\n",
            wrong.reveal()
        );
    }
    let mut neighbour = TcpStream::connect(at).await.unwrap();
    let (mut from, mut to) = neighbour.split();
    let mut answers = Vec::new();
    let (sent, read) = tokio::join!(
        to.write_all(flood.as_bytes()),
        from.read_to_end(&mut answers)
    );
    sent.and(read.map(|_| ())).unwrap();
    let answers = String::from_utf8(answers).unwrap();
    let count = |status: &str| answers.matches(&format!("HTTP/1.1 {status} ")).count();
    let (unknown, refused) = (count("401"), count("429"));
    assert_eq!(unknown + refused, many, "all of them are answered");
    // Ten at once, and then one in five seconds.
    let looked_up = 11 + usize::try_from(begun.elapsed().as_secs()).unwrap() / 5;
    assert!((10..=looked_up).contains(&unknown), "{unknown}");
    let cpu = program.cpu() - before;

    let right = token(folder, "read", "late");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let url = format!("{}/api/v1/customers", town.gateway.admin);
    let client = client();
    let status = async |token: &str| {
        let answer = client.get(&url).bearer_auth(token).send().await;
        answer.unwrap().status().as_u16()
    };
    let wrong = TokenSecret::generate([9; 32]);
    // One of them may be looked up again by now.
    let still = [status(wrong.reveal()).await, status(wrong.reveal()).await];
    assert_eq!(still[1], 429, "the address is locked: {still:?}");
    assert_eq!(status(&right).await, 200, "at its first use");
    format!("{many} wrong tokens, {unknown} of them looked up: CPU {cpu:?}")
}

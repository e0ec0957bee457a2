//! Customers who leave: the provider bills every prompt that it reads, so the key pays for it, and for what was produced.
//!
//! `support/billing.rs`, which shares no code with the gateway, makes the bills.

use std::time::Duration;

use farebox_protocol::Family;
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::support::billing::{Bills, Manner, prompt};
use crate::support::upstream::{Gate, Reply, Script, ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, TestKey, ask, path, routes};

/// A prompt of some 9,000 tokens, for any family.
fn long(family: Family) -> Value {
    let text =
        "Please compare the two listings below, line by line, and say what changed between them.\n"
            .repeat(500);
    let mut body = ask(family, "test-model", true);
    body[if family == Family::Responses {
        "input"
    } else {
        "messages"
    }] = json!([{"role": "user", "content": text}]);
    body
}

/// Sends a request, and leaves once the upstream has it.
async fn leave_at_once(
    gateway: &Gateway,
    upstream: &ScriptedUpstream,
    key: &TestKey,
    body: &Value,
    family: Family,
) {
    let before = upstream.requests().len();
    let asking = gateway.post(path(family), key, body);
    tokio::select! {
        answer = asking => panic!("answered: {}", answer.text),
        _ = upstream.request(before) => {}
    }
}

/// Within a tenth of what was billed, and not above it by more than a sample of 4 KiB may err: 2 % are taken off, and blocks of a
/// prompt that repeats itself differ little.
fn fair(charge: i64, billed: i64) -> bool {
    charge * 10 >= billed * 9 && charge * 100 <= billed * 103
}

#[tokio::test]
async fn leaving_before_the_first_frame_pays_for_the_prompt() {
    for family in Family::ALL {
        let gate = Gate::new();
        let upstream = {
            let gate = gate.clone();
            let script = Script::by(move |seen, number| {
                Bills::default()
                    .reply(seen, number, "one two", Manner::default())
                    .gated(&gate)
            });
            ScriptedUpstream::start(script).await
        };
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5").await;
        let body = long(family);
        leave_at_once(&gateway, &upstream, &key, &body, family).await;
        // The place in the key's concurrency and the hold stay taken until the first frame.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(
            gateway.account(&key).await.customer.account.held.picos() > 0,
            "{family}"
        );
        assert!(gateway.charges(&key).await.is_empty(), "{family}");
        gate.open();
        gateway.settled().await;
        let charge = gateway.charges(&key).await.remove(0);
        let bill = charge.bill.unwrap();
        assert_eq!(
            (bill.end_reason.as_str(), bill.status),
            ("client_gone", 499),
            "{family}"
        );
        // A native stream counts one token of output in its first frame.
        let billed =
            i64::try_from(prompt(&upstream.requests()[0].json())).unwrap() * 3_000_000 + 15_000_000;
        assert!(
            fair(-charge.amount.picos(), billed),
            "{family}: charged {}, billed {billed}",
            charge.amount
        );
    }
}

#[tokio::test]
async fn a_stream_that_never_has_a_first_frame_is_free_and_not_tried_elsewhere() {
    let gate = Gate::new();
    let upstream =
        ScriptedUpstream::start(Reply::error(529, "overloaded_error", None, "busy").gated(&gate))
            .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    leave_at_once(&gateway, &upstream, &key, &long(Family::Chat), Family::Chat).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    gate.open();
    gateway.settled().await;
    let charge = gateway.charges(&key).await.remove(0);
    let bill = charge.bill.unwrap();
    assert_eq!(
        (charge.amount.picos(), bill.end_reason.as_str(), bill.status),
        (0, "client_gone", 499)
    );
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_key_cannot_ask_and_leave_beyond_its_concurrency() {
    let gate = Gate::new();
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Chat, "one two").stream().gated(&gate)).await;
    let gateway = Gateway::before(&upstream).await;
    let settings = farebox_ledger::KeySettings {
        concurrency: Some(2),
        ..farebox_ledger::KeySettings::default()
    };
    let key = gateway.key_with("5", settings).await;
    let body = ask(Family::Chat, "test-model", true);
    for _ in 0..2 {
        leave_at_once(&gateway, &upstream, &key, &body, Family::Chat).await;
    }
    let third = gateway.post(path(Family::Chat), &key, &body).await;
    assert_eq!(
        (third.status, third.json()["error"]["code"].clone()),
        (429, json!("rate_limit_exceeded")),
        "{}",
        third.text
    );
    gate.open();
    gateway.settled().await;
    assert!(
        gateway
            .charges(&key)
            .await
            .iter()
            .all(|charge| charge.amount.picos() < 0)
    );
}

#[tokio::test]
async fn leaving_in_the_middle_pays_for_prompt_and_words() {
    let text =
        "Several plain words of an answer that goes on for a while, and then for a while more. "
            .repeat(20);
    let gate = Gate::new();
    let bills = Bills::default();
    let upstream = {
        let (bills, text, gate) = (bills.clone(), text.clone(), gate.clone());
        ScriptedUpstream::start(Script::by(move |seen, number| {
            bills
                .reply(seen, number, &text, Manner::default())
                .gate_after(200, &gate)
        }))
        .await
    };
    for family in Family::ALL {
        // A cached prompt costs the same here, so nothing is uncertain and nothing is read on for.
        let plain = CATALOG.replace(", cache_read = \"0.30\", cache_write = \"3.75\"", "");
        let gateway = Gateway::start(&plain, &routes(&upstream.base_url())).await;
        let key = gateway.key("5").await;
        let before = bills.all().len();
        let url = format!("{}{}", gateway.base, path(family));
        let sent = gateway
            .client
            .post(url)
            .bearer_auth(&key.secret)
            .json(&long(family))
            .send()
            .await
            .unwrap();
        let mut shown = String::new();
        let mut answer = sent.bytes_stream();
        while shown.matches("while more").count() < 5 && shown.matches("\"more").count() < 5 {
            let chunk = answer.next().await.unwrap().unwrap();
            shown.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        drop(answer);
        gateway.settled().await;
        let charge = gateway.charges(&key).await.remove(0);
        let usage = charge.bill.unwrap().usage;
        let billed = bills.all()[before];
        assert!(
            usage.output > 60 && usage.output <= billed.output,
            "{family}: {usage:?}"
        );
        let prompt = i64::try_from(billed.input * 3_000_000).unwrap();
        assert!(
            -charge.amount.picos() * 10 >= prompt * 9 && -charge.amount.picos() <= billed.cost(),
            "{family}"
        );
    }
}

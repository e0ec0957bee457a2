//! Out of balance: refused once and clearly, nothing reaches the upstream, and a top-up takes effect at once.

use std::cell::Cell;
use std::time::Duration;

use farebox_protocol::Family;
use serde_json::json;

use crate::support::upstream::{Gate, Script, ScriptedUpstream, Speech};
use crate::support::{Gateway, ask, chat, path, speech_for, talking};

#[tokio::test]
async fn a_limit_that_is_too_dear_is_lowered_and_told_in_every_family() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    for (family, field) in [
        (Family::Chat, "max_tokens"),
        (Family::Chat, "max_completion_tokens"),
        (Family::Responses, "max_output_tokens"),
        (Family::Messages, "max_tokens"),
    ] {
        let key = gateway.key("0.10").await;
        let mut body = ask(family, "test-model", false);
        body.as_object_mut().unwrap().remove("max_tokens");
        body[field] = json!(50_000);
        let served = gateway.post(path(family), &key, &body).await;
        assert_eq!(served.status, 200, "{}", served.text);
        let told: u64 = served.header("x-farebox-limit").unwrap().parse().unwrap();
        let sent = upstream.requests().pop().unwrap().json();
        assert_eq!(sent[field], told, "{sent}");
        assert!((4_000..=4_096).contains(&told), "the floor: {told}");
        // No limit helps a key that cannot even pay for the prompt.
        let poor = gateway.key("0.000001").await;
        let refused = gateway.post(path(family), &poor, &body).await;
        assert!(
            refused.status == 429 && refused.json()["error"]["details"]["remedies"].is_null(),
            "{}",
            refused.text
        );
    }
}

#[tokio::test]
async fn a_thinking_budget_is_lowered_with_the_limit_and_told() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0.10").await;
    let mut body = ask(Family::Messages, "test-model", false);
    body["max_tokens"] = json!(50_000);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 32_000});
    let served = gateway.post(path(Family::Messages), &key, &body).await;
    assert_eq!(served.status, 200, "{}", served.text);
    let told = served.header("x-farebox-limit").unwrap().to_owned();
    let sent = upstream.requests().pop().unwrap().json();
    let (limit, budget) = (&sent["max_tokens"], &sent["thinking"]["budget_tokens"]);
    assert_eq!(told, format!("{limit}; thinking={budget}"));
    assert_eq!(
        budget.as_u64(),
        limit.as_u64().map(|limit| limit * 3 / 4),
        "{sent}"
    );
}

#[tokio::test]
async fn programs_that_would_pay_again_get_an_error_where_money_ends_a_stream() {
    let length = |family| match family {
        Family::Chat => "length",
        Family::Responses => "incomplete",
        Family::Messages => "max_tokens",
    };
    let upstream = ScriptedUpstream::start(Script::by(move |seen, _| {
        let family = Family::ALL
            .into_iter()
            .find(|family| seen.path.ends_with(family.protocol().path));
        let family = family.unwrap();
        Speech::new(family, "words").stop(length(family)).stream()
    }))
    .await;
    let gateway = Gateway::before(&upstream).await;
    for family in Family::ALL {
        let mut body = ask(family, "test-model", true);
        for field in ["max_tokens", "max_completion_tokens", "max_output_tokens"] {
            body.as_object_mut().unwrap().remove(field);
        }
        if family == Family::Messages {
            body["max_tokens"] = json!(64_000);
        }
        for (program, paid_again) in [
            ("codex_exec/0.169.0", true),
            ("claude-cli/2.1.330 (external, sdk-cli)", true),
            ("pi-coding-agent", true),
            ("ai-sdk/openai-compatible/3.0.37 runtime/bun/1.3.13", true),
            ("opencode/1.18.33 ai-sdk/provider-utils/4.0.23", false),
            ("OpenAI/Python 3.54.0", false),
        ] {
            let key = gateway.key("0.02").await;
            let (text, headers) = (body.to_string(), [("user-agent", program)]);
            let answer = gateway.send(path(family), &key, text, &headers).await;
            let text = &answer.text;
            assert!(
                answer.status == 200 && answer.header("x-farebox-limit").is_some(),
                "{text}"
            );
            assert!(text.contains("words"), "what is paid is shown: {text}");
            let error = match family {
                Family::Chat | Family::Responses => "insufficient_quota",
                Family::Messages => "billing_error",
            };
            assert_eq!(text.contains(error), paid_again, "{program}: {text}");
            let says = "this answer was limited to";
            assert!(text.contains(says), "{program}: {text}");
            gateway.settled().await;
            assert_eq!(gateway.charges(&key).await.len(), 1);
        }
        // An answer that ends at a limit that the customer chose ends as ever.
        let key = gateway.key("5").await;
        let (text, headers) = (body.to_string(), [("user-agent", "codex_exec/0.169.0")]);
        let answer = gateway.send(path(family), &key, text, &headers).await;
        assert!(!answer.text.contains("limited to"), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_wait_for_money_is_on_the_bill() {
    let gate = Gate::new();
    let held_back = gate.clone();
    let upstream = ScriptedUpstream::start(Script::by(move |seen, _| {
        speech_for(seen, "PONG").gated(&held_back)
    }))
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0.08").await;
    let mut body = chat("test-model", false);
    body["max_tokens"] = json!(5_000);
    let first = gateway.post("/v1/chat/completions", &key, &body);
    let second = async {
        upstream.request(0).await;
        gateway.post("/v1/chat/completions", &key, &body).await
    };
    let release = async {
        upstream.request(0).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        gate.open();
    };
    let (first, second, ()) = tokio::join!(first, second, release);
    assert_eq!((first.status, second.status), (200, 200), "{}", second.text);
    gateway.settled().await;
    let charges = gateway.charges(&key).await;
    let waited = charges.iter().filter_map(|charge| {
        let facts = &charge.bill.as_ref()?.facts;
        facts.get("waited_ms")?.parse::<u64>().ok()
    });
    let waited: Vec<u64> = waited.collect();
    assert!(waited.len() == 1 && waited[0] > 50, "{waited:?}");
}

#[tokio::test]
async fn parallel_requests_on_a_key_that_can_pay_for_three_reach_the_upstream_three_times() {
    let gate = Gate::new();
    let held_back = gate.clone();
    let upstream = ScriptedUpstream::start(Script::by(move |seen, _| {
        speech_for(seen, "PONG").gated(&held_back)
    }))
    .await;
    let gateway = Gateway::before(&upstream).await;
    // Each holds its declared 1,000 output tokens at $15 and a few input tokens.
    let key = gateway.key("0.0465").await;
    let mut body = chat("test-model", false);
    body["max_tokens"] = json!(1_000);
    let refused = Cell::new(0);
    let requests = (0..10).map(async |_| {
        let answer = gateway.post("/v1/chat/completions", &key, &body).await;
        refused.set(refused.get() + usize::from(answer.status == 429));
        answer
    });
    let answers = async { futures_util::future::join_all(requests).await };
    let release = async {
        while upstream.requests().len() + refused.get() < 10 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let account = gateway.account(&key).await.customer.account;
        assert!(account.available().picos() >= 0);
        gate.open();
    };
    let both = async { tokio::join!(answers, release) };
    let (answers, ()) = gateway.waited_out(both).await;
    let served = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((served, upstream.requests().len()), (3, 3));
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].clone()),
            (429, json!("balance_in_use"))
        );
        assert_eq!(
            refused.header("retry-after"),
            Some("1"),
            "money that is only held comes back"
        );
    }
    gateway.settled().await;
    assert_eq!(gateway.account(&key).await.customer.account.held.picos(), 0);
}

#[tokio::test]
async fn a_stream_without_a_limit_is_given_one_that_the_balance_can_pay() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0.02").await;
    assert_eq!(
        gateway
            .post("/v1/chat/completions", &key, &chat("test-model", true))
            .await
            .status,
        200
    );
    let limit = upstream.request(0).await.json()["max_completion_tokens"]
        .as_u64()
        .unwrap();
    assert!((1_200..1_340).contains(&limit), "{limit}");
}

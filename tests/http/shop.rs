//! The seller's words, wherever money is out.

use farebox_ledger::{Amount, Cap, CapInterval, Change};
use farebox_protocol::{ChatLimit, Family, ReportedUsage};
use serde_json::{Value, json};

use crate::support::upstream::{Reply, ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, ask, path, routes, talking};

const SHOP: &str = r#"
[shop]
name    = "Key Corner"
contact = "help@shop.example"
pay_url = "https://shop.example/top-up?from=error"
note    = "Top-ups are booked within a minute."
"#;

async fn selling(more: &str) -> (ScriptedUpstream, Gateway) {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let catalog = format!("{SHOP}{more}{CATALOG}");
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    (upstream, gateway)
}

#[tokio::test]
async fn who_is_out_of_money_reads_where_to_pay() {
    let (_upstream, gateway) = selling("").await;
    let key = gateway.key("0").await;
    for family in Family::ALL {
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", false))
            .await;
        assert_eq!(answer.status, 429, "{family}: {}", answer.text);
        let error = &answer.json()["error"];
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("out of balance"), "{message}");
        for words in [
            "You exceeded your current quota",
            "Top up at https://shop.example/top-up?from=error, or ask Key Corner: help@shop.example. Top-ups are booked",
            "exceeded quota. Top up",
        ] {
            assert!(message.contains(words), "{family}: {message}");
        }
        let told = if family == Family::Messages {
            json!(null)
        } else {
            json!("https://shop.example/top-up?from=error")
        };
        assert_eq!(error["details"]["pay_url"], told, "{family}");
    }
    let own = gateway.get("/v1/key", &key).await.json();
    let shop = json!({"name": "Key Corner", "contact": "help@shop.example",
        "pay_url": "https://shop.example/top-up?from=error", "note": "Top-ups are booked within a minute."});
    assert_eq!(own["data"]["shop"], shop);
}

/// An answer that is cut says why and where to pay, in text that every client shows, before it ends as at a length limit.
#[tokio::test]
async fn a_stream_that_the_money_ends_says_so_in_its_last_words() {
    let said = "because the customer's balance had no more for it. \
                 You exceeded your current quota. Top up the same key, then ask again. \
                 Top up at https://shop.example/top-up?from=error, or ask Key Corner: help@shop.example. \
                 Top-ups are booked within a minute)";
    for (family, text, end, stop) in [
        (
            Family::Chat,
            "/choices/0/delta/content",
            "/choices/0/finish_reason",
            "length",
        ),
        (
            Family::Responses,
            "/delta",
            "/response/incomplete_details",
            "incomplete",
        ),
        (
            Family::Messages,
            "/delta/text",
            "/delta/stop_reason",
            "max_tokens",
        ),
    ] {
        let speech = |words| Speech::new(family, &"word ".repeat(words));
        // The limit was lowered to what the balance buys, and the provider ends there.
        let limited = speech(30)
            .stop(stop)
            .usage(ReportedUsage {
                input: 10,
                output: 30,
                ..ReportedUsage::default()
            })
            .stream();
        for (script, reason) in [(limited, "length")] {
            let (upstream, gateway) = selling("").await;
            upstream.follow(script);
            let key = gateway.key("0.02").await;
            let mut body = ask(family, "test-model", true);
            let limit = family.protocol().limit_field(ChatLimit::MaxTokens, None);
            body[limit] = json!(60_000);
            let answer = gateway.post(path(family), &key, &body).await;
            let limit = answer.header("x-farebox-limit").unwrap();
            let words =
                format!("(out of balance: this answer was limited to {limit} tokens, {said}");
            let events: Vec<Value> = (answer.text.lines())
                .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
                .collect();
            let said = (events.iter())
                .rposition(|event| event.pointer(text) == Some(&json!(format!("\n\n{words}"))));
            let ended = (events.iter())
                .rposition(|event| event.pointer(end).is_some_and(|end| !end.is_null()));
            assert!(
                said.is_some() && said < ended,
                "{family}: {:?}",
                events.last_chunk::<9>()
            );
            gateway.settled().await;
            let charge = &gateway.charges(&key).await[0];
            let bill = charge.bill.as_ref().unwrap();
            assert_eq!(bill.end_reason, reason.into(), "{family}");
            // The words are not counted: only `word ` was, at one token each.
            let delivered = answer.text.matches("word ").count() as u64;
            assert!(
                bill.usage.output <= delivered,
                "{family}: {} of {delivered}",
                bill.usage.output
            );
            gateway.stop().await;
        }
    }
}

/// Some services put the last words of an answer, its end and its usage into one frame. What the model said there was paid for.
#[tokio::test]
async fn the_models_own_last_words_are_never_replaced_by_ours() {
    let (upstream, gateway) = selling("").await;
    let chunk = |delta: &Value, more: &Value| {
        let mut chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        if let Some(usage) = more.get("usage") {
            chunk["choices"][0]["finish_reason"] = json!("length");
            chunk["usage"] = usage.clone();
        }
        format!("data: {chunk}\n\n")
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12});
    upstream.follow(Reply::events([
        chunk(
            &json!({"role": "assistant", "content": "almost "}),
            &json!({}),
        ),
        chunk(&json!({"content": "done"}), &json!({"usage": usage})),
        "data: [DONE]\n\n".to_owned(),
    ]));
    let key = gateway.key("0.02").await;
    let mut body = ask(Family::Chat, "test-model", true);
    body["max_tokens"] = json!(60_000);
    let answer = gateway.post(path(Family::Chat), &key, &body).await;
    assert!(answer.text.contains("almost "), "{}", answer.text);
    assert!(answer.text.contains("done"), "{}", answer.text);
    assert!(answer.text.ends_with("data: [DONE]\n\n"), "{}", answer.text);
}

/// 429 is the interface's; another status is the seller's choice, for everybody or for programs that were measured to repeat less at it.
#[tokio::test]
async fn a_seller_may_answer_402_to_all_or_by_program() {
    let cap = Cap {
        interval: CapInterval::Day,
        model: None,
        limit: Amount::from_usd_str("0.000001").unwrap(),
    };
    for (chosen, ai_sdk, others) in [
        ("429", 429, 429),
        ("402", 402, 402),
        ("\"by_program\"", 402, 429),
    ] {
        let (_upstream, gateway) = selling(&format!("out_of_balance_status = {chosen}\n")).await;
        let (empty, capped) = (gateway.key("0").await, gateway.key("5").await);
        gateway.change(&capped, Change::SetCap(cap.clone())).await;
        for (sent, status) in [
            ("opencode/1.18.33 ai-sdk/provider-utils/4.0.23", ai_sdk),
            ("ai/7.0.173 ai-sdk-provider-utils/5.0.81", ai_sdk),
            ("OpenAI/Python 3.54.0", others),
            ("claude-cli/2.1.330 (external, sdk-cli)", others),
        ] {
            for family in Family::ALL {
                for (key, why) in [(&empty, "out of balance"), (&capped, "cap reached")] {
                    let body = ask(family, "test-model", false).to_string();
                    let headers = [("user-agent", sent)];
                    let answer = gateway.send(path(family), key, body, &headers).await;
                    let error = answer.json()["error"].clone();
                    assert_eq!(answer.status, status, "{chosen} {sent} {family}: {error}");
                    let message = error["message"].as_str().unwrap();
                    assert!(message.starts_with(why), "{error}");
                    assert_eq!(answer.header("x-should-retry"), Some("false"));
                    assert_eq!(answer.header("retry-after"), None);
                    if family != Family::Messages {
                        assert_eq!(error["code"], "insufficient_quota");
                    }
                }
            }
        }
    }
}

/// Money that is only held comes back by itself, so nobody is told to pay, and the status stays.
#[tokio::test]
async fn who_waits_for_held_money_is_not_told_to_pay() {
    let silent = Speech::new(Family::Chat, "PONG").whole().silent();
    let upstream = ScriptedUpstream::start(silent).await;
    let catalog = format!("{SHOP}out_of_balance_status = 402\n{CATALOG}");
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    let key = gateway.key("0.01").await;
    // Each needs 0.006 USD and some.
    let mut body = ask(Family::Chat, "test-model", false);
    body["max_tokens"] = json!(400);
    let running = gateway
        .client
        .post(format!("{}{}", gateway.base, path(Family::Chat)));
    let running = tokio::spawn(running.bearer_auth(&key.secret).json(&body).send());
    upstream.request(0).await;
    let asking = gateway.post(path(Family::Chat), &key, &body);
    let answer = gateway.waited_out(asking).await;
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status, &error["code"]),
        (429, &json!("balance_in_use")),
        "{error}"
    );
    let message = error["message"].as_str().unwrap();
    assert!(!message.contains("quota"), "{message}");
    running.abort();
}

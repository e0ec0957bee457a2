//! Ways around being counted: a free path, a predicted answer, log probabilities.

use std::time::{Duration, Instant};

use farebox_ledger::{Amount, Evidence};
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::bodies::PROSE;
use crate::support::billing::words;
use crate::support::upstream::{Reply, ScriptedUpstream};
use crate::support::{Gateway, ask, catalog, path, routes_speaking, talking};

const COUNT: &str = "/native/v1/messages/count_tokens";

#[tokio::test]
async fn counting_tokens_is_limited_and_makes_no_answer() {
    let answer = json!({"input_tokens": 4_242, "content": [{"type": "text", "text": "what the model says"}]});
    let upstream = ScriptedUpstream::start(Reply::json(200, &answer)).await;
    let gateway = Gateway::before(&upstream).await;
    let (key, poor) = (gateway.key("1").await, gateway.key("0").await);
    let mut body = ask(Family::Messages, "test-model", true);
    body["messages"][0]["content"] = json!(PROSE.repeat(600));
    body["max_tokens"] = json!(64_000);
    let began = Instant::now();
    let answers =
        futures_util::future::join_all((0..60).map(|_| gateway.post(COUNT, &key, &body))).await;
    // Twenty at once and ten a second.
    let most = 21 + began.elapsed().as_millis() / 100;
    let (counted, limited): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 200);
    assert!(counted.len() as u128 <= most, "{} of {most}", counted.len());
    let number_alone = |text: &Value| {
        text["input_tokens"].is_u64() && text.as_object().is_some_and(|members| members.len() == 1)
    };
    assert!(
        counted.iter().all(|answer| number_alone(&answer.json())),
        "{counted:?}"
    );
    assert!(
        limited.iter().all(|answer| answer.status == 429),
        "{limited:?}"
    );
    let asked = upstream.requests();
    let estimates = counted
        .iter()
        .filter(|answer| answer.header("x-farebox-estimate").is_some())
        .count();
    assert!(
        !asked.is_empty() && asked.len() == counted.len() - estimates,
        "{} of {}",
        asked.len(),
        counted.len()
    );
    assert!(
        asked
            .iter()
            .all(|seen| seen.path.ends_with("/messages/count_tokens")),
        "nobody is asked for an answer"
    );
    let account = gateway.account(&key).await.customer.account;
    assert_eq!(
        (
            account.spent,
            account.held,
            gateway.charges(&key).await.len()
        ),
        (Amount::ZERO, Amount::ZERO, 0)
    );

    let estimate = gateway.post(COUNT, &poor, &body).await;
    assert_eq!(
        (estimate.status, estimate.header("x-farebox-estimate")),
        (200, Some("1")),
        "{}",
        estimate.text
    );
    for (name, value) in [
        ("mcp_servers", json!([{"type": "url", "url": "https://x"}])),
        ("container", json!("c")),
    ] {
        body[name] = value;
        assert_eq!(
            gateway.post(COUNT, &poor, &body).await.status,
            400,
            "{name} has no price here either"
        );
        body.as_object_mut().unwrap().remove(name);
    }
    assert_eq!(
        upstream.requests().len(),
        asked.len(),
        "a key without money asks nobody"
    );
}

#[tokio::test]
async fn a_prediction_reaches_the_upstream_as_it_was_sent() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    for prediction in [
        r#"{ "type": "content", "content": "let \u0061 = 1.50;\n" }"#,
        r#"{"content":[{"type":"text","text":"let a"},{"type":"text","text":" = 1;"}],"type":"content"}"#,
    ] {
        let body = format!(
            r#"{{"model":"test-model","max_tokens":100,"prediction":{prediction},"messages":[{{"role":"user","content":"x"}}]}}"#
        );
        let answer = gateway
            .send(
                path(Family::Chat),
                &key,
                body,
                &[("content-type", "application/json")],
            )
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let sent = String::from_utf8(upstream.requests().pop().unwrap().body).unwrap();
        assert!(sent.contains(prediction), "{sent}");
    }
}

/// A chat answer of these words, each with the twenty most likely ones beside it.
fn with_probabilities(text: &str, stream: bool) -> Reply {
    let token = |word: &str| json!({"token": word, "logprob": -0.25, "bytes": word.as_bytes()});
    let probable = |word: &str| {
        let mut one = token(word);
        one["top_logprobs"] = (0..20).map(|_| token(word)).collect();
        one
    };
    let all: Vec<&str> = text.split_inclusive(' ').collect();
    let head = |object: &str, choice: Value| json!({"id": "c", "object": object, "created": 1, "model": "m", "choices": [choice]});
    if !stream {
        let content: Vec<Value> = all.iter().map(|word| probable(word)).collect();
        let message = json!({"role": "assistant", "content": text});
        let choice = json!({"index": 0, "message": message, "logprobs": {"content": content}, "finish_reason": "stop"});
        return Reply::json(200, &head("chat.completion", choice));
    }
    let said = all.iter().map(|word| {
        let probabilities = json!({"content": [probable(word)]});
        json!({"index": 0, "delta": {"content": word}, "logprobs": probabilities, "finish_reason": null})
    });
    let end = json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": "stop"});
    let frames = said
        .chain([end])
        .map(|choice| format!("data: {}\n\n", head("chat.completion.chunk", choice)));
    Reply::events(frames.chain(["data: [DONE]\n\n".to_owned()]))
}

#[tokio::test]
async fn probabilities_beside_the_words_are_no_output() {
    let text = PROSE.repeat(30);
    for stream in [false, true] {
        let upstream = ScriptedUpstream::start(
            with_probabilities(&text, stream).paced(Duration::from_micros(1)),
        )
        .await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5").await;
        let mut body = ask(Family::Chat, "test-model", stream);
        (body["max_tokens"], body["logprobs"], body["top_logprobs"]) =
            (json!(4_000), json!(true), json!(20));
        let answer = gateway.post(path(Family::Chat), &key, &body).await;
        assert!(
            answer.status == 200 && answer.text.contains("top_logprobs"),
            "{}",
            answer.text
        );
        gateway.settled().await;
        let bill = gateway.charges(&key).await.remove(0).bill.unwrap();
        let truth = words(&text);
        assert_eq!(bill.evidence, Some(Evidence::Local));
        assert!(
            bill.usage.output * 100 >= truth * 90 && bill.usage.output <= truth,
            "{} of {truth}",
            bill.usage.output
        );
    }
}

/// A model can be asked to nest the input of a call as deep as one likes. An answer that cannot be read is free, and asked for again.
#[tokio::test]
async fn an_answer_that_is_nested_as_deep_as_the_customer_wants_is_charged_like_any_other() {
    let deep = [r#"{"a":["#.repeat(2_000), "]}".repeat(2_000)].concat();
    let body = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"toolu_1","name":"t","input":{deep}}}],
        "stop_reason":"tool_use","usage":{{"input_tokens":4000,"output_tokens":9}}}}"#
    );
    let upstream = ScriptedUpstream::start(Reply::whole(200, "application/json", body)).await;
    let gateway = Gateway::start(
        &catalog(Family::Messages),
        &routes_speaking(&upstream.base_url(), Family::Messages),
    )
    .await;
    for family in Family::ALL {
        let key = gateway.key("5").await;
        let before = upstream.requests().len();
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", false))
            .await;
        let shown = if family == Family::Messages {
            deep.clone()
        } else {
            deep.replace('"', r#"\""#)
        };
        assert!(
            answer.status == 200 && answer.text.contains(&shown),
            "{family}: {} {}",
            answer.status,
            answer.text
        );
        let bill = gateway.charges(&key).await.remove(0).bill.unwrap();
        assert_eq!(
            (bill.evidence, bill.usage.input, bill.usage.output),
            (Some(Evidence::Provider), 4_000, 9),
            "{family}"
        );
        assert_eq!(upstream.requests().len(), before + 1, "{family}");
    }
}

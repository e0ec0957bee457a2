//! What operators drop, and marks that go nowhere: left out, and named in the header and on the receipt.

use super::*;
use crate::support::upstream::Reply;

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn r12_what_an_operator_drops_is_left_out_and_named() {
    let upstream = ScriptedUpstream::playing(Vendor::Compatible, in_any()).await;
    let provider =
        "speaks = [\"messages\"]\ndrop = [\"context_management\", \"tools.eager_input_streaming\"]";
    let desk = before(&upstream, Family::Messages, provider, "model = \"m\"").await;
    let mut eager = tool(Family::Messages);
    eager["eager_input_streaming"] = json!(true);
    let members = json!({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}, "tools": [eager, eager]});
    let named = "context_management=dropped, tools.eager_input_streaming=dropped(2)";
    for answer in desk.served(Family::Messages, &members).await {
        assert_eq!(lost(&answer), named);
        assert_eq!(answer.header("x-farebox-removed"), None);
        assert_eq!(desk.lost_on_receipt(&answer).await, named);
    }
    for seen in upstream.requests() {
        let sent = seen.json();
        assert_eq!(sent.get("context_management"), None);
        assert_eq!(
            sent["tools"],
            json!([tool(Family::Messages), tool(Family::Messages)])
        );
    }
    // Nothing of it, and not a byte is another.
    let body = r#"{"max_tokens": 7,  "messages":[{"content" :"\u0041","role":"user"}],"model":"test-model" }"#;
    let answer = desk
        .gateway
        .send(path(Family::Messages), &desk.key, body, &[JSON])
        .await;
    assert_eq!((answer.status, lost(&answer)), (200, ""));
    let sent = upstream.requests().last().expect("a request").body.clone();
    assert_eq!(
        String::from_utf8(sent).expect("UTF-8"),
        body.replace("test-model", "m")
    );
    desk.gateway.stop().await;
}

/// A pin wins over a drop, a drop over a pass; and what no table knows is dropped instead of refused.
#[tokio::test]
async fn r12_drops_stand_between_pins_and_passes() {
    let upstream = ScriptedUpstream::tolerant(in_any()).await;
    let provider = "speaks = [\"chat\", \"responses\"]\npass = [\"top_k\", \"min_p\"]\npin = { service_tier = \"default\" }\n\
        drop = [\"service_tier\", \"top_k\", \"new_field\", \"messages.content.cache_control\", \"stream_options\", \"store\"]";
    let desk = before(&upstream, Family::Chat, provider, "model = \"m\"").await;
    let part = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
    let members = json!({"top_k": 5, "min_p": 0.1, "new_field": [1], "user": "u", "store": true,
        "messages": [{"role": "user", "content": [part, part]}]});
    for answer in desk.served(Family::Chat, &members).await {
        let named = "messages.content.cache_control=dropped(2), new_field=dropped, store=dropped, top_k=dropped";
        assert_eq!(lost(&answer), named);
    }
    for seen in upstream.requests() {
        let sent = seen.json();
        assert_eq!(
            (&sent["service_tier"], &sent["min_p"]),
            (&json!("default"), &json!(0.1))
        );
        assert_eq!(sent["user"], "u");
        for gone in ["top_k", "new_field", "stream_options", "store"] {
            assert_eq!(sent.get(gone), None, "{sent}");
        }
        let plain = json!({"type": "text", "text": "a"});
        assert_eq!(sent["messages"][0]["content"], json!([plain, plain]));
    }
    let answers = desk
        .served(Family::Responses, &json!({"new_field": 1}))
        .await;
    assert_eq!(lost(&answers[0]), "new_field=dropped");
    assert_eq!(
        upstream
            .requests()
            .last()
            .expect("a request")
            .json()
            .get("store"),
        None
    );
    desk.gateway.stop().await;
}

/// A translated request is the gateway's own writing, and loses what the operator drops all the same.
#[tokio::test]
async fn r12_translated_requests_lose_it_too() {
    let upstream = ScriptedUpstream::tolerant(in_any()).await;
    for (caller, target, dropped) in [
        (Family::Chat, Family::Messages, "top_p"),
        (Family::Messages, Family::Chat, "max_tokens"),
        (Family::Chat, Family::Responses, "top_p"),
    ] {
        let provider =
            format!("speaks = [\"{target}\"]\nchat_limit = \"max_tokens\"\ndrop = [\"{dropped}\"]");
        let provider = match target {
            Family::Chat => provider,
            _ => provider.replace("chat_limit = \"max_tokens\"\n", ""),
        };
        let desk = before(&upstream, target, &provider, "model = \"m\"").await;
        for answer in desk.served(caller, &json!({"top_p": 0.5})).await {
            assert_eq!(
                lost(&answer),
                format!("{dropped}=dropped"),
                "{caller} {target}"
            );
        }
        let sent = upstream.requests().last().expect("a request").json();
        assert_eq!(sent.get(dropped), None, "{sent}");
        desk.gateway.stop().await;
    }
}

#[tokio::test]
async fn r12_a_translated_count_loses_it_too() {
    for (dropped, chosen) in [
        ("", json!({"type": "any"})),
        ("drop = [\"tool_choice\"]", Value::Null),
    ] {
        let upstream =
            ScriptedUpstream::tolerant(Reply::json(200, &json!({"input_tokens": 7}))).await;
        let provider = format!("speaks = [\"messages\"]\n{dropped}");
        let desk = before(&upstream, Family::Messages, &provider, "model = \"m\"").await;
        let body = json!({"model": "test-model", "input": "hi", "tool_choice": "required", "tools": [tool(Family::Responses)]});
        let answer = desk
            .gateway
            .post("/v1/responses/input_tokens", &desk.key, &body)
            .await;
        assert_eq!(answer.json()["input_tokens"], 7, "{}", answer.text);
        assert_eq!(upstream.requests()[0].json()["tool_choice"], chosen);
        desk.gateway.stop().await;
    }
}

/// The model has no price for writes of an hour. Where no mark reaches a target, none has to be paid.
#[tokio::test]
async fn a_lifetime_of_marks_that_go_nowhere_is_dropped_and_named() {
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let part = json!({"type": "text", "text": "a", "cache_control": mark});
    let members = json!({"messages": [{"role": "user", "content": [part]}]});
    for (caller, provider, vendor, model) in [
        (Family::Messages, "speaks = [\"chat\"]", Vendor::OpenAi, "m"),
        (
            Family::Messages,
            "speaks = [\"responses\"]",
            Vendor::OpenAi,
            "m",
        ),
        (
            Family::Chat,
            "kind = \"openai\"",
            Vendor::OpenAi,
            "gpt-4.1-mini",
        ),
        (
            Family::Chat,
            "kind = \"mistral\"",
            Vendor::Mistral,
            "mistral-medium-3.5",
        ),
    ] {
        let upstream = ScriptedUpstream::playing(vendor, in_any()).await;
        let best = match provider.contains("responses") {
            true => Family::Responses,
            false => Family::Chat,
        };
        let desk = before(&upstream, best, provider, &format!("model = \"{model}\"")).await;
        for answer in desk.served(caller, &members).await {
            assert_eq!(
                lost(&answer),
                "cache_control=dropped",
                "{caller} {provider}"
            );
        }
        for seen in upstream.requests() {
            assert!(!seen.json().to_string().contains("cache_control"));
        }
        desk.gateway.stop().await;
    }
    // The service's own words for a lifetime are no marks.
    let upstream = ScriptedUpstream::start(in_any()).await;
    let kind = "kind = \"openai\"";
    let desk = before(&upstream, Family::Chat, kind, "model = \"gpt-4.1-mini\"").await;
    for caller in [Family::Chat, Family::Responses] {
        let own = json!({"prompt_cache_options": {"ttl": "12h"}});
        let body = with(caller, &own, false);
        let answer = desk.gateway.post(path(caller), &desk.key, &body).await;
        assert_eq!((answer.status, upstream.requests().len()), (400, 0));
    }
    desk.gateway.stop().await;
    // Where it does reach one, it has no price.
    let upstream = ScriptedUpstream::start(in_any()).await;
    let desk = before(
        &upstream,
        Family::Messages,
        "speaks = [\"messages\"]",
        "model = \"m\"",
    )
    .await;
    let body = with(Family::Messages, &members, false);
    let answer = desk
        .gateway
        .post(path(Family::Messages), &desk.key, &body)
        .await;
    assert_eq!((answer.status, upstream.requests().len()), (400, 0));
    desk.gateway.stop().await;
}

//! Which target is asked, and in which family, when a model's targets speak another one; what the other family needs is added,
//! and what it must not see stays here.

use farebox_protocol::Family;
use serde_json::json;

use super::translation::{answering, before, read, speech};
use crate::support::upstream::{Reply, ScriptedUpstream};
use crate::support::{CATALOG, DIRECTIONS, Gateway, ask, catalog, path, routes};

#[tokio::test]
async fn an_upstreams_refusal_is_said_in_the_callers_words() {
    let too_long = Reply::error(
        400,
        "invalid_request_error",
        Some("context_length_exceeded"),
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130500 tokens.",
    );
    let upstream = ScriptedUpstream::start(too_long).await;
    let gateway = before(&upstream, Family::Chat, "").await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(
            path(Family::Messages),
            &key,
            &ask(Family::Messages, "test-model", true),
        )
        .await;
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status, &error["type"]),
        (400, &json!("invalid_request_error")),
        "{error}"
    );
    assert_eq!(
        error["message"],
        "prompt is too long: 130500 tokens > 128000 maximum"
    );
}

#[tokio::test]
async fn targets_of_the_callers_family_come_first_and_failures_cross_families() {
    let (chat, native) = (
        ScriptedUpstream::start(answering(Family::Chat)).await,
        ScriptedUpstream::start([
            Reply::native_error(529, "overloaded_error", "busy"),
            speech(Family::Messages, false),
        ])
        .await,
    );
    for (prefer, first) in [("family", 1), ("order", 0)] {
        let routes = format!(
            "[provider.chat]\nkey = {{ env = \"KEY\" }}\nbase_url = \"{}\"\nspeaks = [\"chat\"]\n[provider.native]\nkey = {{ env = \"KEY\" }}\nbase_url = \"{}\"\nspeaks = [\"messages\"]\n\
             [[route]]\nslug = \"test-model\"\nprefer = \"{prefer}\"\n\
             targets = [ {{ provider = \"chat\", model = \"c\" }}, {{ provider = \"native\", model = \"m\" }} ]\n\
             [[route]]\nslug = \"test-blind\"\ntargets = [ {{ provider = \"chat\", model = \"c\" }} ]\n",
            chat.base_url(),
            native.base_url()
        );
        let gateway = Gateway::start(CATALOG, &routes).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(
                path(Family::Messages),
                &key,
                &ask(Family::Messages, "test-model", false),
            )
            .await;
        assert_eq!(
            read(Family::Messages, false, &answer),
            "one two three",
            "{prefer}: {}",
            answer.text
        );
        assert_eq!(
            native.requests().len(),
            1,
            "{prefer}: only the preference for the family asks it"
        );
        assert_eq!(gateway.records.all()[0].attempts.len(), first, "{prefer}");
        let paths = gateway.get("/v1/models/test-model", &key).await.json()["paths"].clone();
        assert_eq!(
            paths,
            json!({"chat": "direct", "responses": "translated", "messages": "direct"})
        );
        gateway.stop().await;
    }
}

#[tokio::test]
async fn thinking_that_was_sealed_here_never_reaches_a_vendor() {
    let upstream = ScriptedUpstream::start(answering(Family::Messages)).await;
    let gateway = before(&upstream, Family::Messages, "").await;
    let key = gateway.key("5.00").await;
    let mut body = ask(Family::Messages, "test-model", false);
    body["messages"] = json!([
        {"role": "user", "content": "fbx1. is a mark"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "fbx1.plain"}, {"type": "text", "text": "yes"}]},
        {"role": "user", "content": "go on"}]);
    let answer = gateway.post(path(Family::Messages), &key, &body).await;
    assert_eq!(
        (answer.status, answer.header("x-farebox-lost")),
        (200, Some("thinking=dropped")),
        "{}",
        answer.text
    );
    let sent = upstream.requests()[0].json();
    assert_eq!(
        sent["messages"][1]["content"],
        json!([{"type": "text", "text": "yes"}])
    );
    assert_eq!(
        sent["messages"][0]["content"], "fbx1. is a mark",
        "a text stays"
    );
}

#[tokio::test]
async fn a_request_without_a_limit_gets_one_where_the_family_needs_it() {
    let upstream = ScriptedUpstream::start(answering(Family::Messages)).await;
    let gateway = before(
        &upstream,
        Family::Messages,
        ", abilities = { thinking = \"budget\" }",
    )
    .await;
    let key = gateway.key("500.00").await;
    let ask = |stream: bool| {
        json!({"model": "test-model", "stream": stream, "reasoning_effort": "high",
        "messages": [{"role": "user", "content": "Say PONG"}]})
    };
    for (stream, limit) in [(true, 64_000), (false, 64_000)] {
        let answer = gateway.post(path(Family::Chat), &key, &ask(stream)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let sent = upstream.requests().pop().unwrap().json();
        assert_eq!(sent["max_tokens"], limit, "{sent}");
        let budget = sent["thinking"]["budget_tokens"].as_u64().unwrap();
        assert!(budget >= 1_024 && budget < limit, "{sent}");
    }
    // The budget is lowered with the limit.
    let poor = gateway.key("0.04").await;
    let answer = gateway.post(path(Family::Chat), &poor, &ask(true)).await;
    let limit: u64 = answer
        .header("x-farebox-limit")
        .map_or(0, |told| told.split(';').next().unwrap().parse().unwrap());
    assert!(
        answer.status == 200 && limit >= 1_280,
        "{limit}: {}",
        answer.text
    );
    let sent = upstream.requests().pop().unwrap().json();
    let budget = sent["thinking"]["budget_tokens"].as_u64().unwrap();
    assert_eq!(sent["max_tokens"], limit, "{sent}");
    assert!((1_024..=limit * 3 / 4 + 256).contains(&budget), "{sent}");
}

#[tokio::test]
async fn tokens_are_counted_here_when_no_target_can_count() {
    let upstream = ScriptedUpstream::start(answering(Family::Chat)).await;
    let gateway = before(&upstream, Family::Chat, "").await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(
            "/native/v1/messages/count_tokens",
            &key,
            &json!({"model": "test-model", "messages": [
            {"role": "user", "content": "Say PONG"}]}),
        )
        .await;
    assert!(
        answer.json()["input_tokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0),
        "{}",
        answer.text
    );
    assert_eq!(answer.header("x-farebox-estimate"), Some("1"));
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_responses_target_counts_the_tokens_of_native_clients() {
    let upstream = ScriptedUpstream::start(Reply::json(
        200,
        &json!({"object": "response.input_tokens", "input_tokens": 321}),
    ))
    .await;
    let gateway = before(&upstream, Family::Responses, "").await;
    let key = gateway.key("5.00").await;
    let ask = json!({"model": "test-model", "system": "s", "messages": [{"role": "user", "content": "Say PONG"}]});
    let answer = gateway
        .post("/native/v1/messages/count_tokens", &key, &ask)
        .await;
    assert_eq!(
        (answer.json(), answer.header("x-farebox-estimate")),
        (json!({"input_tokens": 321}), None)
    );
    let seen = &upstream.requests()[0];
    assert!(
        seen.path.ends_with("/responses/input_tokens"),
        "{}",
        seen.path
    );
    let input = json!([{"type": "message", "role": "user", "content": "Say PONG"}]);
    assert_eq!(
        seen.json(),
        json!({"model": "upstream-model-1", "instructions": "s", "input": input})
    );
}

#[tokio::test]
async fn the_input_of_responses_clients_is_counted_by_every_kind_of_target() {
    let ask = json!({"model": "test-model", "instructions": "s", "input": "Say PONG", "stream": true,
        "max_output_tokens": 100, "store": true});
    let counts = [
        (
            Family::Responses,
            Some("/responses/input_tokens"),
            json!({"model": "upstream-model-1", "instructions": "s", "input": "Say PONG"}),
        ),
        (
            Family::Messages,
            Some("/messages/count_tokens"),
            json!({"model": "upstream-model-1", "system": [{"type": "text", "text": "s"}],
                "messages": [{"role": "user", "content": [{"type": "text", "text": "Say PONG"}]}]}),
        ),
        (Family::Chat, None, json!(null)),
    ];
    for (target, path, sent) in counts {
        let counted = json!({"object": "response.input_tokens", "input_tokens": 321});
        let upstream = ScriptedUpstream::start(Reply::json(200, &counted)).await;
        let gateway = before(&upstream, target, "").await;
        let key = gateway.key("5.00").await;
        let answer = gateway.post("/v1/responses/input_tokens", &key, &ask).await;
        assert_eq!(answer.status, 200, "{target}: {}", answer.text);
        assert_eq!(answer.json()["object"], "response.input_tokens");
        let Some(path) = path else {
            assert_eq!(answer.header("x-farebox-estimate"), Some("1"));
            assert!(upstream.requests().is_empty(), "{target} cannot count");
            continue;
        };
        assert_eq!(answer.json(), counted, "{target}");
        let seen = &upstream.requests()[0];
        assert!(seen.path.ends_with(path), "{}", seen.path);
        assert_eq!(seen.json(), sent, "{target}");
        gateway.settled().await;
        assert!(gateway.charges(&key).await.is_empty(), "counting is free");
    }
}

#[tokio::test]
async fn a_target_of_two_families_is_asked_once_and_in_the_one_that_carries_the_request() {
    let upstream = ScriptedUpstream::start(Reply::error(500, "server_error", None, "no")).await;
    let routes = routes(&upstream.base_url()).replace(
        r#"["chat", "responses", "messages"]"#,
        r#"["responses", "chat"]"#,
    );
    let gateway = Gateway::start(&catalog(Family::Chat), &routes).await;
    let key = gateway.key("5.00").await;
    let mut body = ask(Family::Messages, "test-model", false);
    assert_eq!(
        gateway
            .post(path(Family::Messages), &key, &body)
            .await
            .status,
        529
    );
    let tries = upstream.requests();
    assert!(
        !tries.is_empty() && tries.iter().all(|seen| seen.path.ends_with("/responses")),
        "{tries:?}"
    );
    upstream.follow(answering(Family::Chat));
    body["stop_sequences"] = json!(["END"]);
    let answer = gateway.post(path(Family::Messages), &key, &body).await;
    assert_eq!(
        read(Family::Messages, false, &answer),
        "one two three",
        "{}",
        answer.text
    );
    assert!(
        upstream
            .requests()
            .pop()
            .unwrap()
            .path
            .ends_with("/chat/completions")
    );
    gateway.stop().await;
}

#[tokio::test]
async fn the_simulated_provider_answers_the_same_through_a_translation() {
    for (caller, target) in DIRECTIONS {
        let routes = format!(
            "[provider.direct]\nsimulated = true\n[provider.foreign]\nsimulated = true\nspeaks = [\"{target}\"]\n\
             [[route]]\nslug = \"test-model\"\ntargets = [ {{ provider = \"direct\", model = \"sim\" }} ]\n\
             [[route]]\nslug = \"test-blind\"\ntargets = [ {{ provider = \"foreign\", model = \"sim\" }} ]\n"
        );
        let catalog =
            catalog(target).replace("capabilities      = []", "capabilities = [\"streaming\"]");
        let gateway = Gateway::start(&catalog, &routes).await;
        let key = gateway.key("5.00").await;
        for stream in [false, true] {
            let direct = gateway
                .post(path(caller), &key, &ask(caller, "test-model", stream))
                .await;
            let foreign = gateway
                .post(path(caller), &key, &ask(caller, "test-blind", stream))
                .await;
            assert_eq!(
                (direct.status, foreign.status),
                (200, 200),
                "{caller} on {target}: {}",
                foreign.text
            );
            let (direct, foreign) = (
                read(caller, stream, &direct),
                read(caller, stream, &foreign),
            );
            assert!(
                !direct.is_empty() && direct == foreign,
                "{caller} on {target}: {direct:?} and {foreign:?}"
            );
        }
        gateway.stop().await;
    }
}

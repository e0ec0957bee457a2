//! What a provider is sent beside the fields with a price: flags, unknown fields, limits, and only what its model can do.

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::fields::{picture, refused, saying, tool, with};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, ask, path, routes, talking};

#[tokio::test]
async fn a_provider_is_never_sent_a_flag_it_refuses() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let refusing = routes(&upstream.base_url()).replacen(
        "speaks",
        "refuse_beta = [\"context-1m-2025-08-07\", \"fast-1\"]\nspeaks",
        1,
    );
    let gateway = Gateway::start(CATALOG, &refusing).await;
    let key = gateway.key("5.00").await;
    let body = ask(Family::Messages, "test-model", true).to_string();
    for path in ["/native/v1/messages", "/native/v1/messages/count_tokens"] {
        for flags in [
            vec!["context-1m-2025-08-07"],
            vec!["a-1, context-1m-2025-08-07 ,b"],
            vec!["a-1", "context-1m-2025-08-07"],
        ] {
            let headers: Vec<(&str, &str)> =
                flags.iter().map(|flag| ("anthropic-beta", *flag)).collect();
            let answer = gateway.send(path, &key, body.clone(), &headers).await;
            let error = answer.json()["error"].clone();
            assert_eq!(
                (answer.status, error["param"].clone()),
                (400, json!("anthropic-beta")),
                "{}",
                answer.text
            );
            let message = error["message"].as_str().unwrap();
            assert!(
                message.starts_with(
                    "Unexpected value(s) `context-1m-2025-08-07` for the `anthropic-beta` header"
                ),
                "{message}"
            );
        }
    }
    assert!(upstream.requests().is_empty() && gateway.charges(&key).await.is_empty());
    let other = gateway
        .send(
            path(Family::Messages),
            &key,
            body,
            &[("anthropic-beta", "context-1m,fast-12")],
        )
        .await;
    assert_eq!(other.status, 200, "only the very flag");
    assert_eq!(
        upstream.request(0).await.header("anthropic-beta"),
        Some("context-1m,fast-12")
    );
}

#[tokio::test]
async fn a_flag_can_be_refused_with_all_that_begin_like_it() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let refusing = routes(&upstream.base_url()).replacen(
        "speaks",
        "refuse_beta = [\"context-1m-*\"]\nspeaks",
        1,
    );
    let gateway = Gateway::start(CATALOG, &refusing).await;
    let key = gateway.key("5.00").await;
    let body = ask(Family::Messages, "test-model", false).to_string();
    for (flag, status) in [
        ("context-1m-2025-08-07", 400),
        ("context-1m-2099-01-01", 400),
        ("context-1m", 200),
        ("context-management-2025-06-27", 200),
    ] {
        let answer = gateway
            .send(
                path(Family::Messages),
                &key,
                body.clone(),
                &[("anthropic-beta", flag)],
            )
            .await;
        assert_eq!(answer.status, status, "{flag}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_field_in_no_table_goes_only_where_the_provider_passes_it() {
    let upstream = ScriptedUpstream::playing(farebox_doubles::Vendor::Vllm, talking("x")).await;
    let passing = routes(&upstream.base_url()).replacen(
        "speaks",
        "pass = [\"top_k\", \"brand_new\"]\nspeaks",
        1,
    );
    let (strict, passing) = (
        Gateway::before(&upstream).await,
        Gateway::start(CATALOG, &passing).await,
    );
    let (poor, rich) = (strict.key("5.00").await, passing.key("5.00").await);
    for family in Family::ALL {
        let body = with(
            family,
            &[("brand_new", json!({"a": 1})), ("x_other", json!("y"))],
        );
        if family == Family::Chat {
            let (param, code) = refused(&strict, &poor, family, &body).await;
            assert_eq!(
                (param.as_str(), code.as_str()),
                ("brand_new", "unknown_parameter")
            );
            let (param, _) = refused(&passing, &rich, family, &body).await;
            assert_eq!(param, "x_other");
            let passed = passing
                .post(path(family), &rich, &with(family, &[("top_k", json!(5))]))
                .await;
            assert_eq!(
                (passed.status, passed.header("x-farebox-removed")),
                (200, None),
                "{}",
                passed.text
            );
            assert_eq!(upstream.requests().last().unwrap().json()["top_k"], 5);
            continue;
        }
        for stream in [false, true] {
            let mut body = body.clone();
            body["stream"] = json!(stream);
            let answer = strict.post(path(family), &poor, &body).await;
            assert_eq!(
                (answer.status, answer.header("x-farebox-removed")),
                (200, Some("brand_new, x_other")),
                "{}",
                answer.text
            );
            let sent = upstream.requests().last().unwrap().json();
            assert!(
                sent.get("brand_new").is_none() && sent.get("x_other").is_none(),
                "{sent}"
            );
            let answer = passing.post(path(family), &rich, &body).await;
            assert_eq!(
                (answer.status, answer.header("x-farebox-removed")),
                (200, Some("x_other")),
                "{}",
                answer.text
            );
            let sent = upstream.requests().last().unwrap().json();
            assert_eq!(
                (sent["brand_new"]["a"].clone(), sent.get("x_other")),
                (json!(1), None)
            );
        }
    }
}

#[tokio::test]
async fn a_limit_that_is_set_here_stands_in_the_field_the_provider_knows() {
    for (setting, field) in [
        ("", "max_completion_tokens"),
        ("chat_limit = \"max_tokens\"", "max_tokens"),
    ] {
        let upstream = ScriptedUpstream::start(talking("x")).await;
        let gateway = Gateway::start(
            CATALOG,
            &routes(&upstream.base_url()).replacen("speaks", &format!("{setting}\nspeaks"), 1),
        )
        .await;
        let (key, poor) = (gateway.key("5.00").await, gateway.key("0.05").await);
        let words = saying(Family::Chat, json!("x")).1;
        gateway
            .post(
                "/v1/chat/completions",
                &poor,
                &json!({ "model": "test-model", "messages": words }),
            )
            .await;
        gateway
            .post(
                "/v1/responses",
                &poor,
                &json!({ "model": "test-model", "input": "x" }),
            )
            .await;
        gateway
            .post(
                "/v1/chat/completions",
                &key,
                &json!({ "model": "test-model", "messages": words, "stream": true }),
            )
            .await;
        for (declared, limit) in [
            ("max_tokens", 99_999),
            ("max_completion_tokens", 99_999),
            ("max_completion_tokens", 16),
        ] {
            let body = json!({ "model": "test-model", "messages": words, declared: limit });
            gateway.post("/v1/chat/completions", &key, &body).await;
        }
        let sent: Vec<Value> = upstream
            .requests()
            .iter()
            .map(crate::support::upstream::Seen::json)
            .collect();
        assert!(
            sent[0][field].is_u64() && sent[1]["max_output_tokens"].is_u64(),
            "{field}: money limits both: {sent:?}"
        );
        assert!(
            sent[2].get(field).is_none(),
            "a stream that money does not limit keeps its form"
        );
        assert_eq!(
            sent[3]["max_tokens"], 64_000,
            "a declared limit is lowered to what the model can"
        );
        for (sent, limit) in [(&sent[4], 64_000), (&sent[5], 16)] {
            let other = if field == "max_tokens" {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            assert_eq!(
                (sent[field].clone(), sent.get(other)),
                (json!(limit), None),
                "a limit that is not read is none"
            );
        }
    }
}

#[tokio::test]
async fn one_hour_cache_writes_need_a_price() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let priced = CATALOG.replacen(
        "cache_write = \"3.75\"",
        "cache_write = \"3.75\", cache_write_1h = \"6\"",
        1,
    );
    for (catalog, status) in [(CATALOG.to_owned(), 400), (priced, 200)] {
        let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
        let key = gateway.key("5.00").await;
        let hour = json!({"type": "ephemeral", "ttl": "1h"});
        let block = json!([{"type": "text", "text": "x", "cache_control": hour}]);
        let tool = json!([{"name":"t","input_schema":{"type":"object"},"cache_control":hour}]);
        for field in [
            saying(Family::Messages, block.clone()),
            ("system", block),
            ("tools", tool),
            ("cache_control", hour),
        ] {
            let answer = gateway
                .post(
                    path(Family::Messages),
                    &key,
                    &with(Family::Messages, &[field]),
                )
                .await;
            assert_eq!(answer.status, status, "{}", answer.text);
            assert!(
                status == 200 || answer.json()["error"]["param"] == "cache_control",
                "{}",
                answer.text
            );
        }
    }
}

#[tokio::test]
async fn what_a_model_cannot_do_is_refused_before_money_is_looked_at() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let limits = "context = 2_000, max_output = 500, image_bytes = 60, tools = 2";
    let catalog = CATALOG.replacen("context = 200_000, max_output = 64_000", limits, 1);
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    let key = gateway.key("0.00005").await;
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP8zwACTGCSAQANHQEDgslx/wAAAABJRU5ErkJggg==";
    for family in Family::ALL {
        let blind = |field| {
            let mut body = with(family, &[field]);
            body["model"] = json!("test-blind");
            body
        };
        let large = match family {
            Family::Messages => json!([{"type": "tool_result", "tool_use_id": "t", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]}]),
            Family::Chat => {
                json!([{"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}}])
            }
            Family::Responses => {
                json!([{"type": "input_image", "image_url": format!("data:image/png;base64,{data}")}])
            }
        };
        let three: Vec<Value> = ["a", "b", "c"]
            .iter()
            .map(|name| tool(family, name))
            .collect();
        for (body, code) in [
            (blind(saying(family, picture(family))), "vision_unsupported"),
            (
                blind(("tools", json!([tool(family, "a")]))),
                "tools_unsupported",
            ),
            (blind(("stream", json!(true))), "streaming_unsupported"),
            (with(family, &[("tools", json!(three))]), "too_many_tools"),
            (with(family, &[saying(family, large)]), "image_too_large"),
            (
                with(family, &[saying(family, json!("long ".repeat(10_000)))]),
                "context_length_exceeded",
            ),
        ] {
            let answer = gateway.post(path(family), &key, &body).await;
            assert_eq!(
                (answer.status, answer.json()["error"]["code"].clone()),
                (400, json!(code)),
                "{family}: {}",
                answer.text
            );
            assert!(
                answer.json()["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("test-"),
                "names the model: {}",
                answer.text
            );
        }
        if family == Family::Messages {
            for (budget, status) in [(500, 400), (499, 429)] {
                let thinking = (
                    "thinking",
                    json!({"type": "enabled", "budget_tokens": budget}),
                );
                let answer = gateway
                    .post(
                        path(family),
                        &key,
                        &with(family, &[thinking, ("max_tokens", json!(9_000))]),
                    )
                    .await;
                assert_eq!(answer.status, status, "{}", answer.text);
            }
        }
        let two = with(family, &[("tools", json!(three[..2]))]);
        assert_eq!(
            gateway.post(path(family), &key, &two).await.status,
            429,
            "two tools are allowed; then comes the money"
        );
    }
    assert!(upstream.requests().is_empty());
}

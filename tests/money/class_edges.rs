//! What providers report or refuse beside the class: writes of a cache that nobody divides, caches that are only warmed, claims beyond
//! what a request can be, steps of other models, pinned fields, classes that are not sold.

use farebox_ledger::{Amount, Evidence};
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::classes::{ALL, body, charge_of, selling};
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, ask, path, routes, routes_speaking, speech_for};

#[tokio::test]
async fn a_class_that_is_not_sold_is_refused_before_money_is_held() {
    let upstream = ScriptedUpstream::start(crate::support::talking("PONG")).await;
    let catalog = selling(r#"{ fast = { times = "2", context = 1_000 } }"#);
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    let key = gateway.key("5").await;
    let refused = |family: Family, model: &'static str, members: Value| {
        let mut body = body(family, false, &members);
        body["model"] = json!(model);
        let (gateway, key) = (&gateway, &key);
        async move {
            let answer = gateway.post(path(family), key, &body).await;
            assert_eq!(answer.status, 400, "{members}: {}", answer.text);
            answer.text
        }
    };
    let text = refused(Family::Chat, "test-model", json!({"service_tier": "flex"})).await;
    assert!(
        text.contains("`service_tier`") && text.contains("`fast`"),
        "{text}"
    );
    let text = refused(
        Family::Messages,
        "test-model",
        json!({"inference_geo": "us"}),
    )
    .await;
    assert!(
        text.contains("`inference_geo`") && text.contains("`us`"),
        "{text}"
    );
    let both = json!({"speed": "fast", "inference_geo": "us"});
    let text = refused(Family::Messages, "test-model", both).await;
    assert!(text.contains("`inference_geo`"), "{text}");
    let text = refused(
        Family::Responses,
        "test-blind",
        json!({"service_tier": "fast"}),
    )
    .await;
    assert!(text.contains("no classes"), "{text}");
    for bad in [json!(3), json!({"a": 1}), json!("batch")] {
        let text = refused(Family::Chat, "test-model", json!({ "service_tier": bad })).await;
        assert!(text.contains("service_tier"), "{text}");
    }
    let mut long = body(Family::Chat, false, &json!({"service_tier": "fast"}));
    long["messages"][0]["content"] = json!("some words of a long prompt ".repeat(300));
    let answer = gateway.post(path(Family::Chat), &key, &long).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(
        answer.text.contains("at most 1000 input tokens"),
        "{}",
        answer.text
    );
    long.as_object_mut().unwrap().remove("service_tier");
    let answer = gateway.post(path(Family::Chat), &key, &long).await;
    assert_eq!(
        answer.status, 200,
        "the bound is the class's: {}",
        answer.text
    );
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn an_account_does_not_decide_what_a_request_costs() {
    let refuses = Script::by(|seen, _| {
        if seen.json().get("service_tier").is_some() {
            Reply::error(
                400,
                "invalid_request_error",
                None,
                "Unknown parameter: 'service_tier'",
            )
        } else {
            speech_for(seen, "PONG")
        }
    });
    let upstream = ScriptedUpstream::tolerant(crate::support::talking("PONG")).await;
    let pinned = routes(&upstream.base_url()).replacen(
        "speaks",
        "pin = { service_tier = \"default\" }\nspeaks",
        1,
    );
    let gateway = Gateway::start(&selling(ALL), &pinned).await;
    let key = gateway.key("5").await;
    for (family, members, sent) in [
        (Family::Chat, json!({}), json!("default")),
        (
            Family::Responses,
            json!({"service_tier": "auto"}),
            json!("default"),
        ),
        (
            Family::Messages,
            json!({"service_tier": null}),
            json!("standard_only"),
        ),
        (Family::Chat, json!({"service_tier": "flex"}), json!("flex")),
    ] {
        let answer = gateway
            .post(path(family), &key, &body(family, false, &members))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let seen = upstream.requests().pop().unwrap().json();
        assert_eq!(seen["service_tier"], sent, "{family} {members}");
    }
    let others = [gateway.key("5").await, gateway.key("5").await];
    let plain = body(Family::Chat, true, &json!({}));
    // A refusal that quotes what the customer wrote, and stays without the pin, is none of the pin.
    upstream.follow(Script::by(|_, _| {
        Reply::error(
            400,
            "invalid_request_error",
            None,
            "no 'service_tier', please",
        )
    }));
    for key in [&key, &others[0], &others[1]] {
        let answer = gateway.post(path(Family::Chat), key, &plain).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
    }
    upstream.follow(refuses);
    let before = upstream.requests().len();
    for key in [&key, &key, &key, &others[0], &others[1], &key] {
        let answer = gateway.post(path(Family::Chat), key, &plain).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let tries: Vec<bool> = upstream.requests()[before..]
        .iter()
        .map(|seen| seen.json().get("service_tier").is_some())
        .collect();
    let refused = [true, false].repeat(5);
    assert_eq!(
        tries,
        [&refused[..], &[false]].concat(),
        "it rests once three customers were refused"
    );
    assert!(
        gateway
            .ask("/status")
            .await
            .text
            .contains("\"pin_refused\"")
    );
    // What the customer asked for is the customer's mistake.
    let body = body(Family::Chat, false, &json!({"service_tier": "flex"}));
    let answer = gateway.post(path(Family::Chat), &key, &body).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
}

#[tokio::test]
async fn writes_that_nobody_divides_cost_the_dearest_lifetime_asked_for() {
    let upstream = ScriptedUpstream::tolerant(Script::by(|seen, _| {
        let usage =
            json!({"input_tokens": 10, "output_tokens": 2, "cache_creation_input_tokens": 1_000});
        let speech = Speech::new(Family::Messages, "one two").claims(usage);
        if seen.json()["stream"] == true {
            speech.stream()
        } else {
            speech.whole()
        }
    }))
    .await;
    let catalog = CATALOG.replacen(
        "cache_write = \"3.75\" }",
        "cache_write = \"3.75\", cache_write_1h = \"6\", cache_write_12h = \"9\" }",
        1,
    );
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    let marked = |ttl: Option<&str>| {
        let mut mark = json!({"type": "ephemeral"});
        if let Some(ttl) = ttl {
            mark["ttl"] = json!(ttl);
        }
        json!([{"role": "user", "content": [{"type": "text", "text": "word ".repeat(1_200), "cache_control": mark}]}])
    };
    for (ttl, rate) in [
        (None, 3_750_000),
        (Some("1h"), 6_000_000),
        (Some("12h"), 9_000_000),
    ] {
        for stream in [false, true] {
            let key = gateway.key("5").await;
            let mut body = ask(Family::Messages, "test-model", stream);
            body["messages"] = marked(ttl);
            let answer = gateway.post(path(Family::Messages), &key, &body).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            let bill = charge_of(&gateway, &key).await;
            let cost = 10 * 3_000_000 + 2 * 15_000_000 + 1_000 * rate;
            assert_eq!(bill.total().unwrap().picos(), cost, "{ttl:?} {bill:?}");
        }
    }
}

#[tokio::test]
async fn a_cache_is_warmed_without_an_answer_and_charged_by_usage() {
    let upstream = ScriptedUpstream::tolerant(Script::by(|_, _| {
        let usage = json!({"input_tokens": 10, "output_tokens": 0, "cache_creation_input_tokens": 1_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 0}});
        let answer = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": "max_tokens", "stop_sequence": null, "usage": usage});
        Reply::json(200, &answer)
    }))
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    let mut body = ask(Family::Messages, "test-model", false);
    body["max_tokens"] = json!(0);
    let answer = gateway.post(path(Family::Messages), &key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let bill = charge_of(&gateway, &key).await;
    assert_eq!(
        bill.total().unwrap().picos(),
        10 * 3_000_000 + 1_000 * 3_750_000
    );
    assert_eq!(upstream.requests()[0].json()["max_tokens"], 0);
    let foreign = routes_speaking(&upstream.base_url(), Family::Chat);
    let gateway = Gateway::start(CATALOG, &foreign).await;
    let key = gateway.key("5").await;
    let answer = gateway.post(path(Family::Messages), &key, &body).await;
    assert_eq!(answer.status, 400, "no other family can: {}", answer.text);
}

#[tokio::test]
async fn a_claim_beyond_what_a_greeting_can_be_costs_a_greeting() {
    for claimed in [190_000_u64, 1_000_000_000_000_000] {
        for family in Family::ALL {
            for stream in [false, true] {
                let usage = match family {
                    Family::Chat => json!({"prompt_tokens": claimed, "completion_tokens": 2}),
                    _ => json!({"input_tokens": claimed, "output_tokens": 2}),
                };
                let speech = Speech::new(family, "one two").claims(usage);
                let reply = if stream {
                    speech.stream()
                } else {
                    speech.whole()
                };
                let upstream = ScriptedUpstream::start(reply).await;
                let gateway = Gateway::before(&upstream).await;
                let key = gateway.key("5").await;
                let body = ask(family, "test-model", stream);
                gateway.post(path(family), &key, &body).await;
                let bill = charge_of(&gateway, &key).await;
                assert_eq!(bill.evidence, Some(Evidence::Disputed), "{family} {stream}");
                assert!(bill.usage.prompt() < 4_400, "{family} {stream}: {bill:?}");
            }
        }
    }
}

#[tokio::test]
async fn steps_of_another_model_are_charged_at_this_models_price() {
    let step = |kind: &str, input: u64, output: u64| json!({"type": kind, "input_tokens": input, "output_tokens": output});
    let usage = json!({"input_tokens": 20, "output_tokens": 4, "cost": 0.25, "iterations": [
        step("message", 8, 2), step("advisor_message", 30, 6), step("message", 12, 2)]});
    let upstream = ScriptedUpstream::tolerant(
        Speech::new(Family::Messages, "one two")
            .claims(usage)
            .whole(),
    )
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    let body = ask(Family::Messages, "test-model", false);
    let answer = gateway.post(path(Family::Messages), &key, &body).await;
    let bill = charge_of(&gateway, &key).await;
    assert_eq!(
        bill.total().unwrap().picos(),
        50 * 3_000_000 + 10 * 15_000_000
    );
    assert_eq!(
        bill.provider_cost,
        Some(Amount::from_picos(250_000_000_000))
    );
    assert_eq!(
        answer.json()["usage"].get("cost"),
        None,
        "customers do not see it"
    );
    assert!(
        gateway
            .ask("/status")
            .await
            .text
            .contains("\"other_model\"")
    );
}

#[tokio::test]
async fn the_list_of_models_names_the_prices_of_classes() {
    let upstream = ScriptedUpstream::start(crate::support::talking("PONG")).await;
    let catalog =
        selling(r#"{ flex = "0.5", fast = { times = "2", context = 1_000 }, us = "1.1" }"#);
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    let key = gateway.key("5").await;
    let list = gateway.get("/v1/models", &key).await.json();
    let model = &list["data"][0];
    assert_eq!(model["price"], model["pricing"]["standard"], "{model}");
    let input = |class: &str| model["pricing"][class]["input"].to_string();
    let prices = ["standard", "flex", "fast", "us", "flex,us", "fast,us"].map(input);
    let usd = ["3.00", "1.50", "6.00", "3.30", "1.65", "6.60"].map(|usd| format!("\"{usd}\""));
    assert_eq!(prices, usd, "{model}");
    assert_eq!(model["pricing"]["fast"]["context"], 1_000);
    let column = model["service_price"].as_str().unwrap();
    assert!(
        column.ends_with("flex ×0.5 · fast ×2 to 1,000 tokens · us ×1.1"),
        "{column}"
    );
}

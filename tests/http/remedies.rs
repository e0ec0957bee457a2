//! What a program can do about a 400 by itself stands in `error.details`, and known programs read what to set in them.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, TestKey, ask, path, talking};

use Family::{Chat, Messages, Responses};

async fn send(
    gateway: &Gateway,
    key: &TestKey,
    family: Family,
    (slug, fields): (&str, &Value),
    headers: &[(&str, &str)],
) -> Answer {
    let mut body = ask(family, slug, false);
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let answer = gateway
        .send(path(family), key, body.to_string(), headers)
        .await;
    assert_eq!(answer.status, 400, "{family} {fields}: {}", answer.text);
    answer
}

/// Each refusal of the contract, with the smallest thing that would be taken.
fn refusals() -> Vec<(Family, &'static str, Value, Value)> {
    let said = |part: Value| json!([{"role": "user", "content": [part]}]);
    let private = json!({"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}});
    let public = json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}});
    let by_url =
        json!({"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}});
    let stored = json!({"type": "file", "file": {"file_id": "file-1"}});
    let cached =
        json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}});
    let odd =
        json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "2h"}});
    let function =
        json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
    let leave = |field: &str| json!({"remedies": [{field: null}]});
    let any = "test-model";
    vec![
        (Chat, any, json!({"made_up": 1}), leave("made_up")),
        (Chat, any, json!({"models": ["a"]}), leave("models")),
        (
            Chat,
            any,
            json!({"service_tier": "batch"}),
            leave("service_tier"),
        ),
        (
            Chat,
            any,
            json!({"service_tier": "flex"}),
            leave("service_tier"),
        ),
        (Messages, any, json!({"speed": "fast"}), leave("speed")),
        (Chat, any, json!({"n": 0}), leave("n")),
        (Chat, any, json!({"max_tokens": 0}), leave("max_tokens")),
        (
            Chat,
            any,
            json!({"max_tokens": 5, "max_completion_tokens": 6}),
            leave("max_completion_tokens"),
        ),
        (
            Responses,
            any,
            json!({"previous_response_id": "resp_1"}),
            json!({"remedies": [{"previous_response_id": null, "store": false}]}),
        ),
        (
            Responses,
            any,
            json!({"conversation": "conv_1"}),
            leave("conversation"),
        ),
        (
            Responses,
            any,
            json!({"background": true}),
            leave("background"),
        ),
        (
            Responses,
            any,
            json!({"input": [{"type": "item_reference", "id": "rs_1"}]}),
            json!({"remedies": [{"store": false}]}),
        ),
        (
            Responses,
            any,
            json!({"tools": [{"type": "mcp", "server_label": "a"}]}),
            json!({"remove": "tools[0]"}),
        ),
        (
            Messages,
            any,
            json!({"thread": {"type": "create"}}),
            json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]}),
        ),
        (
            Messages,
            any,
            json!({"messages": said(by_url)}),
            json!({"inline": "messages[0].content[0].source.url"}),
        ),
        (
            Chat,
            any,
            json!({"messages": said(private)}),
            json!({"inline": "messages[0].content[0].image_url"}),
        ),
        (
            Chat,
            any,
            json!({"messages": said(stored)}),
            json!({"inline": "messages[0].content[0].file.file_id"}),
        ),
        (
            Messages,
            any,
            json!({"messages": said(cached)}),
            json!({"remove": "cache_control.ttl"}),
        ),
        (
            Messages,
            any,
            json!({"messages": said(odd)}),
            json!({"remove": "messages[0].content[0].cache_control.ttl"}),
        ),
        (
            Chat,
            "test-blind",
            json!({"stream": true}),
            json!({"remedies": [{"stream": false}]}),
        ),
        (
            Chat,
            "test-blind",
            json!({"tools": function}),
            json!({"needs": "tools"}),
        ),
        (
            Chat,
            "test-blind",
            json!({"messages": said(public)}),
            json!({"needs": "vision"}),
        ),
        (
            Chat,
            "test-blind",
            json!({"messages": [{"role": "user", "content": "long word ".repeat(40_000)}]}),
            json!({"at_most": {"input_tokens": 32_000}}),
        ),
    ]
}

#[tokio::test]
async fn every_refusal_of_the_contract_carries_its_remedy() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    for (family, slug, fields, details) in refusals() {
        let answer = send(&gateway, &key, family, (slug, &fields), &[]).await;
        let shown = fields.to_string().chars().take(120).collect::<String>();
        assert_eq!(
            answer.json()["error"]["details"],
            details,
            "{family} {shown}"
        );
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_known_program_reads_what_to_set_in_it() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let reference = json!({"input": [{"type": "item_reference", "id": "rs_1"}]});
    let asked = (Responses, ("test-model", &reference));
    for (sent, setting) in [
        (
            "ai/7.0.173 ai-sdk-provider-utils/5.0.81",
            Some("providerOptions: { openai: { store: false } }"),
        ),
        ("OpenAI/Python 3.54.0", None),
    ] {
        let answer = send(&gateway, &key, asked.0, asked.1, &[("user-agent", sent)]).await;
        let error = answer.json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("Send `store: false` and the items themselves"),
            "{message}"
        );
        assert!(
            setting.is_none_or(|setting| message.contains(setting)),
            "{message}"
        );
        assert_eq!(message.contains("AI SDK"), setting.is_some(), "{message}");
    }
}

//! Only tokens of the slug are bought: what else a request would make a provider do is refused or taken out.

use farebox_protocol::{Family, TargetFit};
use serde_json::{Value, json};

use super::{edits, refused, with};

#[test]
fn only_tokens_of_the_slug_are_bought() {
    let all: &[(&str, Value)] = &[
        ("models", json!(["a"])),
        ("provider", json!({"order": ["x"]})),
        ("api_base", json!("http://x")),
        ("base_url", json!("http://x")),
        ("fallbacks", json!(["a"])),
        ("service_tier", json!("batch")),
        ("speed", json!("ultra")),
        ("route", json!("fallback")),
        ("plugins", json!([{"id": "web"}])),
        ("mcp_servers", json!([{"url": "x"}])),
        ("file_id", json!("f")),
    ];
    for family in Family::ALL {
        for (name, value) in all {
            assert_eq!(
                refused(family, name, value.clone()).param.as_deref(),
                Some(*name)
            );
            assert!(with(family, name, Value::Null).is_ok(), "{name}");
        }
        assert!(with(family, "service_tier", json!("auto")).is_ok());
        assert!(with(family, "mcp_servers", json!([])).is_ok());
        assert!(with(family, "unknown", json!({"file_id": 1, "deep": [1]})).is_ok());
    }
    let chat = [
        ("audio", json!({"voice": "x"})),
        ("modalities", json!(["text", "audio"])),
        ("web_search_options", json!({"x": 1})),
        ("best_of", json!(2)),
    ];
    chat.into_iter()
        .for_each(|(name, value)| drop(refused(Family::Chat, name, value)));
    assert!(with(Family::Chat, "modalities", json!(["text"])).is_ok());
    let responses = [
        ("previous_response_id", json!("r")),
        ("conversation", json!("c")),
        ("background", json!(true)),
        ("prompt", json!({"id": "p"})),
    ];
    responses
        .into_iter()
        .for_each(|(name, value)| drop(refused(Family::Responses, name, value)));
    assert!(with(Family::Responses, "background", json!(false)).is_ok());
    assert_eq!(
        refused(Family::Responses, "reasoning", json!({"mode": "pro"}))
            .param
            .as_deref(),
        Some("reasoning.mode")
    );
    assert!(
        with(
            Family::Responses,
            "prompt_cache_options",
            json!({"ttl": "12h"})
        )
        .expect("good")
        .half_day_cache
    );
    refused(Family::Messages, "thread", json!({"type": "create"}));
    assert!(with(Family::Messages, "service_tier", json!("standard_only")).is_ok());
    let bad = refused(Family::Messages, "container", json!("c"));
    assert_eq!(
        bad.message,
        "`container` is refused: tools that run on a server have no price here. Leave it out."
    );
    let bad = refused(
        Family::Responses,
        "input",
        json!([{"role": "user", "content": "a"}, {"type": "item_reference", "id": "x"}]),
    );
    assert_eq!(bad.param.as_deref(), Some("input[1].type"));
}

#[test]
fn server_tools_are_refused_and_searches_taken_out() {
    let refused_types = |family, types: &[&str]| {
        for kind in types {
            assert_eq!(
                refused(family, "tools", json!([{"type": kind}]))
                    .param
                    .as_deref(),
                Some("tools[0].type"),
                "{kind}"
            );
        }
    };
    refused_types(
        Family::Responses,
        &[
            "code_interpreter",
            "file_search",
            "image_generation",
            "mcp",
            "programmatic_tool_calling",
            "anything_new",
            "",
        ],
    );
    refused_types(
        Family::Messages,
        &[
            "web_fetch_20250910",
            "code_execution_20250825",
            "mcp_toolset",
            "web_search_2025\r\nx: y",
        ],
    );
    refused_types(Family::Chat, &["code_interpreter", "openrouter:web_search"]);
    let shell = |environment: Value| {
        with(
            Family::Responses,
            "tools",
            json!([{"type": "shell", "environment": environment}]),
        )
    };
    assert!(shell(json!({"type": "local"})).is_ok());
    for hosted in [
        Value::Null,
        json!({}),
        json!("local"),
        json!({"type": "container_auto"}),
        json!({"type": "container_reference", "container_id": "cntr_1"}),
    ] {
        let bad = shell(hosted.clone()).expect_err("it runs on a server");
        assert_eq!(bad.param.as_deref(), Some("tools[0].type"), "{hosted}");
        assert!(
            bad.message.contains("a container of the provider")
                && bad.message.contains("no price here")
                && bad.message.contains(r#"{"type": "local"}"#),
            "{}",
            bad.message
        );
    }
    refused(
        Family::Responses,
        "tools",
        json!([{"type": "namespace", "tools": [{"type": "web_search"}]}]),
    );
    for kind in [
        "custom",
        "bash_20250124",
        "text_editor_20250728",
        "computer_20250124",
        "memory_20250818",
    ] {
        assert_eq!(
            with(
                Family::Messages,
                "tools",
                json!([{"type": kind, "name": "n", "input_schema": {}}])
            )
            .expect(kind)
            .content
            .tools,
            1
        );
    }
    let later = json!([{"role": "user", "content": "a"}, {"type": "additional_tools", "tools": [{"type": "code_interpreter"}]}]);
    assert_eq!(
        refused(Family::Responses, "input", later).param.as_deref(),
        Some("input[1].tools[0].type")
    );
    let inline = |kind: &str| {
        let definition = json!({"type": "tool_definition", "definition": {"type": kind, "name": "n", "input_schema": {}}});
        with(
            Family::Messages,
            "messages",
            json!([{"role": "user", "content": [{"type": "tool_addition", "tool": definition}]}]),
        )
    };
    let bad = inline("advisor_20260301").expect_err("it runs on a server");
    assert_eq!(
        bad.param.as_deref(),
        Some("messages[0].content[0].tool.definition.type")
    );
    assert_eq!(inline("custom").expect("a client's tool").content.tools, 1);
    let body = json!({
        "tools": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "mine", "input_schema": {}}, {"type": "web_search_20260101"}],
        "tool_choice": {"type": "tool", "name": "web_search"}, "model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}],
    });
    let text = body.to_string();
    let seen = Family::Messages
        .protocol()
        .inspect(text.as_bytes(), 0)
        .expect("good");
    assert_eq!(
        seen.removed_tools,
        ["web_search_20250305", "web_search_20260101"]
    );
    let edits = edits("u", TargetFit::anything());
    let protocol = Family::Messages.protocol();
    let patched = protocol.patch(text.as_bytes(), &seen, &edits);
    let expected = r#"{"tools":[{"name":"mine","input_schema":{}}],"model":"u","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(String::from_utf8_lossy(&patched), expected);
}

#[test]
fn a_compaction_is_expected_from_its_trigger_on() {
    let compacts = |management: Value| {
        with(Family::Messages, "context_management", management)
            .expect("passes")
            .compacts_from
    };
    let edit = |trigger: Value| json!({"type": "compact_20260112", "trigger": trigger});
    let clears = json!({"type": "clear_thinking_20251015", "keep": "all"});
    assert_eq!(
        compacts(
            json!({"edits": [clears, edit(json!({"type": "input_tokens", "value": 60_000}))]})
        ),
        Some(60_000)
    );
    assert_eq!(
        compacts(json!({"edits": [edit(Value::Null)]})),
        Some(150_000)
    );
    assert_eq!(
        compacts(
            json!({"edits": [{"type": "compact_20260112", "instructions": "x".repeat(20_000)}]})
        ),
        Some(0),
        "not read"
    );
    assert_eq!(
        with(Family::Messages, "compaction", json!({"type": "summarize"}))
            .expect("on demand")
            .unknown,
        [""; 0]
    );
    for none in [
        Value::Null,
        json!([]),
        json!({"edits": [clears]}),
        json!({"edits": {}}),
        json!("compact_20260112"),
    ] {
        assert_eq!(compacts(none.clone()), None, "{none}");
    }
}

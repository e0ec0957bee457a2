//! Fields, flags and abilities that have no price are refused by name, and nothing of such a request reaches an upstream.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Gateway, TestKey, ask, path, talking};

/// A request with some fields set, also nested ones by their pointer.
pub(super) fn with(family: Family, fields: &[(&str, Value)]) -> Value {
    let mut body = ask(family, "test-model", false);
    for (name, value) in fields {
        body[*name] = value.clone();
    }
    body
}

/// The content of the only message or item.
pub(super) fn saying(family: Family, content: Value) -> (&'static str, Value) {
    let list = if family == Family::Responses {
        "input"
    } else {
        "messages"
    };
    (list, json!([{ "role": "user", "content": content }]))
}

/// A picture by URL, in the family's shape.
pub(super) fn picture(family: Family) -> Value {
    match family {
        Family::Chat => {
            json!([{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}])
        }
        Family::Responses => {
            json!([{"type": "input_image", "image_url": "https://example.com/a.png"}])
        }
        Family::Messages => {
            json!([{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}])
        }
    }
}

/// A tool that the customer runs, in the family's shape.
pub(super) fn tool(family: Family, name: &str) -> Value {
    match family {
        Family::Chat => {
            json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
        }
        Family::Responses => {
            json!({"type": "function", "name": name, "parameters": {"type": "object"}})
        }
        Family::Messages => json!({"name": name, "input_schema": {"type": "object"}}),
    }
}

/// Sends a request that must be a 400, and gives its `param` and `code`.
pub(super) async fn refused(
    gateway: &Gateway,
    key: &TestKey,
    family: Family,
    body: &Value,
) -> (String, String) {
    let answer = gateway.post(path(family), key, body).await;
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status, error["type"].clone()),
        (400, json!("invalid_request_error")),
        "{family} {body}: {}",
        answer.text
    );
    (
        error["param"].as_str().unwrap_or_default().to_owned(),
        error["code"].as_str().unwrap_or_default().to_owned(),
    )
}

/// Fields that all families refuse, with values that are not free.
pub(super) fn common() -> Vec<(&'static str, Value)> {
    vec![
        ("models", json!(["a", "b"])),
        ("route", json!("fallback")),
        ("fallbacks", json!([{"model": "a"}])),
        ("provider", json!({"order": ["x"]})),
        ("api_base", json!("http://169.254.169.254/")),
        ("base_url", json!("http://169.254.169.254/")),
        ("api_key", json!("sk-x")),
        ("service_tier", json!("priority")),
        ("service_tier", json!("flex")),
        ("speed", json!("fast")),
        ("plugins", json!([{"id": "web"}])),
        ("mcp_servers", json!([{"type": "url", "url": "https://x"}])),
        ("container", json!("c")),
        ("file_id", json!("file-1")),
        ("file_ids", json!(["file-1"])),
    ]
}

pub(super) fn of_family(family: Family) -> Vec<(&'static str, Value)> {
    match family {
        Family::Chat => vec![
            ("web_search_options", json!({"search_context_size": "low"})),
            ("search_parameters", json!({"mode": "on"})),
            ("enable_search", json!(true)),
            ("web_search_options", json!({})),
            ("search_parameters", json!({})),
            ("audio", json!({"voice": "a", "format": "mp3"})),
            ("modalities", json!(["text", "audio"])),
            ("best_of", json!(3)),
            ("preset", json!("p")),
        ],
        Family::Responses => vec![
            ("previous_response_id", json!("resp_1")),
            ("conversation", json!("conv_1")),
            ("background", json!(true)),
            ("prompt", json!({"id": "pmpt_1"})),
            ("web_search_options", json!({"search_context_size": "low"})),
        ],
        Family::Messages => vec![("inference_geo", json!("eu"))],
    }
}

#[tokio::test]
async fn every_field_without_a_price_is_refused_by_its_name() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    for family in Family::ALL {
        for (name, value) in common().into_iter().chain(of_family(family)) {
            let (param, code) =
                refused(&gateway, &key, family, &with(family, &[(name, value)])).await;
            assert_eq!(
                (param.as_str(), code.as_str()),
                (name, "unsupported_parameter"),
                "{family}"
            );
        }
    }
    assert!(upstream.requests().is_empty() && gateway.charges(&key).await.is_empty());
    for family in Family::ALL {
        let empty: Vec<(&str, Value)> = common()
            .into_iter()
            .chain(of_family(family))
            .map(|(name, _)| (name, Value::Null))
            .collect();
        let answer = gateway
            .post(path(family), &key, &with(family, &empty))
            .await;
        assert_eq!(answer.status, 200, "null is absent: {}", answer.text);
    }
}

#[tokio::test]
async fn server_tools_files_sound_and_stored_items_are_refused_by_their_place() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let tools = |kind: &str| ("tools", json!([{"type": kind, "name": "n"}]));
    let chat = |part: Value| saying(Family::Chat, json!([{"type": "text", "text": "x"}, part]));
    let responses = |part: Value| saying(Family::Responses, json!([part]));
    let messages = |part: Value| saying(Family::Messages, json!([part]));
    let by_file = json!({"type": "file", "file_id": "f"});
    let by_url = json!({"type": "url", "url": "https://example.com/a.pdf"});
    for (family, field, place) in [
        (Family::Chat, tools("code_interpreter"), "tools[0].type"),
        (
            Family::Chat,
            ("tools", json!([{"name": "n"}])),
            "tools[0].type",
        ),
        (
            Family::Chat,
            ("tools", json!([{"function": {"name": "n"}}])),
            "tools[0].type",
        ),
        (
            Family::Responses,
            ("tools", json!([{"name": "n"}])),
            "tools[0].type",
        ),
        (
            Family::Responses,
            tools("code_interpreter"),
            "tools[0].type",
        ),
        (Family::Responses, tools("file_search"), "tools[0].type"),
        (
            Family::Responses,
            tools("image_generation"),
            "tools[0].type",
        ),
        (Family::Responses, tools("mcp"), "tools[0].type"),
        (
            Family::Messages,
            tools("code_execution_20250825"),
            "tools[0].type",
        ),
        (
            Family::Messages,
            tools("web_fetch_20250910"),
            "tools[0].type",
        ),
        (Family::Messages, tools("mcp_toolset"), "tools[0].type"),
        (
            Family::Chat,
            chat(json!({"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}})),
            "messages[0].content[1]",
        ),
        (
            Family::Chat,
            chat(json!({"type": "file", "file": {"file_id": "f"}})),
            "messages[0].content[1].file.file_id",
        ),
        (
            Family::Chat,
            chat(json!({"type": "document_url", "document_url": "https://x/book.pdf"})),
            "messages[0].content[1].document_url",
        ),
        (
            Family::Responses,
            responses(json!({"type": "input_file", "file_id": "f"})),
            "input[0].content[0].file_id",
        ),
        (
            Family::Responses,
            responses(json!({"type": "input_file", "file_url": "https://x"})),
            "input[0].content[0].file_url",
        ),
        (
            Family::Responses,
            ("input", json!([{"type": "item_reference", "id": "i"}])),
            "input[0].type",
        ),
        (
            Family::Messages,
            messages(json!({"type": "image", "source": by_file})),
            "messages[0].content[0].source.file_id",
        ),
        (
            Family::Messages,
            messages(json!({"type": "document", "source": by_url})),
            "messages[0].content[0].source.url",
        ),
    ] {
        let (param, _) = refused(&gateway, &key, family, &with(family, &[field])).await;
        assert!(
            param.starts_with(place),
            "{family}: {param} instead of {place}"
        );
    }
    assert!(upstream.requests().is_empty() && gateway.charges(&key).await.is_empty());
}

#[tokio::test]
async fn refusals_that_libraries_act_on_carry_what_they_look_for() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let thread = with(Family::Messages, &[("thread", json!({"type": "create"}))]);
    let answer = gateway.post(path(Family::Messages), &key, &thread).await;
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status, error["type"].as_str()),
        (400, Some("invalid_request_error"))
    );
    // Exactly what the Anthropic libraries compare with before they go on without a thread.
    assert_eq!(
        error["details"],
        json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]})
    );
    let reference = with(
        Family::Responses,
        &[("input", json!([{"type": "item_reference", "id": "rs_1"}]))],
    );
    let error = gateway
        .post(path(Family::Responses), &key, &reference)
        .await
        .json()["error"]
        .clone();
    assert_eq!(error["details"], json!({"remedies": [{"store": false}]}));
    assert!(
        error["message"].as_str().unwrap().contains("store: false"),
        "{error}"
    );
    let plain = gateway
        .post(
            path(Family::Chat),
            &key,
            &with(Family::Chat, &[("models", json!(["a"]))]),
        )
        .await
        .json();
    let details = json!({"remedies": [{"models": null}]});
    assert_eq!(plain["error"]["details"], details, "{plain}");
}

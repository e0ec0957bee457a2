//! What cannot be a message, an item or a part is refused in every family; what a provider may know passes.
#![expect(clippy::panic, reason = "a failed step is a failed test")]

use farebox_protocol::{BadRequest, Family, Inspection};
use serde_json::{Value, json};

/// Inspects a conversation of a family.
fn inspect(family: Family, conversation: &Value) -> Result<Inspection, BadRequest> {
    let (limit, list) = match family {
        Family::Responses => ("max_output_tokens", "input"),
        _ => ("max_tokens", "messages"),
    };
    let body = json!({ "model": "m", limit: 9, list: conversation });
    family.protocol().inspect(body.to_string().as_bytes(), 0)
}

#[track_caller]
fn refused(family: Family, conversation: Value, param: &str) {
    match inspect(family, &conversation) {
        Ok(_) => panic!("{family}: {conversation} passes"),
        Err(bad) => assert_eq!(bad.param.as_deref(), Some(param), "{family}: {bad:?}"),
    }
}

#[track_caller]
fn passes(family: Family, conversation: Value) {
    if let Err(bad) = inspect(family, &conversation) {
        panic!("{family}: {conversation}: {bad:?}");
    }
}

fn saying(content: Value) -> Value {
    json!([{ "role": "user", "content": content }])
}

#[test]
fn a_message_is_an_object_with_a_role_and_content() {
    for family in Family::ALL {
        let list = family.protocol().conversation_field();
        let at = |place: &str| format!("{list}[0]{place}");
        for message in [json!("words"), json!(5), json!(null), json!(["words"])] {
            refused(family, json!([message]), &at(""));
        }
        for message in [
            json!({ "content": "words" }),
            json!({ "role": null, "content": "words" }),
            json!({ "role": 5, "content": "words" }),
            json!({ "role": "", "content": "words" }),
        ] {
            refused(family, json!([message]), &at(".role"));
        }
        for content in [
            json!(5),
            json!(true),
            json!({ "type": "text", "text": "a" }),
        ] {
            refused(family, saying(content), &at(".content"));
        }
        refused(family, saying(json!(null)), &at(".content"));
        refused(family, json!([{ "role": "user" }]), &at(".content"));
        passes(family, saying(json!("words")));
        passes(family, saying(json!("")));
    }
    let calls =
        json!([{ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } }]);
    passes(
        Family::Chat,
        json!([{ "role": "assistant", "tool_calls": calls }]),
    );
    passes(
        Family::Chat,
        json!([{ "role": "assistant", "content": null, "tool_calls": calls }]),
    );
    // Templates of local models have roles of their own.
    passes(
        Family::Chat,
        json!([{ "role": "ipython", "content": "words" }]),
    );
    refused(
        Family::Messages,
        json!([{ "role": "tool", "content": "words" }]),
        "messages[0].role",
    );
    refused(
        Family::Responses,
        json!([{ "role": "tool", "content": "words" }]),
        "input[0].role",
    );
    passes(
        Family::Messages,
        json!([{ "role": "system", "content": "words" }]),
    );
}

#[test]
fn items_that_are_no_messages_have_a_type_instead_of_a_role() {
    for item in [
        json!({ "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}" }),
        json!({ "type": "function_call_output", "call_id": "c", "output": "words" }),
        json!({ "type": "function_call_output", "call_id": "c", "output": [{ "type": "input_text", "text": "a" }] }),
        json!({ "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "a" }] }),
        json!({ "type": "some_new_item", "content": null }),
        json!({ "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "a" }] }),
        json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "a" }] }),
    ] {
        passes(Family::Responses, json!([item]));
    }
    refused(
        Family::Responses,
        json!([{ "type": "message", "content": "a" }]),
        "input[0].role",
    );
}

#[test]
fn a_part_has_a_type_of_its_family_and_what_it_announces() {
    let picture = json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" });
    let web = "https://example.com/a.png";
    let parts = |family| -> [Value; 2] {
        match family {
            Family::Chat => [
                json!({ "type": "text", "text": "a" }),
                json!({ "type": "image_url", "image_url": { "url": web } }),
            ],
            Family::Responses => [
                json!({ "type": "input_text", "text": "a" }),
                json!({ "type": "input_image", "image_url": web }),
            ],
            Family::Messages => [
                json!({ "type": "text", "text": "a" }),
                json!({ "type": "image", "source": picture }),
            ],
        }
    };
    for family in Family::ALL {
        let at = format!("{}[0].content[0]", family.protocol().conversation_field());
        let own = parts(family);
        passes(family, saying(json!(own)));
        passes(
            family,
            saying(json!([{ "type": "some_new_part", "words": 1 }])),
        );
        for stranger in Family::ALL
            .into_iter()
            .filter(|other| *other != family)
            .flat_map(parts)
        {
            if !own.iter().any(|part| part["type"] == stranger["type"]) {
                refused(family, saying(json!([stranger])), &format!("{at}.type"));
            }
        }
        for part in [json!("words"), json!(5), json!(null)] {
            refused(family, saying(json!([part])), &at);
        }
        refused(
            family,
            saying(json!([{ "text": "a" }])),
            &format!("{at}.type"),
        );
        for text in [json!(5), json!(null), json!({ "value": "a" })] {
            let kind = own[0]["type"].clone();
            refused(
                family,
                saying(json!([{ "type": kind, "text": text }])),
                &format!("{at}.text"),
            );
        }
        let kind = own[1]["type"].clone();
        refused(family, saying(json!([{ "type": kind }])), &at);
        for hollow in [
            json!(null),
            json!({ "url": null }),
            json!({ "detail": "low" }),
        ] {
            let part = json!({ "type": kind, "image_url": hollow, "uuid": "seen-before" });
            let bad = inspect(family, &saying(json!([part]))).map(drop);
            assert!(bad.is_err(), "{family}: {part}");
        }
    }
    let shown =
        json!([{ "type": "tool_result", "tool_use_id": "t", "content": [{ "type": "image" }] }]);
    refused(
        Family::Messages,
        saying(shown),
        "messages[0].content[0].content[0]",
    );
}

#[test]
fn instructions_are_a_text_or_a_list() {
    let with = |family: Family, name: &str, value: Value| {
        let (limit, list) = match family {
            Family::Responses => ("max_output_tokens", "input"),
            _ => ("max_tokens", "messages"),
        };
        let body = json!({ "model": "m", limit: 9, list: saying(json!("a")), name: value });
        family
            .protocol()
            .inspect(body.to_string().as_bytes(), 0)
            .map_err(|bad| bad.param)
    };
    for value in [
        json!(5),
        json!(true),
        json!({ "type": "text", "text": "a" }),
    ] {
        for (family, name) in [
            (Family::Messages, "system"),
            (Family::Responses, "instructions"),
        ] {
            let found = with(family, name, value.clone());
            assert_eq!(found.map(drop), Err(Some(name.to_owned())), "{value}");
        }
    }
    for (value, place) in [
        (json!([5]), "system[0]"),
        (json!([{ "text": "a" }]), "system[0].type"),
    ] {
        let found = with(Family::Messages, "system", value);
        assert_eq!(found.map(drop), Err(Some(place.to_owned())));
    }
    assert!(
        with(
            Family::Messages,
            "system",
            json!([{ "type": "text", "text": "a" }])
        )
        .is_ok()
    );
    assert!(with(Family::Responses, "instructions", json!(null)).is_ok());
}

#[test]
fn a_function_of_the_customers_has_a_name_and_a_schema() {
    let with = |family: Family, tool: &Value| {
        let (limit, list) = match family {
            Family::Responses => ("max_output_tokens", "input"),
            _ => ("max_tokens", "messages"),
        };
        let body = json!({ "model": "m", limit: 9, list: saying(json!("a")), "tools": [tool] });
        let inspected = family.protocol().inspect(body.to_string().as_bytes(), 0);
        inspected
            .map(drop)
            .map_err(|bad| bad.param.unwrap_or_default())
    };
    let schema = json!({ "type": "object" });
    for (family, tool) in [
        (
            Family::Chat,
            json!({ "type": "function", "function": { "name": "f" } }),
        ),
        (
            Family::Chat,
            json!({ "type": "function", "function": { "name": "f", "parameters": schema } }),
        ),
        (
            Family::Chat,
            json!({ "type": "custom", "custom": { "name": "f" } }),
        ),
        (
            Family::Responses,
            json!({ "type": "function", "name": "f", "parameters": null }),
        ),
        (Family::Responses, json!({ "type": "custom", "name": "f" })),
        (
            Family::Messages,
            json!({ "name": "f", "input_schema": schema }),
        ),
        (
            Family::Messages,
            json!({ "type": "custom", "name": "f", "input_schema": schema }),
        ),
        (
            Family::Messages,
            json!({ "type": "bash_20250124", "name": "bash" }),
        ),
    ] {
        assert_eq!(with(family, &tool), Ok(()), "{family}: {tool}");
    }
    for (family, tool, place) in [
        (Family::Chat, json!({ "type": "function" }), "function"),
        (
            Family::Chat,
            json!({ "type": "function", "function": "f" }),
            "function",
        ),
        // As another family writes it.
        (
            Family::Chat,
            json!({ "type": "function", "name": "f" }),
            "function",
        ),
        (
            Family::Chat,
            json!({ "type": "function", "function": {} }),
            "function.name",
        ),
        (
            Family::Chat,
            json!({ "type": "function", "function": { "name": 5 } }),
            "function.name",
        ),
        (
            Family::Chat,
            json!({ "type": "function", "function": { "name": "f", "parameters": [] } }),
            "function.parameters",
        ),
        (
            Family::Responses,
            json!({ "type": "function", "function": { "parameters": schema } }),
            "name",
        ),
        (
            Family::Responses,
            json!({ "type": "function", "name": "f", "parameters": "x" }),
            "parameters",
        ),
        (Family::Messages, json!({ "name": "f" }), "input_schema"),
        (
            Family::Messages,
            json!({ "name": "f", "input_schema": 5 }),
            "input_schema",
        ),
        (Family::Messages, json!({ "input_schema": schema }), "name"),
    ] {
        assert_eq!(
            with(family, &tool),
            Err(format!("tools[0].{place}")),
            "{family}: {tool}"
        );
    }
}

/// With one of these items a model may write more than it shows, whatever the request says beside the conversation.
#[test]
fn items_that_change_the_effort_or_compact_are_known_to_hide_output() {
    let asked = |items: Value, reasoning: Value| {
        let (first, last) = (json!({ "reasoning": reasoning }), json!({ "input": items }));
        [[&first, &last], [&last, &first]].map(|order| {
            let members = order.map(|part| part.to_string());
            let [one, other] = members.map(|part| part[1..part.len() - 1].to_owned());
            let body = format!(r#"{{"model":"m",{one},{other}}}"#);
            let protocol = Family::Responses.protocol();
            let seen = protocol.inspect(body.as_bytes(), 0).expect("a request");
            (seen.thinking.hidden, seen.thinking.off)
        })
    };
    let (off, hi) = (
        json!({"effort": "none"}),
        json!({"role": "user", "content": "hi"}),
    );
    assert_eq!(asked(json!([hi]), off.clone()), [(false, true); 2]);
    for kind in ["configuration_update", "compaction_trigger"] {
        let items = json!([hi, {"type": kind, "reasoning": {"effort": "high"}}]);
        assert_eq!(asked(items, off.clone()), [(true, false); 2], "{kind}");
    }
}

//! A seal comes back as it was made, after the words that it was made for: everything else is refused, and the refusal says so.

use farebox_doubles::{Vendor, judge_body, seal};
use serde_json::{Value, json};

/// A conversation whose second turn thought, said something and called a tool, as an honest client sends it back.
fn native() -> Value {
    let mut body = json!({"model": "claude-sonnet-5-5", "max_tokens": 4096, "thinking": {"type": "adaptive"},
        "system": "Be brief.",
        "tools": [{"name": "f", "input_schema": {"type": "object"}}, {"name": "g", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": "a"}]});
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": seal::signature(&body, &[], "hm")});
    let said = json!({"type": "text", "text": "I look."});
    let again = seal::signature(&body, &[thought.clone(), said.clone()], "");
    let content = json!([thought, said, {"type": "redacted_thinking", "data": again}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]);
    if let Some(turns) = body["messages"].as_array_mut() {
        turns.push(json!({"role": "assistant", "content": content}));
        turns.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "1"}]}));
    }
    body
}

fn refused(path: &str, body: &Value) -> Option<String> {
    let vendor = farebox_doubles::defined_by(path);
    let judged = judge_body(vendor, path, body.to_string().as_bytes());
    judged.err().map(|refusal| refusal.body)
}

fn changed(change: impl FnOnce(&mut Value)) -> Option<String> {
    let mut body = native();
    change(&mut body);
    refused("/v1/messages", &body)
}

#[test]
fn an_honest_conversation_goes_on() {
    assert_eq!(changed(|_| ()), None);
    // Marks of the cache move from turn to turn; a text alone is a block; new words come at the end.
    let moved = |body: &mut Value| {
        let mark = json!({"type": "ephemeral"});
        body["system"] = json!([{"type": "text", "text": "Be brief.", "cache_control": mark}]);
        body["messages"][0]["content"] =
            json!([{"type": "text", "text": "a", "cache_control": mark}]);
    };
    // A system prompt as a list is another one to the service, so only the message may be written otherwise.
    assert!(changed(moved).is_some());
    let marked = |body: &mut Value| {
        body["messages"][0]["content"] =
            json!([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]);
        body["messages"][2]["content"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "text", "text": "Go on."}));
    };
    assert_eq!(changed(marked), None);
}

#[test]
fn what_stands_before_a_thought_stays() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 6] = [
        ("system", |body| body["system"] = json!("Be long.")),
        ("tools", |body| {
            body["tools"].as_array_mut().unwrap().reverse();
        }),
        ("an earlier message", |body| {
            body["messages"][0]["content"] = json!("b");
        }),
        ("a thought left out", |body| {
            body["messages"][1]["content"]
                .as_array_mut()
                .unwrap()
                .remove(0);
        }),
        ("a text before a thought", |body| {
            body["messages"][1]["content"][1]["text"] = json!("I will look.");
        }),
        ("a turn put before", |body| {
            let said = json!({"role": "user", "content": "earlier"});
            body["messages"].as_array_mut().unwrap().insert(0, said);
        }),
    ];
    for (what, change) in changes {
        let words = changed(change).unwrap_or_else(|| panic!("{what} may change"));
        assert!(
            words.contains("bound to a different conversation"),
            "{what}: {words}"
        );
        // Earlier models look at the block alone, and so do later ones where the caller asks for it.
        let earlier = |body: &mut Value| {
            change(body);
            body["model"] = json!("claude-opus-5");
        };
        assert_eq!(changed(earlier), None, "{what}");
        let dropped = |body: &mut Value| {
            change(body);
            body["thinking"]["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
        };
        assert_eq!(changed(dropped), None, "{what}");
    }
}

#[test]
fn a_thought_of_somebody_else_or_with_other_words_is_refused_by_every_model() {
    for seal in ["EqQBforeign", "fbx1.plain", ""] {
        let foreign = |body: &mut Value| {
            body["model"] = json!("claude-opus-5");
            body["messages"][1]["content"][0]["signature"] = json!(seal);
        };
        let words = changed(foreign).expect("a refusal");
        assert!(words.contains("Invalid `signature`"), "{words}");
    }
    let other = |body: &mut Value| {
        body["model"] = json!("claude-opus-5");
        body["messages"][1]["content"][0]["thinking"] = json!("hm!");
    };
    assert!(changed(other).is_some());
}

/// Reasoning and a call that needs it.
fn items() -> Vec<Value> {
    let answer = seal::answer_name(&json!({"input": "a"}));
    vec![
        json!({"role": "user", "content": "a"}),
        json!({"type": "reasoning", "id": seal::item_id("rs", &answer, 0), "summary": [], "encrypted_content": seal::encrypted(&answer)}),
        json!({"type": "function_call", "id": seal::item_id("fc", &answer, 1), "call_id": "c", "name": "f", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "c", "output": "1"}),
    ]
}

fn said_of(items: &[Value]) -> Option<String> {
    let body = json!({"model": "gpt-5.4-mini", "input": items, "store": false});
    refused("/v1/responses", &body)
}

#[test]
fn reasoning_goes_with_its_call_and_is_read_by_who_encrypted_it() {
    assert_eq!(said_of(&items()), None);
    let mut foreign = items();
    foreign[1]["encrypted_content"] = json!("gAAAforeign");
    let words = said_of(&foreign).expect("a refusal");
    assert!(
        words.contains(r#""code":"invalid_encrypted_content""#),
        "{words}"
    );
    let mut alone = items();
    alone.remove(1);
    let words = said_of(&alone).expect("a refusal");
    assert!(
        words.contains("without its required 'reasoning' item"),
        "{words}"
    );
    let mut without = items();
    without.truncate(2);
    without.push(json!({"role": "user", "content": "b"}));
    let words = said_of(&without).expect("a refusal");
    assert!(
        words.contains("without its required following item"),
        "{words}"
    );
    // An id can be left out: nobody then knows what the call needs.
    alone[1].as_object_mut().unwrap().remove("id");
    assert_eq!(said_of(&alone), None);
}

#[test]
fn a_call_of_gemini_comes_back_with_its_own_signature() {
    let signed = |signature: &str| {
        let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": signature}}});
        let body = json!({"model": "gemini-3.8-flash", "messages": [{"role": "user", "content": "a"},
            {"role": "assistant", "content": null, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "1"}]});
        judge_body(
            Vendor::Gemini,
            "/chat/completions",
            body.to_string().as_bytes(),
        )
        .is_ok()
    };
    assert!(signed(&seal::thought_signature("f", "{}")));
    assert!(signed("skip_thought_signature_validator"));
    assert!(!signed("EqQB") && !signed("fbx1.plain"));
}

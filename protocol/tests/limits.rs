//! An output limit stands in the field that the provider reads, and in no other one.
#![expect(clippy::expect_used, reason = "a failed step is a failed test")]

use farebox_protocol::{ChatLimit, Edits, Family};
use serde_json::{Value, json};

/// The limit fields of a chat request as a provider gets them.
fn sent(fields: &str, chat: ChatLimit, limit: Option<u32>) -> Value {
    let body = format!(
        r#"{{ "model" : "m" ,{fields} "messages":[{{"role":"user","content":"max_tokens"}}] }}"#
    );
    let protocol = Family::Chat.protocol();
    let seen = protocol.inspect(body.as_bytes(), 0).expect("a request");
    let declared = seen.places.limit.as_ref().map(|(name, _)| *name);
    let edits = Edits {
        model: "up",
        limit_field: protocol.limit_field(chat, declared),
        limit,
        ..Edits::default()
    };
    let patched = protocol.patch(body.as_bytes(), &seen, &edits);
    let mut sent: Value = serde_json::from_slice(&patched).expect("JSON");
    assert_eq!(sent["messages"][0]["content"], "max_tokens");
    let members = sent.as_object_mut().expect("an object");
    members.remove("messages");
    members.remove("model");
    sent
}

#[test]
fn a_declared_limit_moves_into_the_field_that_is_read() {
    let (old, new, both) = (
        r#""max_tokens" : 7 ,"#,
        r#""max_completion_tokens":7,"#,
        r#""max_tokens":7,"max_completion_tokens": 7,"#,
    );
    let (nulled, other) = (
        r#""max_completion_tokens":null,"max_tokens":7,"#,
        r#""max_completion_tokens":7,"max_tokens":null,"#,
    );
    for declared in [old, new, both, nulled, other] {
        for (limit, value) in [(None, 7), (Some(7), 7), (Some(5), 5)] {
            assert_eq!(
                sent(declared, ChatLimit::MaxTokens, limit),
                json!({ "max_tokens": value }),
                "{declared}"
            );
            assert_eq!(
                sent(declared, ChatLimit::MaxCompletionTokens, limit),
                json!({ "max_completion_tokens": value }),
                "{declared}"
            );
        }
    }
    // A provider of whom nothing is known gets it as it was declared.
    for declared in [old, nulled, both] {
        let kept = sent(declared, ChatLimit::AsDeclared, Some(5));
        assert_eq!(kept, json!({ "max_tokens": 5 }), "{declared}");
    }
    for declared in [new, other] {
        let kept = sent(declared, ChatLimit::AsDeclared, None);
        assert_eq!(kept, json!({ "max_completion_tokens": 7 }), "{declared}");
    }
}

#[test]
fn a_limit_that_nobody_declared_is_written_where_it_is_read_and_a_null_elsewhere_goes() {
    let (old, new) = (r#""max_tokens":null,"#, r#""max_completion_tokens":null,"#);
    for declared in ["", old, new] {
        let known = ChatLimit::MaxTokens;
        assert_eq!(sent(declared, known, Some(5)), json!({ "max_tokens": 5 }));
        let known = ChatLimit::MaxCompletionTokens;
        let expected = json!({ "max_completion_tokens": 5 });
        assert_eq!(sent(declared, known, Some(5)), expected);
        assert_eq!(sent(declared, ChatLimit::AsDeclared, Some(5)), expected);
    }
    assert_eq!(sent("", ChatLimit::MaxTokens, None), json!({}));
    assert_eq!(sent(new, ChatLimit::MaxTokens, None), json!({}));
    let kept = sent(old, ChatLimit::MaxTokens, None);
    assert_eq!(kept, json!({ "max_tokens": null }), "null is no limit");
}

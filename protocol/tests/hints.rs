//! Hints that a service refuses by their names are left out for it, and for nobody else.
#![expect(clippy::expect_used, reason = "a failed step is a failed test")]

use farebox_protocol::translate::Abilities;
use farebox_protocol::translate::{EncodeTarget, request};
use farebox_protocol::{Edits, Family, TargetFit};
use serde_json::{Value, json};

fn patched(body: &Value, leave_out: &[String]) -> (Value, String) {
    let (protocol, text) = (Family::Chat.protocol(), body.to_string());
    let seen = protocol.inspect(text.as_bytes(), 0).expect("a request");
    let mut fit = TargetFit::default();
    fit.abilities.leave_out = leave_out.to_vec();
    let edits = Edits {
        model: "up",
        limit_field: "max_tokens",
        fit: &fit,
        ..Edits::default()
    };
    let sent = protocol.patch(text.as_bytes(), &seen, &edits);
    (
        serde_json::from_slice(&sent).expect("JSON"),
        seen.removed(&fit),
    )
}

#[test]
fn the_bytes_of_the_targets_own_family_lose_only_what_is_refused() {
    let words = json!([{"role": "user", "content": "a"}]);
    let hints = json!({"user": "u", "model": "m", "stream": true, "store": true, "messages": words,
        "stream_options": {"include_usage": false}, "prompt_cache_key": "k"});
    let every = json!({"user": "u", "model": "up", "stream": true, "store": false, "messages": words,
        "stream_options": {"include_usage": true}, "prompt_cache_key": "k"});
    assert_eq!(patched(&hints, &[]), (every, String::new()));

    let refused = ["user", "store", "stream_options"].map(str::to_owned);
    let rest = json!({"model": "up", "stream": true, "messages": words, "prompt_cache_key": "k"});
    // Nothing is stored and usage comes all the same, so only the user is missed.
    assert_eq!(patched(&hints, &refused), (rest, "user".to_owned()));

    let plain = json!({"model": "m", "stream": true, "messages": words});
    let sent = patched(&plain, &refused).0;
    assert_eq!(sent.get("stream_options"), None, "nor is it added");
}

#[test]
fn a_penalty_of_nothing_is_a_hint_and_any_other_is_a_wish() {
    let words = json!([{"role": "user", "content": "a"}]);
    let refused = ["frequency_penalty", "presence_penalty", "metadata"].map(str::to_owned);
    let asked = json!({"model": "m", "messages": words, "frequency_penalty": 0, "presence_penalty": 0.5, "metadata": {"a": "b"}});
    let mut sent = json!({"model": "up", "messages": words, "presence_penalty": 0.5});
    assert_eq!(patched(&asked, &refused), (sent, "metadata".to_owned()));
    sent = asked.clone();
    sent["model"] = "up".into();
    assert_eq!(patched(&asked, &[]), (sent, String::new()));
    for none in [json!(null), json!(-0.0), json!(0e5)] {
        let asked = json!({"model": "m", "messages": words, "frequency_penalty": none});
        let sent = json!({"model": "up", "messages": words});
        assert_eq!(patched(&asked, &refused), (sent, String::new()), "{none}");
    }
}

fn encoded(abilities: &Abilities, body: &Value) -> (Value, String) {
    let target = EncodeTarget {
        model: "up",
        abilities,
    };
    let done = request(
        Family::Responses,
        Family::Chat,
        body.to_string().as_bytes(),
        &target,
    );
    let done = done.expect("a translation");
    let sent = serde_json::from_slice(&done.body).expect("JSON");
    (sent, done.losses.header())
}

#[test]
fn a_translated_request_names_the_hints_that_it_lost() {
    let body = json!({"model": "m", "input": "a", "stream": true, "prompt_cache_key": "k",
        "safety_identifier": "u", "service_tier": "default"});
    let (sent, lost) = encoded(&Abilities::careful(Family::Chat), &body);
    assert_eq!(
        (&sent["prompt_cache_key"], lost.as_str()),
        (&json!("k"), "")
    );
    let abilities = Abilities {
        leave_out: ["prompt_cache_key", "user", "service_tier", "stream_options"]
            .map(str::to_owned)
            .to_vec(),
        ..Abilities::careful(Family::Chat)
    };
    let (sent, lost) = encoded(&abilities, &body);
    let words = json!([{"role": "user", "content": "a"}]);
    assert_eq!(
        sent,
        json!({"model": "up", "messages": words, "stream": true})
    );
    assert_eq!(lost, "prompt_cache_key=dropped, user=dropped");
}

#[test]
fn a_target_that_wants_signed_calls_is_told_that_they_were_made_elsewhere() {
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let result = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "1"});
    let body = json!({"model": "m", "input": [{"role": "user", "content": "a"}, call("c1"), call("c2"), result("c1"), result("c2")],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]});
    let abilities = Abilities {
        signed_calls: true,
        ..Abilities::careful(Family::Chat)
    };
    let (sent, _) = encoded(&abilities, &body);
    let calls = &sent["messages"][1]["tool_calls"];
    assert_eq!(
        calls[0]["extra_content"]["google"]["thought_signature"],
        "skip_thought_signature_validator"
    );
    assert_eq!(
        calls[1].get("extra_content"),
        None,
        "the first speaks for all"
    );
}

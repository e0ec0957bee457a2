//! Answers about which users of other gateways complained in public: without counts, with torn calls, compressed, whole instead of
//! streamed, or failed behind an opening. Each for callers and targets of all families, and charged to the picodollar.

mod calls;
mod coded;
mod counts;
mod openings;

use farebox_ledger::JournalEntry;
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::translation::frames;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, TestKey, ask, path};

/// Every caller with every target.
pub(super) fn all_ways() -> impl Iterator<Item = (Family, Family)> {
    let callers = Family::ALL.into_iter();
    callers.flat_map(|caller| Family::ALL.into_iter().map(move |target| (caller, target)))
}

/// A request that asks for usage, if its family has to.
pub(super) fn asking(caller: Family, stream: bool) -> Value {
    let mut body = ask(caller, "test-model", stream);
    if caller == Family::Chat && stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

pub(super) async fn post(gateway: &Gateway, key: &TestKey, caller: Family, stream: bool) -> Answer {
    let answer = (gateway.post(path(caller), key, &asking(caller, stream))).await;
    assert_eq!(answer.status, 200, "{caller} {stream}: {}", answer.text);
    answer
}

/// The only charge of a key.
pub(super) async fn charged(gateway: &Gateway, key: &TestKey) -> JournalEntry {
    gateway.settled().await;
    let mut charges = gateway.charges(key).await;
    assert_eq!(charges.len(), 1, "{charges:?}");
    charges.pop().unwrap()
}

/// The routes of `test-model` to two upstreams of this family, in order.
pub(super) fn two(first: &ScriptedUpstream, second: &ScriptedUpstream, speaks: Family) -> String {
    let provider = |name: &str, upstream: &ScriptedUpstream| {
        let base = upstream.base_url();
        format!(
            "[provider.{name}]\nbase_url = \"{base}\"\nspeaks = [\"{speaks}\"]\nkey = {{ env = \"KEY\" }}\n"
        )
    };
    let (first, second) = (provider("first", first), provider("second", second));
    format!(
        "{first}{second}[[route]]\nslug = \"test-model\"\n\
         targets = [ {{ provider = \"first\", model = \"one\" }}, {{ provider = \"second\", model = \"two\" }} ]\n\
         [[route]]\nslug = \"test-blind\"\ntargets = [ {{ provider = \"first\", model = \"blind\" }} ]\n"
    )
}

/// The calls that a client's library finds in an answer: names and arguments.
pub(super) fn calls(caller: Family, answer: &Value) -> Vec<(String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parsed = |value: &Value| serde_json::from_str(&text(value)).unwrap_or(Value::Null);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match caller {
        Family::Chat => (list(&answer["choices"][0]["message"]["tool_calls"]).iter())
            .map(|call| {
                (
                    text(&call["function"]["name"]),
                    parsed(&call["function"]["arguments"]),
                )
            })
            .collect(),
        Family::Responses => (list(&answer["output"]).iter())
            .map(|call| (text(&call["name"]), parsed(&call["arguments"])))
            .collect(),
        Family::Messages => (list(&answer["content"]).iter())
            .map(|call| (text(&call["name"]), call["input"].clone()))
            .collect(),
    }
}

/// Whether each call has one first piece with all that clients want, and the others have the index alone.
pub(super) fn is_strict(text: &str) -> bool {
    let mut seen = Vec::new();
    let chunks = frames(text);
    let deltas = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"]);
    deltas.filter_map(Value::as_array).flatten().all(|piece| {
        let index = piece["index"].as_u64();
        let (id, name) = (piece["id"].as_str(), piece["function"]["name"].as_str());
        let first = !seen.contains(&index);
        seen.push(index);
        let named = [id, name].map(|word| word.is_some_and(|word| !word.is_empty()));
        index.is_some() && named == [first; 2] && (!first || piece["type"] == "function")
    })
}

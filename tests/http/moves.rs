//! Conversations that move between models in the middle of a tool loop, forth and back: six kinds of models, three kinds of clients.
//!
//! The vendors here are as strict as the published rules (`docs/translation.md`, "Thinking"): a seal is read only by who made it, native
//! ones only behind the very words they followed; with a thinking budget the last calls begin with their signed block; an id that a
//! vendor did not give is not found; a call's id demands its reasoning item. Clients send back what they got, as their vendors' own
//! libraries do.

use farebox_doubles::Vendor::{OpenAi, OpenRouter, Vllm};
use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Script, ScriptedUpstream};
use crate::support::{Gateway, TestKey, path};

mod vendor;

use vendor::Vendor;

/// The kinds of models: a vendor's family, and whether its thinking can be read or is sealed.
const KINDS: [(Family, bool); 6] = [
    (Family::Chat, false),
    (Family::Chat, true),
    (Family::Responses, false),
    (Family::Responses, true),
    (Family::Messages, false),
    (Family::Messages, true),
];

/// How many tools a conversation calls before it ends.
const CALLS: usize = 4;

fn slug((family, sealed): (Family, bool)) -> String {
    format!("{family}-{}", if sealed { "sealed" } else { "readable" })
}

/// A client of one family, with its conversation.
struct Client {
    family: Family,
    turns: Vec<Value>,
}

impl Client {
    fn new(family: Family) -> Self {
        let turns = vec![json!({"role": "user", "content": "look around"})];
        Self { family, turns }
    }

    fn body(&self, slug: &str) -> Value {
        let schema = json!({"type": "object", "properties": {}});
        let mut body = match self.family {
            Family::Chat => json!({"messages": self.turns, "reasoning_effort": "medium",
                "tools": [{"type": "function", "function": {"name": "look", "parameters": schema}}]}),
            Family::Responses => {
                json!({"input": self.turns, "reasoning": {"effort": "medium", "summary": "auto"},
                "include": ["reasoning.encrypted_content"],
                "tools": [{"type": "function", "name": "look", "parameters": schema, "strict": false}]})
            }
            Family::Messages => json!({"messages": self.turns, "max_tokens": 8_000,
                "thinking": {"type": "enabled", "budget_tokens": 2_000},
                "tools": [{"name": "look", "input_schema": schema}]}),
        };
        body["model"] = json!(slug);
        body
    }

    /// Takes an answer into the conversation as it came, and gives results for its calls. Returns whether it called.
    fn take(&mut self, answer: &Value) -> bool {
        let (said, results): (Vec<Value>, Vec<Value>) = match self.family {
            Family::Chat => {
                let message = answer["choices"][0]["message"].clone();
                let calls = message["tool_calls"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                let results = calls.iter().map(
                    |call| json!({"role": "tool", "tool_call_id": call["id"], "content": "a room"}),
                );
                (vec![message], results.collect())
            }
            Family::Responses => {
                let output = answer["output"].as_array().unwrap().clone();
                let calls = output.iter().filter(|item| item["type"] == "function_call");
                let results = calls.map(|call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "a room"}));
                let results = results.collect();
                (output, results)
            }
            Family::Messages => {
                let content = answer["content"].as_array().unwrap().clone();
                let calls = content.iter().filter(|block| block["type"] == "tool_use");
                let results: Vec<Value> = calls
                    .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "a room"}))
                    .collect();
                let turn = json!({"role": "user", "content": results});
                let called = !results.is_empty();
                let said = json!({"role": "assistant", "content": content});
                (vec![said], called.then_some(turn).into_iter().collect())
            }
        };
        let called = !results.is_empty();
        self.turns.extend(said);
        self.turns.extend(results);
        called
    }

    async fn turn(&mut self, gateway: &Gateway, key: &TestKey, slug: &str, stream: bool) -> bool {
        let mut body = self.body(slug);
        body["stream"] = json!(stream);
        let answer = gateway.post(path(self.family), key, &body).await;
        assert_eq!(
            answer.status, 200,
            "{} to {slug}: {}\n{body}",
            self.family, answer.text
        );
        self.take(&if stream {
            folded(self.family, &answer.text)
        } else {
            answer.json()
        })
    }
}

/// A stream as the whole answer that a client's library makes of it.
fn folded(family: Family, text: &str) -> Value {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: {"));
    let events: Vec<Value> = data
        .map(|data| serde_json::from_str(&format!("{{{data}")).unwrap())
        .collect();
    let add = |to: &mut Value, more: &Value| {
        if let Some(more) = more.as_str() {
            *to = json!(to.as_str().unwrap_or_default().to_owned() + more);
        }
    };
    match family {
        Family::Responses => events.last().unwrap()["response"].clone(),
        Family::Chat => {
            let mut message = json!({"role": "assistant", "content": null});
            for event in events {
                let delta = &event["choices"][0]["delta"];
                for name in ["content", "reasoning_content"] {
                    add(&mut message[name], &delta[name]);
                }
                if delta["reasoning_details"].is_array() {
                    message["reasoning_details"] = delta["reasoning_details"].clone();
                }
                let call = &delta["tool_calls"][0];
                if call["id"].is_string() {
                    message["tool_calls"] = json!([call]);
                } else if call.is_object() {
                    add(
                        &mut message["tool_calls"][0]["function"]["arguments"],
                        &call["function"]["arguments"],
                    );
                }
            }
            json!({"choices": [{"message": message}]})
        }
        Family::Messages => {
            let mut content: Vec<Value> = Vec::new();
            for event in events {
                let Some(last) = content.last_mut() else {
                    content.extend(event.get("content_block").cloned());
                    continue;
                };
                for name in ["text", "thinking", "signature"] {
                    add(&mut last[name], &event["delta"][name]);
                }
                content.extend(event.get("content_block").cloned());
            }
            for block in &mut content {
                let block = block.as_object_mut().unwrap();
                block.retain(|_, value| !value.is_null());
            }
            json!({"content": content})
        }
    }
}

async fn gateway(vendors: &[ScriptedUpstream]) -> Gateway {
    let (mut catalog, mut routes) = (String::new(), String::new());
    for (kind, vendor) in KINDS.into_iter().zip(vendors) {
        let (name, family) = (slug(kind), kind.0);
        // A budget for one kind of native models, adaptive thinking for the other.
        let thinking = match kind {
            (Family::Messages, false) => "budget",
            (Family::Messages, true) => "adaptive",
            _ => "effort",
        };
        catalog += &format!(
            "[[model]]\nmodel = \"{name}\"\nslug = \"{name}\"\nprovider = \"Tests\"\nbest_path = \"{family}\"\n\
             best_environments = [\"tests\"]\nprice = {{ input = \"1.00\", output = \"2.00\" }}\n\
             capabilities = [\"tools\", \"streaming\", \"reasoning\"]\nlimits = {{ context = 200_000, max_output = 64_000 }}\n"
        );
        routes += &format!(
            "[provider.{name}]\nkey = {{ env = \"KEY\" }}\nbase_url = \"{}\"\nspeaks = [\"{family}\"]\n\
             [[route]]\nslug = \"{name}\"\ntargets = [ {{ provider = \"{name}\", model = \"m\", abilities = {{ thinking = \"{thinking}\" }} }} ]\n",
            vendor.base_url()
        );
    }
    Gateway::start(&catalog, &routes).await
}

/// Every kind of model to every other and back, twice, for clients of every family.
#[tokio::test]
async fn a_tool_loop_goes_on_between_all_models_and_back() {
    let mut vendors = Vec::new();
    for kind in KINDS {
        let mut vendor = Vendor::new(kind);
        let script = Script::by(move |seen, _| vendor.answer(seen));
        vendors.push(match kind {
            (Family::Chat, false) => ScriptedUpstream::playing(Vllm, script).await,
            (Family::Chat, true) => ScriptedUpstream::playing(OpenRouter, script).await,
            // Its own judge knows what such a server remembers; the double is the vendor's, whose reasoning is always sealed.
            (Family::Responses, false) => ScriptedUpstream::tolerant(script).await,
            // It refuses reasoning of others, which is then left out and the request repeated.
            (Family::Responses, true) => ScriptedUpstream::refusing(OpenAi, script).await,
            _ => ScriptedUpstream::start(script).await,
        });
    }
    let gateway = gateway(&vendors).await;
    let key = gateway.key("50.00").await;
    for family in Family::ALL {
        for one in KINDS {
            for other in KINDS {
                let mut client = Client::new(family);
                for turn in 0..=CALLS {
                    let model = slug(if turn % 2 == 0 { one } else { other });
                    // Both models answer in both forms.
                    let stream = turn % 4 > 1;
                    let called = client.turn(&gateway, &key, &model, stream).await;
                    assert_eq!(
                        called,
                        turn < CALLS,
                        "{family} from {one:?} to {other:?}, turn {turn}"
                    );
                }
            }
        }
    }
    gateway.stop().await;
}

#[test]
fn the_vendors_are_strict() {
    let bad = |kind, body: Value| {
        let vendor = Vendor::new(kind);
        let judged = match kind.0 {
            Family::Chat => vendor.judge_chat(&body),
            Family::Responses => vendor.judge_items(&body),
            Family::Messages => vendor.judge_native(&body),
        };
        assert!(judged.is_err(), "{body}");
    };
    let call = json!({"type": "tool_use", "id": "t", "name": "look", "input": {}});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]});
    let native = |content: Value| json!({"thinking": {"type": "enabled"}, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": content}, result]});
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "foreign"});
    bad((Family::Messages, false), native(json!([thought, call])));
    bad((Family::Messages, true), native(json!([call])));
    let item =
        |item: Value| json!({"store": false, "input": [item, {"role": "user", "content": "q"}]});
    bad(
        (Family::Responses, true),
        item(json!({"type": "reasoning", "summary": [], "encrypted_content": "foreign"})),
    );
    bad(
        (Family::Responses, false),
        item(json!({"type": "message", "role": "assistant", "id": "msg_foreign", "content": "a"})),
    );
    bad(
        (Family::Responses, false),
        item(json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})),
    );
    bad(
        (Family::Chat, true),
        json!({"messages": [{"role": "assistant", "reasoning_details": [{"data": "foreign"}]}]}),
    );
    bad(
        (Family::Chat, false),
        json!({"messages": [{"role": "tool", "tool_call_id": "c", "content": "r"}]}),
    );
}

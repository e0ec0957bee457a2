//! A vendor that is as strict as the published rules about what it made, and plays a loop of tools.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::CALLS;
use crate::support::upstream::{Reply, Seen};

/// A refusal: status, code and words.
pub(super) type Refused = (u16, Option<&'static str>, String);

fn bad(words: impl Into<String>) -> Refused {
    (400, None, words.into())
}

/// A vendor and what it remembers of what it made.
pub(super) struct Vendor {
    family: Family,
    sealed: bool,
    /// Each seal, and what stood before it.
    seals: HashMap<String, u64>,
    /// The ids of items; of a call, with its reasoning item.
    ids: HashMap<String, Option<String>>,
    made: usize,
}

impl Vendor {
    pub(super) fn new((family, sealed): (Family, bool)) -> Self {
        Self {
            family,
            sealed,
            seals: HashMap::new(),
            ids: HashMap::new(),
            made: 0,
        }
    }

    pub(super) fn answer(&mut self, seen: &Seen) -> Reply {
        let body = seen.json();
        assert!(
            !body.to_string().contains("fbx"),
            "what we made up reached a vendor: {body}"
        );
        let judged = match self.family {
            Family::Chat => self.judge_chat(&body),
            Family::Responses => self.judge_items(&body),
            Family::Messages => self.judge_native(&body),
        };
        if let Err((status, code, words)) = judged {
            return match self.family {
                Family::Messages => Reply::native_error(status, "invalid_request_error", &words),
                _ => Reply::error(status, "invalid_request_error", code, &words),
            };
        }
        self.made += 1;
        let whole = match self.family {
            Family::Chat => self.say_chat(&body),
            Family::Responses => self.say_items(&body),
            Family::Messages => self.say_native(&body),
        };
        if body["stream"] == true {
            Reply::events(frames(self.family, &whole))
        } else {
            Reply::json(200, &whole)
        }
    }

    fn name(&self, kind: &str) -> String {
        format!("{kind}_{}{}{}", self.family, self.sealed, self.made)
    }

    fn seal(&mut self, before: u64) -> String {
        let seal = self.name("seal");
        self.seals.insert(seal.clone(), before);
        seal
    }

    pub(super) fn judge_chat(&self, body: &Value) -> Result<(), Refused> {
        let messages = body["messages"].as_array().unwrap();
        let mut open: Vec<&str> = Vec::new();
        for message in messages {
            if message["role"] == "tool" {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let at = open.iter().position(|open| *open == id);
                open.remove(at.ok_or_else(|| bad(format!("no call {id}")))?);
                continue;
            }
            if !open.is_empty() {
                return Err(bad(
                    "an assistant message with 'tool_calls' must be followed by tool messages",
                ));
            }
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            open.extend(calls.filter_map(|call| call["id"].as_str()));
            for detail in message["reasoning_details"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let seal = detail["data"].as_str().unwrap_or_default();
                if self.sealed && !self.seals.contains_key(seal) {
                    return Err(bad(format!("unknown reasoning data {seal}")));
                }
            }
        }
        if open.is_empty() {
            Ok(())
        } else {
            Err(bad("calls without results"))
        }
    }

    fn say_chat(&mut self, body: &Value) -> Value {
        let mut message = json!({"role": "assistant", "content": null, "refusal": null});
        let results = body["messages"].to_string().matches("tool_call_id").count();
        if self.sealed {
            let seal = self.seal(0);
            message["reasoning_details"] =
                json!([{"type": "reasoning.encrypted", "data": seal, "index": 0}]);
        } else {
            message["reasoning_content"] = json!("hm");
        }
        if results < CALLS {
            message["tool_calls"] = json!([{"id": self.name("call"), "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
        } else {
            message["content"] = json!("done");
        }
        let finish = if results < CALLS {
            "tool_calls"
        } else {
            "stop"
        };
        json!({"id": "c", "object": "chat.completion", "created": 7, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}})
    }

    pub(super) fn judge_items(&self, body: &Value) -> Result<(), Refused> {
        if body["store"] != false {
            return Err(bad("nothing is stored here"));
        }
        let items = body["input"].as_array().unwrap();
        let mut calls: Vec<&str> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let kind = item["type"].as_str().unwrap_or("message");
            let id = item["id"].as_str();
            let content = item["encrypted_content"].as_str();
            if content.is_some_and(|content| !self.seals.contains_key(content)) {
                return Err((
                    400,
                    Some("invalid_encrypted_content"),
                    "The encrypted content could not be verified.".to_owned(),
                ));
            }
            if let Some(id) = id.filter(|id| !self.ids.contains_key(*id)) {
                return Err((
                    404,
                    None,
                    format!(
                        "Item with id '{id}' not found. Items are not persisted when `store` is set to false."
                    ),
                ));
            }
            if kind == "reasoning" {
                if self.sealed && content.is_none() {
                    return Err((
                        404,
                        None,
                        format!("Item with id '{}' not found.", id.unwrap_or_default()),
                    ));
                }
                let next = items
                    .get(at + 1)
                    .map(|next| next["type"].as_str().unwrap_or("message"));
                if !matches!(next, Some("function_call" | "message")) {
                    return Err(bad(
                        "a reasoning item was provided without its required following item",
                    ));
                }
            }
            let needs = id.and_then(|id| self.ids.get(id).cloned().flatten());
            let has = at
                .checked_sub(1)
                .and_then(|before| items[before]["id"].as_str());
            if needs.is_some() && needs.as_deref() != has {
                return Err(bad(
                    "an item was provided without its required 'reasoning' item",
                ));
            }
            match kind {
                "function_call" => calls.push(item["call_id"].as_str().unwrap()),
                "function_call_output" if !calls.contains(&item["call_id"].as_str().unwrap()) => {
                    return Err(bad("no tool call found for this output"));
                }
                _ => {}
            }
        }
        let outputs = items
            .iter()
            .filter(|item| item["type"] == "function_call_output");
        if outputs.count() == calls.len() {
            Ok(())
        } else {
            Err(bad("no tool output found"))
        }
    }

    fn say_items(&mut self, body: &Value) -> Value {
        let results = body["input"]
            .to_string()
            .matches("function_call_output")
            .count();
        let (thought, next) = (self.name("rs"), self.name("fc"));
        self.ids.insert(thought.clone(), None);
        self.ids.insert(next.clone(), Some(thought.clone()));
        let reasoning = if self.sealed {
            json!({"type": "reasoning", "id": thought, "summary": [], "encrypted_content": self.seal(0)})
        } else {
            json!({"type": "reasoning", "id": thought, "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]})
        };
        let item = if results < CALLS {
            json!({"type": "function_call", "id": next, "call_id": self.name("call"), "name": "look", "arguments": "{}", "status": "completed"})
        } else {
            json!({"type": "message", "id": next, "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "done", "annotations": []}]})
        };
        json!({"id": "r", "object": "response", "created_at": 7, "status": "completed", "model": "m", "output": [reasoning, item],
            "usage": {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}})
    }

    pub(super) fn judge_native(&self, body: &Value) -> Result<(), Refused> {
        let messages = body["messages"].as_array().unwrap();
        for (at, message) in messages.iter().enumerate() {
            let blocks = message["content"].as_array().cloned().unwrap_or_default();
            for (number, block) in blocks.iter().enumerate() {
                let seal = match block["type"].as_str().unwrap() {
                    "thinking" => block["signature"].as_str(),
                    "redacted_thinking" => block["data"].as_str(),
                    _ => continue,
                };
                let place = format!(
                    "messages.{at}.content.{number}: Invalid `signature` in `thinking` block"
                );
                let before = seal.and_then(|seal| self.seals.get(seal));
                let before = before.ok_or_else(|| bad(place.clone()))?;
                if self.sealed && *before != prefix(body, at) {
                    return Err(bad(format!(
                        "{place}. The block is bound to a different conversation."
                    )));
                }
            }
            let of = |blocks: &[Value], kind: &str, name: &str| -> Vec<Value> {
                let found = blocks.iter().filter(|block| block["type"] == kind);
                found.map(|block| block[name].clone()).collect()
            };
            let next = messages
                .get(at + 1)
                .and_then(|next| next["content"].as_array());
            let results = of(
                next.map_or(&[], Vec::as_slice),
                "tool_result",
                "tool_use_id",
            );
            if of(&blocks, "tool_use", "id") != results {
                return Err(bad(format!(
                    "messages.{at}: `tool_use` ids were found without `tool_result` blocks"
                )));
            }
        }
        let last = messages
            .iter()
            .rev()
            .find(|message| message["role"] == "assistant");
        let starts = last.map(|last| last["content"][0]["type"].as_str().unwrap_or_default());
        let calls = last.is_some_and(|last| last["content"].to_string().contains("tool_use"));
        if body["thinking"]["type"] == "enabled" && calls && !starts.unwrap().ends_with("thinking")
        {
            return Err(bad(
                "Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
            ));
        }
        Ok(())
    }

    fn say_native(&mut self, body: &Value) -> Value {
        let results = body["messages"].to_string().matches("tool_use_id").count();
        let mut content = Vec::new();
        if matches!(
            body["thinking"]["type"].as_str(),
            Some("enabled" | "adaptive")
        ) {
            let seal = self.seal(prefix(body, body["messages"].as_array().unwrap().len()));
            content.push(if self.sealed {
                json!({"type": "redacted_thinking", "data": seal})
            } else {
                json!({"type": "thinking", "thinking": "hm", "signature": seal})
            });
        }
        content.push(if results < CALLS {
            json!({"type": "tool_use", "id": self.name("toolu"), "name": "look", "input": {}})
        } else {
            json!({"type": "text", "text": "done"})
        });
        let stop = if results < CALLS {
            "tool_use"
        } else {
            "end_turn"
        };
        json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": stop,
            "stop_sequence": null, "usage": {"input_tokens": 9, "output_tokens": 9}})
    }
}

/// What stands before a message.
fn prefix(body: &Value, message: usize) -> u64 {
    let mut hash = DefaultHasher::new();
    let messages = &body["messages"].as_array().unwrap()[..message];
    format!("{}{}{messages:?}", body["system"], body["tools"]).hash(&mut hash);
    hash.finish()
}

/// A whole answer as the stream of its family.
fn frames(family: Family, whole: &Value) -> Vec<String> {
    let event = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        format!("event: {kind}\ndata: {data}\n\n")
    };
    match family {
        Family::Chat => {
            let choice = &whole["choices"][0];
            let mut delta = choice["message"].clone();
            if let Some(call) = delta["tool_calls"].get_mut(0) {
                call["index"] = json!(0);
            }
            let chunk = |choices: Value| json!({"id": "c", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": choices});
            let mut last = chunk(json!([]));
            last["usage"] = whole["usage"].clone();
            let said = [
                chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])),
                chunk(json!([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])),
                last,
            ];
            let said = said.iter().map(|chunk| format!("data: {chunk}\n\n"));
            said.chain(["data: [DONE]\n\n".to_owned()]).collect()
        }
        Family::Responses => {
            let mut begun = whole.clone();
            (begun["output"], begun["status"]) = (json!([]), json!("in_progress"));
            let mut out = vec![event("response.created", json!({"response": begun}))];
            for (index, item) in whole["output"].as_array().unwrap().iter().enumerate() {
                out.push(event(
                    "response.output_item.added",
                    json!({"output_index": index, "item": item}),
                ));
                out.push(event(
                    "response.output_item.done",
                    json!({"output_index": index, "item": item}),
                ));
            }
            out.push(event("response.completed", json!({"response": whole})));
            out
        }
        Family::Messages => {
            let mut begun = whole.clone();
            begun["content"] = json!([]);
            let mut out = vec![event("message_start", json!({"message": begun}))];
            for (index, block) in whole["content"].as_array().unwrap().iter().enumerate() {
                out.push(event(
                    "content_block_start",
                    json!({"index": index, "content_block": block}),
                ));
                out.push(event("content_block_stop", json!({"index": index})));
            }
            let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
            out.push(event(
                "message_delta",
                json!({"delta": delta, "usage": {"output_tokens": 9}}),
            ));
            out.push(event("message_stop", json!({})));
            out
        }
    }
}

//! The shapes of requests, each in the words of the three families.

use super::*;
use serde_json::json;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP8zwACTGCSAQANHQEDgslx/wAAAABJRU5ErkJggg==";

/// One shape: its name, and what it adds to a plain request.
pub(super) struct Shape {
    pub(super) name: &'static str,
    add: fn(Family, &mut Value),
}

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: "plain",
        add: |_, _| {},
    },
    Shape {
        name: "streamed",
        add: |_, body| body["stream"] = json!(true),
    },
    Shape {
        name: "tools and results",
        add: tools,
    },
    Shape {
        name: "parallel tools",
        add: |family, body| {
            tools(family, body);
            body["stream"] = json!(true);
        },
    },
    Shape {
        name: "picture",
        add: picture,
    },
    Shape {
        name: "document",
        add: document,
    },
    Shape {
        name: "thinking",
        add: thinking,
    },
    Shape {
        name: "not thinking",
        add: not_thinking,
    },
    Shape {
        name: "structured",
        add: structured,
    },
    Shape {
        name: "long, cached",
        add: cached,
    },
    Shape {
        name: "system midway",
        add: midway,
    },
    Shape {
        name: "moved here",
        add: moved,
    },
    Shape {
        name: "nulls",
        add: nulls,
    },
    Shape {
        name: "left",
        add: |_, body| body["stream"] = json!(true),
    },
    Shape {
        name: "refused",
        add: |_, _| {},
    },
];

impl Shape {
    /// How many calls the model makes before it answers, in a shape of two turns; thinking is sent back without any.
    pub(super) fn calls(&self) -> Option<usize> {
        match self.name {
            "tools and results" => Some(1),
            "parallel tools" => Some(2),
            "thinking" => Some(0),
            _ => None,
        }
    }

    pub(super) fn body(&self, family: Family, slug: &str) -> Value {
        let mut body = crate::support::ask(family, slug, false);
        let limit = match family {
            Family::Responses => "max_output_tokens",
            // What current clients send; the gateway writes it into the field that the provider reads.
            Family::Chat => {
                body.as_object_mut()
                    .expect("an object")
                    .remove("max_tokens");
                "max_completion_tokens"
            }
            Family::Messages => "max_tokens",
        };
        body[limit] = json!(4_096);
        (self.add)(family, &mut body);
        body
    }
}

pub(super) fn list(family: Family) -> &'static str {
    if family == Family::Responses {
        "input"
    } else {
        "messages"
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false})
}

/// A conversation that went on elsewhere, in the middle of a tool loop: with what other services of the family add to their answers.
fn moved(family: Family, body: &mut Value) {
    tools(family, body);
    let history = match family {
        Family::Chat => json!([
            {"role": "assistant", "content": "One moment.", "refusal": null, "annotations": [], "reasoning_content": "Warm?",
                "reasoning": "Warm?", "reasoning_details": [{"type": "reasoning.text", "text": "Warm?", "index": 0}], "tool_calls": [
                {"id": "call_zKq0hX2Vd1Yb7Qm3RtUw", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}},
                {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Rome\"}"},
                    "extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}]},
            {"role": "tool", "tool_call_id": "call_zKq0hX2Vd1Yb7Qm3RtUw", "content": "4 degrees"},
            {"role": "tool", "tool_call_id": "call_2", "content": "19 degrees"}]),
        Family::Responses => json!([
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Oslo\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "4 degrees"}]),
        Family::Messages => json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "4 degrees"}]}]),
    };
    let turns = body[list(family)].as_array_mut().expect("a list");
    turns.extend(history.as_array().expect("a list").iter().cloned());
}

/// What some clients send of chat's optional members; the others, and long marks, in words of their families.
fn nulls(family: Family, body: &mut Value) {
    tools(family, body);
    if family == Family::Chat {
        body["tools"][0]["function"]["strict"] = Value::Null;
        body["messages"] = json!([
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": "Yes?", "refusal": null, "audio": null},
            {"role": "user", "content": "How warm is it?"}]);
    }
}

/// A question that only a tool can answer.
fn tools(family: Family, body: &mut Value) {
    let tool = match family {
        Family::Chat => {
            json!({"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": schema()}})
        }
        Family::Responses => {
            json!({"type": "function", "name": "weather", "description": "The weather", "parameters": schema(), "strict": true})
        }
        Family::Messages => {
            json!({"name": "weather", "description": "The weather", "input_schema": schema()})
        }
    };
    body["tools"] = json!([tool]);
    body[list(family)] = json!([{"role": "user", "content": "How warm is it?"}]);
}

fn says(family: Family, body: &mut Value, part: Value) {
    let words = match family {
        Family::Responses => json!({"type": "input_text", "text": "What is this?"}),
        _ => json!({"type": "text", "text": "What is this?"}),
    };
    body[list(family)] = json!([{"role": "user", "content": [words, part]}]);
}

fn picture(family: Family, body: &mut Value) {
    let url = format!("data:image/png;base64,{PNG}");
    let part = match family {
        Family::Chat => json!({"type": "image_url", "image_url": {"url": url}}),
        Family::Responses => json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        Family::Messages => {
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
        }
    };
    says(family, body, part);
}

fn document(family: Family, body: &mut Value) {
    let data = STANDARD.encode(pdf(&["A short page."]));
    let url = format!("data:application/pdf;base64,{data}");
    let part = match family {
        Family::Chat => json!({"type": "file", "file": {"filename": "a.pdf", "file_data": url}}),
        Family::Responses => json!({"type": "input_file", "filename": "a.pdf", "file_data": url}),
        Family::Messages => {
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}})
        }
    };
    says(family, body, part);
}

fn thinking(family: Family, body: &mut Value) {
    body[list(family)] = json!([{"role": "user", "content": "How warm is it?"}]);
    match family {
        Family::Chat => body["reasoning_effort"] = json!("low"),
        Family::Responses => {
            body["reasoning"] = json!({"effort": "low", "summary": "auto"});
            body["include"] = json!(["reasoning.encrypted_content"]);
            body["store"] = json!(false);
        }
        Family::Messages => {
            body["thinking"] = json!({"type": "adaptive"});
            body["output_config"] = json!({"effort": "low"});
        }
    }
}

/// As router clients and others say it.
fn not_thinking(family: Family, body: &mut Value) {
    match family {
        Family::Chat => body["reasoning"] = json!({"enabled": false, "exclude": true}),
        Family::Responses => body["reasoning"] = json!({"effort": "none"}),
        Family::Messages => body["thinking"] = json!({"type": "disabled"}),
    }
}

fn structured(family: Family, body: &mut Value) {
    match family {
        Family::Chat => {
            body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema(), "strict": true}});
        }
        Family::Responses => {
            body["text"] = json!({"format": {"type": "json_schema", "name": "answer", "schema": schema(), "strict": true}});
        }
        Family::Messages => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema()}});
        }
    }
}

/// Ten turns, streamed, with what each family says about caches and users.
fn cached(family: Family, body: &mut Value) {
    let mark = json!({"type": "ephemeral"});
    let mut turns = Vec::new();
    for number in 0..10 {
        let question = format!("Question {number}. {}", "More of it. ".repeat(20));
        turns.push(json!({"role": "user", "content": question}));
        turns.push(json!({"role": "assistant", "content": format!("Answer {number}.")}));
    }
    turns.push(json!({"role": "user", "content": "And now?"}));
    match family {
        Family::Messages => {
            turns[20]["content"] =
                json!([{"type": "text", "text": "And now?", "cache_control": mark}]);
            body["system"] = json!([{"type": "text", "text": "Be brief.", "cache_control": mark}]);
            body["metadata"] = json!({"user_id": "{\"session_id\":\"5f1c\"}"});
        }
        Family::Responses => {
            body["instructions"] = json!("Be brief.");
            body["prompt_cache_key"] = json!("session-1");
            body["safety_identifier"] = json!("user-1");
            body["service_tier"] = json!("default");
        }
        Family::Chat => {
            turns.insert(0, json!({"role": "system", "content": "Be brief."}));
            body["prompt_cache_key"] = json!("session-1");
            body["user"] = json!("user-1");
        }
    }
    body["stream"] = json!(true);
    body[list(family)] = json!(turns);
}

fn midway(family: Family, body: &mut Value) {
    let role = if family == Family::Responses {
        "developer"
    } else {
        "system"
    };
    body[list(family)] = json!([
        {"role": "user", "content": "Hello."},
        {"role": role, "content": "From now on, answer in French."},
        {"role": "assistant", "content": "Bonjour."},
        {"role": "user", "content": "How are you?"}]);
}

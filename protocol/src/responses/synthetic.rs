//! Responses answers of the simulated provider, with every field and event that public clients read.

use serde_json::{Value, json};

use crate::class::tier_said;
use crate::synthetic::halves;
use crate::translate::seals::OURS;
use crate::{ReportedUsage, SyntheticAnswer, SyntheticStop, ToolCall, sse};

pub(super) fn write_answer(draft: &SyntheticAnswer) -> Vec<u8> {
    let mut output = Vec::new();
    if !draft.pieces.is_empty() || draft.tool.is_none() {
        output.push(message(
            draft,
            status(draft),
            &[text(&draft.pieces.concat())],
        ));
    }
    output.extend(
        draft
            .tool
            .as_ref()
            .map(|tool| call(tool, status(draft), &tool.arguments)),
    );
    finished(draft, &output).to_string().into_bytes()
}

pub(super) fn write_frames(draft: &SyntheticAnswer) -> Vec<Vec<u8>> {
    let mut out = Frames::default();
    let begun = skeleton(&id(draft), &draft.model, draft.created);
    out.push("response.created", &json!({"response": begun}));
    out.push("response.in_progress", &json!({"response": begun}));
    let mut output = Vec::new();
    if !draft.pieces.is_empty() || draft.tool.is_none() {
        output.push(text_item(draft, &mut out));
    }
    if let Some(tool) = &draft.tool {
        output.push(call_item(draft, tool, output.len(), &mut out));
    }
    let last = if draft.stop == SyntheticStop::Length {
        "response.incomplete"
    } else {
        "response.completed"
    };
    out.push(last, &json!({"response": finished(draft, &output)}));
    out.list
}

/// A response object that has begun, with the members every client expects.
pub(super) fn skeleton(id: &str, model: &str, created: i64) -> Value {
    json!({
        "id": id,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "background": false,
        "completed_at": null,
        "error": null,
        "frequency_penalty": 0.0,
        "incomplete_details": null,
        "instructions": null,
        "max_output_tokens": null,
        "max_tool_calls": null,
        "model": model,
        "output": [],
        "parallel_tool_calls": true,
        "presence_penalty": 0.0,
        "previous_response_id": null,
        "prompt_cache_key": null,
        "reasoning": {"effort": null, "summary": null},
        "safety_identifier": null,
        "service_tier": "default",
        "store": false,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": null,
        "user": null,
        "metadata": {},
    })
}

/// A usage object; `cost` is a decimal literal, copied unchanged.
pub(super) fn usage_json(usage: &ReportedUsage, cost: Option<&str>) -> String {
    crate::usage::with_cost(usage_value(usage).to_string(), cost)
}

fn usage_value(usage: &ReportedUsage) -> Value {
    json!({
        "input_tokens": usage.all_input(),
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.all_writes(),
        },
        "output_tokens": usage.all_output(),
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.all_input().saturating_add(usage.all_output()),
    })
}

/// Events with their numbers.
#[derive(Default)]
pub(super) struct Frames {
    pub(super) list: Vec<Vec<u8>>,
}

impl Frames {
    pub(super) fn push(&mut self, kind: &str, members: &Value) {
        let mut data = json!({"type": kind});
        if let (Value::Object(data), Value::Object(members)) = (&mut data, members) {
            data.extend(members.clone());
            data.insert("sequence_number".to_owned(), json!(self.list.len()));
        }
        self.list.push(sse::event(kind, &data.to_string()));
    }
}

fn text_item(draft: &SyntheticAnswer, out: &mut Frames) -> Value {
    let item_id = message_id(draft);
    let place = |more: Value| {
        let mut members = json!({"item_id": item_id, "output_index": 0, "content_index": 0});
        if let (Value::Object(members), Value::Object(more)) = (&mut members, more) {
            members.extend(more);
        }
        members
    };
    let whole = draft.pieces.concat();
    let item = message(draft, status(draft), &[text(&whole)]);
    out.push(
        "response.output_item.added",
        &json!({"output_index": 0, "item": message(draft, "in_progress", &[])}),
    );
    out.push(
        "response.content_part.added",
        &place(json!({"part": text("")})),
    );
    for piece in &draft.pieces {
        out.push(
            "response.output_text.delta",
            &place(json!({"delta": piece, "logprobs": []})),
        );
    }
    out.push(
        "response.output_text.done",
        &place(json!({"text": whole, "logprobs": []})),
    );
    out.push(
        "response.content_part.done",
        &place(json!({"part": text(&whole)})),
    );
    out.push(
        "response.output_item.done",
        &json!({"output_index": 0, "item": item}),
    );
    item
}

fn call_item(draft: &SyntheticAnswer, tool: &ToolCall, index: usize, out: &mut Frames) -> Value {
    let item_id = call_item_id(tool);
    let item = call(tool, status(draft), &tool.arguments);
    out.push(
        "response.output_item.added",
        &json!({"output_index": index, "item": call(tool, "in_progress", "")}),
    );
    for part in halves(&tool.arguments) {
        let members = json!({"item_id": item_id, "output_index": index, "delta": part});
        out.push("response.function_call_arguments.delta", &members);
    }
    let members = json!({"item_id": item_id, "output_index": index, "name": tool.name, "arguments": tool.arguments});
    out.push("response.function_call_arguments.done", &members);
    out.push(
        "response.output_item.done",
        &json!({"output_index": index, "item": item}),
    );
    item
}

fn finished(draft: &SyntheticAnswer, output: &[Value]) -> Value {
    let mut response = skeleton(&id(draft), &draft.model, draft.created);
    response["status"] = json!(status(draft));
    response["output"] = json!(output);
    if draft.stop != SyntheticStop::Length {
        // An answer that is complete at once ends in the second in which it began.
        response["completed_at"] = json!(draft.created);
    }
    if draft.stop == SyntheticStop::Length {
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    response["service_tier"] = json!(tier_said(draft.classes.tier));
    response["usage"] = draft.usage.as_ref().map_or(Value::Null, usage_value);
    response
}

fn status(draft: &SyntheticAnswer) -> &'static str {
    if draft.stop == SyntheticStop::Length {
        "incomplete"
    } else {
        "completed"
    }
}

fn message(draft: &SyntheticAnswer, status: &str, content: &[Value]) -> Value {
    json!({"id": message_id(draft), "type": "message", "status": status, "role": "assistant", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn call(tool: &ToolCall, status: &str, arguments: &str) -> Value {
    json!({
        "id": call_item_id(tool), "type": "function_call", "status": status,
        "call_id": format!("call_{}", tool.id), "name": tool.name, "arguments": arguments,
    })
}

fn id(draft: &SyntheticAnswer) -> String {
    format!("resp_{}", draft.id)
}

fn message_id(draft: &SyntheticAnswer) -> String {
    format!("msg_{}{OURS}", draft.id)
}

fn call_item_id(tool: &ToolCall) -> String {
    format!("fc_{}{OURS}", tool.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_every_field_that_the_published_suite_asks_for() {
        let response = skeleton("resp_1", "sim", 7);
        assert!(response["completed_at"].is_null(), "it has only begun");
        assert_eq!(
            (
                &response["presence_penalty"],
                &response["frequency_penalty"]
            ),
            (&json!(0.0), &json!(0.0))
        );
    }
}

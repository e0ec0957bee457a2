//! Chat answers of the simulated provider, with every field that public clients read.

use serde_json::{Value, json};

use crate::class::tier_said;
use crate::synthetic::halves;
use crate::{ReportedUsage, SyntheticAnswer, SyntheticStop, ToolCall, sse};

pub(super) fn write_answer(draft: &SyntheticAnswer) -> Vec<u8> {
    let text = draft.pieces.concat();
    let content = if text.is_empty() && draft.tool.is_some() {
        Value::Null
    } else {
        Value::from(text)
    };
    let mut message =
        json!({"role": "assistant", "content": content, "refusal": null, "annotations": []});
    if let Some(tool) = &draft.tool {
        message["tool_calls"] = json!([call(tool)]);
    }
    let mut answer = json!({
        "id": id(draft),
        "object": "chat.completion",
        "created": draft.created,
        "model": draft.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(draft)}],
    });
    if let Some(usage) = &draft.usage {
        answer["usage"] = usage_value(usage);
    }
    answer["service_tier"] = json!(tier_said(draft.classes.tier));
    answer["system_fingerprint"] = Value::Null;
    answer.to_string().into_bytes()
}

pub(super) fn write_frames(draft: &SyntheticAnswer) -> Vec<Vec<u8>> {
    let mut out = vec![delta(
        draft,
        &json!({"role": "assistant", "content": "", "refusal": null}),
        None,
    )];
    out.extend(
        draft
            .pieces
            .iter()
            .map(|piece| delta(draft, &json!({"content": piece}), None)),
    );
    if let Some(tool) = &draft.tool {
        let mut first = call(tool);
        first["index"] = json!(0);
        first["function"]["arguments"] = json!("");
        out.push(delta(draft, &json!({"tool_calls": [first]}), None));
        for part in halves(&tool.arguments) {
            out.push(delta(
                draft,
                &json!({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}),
                None,
            ));
        }
    }
    out.push(delta(draft, &json!({}), Some(finish(draft))));
    if let Some(usage) = draft.usage.as_ref().filter(|_| draft.stream_usage) {
        let mut last = chunk(draft, &json!([]));
        last["usage"] = usage_value(usage);
        out.push(sse::data(&last.to_string()));
    }
    out.push(sse::data("[DONE]"));
    out
}

/// A usage object; `cost` is a decimal literal, copied unchanged.
pub(super) fn usage_json(usage: &ReportedUsage, cost: Option<&str>) -> String {
    crate::usage::with_cost(usage_value(usage).to_string(), cost)
}

fn usage_value(usage: &ReportedUsage) -> Value {
    json!({
        "prompt_tokens": usage.all_input(),
        "completion_tokens": usage.all_output(),
        "total_tokens": usage.all_input().saturating_add(usage.all_output()),
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.all_writes(),
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

fn id(draft: &SyntheticAnswer) -> String {
    format!("chatcmpl-{}", draft.id)
}

fn finish(draft: &SyntheticAnswer) -> &'static str {
    match draft.stop {
        SyntheticStop::Stop => "stop",
        SyntheticStop::Length => "length",
        SyntheticStop::Tool => "tool_calls",
    }
}

fn call(tool: &ToolCall) -> Value {
    json!({
        "id": format!("call_{}", tool.id),
        "type": "function",
        "function": {"name": tool.name, "arguments": tool.arguments},
    })
}

fn delta(draft: &SyntheticAnswer, delta: &Value, finish: Option<&str>) -> Vec<u8> {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
    sse::data(&chunk(draft, &json!([choice])).to_string())
}

fn chunk(draft: &SyntheticAnswer, choices: &Value) -> Value {
    let mut chunk = json!({
        "id": id(draft),
        "object": "chat.completion.chunk",
        "created": draft.created,
        "model": draft.model,
        "service_tier": tier_said(draft.classes.tier),
        "choices": choices,
    });
    if draft.stream_usage {
        chunk["usage"] = Value::Null;
    }
    chunk
}

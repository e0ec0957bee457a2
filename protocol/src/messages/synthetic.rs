//! Messages answers of the simulated provider, with every field that public clients read.

use serde_json::{Value, json};

use crate::synthetic::halves;
use crate::{
    ReportedUsage, RequestRegion, ServiceTier, SyntheticAnswer, SyntheticStop, ToolCall, sse,
};

pub(super) fn write_answer(draft: &SyntheticAnswer) -> Vec<u8> {
    let text = draft.pieces.concat();
    let mut content = Vec::new();
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    content.extend(draft.tool.as_ref().map(|tool| {
        let input: Value = serde_json::from_str(&tool.arguments).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": tool_id(tool), "name": tool.name, "input": input})
    }));
    message(draft, &content, json!(stop(draft)), draft.usage.as_ref())
        .to_string()
        .into_bytes()
}

pub(super) fn write_frames(draft: &SyntheticAnswer) -> Vec<Vec<u8>> {
    let before = draft.usage.map(|usage| ReportedUsage {
        output: usage.all_output().min(1),
        reasoning: 0,
        ..usage
    });
    let start = message(draft, &[], Value::Null, before.as_ref());
    let mut out = vec![event("message_start", &json!({"message": start}))];
    let mut index = 0;
    if !draft.pieces.is_empty() {
        let block = json!({"type": "text", "text": ""});
        out.push(event(
            "content_block_start",
            &json!({"index": index, "content_block": block}),
        ));
        out.push(event("ping", &Value::Null));
        let delta = |piece: &String| json!({"index": index, "delta": {"type": "text_delta", "text": piece}});
        out.extend(
            draft
                .pieces
                .iter()
                .map(|piece| event("content_block_delta", &delta(piece))),
        );
        out.push(event("content_block_stop", &json!({"index": index})));
        index += 1;
    }
    if let Some(tool) = &draft.tool {
        let block =
            json!({"type": "tool_use", "id": tool_id(tool), "name": tool.name, "input": {}});
        out.push(event(
            "content_block_start",
            &json!({"index": index, "content_block": block}),
        ));
        for part in [""].into_iter().chain(halves(&tool.arguments)) {
            let delta = json!({"type": "input_json_delta", "partial_json": part});
            out.push(event(
                "content_block_delta",
                &json!({"index": index, "delta": delta}),
            ));
        }
        out.push(event("content_block_stop", &json!({"index": index})));
    }
    let mut last = json!({"delta": {"stop_reason": stop(draft), "stop_sequence": null}});
    if let Some(usage) = &draft.usage {
        last["usage"] = usage_value(usage);
    }
    out.push(event("message_delta", &last));
    out.push(event("message_stop", &Value::Null));
    out
}

/// An event whose data repeats its name as `type`.
pub(super) fn event(name: &str, members: &Value) -> Vec<u8> {
    let mut data = json!({"type": name});
    if let (Value::Object(data), Value::Object(members)) = (&mut data, members) {
        data.extend(members.clone());
    }
    sse::event(name, &data.to_string())
}

pub(super) fn usage_value(usage: &ReportedUsage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.all_writes(),
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": usage.cache_write_1h.saturating_add(usage.cache_write_12h),
        },
        "output_tokens": usage.all_output(),
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
    })
}

fn message(
    draft: &SyntheticAnswer,
    content: &[Value],
    stop: Value,
    usage: Option<&ReportedUsage>,
) -> Value {
    let mut message = json!({
        "id": format!("msg_{}", draft.id),
        "type": "message",
        "role": "assistant",
        "model": draft.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
    });
    if let Some(usage) = usage {
        message["usage"] = usage_value(usage);
        if draft.classes.tier == ServiceTier::Fast {
            message["usage"]["speed"] = json!("fast");
        }
        if draft.classes.place == RequestRegion::Us {
            message["usage"]["inference_geo"] = json!("us");
        }
    }
    message
}

fn stop(draft: &SyntheticAnswer) -> &'static str {
    match draft.stop {
        SyntheticStop::Stop => "end_turn",
        SyntheticStop::Length => "max_tokens",
        SyntheticStop::Tool => "tool_use",
    }
}

fn tool_id(tool: &ToolCall) -> String {
    format!("toolu_{}", tool.id)
}

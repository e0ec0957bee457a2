//! What the streams of each vendor do oddly, applied to the frames of a plain chat stream.
//!
//! A plain stream is a role, pieces of text, the reason it ended, usage in a frame without choices, and `[DONE]`.

use serde_json::{Value, json};

use crate::Vendor;

/// The frames as this vendor would send them. Frames of other families are left alone.
#[must_use]
pub fn oddly(vendor: Vendor, frames: Vec<String>) -> Vec<String> {
    match vendor {
        // The prompt's filters come first, without choices or model (a recorded stream of gpt-5-mini, 2025-09-10, in the mirror of
        // llama-stack: tests/integration/recordings/responses/ff3271401fb4.json).
        Vendor::Azure => {
            let filters = json!({"id": "", "object": "", "created": 0, "model": "", "choices": [],
                "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]});
            [vec![data(&filters)], frames].concat()
        }
        // Comments while it waits (github.com/openai/openai-go/issues/227, 2025-02-13), and a cost beside the usage, in a
        // frame without choices (github.com/Effect-TS/effect/pull/6117, 2026-03-08).
        Vendor::OpenRouter => {
            let waits = ": OPENROUTER PROCESSING\n\n".to_owned();
            let paid = frames.into_iter().map(|frame| {
                change(frame, |chunk| {
                    if let Some(usage) = usage_of(chunk) {
                        usage["cost"] = json!(0.000_1);
                        usage["is_byok"] = json!(false);
                    }
                })
            });
            [waits.clone(), waits].into_iter().chain(paid).collect()
        }
        // Comments (github.com/CopilotC-Nvim/CopilotChat.nvim/issues/944, 2025-03-09), usage in the frame with the reason.
        Vendor::DeepSeek => {
            let waits = ": keep-alive\n\n".to_owned();
            [vec![waits], usage_with_reason(frames)].concat()
        }
        // mistralai 3.7.0 (PyPI, 2026-11-23): models/completionchunk.py; usage comes unasked, in the frame with the reason.
        Vendor::Mistral => usage_with_reason(frames),
        // groq 1.7.0 (PyPI, 2026-11-23): types/chat/chat_completion_chunk.py, XGroq: an id first, and the usage once more at the end.
        Vendor::Groq => usage_in_x_groq(frames),
        // Every frame carries the usage so far (github.com/ogx-ai/ogx/issues/5122, 2026-03-12), and the object of a chunk.
        Vendor::Gemini => {
            let sum = frames.iter().find_map(|frame| usage_in(frame));
            let counted = frames.into_iter().map(|frame| {
                change(frame, |chunk| {
                    if chunk.get("usage").is_none()
                        && let Some(sum) = &sum
                    {
                        chunk["usage"] = json!({"prompt_tokens": sum["prompt_tokens"],
                            "completion_tokens": 0, "total_tokens": sum["prompt_tokens"]});
                    }
                })
            });
            counted.collect()
        }
        _ => frames,
    }
}

/// The frame in which a vendor says, in the middle of a stream, that it cannot go on.
#[must_use]
pub fn breaking(vendor: Vendor, path: &str) -> String {
    let words = "Internal server error";
    // anthropic 2.12.0 (PyPI, 2026-11-23): _streaming.py; github.com/BerriAI/litellm/issues/4562, 2024-07-05.
    if path.ends_with("/messages") {
        let error = json!({"type": "error", "error": {"details": null, "type": "api_error", "message": words}});
        return format!("event: error\ndata: {error}\n\n");
    }
    // openai 3.54.0 (PyPI, 2026-11-23): types/responses/response_error_event.py.
    if path.ends_with("/responses") {
        let error = json!({"type": "error", "code": "server_error", "message": words, "param": null, "sequence_number": 9});
        return format!("event: error\ndata: {error}\n\n");
    }
    match vendor {
        // openrouter.ai/docs/api/reference/streaming, read 2026-11-23: a data event with an error field, the reason in its choice.
        Vendor::OpenRouter => data(
            &json!({"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "provider": "p",
            "error": {"code": 502, "message": words},
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "error"}]}),
        ),
        // github.com/block/goose/pull/8031, read 2026-11-23: vLLM's earlier shape.
        Vendor::Vllm => data(
            &json!({"object": "error", "message": words, "type": "InternalServerError", "param": null, "code": 500}),
        ),
        // The same pull request: OpenAI's own, which the others copy. Not verified for Gemini, Groq, Mistral, DeepSeek and xAI.
        _ => data(
            &json!({"error": {"message": words, "type": "server_error", "param": null, "code": null}}),
        ),
    }
}

/// The frames in which the vendor who defined a path's family says, in a stream, that it has no capacity: each is one way to say it.
#[must_use]
pub fn overloaded(path: &str) -> Vec<String> {
    let words = "Our servers are currently overloaded. Please try again later.";
    let error = json!({"type": "service_unavailable_error", "code": "server_is_overloaded", "message": words, "param": null});
    // Recorded 2026-08-14: github.com/karthink/gptel/pull/1512.
    if path.ends_with("/messages") {
        let error = json!({"type": "error", "request_id": "req_011",
            "error": {"details": null, "type": "overloaded_error", "message": "Overloaded"}});
        return vec![format!("event: error\ndata: {error}\n\n")];
    }
    // Recorded 2026-06-25: github.com/Wei-Shaw/sub2api/pull/3476; 2026-05-04: github.com/anomalyco/opencode/issues/25730.
    if path.ends_with("/responses") {
        let failed = json!({"type": "response.failed", "sequence_number": 3, "response": {"id": "resp_03", "object": "response",
            "created_at": 7, "status": "failed", "error": {"code": "server_is_overloaded", "message": words}, "model": "m",
            "usage": null, "output": []}});
        let nested = json!({"type": "error", "sequence_number": 2, "error": error});
        return vec![
            format!("event: response.failed\ndata: {failed}\n\n"),
            format!("event: error\ndata: {nested}\n\n"),
        ];
    }
    // The same error, in the shape of github.com/block/goose/pull/8031, read 2026-11-23. Not verified on this wire.
    vec![data(&json!({"error": error}))]
}

/// The frame without choices is left out, and its usage stands in the one before it.
fn usage_with_reason(frames: Vec<String>) -> Vec<String> {
    let usage = frames.iter().find_map(|frame| usage_in(frame));
    let mut out = Vec::new();
    for frame in frames {
        if usage_in(&frame).is_some() {
            continue;
        }
        out.push(change(frame, |chunk| {
            let ends = chunk.pointer("/choices/0/finish_reason");
            if ends.is_some_and(Value::is_string)
                && let Some(usage) = &usage
            {
                chunk["usage"] = usage.clone();
            }
        }));
    }
    out
}

fn usage_in_x_groq(frames: Vec<String>) -> Vec<String> {
    let usage = frames.iter().find_map(|frame| usage_in(frame));
    let mut first = true;
    let named = frames.into_iter().map(|frame| {
        change(frame, |chunk| {
            if std::mem::take(&mut first) {
                chunk["x_groq"] = json!({"id": "req_double"});
            }
            let ends = chunk.pointer("/choices/0/finish_reason");
            if ends.is_some_and(Value::is_string) {
                chunk["x_groq"] = json!({"id": "req_double", "usage": usage});
            }
        })
    });
    named.collect()
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn read(frame: &str) -> Option<Value> {
    let text = frame.strip_prefix("data: ")?;
    let value: Value = serde_json::from_str(text.trim_end()).ok()?;
    value.get("choices")?;
    Some(value)
}

fn usage_of(chunk: &mut Value) -> Option<&mut Value> {
    chunk.get_mut("usage").filter(|usage| usage.is_object())
}

fn usage_in(frame: &str) -> Option<Value> {
    let usage = read(frame)?.get("usage")?.clone();
    usage.is_object().then_some(usage)
}

/// The frame with its chunk changed, if it has one.
fn change(frame: String, with: impl FnOnce(&mut Value)) -> String {
    let Some(mut chunk) = read(&frame) else {
        return frame;
    };
    with(&mut chunk);
    data(&chunk)
}

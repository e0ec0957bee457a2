//! The members that the chat family has: those of the vendor's newest SDK, and what other servers' answers are read by.

use crate::members::Inside::{self, Anything, Objects};

/// Members of a chunk and of a whole answer.
pub(super) fn of_answer(name: &str) -> Option<Inside> {
    match name {
        "id" | "object" | "created" | "model" | "choices" | "usage" | "system_fingerprint"
        | "service_tier" | "obfuscation" | "metadata" | "moderation" => Some(Anything),
        _ => None,
    }
}

/// Members of a choice.
pub(super) fn of_choice(name: &str) -> Option<Inside> {
    match name {
        "index" | "delta" | "message" | "text" | "finish_reason" => Some(Anything),
        "logprobs" => Some(Objects),
        _ => None,
    }
}

/// Members of a usage object; those of its details: [`crate::usage`].
pub(super) fn of_usage(name: &str) -> Option<Inside> {
    match name {
        "prompt_tokens"
        | "completion_tokens"
        | "total_tokens"
        | "prompt_tokens_details"
        | "completion_tokens_details" => Some(Anything),
        _ => None,
    }
}

/// Members of messages, deltas, calls, and of what stands in them.
pub(super) fn of_content(name: &str) -> Option<Inside> {
    match name {
        "role" | "id" | "type" | "index" | "name" | "arguments" | "input" | "text" | "title"
        | "url" | "start_index" | "end_index" | "token" | "logprob" | "bytes" | "data"
        | "transcript" | "expires_at" | "detail" | "reasoning" | "reasoning_content"
        | "signature" | "summary" | "format" => Some(Anything),
        "content" | "refusal" | "tool_calls" | "function_call" | "function" | "custom"
        | "audio" | "annotations" | "url_citation" | "citations" | "logprobs" | "top_logprobs"
        | "reasoning_details" | "thinking" | "thinking_blocks" | "images" | "image_url" => {
            Some(Objects)
        }
        _ => None,
    }
}

//! The members that the messages family has: those of the vendor's newest SDK.

use crate::members::Inside::{self, Anything, Objects};

/// Members of an event, of its `message` and of a whole answer.
pub(super) fn of_answer(name: &str) -> Option<Inside> {
    match name {
        "type" | "index" | "message" | "content_block" | "delta" | "usage" | "error" | "id"
        | "role" | "content" | "model" | "stop_reason" | "stop_sequence" => Some(Anything),
        "stop_details"
        | "container"
        | "context_management"
        | "diagnostics"
        | "input_transformations" => Some(Objects),
        _ => None,
    }
}

/// Members of a usage object and of its steps; those of its details: [`crate::usage`].
pub(super) fn of_usage(name: &str) -> Option<Inside> {
    match name {
        "input_tokens"
        | "output_tokens"
        | "cache_creation_input_tokens"
        | "cache_read_input_tokens"
        | "cache_creation"
        | "output_tokens_details"
        | "server_tool_use"
        | "service_tier"
        | "inference_geo"
        | "speed"
        | "iterations"
        | "fallback_credit"
        | "type" => Some(Anything),
        _ => None,
    }
}

/// What stands in blocks as it is.
#[rustfmt::skip]
const PLAIN: &[&str] = &[
    "type", "text", "thinking", "signature", "partial_json", "id", "name", "input", "data",
    "title", "url", "role", "index", "stop_reason", "stop_sequence", "tool_use_id", "is_error",
    "encrypted_content", "encrypted_stdout", "encrypted_index", "cited_text", "document_index",
    "document_title", "search_result_index", "start_char_index", "end_char_index",
    "start_page_number", "end_page_number", "start_block_index", "end_block_index", "file_id",
    "error_code", "error_message", "file_type", "is_file_update", "lines", "num_lines",
    "new_lines", "new_start", "old_lines", "old_start", "start_line", "total_lines", "page_age",
    "retrieved_at", "return_code", "stderr", "stdout", "media_type", "enabled", "tools",
    "definition", "tool_id", "tool_name", "toolset_name", "server_name", "mcp_server_name",
    "category", "explanation", "fallback_credit_token", "fallback_has_prefill_claim",
    "recommended_model", "expires_at", "skill_id", "version", "estimated_tokens", "path",
    "reason", "abort_reason", "cleared_input_tokens", "cleared_thinking_turns",
    "cleared_tool_uses", "cache_missed_input_tokens",
];

/// What holds more of the family's objects.
#[rustfmt::skip]
const OBJECTS: &[&str] = &[
    "content", "citations", "citation", "caller", "source", "tool_references", "from", "to",
    "trigger", "tool_changes", "tool", "container", "skills", "stop_details", "applied_edits",
    "cache_miss_reason",
];

/// Members of blocks, deltas, and of what stands in them.
pub(super) fn of_content(name: &str) -> Option<Inside> {
    if OBJECTS.contains(&name) {
        return Some(Objects);
    }
    PLAIN.contains(&name).then_some(Anything)
}

/// Events of a stream.
pub(super) fn is_event(kind: &str) -> bool {
    matches!(
        kind,
        "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
            | "ping"
            | "error"
    )
}

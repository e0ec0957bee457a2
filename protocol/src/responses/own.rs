//! The members and events that the responses family has, those of the vendor's newest SDK: what the others are is not known, so
//! customers do not see them as they are.

use crate::members::Inside::{self, Anything, Objects};

/// Members of a response object.
pub(super) fn of_response(name: &str) -> Option<Inside> {
    match name {
        "id"
        | "object"
        | "created_at"
        | "completed_at"
        | "status"
        | "model"
        | "output"
        | "output_text"
        | "usage"
        | "instructions"
        | "metadata"
        | "background"
        | "frequency_penalty"
        | "max_output_tokens"
        | "max_tool_calls"
        | "moderation"
        | "parallel_tool_calls"
        | "presence_penalty"
        | "previous_response_id"
        | "prompt_cache_key"
        | "prompt_cache_retention"
        | "safety_identifier"
        | "service_tier"
        | "store"
        | "temperature"
        | "text"
        | "tools"
        | "top_logprobs"
        | "top_p"
        | "truncation"
        | "user" => Some(Anything),
        "error"
        | "incomplete_details"
        | "conversation"
        | "prompt"
        | "prompt_cache_options"
        | "prompt_cache_diagnostics"
        | "reasoning"
        | "tool_choice"
        | "access_programs"
        | "image"
        | "input_transformations"
        | "tool_usage" => Some(Objects),
        _ => None,
    }
}

/// Members of an event, whatever its type.
pub(super) fn of_event(name: &str) -> Option<Inside> {
    match name {
        "type"
        | "sequence_number"
        | "response"
        | "output_index"
        | "content_index"
        | "summary_index"
        | "annotation_index"
        | "command_index"
        | "partial_image_index"
        | "item_id"
        | "item"
        | "part"
        | "text"
        | "refusal"
        | "name"
        | "arguments"
        | "input"
        | "code"
        | "command"
        | "diff"
        | "obfuscation"
        | "partial_image_b64"
        | "size"
        | "quality"
        | "background"
        | "output_format"
        | "status"
        | "message"
        | "param" => Some(Anything),
        "delta" | "output" | "annotation" | "logprobs" | "error" => Some(Objects),
        _ => None,
    }
}

/// Members of a usage object; those of its details: [`crate::usage`].
pub(super) fn of_usage(name: &str) -> Option<Inside> {
    match name {
        "input_tokens"
        | "input_tokens_details"
        | "output_tokens"
        | "output_tokens_details"
        | "total_tokens" => Some(Anything),
        _ => None,
    }
}

/// What stands in items as it is.
#[rustfmt::skip]
const PLAIN: &[&str] = &[
    "type", "id", "status", "role", "text", "name", "call_id", "arguments", "input",
    "encrypted_content", "index", "title", "url", "start_index", "end_index", "token", "logprob",
    "bytes", "file_id", "vector_store_id", "filename", "container_id", "server_label",
    "namespace", "phase", "execution", "async", "background", "result", "revised_prompt", "size",
    "quality", "output_format", "code", "logs", "stdout", "stderr", "exit_code",
    "max_output_length", "approve", "approval_request_id", "caller_id", "created_by",
    "fingerprint", "reason", "refusal", "tools", "attributes", "score", "env", "keys", "button",
    "pattern", "query", "scroll_x", "scroll_y", "timeout_ms", "user", "working_directory", "x",
    "y", "diff", "message", "param", "categories", "moderation_stage", "detail", "file_data",
    "file_url", "image_url", "mode", "ttl", "description", "detailed_explanation", "error_type",
    "review_target", "input_tokens", "output_tokens", "total_tokens", "reasoning_tokens",
    "cached_tokens", "image_tokens", "text_tokens", "cached_image_tokens", "cached_text_tokens",
    "cache_missed_tokens", "comparison_reusable_tokens", "comparison_response_id", "num_requests",
    "effort", "context", "generate_summary", "variables", "version", "cyber",
    "context_compression",
];

/// What holds more of the family's objects.
#[rustfmt::skip]
const OBJECTS: &[&str] = &[
    "content", "summary", "annotations", "logprobs", "top_logprobs", "action", "actions",
    "command", "commands", "queries", "caller", "environment", "skills", "error",
    "moderation_details", "misalignment", "steer", "operation", "outcome", "output", "outputs",
    "path", "pending_safety_checks", "acknowledged_safety_checks", "prompt_cache_breakpoint",
    "results", "sources", "svg_usage", "cached_tokens_details", "input_tokens_details",
    "output_tokens_details", "image_gen", "web_search",
];

/// Members of items, parts, and of what stands in them and in a response's own settings.
pub(super) fn of_content(name: &str) -> Option<Inside> {
    if OBJECTS.contains(&name) {
        return Some(Objects);
    }
    PLAIN.contains(&name).then_some(Anything)
}

/// Types of events.
pub(super) fn is_event(kind: &str) -> bool {
    let Some(name) = kind.strip_prefix("response.") else {
        return kind == "error";
    };
    match name.rsplit_once('.') {
        None => matches!(
            name,
            "created" | "queued" | "in_progress" | "completed" | "incomplete" | "failed"
        ),
        Some((of, step)) => is_of_part(of, step),
    }
}

/// Events of an item or a part: what they are about, and what happened.
fn is_of_part(of: &str, step: &str) -> bool {
    match step {
        "delta" | "done" | "added" => matches!(
            of,
            "output_text"
                | "output_text.annotation"
                | "function_call_arguments"
                | "output_item"
                | "content_part"
                | "reasoning_text"
                | "reasoning"
                | "reasoning_summary"
                | "reasoning_summary_text"
                | "reasoning_summary_part"
                | "refusal"
                | "custom_tool_call_input"
                | "mcp_call_arguments"
                | "code_interpreter_call_code"
                | "shell_call_command"
                | "shell_call_output_content"
                | "apply_patch_call_operation_diff"
                | "audio"
                | "audio.transcript"
        ),
        "in_progress" | "completed" | "failed" | "searching" | "interpreting" | "generating"
        | "partial_image" | "compacting" => matches!(
            of,
            "web_search_call"
                | "file_search_call"
                | "code_interpreter_call"
                | "image_generation_call"
                | "mcp_call"
                | "mcp_list_tools"
                | "compaction"
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_vendor_adds_is_not_the_familys() {
        for name in [
            "billing",
            "organization",
            "provider_metadata",
            "copilot_usage",
        ] {
            assert!(
                of_response(name).is_none() && of_event(name).is_none(),
                "{name}"
            );
        }
        for kind in [
            "response.debug",
            "exception",
            "response.output_text.leak",
            "",
        ] {
            assert!(!is_event(kind), "{kind}");
        }
        assert!(is_event("response.output_text.annotation.added"));
    }
}

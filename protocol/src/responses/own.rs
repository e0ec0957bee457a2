//! The members and events that the responses family has: what the others are is not known, so customers do not see them as they are.

/// Members of a response object.
pub(super) fn is_of_response(name: &str) -> bool {
    matches!(
        name,
        "id" | "object"
            | "created_at"
            | "completed_at"
            | "status"
            | "model"
            | "output"
            | "output_text"
            | "usage"
            | "error"
            | "incomplete_details"
            | "instructions"
            | "metadata"
            | "background"
            | "conversation"
            | "frequency_penalty"
            | "max_output_tokens"
            | "max_tool_calls"
            | "moderation"
            | "parallel_tool_calls"
            | "presence_penalty"
            | "previous_response_id"
            | "prompt"
            | "prompt_cache_key"
            | "prompt_cache_options"
            | "prompt_cache_retention"
            | "reasoning"
            | "safety_identifier"
            | "service_tier"
            | "store"
            | "temperature"
            | "text"
            | "tool_choice"
            | "tools"
            | "top_logprobs"
            | "top_p"
            | "truncation"
            | "user"
    )
}

/// Members of an event, whatever its type.
pub(super) fn is_of_event(name: &str) -> bool {
    matches!(
        name,
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
            | "delta"
            | "text"
            | "refusal"
            | "name"
            | "arguments"
            | "input"
            | "code"
            | "command"
            | "diff"
            | "output"
            | "annotation"
            | "logprobs"
            | "obfuscation"
            | "partial_image_b64"
            | "size"
            | "quality"
            | "background"
            | "output_format"
            | "status"
            | "error"
            | "message"
            | "param"
    )
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
        | "partial_image" => matches!(
            of,
            "web_search_call"
                | "file_search_call"
                | "code_interpreter_call"
                | "image_generation_call"
                | "mcp_call"
                | "mcp_list_tools"
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_vendor_adds_is_not_the_familys() {
        for name in ["billing", "organization", "provider_metadata", "tool_usage"] {
            assert!(!is_of_response(name) && !is_of_event(name), "{name}");
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

//! The probabilities of an answer's tokens, from the words of responses into those of chat.

use crate::json::set_members;
use crate::translate::tree::JsonNode;

/// The `logprobs` of a choice for a list of tokens, given as JSON.
pub(super) fn logprobs(list: &str) -> String {
    let tokens = JsonNode::parse(list.as_bytes())
        .map(|list| tokens(&list))
        .unwrap_or_default();
    format!(r#"{{"content":[{tokens}],"refusal":null}}"#)
}

/// Each token with every member that chat's clients read: the other family may leave out a token's bytes.
fn tokens(list: &JsonNode<'_>) -> String {
    let token = |token: &JsonNode<'_>| {
        let others = format!("[{}]", tokens(token.get("top_logprobs")));
        let mut set = Vec::new();
        if token.get("bytes").is_null() {
            set.push(("bytes", "null"));
        }
        if token.members().any(|(name, _)| name == "top_logprobs") {
            set.push(("top_logprobs", others.as_str()));
        }
        set_members(token.raw, &set)
    };
    list.elements()
        .map(token)
        .collect::<Vec<String>>()
        .join(",")
}

//! Explains unknown paths: which base URL the caller should have used.
//!
//! The only list of the families' base paths. A path is only read, never served.
//!
//! Rows of docs/interface.md: `chat_client_on_native`, `native_client_on_v1`, `v1_twice_or_not_at_all`, `version_is_in_the_path`.

use crate::{CallKind, Family};

/// The family whose error format answers an unknown path.
pub fn family_of(path: &str) -> Family {
    if path == "/native" || path.starts_with("/native/") {
        Family::Messages
    } else {
        Family::Chat
    }
}

/// What to use instead of a path below `base`, the public URL.
pub fn explain(path: &str, base: &str) -> String {
    let shown = shortened(path);
    if let Some((_, home, instead)) = INSTEAD.iter().find(|(other, ..)| *other == path) {
        return format!("{shown} is not offered here; use {instead} below {base}{home}");
    }
    if is_not_offered(path) {
        return format!(
            "{shown} is not offered here; chat completions, responses, embeddings and rerank are, at {base}/v1, and messages, at {base}/native"
        );
    }
    let native = |rest: &str| rest.starts_with("messages");
    let chat = |rest: &str| {
        rest.starts_with("chat/")
            || rest.starts_with("responses")
            || rest.starts_with("completions")
            || CallKind::ALL
                .iter()
                .any(|call| call.path() == ["/", rest].concat())
    };
    let chat_url = format!("{base}/v1");
    let native_url = format!("{base}/native");
    if let Some(rest) = path.strip_prefix("/native/") {
        let rest = rest.strip_prefix("v1/").unwrap_or(rest);
        if rest.starts_with("v1/") {
            return format!(
                "{shown}: the base URL of native clients is {native_url}, without /v1 at its end"
            );
        }
        if chat(rest) {
            return format!(
                "{shown}: this client speaks the chat or responses dialect; its base URL is {chat_url}"
            );
        }
        return format!(
            "{shown} does not exist; native clients use the base URL {native_url} and call /v1/messages below it"
        );
    }
    let rest = path
        .strip_prefix("/v1/")
        .unwrap_or(path.trim_start_matches('/'));
    if rest.starts_with("v1/") {
        if native(rest.trim_start_matches("v1/")) {
            return format!(
                "{shown}: this client speaks the native dialect; its base URL is {native_url}, without /v1 at its end"
            );
        }
        return format!("{shown}: /v1 is there twice; the base URL is {chat_url} exactly");
    }
    if native(rest) {
        return format!(
            "{shown}: this client speaks the native dialect; its base URL is {native_url}"
        );
    }
    if chat(rest) || rest.starts_with("models") {
        return format!("{shown} does not exist; the base URL is {chat_url}");
    }
    format!(
        "{shown} does not exist; OpenAI-style clients use the base URL {chat_url}, native clients {native_url}"
    )
}

/// Paths of other dialects: the base path here, and what does the same below it.
const INSTEAD: [(&str, &str, &str); 8] = [
    ("/api/tags", "/v1", "GET /models"),
    ("/api/ps", "/v1", "GET /models"),
    ("/api/show", "/v1", "GET /models/{slug}"),
    ("/api/chat", "/v1", "POST /chat/completions"),
    ("/api/generate", "/v1", "POST /chat/completions"),
    ("/v1/completions", "/v1", "POST /chat/completions"),
    ("/v1/complete", "/native", "POST /v1/messages"),
    ("/native/v1/complete", "/native", "POST /v1/messages"),
];

/// Paths that the original services of these dialects have below the same base URLs, by the first segment.
const NOT_OFFERED: [&str; 22] = [
    "assistants",
    "audio",
    "batches",
    "chatkit",
    "completions",
    "containers",
    "conversations",
    "edits",
    "evals",
    "files",
    "fine-tunes",
    "fine_tuning",
    "images",
    "moderations",
    "organization",
    "organizations",
    "realtime",
    "skills",
    "threads",
    "uploads",
    "vector_stores",
    "videos",
];

/// Whether a path below a valid base URL names a service that is not sold here.
fn is_not_offered(path: &str) -> bool {
    let Some(rest) = path
        .strip_prefix("/native/v1/")
        .or_else(|| path.strip_prefix("/v1/"))
    else {
        return false;
    };
    let first = rest.split('/').next().unwrap_or_default();
    NOT_OFFERED.contains(&first)
        || (path.starts_with("/native/") && rest.starts_with("messages/batches"))
        || (path.starts_with("/v1/")
            && (rest.starts_with("responses/") || rest.starts_with("chat/completions/")))
}

/// Whether clients of this path open a WebSocket first, because the original service takes one there.
pub fn has_websocket(path: &str) -> bool {
    path == "/v1/responses"
}

/// A path in a form that is safe to repeat to the caller.
pub fn shortened(path: &str) -> String {
    path.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[test]
    fn every_wrong_base_url_is_told_the_right_one() {
        let base = "https://api.example.com";
        for (path, needle) in [
            ("/v1/v1/chat/completions", "/v1 is there twice"),
            (
                "/v1/v1/messages",
                "its base URL is https://api.example.com/native, without /v1",
            ),
            (
                "/api/tags",
                "use GET /models below https://api.example.com/v1",
            ),
            (
                "/v1/messages",
                "native dialect; its base URL is https://api.example.com/native",
            ),
            (
                "/native/v1/chat/completions",
                "its base URL is https://api.example.com/v1",
            ),
            (
                "/native/responses",
                "its base URL is https://api.example.com/v1",
            ),
            ("/native/v1/v1/messages", "without /v1 at its end"),
            (
                "/chat/completions",
                "the base URL is https://api.example.com/v1",
            ),
            (
                "/messages",
                "its base URL is https://api.example.com/native",
            ),
            ("/wp-login.php", "OpenAI-style clients"),
            ("/v1/moderations", "is not offered here"),
            ("/v1/v1/embeddings", "/v1 is there twice"),
            (
                "/native/v1/embeddings",
                "its base URL is https://api.example.com/v1",
            ),
            ("/embeddings", "the base URL is https://api.example.com/v1"),
            ("/v1/batches/b_1/cancel", "is not offered here"),
            ("/v1/responses/resp_1", "is not offered here"),
            ("/native/v1/messages/batches", "is not offered here"),
            ("/v1/embeddingsx", "OpenAI-style clients"),
        ] {
            assert!(
                explain(path, base).contains(needle),
                "{path}: {}",
                explain(path, base)
            );
        }
    }
}

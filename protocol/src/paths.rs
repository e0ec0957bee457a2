//! Paths that do not exist, explained: which base URL the caller should have used.
//!
//! Each family's base stands here once. A path is only read, never served.

use crate::Family;

/// The family in whose words a path that does not exist is answered.
#[must_use]
pub fn family_of(path: &str) -> Family {
    if path == "/native" || path.starts_with("/native/") { Family::Messages } else { Family::Chat }
}

/// What to use instead of a path below `base`, the public URL.
#[must_use]
pub fn explain(path: &str, base: &str) -> String {
    let shown = shortened(path);
    let native = |rest: &str| rest.starts_with("messages");
    let chat = |rest: &str| rest.starts_with("chat/") || rest.starts_with("responses") || rest.starts_with("completions");
    let chat_url = format!("{base}/v1");
    let native_url = format!("{base}/native");
    if let Some(rest) = path.strip_prefix("/native/") {
        let rest = rest.strip_prefix("v1/").unwrap_or(rest);
        if rest.starts_with("v1/") {
            return format!("{shown}: the base URL of native clients is {native_url}, without /v1 at its end");
        }
        if chat(rest) {
            return format!("{shown}: this client speaks the chat or responses dialect; its base URL is {chat_url}");
        }
        return format!("{shown} does not exist; native clients use the base URL {native_url} and call /v1/messages below it");
    }
    let rest = path.strip_prefix("/v1/").unwrap_or(path.trim_start_matches('/'));
    if rest.starts_with("v1/") {
        return format!("{shown}: /v1 is there twice; the base URL is {chat_url} exactly");
    }
    if native(rest) {
        return format!("{shown}: this client speaks the native dialect; its base URL is {native_url}");
    }
    if chat(rest) || rest.starts_with("models") {
        return format!("{shown} does not exist; the base URL is {chat_url}");
    }
    format!("{shown} does not exist; OpenAI-style clients use the base URL {chat_url}, native clients {native_url}")
}

/// A path as it may be repeated to the caller.
#[must_use]
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
            ("/v1/messages", "native dialect; its base URL is https://api.example.com/native"),
            ("/native/v1/chat/completions", "its base URL is https://api.example.com/v1"),
            ("/native/responses", "its base URL is https://api.example.com/v1"),
            ("/native/v1/v1/messages", "without /v1 at its end"),
            ("/chat/completions", "the base URL is https://api.example.com/v1"),
            ("/messages", "its base URL is https://api.example.com/native"),
            ("/wp-login.php", "OpenAI-style clients"),
        ] {
            assert!(explain(path, base).contains(needle), "{path}: {}", explain(path, base));
        }
    }
}

//! Paths that do not exist: a 404 whose text names the base URL that the caller should have used.

use std::sync::Arc;

use farebox_protocol::Family;
use salvo::http::StatusCode;
use salvo::prelude::{Depot, FlowCtrl, Request, Response, handler};

use super::request_id::Arrival;
use super::{Front, body, failure};
use crate::proxy::Failure;

/// Answers everything that no path matched.
pub(super) struct NotFound {
    front: Arc<Front>,
}

#[handler]
impl NotFound {
    pub(super) fn new(front: Arc<Front>) -> Self {
        Self { front }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.skip_rest();
        let arrival = Arrival::of(depot);
        let path = req.uri().path().to_owned();
        let family = if path == "/native" || path.starts_with("/native/") { Family::Messages } else { Family::Chat };
        body::discard(req, &self.front.proxy.tasks);
        match res.status_code {
            Some(StatusCode::NOT_FOUND) | None => {
                failure::answer(res, &Failure::NoPath(explain(&path, &self.front.public_url)), family, &arrival);
            }
            Some(StatusCode::METHOD_NOT_ALLOWED) => {
                let text = format!(
                    "{} does not take {}; docs are on {}/dashboard",
                    shortened(&path),
                    req.method(),
                    self.front.public_url
                );
                failure::answer(res, &Failure::NoPath(text), family, &arrival);
                res.status_code(StatusCode::METHOD_NOT_ALLOWED);
            }
            Some(_) => failure::answer(res, &Failure::Internal, family, &arrival),
        }
    }
}

/// What to use instead.
pub(super) fn explain(path: &str, base: &str) -> String {
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

fn shortened(path: &str) -> String {
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

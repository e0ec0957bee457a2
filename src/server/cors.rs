//! CORS: cross-origin requests to the customers' paths, from origins that the operator names. Off by default.
//!
//! Covers only the paths that take keys, never the dashboard: no cookie is accepted across origins.

use std::sync::Arc;

use salvo::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use salvo::http::{HeaderValue, Method, StatusCode};
use salvo::prelude::{FlowCtrl, Request, Response, handler};

use super::Front;

/// The paths for programs.
const PATHS: [&str; 4] = ["/v1", "/native", "/api", "/user"];
/// Response headers that a page's script may read.
const EXPOSED: &str = "x-request-id, request-id, x-farebox-slug, x-farebox-cost, x-farebox-balance, x-farebox-class, x-farebox-limit, x-farebox-removed, x-farebox-lost, x-farebox-estimate, retry-after, retry-after-ms, x-should-retry";

/// Adds the CORS headers for the named origins.
pub(super) struct Cors {
    front: Arc<Front>,
}

#[handler]
impl Cors {
    pub(super) fn new(front: Arc<Front>) -> Self {
        Self { front }
    }

    async fn handle(&self, req: &mut Request, res: &mut Response, ctrl: &mut FlowCtrl) {
        let path = req.uri().path();
        let of_customers = PATHS.iter().any(|start| {
            path.strip_prefix(start)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if self.front.cors_origins.is_empty() || !of_customers {
            return;
        }
        let headers = res.headers_mut();
        // Answers differ by origin, so caches must not reuse one for another origin.
        headers.append(VARY, HeaderValue::from_static("origin"));
        let Some(origin) = req
            .headers()
            .get(ORIGIN)
            .filter(|origin| self.lets_in(origin))
            .cloned()
        else {
            return;
        };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(EXPOSED),
        );
        if req.method() == Method::OPTIONS
            && req.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            headers.insert(
                ACCESS_CONTROL_ALLOW_METHODS,
                HeaderValue::from_static("GET, POST, HEAD"),
            );
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
            // SDKs add headers with every version; without a key none of them gives access to anything.
            if let Some(wanted) = req.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).cloned() {
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted);
            }
            res.status_code(StatusCode::NO_CONTENT);
            ctrl.skip_rest();
        }
    }

    fn lets_in(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().unwrap_or_default();
        self.front
            .cors_origins
            .iter()
            .any(|known| known == "*" || known.eq_ignore_ascii_case(origin))
    }
}

//! CORS: cross-origin requests to the customers' paths, from origins that the operator names. Off by default.
//!
//! Covers only the paths that take keys, never the dashboard: no cookie is accepted across origins.

use salvo::cors::{AllowHeaders, AllowOrigin, Cors, CorsHandler, ExposeHeaders};
use salvo::http::header::{HeaderValue, ORIGIN};
use salvo::http::{Method, Request};

/// The paths for programs.
const PATHS: [&str; 4] = ["/v1", "/native", "/api", "/user"];
/// Response headers that a page's script may read.
const EXPOSED: &str = "x-request-id, request-id, x-farebox-slug, x-farebox-cost, x-farebox-balance, x-farebox-class, x-farebox-limit, x-farebox-removed, x-farebox-lost, x-farebox-estimate, retry-after, retry-after-ms, x-should-retry";

/// Adds the CORS headers for the named origins.
pub(super) fn headers(origins: Vec<String>) -> CorsHandler {
    let lets_in = move |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        origins
            .iter()
            .any(|known| known == "*" || known.eq_ignore_ascii_case(origin))
    };
    Cors::new()
        .allow_origin(AllowOrigin::dynamic(move |origin, _, _| {
            origin.filter(|origin| lets_in(origin)).cloned()
        }))
        .expose_headers(ExposeHeaders::dynamic(|_, _, _| {
            Some(HeaderValue::from_static(EXPOSED))
        }))
        .allow_methods(vec![
            Method::GET,
            Method::POST,
            Method::HEAD,
            Method::PATCH,
            Method::DELETE,
        ])
        // SDKs add headers with every version; without a key none of them gives access to anything.
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(600_u64)
        // Answers differ by origin, so caches must not reuse one for another origin.
        .vary([ORIGIN])
        .into_handler()
}

/// Whether a request is for a path for programs.
pub(super) fn covers(req: &Request) -> bool {
    let path = req.uri().path();
    PATHS.iter().any(|start| {
        path.strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

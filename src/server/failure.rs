//! Writes a failure as an answer in the caller's family.

use farebox_protocol::Family;
use salvo::http::header::CONTENT_TYPE;
use salvo::http::{HeaderName, HeaderValue, StatusCode};
use salvo::prelude::Response;

use super::request_id::Arrival;
use crate::proxy::Failure;

/// Writes the failure's status, headers and body.
pub(super) fn answer(res: &mut Response, failure: &Failure, family: Family, arrival: &Arrival) {
    res.status_code(
        StatusCode::from_u16(failure.status(family)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    );
    headers(res, failure.headers());
    json(res, failure.body(family, arrival.shown()).to_json());
}

/// Sets headers with text values.
pub(super) fn headers(res: &mut Response, headers: Vec<(&'static str, String)>) {
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            res.headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
}

/// Sets a JSON body.
pub(super) fn json(res: &mut Response, body: impl Into<salvo::http::ResBody>) {
    res.headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    res.body(body);
}

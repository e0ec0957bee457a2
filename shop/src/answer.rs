//! How every answer of the shop is sent: the headers of a page, and what an answer can be.

use farebox_door::BodyFault;
use maud::Markup;
use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, SET_COOKIE};
use salvo::http::{HeaderName, HeaderValue, StatusCode};
use salvo::prelude::Response;

/// Nothing from other origins, nothing inline, no framing.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// What every answer has.
pub(crate) fn guard(res: &mut Response) {
    for (name, value) in HEADERS {
        res.headers_mut().insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
}

pub(crate) fn page(res: &mut Response, status: StatusCode, page: Markup) {
    guard(res);
    res.status_code(status);
    res.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    res.body(page.into_string());
}

pub(crate) fn see_other(res: &mut Response, path: &str) {
    guard(res);
    res.status_code(StatusCode::SEE_OTHER);
    header(res, LOCATION, path);
}

/// One line for a program.
pub(crate) fn line(res: &mut Response, status: StatusCode, text: &str) {
    guard(res);
    res.status_code(status);
    res.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    res.body(format!("{text}\n"));
}

/// What is wrong with a body, in a line.
pub(crate) fn fault(res: &mut Response, fault: BodyFault) {
    let status = StatusCode::from_u16(fault.status()).unwrap_or_default();
    line(res, status, &fault.message());
}

/// Style or script, which may be kept: its address names its contents.
pub(crate) fn asset(res: &mut Response, kind: &'static str, text: &'static str) {
    guard(res);
    res.headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    res.headers_mut().insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    res.body(text);
}

pub(crate) fn cookie(res: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        res.headers_mut().append(SET_COOKIE, cookie);
    }
}

fn header(res: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        res.headers_mut().insert(name, value);
    }
}

//! Refuses bodies whose end two servers could place differently, because a second request could hide in them (request smuggling).
//! Such a body is not read, and its connection is not used again.

use farebox_protocol::paths;
use salvo::http::header::{CONNECTION, TRANSFER_ENCODING};
use salvo::http::{HeaderMap, HeaderValue};
use salvo::prelude::{Depot, FlowCtrl, Request, Response, handler};

use super::request_id::Arrival;
use super::{body, failure};

/// The answer to a transfer coding other than `chunked`.
const UNKNOWN_CODING: &str =
    "the only transfer coding that is served is chunked; send the body with a length, or chunked";

/// The middleware around every path, matched or not.
#[handler]
pub(super) async fn plain_end(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
    ctrl: &mut FlowCtrl,
) {
    if !is_plainly_coded(req.headers()) {
        res.headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        failure::answer(
            res,
            &body::bad(UNKNOWN_CODING),
            paths::family_of(req.uri().path()),
            &Arrival::of(depot),
        );
        ctrl.skip_rest();
        return;
    }
    let chunked = req.headers().contains_key(TRANSFER_ENCODING);
    ctrl.call_next(req, depot, res).await;
    if chunked && req.extensions().get::<body::ReadWhole>().is_none() {
        // The end of the body is unknown, so nothing after it is read as a request.
        res.headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Whether a body has a length or is simply chunked.
fn is_plainly_coded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).into_iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        _ => false,
    }
}

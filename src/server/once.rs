//! The caller's own name for an act, the same when it is sent again: the header `Idempotency-Key`.

use salvo::http::HeaderValue;

/// What such a name is.
pub(super) const A_NAME: &str = "an Idempotency-Key has 1 to 255 visible characters without spaces";

/// The name, if it is one.
pub(super) fn name(sent: &HeaderValue) -> Option<String> {
    let name = sent.to_str().ok()?.trim();
    let is_name =
        (1..=255).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    is_name.then(|| name.to_owned())
}

//! How a messages stream ends when it is ended here.

use crate::{ErrorBody, Usage, UsageWish};

pub(super) fn end_at_limit(slug: &str, usage: &Usage, wish: UsageWish<'_>) -> Vec<u8> {
    let _ = (slug, usage, wish);
    Vec::new()
}

pub(super) fn error_event(slug: &str, error: &ErrorBody) -> Vec<u8> {
    let _ = slug;
    error.to_json()
}

//! Edits to a chat request on its way upstream: streams always report usage, and nothing is stored.

use crate::json::Edit;
use crate::patch::{common, member, option, store};
use crate::{Edits, Inspection};

pub(super) fn changes(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
    let mut changes = common(body, seen, edits);
    match &seen.places.stream_options {
        _ if !seen.stream => {}
        Some(at) => changes.extend(option(body, at, "include_usage", "true")),
        None => changes.push(member(seen, "stream_options", r#"{"include_usage":true}"#)),
    }
    changes.extend(seen.places.store.as_ref().map(store));
    changes
}

//! Edits to a chat request on its way upstream: streams always report usage, and nothing is stored.

use crate::json::Edit;
use crate::patch::{member, option, store};
use crate::{Edits, Inspection};

pub(super) fn changes(
    body: &[u8],
    seen: &Inspection,
    edits: &Edits<'_>,
    changes: &mut Vec<Edit<'static>>,
) {
    // A service that does not know the field reports usage by itself.
    let left = |name: &str| edits.fit.leaves_out(name);
    match &seen.places.stream_options {
        _ if !seen.stream || left("stream_options") => {}
        Some(at) => changes.extend(option(body, at, "include_usage", "true")),
        None => changes.push(member(seen, "stream_options", r#"{"include_usage":true}"#)),
    }
    let stored = seen.places.store.as_ref().filter(|_| !left("store"));
    changes.extend(stored.map(store));
}

//! Edits to a chat request on its way upstream: streams always report usage, nothing is stored, and
//! earlier turns fit the target.

use super::history;
use crate::class;
use crate::class_fields;
use crate::json::Edit;
use crate::patch::{common, member, option, store};
use crate::{Edits, Inspection};

pub(super) fn changes(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
    let mut changes = common(body, seen, edits);
    changes.extend(history::changes(&edits.history, body, seen));
    // A service that does not know the field reports usage by itself.
    let left = |name: &str| edits.leave_out.iter().any(|left| left == name);
    match &seen.places.stream_options {
        _ if !seen.stream || left("stream_options") => {}
        Some(at) => changes.extend(option(body, at, "include_usage", "true")),
        None => changes.push(member(seen, "stream_options", r#"{"include_usage":true}"#)),
    }
    let stored = seen.places.store.as_ref().filter(|_| !left("store"));
    changes.extend(stored.map(store));
    changes.extend(class_fields::pins(class::CHAT, seen, edits));
    changes
}

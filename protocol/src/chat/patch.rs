//! Edits to a chat request on its way upstream: streams always report usage, nothing is stored, and the output limit is in a
//! field that the provider reads.

use crate::json::{Edit, quoted};
use crate::patch::{common, member, option, store};
use crate::{Edits, Inspection};

pub(super) fn changes(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
    let mut changes = common(seen, edits);
    changes.extend(limit_name(body, seen, edits));
    match &seen.places.stream_options {
        _ if !seen.stream => {}
        Some(at) => changes.extend(option(body, at, "include_usage", "true")),
        None => changes.push(member(seen, "stream_options", r#"{"include_usage":true}"#)),
    }
    changes.extend(seen.places.store.as_ref().map(store));
    changes
}

/// A provider that knows only `max_tokens` may ignore a declared `max_completion_tokens` and produce far more than the limit for which
/// money was held. So the limit is written into the field that this provider reads.
fn limit_name(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Option<Edit<'static>> {
    let places = &seen.places;
    let ((declared, at), (known, limit)) = (places.limit.as_ref()?, edits.limit?);
    if *declared == known || known != "max_tokens" || places.limit_twin.is_some() {
        return None;
    }
    if let Some((_, null)) = places.nulls.iter().find(|(name, _)| *name == known) {
        return Some(Edit::replace(null.clone(), limit.to_string().into_bytes()));
    }
    // Only a colon and white space separate the name from its number, and no escape puts a quote into the name.
    let quote = |before: usize| body.get(..before)?.iter().rposition(|byte| *byte == b'"');
    let end = quote(at.start)?;
    Some(Edit::replace(
        quote(end)?..end + 1,
        quoted(known).into_bytes(),
    ))
}

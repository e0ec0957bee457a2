//! The changes an answer gets on its way back: the public slug for the upstream's model name, `usage.cost` where asked for, and
//! nothing of what the upstream says about its own price or about who it is.

use bytes::Bytes;
use farebox_ledger::Amount;
use farebox_protocol::Marks;
use farebox_protocol::json::{self, Edit};

/// The bytes as the customer gets them; the very same bytes where nothing changes.
pub(super) fn rewrite(bytes: &Bytes, marks: &Marks, slug: &str, cost: Option<Amount>) -> Bytes {
    let mut edits: Vec<Edit<'_>> = marks.cuts.iter().cloned().map(Edit::cut).collect();
    for place in marks.model.iter().chain(&marks.more_models).cloned() {
        edits.push(Edit::replace(place, json::quoted(slug).into_bytes()));
    }
    if let (Some(end), Some(cost)) = (marks.usage_end, cost) {
        let comma = if marks.usage_empty { "" } else { "," };
        edits.push(Edit::replace(end..end, format!("{comma}\"cost\":{cost}").into_bytes()));
    }
    if edits.is_empty() { bytes.clone() } else { Bytes::from(json::splice(bytes, &mut edits)) }
}

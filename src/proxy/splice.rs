//! The changes an answer gets on its way back: the public slug for the upstream's model name, `usage.cost` where asked for, and
//! what the upstream says of its own price and name is cut. Everything else is the very bytes that came.

use std::ops::Range;

use bytes::Bytes;
use farebox_ledger::Amount;
use farebox_protocol::json::{self, Edit};

/// Where an answer or a frame is changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// The model's name, quotes included.
    pub(super) model: Option<Range<usize>>,
    /// The closing brace of the usage object.
    pub(super) usage_end: Option<usize>,
    /// The usage object has no members.
    pub(super) usage_empty: bool,
    /// What the upstream says of its own price and name.
    pub(super) cuts: Vec<Range<usize>>,
}

/// The bytes as the customer gets them; the very same bytes where nothing changes.
pub(super) fn rewrite(bytes: &Bytes, marks: &Marks, slug: &str, cost: Option<Amount>) -> Bytes {
    let mut edits: Vec<Edit<'_>> = marks.cuts.iter().cloned().map(Edit::cut).collect();
    if let Some(place) = marks.model.clone() {
        edits.push(Edit::replace(place, json::quoted(slug).into_bytes()));
    }
    if let (Some(end), Some(cost)) = (marks.usage_end, cost) {
        let comma = if marks.usage_empty { "" } else { "," };
        edits.push(Edit::replace(end..end, format!("{comma}\"cost\":{cost}").into_bytes()));
    }
    if edits.is_empty() { bytes.clone() } else { Bytes::from(json::splice(bytes, &mut edits)) }
}

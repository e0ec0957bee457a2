//! The changes an answer gets on its way back: the public slug for the upstream's model name, `usage.cost` where asked for, and
//! nothing of what the upstream says about its own price or about who it is.

use std::ops::Range;

use bytes::Bytes;
use farebox_ledger::Amount;
use farebox_protocol::json::{self, Edit};
use farebox_protocol::{AnswerFacts, FrameFacts};

/// Where an answer or a frame is changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// The model's name, quotes included.
    pub(super) model: Option<Range<usize>>,
    /// The closing brace of the usage object.
    pub(super) usage_end: Option<usize>,
    /// The usage object has no members.
    pub(super) usage_empty: bool,
    /// What customers do not see.
    pub(super) cuts: Vec<Range<usize>>,
}

impl From<FrameFacts> for Marks {
    fn from(facts: FrameFacts) -> Self {
        let FrameFacts { model, usage_end, usage_empty, cuts, .. } = facts;
        Self { model, usage_end, usage_empty, cuts }
    }
}

impl From<&AnswerFacts> for Marks {
    fn from(facts: &AnswerFacts) -> Self {
        let AnswerFacts { model, usage_end, usage_empty, cuts, .. } = facts;
        Self { model: model.clone(), usage_end: *usage_end, usage_empty: *usage_empty, cuts: cuts.clone() }
    }
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

//! The changes made to an answer on its way back: the customer's name for the model replaces the upstream's, `usage.cost` is
//! added, and whatever the upstream says about its own price or identity is removed.

use std::ops::Range;

use bytes::Bytes;
use farebox_ledger::Amount;
use farebox_protocol::FrameMarks;
use farebox_protocol::json::{self, Edit};

/// The bytes for the customer; the same allocation if nothing changes. `name` is the name that the customer asked for as JSON, quotes included.
pub(super) fn rewrite(
    bytes: &Bytes,
    marks: &FrameMarks,
    name: &str,
    cost: Option<Amount>,
) -> Bytes {
    let cost = marks.usage_end.zip(cost);
    if let (Some(place), None, None) = (&marks.model, marks.more(), cost) {
        return renamed(bytes, place, name);
    }
    let mut edits = marks.edits(name);
    if let Some((end, cost)) = cost {
        let comma = if marks.usage_empty { "" } else { "," };
        edits.push(Edit::replace(
            end..end,
            format!("{comma}\"cost\":{cost}").into_bytes(),
        ));
    }
    if edits.is_empty() {
        bytes.clone()
    } else {
        Bytes::from(json::splice(bytes, &mut edits))
    }
}

/// Nearly every frame of a stream changes only here, so it needs no list of edits.
fn renamed(bytes: &Bytes, place: &Range<usize>, name: &str) -> Bytes {
    let (before, behind) = (
        bytes.get(..place.start).unwrap_or_default(),
        bytes.get(place.end..).unwrap_or_default(),
    );
    Bytes::from([before, name.as_bytes(), behind].concat())
}

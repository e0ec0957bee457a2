//! Edits to a responses request on its way upstream: nothing is stored.

use crate::json::Edit;
use crate::patch::{member, store};
use crate::{Edits, Inspection};

pub(super) fn changes(
    _body: &[u8],
    seen: &Inspection,
    edits: &Edits<'_>,
    changes: &mut Vec<Edit<'static>>,
) {
    if !edits.fit.drops("store") {
        changes.push(match &seen.places.store {
            Some(at) => store(at),
            None => member(seen, "store", "false"),
        });
    }
}

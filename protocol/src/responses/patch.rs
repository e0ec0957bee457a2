//! What is changed in a responses request on its way upstream: nothing is stored.

use crate::json::splice;
use crate::patch::{common, member, store};
use crate::{Edits, Inspection};

pub(super) fn patch(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<u8> {
    let mut changes = common(seen, edits);
    changes.push(match &seen.places.store {
        Some(at) => store(at),
        None => member(seen, "store", "false"),
    });
    splice(body, &mut changes)
}

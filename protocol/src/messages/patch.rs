//! What is changed in a messages request on its way upstream: nothing of its own.

use crate::json::splice;
use crate::patch::common;
use crate::{Edits, Inspection};

pub(super) fn patch(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<u8> {
    splice(body, &mut common(seen, edits))
}

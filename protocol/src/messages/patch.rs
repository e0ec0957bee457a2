//! Edits to a messages request on its way upstream: only those that all families share.

use crate::json::splice;
use crate::patch::common;
use crate::{Edits, Inspection};

pub(super) fn patch(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<u8> {
    splice(body, &mut common(seen, edits))
}

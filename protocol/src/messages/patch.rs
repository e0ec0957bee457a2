//! Edits to a messages request on its way upstream: only those that all families share.

use crate::json::Edit;
use crate::patch::common;
use crate::{Edits, Inspection};

pub(super) fn changes(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
    common(body, seen, edits)
}

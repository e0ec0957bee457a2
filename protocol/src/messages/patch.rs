//! Edits to a messages request on its way upstream: those that all families share, and pinned classes.

use crate::class;
use crate::class_fields;
use crate::json::Edit;
use crate::patch::common;
use crate::{Edits, Inspection};

pub(super) fn changes(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
    let mut changes = common(body, seen, edits);
    changes.extend(class_fields::pins(class::MESSAGES, seen, edits));
    changes
}

//! Edits to a responses request on its way upstream: nothing is stored.

use super::Responses;
use crate::class;
use crate::class_fields;
use crate::fit::{self, FamilyFit};
use crate::json::Edit;
use crate::patch::{common, member, store};
use crate::{Edits, Inspection};

pub(super) fn changes(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
    let mut changes = common(body, seen, edits);
    if !edits.fit.drops("store") {
        changes.push(match &seen.places.store {
            Some(at) => store(at),
            None => member(seen, "store", "false"),
        });
    }
    changes.extend(class_fields::pins(class::RESPONSES, seen, edits));
    fit::fit(&Responses, (body, seen), edits, &mut changes);
    changes
}

impl FamilyFit for Responses {}

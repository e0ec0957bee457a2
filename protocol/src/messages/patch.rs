//! Edits to a messages request on its way upstream: those that all families share, pinned classes, and thinking that cannot be turned
//! off.

use super::{Messages, encode};
use crate::class;
use crate::class_fields;
use crate::fit::{self, FamilyFit, ToldThinking};
use crate::json::Edit;
use crate::patch::common;
use crate::target_fit::TargetFit;
use crate::translate::Losses;
use crate::{Edits, Inspection};

pub(super) fn changes(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
    let mut changes = common(body, seen, edits);
    changes.extend(class_fields::pins(class::MESSAGES, seen, edits));
    fit::fit(&Messages, (body, seen), edits, &mut changes);
    changes
}

impl FamilyFit for Messages {
    fn retells_thinking(&self, fit: &TargetFit) -> bool {
        fit.abilities.thinks_always
    }

    /// The least effort is asked for, unless the request says an effort of its own.
    fn thinking(
        &self,
        fit: &TargetFit,
        _value: &str,
        seen: &Inspection,
        losses: &mut Losses,
    ) -> (Option<String>, ToldThinking) {
        losses.add("thinking", "dropped");
        let least = encode::least_effort(&fit.abilities).filter(|_| !seen.places.effort);
        let member =
            least.map(|least| format!(r#""output_config":{{"effort":"{}"}}"#, least.name()));
        let told = ToldThinking {
            hidden: true,
            off: false,
        };
        (member, told)
    }
}

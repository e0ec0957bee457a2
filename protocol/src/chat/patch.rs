//! Edits to a chat request on its way upstream: streams always report usage, nothing is stored, and earlier turns and the wish to think
//! fit the target.

use super::history;
use super::{Chat, reasoning};
use crate::class;
use crate::class_fields;
use crate::fit::{self, Concern, FamilyFit, Fitting, ToldThinking};
use crate::json::{Cursor, Edit, JsonError};
use crate::patch::{common, member, option, store};
use crate::target_fit::TargetFit;
use crate::translate::Losses;
use crate::{Edits, Inspection};

pub(super) fn changes(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
    let mut changes = common(body, seen, edits);
    // A service that does not know the field reports usage by itself.
    let left = |name: &str| edits.fit.leaves_out(name);
    match &seen.places.stream_options {
        _ if !seen.stream || left("stream_options") => {}
        Some(at) => changes.extend(option(body, at, "include_usage", "true")),
        None => changes.push(member(seen, "stream_options", r#"{"include_usage":true}"#)),
    }
    let stored = seen.places.store.as_ref().filter(|_| !left("store"));
    changes.extend(stored.map(store));
    changes.extend(class_fields::pins(class::CHAT, seen, edits));
    fit::fit(&Chat, (body, seen), edits, &mut changes);
    changes
}

impl FamilyFit for Chat {
    fn concern(&self, fit: &TargetFit, body: &[u8], seen: &Inspection) -> Concern {
        history::concern(fit, body, seen)
    }

    fn turns(&self, fitting: &mut Fitting<'_>, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        history::turns(fitting, cursor)
    }

    fn retells_thinking(&self, fit: &TargetFit) -> bool {
        !fit.takes_reasoning
    }

    fn thinking(
        &self,
        fit: &TargetFit,
        value: &str,
        seen: &Inspection,
        losses: &mut Losses,
    ) -> (Option<String>, ToldThinking) {
        reasoning::retold(fit, value, seen, losses)
    }
}

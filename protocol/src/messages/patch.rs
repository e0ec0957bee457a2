//! Edits to a messages request on its way upstream: thinking that cannot be turned off.

use super::encode;
use crate::Inspection;
use crate::inspect::ToldThinking;
use crate::target_fit::TargetFit;
use crate::translate::Losses;

/// The least effort is asked for, unless the request says an effort of its own.
pub(super) fn thinking(
    fit: &TargetFit,
    _value: &str,
    seen: &Inspection,
    losses: &mut Losses,
) -> (Option<String>, ToldThinking) {
    losses.add("thinking", "dropped");
    let least = encode::least_effort(&fit.abilities).filter(|_| !seen.places.effort);
    let member = least.map(|least| format!(r#""output_config":{{"effort":"{}"}}"#, least.name()));
    let told = ToldThinking {
        hidden: true,
        off: false,
    };
    (member, told)
}

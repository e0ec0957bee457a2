//! The table of what targets take: made from what is known of the service (`presets.toml`), of the model by its name (`facts.rs`), and from
//! what the operator says in `routes.toml`. Everything that is sent to a target is fitted by its row; nothing else asks for these facts.

use farebox_protocol::translate::Abilities;
use farebox_protocol::{ChatLimit, Family, TargetFit};

use super::{Endpoint, Preset, Provider, TargetAbilities, facts};

/// The row of one target. `pin`: its own, if it has any.
pub(super) fn of(
    provider: &Provider,
    model: &str,
    said: &TargetAbilities,
    pin: Option<&[&'static str]>,
) -> TargetFit {
    let (preset, fields) = (provider.preset, &provider.fields);
    let pin = pin.unwrap_or(&fields.pin);
    // What the operator pins is sent: a pin wins over a drop, as a drop does over a pass.
    let drop = fields.drop.iter();
    let drop = drop.filter(|path| !pin.contains(&path.as_str()));
    let refuses = facts::refuses_stops_and_penalties(model);
    let penalties: &[&str] = if refuses {
        &["frequency_penalty", "presence_penalty"]
    } else {
        &[]
    };
    let mut leave_out = preset.map_or_else(Vec::new, |preset| preset.leave_out.clone());
    leave_out.extend(penalties.iter().map(|name| (*name).to_owned()));
    let careful = Abilities {
        leave_out,
        stops: !refuses,
        signed_calls: preset.is_some_and(|preset| preset.signed_calls),
        effort_with_tools: !facts::refuses_effort_with_tools(model),
        thinks_always: facts::thinks_always(model),
        top_k: fields.pass.iter().any(|field| field == "top_k"),
        ..Abilities::careful(Family::Chat)
    };
    TargetFit {
        abilities: said.over(careful),
        chat_limit: match provider.chat_limit {
            ChatLimit::AsDeclared if facts::reasons(model) => ChatLimit::MaxCompletionTokens,
            said => said,
        },
        pin: pin.to_vec(),
        pass: fields.pass.clone(),
        drop: drop.cloned().collect(),
        turn_members: preset.map_or_else(Vec::new, |preset| preset.turn_members.clone()),
        refuses_nulls: match preset {
            // Whoever wrote a server that nobody knows may have forgotten them; those that are known take them, or say that they do not.
            None => provider.endpoint != Endpoint::Simulated,
            Some(preset) => preset.refuses_nulls,
        },
        takes_marks: preset.is_none_or(|preset| !preset.refuses_marks),
        takes_reasoning: takes_reasoning(preset, said),
    }
}

/// A service that nobody knows may be a router, unless the operator says how its target is told to think.
fn takes_reasoning(preset: Option<&Preset>, said: &TargetAbilities) -> bool {
    preset.map_or(said.thinking.is_none(), |preset| preset.takes_reasoning)
}

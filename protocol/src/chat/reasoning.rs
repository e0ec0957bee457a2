//! The `reasoning` of router clients: read for every target, and told in the words of the services that do not have it.

use super::encode::thinking;
use crate::inspect::ToldThinking;
use crate::target_fit::TargetFit;
use crate::translate::Losses;
use crate::translate::encode::{EncodeTarget, Encoding};
use crate::translate::neutral::{Effort, NeutralPrompt, NeutralTool, Thinking, ThinkingMode};
use crate::translate::text::JsonWriter;
use crate::translate::tree::JsonNode;
use crate::{Family, Inspection};

/// Reads `reasoning`: an effort, or a number of tokens, or only whether; and whether the caller wants to read it.
pub(super) fn read(value: &JsonNode<'_>, thinking: &mut Thinking) {
    let (effort, tokens) = (
        Effort::named(value.get("effort").word()),
        value.get("max_tokens").count(),
    );
    match (value.get("enabled").flag(), effort, tokens) {
        (Some(false), ..) | (_, None, Some(0)) => {
            thinking.mode = ThinkingMode::Off;
            thinking.effort = None;
        }
        (_, Some(effort), _) => thinking.effort = Some(effort),
        (_, None, Some(tokens)) => thinking.mode = ThinkingMode::Budget(tokens),
        // Routers think at medium effort if they are told no more.
        (Some(true), None, None) => {
            thinking.effort = thinking.effort.or(Some(Effort::Medium));
        }
        (None, None, None) => {}
    }
    if let Some(hides) = value.get("exclude").flag() {
        thinking.shown = Some(!hides);
    }
}

/// The member that says the same to a target without `reasoning`, and what it tells.
pub(super) fn retold(
    fit: &TargetFit,
    value: &str,
    seen: &Inspection,
    losses: &mut Losses,
) -> (Option<String>, ToldThinking) {
    let Ok(node) = JsonNode::parse(value.as_bytes()) else {
        return (None, ToldThinking::default());
    };
    let mut wish = Thinking::default();
    read(&node, &mut wish);
    // The family's own field is there, and says it.
    if seen.places.effort {
        losses.add("reasoning", "dropped");
        let off = seen.thinking.off;
        return (None, ToldThinking { hidden: !off, off });
    }
    if node.get("exclude").is_true() {
        losses.add("reasoning.exclude", "dropped");
    }
    let prompt = NeutralPrompt {
        thinking: wish,
        tools: vec![NeutralTool::default(); usize::from(seen.content.tools > 0)],
        ..NeutralPrompt::default()
    };
    let mut found = Losses::default();
    let mut out = JsonWriter::with_capacity(64);
    thinking(
        &mut out,
        &prompt,
        &mut Encoding {
            target: &EncodeTarget {
                model: "",
                abilities: &fit.abilities,
            },
            caller: Family::Chat,
            family: Family::Chat,
            losses: &mut found,
        },
    );
    for (field, word, _) in found.iter() {
        let field = if field == "reasoning_effort" {
            "reasoning"
        } else {
            field
        };
        losses.add(field, word);
    }
    let member = out.finish();
    let off = wish.mode == ThinkingMode::Off || wish.effort == Some(Effort::None);
    if off && member.is_empty() {
        losses.add("reasoning", "dropped");
    }
    let told = ToldThinking {
        hidden: !off && !member.is_empty(),
        off: off && !member.is_empty(),
    };
    (Some(member).filter(|member| !member.is_empty()), told)
}

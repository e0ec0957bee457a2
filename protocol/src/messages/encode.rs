//! Encodes a prompt as a messages request.
//!
//! Every content is a list of blocks. A limit is always written, because this family requires one.

use super::encode_turns::{arranged, messages, text_block};
use super::marks::MarkRules;
use crate::BadRequest;
use crate::translate::abilities::{Abilities, Sampling, ThinkingWay};
use crate::translate::effort;
use crate::translate::encode::{Encoding, Field, description, no_schema, schema};
use crate::translate::ids::{hex, tool_name};
use crate::translate::neutral::{
    AnswerFormat, Effort, NeutralBlock, NeutralPrompt, Role, Thinking, ThinkingMode, ToolChoice,
};
use crate::translate::schema::{for_messages, one_object};
use crate::translate::text::{Escaped, JsonWriter};

/// Members allowed in a request that only counts its input, as far as they change the count.
pub(super) const COUNTED: &[&str] = &[
    "model",
    "system",
    "messages",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
];

const ONE_OBJECT: &str = "Answer with one JSON object and nothing else.";

pub(crate) fn encode(
    mut prompt: NeutralPrompt<'_>,
    size: usize,
    encoding: &mut Encoding<'_>,
) -> Result<Vec<u8>, BadRequest> {
    let mut out = encoding.begin(size);
    let limit = prompt.limit.unwrap_or(encoding.abilities().max_output);
    out.name("max_tokens").number(u64::from(limit));
    let choice = encoding.offered(&mut prompt)?;
    let thinks = thinking(&prompt, limit, choice.as_ref(), encoding);
    if prompt.format == Some(AnswerFormat::Json) {
        encoding.losses.add(encoding.field(Field::Format), "asked");
        prompt.system.push(NeutralBlock::words(ONE_OBJECT));
    }
    let turns = arranged(std::mem::take(&mut prompt.turns), encoding);
    let mut marks = MarkRules::of(&prompt, &turns, encoding);
    tools(&mut out, &prompt, &mut marks, encoding);
    tool_choice(&mut out, &prompt, choice);
    prompt
        .system
        .retain(|block| matches!(block, NeutralBlock::Text { text, .. } if !text.is_blank()));
    if !prompt.system.is_empty() {
        out.name("system").open('[');
        prompt
            .system
            .iter()
            .for_each(|block| text_block(&mut out, block, &mut marks));
        out.close(']');
    }
    out.name("messages").open('[');
    messages(&mut out, &turns, &mut marks, encoding)?;
    out.close(']');
    if marks.automatic {
        out.name("cache_control").raw(r#"{"type":"ephemeral"}"#);
    }
    sampling(
        &mut out,
        &prompt,
        matches!(thinks, Thinks::Budget(_)),
        encoding,
    );
    stops(&mut out, &prompt, encoding);
    output(&mut out, &prompt, thinks, encoding)?;
    if let Some(user) = &prompt.user {
        out.name("metadata").open('{');
        out.name("user_id").plain(&hex(user, 64));
        out.close('}');
    }
    if let Some(standard) = prompt.standard_tier {
        out.name("service_tier").raw(if standard {
            "\"standard_only\""
        } else {
            "\"auto\""
        });
    }
    encoding.tier(&mut out, prompt.tier)?;
    if prompt.stream {
        out.name("stream").flag(true);
    }
    encoding.lost(prompt.verbosity.is_some(), "verbosity");
    out.close('}');
    Ok(out.finish().into_bytes())
}

/// Whether and how reasoning is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thinks {
    Unsaid,
    Off,
    Adaptive(Option<Effort>),
    /// It does so in any case, and must not be told.
    Always(Option<Effort>),
    Budget(u32),
}

/// The least that a target can be asked to think.
pub(super) fn least_effort(abilities: &Abilities) -> Option<Effort> {
    abilities.effort(Effort::Low)
}

/// The effort to write for a wish: the closest one that the target knows.
fn known_effort(wish: Thinking, encoding: &mut Encoding<'_>) -> Option<Effort> {
    let wanted = match (wish.effort, wish.mode) {
        (_, ThinkingMode::Off) => Some(Effort::None),
        (Some(effort), _) => Some(effort),
        (None, ThinkingMode::Budget(tokens)) => Some(effort::of_budget(tokens)),
        (None, _) => None,
    };
    let known = wanted.and_then(|wanted| match wanted {
        Effort::None => least_effort(encoding.abilities()),
        wanted => encoding.abilities().effort(wanted.max(Effort::Low)),
    });
    if known.is_some() && known != wanted {
        encoding.losses.add("effort", "clamped");
    }
    known
}

fn thinking(
    prompt: &NeutralPrompt<'_>,
    limit: u32,
    choice: Option<&ToolChoice<'_>>,
    encoding: &mut Encoding<'_>,
) -> Thinks {
    let wish = prompt.thinking;
    let way = encoding.abilities().thinking;
    let off = wish.mode == ThinkingMode::Off || wish.effort == Some(Effort::None);
    if wish.effort.is_none() && wish.mode == ThinkingMode::Unsaid {
        return Thinks::Unsaid;
    }
    if matches!(way, ThinkingWay::None | ThinkingWay::Switch) {
        encoding.lost(!off, encoding.field(Field::Thinking));
        return Thinks::Unsaid;
    }
    let forced = matches!(choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    if encoding.abilities().thinks_always && (off || forced) {
        return Thinks::Always(known_effort(wish, encoding));
    }
    if off {
        return Thinks::Off;
    }
    if forced {
        encoding.losses.add("thinking", "off(tool_choice)");
        return Thinks::Off;
    }
    if way != ThinkingWay::Budget {
        return Thinks::Adaptive(known_effort(wish, encoding));
    }
    // The turn with the last calls would have to begin with its signed thinking, which clients of other families do not send back.
    let last = prompt
        .turns
        .iter()
        .rev()
        .find(|turn| turn.role == Role::Assistant);
    let in_calls = last.is_some_and(|turn| {
        turn.blocks
            .iter()
            .any(|block| matches!(block, NeutralBlock::Call(_)))
    });
    if in_calls {
        encoding.losses.add("thinking", "off(no_signature)");
        return Thinks::Off;
    }
    let tokens = match (wish.mode, wish.effort) {
        (ThinkingMode::Budget(tokens), _) => tokens,
        (_, Some(effort)) => effort::budget(effort),
        _ => effort::budget(Effort::Medium),
    };
    match effort::within(tokens, limit) {
        Some(tokens) => Thinks::Budget(tokens),
        None => {
            encoding.losses.add("thinking", "off(limit)");
            Thinks::Off
        }
    }
}

fn tools(
    out: &mut JsonWriter,
    prompt: &NeutralPrompt<'_>,
    marks: &mut MarkRules,
    encoding: &mut Encoding<'_>,
) {
    if prompt.tools.is_empty() {
        return;
    }
    out.name("tools").open('[');
    for tool in &prompt.tools {
        out.open('{');
        out.name("name")
            .plain(&tool_name(tool.namespace.as_deref(), &tool.name));
        out.text_if("description", description(tool).as_ref());
        out.name("input_schema").raw(&one_object(schema(tool)));
        if tool.strict == Some(true) {
            if encoding.abilities().strict_tools {
                out.name("strict").flag(true);
            } else {
                encoding.losses.add("tools.strict", "dropped");
            }
        }
        marks.write(out, tool.cache);
        out.close('}');
    }
    out.close(']');
}

fn tool_choice(out: &mut JsonWriter, prompt: &NeutralPrompt<'_>, choice: Option<ToolChoice<'_>>) {
    let alone = prompt.parallel == Some(false) && !prompt.tools.is_empty();
    let choice = choice.or_else(|| alone.then_some(ToolChoice::Auto));
    let (word, name) = match choice {
        None => return,
        Some(ToolChoice::Auto | ToolChoice::Allowed { .. }) => ("auto", None),
        Some(ToolChoice::Required) => ("any", None),
        Some(ToolChoice::None) => ("none", None),
        Some(ToolChoice::Tool(name)) => ("tool", Some(name)),
    };
    out.name("tool_choice").open('{');
    out.name("type").plain(word);
    name.iter().for_each(|name| out.name("name").plain(name));
    if alone && word != "none" {
        out.name("disable_parallel_tool_use").flag(true);
    }
    out.close('}');
}

/// Temperature is at most 1 here; with a thinking budget it is not allowed at all, and top_p only near 1.
fn sampling(
    out: &mut JsonWriter,
    prompt: &NeutralPrompt<'_>,
    budget: bool,
    encoding: &mut Encoding<'_>,
) {
    let (mut temperature, mut top_p) = encoding.sampling(prompt);
    let value = |number: &str| number.parse::<f64>().unwrap_or(1.0);
    if budget {
        encoding.lost(
            temperature
                .take()
                .is_some_and(|number| value(number) != 1.0),
            "temperature",
        );
        if top_p.is_some_and(|number| value(number) < 0.95) {
            top_p = None;
            encoding.losses.add("top_p", "dropped");
        }
    }
    if let Some(number) = temperature {
        let over = value(number) > 1.0;
        if over {
            encoding.losses.add("temperature", "clamped");
        }
        out.name("temperature").raw(if over { "1" } else { number });
    }
    out.raw_if("top_p", top_p);
    let full = !budget && encoding.abilities().sampling == Sampling::Full;
    encoding.lost(prompt.top_k.is_some() && !full, "top_k");
    prompt
        .top_k
        .filter(|_| full)
        .into_iter()
        .for_each(|number| out.name("top_k").raw(number));
}

fn stops(out: &mut JsonWriter, prompt: &NeutralPrompt<'_>, encoding: &mut Encoding<'_>) {
    let (blank, good): (Vec<&Escaped<'_>>, Vec<_>) =
        prompt.stops.iter().partition(|stop| stop.is_blank());
    blank
        .iter()
        .for_each(|_| encoding.losses.add("stop", "dropped"));
    if !good.is_empty() {
        out.name("stop_sequences").open('[');
        good.iter().for_each(|stop| out.escaped(stop.as_str()));
        out.close(']');
    }
}

fn output(
    out: &mut JsonWriter,
    prompt: &NeutralPrompt<'_>,
    thinks: Thinks,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    match thinks {
        Thinks::Unsaid | Thinks::Always(_) => {}
        Thinks::Off => out.name("thinking").raw(r#"{"type":"disabled"}"#),
        Thinks::Adaptive(_) => out
            .name("thinking")
            .raw(r#"{"type":"adaptive","display":"summarized"}"#),
        Thinks::Budget(tokens) => {
            out.name("thinking").open('{');
            out.name("type").raw("\"enabled\"");
            out.name("budget_tokens").number(u64::from(tokens));
            out.close('}');
        }
    }
    let effort = match thinks {
        Thinks::Adaptive(effort) | Thinks::Always(effort) => effort,
        Thinks::Unsaid | Thinks::Off | Thinks::Budget(_) => None,
    };
    let format = if let Some(AnswerFormat::Schema { schema, .. }) = &prompt.format {
        Some(schema)
    } else {
        None
    };
    if format.is_some() && !encoding.abilities().json_schema {
        return Err(no_schema(encoding));
    }
    if effort.is_none() && format.is_none() {
        return Ok(());
    }
    out.name("output_config").open('{');
    effort
        .iter()
        .for_each(|effort| out.name("effort").plain(effort.name()));
    if let Some(schema) = format {
        let (schema, relaxed) = for_messages(schema);
        if relaxed {
            encoding.losses.add("schema", "relaxed");
        }
        out.name("format").open('{');
        out.name("type").raw("\"json_schema\"");
        out.name("schema").raw(&schema);
        out.close('}');
    }
    out.close('}');
    Ok(())
}

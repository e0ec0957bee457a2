//! Encodes a prompt as a chat request.
//!
//! The system prompt is a single message, because many chat templates accept no more. Tool results are plain text, so pictures and
//! documents among them go into a user message after all of them.

use super::encode_turns::{messages, system};
use crate::translate::abilities::{SystemRole, ThinkingWay};
use crate::translate::encode::{Encoding, Field, description, key, kind, schema, user};
use crate::translate::fates::unsupported;
use crate::translate::ids::tool_name;
use crate::translate::neutral::{
    Effort, NeutralPrompt, NeutralTurn, Role, ThinkingMode, ToolChoice,
};
use crate::translate::text::JsonWriter;
use crate::{BadRequest, Remedy};

/// The number of stop strings that every server accepts.
const MAX_STOPS: usize = 4;

pub(crate) fn encode(
    mut prompt: NeutralPrompt<'_>,
    size: usize,
    encoding: &mut Encoding<'_>,
) -> Result<Vec<u8>, BadRequest> {
    let mut out = encoding.begin(size);
    let choice = encoding.offered(&mut prompt)?;
    let mut turns = std::mem::take(&mut prompt.turns);
    let first = std::mem::take(&mut prompt.system);
    if encoding.abilities().system_role == SystemRole::User && !first.is_empty() {
        turns.insert(
            0,
            NeutralTurn {
                role: Role::User,
                blocks: first,
            },
        );
        out.name("messages").open('[');
    } else {
        out.name("messages").open('[');
        system(&mut out, &first, encoding);
    }
    messages(&mut out, turns, encoding)?;
    out.close(']');
    tools(&mut out, &prompt, encoding);
    tool_choice(&mut out, &prompt, choice, encoding);
    if let Some(parallel) = prompt.parallel.filter(|_| !prompt.tools.is_empty()) {
        out.name("parallel_tool_calls").flag(parallel);
    }
    if let Some(limit) = prompt.limit {
        out.name(encoding.abilities().limit_field)
            .number(u64::from(limit));
    }
    let (temperature, top_p) = encoding.sampling(&prompt);
    out.raw_if("temperature", temperature);
    out.raw_if("top_p", top_p);
    let top_k = prompt.top_k.filter(|_| encoding.abilities().top_k);
    encoding.lost(prompt.top_k.is_some() && top_k.is_none(), "top_k");
    out.raw_if("top_k", top_k);
    stops(&mut out, &prompt, encoding)?;
    thinking(&mut out, &prompt, encoding);
    let format = prompt.format.as_ref();
    encoding.format(&mut out, ("response_format", Some("json_schema")), format)?;
    rest(&mut out, &prompt, encoding)?;
    out.close('}');
    Ok(out.finish().into_bytes())
}

fn tools(out: &mut JsonWriter, prompt: &NeutralPrompt<'_>, encoding: &mut Encoding<'_>) {
    if prompt.tools.is_empty() {
        return;
    }
    out.name("tools").open('[');
    for tool in &prompt.tools {
        encoding.lost(
            tool.cache.is_some() && !encoding.abilities().cache_breakpoints,
            "cache_control",
        );
        let custom = encoding.is_free(tool);
        let (name, kind) = (
            tool_name(tool.namespace.as_deref(), &tool.name),
            kind(custom),
        );
        out.open('{');
        out.name("type").plain(kind);
        out.name(kind).open('{');
        out.name("name").plain(&name);
        if custom {
            out.text_if("description", tool.description.as_ref());
            if let Some((syntax, definition)) = &tool.grammar {
                out.name("format").open('{');
                out.name("type").raw("\"grammar\"");
                out.name("grammar").open('{');
                out.name("syntax").escaped(syntax.as_str());
                out.name("definition").escaped(definition.as_str());
                out.close('}');
                out.close('}');
            }
        } else {
            out.text_if("description", description(tool).as_ref());
            out.name("parameters").raw(schema(tool));
            match tool.strict {
                Some(strict) if encoding.abilities().strict_tools => {
                    out.name("strict").flag(strict)
                }
                Some(true) => encoding.losses.add("tools.strict", "dropped"),
                _ => {}
            }
        }
        out.close('}');
        out.close('}');
    }
    out.close(']');
}

fn tool_choice(
    out: &mut JsonWriter,
    prompt: &NeutralPrompt<'_>,
    choice: Option<ToolChoice<'_>>,
    encoding: &Encoding<'_>,
) {
    let word = match choice {
        None => return,
        Some(ToolChoice::Auto | ToolChoice::Allowed { .. }) => "\"auto\"",
        Some(ToolChoice::None) => "\"none\"",
        Some(ToolChoice::Required) => "\"required\"",
        Some(ToolChoice::Tool(name)) => {
            let kind = kind(encoding.is_free_named(prompt, &name));
            out.name("tool_choice").open('{');
            out.name("type").plain(kind);
            out.name(kind).open('{');
            out.name("name").plain(&name);
            out.close('}');
            out.close('}');
            return;
        }
    };
    out.name("tool_choice").raw(word);
}

fn stops(
    out: &mut JsonWriter,
    prompt: &NeutralPrompt<'_>,
    encoding: &Encoding<'_>,
) -> Result<(), BadRequest> {
    if prompt.stops.len() > MAX_STOPS {
        let name = encoding.field(Field::Stops);
        let message =
            format!("`{name}`: this model takes at most {MAX_STOPS} stop strings. Send fewer.");
        let most = Remedy::AtMost("stop", MAX_STOPS as u64);
        return Err(unsupported(name, message).with(most));
    }
    if !prompt.stops.is_empty() {
        out.name("stop").open('[');
        prompt
            .stops
            .iter()
            .for_each(|stop| out.escaped(stop.as_str()));
        out.close(']');
    }
    Ok(())
}

pub(super) fn thinking(
    out: &mut JsonWriter,
    prompt: &NeutralPrompt<'_>,
    encoding: &mut Encoding<'_>,
) {
    let wish = prompt.thinking;
    let off = wish.mode == ThinkingMode::Off || wish.effort == Some(Effort::None);
    let wanted = wish.effort.is_some() || matches!(wish.mode, ThinkingMode::Budget(_));
    match encoding.abilities().thinking {
        ThinkingWay::Switch if off => out.name("thinking").raw(r#"{"type":"disabled"}"#),
        ThinkingWay::Switch if wish.mode != ThinkingMode::Unsaid || wanted => {
            out.name("thinking").raw(r#"{"type":"enabled"}"#);
        }
        ThinkingWay::Switch => {}
        ThinkingWay::None => encoding.lost(!off && wanted, encoding.field(Field::Thinking)),
        _ if !off && !prompt.tools.is_empty() && !encoding.abilities().effort_with_tools => {
            encoding.lost(wanted, encoding.field(Field::Thinking));
        }
        ThinkingWay::Effort | ThinkingWay::Budget | ThinkingWay::Adaptive => {
            encoding
                .effort(prompt)
                .into_iter()
                .for_each(|effort| out.name("reasoning_effort").plain(effort.name()));
        }
    }
}

fn rest(
    out: &mut JsonWriter,
    prompt: &NeutralPrompt<'_>,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    encoding.lost(prompt.verbosity.is_some(), "verbosity");
    if let Some(text) = &prompt.cache_key {
        match encoding.abilities().takes("prompt_cache_key") {
            true => out.name("prompt_cache_key").plain(&key(text)),
            false => encoding.lost(true, "prompt_cache_key"),
        }
    }
    if let Some(name) = &prompt.user {
        match encoding.abilities().takes("user") {
            true => out.name("user").plain(&user(name)),
            false => encoding.lost(true, "user"),
        }
    }
    // A service without these words has one tier: the standard one that is sold.
    if let Some(standard) = prompt
        .standard_tier
        .filter(|_| encoding.abilities().takes("service_tier"))
    {
        out.name("service_tier")
            .raw(if standard { "\"default\"" } else { "\"auto\"" });
    }
    encoding.tier(out, prompt.tier)?;
    if prompt.stream {
        out.name("stream").flag(true);
        if encoding.abilities().takes("stream_options") {
            out.name("stream_options").raw(r#"{"include_usage":true}"#);
        }
    }
    Ok(())
}

//! Encodes a prompt as a responses request.
//!
//! Nothing is stored, `strict` is always written because its default differs between the families, and no item gets an id: vendors
//! look invented ids up and refuse them.

use super::encode_turns::{input, instructions};
use crate::BadRequest;
use crate::Family;
use crate::translate::abilities::ThinkingWay;
use crate::translate::encode::{Encoding, Field, description, key, kind, schema, user};
use crate::translate::ids::tool_name;
use crate::translate::neutral::{Effort, NeutralPrompt, NeutralTool, ThinkingMode, ToolChoice};
use crate::translate::schema::is_strict;
use crate::translate::text::JsonWriter;

/// The smallest limit that vendors of this family accept.
pub(super) const MIN_LIMIT: u32 = 16;

/// Members allowed in a request that only counts its input.
pub(super) const COUNTED: &[&str] = &[
    "model",
    "instructions",
    "input",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
];

pub(crate) fn encode(
    mut prompt: NeutralPrompt<'_>,
    size: usize,
    encoding: &mut Encoding<'_>,
) -> Result<Vec<u8>, BadRequest> {
    let mut out = encoding.begin(size);
    let choice = encoding.offered(&mut prompt)?;
    let system = instructions(&mut out, std::mem::take(&mut prompt.system), encoding);
    out.name("input").open('[');
    input(
        &mut out,
        system,
        std::mem::take(&mut prompt.turns),
        encoding,
    )?;
    out.close(']');
    tools(&mut out, &prompt, encoding);
    tool_choice(&mut out, &prompt, choice, encoding);
    if let Some(parallel) = prompt.parallel.filter(|_| !prompt.tools.is_empty()) {
        out.name("parallel_tool_calls").flag(parallel);
    }
    if let Some(limit) = prompt.limit {
        if limit < MIN_LIMIT {
            encoding.losses.add(encoding.field(Field::Limit), "raised");
        }
        out.name("max_output_tokens")
            .number(u64::from(limit.max(MIN_LIMIT)));
    }
    let (temperature, top_p) = encoding.sampling(&prompt);
    out.raw_if("temperature", temperature);
    out.raw_if("top_p", top_p);
    let mut include = Vec::new();
    if thinking(&mut out, &prompt, encoding) {
        include.push("\"reasoning.encrypted_content\"");
    }
    if prompt.logprobs {
        let count = prompt.top_logprobs.unwrap_or(0);
        out.name("top_logprobs").number(u64::from(count));
        include.push("\"message.output_text.logprobs\"");
    }
    if !include.is_empty() {
        out.name("include").raw(&format!("[{}]", include.join(",")));
    }
    text(&mut out, &prompt, encoding)?;
    prompt
        .cache_key
        .iter()
        .for_each(|text| out.name("prompt_cache_key").plain(&key(text)));
    prompt
        .user
        .iter()
        .for_each(|name| out.name("safety_identifier").plain(&user(name)));
    if let Some(standard) = prompt.standard_tier {
        out.name("service_tier")
            .raw(if standard { "\"default\"" } else { "\"auto\"" });
    }
    encoding.tier(&mut out, prompt.tier)?;
    out.name("store").flag(false);
    if prompt.stream {
        out.name("stream").flag(true);
    }
    out.close('}');
    Ok(out.finish().into_bytes())
}

fn tools(out: &mut JsonWriter, prompt: &NeutralPrompt<'_>, encoding: &mut Encoding<'_>) {
    if prompt.tools.is_empty() {
        return;
    }
    out.name("tools").open('[');
    for tool in &prompt.tools {
        encoding.lost(tool.cache.is_some(), "cache_control");
        let free = encoding.is_free(tool);
        out.open('{');
        out.name("type").plain(kind(free));
        out.name("name")
            .plain(&tool_name(tool.namespace.as_deref(), &tool.name));
        if free {
            out.text_if("description", tool.description.as_ref());
            if let Some((syntax, definition)) = &tool.grammar {
                out.name("format").open('{');
                out.name("type").raw("\"grammar\"");
                out.name("syntax").escaped(syntax.as_str());
                out.name("definition").escaped(definition.as_str());
                out.close('}');
            }
        } else {
            out.text_if("description", description(tool).as_ref());
            out.name("parameters").raw(schema(tool));
            out.name("strict").flag(strict(tool, encoding));
        }
        out.close('}');
    }
    out.close(']');
}

/// Whether the arguments must follow the schema exactly. Schemas of native clients may be looser than this family allows.
fn strict(tool: &NeutralTool<'_>, encoding: &mut Encoding<'_>) -> bool {
    if tool.strict != Some(true) {
        return false;
    }
    let fits = encoding.abilities().strict_tools
        && (encoding.caller != Family::Messages || is_strict(schema(tool)));
    encoding.lost(!fits, "tools.strict");
    fits
}

fn tool_choice(
    out: &mut JsonWriter,
    prompt: &NeutralPrompt<'_>,
    choice: Option<ToolChoice<'_>>,
    encoding: &Encoding<'_>,
) {
    let named = |out: &mut JsonWriter, name: &str| {
        let free = encoding.is_free_named(prompt, name);
        out.name("type").plain(kind(free));
        out.name("name").plain(name);
    };
    match choice {
        None => {}
        Some(ToolChoice::Auto) => out.name("tool_choice").raw("\"auto\""),
        Some(ToolChoice::None) => out.name("tool_choice").raw("\"none\""),
        Some(ToolChoice::Required) => out.name("tool_choice").raw("\"required\""),
        Some(ToolChoice::Tool(name)) => {
            out.name("tool_choice").open('{');
            named(out, &name);
            out.close('}');
        }
        Some(ToolChoice::Allowed { names, required }) => {
            out.name("tool_choice").open('{');
            out.name("type").raw("\"allowed_tools\"");
            out.name("mode")
                .raw(if required { "\"required\"" } else { "\"auto\"" });
            out.name("tools").open('[');
            for name in &names {
                out.open('{');
                named(out, name);
                out.close('}');
            }
            out.close(']');
            out.close('}');
        }
    }
}

/// Asks for reasoning; returns whether its seals are wanted. Native clients read summaries unless they decline; chat clients never
/// ask for any.
fn thinking(out: &mut JsonWriter, prompt: &NeutralPrompt<'_>, encoding: &mut Encoding<'_>) -> bool {
    let wish = prompt.thinking;
    let off = wish.mode == ThinkingMode::Off || wish.effort == Some(Effort::None);
    if wish.effort.is_none() && wish.mode == ThinkingMode::Unsaid {
        return false;
    }
    if matches!(
        encoding.abilities().thinking,
        ThinkingWay::None | ThinkingWay::Switch
    ) {
        let asks = wish.effort.is_some() || matches!(wish.mode, ThinkingMode::Budget(_));
        encoding.lost(!off && asks, encoding.field(Field::Thinking));
        return false;
    }
    let effort = encoding.effort(prompt);
    let shown = !off && encoding.caller == Family::Messages && wish.shown != Some(false);
    if effort.is_none() && !shown {
        return false;
    }
    out.name("reasoning").open('{');
    effort
        .iter()
        .for_each(|effort| out.name("effort").plain(effort.name()));
    if shown {
        out.name("summary").raw("\"auto\"");
    }
    out.close('}');
    !off
}

fn text(
    out: &mut JsonWriter,
    prompt: &NeutralPrompt<'_>,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    if prompt.format.is_none() && prompt.verbosity.is_none() {
        return Ok(());
    }
    out.name("text").open('{');
    encoding.format(out, ("format", None), prompt.format.as_ref())?;
    out.text_if("verbosity", prompt.verbosity.as_ref());
    out.close('}');
    Ok(())
}

//! Encodes the conversation of a prompt as chat messages.

use super::history::MADE_ELSEWHERE;
use crate::BadRequest;
use crate::translate::abilities::{ReasoningEcho, SystemRole};
use crate::translate::encode::{Encoding, Field, data_url, joined, only_text};
use crate::translate::ids::tool_name;
use crate::translate::neutral::{
    Cache, CallResult, NeutralBlock, NeutralCall, NeutralTurn, Role, ToolKind,
};
use crate::translate::order::{Rules, arrange};
use crate::translate::text::{Escaped, JsonWriter};

/// The system prompt: one message, and one string unless its parts carry cache marks that the target supports.
pub(super) fn system(
    out: &mut JsonWriter,
    blocks: &[NeutralBlock<'_>],
    encoding: &mut Encoding<'_>,
) {
    if blocks.is_empty() {
        return;
    }
    out.open('{');
    let developer = encoding.abilities().system_role == SystemRole::Developer;
    out.name("role").raw(if developer {
        "\"developer\""
    } else {
        "\"system\""
    });
    content(out, blocks, encoding);
    out.close('}');
}

pub(super) fn messages(
    out: &mut JsonWriter,
    turns: Vec<NeutralTurn<'_>>,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    let abilities = encoding.abilities();
    let rules = Rules {
        system_midway: abilities.system_midway,
        prefill: abilities.prefill,
        user_first: false,
        no_blank_text: false,
    };
    for turn in arrange(turns, rules, encoding.losses) {
        match turn.role {
            Role::Assistant => assistant(out, &turn.blocks, encoding),
            Role::System => system(out, &turn.blocks, encoding),
            Role::User => user(out, turn.blocks, encoding)?,
        }
    }
    Ok(())
}

/// The content of a message: a string when it is text alone.
fn content(out: &mut JsonWriter, blocks: &[NeutralBlock<'_>], encoding: &mut Encoding<'_>) {
    let marks = blocks
        .iter()
        .filter(|block| block.cache().is_some())
        .count();
    let marked = marks > 0 && encoding.abilities().cache_breakpoints;
    if !marked {
        (0..marks).for_each(|_| encoding.lost(true, "cache_control"));
    }
    out.name("content");
    if only_text(blocks) && !marked {
        out.escaped(joined(blocks).as_str());
        return;
    }
    out.open('[');
    blocks
        .iter()
        .for_each(|block| part(out, block, marked, encoding));
    out.close(']');
}

fn part(out: &mut JsonWriter, block: &NeutralBlock<'_>, marked: bool, encoding: &mut Encoding<'_>) {
    out.open('{');
    match block {
        NeutralBlock::Text { text, .. } => {
            out.name("type").raw("\"text\"");
            out.name("text").escaped(text.as_str());
        }
        NeutralBlock::Image { source, detail, .. } => {
            out.name("type").raw("\"image_url\"");
            out.name("image_url").open('{');
            out.name("url");
            data_url(out, source);
            out.text_if("detail", detail.as_ref());
            out.close('}');
        }
        NeutralBlock::File { source, name, .. } => {
            out.name("type").raw("\"file\"");
            out.name("file").open('{');
            out.name("filename")
                .escaped(name.as_ref().map_or("document.pdf", Escaped::as_str));
            out.name("file_data");
            data_url(out, source);
            out.close('}');
        }
        NeutralBlock::Call(_) | NeutralBlock::Result(_) | NeutralBlock::Thinking { .. } => {}
    }
    if let (true, Some(cache)) = (marked, block.cache()) {
        if cache == Cache::Long {
            encoding.losses.add("cache_control.ttl", "shortened");
        }
        out.name("prompt_cache_breakpoint")
            .raw(r#"{"mode":"explicit"}"#);
    }
    out.close('}');
}

/// Results first, one message each; then one user message with the rest and with what results cannot contain.
fn user(
    out: &mut JsonWriter,
    blocks: Vec<NeutralBlock<'_>>,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    let mut rest = Vec::new();
    let mut shown = Vec::new();
    for block in blocks {
        match block {
            NeutralBlock::Result(given) => result(out, given, &mut shown, encoding)?,
            other => {
                encoding.readable(&other)?;
                rest.push(other);
            }
        }
    }
    shown.append(&mut rest);
    if !shown.is_empty() {
        out.open('{');
        out.name("role").raw("\"user\"");
        content(out, &shown, encoding);
        out.close('}');
    }
    Ok(())
}

/// One result as text; its pictures and documents go to `shown`, each named by the call.
fn result<'a>(
    out: &mut JsonWriter,
    given: CallResult<'a>,
    shown: &mut Vec<NeutralBlock<'a>>,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    let id = encoding.id(&given.id).into_owned();
    encoding.lost(given.cache.is_some(), "cache_control");
    let mut texts = Vec::new();
    for block in given.blocks {
        let what = match &block {
            NeutralBlock::Image { .. } => "image",
            NeutralBlock::File { .. } => "file",
            _ => {
                if let NeutralBlock::Text { text, .. } = block {
                    texts.push(text);
                }
                continue;
            }
        };
        encoding.readable(&block)?;
        texts.push(Escaped::of(&format!("[see {what} below]")));
        shown.push(NeutralBlock::words(&format!(
            "[{what} from tool call {id}]"
        )));
        shown.push(block);
    }
    texts.retain(|text| !text.is_empty());
    let text = Escaped::join(&texts, "\\n\\n");
    let text = if text.is_empty() {
        "(no output)"
    } else {
        text.as_str()
    };
    out.open('{');
    out.name("role").raw("\"tool\"");
    out.name("tool_call_id").plain(&id);
    out.name("content")
        .pieces(&[if given.is_error { "Error: " } else { "" }, text]);
    out.close('}');
    Ok(())
}

/// Texts and calls of one assistant turn form one message.
fn assistant(out: &mut JsonWriter, blocks: &[NeutralBlock<'_>], encoding: &mut Encoding<'_>) {
    let calls: Vec<&NeutralCall<'_>> = blocks
        .iter()
        .filter_map(|block| {
            if let NeutralBlock::Call(call) = block {
                Some(call)
            } else {
                None
            }
        })
        .collect();
    let texts: Vec<NeutralBlock<'_>> = blocks
        .iter()
        .filter(|block| matches!(block, NeutralBlock::Text { .. }))
        .cloned()
        .collect();
    out.open('{');
    out.name("role").raw("\"assistant\"");
    if texts.is_empty() {
        out.name("content").raw("null");
    } else {
        content(out, &texts, encoding);
    }
    reasoning(out, blocks, !calls.is_empty(), encoding);
    if !calls.is_empty() {
        out.name("tool_calls").open('[');
        for (number, call) in calls.into_iter().enumerate() {
            encoding.lost(call.cache.is_some(), "cache_control");
            let signed = number == 0 && encoding.abilities().signed_calls;
            tool_call(out, call, signed, encoding);
        }
        out.close(']');
    }
    out.close('}');
}

fn reasoning(
    out: &mut JsonWriter,
    blocks: &[NeutralBlock<'_>],
    calls: bool,
    encoding: &mut Encoding<'_>,
) {
    let texts: Vec<&Escaped<'_>> = blocks
        .iter()
        .filter_map(|block| {
            if let NeutralBlock::Thinking { text } = block {
                Some(text)
            } else {
                None
            }
        })
        .collect();
    match encoding.abilities().reasoning_echo {
        ReasoningEcho::All if texts.is_empty() => out.name("reasoning_content").escaped(" "),
        ReasoningEcho::Tools if calls && !texts.is_empty() => {
            out.name("reasoning_content")
                .escaped(Escaped::join(texts, "\\n\\n").as_str());
        }
        ReasoningEcho::All => out
            .name("reasoning_content")
            .escaped(Escaped::join(texts, "\\n\\n").as_str()),
        ReasoningEcho::None | ReasoningEcho::Tools => texts
            .iter()
            .for_each(|_| encoding.lost(true, encoding.field(Field::OldThinking))),
    }
}

fn tool_call(
    out: &mut JsonWriter,
    call: &NeutralCall<'_>,
    signed: bool,
    encoding: &mut Encoding<'_>,
) {
    let custom = call.kind == ToolKind::Custom && encoding.abilities().custom_tools;
    let name = tool_name(call.namespace.as_deref(), &call.name);
    out.open('{');
    out.name("id").plain(&encoding.id(&call.id));
    out.name("type")
        .raw(if custom { "\"custom\"" } else { "\"function\"" });
    out.name(if custom { "custom" } else { "function" })
        .open('{');
    out.name("name").plain(&name);
    if custom {
        out.name("input").plain(&call.arguments);
    } else {
        out.name("arguments").plain(&encoding.arguments(call));
    }
    out.close('}');
    if signed {
        out.name("extra_content").raw(MADE_ELSEWHERE);
    }
    out.close('}');
}

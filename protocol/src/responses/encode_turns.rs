//! Encodes the conversation of a prompt as input items. No item has an id or a status: both belong to the vendor that created it.

use std::collections::HashSet;

use crate::BadRequest;
use crate::translate::abilities::SystemRole;
use crate::translate::encode::{Encoding, Field, data_url, joined, only_text};
use crate::translate::ids::tool_name;
use crate::translate::neutral::{
    Cache, CallResult, NeutralBlock, NeutralCall, NeutralTurn, Role, ToolKind,
};
use crate::translate::order::{Rules, arrange};
use crate::translate::text::{Escaped, JsonWriter};

/// The system prompt as `instructions`. The returned items go before the conversation instead: parts with marks that the target
/// supports, or a user message if the model has no system prompt.
pub(super) fn instructions<'a>(
    out: &mut JsonWriter,
    blocks: Vec<NeutralBlock<'a>>,
    encoding: &mut Encoding<'_>,
) -> Option<NeutralTurn<'a>> {
    if blocks.is_empty() {
        return None;
    }
    if encoding.abilities().system_role == SystemRole::User {
        return Some(NeutralTurn {
            role: Role::User,
            blocks,
        });
    }
    if keeps_marks(&blocks, encoding) {
        return Some(NeutralTurn {
            role: Role::System,
            blocks,
        });
    }
    out.name("instructions").escaped(joined(&blocks).as_str());
    None
}

/// The items of a conversation, `first` before all of them.
pub(super) fn input<'a>(
    out: &mut JsonWriter,
    first: Option<NeutralTurn<'a>>,
    turns: Vec<NeutralTurn<'a>>,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    let abilities = encoding.abilities();
    let rules = Rules {
        system_midway: abilities.system_role != SystemRole::User,
        prefill: abilities.prefill,
        user_first: false,
        no_blank_text: false,
    };
    let turns = arrange(turns, rules, encoding.losses);
    // Calls with free text: their results have a type of their own.
    let mut free = HashSet::new();
    for turn in first.into_iter().chain(turns) {
        match turn.role {
            Role::User => user(out, turn.blocks, &free, encoding)?,
            Role::Assistant => assistant(out, &turn.blocks, &mut free, encoding),
            Role::System if encoding.abilities().system_role == SystemRole::System => {
                message(out, "\"system\"", &turn.blocks, encoding);
            }
            Role::System => message(out, "\"developer\"", &turn.blocks, encoding),
        }
    }
    Ok(())
}

/// Results first, then one message with the rest.
fn user(
    out: &mut JsonWriter,
    blocks: Vec<NeutralBlock<'_>>,
    free: &HashSet<String>,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    let mut rest = Vec::new();
    for block in blocks {
        match block {
            NeutralBlock::Result(given) => result(out, given, free, encoding)?,
            other => {
                encoding.readable(&other)?;
                rest.push(other);
            }
        }
    }
    if !rest.is_empty() {
        message(out, "\"user\"", &rest, encoding);
    }
    Ok(())
}

/// Texts and calls in the order in which the model gave them.
fn assistant(
    out: &mut JsonWriter,
    blocks: &[NeutralBlock<'_>],
    free: &mut HashSet<String>,
    encoding: &mut Encoding<'_>,
) {
    let mut texts = Vec::new();
    for block in blocks {
        match block {
            NeutralBlock::Text { cache, .. } => {
                encoding.lost(cache.is_some(), "cache_control");
                texts.push(block.clone());
            }
            NeutralBlock::Call(made) => {
                said(out, &mut texts);
                call(out, made, free, encoding);
            }
            NeutralBlock::Thinking { .. } => {
                encoding.lost(true, encoding.field(Field::OldThinking))
            }
            NeutralBlock::Image { .. } | NeutralBlock::File { .. } | NeutralBlock::Result(_) => {}
        }
    }
    said(out, &mut texts);
}

/// The model's text, as one message.
fn said(out: &mut JsonWriter, texts: &mut Vec<NeutralBlock<'_>>) {
    if texts.is_empty() {
        return;
    }
    out.open('{');
    out.name("type").raw("\"message\"");
    out.name("role").raw("\"assistant\"");
    out.name("content").escaped(joined(texts).as_str());
    out.close('}');
    texts.clear();
}

fn message(
    out: &mut JsonWriter,
    role: &str,
    blocks: &[NeutralBlock<'_>],
    encoding: &mut Encoding<'_>,
) {
    out.open('{');
    out.name("type").raw("\"message\"");
    out.name("role").raw(role);
    let marked = keeps_marks(blocks, encoding);
    out.name("content");
    match blocks {
        [NeutralBlock::Text { text, .. }] if !marked => out.escaped(text.as_str()),
        blocks => parts(out, blocks, marked, encoding),
    }
    out.close('}');
}

/// Whether the blocks have marks and the target supports them; unsupported marks are lost.
fn keeps_marks(blocks: &[NeutralBlock<'_>], encoding: &mut Encoding<'_>) -> bool {
    let marks = blocks
        .iter()
        .filter(|block| block.cache().is_some())
        .count();
    let kept = marks > 0 && encoding.abilities().cache_breakpoints;
    if !kept {
        (0..marks).for_each(|_| encoding.lost(true, "cache_control"));
    }
    kept
}

fn parts(
    out: &mut JsonWriter,
    blocks: &[NeutralBlock<'_>],
    marked: bool,
    encoding: &mut Encoding<'_>,
) {
    out.open('[');
    blocks
        .iter()
        .for_each(|block| part(out, block, marked, encoding));
    out.close(']');
}

fn part(out: &mut JsonWriter, block: &NeutralBlock<'_>, marked: bool, encoding: &mut Encoding<'_>) {
    match block {
        NeutralBlock::Text { text, .. } => {
            out.open('{');
            out.name("type").raw("\"input_text\"");
            out.name("text").escaped(text.as_str());
        }
        NeutralBlock::Image { source, detail, .. } => {
            out.open('{');
            out.name("type").raw("\"input_image\"");
            out.name("image_url");
            data_url(out, source);
            out.name("detail")
                .escaped(detail.as_ref().map_or("auto", Escaped::as_str));
        }
        NeutralBlock::File { source, name, .. } => {
            out.open('{');
            out.name("type").raw("\"input_file\"");
            out.name("filename")
                .escaped(name.as_ref().map_or("document.pdf", Escaped::as_str));
            out.name("file_data");
            data_url(out, source);
        }
        NeutralBlock::Call(_) | NeutralBlock::Result(_) | NeutralBlock::Thinking { .. } => return,
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

/// The result of a call: text, or parts if it contains pictures or documents.
fn result(
    out: &mut JsonWriter,
    mut given: CallResult<'_>,
    free: &HashSet<String>,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    encoding.lost(given.cache.is_some(), "cache_control");
    given
        .blocks
        .retain(|block| !matches!(block, NeutralBlock::Text { text, .. } if text.is_empty()));
    given
        .blocks
        .iter()
        .try_for_each(|block| encoding.readable(block))?;
    let custom = free.contains(given.id.as_ref());
    out.open('{');
    out.name("type").raw(if custom {
        "\"custom_tool_call_output\""
    } else {
        "\"function_call_output\""
    });
    out.name("call_id").plain(&encoding.id(&given.id));
    out.name("output");
    if given.blocks.is_empty() {
        given.blocks.push(NeutralBlock::words("(no output)"));
    }
    let error = if given.is_error { "Error: " } else { "" };
    if only_text(&given.blocks) {
        out.pieces(&[error, joined(&given.blocks).as_str()]);
    } else {
        if given.is_error {
            given.blocks.insert(0, NeutralBlock::words("Error:"));
        }
        parts(out, &given.blocks, false, encoding);
    }
    out.close('}');
    Ok(())
}

fn call(
    out: &mut JsonWriter,
    made: &NeutralCall<'_>,
    free: &mut HashSet<String>,
    encoding: &mut Encoding<'_>,
) {
    encoding.lost(made.cache.is_some(), "cache_control");
    let custom = made.kind == ToolKind::Custom && encoding.abilities().custom_tools;
    out.open('{');
    out.name("type").raw(if custom {
        "\"custom_tool_call\""
    } else {
        "\"function_call\""
    });
    out.name("call_id").plain(&encoding.id(&made.id));
    out.name("name")
        .plain(&tool_name(made.namespace.as_deref(), &made.name));
    if custom {
        free.insert(made.id.to_string());
        out.name("input").plain(&made.arguments);
    } else {
        out.name("arguments").plain(&encoding.arguments(made));
    }
    out.close('}');
}

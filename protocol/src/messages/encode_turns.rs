//! Encodes the conversation of a prompt as native messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::marks::MarkRules;
use crate::translate::encode::{Encoding, Field};
use crate::translate::fates::unsupported;
use crate::translate::ids::tool_name;
use crate::translate::neutral::{CallResult, MediaSource, NeutralBlock, NeutralTurn, Role};
use crate::translate::order::{Rules, arrange};
use crate::translate::text::{Escaped, JsonWriter};
use crate::{BadRequest, Remedy};

/// Picture types that this family reads.
const PICTURES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The conversation as this family accepts it.
pub(super) fn arranged<'a>(
    mut turns: Vec<NeutralTurn<'a>>,
    encoding: &mut Encoding<'_>,
) -> Vec<NeutralTurn<'a>> {
    for turn in &mut turns {
        turn.blocks.retain(|block| {
            let thinking = matches!(block, NeutralBlock::Thinking { .. });
            encoding.lost(thinking, encoding.field(Field::OldThinking));
            !thinking
        });
    }
    let abilities = encoding.abilities();
    let rules = Rules {
        system_midway: abilities.system_midway,
        prefill: abilities.prefill,
        user_first: true,
        no_blank_text: true,
    };
    placed(arrange(turns, rules, encoding.losses))
}

pub(super) fn messages(
    out: &mut JsonWriter,
    turns: &[NeutralTurn<'_>],
    marks: &mut MarkRules,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    for turn in turns {
        let role = match turn.role {
            Role::User => "\"user\"",
            Role::Assistant => "\"assistant\"",
            Role::System => "\"system\"",
        };
        out.open('{');
        out.name("role").raw(role);
        out.name("content").open('[');
        for block in &turn.blocks {
            write(out, block, marks, encoding)?;
        }
        out.close(']');
        out.close('}');
    }
    Ok(())
}

/// Places system messages where this family accepts them: directly after a user turn, and before an assistant turn or at the end.
/// One after an assistant turn moves behind the next user turn; without one it becomes a user message.
fn placed(turns: Vec<NeutralTurn<'_>>) -> Vec<NeutralTurn<'_>> {
    let mut out: Vec<NeutralTurn<'_>> = Vec::with_capacity(turns.len());
    let mut held: Option<NeutralTurn<'_>> = None;
    for turn in turns {
        let role = turn.role;
        match (role, out.last_mut()) {
            (Role::System, _) => match &mut held {
                Some(system) => system.blocks.extend(turn.blocks),
                None => held = Some(turn),
            },
            (Role::User, Some(last)) if last.role == Role::User => last.blocks.extend(turn.blocks),
            _ => {
                if role == Role::Assistant && out.last().is_some_and(|last| last.role == Role::User)
                {
                    out.extend(held.take());
                }
                out.push(turn);
            }
        }
    }
    if let Some(system) = held {
        match out.last() {
            Some(last) if last.role == Role::User => out.push(system),
            _ => out.push(NeutralTurn {
                role: Role::User,
                blocks: system.blocks,
            }),
        }
    }
    out
}

/// A block of text with its cache mark.
pub(super) fn text_block(out: &mut JsonWriter, block: &NeutralBlock<'_>, marks: &mut MarkRules) {
    let NeutralBlock::Text { text, cache } = block else {
        return;
    };
    out.open('{');
    out.name("type").raw("\"text\"");
    out.name("text").escaped(text.as_str());
    marks.write(out, *cache);
    out.close('}');
}

fn write(
    out: &mut JsonWriter,
    block: &NeutralBlock<'_>,
    marks: &mut MarkRules,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    encoding.readable(block)?;
    match block {
        NeutralBlock::Text { .. } => text_block(out, block, marks),
        NeutralBlock::Image { source, cache, .. } => {
            out.open('{');
            out.name("type").raw("\"image\"");
            picture(out, source, encoding)?;
            marks.write(out, *cache);
            out.close('}');
        }
        NeutralBlock::File {
            source,
            name,
            cache,
        } => {
            out.open('{');
            out.name("type").raw("\"document\"");
            document(out, source, encoding)?;
            out.text_if("title", name.as_ref());
            marks.write(out, *cache);
            out.close('}');
        }
        NeutralBlock::Call(call) => {
            let input = encoding.object(call);
            out.open('{');
            out.name("type").raw("\"tool_use\"");
            out.name("id").plain(&encoding.id(&call.id));
            out.name("name")
                .plain(&tool_name(call.namespace.as_deref(), &call.name));
            out.name("input").raw(&input);
            marks.write(out, call.cache);
            out.close('}');
        }
        NeutralBlock::Result(given) => result(out, given, marks, encoding)?,
        NeutralBlock::Thinking { .. } => {}
    }
    Ok(())
}

fn result(
    out: &mut JsonWriter,
    given: &CallResult<'_>,
    marks: &mut MarkRules,
    encoding: &mut Encoding<'_>,
) -> Result<(), BadRequest> {
    out.open('{');
    out.name("type").raw("\"tool_result\"");
    out.name("tool_use_id").plain(&encoding.id(&given.id));
    let empty = |block: &NeutralBlock<'_>| matches!(block, NeutralBlock::Text { text, .. } if text.is_blank());
    out.name("content").open('[');
    let mut inner = MarkRules::default();
    for block in given.blocks.iter().filter(|block| !empty(block)) {
        write(out, block, &mut inner, encoding)?;
    }
    if given.blocks.iter().all(empty) {
        text_block(out, &NeutralBlock::words("(no output)"), &mut inner);
    }
    out.close(']');
    if given.is_error {
        out.name("is_error").flag(true);
    }
    marks.write(out, given.cache);
    out.close('}');
    Ok(())
}

fn picture(
    out: &mut JsonWriter,
    source: &MediaSource<'_>,
    encoding: &Encoding<'_>,
) -> Result<(), BadRequest> {
    out.name("source").open('{');
    match source {
        MediaSource::Url(url) => {
            out.name("type").raw("\"url\"");
            out.name("url").escaped(url.as_str());
        }
        MediaSource::Base64 { media, data } => {
            let known = if media.as_str() == "image/jpg" {
                "image/jpeg"
            } else {
                media.as_str()
            };
            if !PICTURES.contains(&known) {
                return Err(unsupported(
                    encoding.field(Field::Turns),
                    "Pictures must be JPEG, PNG, GIF or WebP for this model. Convert the picture.",
                )
                .with(Remedy::Inline));
            }
            base64(out, known, data);
        }
    }
    out.close('}');
    Ok(())
}

fn base64(out: &mut JsonWriter, media: &str, data: &Escaped<'_>) {
    out.name("type").raw("\"base64\"");
    out.name("media_type").escaped(media);
    out.name("data").escaped(data.as_str());
}

fn document(
    out: &mut JsonWriter,
    source: &MediaSource<'_>,
    encoding: &Encoding<'_>,
) -> Result<(), BadRequest> {
    let wrong = || {
        unsupported(
            encoding.field(Field::Turns),
            "Documents must be PDF or plain text, sent inline as base64, for this model.",
        )
        .with(Remedy::Inline)
    };
    let MediaSource::Base64 { media, data } = source else {
        return Err(wrong());
    };
    out.name("source").open('{');
    match media.as_str() {
        "application/pdf" => base64(out, "application/pdf", data),
        text if text.starts_with("text/") => {
            let bytes = STANDARD
                .decode(data.plain().as_bytes())
                .map_err(|_| wrong())?;
            out.name("type").raw("\"text\"");
            out.name("media_type").raw("\"text/plain\"");
            out.name("data").plain(&String::from_utf8_lossy(&bytes));
        }
        _ => return Err(wrong()),
    }
    out.close('}');
    Ok(())
}

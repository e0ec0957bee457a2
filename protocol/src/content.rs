//! Walks what the model will read: messages, input items, and the parts inside them, in one pass.
//!
//! All families share this walk because their names do not clash: a picture is known by its `image_url` or `source` wherever it
//! stands, also in tool results. Text is measured as it stands in JSON. Must not keep content; must not walk anything twice.

use std::borrow::Cow;

use crate::fields::{MEDIA, STATE};
use crate::inspect::{cache_control, word};
use crate::json::{Cursor, Kind, Value, unescape};
use crate::media::Payload;
use crate::tools::{Row, Tools};
use crate::{BadRequest, Content, Detail, Inspection, Picture};

/// Whether the model does not read the values of members with this name.
fn is_silent(name: &str) -> bool {
    matches!(
        name,
        "id" | "role"
            | "call_id"
            | "tool_call_id"
            | "tool_use_id"
            | "status"
            | "signature"
            | "filename"
            | "annotations"
            | "logprobs"
            | "is_error"
            | "citations"
            | "phase"
    )
}

/// Whether values of this name are reasoning in a form that only the provider can read.
fn is_sealed(name: &str) -> bool {
    matches!(name, "encrypted_content" | "data")
}

/// Whether members or parts of this name are sound or moving pictures.
fn is_unpriced(name: &str) -> bool {
    matches!(name, "input_audio" | "audio" | "audio_url" | "input_video" | "video" | "video_url")
}

/// Where a walk writes what it finds.
#[derive(Debug)]
pub(crate) struct Out<'s> {
    /// The facts of the request.
    pub(crate) seen: &'s mut Inspection,
    /// The family's table of tools, for those that stand in the conversation.
    pub(crate) tools: &'static [Row],
}

/// What one message, item or part holds besides text.
#[derive(Debug, Default)]
struct Part<'a> {
    kind: Cow<'a, str>,
    /// `source.type` of a messages block.
    source: Cow<'a, str>,
    media: Cow<'a, str>,
    detail: Detail,
    /// Inline data, `image_url`, or `file_data`.
    data: Option<Value>,
    url: Option<Value>,
    file: Option<Value>,
}

/// Walks a list of messages or input items and counts them. A plain string is one message.
pub(crate) fn messages(name: &str, cursor: &mut Cursor<'_>, out: &mut Out<'_>) -> Result<(), BadRequest> {
    if cursor.peek()? == Kind::Null {
        cursor.skip()?;
        return Ok(());
    }
    if !matches!(cursor.peek()?, Kind::Array | Kind::String) {
        return Err(BadRequest::at(name, format!("`{name}` must be a list of objects.")));
    }
    let count = content(cursor, out).map_err(|bad| bad.within(name))?;
    out.seen.content.messages = out.seen.content.messages.saturating_add(count);
    Ok(())
}

/// Walks content: a string, or a list of parts; returns how many parts there are.
pub(crate) fn content(cursor: &mut Cursor<'_>, out: &mut Out<'_>) -> Result<u32, BadRequest> {
    match cursor.peek()? {
        Kind::Array => {}
        Kind::Object => return part(cursor, out).map(|()| 1),
        _ => {
            let value = cursor.skip()?;
            count(&mut out.seen.content, cursor, &value);
            return Ok(1);
        }
    }
    let mut walk = cursor.enter_array()?;
    let mut index: u32 = 0;
    while cursor.element(&mut walk)? {
        match cursor.peek()? {
            Kind::Object => part(cursor, out).map_err(|bad| bad.within(format_args!("[{index}]")))?,
            _ => {
                let value = cursor.skip()?;
                count(&mut out.seen.content, cursor, &value);
            }
        }
        index = index.saturating_add(1);
    }
    Ok(index)
}

fn part(cursor: &mut Cursor<'_>, out: &mut Out<'_>) -> Result<(), BadRequest> {
    let mut part = Part::default();
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        member(&key.name, cursor, out, &mut part)?;
    }
    finish(cursor, out, &part)
}

fn member<'a>(name: &str, cursor: &mut Cursor<'a>, out: &mut Out<'_>, part: &mut Part<'a>) -> Result<(), BadRequest> {
    let kind = cursor.peek()?;
    match name {
        "type" => part.kind = once(name, &part.kind, cursor)?,
        "content" | "output" if matches!(kind, Kind::Array | Kind::Object) => {
            content(cursor, out).map_err(|bad| bad.within(name))?;
        }
        "source" | "image_url" | "file" if kind == Kind::Object => {
            nested(cursor, out, part).map_err(|bad| bad.within(name))?;
        }
        "tools" if kind == Kind::Array => Tools::default().inside(out.tools, cursor, out.seen)?,
        "tool" if kind == Kind::Object => tool_change(cursor, out).map_err(|bad| bad.within(name))?,
        "image_url" => part.url = Some(cursor.skip()?),
        "detail" => part.detail = detail(cursor)?,
        "cache_control" => cache_control(cursor, out.seen)?,
        _ => named(name, cursor, out, part)?,
    }
    Ok(())
}

/// The `tool` of a block that changes the tools in mid-conversation: a reference, or a definition.
fn tool_change(cursor: &mut Cursor<'_>, out: &mut Out<'_>) -> Result<(), BadRequest> {
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        if key.name == "definition" && cursor.peek()? == Kind::Object {
            Tools::default().definition(out.tools, cursor, out.seen).map_err(|bad| bad.within("definition"))?;
        } else {
            cursor.skip()?;
        }
    }
    Ok(())
}

/// The members of `source`, `image_url` and `file` objects.
fn nested<'a>(cursor: &mut Cursor<'a>, out: &mut Out<'_>, part: &mut Part<'a>) -> Result<(), BadRequest> {
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "type" => part.source = once("type", &part.source, cursor)?,
            "media_type" => part.media = word(cursor)?,
            "data" => part.data = Some(cursor.skip()?),
            "url" => part.url = Some(cursor.skip()?),
            "detail" => part.detail = detail(cursor)?,
            "content" => {
                content(cursor, out).map_err(|bad| bad.within("content"))?;
            }
            other => named(other, cursor, out, part)?,
        }
    }
    Ok(())
}

/// Members that mean the same at both levels.
fn named<'a>(name: &str, cursor: &mut Cursor<'a>, out: &mut Out<'_>, part: &mut Part<'a>) -> Result<(), BadRequest> {
    let value = cursor.skip()?;
    match name {
        _ if value.kind == Kind::Null => {}
        "file_id" => return Err(BadRequest::at(name, format!("`file_id` is refused: {STATE}, with files inside it."))),
        "file_url" => return Err(by_url(name)),
        "file_data" => part.file = Some(value),
        _ if is_unpriced(name) => return Err(unpriced(name)),
        _ if is_silent(name) => {}
        _ if is_sealed(name) => out.seen.content.unread(value.text_size().bytes()),
        _ => count(&mut out.seen.content, cursor, &value),
    }
    Ok(())
}

fn finish(cursor: &Cursor<'_>, out: &mut Out<'_>, part: &Part<'_>) -> Result<(), BadRequest> {
    if is_unpriced(&part.kind) {
        return Err(unpriced("type"));
    }
    if part.kind == "item_reference" {
        return Err(BadRequest::at("type", format!("an item of type `item_reference` is refused: {STATE}.")));
    }
    if let Some(data) = part.data.as_ref().filter(|value| value.kind == Kind::String) {
        if part.source == "text" {
            count(&mut out.seen.content, cursor, data);
        } else {
            let base64 = raw(cursor, data);
            inline(out, part, &Payload { media: &part.media, base64: &base64 }, part.kind == "document");
        }
    }
    if let Some(url) = part.url.as_ref().filter(|value| value.kind == Kind::String) {
        let url = raw(cursor, url);
        match Payload::from_url(&url) {
            Some(payload) => inline(out, part, &payload, part.kind == "document"),
            None if part.kind == "document" => return Err(by_url("source.url")),
            None => out.seen.content.pictures.push(Picture { bytes: None, size: None, detail: part.detail }),
        }
    }
    if let Some(file) = part.file.as_ref().filter(|value| value.kind == Kind::String) {
        let file = raw(cursor, file);
        if file.starts_with("http://") || file.starts_with("https://") {
            return Err(by_url("file_data"));
        }
        let payload = Payload::from_url(&file).unwrap_or(Payload { media: "application/pdf", base64: &file });
        let picture = payload.media.starts_with("image/");
        inline(out, part, &payload, !picture);
    }
    Ok(())
}

fn inline(out: &mut Out<'_>, part: &Part<'_>, payload: &Payload<'_>, document: bool) {
    if payload.is_text() {
        out.seen.content.unread(payload.bytes());
    } else if document || payload.media == "application/pdf" {
        out.seen.content.documents.push(payload.document());
    } else {
        out.seen.content.pictures.push(payload.picture(part.detail));
    }
}

/// Counts a value as text; `null` is nothing.
fn count(content: &mut Content, cursor: &Cursor<'_>, value: &Value) {
    if value.kind != Kind::Null {
        content.read(value.text_size(), cursor.inner(value));
    }
}

fn once<'a>(name: &str, before: &str, cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, BadRequest> {
    if !before.is_empty() {
        return Err(BadRequest::at(name, format!("`{name}` is written twice. Send it once.")));
    }
    word(cursor)
}

fn raw<'a>(cursor: &Cursor<'a>, value: &Value) -> Cow<'a, str> {
    cursor.raw_text(value).map(unescape).unwrap_or_default()
}

fn detail(cursor: &mut Cursor<'_>) -> Result<Detail, BadRequest> {
    Ok(match word(cursor)?.as_ref() {
        "low" => Detail::Low,
        "high" | "original" => Detail::High,
        _ => Detail::Auto,
    })
}

fn unpriced(name: &str) -> BadRequest {
    BadRequest::at(name, format!("`{name}` is refused: {MEDIA}."))
}

fn by_url(name: &str) -> BadRequest {
    BadRequest::at(name, "documents by URL are refused: send the document itself as base64.")
}

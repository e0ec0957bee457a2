//! Walks everything that the model will read, messages, input items and the parts inside them, in one pass.
//!
//! All families share this walk because their names do not clash: a picture is recognised by its `image_url` or `source` anywhere,
//! tool results included. Every string counts as text, whatever its name, except for media, whose rules are here. Text is measured
//! in its JSON form. Must not keep content; must not walk anything twice.

use std::borrow::Cow;

use crate::address;
use crate::cache;
use crate::fields::STATE;
use crate::inspect::LONGEST_NAME;
use crate::json::{Cursor, JsonError, Kind, Value};
use crate::media::Payload;
use crate::part_names::{
    by_url, hides_output, is_address, is_picture, is_sealed, is_text, unpriced, unpriced_name,
};
use crate::talk::TalkTurn;
use crate::tools::{ToolRow, Tools};
use crate::turns::{FamilyTurns, Level};
use crate::{BadRequest, Content, Document, ImageDetail, Inspection, Picture, Remedy, turns};

/// Turns for which there is room from the beginning.
const USUAL_TURNS: usize = 16;
/// Longest `cache_control` that is taken for an option.
const LONGEST_MARK: usize = 64;
/// Longest web address that is taken for an address.
const LONGEST_ADDRESS: usize = 2_048;

/// Where a walk stores its findings.
#[derive(Debug)]
pub(crate) struct Out<'s> {
    /// The facts of the request.
    pub(crate) seen: &'s mut Inspection,
    /// The family's table of tools, for tools defined in the conversation.
    pub(crate) tools: &'static [ToolRow],
    /// What is a message in this family.
    pub(crate) turns: &'static FamilyTurns,
}

/// The content of one message, item or part besides text.
#[derive(Debug, Default)]
struct Part<'a> {
    level: Level,
    kind: Cow<'a, str>,
    /// As it is written, without its quotes.
    role: &'a str,
    /// It has an id of its own.
    has_id: bool,
    /// The kinds of the values of `content` and `text`.
    content: Option<Kind>,
    text: Option<Kind>,
    /// `source.type` of a messages block.
    source: Cow<'a, str>,
    media: Cow<'a, str>,
    /// The requested detail, from the part and from the object inside it.
    detail: Option<ImageDetail>,
    inner_detail: Option<ImageDetail>,
    /// The name of that object.
    holder: &'static str,
    /// Inline data, `image_url`, or `file_data`.
    data: Option<Value>,
    url: Option<Value>,
    file: Option<Value>,
    /// Possibly reasoning that only the provider can read.
    sealed: Vec<Value>,
    /// A member that has no price here, and with it the whole part.
    unpriced: Option<&'static str>,
}

impl Part<'_> {
    /// Whether everything was counted before the end of the part.
    fn is_counted(&self) -> bool {
        let holds_nothing = self.data.is_none()
            && self.url.is_none()
            && self.file.is_none()
            && self.sealed.is_empty();
        holds_nothing && (self.kind.is_empty() || is_text(&self.kind))
    }

    /// Notes what kind of value `content` or `text` has.
    fn says(&mut self, name: &str, kind: Kind) {
        *(if name == "text" {
            &mut self.text
        } else {
            &mut self.content
        }) = Some(kind);
    }

    /// Refuses what cannot be a message, or a part of one.
    fn check(&self, turns: &FamilyTurns) -> Result<(), BadRequest> {
        match self.level {
            Level::Turn => turns.turn(self.role, &self.kind, self.content, self.has_id),
            Level::Part => turns.part(&self.kind, self.text),
            Level::Inner => Ok(()),
        }
    }

    /// How closely the model looks. Each family reads `detail` in one place: chat beside the `url`, responses beside the
    /// `image_url`, messages nowhere. Anywhere else it makes no picture cheaper.
    fn looks(&self) -> ImageDetail {
        match self.holder {
            "" => self.detail,
            "image_url" => self.inner_detail,
            _ => None,
        }
        .unwrap_or_default()
    }
}

/// Walks a list of messages or input items and counts them. A plain string is one message.
pub(crate) fn messages(
    name: &str,
    cursor: &mut Cursor<'_>,
    out: &mut Out<'_>,
) -> Result<(), BadRequest> {
    if cursor.peek()? == Kind::Null {
        cursor.skip()?;
        return Ok(());
    }
    if !matches!(cursor.peek()?, Kind::Array | Kind::String) {
        return Err(BadRequest::at(
            name,
            format!("`{name}` must be a list of objects."),
        ));
    }
    let start = cursor.at();
    out.seen.places.talk.before = out.seen.content.text.bytes();
    // Most conversations have some turns, and growing the list step by step costs more than a tenth of a small request.
    out.seen.places.talk.turns.reserve(USUAL_TURNS);
    let count = content(cursor, out, Level::Turn).map_err(|bad| bad.within(name))?;
    out.seen.places.talk.place = start..cursor.at();
    out.seen.content.messages = out.seen.content.messages.saturating_add(count);
    Ok(())
}

/// Walks content: a string, or a list of parts; returns how many parts there are.
pub(crate) fn content(
    cursor: &mut Cursor<'_>,
    out: &mut Out<'_>,
    level: Level,
) -> Result<u32, BadRequest> {
    match cursor.peek()? {
        Kind::Array => {}
        Kind::Object if level == Level::Part => return Err(turns::no_content("")),
        Kind::Object => {
            part(cursor, out, level)?;
            ended(cursor, out, level);
            return Ok(1);
        }
        _ => {
            let value = cursor.skip()?;
            count(&mut out.seen.content, cursor, &value);
            ended(cursor, out, level);
            return Ok(1);
        }
    }
    let mut walk = cursor.enter_array()?;
    let mut index: u32 = 0;
    while cursor.element(&mut walk)? {
        let within = |bad: BadRequest| bad.within(format_args!("[{index}]"));
        match cursor.peek()? {
            Kind::Object => part(cursor, out, level).map_err(within)?,
            _ => {
                turns::not_an_object(level).map_err(within)?;
                let value = cursor.skip()?;
                count(&mut out.seen.content, cursor, &value);
            }
        }
        ended(cursor, out, level);
        index = index.saturating_add(1);
    }
    Ok(index)
}

/// Notes where a message ends.
fn ended(cursor: &Cursor<'_>, out: &mut Out<'_>, level: Level) {
    if level == Level::Turn {
        let (content, talk) = (&out.seen.content, &mut out.seen.places.talk);
        talk.turns.push(TalkTurn {
            end: cursor.at(),
            text: content.text.bytes(),
            media: content.pictures.len() + content.documents.len(),
            linked: talk.linked,
        });
    }
}

fn part(cursor: &mut Cursor<'_>, out: &mut Out<'_>, level: Level) -> Result<(), BadRequest> {
    let mut part = Part {
        level,
        ..Part::default()
    };
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        out.seen.content.name(&key.name);
        match key.name.as_ref() {
            "cache_control" => marked(key.at, cursor, out)?,
            name => member(name, cursor, out, &mut part)?,
        }
    }
    if let Some(word) = part.unpriced {
        return Err(unpriced("", word));
    }
    part.check(out.turns)?;
    if part.level == Level::Turn && part.role == "user" {
        out.seen.places.conversation.user_ended(cursor.at());
    }
    finish(cursor, out, &part)
}

fn member<'a>(
    name: &str,
    cursor: &mut Cursor<'a>,
    out: &mut Out<'_>,
    part: &mut Part<'a>,
) -> Result<(), BadRequest> {
    let kind = cursor.peek()?;
    match name {
        // Most of a request is in members with these names.
        "content" | "text" if kind == Kind::String => {
            part.says(name, kind);
            let value = cursor.skip()?;
            count(&mut out.seen.content, cursor, &value);
        }
        "type" => part.kind = once(name, &part.kind, cursor, out)?,
        "role" => {
            let start = cursor.at() + 1;
            label_place(cursor, out)?;
            if kind == Kind::String {
                part.role = cursor.slice(start..cursor.at().saturating_sub(1));
            }
        }
        "content" if matches!(kind, Kind::Array | Kind::Object) => {
            part.says(name, kind);
            content(cursor, out, part.level.inner()).map_err(|bad| bad.within(name))?;
        }
        "output" if matches!(kind, Kind::Array | Kind::Object) => {
            content(cursor, out, Level::Inner).map_err(|bad| bad.within(name))?;
        }
        "content" | "text" => {
            part.says(name, kind);
            named(name, cursor, out, part)?;
        }
        "source" if kind == Kind::Object => nested("source", cursor, out, part)?,
        "image_url" if kind == Kind::Object => nested("image_url", cursor, out, part)?,
        "file" if kind == Kind::Object => nested("file", cursor, out, part)?,
        "tools" if kind == Kind::Array => Tools::default().inside(out.tools, cursor, out.seen)?,
        "tool" if kind == Kind::Object => {
            tool_change(cursor, out).map_err(|bad| bad.within(name))?
        }
        "image_url" => take(name, &mut part.url, cursor)?,
        "detail" => detail(&mut part.detail, cursor, out)?,
        _ if part.level == Level::Turn => {
            part.has_id |= name == "id" && kind != Kind::Null;
            out.seen.places.talk.has(name);
            named(name, cursor, out, part)?;
        }
        _ => named(name, cursor, out, part)?,
    }
    Ok(())
}

/// The `tool` of a block that changes the tools in mid-conversation: a reference, or a definition.
fn tool_change(cursor: &mut Cursor<'_>, out: &mut Out<'_>) -> Result<(), BadRequest> {
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        if key.name == "definition" && cursor.peek()? == Kind::Object {
            Tools::default()
                .definition(out.tools, cursor, out.seen)
                .map_err(|bad| bad.within("definition"))?;
        } else {
            let value = cursor.skip()?;
            count(&mut out.seen.content, cursor, &value);
        }
    }
    Ok(())
}

/// The `cache_control` of a part; if it is longer than its options can be, it is text under another name.
fn marked(from: usize, cursor: &mut Cursor<'_>, out: &mut Out<'_>) -> Result<(), BadRequest> {
    let before = cursor.clone();
    cache::control(from, cursor, out.seen)?;
    if cursor.at() - before.at() > LONGEST_MARK {
        out.seen.content.read(
            cursor.size_since(&before),
            cursor.slice(before.at()..cursor.at()),
        );
    }
    Ok(())
}

/// The members of a `source`, `image_url` or `file` object. A part may have only one of them, because either of two could be the
/// one that counts.
fn nested<'a>(
    holder: &'static str,
    cursor: &mut Cursor<'a>,
    out: &mut Out<'_>,
    part: &mut Part<'a>,
) -> Result<(), BadRequest> {
    if !part.holder.is_empty() {
        let message = format!(
            "`{}` and `{holder}` stand in the same part. Send one of them, once.",
            part.holder
        );
        return Err(BadRequest::at(holder, message));
    }
    part.holder = holder;
    inside(cursor, out, part).map_err(|bad| bad.within(holder))
}

fn inside<'a>(
    cursor: &mut Cursor<'a>,
    out: &mut Out<'_>,
    part: &mut Part<'a>,
) -> Result<(), BadRequest> {
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        out.seen.content.name(&key.name);
        match key.name.as_ref() {
            "type" => part.source = once("type", &part.source, cursor, out)?,
            "media_type" => part.media = label(cursor, out)?,
            "data" => take("data", &mut part.data, cursor)?,
            "url" if part.holder == "file" => {
                if cursor.skip()?.kind != Kind::Null {
                    return Err(by_url("url"));
                }
            }
            "url" => take("url", &mut part.url, cursor)?,
            "detail" => detail(&mut part.inner_detail, cursor, out)?,
            "content" => {
                content(cursor, out, Level::Inner).map_err(|bad| bad.within("content"))?;
            }
            other => named(other, cursor, out, part)?,
        }
    }
    Ok(())
}

/// Takes the value that says what a part shows. Parsers differ in which of two they take, so a second one is refused.
fn take(name: &str, slot: &mut Option<Value>, cursor: &mut Cursor<'_>) -> Result<(), BadRequest> {
    let value = cursor.skip()?;
    if slot.is_some() {
        return Err(BadRequest::at(
            name,
            format!("`{name}` is said twice. Send it once."),
        ));
    }
    *slot = (value.kind != Kind::Null).then_some(value);
    Ok(())
}

/// Members that mean the same at both levels.
fn named<'a>(
    name: &str,
    cursor: &mut Cursor<'a>,
    out: &mut Out<'_>,
    part: &mut Part<'a>,
) -> Result<(), BadRequest> {
    if name == "file_data" {
        return take(name, &mut part.file, cursor);
    }
    let value = cursor.skip()?;
    match name {
        _ if value.kind == Kind::Null => {}
        "file_id" => {
            return Err(BadRequest::at(
                name,
                format!("`file_id` is refused: {STATE}, with files inside it."),
            )
            .with(Remedy::Inline));
        }
        _ if let Some(word) = unpriced_name(name) => match part.level {
            // A message stays, without what it refers to.
            Level::Turn => return Err(unpriced(word, word)),
            Level::Part | Level::Inner => part.unpriced = Some(word),
        },
        _ if is_address(name) => return Err(by_url(name)),
        _ if is_sealed(name) => part.sealed.push(value),
        _ => count(&mut out.seen.content, cursor, &value),
    }
    Ok(())
}

fn finish(cursor: &Cursor<'_>, out: &mut Out<'_>, part: &Part<'_>) -> Result<(), BadRequest> {
    // Most parts are messages and texts, whose content has already been counted.
    if part.is_counted() {
        return Ok(());
    }
    if let Some(word) = unpriced_name(&part.kind) {
        return Err(unpriced("", word));
    }
    out.seen.thinking.hidden |= hides_output(&part.kind);
    for value in &part.sealed {
        // A text part has no seals: readers would take such a member for text.
        if part.kind.is_empty() || is_text(&part.kind) {
            count(&mut out.seen.content, cursor, value);
        } else {
            out.seen.content.sealed(value.text_size().bytes());
        }
    }
    if is_picture(&part.kind) && part.data.is_none() && part.url.is_none() && part.file.is_none() {
        return Err(BadRequest::at(
            "",
            "a picture without its data or its address: send `source`, or `image_url`.",
        ));
    }
    if let Some(data) = &part.data {
        if data.kind != Kind::String || part.source == "text" {
            count(&mut out.seen.content, cursor, data);
        } else {
            let base64 = raw(cursor, data);
            inline(
                out,
                part,
                data,
                &Payload {
                    media: &part.media,
                    base64: &base64,
                },
            )?;
        }
    }
    if let Some(url) = &part.url {
        address(cursor, out, part, url)?;
    }
    if let Some(file) = &part.file {
        let text = raw(cursor, file);
        match Payload::from_url(&text) {
            Some(payload) => inline(out, part, file, &payload)?,
            // Base64 has no colon, every address has one.
            None if text.contains(':') => return Err(by_url("file_data")),
            // An object names the file by its address, in the words of another dialect.
            None if file.kind != Kind::String => return Err(by_url("file_data")),
            None => inline(
                out,
                part,
                file,
                &Payload {
                    media: "application/pdf",
                    base64: &text,
                },
            )?,
        }
    }
    Ok(())
}

/// The `url` or `image_url` of a part: a picture at a web address, or its data.
fn address(
    cursor: &Cursor<'_>,
    out: &mut Out<'_>,
    part: &Part<'_>,
    value: &Value,
) -> Result<(), BadRequest> {
    let url = raw(cursor, value);
    let document = part.kind == "document";
    let place = if part.holder == "source" {
        "source.url"
    } else {
        "image_url"
    };
    match Payload::from_url(&url) {
        Some(payload) if document || payload.media.starts_with("image/") => {
            inline(out, part, value, &payload)
        }
        _ if document => Err(by_url("source.url")),
        None if address::is_web(&url) => {
            if let Some(why) = address::refusal(&url) {
                return Err(BadRequest::at(
                    place,
                    format!(
                        "the address of a picture is refused: {why}. Send a public address, or the picture inline as `data:image/…;base64,…`."
                    ),
                )
                .with(Remedy::Inline));
            }
            if url.len() > LONGEST_ADDRESS {
                count(&mut out.seen.content, cursor, value);
            }
            out.seen.places.talk.linked = true;
            out.seen.content.pictures.push(Picture {
                bytes: None,
                size: None,
                detail: part.looks(),
            });
            Ok(())
        }
        _ => Err(BadRequest::at(
            place,
            "a picture is given by an http or https URL, or inline as `data:image/…;base64,…`; other addresses are refused.",
        )
        .with(Remedy::Inline)),
    }
}

/// Counts inline data by its media type; `value` is its position.
fn inline(
    out: &mut Out<'_>,
    part: &Part<'_>,
    value: &Value,
    payload: &Payload<'_>,
) -> Result<(), BadRequest> {
    let content = &mut out.seen.content;
    let document = || Document {
        bytes: payload.bytes(),
        place: value.span.clone(),
        tokens: None,
    };
    if payload.is_pdf() {
        content.documents.push(document());
    } else if payload.is_text() {
        match payload.text() {
            Some(text) => content.file(&text),
            None => content.unread(payload.bytes()),
        }
    } else if payload.media.starts_with("image/")
        || payload.media.is_empty() && part.kind != "document"
    {
        let picture = payload.picture(part.looks());
        // A file whose name says picture and whose bytes do not may be read as anything.
        if picture.size.is_none()
            && matches!(part.kind.as_ref(), "document" | "file" | "input_file")
        {
            content.documents.push(document());
        } else {
            content.pictures.push(picture);
        }
    } else if let Some(kind @ ("audio" | "video")) = payload.media.split('/').next() {
        return Err(unpriced("", kind));
    } else {
        content.documents.push(document());
    }
    Ok(())
}

/// Counts a value as text; `null` counts as nothing.
fn count(content: &mut Content, cursor: &Cursor<'_>, value: &Value) {
    if value.kind != Kind::Null {
        content.read(value.text_size(), cursor.inner(value));
    }
}

fn once<'a>(
    name: &str,
    before: &str,
    cursor: &mut Cursor<'a>,
    out: &mut Out<'_>,
) -> Result<Cow<'a, str>, BadRequest> {
    if !before.is_empty() {
        return Err(BadRequest::at(
            name,
            format!("`{name}` is written twice. Send it once."),
        ));
    }
    label(cursor, out)
}

/// A word of the dialect. The framing of a message or part covers it; if it is longer than such words are, it counts as text.
fn label<'a>(cursor: &mut Cursor<'a>, out: &mut Out<'_>) -> Result<Cow<'a, str>, BadRequest> {
    let value = label_place(cursor, out)?;
    Ok(cursor.text_of(&value).unwrap_or_default())
}

/// The same, when it does not matter which word it is.
fn label_place(cursor: &mut Cursor<'_>, out: &mut Out<'_>) -> Result<Value, JsonError> {
    let value = cursor.skip()?;
    if value.span.len() > LONGEST_NAME {
        count(&mut out.seen.content, cursor, &value);
    }
    Ok(value)
}

fn raw<'a>(cursor: &Cursor<'a>, value: &Value) -> Cow<'a, str> {
    cursor.text_of(value).unwrap_or_default()
}

fn detail(
    slot: &mut Option<ImageDetail>,
    cursor: &mut Cursor<'_>,
    out: &mut Out<'_>,
) -> Result<(), BadRequest> {
    let found = match label(cursor, out)?.as_ref() {
        "low" => ImageDetail::Low,
        "high" => ImageDetail::High,
        "original" => ImageDetail::Original,
        _ => ImageDetail::Auto,
    };
    match slot.replace(found) {
        Some(_) => Err(BadRequest::at(
            "detail",
            "`detail` is written twice. Send it once.",
        )),
        None => Ok(()),
    }
}

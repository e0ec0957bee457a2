//! The facts that the gateway needs about a request, the same for every family.
//!
//! An [`Inspection`] borrows nothing: it records positions as byte ranges, so that the body can be spliced later without a second
//! walk. Every string of the body counts as text, whatever its field, except for media.

use std::borrow::Cow;
use std::ops::Range;

use crate::TextSize;
use crate::bad_request::BadRequest;
use crate::hints;
use crate::json::{Cursor, Cuts, Kind};
use crate::sample::Sample;
use crate::talk::{Talk, is_aside};
use crate::token_estimate::Weight;

/// Most top-level fields a request may have.
const MAX_FIELDS: usize = 1_024;
/// Most members of an object of options.
const MOST_OPTIONS: usize = 64;
/// Objects with options are shorter than this; a longer value counts as text, whatever its name.
const SHORT: usize = 256;
/// Names and words of the dialects are shorter; longer ones count as text.
pub(crate) const LONGEST_NAME: usize = 32;
/// Most bytes of removed fields' names in a header.
const MOST_NAMED: usize = 1_024;

/// The facts of one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// The model's name as the customer wrote it, unescaped.
    pub model: String,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// The declared output limit, if any.
    pub limit: Option<u32>,
    /// Number of answers requested (`n`), at least 1.
    pub choices: u32,
    /// Tokens set aside for thinking inside the limit.
    pub thinking_budget: Option<u32>,
    /// A sample of the answer that the customer predicts; unused parts of a prediction are billed as output.
    pub prediction: Sample,
    /// Whether reasoning may happen that a stream does not show.
    pub hidden_reasoning: bool,
    /// Whether the request has reasoning turned off, in a family where that can be said.
    pub reasoning_off: bool,
    /// The request has stop strings, so the answer may end before its first word.
    pub has_stops: bool,
    /// What the model will read.
    pub content: Content,
    /// Some of the prompt is marked to be written to a cache.
    pub cache_marked: bool,
    /// A cache write for one hour or longer is asked for somewhere.
    pub one_hour_cache: bool,
    /// From how many input tokens on the upstream compacts the conversation, if it is asked to.
    pub compacts_from: Option<u64>,
    /// The customer asked for the usage chunk of a chat stream.
    pub asks_usage: bool,
    /// The customer asked for `usage.cost`.
    pub asks_cost: bool,
    /// Names of server-side search tools that will be taken out, for `x-farebox-removed`.
    pub removed_tools: Vec<String>,
    /// Top-level fields that no table knows, in order. They go upstream only if the provider passes them.
    pub unknown: Vec<String>,
    /// The positions of edits.
    pub places: Places,
}

/// Byte ranges in the request body, for splicing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Just after the opening brace, where new top-level members go.
    pub start: usize,
    /// The body is `{}` apart from white space.
    pub empty: bool,
    /// The value of `model`, quotes included.
    pub model: Range<usize>,
    /// The value of the declared limit field, with its name.
    pub limit: Option<(&'static str, Range<usize>)>,
    /// The same for the second limit field when a chat request declares both with the same value.
    pub limit_twin: Option<(&'static str, Range<usize>)>,
    /// Limit fields that are present but `null`: a limit to be written under that name replaces the `null`.
    pub nulls: Vec<(&'static str, Range<usize>)>,
    /// The value of `stream_options` (chat) when present.
    pub stream_options: Option<Range<usize>>,
    /// The value of `store` when present.
    pub store: Option<Range<usize>>,
    /// What repeats in the next request of a conversation.
    pub talk: Talk,
    /// What is removed for every target: whole members or array elements, each with one neighbouring comma so that the rest stays
    /// valid.
    pub cuts: Vec<Range<usize>>,
    /// Filled only if the request has top-level fields whose fate depends on the target: unknown ones (`pass`), and a second field for
    /// the limit. Then every top-level member is listed here and none is in `cuts`: which comma goes with a member depends on which
    /// of its neighbours stay.
    pub members_by_target: Vec<(Range<usize>, Fate)>,
}

/// The fate of a top-level member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes upstream.
    Stays,
    /// It is removed.
    Goes,
    /// No table knows it: its place in [`Inspection::unknown`].
    Unknown(usize),
    /// A hint that some services refuse by its name: one of `HINTS`.
    Hint(&'static str),
    /// One of several fields for the output limit: it stays if the provider reads the limit here.
    Limit(&'static str),
}

impl Fate {
    /// The hint, if its customer is told that it was left out.
    fn told_hint(&self) -> Option<&'static str> {
        match self {
            Self::Hint(name) => Some(*name).filter(|name| hints::is_told(name)),
            _ => None,
        }
    }
}

/// Changes to make to a request on its way to one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edits<'a> {
    /// The upstream's name of the model.
    pub model: &'a str,
    /// The field in which the provider reads an output limit. The family's other fields for it are renamed or removed.
    pub limit_field: &'a str,
    /// The output limit for the provider; `None` keeps what was declared.
    pub limit: Option<u32>,
    /// Unknown fields that this provider accepts (its `pass` list).
    pub pass: &'a [String],
    /// Hints that this provider refuses by their names.
    pub leave_out: &'a [String],
}

/// What the model will read, measured without keeping it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// Text of messages, system prompts, tool results and tool schemas.
    pub text: TextSize,
    /// The estimated number of tokens of that text.
    pub weight: Weight,
    /// A sample of it, for a tokenizer.
    pub sample: Sample,
    /// Messages or input items.
    pub messages: u32,
    /// Tools offered.
    pub tools: u32,
    /// Bytes of their definitions.
    pub tool_bytes: u64,
    /// Pictures, also those inside tool results.
    pub pictures: Vec<Picture>,
    /// Documents.
    pub documents: Vec<Document>,
}

/// One picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Size in bytes of an inline picture, decoded; `None` for one given by URL.
    pub bytes: Option<u64>,
    /// Width and height in pixels, if the inline data has them.
    pub size: Option<(u32, u32)>,
    /// The image detail requested.
    pub detail: Detail,
}

/// How closely a picture is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// The family's default.
    #[default]
    Auto,
    /// A fixed small cost.
    Low,
    /// Full size.
    High,
    /// As large as it was sent: OpenAI bills it without scaling it down.
    Original,
}

/// One inline document. Documents by URL are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Size in bytes, decoded.
    pub bytes: u64,
    /// The position in the body of its base64 text or `data:` URL, quotes included.
    pub place: Range<usize>,
    /// Tokens of its text and pages, once it has been read; `None` if it cannot be read.
    pub tokens: Option<u64>,
}

impl Inspection {
    /// What is removed from the request for a provider that passes these fields, for `x-farebox-removed`: tools, then fields, each
    /// once, in at most 1 KB.
    #[must_use]
    pub fn removed(&self, pass: &[String], leave_out: &[String]) -> String {
        let fields = self
            .unknown
            .iter()
            .filter(|name| !pass.contains(name))
            .map(|name| header_safe(name));
        let fates = self.places.members_by_target.iter();
        let hints = fates
            .filter_map(|(_, fate)| fate.told_hint())
            .filter(|hint| leave_out.iter().any(|left| left == hint));
        let mut named: Vec<&str> = Vec::new();
        let mut length = 0;
        for name in self
            .removed_tools
            .iter()
            .map(String::as_str)
            .chain(fields)
            .chain(hints)
        {
            if !named.contains(&name) && length + name.len() + 2 <= MOST_NAMED {
                length += name.len() + 2;
                named.push(name);
            }
        }
        named.join(", ")
    }

    /// The first unknown field that none of these lists passes.
    #[must_use]
    pub fn unsold(&self, passes: impl Fn(&str) -> bool) -> Option<&str> {
        self.unknown
            .iter()
            .map(String::as_str)
            .find(|name| !passes(name))
    }
}

/// The model that a body names, for the log, even if the rest of the body is refused. `None` if the body is not JSON up to there.
#[must_use]
pub fn model_named(body: &[u8]) -> Option<String> {
    let mut cursor = Cursor::new(body).ok()?;
    let mut walk = cursor.enter_object().ok()?;
    while let Some(key) = cursor.member(&mut walk).ok()? {
        cursor.peek().ok()?;
        let value = cursor.skip().ok()?;
        if key.name == "model" {
            return cursor.text_of(&value).map(Cow::into_owned);
        }
    }
    None
}

/// A field's name as a header can show it.
fn header_safe(name: &str) -> &str {
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if plain && (1..=64).contains(&name.len()) {
        name
    } else {
        "(unnamed)"
    }
}

/// Shorter text costs little, however it is counted.
const SMALLEST_ODD: u64 = 1_024;

impl Content {
    /// Adds text: its size, and its JSON form.
    pub(crate) fn read(&mut self, size: TextSize, text: &str) {
        self.text.add(size);
        self.weight.add(text);
        self.sample.add(text);
    }

    /// Adds the text of an inline file, which is not in JSON form: its backslashes would be doubled there.
    pub(crate) fn file(&mut self, text: &str) {
        let escaped = text.replace('\\', r"\\");
        self.read(TextSize::of(&escaped), &escaped);
    }

    /// Whether the fast estimate can be far too low for this text: long, and largely in scripts or symbols that take a token for
    /// each character or byte.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.text.bytes() >= SMALLEST_ODD && self.sample.is_odd()
    }

    /// Adds reasoning that only its provider can read.
    pub(crate) fn sealed(&mut self, bytes: u64) {
        self.text.add(TextSize {
            ascii: bytes,
            other: 0,
        });
        self.weight.add_sealed(bytes);
    }

    /// Adds a member's name: a long one is text.
    pub(crate) fn name(&mut self, name: &str) {
        if name.len() > LONGEST_NAME {
            self.read(TextSize::of(name), name);
        }
    }

    /// Adds bytes of text that cannot be read here.
    pub(crate) fn unread(&mut self, bytes: u64) {
        self.text.add(TextSize {
            ascii: bytes,
            other: 0,
        });
        self.weight.add_unread(bytes);
    }
}

/// One top-level member.
#[derive(Debug)]
struct Member<'a> {
    name: Cow<'a, str>,
    span: Range<usize>,
    fate: Fate,
}

/// A walk over a request's top level. Knows what every family has in common; the family interprets its own fields.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    cursor: Cursor<'a>,
    members: Vec<Member<'a>>,
    /// The findings so far.
    pub(crate) seen: Inspection,
}

impl<'a> Request<'a> {
    /// Walks the body; `field` takes the value of each member and decides its fate. `seed` determines the positions of the text
    /// samples.
    pub(crate) fn walk(
        body: &'a [u8],
        seed: u64,
        mut field: impl FnMut(&str, &mut Cursor<'a>, &mut Inspection) -> Result<Verdict, BadRequest>,
    ) -> Result<Self, BadRequest> {
        if body.is_empty() {
            return Err(BadRequest::new(
                "The request body is empty. Send one JSON object.",
            ));
        }
        if body.starts_with(b"\xEF\xBB\xBF") {
            return Err(BadRequest::new(
                "The request body begins with a byte order mark. Send one JSON object, without it.",
            ));
        }
        let mut cursor = Cursor::new(body)?;
        if cursor.peek()? != Kind::Object {
            return Err(BadRequest::new("The request body must be one JSON object."));
        }
        let mut seen = Inspection {
            choices: 1,
            ..Inspection::default()
        };
        seen.content.weight = Weight::seeded(seed);
        seen.content.sample = Sample::seeded(seed.rotate_left(32));
        seen.prediction = Sample::seeded(seed.rotate_left(16));
        let mut members: Vec<Member<'a>> = Vec::with_capacity(16);
        let mut walk = cursor.enter_object()?;
        seen.places.start = cursor.at();
        while let Some(key) = cursor.member(&mut walk)? {
            if members.len() == MAX_FIELDS {
                return Err(BadRequest::new(format!(
                    "The request has more than {MAX_FIELDS} top-level fields."
                )));
            }
            cursor.peek()?;
            let (before, counted) = (cursor.clone(), seen.content.text);
            let verdict = field(&key.name, &mut cursor, &mut seen)?;
            if counted == seen.content.text
                && cursor.at() - before.at() > SHORT
                && !is_counted(&key.name)
            {
                seen.content.read(
                    cursor.size_since(&before),
                    cursor.slice(before.at()..cursor.at()),
                );
            }
            seen.content.name(&key.name);
            let span = key.at..cursor.at();
            if is_aside(&key.name) {
                seen.places.talk.aside.push(span.clone());
            }
            members.push(Member {
                fate: verdict.fate(&key.name, &mut seen),
                name: key.name,
                span,
            });
        }
        cursor.end()?;
        seen.places.empty = members.is_empty();
        let request = Self {
            cursor,
            members,
            seen,
        };
        request.no_name_twice()?;
        Ok(request)
    }

    fn no_name_twice(&self) -> Result<(), BadRequest> {
        let mut names: Vec<&str> = self
            .members
            .iter()
            .map(|member| member.name.as_ref())
            .collect();
        names.sort_unstable();
        match names.windows(2).find_map(|pair| {
            (pair.first() == pair.last())
                .then(|| pair.first())
                .flatten()
        }) {
            Some(name) => Err(BadRequest::at(
                *name,
                format!("`{name}` is written twice. Send it once."),
            )),
            None => Ok(()),
        }
    }

    /// Removes a top-level member.
    pub(crate) fn cut(&mut self, name: &str) {
        for member in self.members.iter_mut().filter(|member| member.name == name) {
            member.fate = Fate::Goes;
        }
    }

    /// The text of a range of the body.
    pub(crate) fn slice(&self, span: Range<usize>) -> &'a str {
        self.cursor.slice(span)
    }

    /// Marks the fields for the limit whose fate depends on the provider: all of them, if one is `null` or there are two.
    fn mark_limits(&mut self) {
        let places = &self.seen.places;
        if places.nulls.is_empty() && places.limit_twin.is_none() {
            return;
        }
        let declared = [&places.limit, &places.limit_twin].into_iter().flatten();
        for (name, _) in declared.chain(&places.nulls) {
            for member in self
                .members
                .iter_mut()
                .filter(|member| member.name == *name)
            {
                member.fate = Fate::Limit(name);
            }
        }
    }

    /// The finished inspection, with a cut for each removed member.
    pub(crate) fn finish(mut self) -> Inspection {
        self.mark_limits();
        let mut seen = self.seen;
        let depends = |member: &Member<'_>| !matches!(member.fate, Fate::Stays | Fate::Goes);
        if self.members.iter().any(depends) {
            seen.places.members_by_target = self
                .members
                .into_iter()
                .map(|member| (member.span, member.fate))
                .collect();
        } else {
            let mut cuts = Cuts::default();
            self.members
                .into_iter()
                .for_each(|member| cuts.take(member.span, member.fate != Fate::Goes));
            seen.places.cuts.extend(cuts.finish());
            seen.places.cuts.sort_by_key(|cut| cut.start);
        }
        seen
    }
}

/// Fields whose text is counted part by part.
fn is_counted(name: &str) -> bool {
    matches!(name, "messages" | "input" | "system" | "tools")
}

/// A family's decision about a top-level member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes upstream.
    Stays,
    /// It is removed.
    Goes,
    /// No table knows it.
    Unknown,
}

impl Verdict {
    fn fate(self, name: &str, seen: &mut Inspection) -> Fate {
        match self {
            Self::Stays => hints::hint(name).map_or(Fate::Stays, Fate::Hint),
            Self::Goes => Fate::Goes,
            Self::Unknown => {
                seen.unknown.push(name.to_owned());
                Fate::Unknown(seen.unknown.len() - 1)
            }
        }
    }
}

/// Counts a field and returns whether the family knows it.
pub(crate) fn known(
    name: &str,
    known: &[&str],
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<Verdict, BadRequest> {
    text(cursor, seen)?;
    Ok(if known.contains(&name) {
        Verdict::Stays
    } else {
        Verdict::Unknown
    })
}

/// Reads the stop strings; they count as text.
pub(crate) fn stops(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<Verdict, BadRequest> {
    seen.has_stops = cursor.peek()? != Kind::Null;
    text(cursor, seen)?;
    Ok(Verdict::Stays)
}

/// Reads `model`.
pub(crate) fn model(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<(), BadRequest> {
    let value = cursor.skip()?;
    let Some(name) = cursor.text_of(&value) else {
        return Err(no_model());
    };
    seen.model = name.into_owned();
    seen.places.model = value.span;
    Ok(())
}

/// Refuses a request without `model`.
pub(crate) fn need_model(seen: &Inspection) -> Result<(), BadRequest> {
    if seen.places.model.is_empty() {
        Err(no_model())
    } else {
        Ok(())
    }
}

fn no_model() -> BadRequest {
    BadRequest::at(
        "model",
        "`model` must be a string: send the slug of a published model.",
    )
}

/// Reads an optional `true` or `false`.
pub(crate) fn flag(name: &str, cursor: &mut Cursor<'_>) -> Result<bool, BadRequest> {
    let value = cursor.skip()?;
    match value.kind {
        Kind::Bool => Ok(cursor.slice(value.span) == "true"),
        Kind::Null => Ok(false),
        _ => Err(BadRequest::at(
            name,
            format!("`{name}` must be true or false, or be left out."),
        )),
    }
}

/// A string; `None` for any other value.
pub(crate) fn word<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, BadRequest> {
    let value = cursor.skip()?;
    Ok(cursor.text_of(&value).unwrap_or_default())
}

/// The members of an optional object: each goes to `member`, whose name may occur only once. `false` if there is no object.
pub(crate) fn options<'a>(
    name: &str,
    cursor: &mut Cursor<'a>,
    mut member: impl FnMut(&str, &mut Cursor<'a>) -> Result<(), BadRequest>,
) -> Result<bool, BadRequest> {
    match cursor.peek()? {
        Kind::Object => {}
        Kind::Null => return cursor.skip().map(|_| false).map_err(BadRequest::from),
        _ => {
            return Err(BadRequest::at(
                name,
                format!("`{name}` must be an object, or be left out."),
            ));
        }
    }
    let mut walk = cursor.enter_object()?;
    let mut names: Vec<Cow<'a, str>> = Vec::new();
    while let Some(key) = cursor.member(&mut walk)? {
        if names.contains(&key.name) {
            return Err(BadRequest::at(
                &*key.name,
                format!("`{}` is written twice. Send it once.", key.name),
            )
            .within(name));
        }
        if names.len() == MOST_OPTIONS {
            return Err(BadRequest::at(
                name,
                format!("`{name}` has more than {MOST_OPTIONS} members."),
            ));
        }
        member(&key.name, cursor).map_err(|bad| bad.within(name))?;
        names.push(key.name);
    }
    Ok(true)
}

/// Reads `usage: {include: true}`, the customer's wish for `usage.cost`.
pub(crate) fn cost_wish(
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<Verdict, BadRequest> {
    let mut asks = false;
    options("usage", cursor, |name, cursor| {
        match name {
            "include" => asks = flag(name, cursor)?,
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    seen.asks_cost = asks;
    Ok(Verdict::Goes)
}

/// Counts a value that the model will read.
pub(crate) fn text(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<(), BadRequest> {
    let value = cursor.skip()?;
    if value.kind != Kind::Null {
        seen.content.read(value.text_size(), cursor.inner(&value));
    }
    Ok(())
}

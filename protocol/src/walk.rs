//! The walk over a request's top level, and the fields that several families have in common.
//!
//! Every string of the body counts as text, whatever its field, except for media. The family interprets its own fields; what the
//! walk finds is an [`Inspection`].

use std::borrow::Cow;
use std::ops::Range;

use crate::bad_request::BadRequest;
use crate::hints;
use crate::inspect::{Inspection, MemberFate};
use crate::json::{Cursor, Cuts, Kind};
use crate::sample::TextSample;
use crate::talk::is_aside;
use crate::token_estimate::Weight;

/// Most top-level fields a request may have.
const MAX_FIELDS: usize = 1_024;
/// Most members of an object of options.
const MOST_OPTIONS: usize = 64;
/// Objects with options are shorter than this; a longer value counts as text, whatever its name.
const SHORT: usize = 256;

/// One top-level member.
#[derive(Debug)]
struct TopMember<'a> {
    name: Cow<'a, str>,
    span: Range<usize>,
    fate: MemberFate,
}

/// A walk over a request's top level. Knows what every family has in common; the family interprets its own fields.
#[derive(Debug)]
pub(crate) struct RequestWalk<'a> {
    cursor: Cursor<'a>,
    members: Vec<TopMember<'a>>,
    /// The findings so far.
    pub(crate) seen: Inspection,
}

/// At the beginning of the body's object.
fn object(body: &[u8]) -> Result<Cursor<'_>, BadRequest> {
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
    Ok(cursor)
}

impl<'a> RequestWalk<'a> {
    /// Walks the body; `field` takes the value of each member and decides its fate. `seed` determines the positions of the text
    /// samples.
    pub(crate) fn walk(
        body: &'a [u8],
        seed: u64,
        mut field: impl FnMut(&str, &mut Cursor<'a>, &mut Inspection) -> Result<Verdict, BadRequest>,
    ) -> Result<Self, BadRequest> {
        let mut cursor = object(body)?;
        let mut seen = Inspection {
            choices: 1,
            ..Inspection::default()
        };
        seen.content.weight = Weight::seeded(seed);
        seen.content.sample = TextSample::seeded(seed.rotate_left(32));
        seen.prediction = TextSample::seeded(seed.rotate_left(16));
        let mut members: Vec<TopMember<'a>> = Vec::with_capacity(16);
        let mut walk = cursor.enter_object()?;
        seen.places.start = cursor.at();
        while let Some(key) = cursor.member(&mut walk)? {
            if members.len() == MAX_FIELDS {
                return Err(BadRequest::new(format!(
                    "The request has more than {MAX_FIELDS} top-level fields."
                )));
            }
            // Passes the blanks, so that the place of the value begins with the value.
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
            let place = &mut seen.places.conversation;
            place.note(&key.name, before.at()..cursor.at());
            let span = key.at..cursor.at();
            if is_aside(&key.name) {
                seen.places.talk.aside.push(span.clone());
            }
            members.push(TopMember {
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
            member.fate = MemberFate::Goes;
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
                member.fate = MemberFate::Limit(name);
            }
        }
    }

    /// The finished inspection, with a cut for each removed member.
    pub(crate) fn finish(mut self) -> Inspection {
        self.mark_limits();
        let mut seen = self.seen;
        let depends =
            |member: &TopMember<'_>| !matches!(member.fate, MemberFate::Stays | MemberFate::Goes);
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
                .for_each(|member| cuts.take(member.span, member.fate != MemberFate::Goes));
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
    /// It goes upstream where its name is not refused: nobody misses it in the answer.
    Spare,
    /// It is removed.
    Goes,
    /// No table knows it.
    Unknown,
}

impl Verdict {
    fn fate(self, name: &str, seen: &mut Inspection) -> MemberFate {
        match self {
            Self::Stays => hints::hint(name).map_or(MemberFate::Stays, MemberFate::Hint),
            Self::Spare => hints::spare(name).map_or(MemberFate::Stays, MemberFate::Hint),
            Self::Goes => MemberFate::Goes,
            Self::Unknown => {
                seen.unknown.push(name.to_owned());
                MemberFate::Unknown(seen.unknown.len() - 1)
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

/// Counts a field that may demand a form of the answer.
pub(crate) fn form(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<(), BadRequest> {
    cursor.peek()?;
    let start = cursor.at();
    text(cursor, seen)?;
    let said = cursor.slice(start..cursor.at());
    seen.formed |= ["\"json_schema\"", "\"json_object\""]
        .iter()
        .any(|form| said.contains(form));
    Ok(())
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

/// Reads what is for the gateway alone: it does not go upstream.
pub(crate) fn ours(cursor: &mut Cursor<'_>) -> Result<Verdict, BadRequest> {
    cursor.skip()?;
    Ok(Verdict::Goes)
}

/// Reads `usage: {include: …}`: `true` asks for the usage of a chat stream, `false` for no `usage.cost`.
pub(crate) fn cost_wish(
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<Verdict, BadRequest> {
    options("usage", cursor, |name, cursor| {
        match name {
            "include" if cursor.peek()? != Kind::Null => {
                let asks = flag(name, cursor)?;
                seen.asks_usage |= asks;
                seen.hides_cost = !asks;
            }
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
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

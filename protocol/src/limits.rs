//! Fields for an output limit: read here, and written into the one that a provider reads.
//!
//! Chat has two of them, and services disagree: some ignore the newer one, some refuse one of them, some refuse both together.

use std::ops::Range;

use crate::inspect::{Fate, Member, Places};
use crate::json::{Cursor, Edit, Kind, Value, quoted};
use crate::patch::member;
use crate::usage::count;
use crate::{BadRequest, Edits, Inspection};

/// Reads a limit field: an integer in 1…2^31−1; `null` means no limit.
pub(crate) fn limit(
    name: &'static str,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<(), BadRequest> {
    let value = cursor.skip()?;
    if value.kind == Kind::Null {
        seen.places.nulls.push((name, value.span));
        return Ok(());
    }
    let tokens = positive(name, cursor, &value)?;
    match (seen.limit, &seen.places.limit) {
        (Some(first), Some((other, _))) if first != tokens => {
            let message = format!("`{other}` and `{name}` differ. Send one of them.");
            return Err(BadRequest::at(name, message));
        }
        (Some(_), _) => seen.places.limit_twin = Some((name, value.span)),
        (None, _) => {
            seen.limit = Some(tokens);
            seen.places.limit = Some((name, value.span));
        }
    }
    Ok(())
}

/// An integer in 1…2^31−1.
pub(crate) fn positive(name: &str, cursor: &Cursor<'_>, value: &Value) -> Result<u32, BadRequest> {
    let number = count(cursor, value).and_then(|number| u32::try_from(number).ok());
    number
        .filter(|number| (1..=i32::MAX.unsigned_abs()).contains(number))
        .ok_or_else(|| {
            BadRequest::at(
                name,
                format!(
                    "`{name}` must be an integer between 1 and {}, or be left out.",
                    i32::MAX
                ),
            )
        })
}

/// Marks the fields for the limit whose fate depends on the provider: all of them, if one is `null` or there are two.
pub(crate) fn mark(members: &mut [Member<'_>], places: &Places) {
    if places.nulls.is_empty() && places.limit_twin.is_none() {
        return;
    }
    let declared = [&places.limit, &places.limit_twin].into_iter().flatten();
    for (name, _) in declared.chain(&places.nulls) {
        for member in members.iter_mut().filter(|member| member.name == *name) {
            member.fate = Fate::Limit(name);
        }
    }
}

/// Writes the limit into the field that the provider reads. Left in another, it may be ignored, and the answer grows far beyond the
/// limit for which money is held; or the whole request is refused.
pub(crate) fn changes<'a>(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'a>> {
    let (places, known) = (&seen.places, edits.limit_field);
    let Some(limit) = edits.limit.or(seen.limit) else {
        return Vec::new();
    };
    let number = || limit.to_string().into_bytes();
    let mut declared = [&places.limit, &places.limit_twin].into_iter().flatten();
    let null = places.nulls.iter().find(|(name, _)| *name == known);
    if let Some((_, at)) = declared.clone().find(|(name, _)| *name == known) {
        let stays = seen.limit == Some(limit);
        return (!stays)
            .then(|| Edit::replace(at.clone(), number()))
            .into_iter()
            .collect();
    }
    if let Some((_, null)) = null {
        return vec![Edit::replace(null.clone(), number())];
    }
    match declared.next() {
        Some((_, at)) => name_before(body, at)
            .map(|name| Edit::replace(name, quoted(known).into_bytes()))
            .into_iter()
            .chain((seen.limit != Some(limit)).then(|| Edit::replace(at.clone(), number())))
            .collect(),
        None => vec![member(seen, known, &limit.to_string())],
    }
}

/// Where the name of a number's member is written. Only a colon and white space separate the two, and no escape puts a quote into the
/// name of such a field.
fn name_before(body: &[u8], number: &Range<usize>) -> Option<Range<usize>> {
    let quote = |before: usize| body.get(..before)?.iter().rposition(|byte| *byte == b'"');
    let end = quote(number.start)?;
    Some(quote(end)?..end + 1)
}

//! The edits that every family makes to a request on its way upstream. A family's `patch.rs` adds its own.
//!
//! Only the places an [`Inspection`] names are changed; every other byte stays as the customer wrote it.

use std::ops::Range;

use crate::inspect::MemberFate;
use crate::json::{Cursor, Cuts, Edit, quoted};
use crate::{Edits, Inspection};

/// The edits that all families share: the model and the limit. What goes is added last, by `fit.rs`.
pub(crate) fn common<'a>(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'a>> {
    let places = &seen.places;
    let mut out: Vec<Edit<'a>> = Vec::with_capacity(places.cuts.len() + 5);
    out.push(Edit::replace(
        places.model.clone(),
        quoted(edits.model).into_bytes(),
    ));
    out.extend(limit(body, seen, edits));
    out
}

/// Writes the limit into the field that the provider reads. Left in another, it may be ignored, and the answer grows far beyond the
/// limit for which money is held; or the whole request is refused.
fn limit<'a>(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'a>> {
    let (places, known) = (&seen.places, edits.limit_field);
    let Some(limit) = edits
        .limit
        .or(seen.limit)
        .filter(|_| !edits.fit.drops(known))
    else {
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

/// The removals from a request whose members nothing else concerns.
pub(crate) fn cuts<'a>(seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'a>> {
    let places = &seen.places;
    let mut cuts = Cuts::default();
    for (span, fate) in &places.members_by_target {
        cuts.take(span.clone(), stays(*fate, seen, edits));
    }
    let all = places.cuts.iter().cloned().chain(cuts.finish());
    all.map(Edit::cut).collect()
}

/// Whether a top-level member whose fate depends on the target goes upstream.
pub(crate) fn stays(fate: MemberFate, seen: &Inspection, edits: &Edits<'_>) -> bool {
    match fate {
        MemberFate::Stays => true,
        MemberFate::Goes => false,
        // The encoder wrote every member itself, so a provider's `pass` list for another family does not apply.
        MemberFate::Unknown(_) if edits.translated => true,
        MemberFate::Unknown(index) => seen
            .unknown
            .get(index)
            .is_some_and(|name| edits.fit.pass.contains(name)),
        MemberFate::Hint(name) => edits.fit.abilities.takes(name),
        MemberFate::Limit(name) => name == edits.limit_field,
    }
}

/// A new top-level member.
pub(crate) fn member<'a>(seen: &Inspection, name: &str, value: &str) -> Edit<'a> {
    let comma = if seen.places.empty { "" } else { "," };
    Edit::replace(
        seen.places.start..seen.places.start,
        format!("{}:{value}{comma}", quoted(name)).into_bytes(),
    )
}

/// `store` as sent upstream.
pub(crate) fn store<'a>(at: &Range<usize>) -> Edit<'a> {
    Edit::replace(at.clone(), &b"false"[..])
}

/// Sets one option inside an object; `at` is the object or a `null`.
pub(crate) fn option<'a>(body: &[u8], at: &Range<usize>, name: &str, value: &str) -> Vec<Edit<'a>> {
    let object = body.get(at.clone()).unwrap_or_default();
    match values_of(object, name) {
        None => vec![Edit::replace(
            at.clone(),
            format!("{{{}:{value}}}", quoted(name)).into_bytes(),
        )],
        Some((values, _)) if !values.is_empty() => {
            let places = values
                .into_iter()
                .map(|value| at.start + value.start..at.start + value.end);
            places
                .map(|place| Edit::replace(place, value.to_owned().into_bytes()))
                .collect()
        }
        Some((_, empty)) => {
            let comma = if empty { "" } else { "," };
            let start = at.start + 1;
            vec![Edit::replace(
                start..start,
                format!("{}:{value}{comma}", quoted(name)).into_bytes(),
            )]
        }
    }
}

/// Where the object's members of that name have their values, and whether it has no members at all.
fn values_of(object: &[u8], name: &str) -> Option<(Vec<Range<usize>>, bool)> {
    let mut cursor = Cursor::new(object).ok()?;
    let mut walk = cursor.enter_object().ok()?;
    let mut values = Vec::new();
    let mut empty = true;
    while let Some(key) = cursor.member(&mut walk).ok()? {
        empty = false;
        let value = cursor.skip().ok()?;
        if key.name == name {
            values.push(value.span);
        }
    }
    Some((values, empty))
}

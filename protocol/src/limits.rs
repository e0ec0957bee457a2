//! Reads fields that hold a number of tokens: the output limit, and others with the same range.
//!
//! Chat has two fields for the limit, and services disagree: some ignore the newer one, some refuse one of them or both together.

use std::ops::Range;

use crate::inspect::Inspection;
use crate::json::{Cursor, Kind, Value};
use crate::usage::count;
use crate::{BadRequest, Remedy};

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
    note(name, (tokens, value.span), seen)
}

/// The same, where the field is required and `0` asks for no answer: the prompt is only written to a cache.
pub(crate) fn limit_or_none(
    name: &'static str,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<(), BadRequest> {
    let mut ahead = cursor.clone();
    let value = ahead.skip()?;
    if value.kind == Kind::Number && count(&ahead, &value) == Some(0) {
        *cursor = ahead;
        seen.prewarms = true;
        return note(name, (0, value.span), seen);
    }
    limit(name, cursor, seen).map_err(|bad| BadRequest {
        message: format!("`{name}` must be an integer between 1 and {}.", i32::MAX),
        remedy: None,
        ..bad
    })
}

fn note(
    name: &'static str,
    (tokens, span): (u32, Range<usize>),
    seen: &mut Inspection,
) -> Result<(), BadRequest> {
    match (seen.limit, &seen.places.limit) {
        (Some(first), Some((other, _))) if first != tokens => {
            let message = format!("`{other}` and `{name}` differ. Send one of them.");
            return Err(BadRequest::at(name, message).with(Remedy::Without));
        }
        (Some(_), _) => seen.places.limit_twin = Some((name, span)),
        (None, _) => {
            seen.limit = Some(tokens);
            seen.places.limit = Some((name, span));
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
            .with(Remedy::Without)
        })
}

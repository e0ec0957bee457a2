//! What requests say about caching their prompts: marks, and how long what is written lives.

use crate::json::{Cursor, Kind};
use crate::walk::{flag, options};
use crate::{BadRequest, Inspection, Remedy};

/// Reads `cache_control`, whose name stands at `from`, for its duration.
pub(crate) fn control(
    from: usize,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<(), BadRequest> {
    let marked = options("cache_control", cursor, |name, cursor| {
        let value = cursor.skip()?;
        if name == "ttl" && value.kind != Kind::Null {
            match cursor.text_of(&value).as_deref() {
                Some("5m") => {}
                Some("1h") => seen.one_hour_cache = true,
                Some("12h") => seen.half_day_cache = true,
                _ => return Err(lifetime("`\"5m\"`, `\"1h\"` or `\"12h\"`")),
            }
        }
        Ok(())
    })?;
    seen.cache_marked |= marked;
    seen.places.talk.marks.push(from..cursor.at());
    Ok(())
}

/// Reads `prompt_cache_options`: a long lifetime makes cache writes more expensive, and `prewarm` writes without an answer.
pub(crate) fn lifetime_options(
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<(), BadRequest> {
    options("prompt_cache_options", cursor, |name, cursor| {
        if name == "prewarm" {
            seen.prewarms = flag(name, cursor)?;
            return Ok(());
        }
        let value = cursor.skip()?;
        if name == "ttl" && value.kind != Kind::Null {
            match cursor.text_of(&value).as_deref() {
                Some("30m") => {}
                Some("1h") => seen.one_hour_cache = true,
                Some("12h") => seen.half_day_cache = true,
                _ => return Err(lifetime("`\"30m\"`, `\"1h\"` or `\"12h\"`")),
            }
            seen.places.lifetime_apart = true;
        }
        Ok(())
    })
    .map(|_| ())
}

/// What a cache write costs depends on its lifetime, so one that nobody knows has no price.
fn lifetime(known: &str) -> BadRequest {
    BadRequest {
        code: Some("unsupported_parameter"),
        ..BadRequest::at("ttl", format!("`ttl` must be {known}, or be left out."))
            .with(Remedy::Without)
    }
}

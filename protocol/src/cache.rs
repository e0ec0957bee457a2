//! What requests say about caching their prompts: marks, and how long what is written lives.

use crate::json::{Cursor, Kind};
use crate::walk::options;
use crate::{BadRequest, Inspection};

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
                _ => return Err(lifetime("`\"5m\"` or `\"1h\"`")),
            }
        }
        Ok(())
    })?;
    seen.cache_marked |= marked;
    seen.places.talk.aside.push(from..cursor.at());
    Ok(())
}

/// Reads `prompt_cache_options`: a long lifetime makes cache writes more expensive.
pub(crate) fn lifetime_options(
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<(), BadRequest> {
    options("prompt_cache_options", cursor, |name, cursor| {
        let value = cursor.skip()?;
        if name == "ttl" && value.kind != Kind::Null {
            match cursor.text_of(&value).as_deref() {
                Some("30m") => {}
                Some(ttl) if is_hours(ttl) => seen.one_hour_cache = true,
                _ => return Err(lifetime("`\"30m\"` or hours, as in `\"1h\"`")),
            }
        }
        Ok(())
    })
    .map(|_| ())
}

/// Whether a lifetime is a number of hours, as in `12h`.
fn is_hours(ttl: &str) -> bool {
    ttl.strip_suffix('h').is_some_and(|hours| {
        (1..=3).contains(&hours.len()) && hours.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// What a cache write costs depends on its lifetime, so one that nobody knows has no price.
fn lifetime(known: &str) -> BadRequest {
    BadRequest {
        code: Some("unsupported_parameter"),
        ..BadRequest::at("ttl", format!("`ttl` must be {known}, or be left out."))
    }
}

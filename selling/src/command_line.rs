//! How commands read what an act says of a setting, where bodies have null.

use std::str::FromStr;

use farebox_ledger::Said;

use super::value::{Count, Expiry, slug};

/// Stands for a setting of which nothing is said: no argument can contain it.
pub(crate) const KEPT: &str = "\0";

fn said<T>(
    text: &str,
    none: Option<&str>,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Said<T>, String> {
    match text {
        KEPT => Ok(Said::Keep),
        text if Some(text) == none => Ok(Said::Clear),
        text => read(text).map(Said::Set),
    }
}

/// A value, or `none`.
pub(crate) fn or_none<T: FromStr<Err = String>>(text: &str) -> Result<Said<T>, String> {
    said(text, Some("none"), str::parse)
}

/// A limit, or `none`.
pub(crate) fn limit(text: &str) -> Result<Said<Count>, String> {
    let advice = "write a whole number above 0, or none; to stop a key, block it";
    or_none(text).map_err(|_| advice.to_owned())
}

/// When something ends, or `never`.
pub(crate) fn expiry_or_never(text: &str) -> Result<Said<Expiry>, String> {
    said(text, Some("never"), str::parse)
}

/// Slugs, or `all`. None is none of them: who types that may mean no model.
pub(crate) fn slugs(text: &str) -> Result<Said<Vec<String>>, String> {
    said(text, None, |text| text.split(',').map(slug).collect())
}

/// A name and a value.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write a name and a value with = between them".to_owned()),
    }
}

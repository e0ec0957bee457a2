//! The fate of each field of a request on its way to another family: one table per family, read by the code and printed in
//! `docs/translation.md`.
//!
//! A field that no table names is dropped and reported. Must not decide anything that depends on a target's abilities.

use super::losses::Losses;
use super::tree::JsonNode;
use crate::hints;
use crate::{BadRequest, Family, Remedy};

/// The fate of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldFate {
    /// The target's family has the same field.
    Carried,
    /// It is expressed in other words.
    Converted,
    /// A hint: left out and reported.
    Dropped,
    /// Means nothing to a model: left out without a report.
    Silent,
    /// Leaving it out would change the answer: a 400, with the remedy.
    Refused(&'static str),
}

/// One row: the field, its fate towards chat, responses and messages, and its default values, which are silently left out.
#[derive(Debug, Clone, Copy)]
pub struct FateRow {
    /// The field.
    pub name: &'static str,
    /// Towards chat, responses and messages; the own family's entry is not read.
    pub fates: [FieldFate; 3],
    /// Values (as JSON) that are the default.
    pub defaults: &'static [&'static str],
    /// Values (as JSON) in a list that are refused all the same, and the remedy.
    pub refused: Option<(&'static str, &'static str)>,
}

/// Hints that every family can express.
const DRAWN_OR_FOR_WHOM: &[&str] = &["temperature", "top_p", "safety_identifier", "user"];

/// A row with one fate in all directions.
pub(crate) const fn row(name: &'static str, fate: FieldFate) -> FateRow {
    FateRow {
        name,
        fates: [fate; 3],
        defaults: &[],
        refused: None,
    }
}

/// A row whose default values are silently left out.
pub(crate) const fn unless(
    name: &'static str,
    fate: FieldFate,
    defaults: &'static [&'static str],
) -> FateRow {
    FateRow {
        name,
        fates: [fate; 3],
        defaults,
        refused: None,
    }
}

/// A row whose field only one family accepts.
pub(crate) const fn only(name: &'static str, family: Family, fate: FieldFate) -> FateRow {
    let other = FieldFate::Dropped;
    let fates = match family {
        Family::Chat => [fate, other, other],
        Family::Responses => [other, fate, other],
        Family::Messages => [other, other, fate],
    };
    FateRow {
        name,
        fates,
        defaults: &[],
        refused: None,
    }
}

/// A row whose field only matters where it is converted; messages models lose nothing without it.
pub(crate) const fn silent_for_messages(name: &'static str) -> FateRow {
    FateRow {
        name,
        fates: [
            FieldFate::Converted,
            FieldFate::Converted,
            FieldFate::Silent,
        ],
        defaults: &[],
        refused: None,
    }
}

/// A row whose field one family refuses; elsewhere it is expressed in other words.
pub(crate) const fn refused_by(
    name: &'static str,
    family: Family,
    remedy: &'static str,
) -> FateRow {
    let (refused, other) = (FieldFate::Refused(remedy), FieldFate::Converted);
    let fates = match family {
        Family::Chat => [refused, other, other],
        Family::Responses => [other, refused, other],
        Family::Messages => [other, other, refused],
    };
    FateRow {
        name,
        fates,
        defaults: &[],
        refused: None,
    }
}

impl FateRow {
    /// Whether a request can be answered without it: some family leaves it out, or it only says how words are drawn or for whom.
    pub fn is_hint(&self) -> bool {
        let left_out = |fate| matches!(fate, &FieldFate::Dropped | &FieldFate::Silent);
        self.fates.iter().any(left_out) || DRAWN_OR_FOR_WHOM.contains(&self.name)
    }

    /// The fate towards a family.
    pub fn fate(&self, target: Family) -> FieldFate {
        let [chat, responses, messages] = self.fates;
        match target {
            Family::Chat => chat,
            Family::Responses => responses,
            Family::Messages => messages,
        }
    }
}

/// The part of a family's requests that a target of another family does not get: fields left out, and fields refused.
pub fn pair_losses(from: Family, to: Family) -> (Vec<&'static str>, Vec<&'static str>) {
    let named = |wanted: fn(FieldFate) -> bool| {
        let rows = super::fields(from)
            .iter()
            .filter(|row| wanted(row.fate(to)));
        rows.map(|row| row.name).collect()
    };
    (
        named(|fate| fate == FieldFate::Dropped),
        named(|fate| matches!(fate, FieldFate::Refused(_))),
    )
}

/// Whether an answer may be another one without this field of a family's requests: another family has a word for it, or it is refused
/// where it has none. A hint is not missed.
pub fn changes_answer(family: Family, name: &str) -> bool {
    let matters = |row: &FateRow| {
        let mut others = Family::ALL.into_iter().filter(|other| *other != family);
        others.any(|other| !matches!(row.fate(other), FieldFate::Dropped | FieldFate::Silent))
    };
    let mut rows = super::fields(family).iter();
    hints::hint(name).is_none() && rows.any(|row| row.name == name && matters(row))
}

/// Judges one top-level field: `true` if the decoder handles it.
pub(crate) fn judge(
    table: &[FateRow],
    target: Family,
    name: &str,
    value: &JsonNode<'_>,
    losses: &mut Losses,
) -> Result<bool, BadRequest> {
    let row = table.iter().find(|row| row.name == name);
    let fate = row.map_or(FieldFate::Dropped, |row| row.fate(target));
    let asks = !value.is_empty() && !row.is_some_and(|row| row.defaults.contains(&value.raw));
    if let Some((word, remedy)) = row.and_then(|row| row.refused)
        && value.elements().any(|element| element.raw == word)
    {
        return Err(refuse(name, value, target, remedy));
    }
    match fate {
        FieldFate::Carried | FieldFate::Converted => return Ok(true),
        FieldFate::Dropped if asks => losses.add(name, "dropped"),
        FieldFate::Refused(remedy) if asks => return Err(refuse(name, value, target, remedy)),
        FieldFate::Dropped | FieldFate::Refused(_) | FieldFate::Silent => {}
    }
    Ok(false)
}

fn refuse(name: &str, value: &JsonNode<'_>, target: Family, remedy: &str) -> BadRequest {
    let shown = if value.raw.len() <= 40 {
        format!("`{name}` = {}", value.raw)
    } else {
        format!("`{name}`")
    };
    unsupported(
        name,
        format!(
            "{shown}: this model is served through the {target} family, which does not know that. {remedy}"
        ),
    )
}

/// The refusal of a field, a part or a tool that the target cannot carry.
pub(crate) fn unsupported(param: &str, message: impl Into<String>) -> BadRequest {
    BadRequest {
        code: Some("unsupported_by_model"),
        ..BadRequest::at(param, message).with(Remedy::Without)
    }
}

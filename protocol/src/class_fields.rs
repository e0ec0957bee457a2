//! Fields of classes in a request: what they ask for, and how they are pinned on the way to a provider. The words are in `class.rs`.

use crate::class::{ClassField, ClassPlace, Means, find, meaning};
use crate::inspect::Inspection;
use crate::json::{Cursor, Edit, Kind, quoted};
use crate::patch::member;
use crate::walk::Verdict;
use crate::{BadRequest, Edits, Remedy};

/// Why a word is refused.
const UNKNOWN: &str = "no class is called that here";

/// Reads a field of a request if the family has it as a class; `None` if it has not, and the value is still to be read.
pub(crate) fn ask(
    fields: &[ClassField],
    name: &str,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<Option<Verdict>, BadRequest> {
    let Some(field) = find(fields, name) else {
        return Ok(None);
    };
    let value = cursor.skip()?;
    if value.kind == Kind::Null {
        return Ok(Some(Verdict::Goes));
    }
    let word = cursor.text_of(&value);
    let Some(means) = word.and_then(|word| meaning(field.asks, &word)) else {
        return Err(field.refusal());
    };
    match means {
        Means::Nothing | Means::Standard => {}
        Means::Tier(tier) => seen.classes.tier = tier,
        Means::Place(place) => seen.classes.place = place,
    }
    seen.places.classes.push(ClassPlace {
        name: field.name,
        at: value.span,
        idle: means == Means::Nothing,
    });
    Ok(Some(Verdict::Stays))
}

impl ClassField {
    fn refusal(&self) -> BadRequest {
        let name = self.name;
        let words: Vec<String> = self
            .asks
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        let message = format!(
            "`{name}` is refused: {UNKNOWN}. Leave it out or send {}.",
            words.join(" or ")
        );
        BadRequest {
            code: Some("unsupported_parameter"),
            ..BadRequest::at(name, message).with(Remedy::Without)
        }
    }

    /// The word that asks for the standard.
    fn standard(&self) -> &'static str {
        let standard = self
            .asks
            .iter()
            .find(|(_, means)| *means == Means::Standard);
        standard.map_or("default", |(word, _)| *word)
    }
}

/// The edits that pin a request to the standard: a field that is absent, or that leaves the choice to the provider's account.
pub(crate) fn pins(
    fields: &'static [ClassField],
    seen: &Inspection,
    edits: &Edits<'_>,
) -> Vec<Edit<'static>> {
    let pinned = edits.pin.iter().filter_map(|name| find(fields, name));
    pinned
        .filter(|field| edits.fit.abilities.takes(field.name))
        .filter_map(|field| {
            let place = seen
                .places
                .classes
                .iter()
                .find(|one| one.name == field.name);
            match place {
                Some(place) if place.idle => Some(Edit::replace(
                    place.at.clone(),
                    quoted(field.standard()).into_bytes(),
                )),
                Some(_) => None,
                None => Some(member(seen, field.name, &quoted(field.standard()))),
            }
        })
        .collect()
}

//! Request fields that buy something other than tokens of the slug: another model, host or tier, stored state, or server-side work.
//!
//! Each family has a table of these, `REFUSED`; this file reads such a table. Without a price such a service is not sold: a field
//! is refused with a 400 unless its value is free. A second table lists the fields that pass untouched; a field in neither table is
//! unknown and does not pass.

use crate::json::{Cursor, Kind, Value};
use crate::walk::Verdict;
use crate::{BadRequest, Remedy};

/// One row of a family's table: the field, which values are free, and why the others are refused.
pub(crate) type FieldRule = (&'static str, Free, &'static str);

/// Values that buy nothing. `null` is always free.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Free {
    /// The field's presence alone switches something on: even `{}`, `[]` and `false` are refused.
    Absent,
    /// `false` is free. An empty list or object is not: servers differ in whether it switches the field on.
    Off,
    /// `false` and an empty list or object are free.
    Nothing,
    /// These words are free too.
    Words(&'static [&'static str]),
    /// Lists of these words are free too.
    Lists(&'static [&'static str]),
}

/// The field that continues a conversation stored by the provider (messages); the only one whose refusal libraries act on.
pub(crate) const THREAD: &str = "thread";

/// The field that continues an answer stored by the provider (responses).
const STORED: &str = "previous_response_id";

/// Why an `item_reference` is refused, and what helps.
pub(crate) const ITEM_REFERENCE: &str = "`item_reference` is refused: no item of this id was given here to you in the last hour. \
     Send `store: false` and the items themselves; most libraries do the latter when told the former.";

/// Reasons that several fields share.
pub(crate) const MODEL: &str = "the model is chosen by `model` alone";
pub(crate) const HOST: &str = "the gateway alone chooses where a request goes";
pub(crate) const TIER: &str = "only the standard tier is sold here";
pub(crate) const STATE: &str = "nothing is stored here; send the whole conversation";
pub(crate) const LATER: &str = "nothing is stored here, so no answer can be fetched later";
pub(crate) const SERVER_TOOL: &str = "tools that run on a server have no price here";
pub(crate) const MEDIA: &str = "audio and video have no price here";

/// What every family refuses.
#[rustfmt::skip]
const OF_ALL: &[FieldRule] = &[
    ("models",      Free::Nothing,  MODEL),
    ("route",       Free::Nothing,  MODEL),
    ("fallbacks",   Free::Nothing,  MODEL),
    ("provider",    Free::Nothing,  HOST),
    ("api_base",    Free::Nothing,  HOST),
    ("base_url",    Free::Nothing,  HOST),
    ("api_key",     Free::Nothing,  HOST),
    ("plugins",     Free::Nothing,  SERVER_TOOL),
    ("mcp_servers", Free::Nothing,  SERVER_TOOL),
    ("container",   Free::Absent,   SERVER_TOOL),
    ("file_id",     Free::Nothing,  STATE),
    ("file_ids",    Free::Nothing,  STATE),
];

/// Checks the value of `name` if the table has it, or that of all families; `None` if it has not, and the value is still to be read. A value that asks for
/// nothing is removed: most vendors refuse the name of a field that they do not know, whatever its value.
pub(crate) fn check(
    table: &[FieldRule],
    name: &str,
    cursor: &mut Cursor<'_>,
) -> Result<Option<Verdict>, BadRequest> {
    let Some((field, free, why)) = table
        .iter()
        .chain(OF_ALL)
        .find(|(field, ..)| *field == name)
    else {
        return Ok(None);
    };
    let value = cursor.skip()?;
    if is_free(*free, cursor, &value) {
        let asks = value.kind == Kind::String || asks(cursor, &value);
        return Ok(Some(if asks { Verdict::Stays } else { Verdict::Goes }));
    }
    let instead = match free {
        Free::Absent | Free::Off | Free::Nothing if *field == STORED => {
            "Leave it out, and set `store` to false: most libraries then send the conversation themselves".to_owned()
        }
        Free::Absent | Free::Off | Free::Nothing => "Leave it out".to_owned(),
        Free::Words(words) => format!("Leave it out or send \"{}\"", words.join("\" or \"")),
        Free::Lists(words) => format!("Leave it out or send [\"{}\"]", words.join("\", \"")),
    };
    let remedy = match free {
        _ if *field == THREAD => Remedy::Unthreaded,
        _ if *field == STORED => Remedy::Whole(field),
        _ => Remedy::Without,
    };
    Err(BadRequest {
        code: Some("unsupported_parameter"),
        remedy: Some(remedy),
        ..BadRequest::at(*field, format!("`{field}` is refused: {why}. {instead}."))
    })
}

/// Whether a free value says anything at all: a list of words does.
fn asks(cursor: &Cursor<'_>, value: &Value) -> bool {
    value.kind == Kind::Array && cursor.slice(value.span.clone()).len() > 2
}

fn is_free(free: Free, cursor: &Cursor<'_>, value: &Value) -> bool {
    let text = cursor.slice(value.span.clone());
    match value.kind {
        Kind::Null => true,
        _ if matches!(free, Free::Absent) => false,
        Kind::Bool => text == "false",
        _ if matches!(free, Free::Off) => false,
        Kind::Array | Kind::Object if value.size.bytes() == 2 => true,
        Kind::String => {
            matches!(free, Free::Words(words) if cursor.text_of(value).is_some_and(|word| words.contains(&&*word)))
        }
        Kind::Array => {
            matches!(free, Free::Lists(words) if all_words(words, &mut cursor.back_to(value.span.start)))
        }
        Kind::Object | Kind::Number => false,
    }
}

fn all_words(words: &[&str], cursor: &mut Cursor<'_>) -> bool {
    let Ok(mut walk) = cursor.enter_array() else {
        return false;
    };
    while let Ok(true) = cursor.element(&mut walk) {
        let word = cursor.skip().ok().and_then(|value| cursor.text_of(&value));
        if !word.is_some_and(|word| words.contains(&&*word)) {
            return false;
        }
    }
    true
}

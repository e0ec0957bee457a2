//! Items that stand for others: those that an answer gives, and where a later request refers to one by its id.

use std::ops::Range;

use crate::json::{Cursor, JsonError, Kind};

/// A reference in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemReference {
    /// Where it stands.
    pub at: Range<usize>,
    /// The item that it names.
    pub id: String,
}

/// The items of an answer with their ids: of a whole one, or of the events that end a stream.
pub fn items_of(answer: &[u8]) -> Vec<(String, &[u8])> {
    if answer.starts_with(b"{") {
        return items(answer).unwrap_or_default();
    }
    let lines = answer.split(|byte| matches!(byte, b'\n' | b'\r'));
    let data = lines.filter_map(|line| line.strip_prefix(b"data:"));
    data.flat_map(|data| items(data.trim_ascii_start()).unwrap_or_default())
        .collect()
}

/// The items of a `response`, or of the last event, which has one.
fn items(document: &[u8]) -> Result<Vec<(String, &[u8])>, JsonError> {
    let mut cursor = Cursor::new(document)?;
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match (&*key.name, cursor.peek()?) {
            ("response", Kind::Object) => {
                let response = cursor.skip()?;
                return items(document.get(response.span).unwrap_or_default());
            }
            ("output", Kind::Array) => return named(document, &mut cursor),
            _ => {
                cursor.skip()?;
            }
        }
    }
    Ok(Vec::new())
}

fn named<'a>(
    document: &'a [u8],
    cursor: &mut Cursor<'_>,
) -> Result<Vec<(String, &'a [u8])>, JsonError> {
    let (mut found, mut walk) = (Vec::new(), cursor.enter_array()?);
    while cursor.element(&mut walk)? {
        let item = Item::read(cursor)?;
        let text = document.get(item.at).unwrap_or_default();
        found.extend(item.id.map(|id| (id, text)));
    }
    Ok(found)
}

/// The references in a request's `input`.
pub fn references(body: &[u8]) -> Vec<ItemReference> {
    referring(body).unwrap_or_default()
}

fn referring(body: &[u8]) -> Result<Vec<ItemReference>, JsonError> {
    let (mut found, mut cursor) = (Vec::new(), Cursor::new(body)?);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        if key.name != "input" || cursor.peek()? != Kind::Array {
            cursor.skip()?;
            continue;
        }
        let mut walk = cursor.enter_array()?;
        while cursor.element(&mut walk)? {
            let Item { at, id, refers } = Item::read(&mut cursor)?;
            found.extend(id.filter(|_| refers).map(|id| ItemReference { at, id }));
        }
    }
    Ok(found)
}

/// What is read of an item.
struct Item {
    at: Range<usize>,
    id: Option<String>,
    refers: bool,
}

impl Item {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, JsonError> {
        let (mut id, mut kind, mut speaks) = (None, None, false);
        cursor.peek()?;
        let from = cursor.at();
        if cursor.peek()? == Kind::Object {
            let mut walk = cursor.enter_object()?;
            while let Some(key) = cursor.member(&mut walk)? {
                let value = cursor.skip()?;
                let text = cursor.text_of(&value).map(String::from);
                match &*key.name {
                    "id" => id = text,
                    "type" => kind = text,
                    "role" | "content" => speaks |= value.kind != Kind::Null,
                    _ => {}
                }
            }
        } else {
            cursor.skip()?;
        }
        // The type of a reference may be left out.
        let refers = kind
            .as_deref()
            .map_or(!speaks, |kind| kind == "item_reference");
        Ok(Self {
            at: from..cursor.at(),
            id,
            refers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"id"}]}"#;
    const CALL: &str =
        r#"{"type":"function_call","id":"fc_\u0031","name":"f","arguments":"{}","call_id":"c"}"#;

    fn of(answer: &str) -> Vec<(String, String)> {
        let text = |item: &[u8]| String::from_utf8(item.to_vec()).unwrap();
        let all = items_of(answer.as_bytes()).into_iter();
        all.map(|(id, item)| (id, text(item))).collect()
    }

    #[test]
    fn items_are_found_in_whole_answers_and_in_the_ends_of_streams() {
        let both =
            [("msg_1", MESSAGE), ("fc_1", CALL)].map(|(id, item)| (id.to_owned(), item.to_owned()));
        let whole = format!(r#"{{"id":"resp_1","output":[{MESSAGE}, {CALL} ],"usage":{{}}}}"#);
        assert_eq!(of(&whole), both);
        let ends = format!(
            "event: response.output_text.done\ndata: {{\"type\":\"x\"}}\n\nevent: response.completed\n\
            data: {{\"type\":\"response.completed\",\"response\":{whole}}}\n\ndata: [DONE]\n\n"
        );
        assert_eq!(of(&ends), both);
        for none in [
            "",
            "{}",
            "[]",
            "data: {\"response\":",
            "{\"output\":[{}, 7]}",
            "{\"output\":\"a\"}",
        ] {
            assert_eq!(of(none), [], "{none}");
        }
    }

    #[test]
    fn references_are_found_with_and_without_a_type() {
        let items = [
            r#"{"type":"item_reference","id":"msg_1"}"#,
            r#"{"id":"fc_1"}"#,
            MESSAGE,
            CALL,
            r#"{"role":"user","content":"hi","id":"u"}"#,
            r#"{"type":"item_reference"}"#,
            r#""text""#,
        ];
        let body = format!(r#"{{"model":"m","input": [{}]}}"#, items.join(", "));
        let found = references(body.as_bytes());
        let texts: Vec<&str> = found.iter().map(|found| &body[found.at.clone()]).collect();
        assert_eq!(texts, items[..2]);
        assert_eq!(found[1].id, "fc_1");
        assert_eq!(references(br#"{"input":"hi"}"#), []);
        assert_eq!(references(br#"{"input":[{"id":"#), []);
    }
}

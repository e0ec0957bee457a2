//! For whom a request was sent: the fields in which callers name an end user of theirs, and the id of the customer that a vendor is sent
//! in its place.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::memmem;
use serde_json::Value;

use crate::conversation::{BEFORE_SESSION, ConversationPlaces, SESSION, text_at};
use crate::json::{self, Edit, quoted};
use crate::patch::{member, option};
use crate::{Edits, Inspection, SentCustomer};

/// The fields in which services read for whom a request is: two at the top, and the messages family's.
pub const END_USER_FIELDS: [&str; 3] = [SAFETY_IDENTIFIER, USER, USER_ID];
const SAFETY_IDENTIFIER: &str = "safety_identifier";
const USER: &str = "user";
const USER_ID: &str = "metadata.user_id";
/// Longer than any service takes.
const LONGEST: usize = 64 * 1024;

impl ConversationPlaces {
    /// The end user that a request names, in the newest of the fields that it has. A session that a coding client writes beside is left
    /// out: it is no person's.
    pub fn end_user<'a>(&self, body: &'a [u8]) -> Option<Cow<'a, str>> {
        let read = |place| text_at(body, place);
        let named = (read(&self.safety_identifier))
            .or_else(|| read(&self.user))
            .or_else(|| self.user_id(body).map(Cow::Owned))?;
        (named.len() <= LONGEST).then_some(named).and_then(person)
    }
}

/// What a name says of the person.
fn person(named: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let person = match serde_json::from_str(&named) {
        Ok(Value::Object(mut said)) => match said.remove(SESSION) {
            Some(_) if said.is_empty() => return None,
            Some(_) => Value::Object(said).to_string(),
            None => return Some(named),
        },
        Ok(_) => return Some(named),
        Err(_) => match named.rsplit_once(BEFORE_SESSION) {
            Some((before, _)) => before.to_owned(),
            None => return Some(named),
        },
    };
    Some(Cow::Owned(person))
}

/// The edits that write the customer's id: into the target's field, and over every other name of an end user, because a vendor is told
/// no name of a person that it could read. What its operator drops is not written.
pub(crate) fn changes(body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>> {
    let Some(SentCustomer { field, id }) = edits.customer else {
        return Vec::new();
    };
    let (places, id) = (&seen.places.conversation, quoted(id));
    if field == USER_ID {
        let (at, whole) = (&places.metadata, format!("{{\"user_id\":{id}}}"));
        return match at.is_empty() {
            _ if edits.fit.drops(field) || edits.fit.drops("metadata") => Vec::new(),
            true => vec![member(seen, "metadata", &whole)],
            // What is left out of an object takes its commas with it, so nothing else is added there.
            false if edits.fit.drops_within("metadata") => {
                vec![Edit::replace(at.clone(), whole.into_bytes())]
            }
            false => option(body, at, "user_id", &id),
        };
    }
    let known = [
        (SAFETY_IDENTIFIER, &places.safety_identifier),
        (USER, &places.user),
    ];
    let written = known.into_iter().filter_map(|(name, at)| {
        let is_field = name == field && !edits.fit.drops(name);
        match body.get(at.clone()).unwrap_or_default() {
            b"" => is_field.then(|| member(seen, name, &id)),
            b"null" if !is_field => None,
            _ => Some(Edit::replace(at.clone(), id.clone().into_bytes())),
        }
    });
    written.collect()
}

/// Puts the customer's own end user back where an answer repeats what its request was sent for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndUserEcho {
    sent: String,
    own: String,
}

impl EndUserEcho {
    /// Of a request that was sent with this id instead of its own end user.
    #[must_use]
    pub fn new(id: &str, own: Option<&str>) -> Self {
        Self {
            sent: quoted(id),
            own: own.map_or_else(|| "null".to_owned(), quoted),
        }
    }

    /// A whole answer or a frame as its customer gets it.
    pub fn restored(echo: Option<&Self>, bytes: Bytes) -> Bytes {
        match echo {
            Some(echo) => echo.restore(bytes),
            None => bytes,
        }
    }

    /// The same allocation if nothing changes.
    fn restore(&self, bytes: Bytes) -> Bytes {
        let own = |at| Edit::replace(at..at + self.sent.len(), self.own.as_bytes());
        let mut edits: Vec<Edit<'_>> = memmem::find_iter(&bytes, &self.sent).map(own).collect();
        match edits.as_slice() {
            [] => bytes,
            _ => Bytes::from(json::splice(&bytes, &mut edits)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Family, TargetFit};

    fn body(family: Family, more: &Value) -> String {
        let mut body = match family {
            Family::Responses => json!({ "model": "m", "input": "hi" }),
            _ => {
                json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "hi" }] })
            }
        };
        let members = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(members);
        body.to_string()
    }

    fn end_user(family: Family, more: &Value) -> Option<String> {
        let body = body(family, more);
        let seen = family.protocol().inspect(body.as_bytes(), 0).unwrap();
        let named = seen.places.conversation.end_user(body.as_bytes());
        named.map(Cow::into_owned)
    }

    fn sent(family: Family, field: &str, more: &Value, fit: &TargetFit) -> Value {
        let body = body(family, more);
        let seen = family.protocol().inspect(body.as_bytes(), 0).unwrap();
        let edits = Edits {
            model: "up",
            fit,
            customer: Some(SentCustomer { field, id: "0f" }),
            ..Edits::default()
        };
        let sent = family.protocol().patch(body.as_bytes(), &seen, &edits);
        serde_json::from_slice(&sent).unwrap()
    }

    #[test]
    fn the_end_user_is_read_from_the_newest_field_without_a_session() {
        let both = json!({ "user": "old", "safety_identifier": "n\u{e9}w" });
        let old = json!({ "user": "old", "safety_identifier": null });
        for family in [Family::Chat, Family::Responses] {
            assert_eq!(end_user(family, &both).as_deref(), Some("n\u{e9}w"));
            assert_eq!(end_user(family, &old).as_deref(), Some("old"));
            assert_eq!(end_user(family, &json!({})), None);
            assert_eq!(end_user(family, &json!({ "user": "" })), None);
        }
        let of = |user: &str| {
            let metadata = json!({ "metadata": { "user_id": user } });
            end_user(Family::Messages, &metadata)
        };
        assert_eq!(of("u").as_deref(), Some("u"));
        assert_eq!(of("user_1_session_2").as_deref(), Some("user_1"));
        let client = |session| of(&json!({ "device_id": "d", "session_id": session }).to_string());
        assert_eq!(client("a"), client("b"));
        assert!(client("a").unwrap().contains("\"d\""));
        assert_eq!(of(r#"{"session_id":"a"}"#), None);
        assert_eq!(of(&"x".repeat(LONGEST + 1)), None);
    }

    #[test]
    fn the_id_takes_the_place_of_every_name_and_is_added_where_there_is_none() {
        let any = TargetFit::anything();
        for family in [Family::Chat, Family::Responses] {
            for more in [
                json!({}),
                json!({ "user": null, "safety_identifier": null }),
                json!({ "user": "anna", "safety_identifier": "anna" }),
                json!({ "user": ["anna"] }),
            ] {
                for field in [USER, SAFETY_IDENTIFIER] {
                    let sent = sent(family, field, &more, any);
                    assert_eq!(sent[field], "0f", "{family} {more}");
                    assert!(!sent.to_string().contains("anna"), "{family} {more}");
                }
            }
        }
        for (more, metadata) in [
            (json!({}), json!({ "user_id": "0f" })),
            (json!({ "metadata": null }), json!({ "user_id": "0f" })),
            (json!({ "metadata": {} }), json!({ "user_id": "0f" })),
            (
                json!({ "metadata": { "user_id": "anna", "x": 1 } }),
                json!({ "user_id": "0f", "x": 1 }),
            ),
        ] {
            let sent = sent(Family::Messages, USER_ID, &more, any);
            assert_eq!(sent["metadata"], metadata, "{more}");
        }
    }

    #[test]
    fn what_the_operator_drops_is_not_written_and_no_name_goes_in_its_place() {
        let dropping = |field: &str| TargetFit {
            drop: vec![field.to_owned()],
            ..TargetFit::default()
        };
        for more in [
            json!({}),
            json!({ "user": "anna", "safety_identifier": "anna" }),
        ] {
            for (field, other) in [(USER, SAFETY_IDENTIFIER), (SAFETY_IDENTIFIER, USER)] {
                let sent = sent(Family::Chat, field, &more, &dropping(field));
                assert_eq!(sent.get(field), None, "{more}");
                assert_ne!(sent.get(other), Some(&json!("anna")));
            }
        }
        let named = json!({ "metadata": { "user_id": "anna", "x": 1 } });
        let sent_named = sent(Family::Messages, USER_ID, &named, &dropping("metadata.x"));
        assert_eq!(sent_named["metadata"], json!({ "user_id": "0f" }));
        for field in [USER_ID, "metadata"] {
            for more in [json!({}), named.clone()] {
                let sent = sent(Family::Messages, USER_ID, &more, &dropping(field));
                assert!(!sent.to_string().contains("anna"), "{field} {more}");
                assert!(!sent.to_string().contains("0f"), "{field} {more}");
            }
        }
    }

    #[test]
    fn the_customer_reads_its_own_end_user_again() {
        let echo = |own| EndUserEcho::new("0f", own);
        let answer = Bytes::from_static(br#"{"user":null,"safety_identifier":"0f","x":"0f "}"#);
        let restored = echo(Some("a\"b")).restore(answer.clone());
        assert_eq!(
            restored,
            br#"{"user":null,"safety_identifier":"a\"b","x":"0f "}"#.as_slice()
        );
        let restored = echo(None).restore(answer);
        assert!(restored.starts_with(br#"{"user":null,"safety_identifier":null"#));
        let other = Bytes::from_static(br#"{"x":"0f "}"#);
        assert_eq!(echo(None).restore(other.clone()), other);
    }
}

//! What a request says of the conversation that it belongs to: the fields in which clients name it, and the part that is the same in
//! each of its turns.
//!
//! Only positions are noted while a request is inspected; what stands there is read once somebody wants to know.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::json::unescape;
use crate::talk::Talk;
use crate::translate::tree::JsonNode;

/// The field in which clients of routers name their session. It is for the gateway alone.
pub(crate) const SESSION: &str = "session_id";
/// Before the session in what an older version of a coding client writes into `user_id`.
pub(crate) const BEFORE_SESSION: &str = "_session_";
const EMPTY: Cow<'_, [u8]> = Cow::Borrowed(&[]);
/// A longer `metadata` is no coding client's.
const LONGEST_METADATA: usize = 64 * 1024;

/// Where a request says it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationPlaces {
    pub(crate) metadata: Range<usize>,
    pub(crate) safety_identifier: Range<usize>,
    pub(crate) user: Range<usize>,
    cache_key: Range<usize>,
    session: Range<usize>,
    tools: Range<usize>,
    /// The system prompt, where it stands outside the conversation.
    system: Range<usize>,
    /// Where the first message of the user ends.
    first_user: Option<usize>,
}

impl ConversationPlaces {
    /// Notes the place of a top-level member's value.
    pub(crate) fn note(&mut self, name: &str, value: Range<usize>) {
        let place = match name {
            "tools" => &mut self.tools,
            "system" | "instructions" => &mut self.system,
            "metadata" => &mut self.metadata,
            "safety_identifier" => &mut self.safety_identifier,
            "user" => &mut self.user,
            "prompt_cache_key" => &mut self.cache_key,
            SESSION => &mut self.session,
            _ => return,
        };
        *place = value;
    }

    /// Notes where a message of the user ends.
    pub(crate) fn user_ended(&mut self, at: usize) {
        self.first_user.get_or_insert(at);
    }

    /// The name that the caller gives its conversation, if it does: a session in `metadata.user_id`, `prompt_cache_key`, or
    /// `session_id`. Whatever is no text is no name.
    fn name<'a>(&self, body: &'a [u8]) -> Option<Cow<'a, str>> {
        let read = |place| text_at(body, place);
        let session = self.user_id(body).as_deref().and_then(session_in);
        session
            .map(Cow::Owned)
            .or_else(|| read(&self.cache_key))
            .or_else(|| read(&self.session))
    }

    /// What `metadata.user_id` says.
    pub(crate) fn user_id(&self, body: &[u8]) -> Option<String> {
        if self.metadata.len() > LONGEST_METADATA {
            return None;
        }
        let metadata = JsonNode::parse(part(body, &self.metadata)?.as_bytes()).ok()?;
        let said = metadata.get("user_id").plain()?.into_owned();
        (!said.is_empty()).then_some(said)
    }

    /// The most bytes that its parts have.
    pub fn most_bytes(&self, talk: &Talk) -> usize {
        let opening = self.opening(talk);
        let all = [
            &self.metadata,
            &self.cache_key,
            &self.session,
            &self.tools,
            &self.system,
            &opening,
        ];
        let lengths = all.into_iter().map(Range::len);
        lengths.fold(0, usize::saturating_add)
    }

    /// What tells the conversation from others: its name, or else what each of its turns repeats, which is tools, system prompt, and the
    /// messages up to the first one of the user. Cache marks are left out, because clients move them along.
    pub fn parts<'a>(&self, talk: &Talk, body: &'a [u8]) -> [Cow<'a, [u8]>; 3] {
        match self.name(body) {
            Some(Cow::Borrowed(name)) => [Cow::Borrowed(name.as_bytes()), EMPTY, EMPTY],
            Some(Cow::Owned(name)) => [Cow::Owned(name.into_bytes()), EMPTY, EMPTY],
            None => {
                // Most requests have no tools, or no system prompt.
                let part = |place: Range<usize>| {
                    if place.is_empty() {
                        EMPTY
                    } else {
                        talk.unmarked(body, place)
                    }
                };
                [
                    part(self.tools.clone()),
                    part(self.system.clone()),
                    part(self.opening(talk)),
                ]
            }
        }
    }

    /// The messages up to the first one of the user.
    fn opening(&self, talk: &Talk) -> Range<usize> {
        let first = talk.turns.first().map(|turn| turn.end);
        let start = talk.place.start;
        start..self.first_user.or(first).unwrap_or(start)
    }
}

/// The session that a coding client names inside `user_id`: as a member of a JSON text, in older versions behind `_session_`.
pub(crate) fn session_in(user: &str) -> Option<String> {
    let named = match serde_json::from_str::<Value>(user) {
        Ok(inner) => inner.get(SESSION)?.as_str()?.to_owned(),
        Err(_) => user.rsplit_once(BEFORE_SESSION)?.1.to_owned(),
    };
    Some(named).filter(|name| !name.is_empty())
}

fn part<'a>(body: &'a [u8], place: &Range<usize>) -> Option<&'a str> {
    let said = body.get(place.clone()).filter(|said| !said.is_empty())?;
    std::str::from_utf8(said).ok()
}

/// What a JSON string there says; `None` for any other value and an empty one.
pub(crate) fn text_at<'a>(body: &'a [u8], place: &Range<usize>) -> Option<Cow<'a, str>> {
    let inner = part(body, place)?.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.is_empty()).then(|| unescape(inner))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Family;

    fn name(family: Family, more: &serde_json::Value) -> Option<String> {
        let mut body = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "hi" }] });
        if family == Family::Responses {
            body = json!({ "model": "m", "input": "hi" });
        }
        let members = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(members);
        let body = body.to_string();
        let seen = family.protocol().inspect(body.as_bytes(), 0).unwrap();
        let found = seen.places.conversation.name(body.as_bytes());
        found.map(Cow::into_owned)
    }

    #[test]
    fn the_callers_own_names_are_read_in_order() {
        let user = |session: &str| {
            json!({ "device_id": "d", "account_uuid": "", "session_id": session }).to_string()
        };
        for family in Family::ALL {
            let all = json!({
                "metadata": { "user_id": user("a") }, "prompt_cache_key": "b", "session_id": "c",
            });
            assert_eq!(name(family, &all).as_deref(), Some("a"), "{family}");
            let two = json!({ "prompt_cache_key": "b\n", "session_id": "c" });
            assert_eq!(name(family, &two).as_deref(), Some("b\n"), "{family}");
            let one = json!({ "session_id": "c" });
            assert_eq!(name(family, &one).as_deref(), Some("c"), "{family}");
            assert_eq!(name(family, &json!({})), None);
        }
        let older = json!({ "metadata": { "user_id": "user_1f_account_2e_session_3d" } });
        assert_eq!(name(Family::Messages, &older).as_deref(), Some("3d"));
    }

    #[test]
    fn what_is_no_text_is_no_name() {
        for wrong in [
            json!(null),
            json!(5),
            json!(true),
            json!(""),
            json!(["a"]),
            json!({ "a": "b" }),
        ] {
            let after = json!({ "prompt_cache_key": wrong, "session_id": "c" });
            assert_eq!(name(Family::Chat, &after).as_deref(), Some("c"), "{wrong}");
            let last = json!({ "session_id": wrong });
            assert_eq!(name(Family::Chat, &last), None, "{wrong}");
            for user in [json!({ "user_id": wrong }), wrong.clone()] {
                let after = json!({ "metadata": user, "prompt_cache_key": "b" });
                let found = name(Family::Messages, &after);
                assert_eq!(found.as_deref(), Some("b"), "{user}");
            }
        }
        for user in [
            "",
            "a person",
            "{\"session_id\":7}",
            "user_1_session_",
            "[]",
            "{",
        ] {
            let after = json!({ "metadata": { "user_id": user }, "prompt_cache_key": "b" });
            let found = name(Family::Messages, &after);
            assert_eq!(found.as_deref(), Some("b"), "{user}");
        }
    }

    #[test]
    fn names_of_any_size_are_read() {
        let long = "x".repeat(10 << 20);
        let found = name(Family::Chat, &json!({ "prompt_cache_key": long }));
        assert_eq!(found.map(|name| name.len()), Some(10 << 20));
        // Beyond what a coding client sends, nobody looks into it.
        let user = json!({ "session_id": long }).to_string();
        assert_eq!(
            name(
                Family::Messages,
                &json!({ "metadata": { "user_id": user } })
            ),
            None
        );
    }

    fn opening(family: Family, body: &str) -> Vec<u8> {
        let seen = family.protocol().inspect(body.as_bytes(), 0).unwrap();
        let (places, talk) = (&seen.places.conversation, &seen.places.talk);
        places.parts(talk, body.as_bytes()).concat()
    }

    #[test]
    fn turns_of_one_conversation_open_alike() {
        let first = r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"tools":[{"name":"t","input_schema":{}}]}"#;
        let later = r#"{"max_tokens":5,"temperature":1,"tools":[{"name":"t","input_schema":{}}],"model":"m","system":[{"type":"text","text":"be brief"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":"hello"},{"role":"user","content":"go on"}],"stream":true}"#;
        let same = opening(Family::Messages, first);
        assert_eq!(same, opening(Family::Messages, later));
        for other in [("hi", "ho"), ("be brief", "be long"), ("\"t\"", "\"u\"")] {
            let changed = later.replacen(other.0, other.1, 1);
            assert_ne!(same, opening(Family::Messages, &changed), "{other:?}");
        }
    }

    #[test]
    fn what_stands_before_the_first_words_of_the_user_counts() {
        let chat = |system: &str, more: &str| {
            let body = format!(
                r#"{{"model":"m","messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"hi"}}{more}]}}"#
            );
            opening(Family::Chat, &body)
        };
        let more = r#",{"role":"assistant","content":"a"},{"role":"user","content":"b"}"#;
        assert_eq!(chat("s", ""), chat("s", more));
        assert_ne!(chat("s", ""), chat("t", ""));
        let responses = |input: &str| {
            opening(
                Family::Responses,
                &format!(r#"{{"model":"m","instructions":"i","input":{input}}}"#),
            )
        };
        assert_ne!(responses("\"a\""), responses("\"b\""));
        // A request without any word of the user opens with its first message.
        let alone = r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"system","content":"u"}]}"#;
        let other = alone.replace("\"u\"", "\"v\"");
        assert_eq!(opening(Family::Chat, alone), opening(Family::Chat, &other));
    }
}

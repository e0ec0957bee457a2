//! The smallest question, with things besides text: whether a target takes what its model is sold for.

use serde_json::{Value, json};

use crate::Family;
use crate::translate::{self, Abilities, EncodeTarget};

/// Something besides text that a question may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// A small white picture.
    Picture,
    /// A tool that the model may call.
    Tool,
}

/// Headers of answers in which services name the organisation whose key was used.
pub const ORGANISATION: [&str; 2] = ["openai-organization", "anthropic-organization-id"];

/// 64 × 64 white pixels: services refuse much smaller ones.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQAAAACCEkxzAAAAEklEQVR42mP4DwUMo4xRBukMAOPT/hAC2mzjAAAAAElFTkSuQmCC";
const TOOL: &str = "get_time";
const ABOUT: &str = "Tells the time";

/// Adds extras to a question as [`crate::Protocol::write_question_as`] wrote it.
pub fn with(family: Family, question: &str, words: &str, extras: &[Extra]) -> String {
    let mut body: Value = serde_json::from_str(question).unwrap_or_default();
    if extras.contains(&Extra::Picture) {
        let url = format!("data:image/png;base64,{PICTURE}");
        match family {
            Family::Chat => {
                body["messages"][0]["content"] = json!([
                    { "type": "text", "text": words },
                    { "type": "image_url", "image_url": { "url": url } },
                ]);
            }
            Family::Responses => {
                let content = json!([
                    { "type": "input_text", "text": words },
                    { "type": "input_image", "image_url": url },
                ]);
                body["input"] = json!([{ "role": "user", "content": content }]);
            }
            Family::Messages => {
                let source =
                    json!({ "type": "base64", "media_type": "image/png", "data": PICTURE });
                body["messages"][0]["content"] = json!([
                    { "type": "image", "source": source },
                    { "type": "text", "text": words },
                ]);
            }
        }
    }
    if extras.contains(&Extra::Tool) {
        let takes = json!({ "type": "object", "properties": {} });
        let tool = match family {
            Family::Chat => json!({
                "type": "function",
                "function": { "name": TOOL, "description": ABOUT, "parameters": takes },
            }),
            Family::Responses => json!({
                "type": "function", "name": TOOL, "description": ABOUT, "parameters": takes,
            }),
            Family::Messages => {
                json!({ "name": TOOL, "description": ABOUT, "input_schema": takes })
            }
        };
        body["tools"] = json!([tool]);
    }
    body.to_string()
}

/// The same question with reasoning turned on, in the way in which this target is asked for it by callers of another family. `None` if
/// it cannot be asked.
pub fn reasoning(
    family: Family,
    (model, abilities): (&str, &Abilities),
    words: &str,
    limit: u32,
) -> Option<Vec<u8>> {
    let (from, effort) = match family {
        Family::Chat => (
            Family::Responses,
            ("reasoning", json!({ "effort": "medium" })),
        ),
        Family::Responses | Family::Messages => {
            (Family::Chat, ("reasoning_effort", json!("medium")))
        }
    };
    let plain = from.protocol().write_question(model, words, limit);
    let mut body: Value = serde_json::from_str(&plain).ok()?;
    body[effort.0] = effort.1;
    let target = EncodeTarget { model, abilities };
    let body = body.to_string();
    Some(
        translate::request(from, family, body.as_bytes(), &target)
            .ok()?
            .body,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChatLimit;
    use crate::translate::abilities::ThinkingWay;

    /// The inspection that customers' requests pass sees what was asked for.
    #[test]
    fn every_family_reads_what_was_added() {
        for family in Family::ALL {
            let protocol = family.protocol();
            let limit = (protocol.limit_field(ChatLimit::MaxTokens, None), 16);
            let plain = protocol.write_question_as("m", "ping", limit);
            for (extras, pictures, tools) in [
                (&[][..], false, false),
                (&[Extra::Picture], true, false),
                (&[Extra::Tool], false, true),
                (&[Extra::Picture, Extra::Tool], true, true),
            ] {
                let body = with(family, &plain, "ping", extras);
                let seen = protocol.inspect(body.as_bytes(), 1).unwrap();
                assert_eq!(!seen.content.pictures.is_empty(), pictures, "{body}");
                assert_eq!(seen.content.tools > 0, tools, "{body}");
            }
        }
    }

    #[test]
    fn every_family_is_asked_to_reason_in_its_own_words() {
        for (family, way, word) in [
            (
                Family::Chat,
                ThinkingWay::Effort,
                "\"reasoning_effort\":\"medium\"",
            ),
            (
                Family::Chat,
                ThinkingWay::Switch,
                "\"thinking\":{\"type\":\"enabled\"}",
            ),
            (
                Family::Responses,
                ThinkingWay::Effort,
                "\"reasoning\":{\"effort\":\"medium\"",
            ),
            (
                Family::Messages,
                ThinkingWay::Adaptive,
                "\"type\":\"adaptive\"",
            ),
        ] {
            let abilities = Abilities {
                thinking: way,
                max_output: 64_000,
                ..Abilities::careful(family)
            };
            let body = reasoning(family, ("m", &abilities), "ping", 16).unwrap();
            let body = String::from_utf8(body).unwrap();
            assert!(body.contains(word) && body.contains(":16"), "{body}");
        }
    }
}

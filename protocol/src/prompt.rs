//! The simulated provider's reading of a request: one walk for all families, with a table of names for each.
//!
//! The gateway itself never reads a request this way, because it builds a tree and drops the bytes. The walk is linear in the body
//! and keeps only the last turn's text. All text goes through the [`Tape`], in the order in which a provider's prompt cache sees
//! it: tools, system prompt, conversation.

use std::hash::{DefaultHasher, Hasher};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::Classes;
use crate::class::{self, ClassField};

/// Characters per token.
pub const CHARS_PER_TOKEN: u64 = 4;
/// Characters per cached block: 64 tokens.
pub const BLOCK_CHARS: u64 = 256;
/// Tokens that each message costs besides its text.
const MESSAGE_TOKENS: u64 = 4;
/// Tokens of a document, and of a picture whose size is unknown.
const OPAQUE_TOKENS: u64 = 250;
const MOST_PICTURE_TOKENS: u64 = 1_600;
const PIXELS_PER_TOKEN: u64 = 750;

/// Members that a model does not read.
const UNREAD: [&str; 13] = [
    "type",
    "role",
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "status",
    "signature",
    "encrypted_content",
    "media_type",
    "detail",
    "cache_control",
    "ttl",
];

/// Where a family keeps the parts that the simulated provider reads.
#[derive(Debug)]
pub(crate) struct PromptNames {
    /// Output limits; the smallest applies.
    pub(crate) limits: &'static [&'static str],
    /// The field for instructions outside the conversation; empty if the family has none.
    pub(crate) instructions: &'static str,
    pub(crate) conversation: &'static str,
    /// Pointers to the schema that an answer must satisfy.
    pub(crate) schemas: &'static [&'static str],
    /// The fields of classes.
    pub(crate) classes: &'static [ClassField],
}

/// A request, understood.
#[derive(Debug, Default)]
pub struct UnderstoodPrompt {
    /// All text, measured.
    pub tape: Tape,
    /// The customer's last words.
    pub last_user: String,
    /// A tool's answer, if the conversation ends with it.
    pub result: Option<String>,
    /// Pictures of the last turn or tool result, described.
    pub pictures: Vec<String>,
    /// Tools offered.
    pub tools: Vec<OfferedTool>,
    /// Whether one must be called.
    pub choice: CallChoice,
    /// Output limit.
    pub limit: Option<u64>,
    /// The schema an answer must satisfy.
    pub schema: Option<Value>,
    /// The classes that are asked for.
    pub classes: Classes,
    /// Chat: the usage chunk is asked for.
    pub stream_usage: bool,
    messages: u64,
    opaque_tokens: u64,
}

/// A tool on offer.
#[derive(Debug)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// The schema of its arguments.
    pub schema: Value,
}

/// Whether a tool is called.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum CallChoice {
    /// As the text suggests.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Any one.
    Any,
    /// This one.
    Named(String),
}

/// All text of a prompt, as counts and hashes.
#[derive(Debug, Default)]
pub struct Tape {
    /// Characters so far.
    pub chars: u64,
    /// A hash of everything up to the end of each whole block.
    pub blocks: Vec<u64>,
    /// Characters up to the last cache mark.
    pub marked: Option<u64>,
    /// Some mark asks for one hour.
    pub one_hour: bool,
    hasher: DefaultHasher,
}

impl Tape {
    fn text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let room = usize::try_from(BLOCK_CHARS - self.chars % BLOCK_CHARS).unwrap_or(1);
            let (part, chars, behind) = match rest.char_indices().nth(room) {
                Some((at, _)) => (&rest[..at], room, &rest[at..]),
                None => (rest, rest.chars().count(), ""),
            };
            self.hasher.write(part.as_bytes());
            self.chars += u64::try_from(chars).unwrap_or(0);
            if chars == room {
                self.blocks.push(self.hasher.finish());
            }
            rest = behind;
        }
    }

    /// Separates texts that would otherwise run into each other.
    fn part(&mut self, kind: &str) {
        self.hasher.write(kind.as_bytes());
        self.hasher.write_u8(0);
    }

    fn mark(&mut self, mark: &Value) {
        if mark.is_object() {
            self.marked = Some(self.chars);
            self.one_hour |= mark.get("ttl").and_then(Value::as_str) == Some("1h");
        }
    }
}

impl UnderstoodPrompt {
    /// Reads a request of the family with these names.
    ///
    /// # Errors
    /// What is wrong with it, for the customer.
    pub(crate) fn read(body: &[u8], names: &PromptNames) -> Result<Self, String> {
        let request: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the body is not JSON: {error}"))?;
        let mut prompt = Self {
            limit: names
                .limits
                .iter()
                .filter_map(|name| request[*name].as_u64())
                .min(),
            stream_usage: request["stream_options"]["include_usage"]
                .as_bool()
                .unwrap_or(false),
            classes: class::read(names.classes, &request),
            choice: CallChoice::read(&request["tool_choice"]),
            schema: names
                .schemas
                .iter()
                .find_map(|place| request.pointer(place))
                .cloned(),
            ..Self::default()
        };
        for tool in request["tools"].as_array().into_iter().flatten() {
            prompt.tape.part("tool");
            prompt.tape.text(&tool.to_string());
            prompt.tape.mark(&tool["cache_control"]);
            prompt.tools.extend(OfferedTool::read(tool));
        }
        prompt.tape.part("instructions");
        prompt.walk(&request[names.instructions])?;
        prompt.conversation(&request[names.conversation])?;
        Ok(prompt)
    }

    /// Tokens of everything read.
    pub fn tokens(&self) -> u64 {
        self.tape.chars.div_ceil(CHARS_PER_TOKEN)
            + self.messages * MESSAGE_TOKENS
            + self.opaque_tokens
    }

    fn conversation(&mut self, items: &Value) -> Result<(), String> {
        if let Some(text) = items.as_str() {
            self.messages = 1;
            self.tape.part("user");
            self.tape.text(text);
            text.clone_into(&mut self.last_user);
            return Ok(());
        }
        let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
        // Instructions inserted after the last turn do not count as a turn.
        let aside = |item: &&Value| matches!(item["role"].as_str(), Some("system" | "developer"));
        let last = items.len() - items.iter().rev().take_while(aside).count();
        for (at, item) in items.iter().enumerate() {
            self.messages += 1;
            self.tape.part(
                item["role"]
                    .as_str()
                    .or(item["type"].as_str())
                    .unwrap_or_default(),
            );
            let result = result_of(item);
            if item["role"] == "user" || result.is_some() {
                self.pictures.clear();
            }
            if let Some(said) =
                last_text(&item["content"]).filter(|_| item["role"] == "user" && result.is_none())
            {
                said.clone_into(&mut self.last_user);
            }
            if at + 1 == last {
                self.result = result;
            }
            self.walk(item)?;
        }
        Ok(())
    }

    fn walk(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::String(text) => self.tape.text(text),
            Value::Array(values) => values.iter().try_for_each(|value| self.walk(value))?,
            Value::Object(members) => {
                match value["type"].as_str() {
                    Some("image_url" | "input_image" | "image") => self.picture(value)?,
                    Some("document" | "file" | "input_file") => self.opaque_tokens += OPAQUE_TOKENS,
                    _ => members
                        .iter()
                        .filter(|(name, _)| !UNREAD.contains(&name.as_str()))
                        .try_for_each(|(_, value)| self.walk(value))?,
                }
                self.tape.mark(&value["cache_control"]);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }

    fn picture(&mut self, block: &Value) -> Result<(), String> {
        let url = block["image_url"]["url"]
            .as_str()
            .or(block["image_url"].as_str());
        let inline = block["source"]["data"].as_str().or_else(|| {
            let (kind, data) = url?.strip_prefix("data:")?.split_once(',')?;
            kind.ends_with(";base64").then_some(data)
        });
        let Some(data) = inline else {
            self.opaque_tokens += OPAQUE_TOKENS;
            self.pictures
                .push("a picture given by its address".to_owned());
            return Ok(());
        };
        let bytes = STANDARD
            .decode(data.trim())
            .map_err(|_| "Could not process image: the data is not base64".to_owned())?;
        let unreadable = || "Could not process image: the data is not a picture".to_owned();
        let size = imagesize::blob_size(&bytes).map_err(|_| unreadable())?;
        let format = format_of(&bytes).ok_or_else(unreadable)?;
        let pixels = u64::try_from(size.width.saturating_mul(size.height)).unwrap_or(u64::MAX);
        self.opaque_tokens += pixels.div_ceil(PIXELS_PER_TOKEN).min(MOST_PICTURE_TOKENS);
        self.pictures.push(format!(
            "a {format} picture of {} x {} pixels",
            size.width, size.height
        ));
        Ok(())
    }
}

impl OfferedTool {
    fn read(tool: &Value) -> Option<Self> {
        let function = if tool["function"].is_object() {
            &tool["function"]
        } else {
            tool
        };
        let schema = function
            .get("parameters")
            .or_else(|| function.get("input_schema"));
        if schema.is_none() && tool["type"] != "function" {
            return None;
        }
        Some(Self {
            name: function["name"].as_str()?.to_owned(),
            schema: schema.cloned().unwrap_or_default(),
        })
    }
}

impl CallChoice {
    fn read(choice: &Value) -> Self {
        let word = choice.as_str().or(choice["type"].as_str());
        let name = choice["function"]["name"]
            .as_str()
            .or(choice["name"].as_str());
        match (word, name) {
            (Some("none"), _) => Self::Never,
            (Some("required" | "any"), _) => Self::Any,
            (Some("tool" | "function"), Some(name)) => Self::Named(name.to_owned()),
            _ => Self::Auto,
        }
    }
}

/// The answer of a tool in this item.
fn result_of(item: &Value) -> Option<String> {
    let is_output = item["type"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("_call_output"));
    if is_output {
        return Some(all_text(&item["output"]));
    }
    if item["role"] == "tool" {
        return Some(all_text(&item["content"]));
    }
    let blocks = item["content"].as_array()?;
    blocks
        .iter()
        .rev()
        .find(|block| block["type"] == "tool_result")
        .map(|block| all_text(&block["content"]))
}

fn all_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// The last text of a turn: clients put their own reminders before what the user typed.
fn last_text(content: &Value) -> Option<&str> {
    if let Some(text) = content.as_str() {
        // A translated turn has the reminders, before and after, and the typed text in a single text.
        let mut pieces = text.rsplit("</system-reminder>").map(|piece| {
            piece
                .split("<system-reminder>")
                .next()
                .unwrap_or(piece)
                .trim()
        });
        return Some(pieces.find(|piece| !piece.is_empty()).unwrap_or(text));
    }
    let texts = || {
        content
            .as_array()
            .into_iter()
            .flatten()
            .rev()
            .filter_map(|block| block["text"].as_str())
    };
    texts()
        .find(|text| !text.trim_start().starts_with("<system-reminder>"))
        .or_else(|| texts().next())
}

fn format_of(bytes: &[u8]) -> Option<&'static str> {
    match imagesize::image_type(bytes).ok()? {
        imagesize::ImageType::Png => Some("PNG"),
        imagesize::ImageType::Jpeg => Some("JPEG"),
        imagesize::ImageType::Gif => Some("GIF"),
        imagesize::ImageType::Webp => Some("WebP"),
        _ => None,
    }
}

//! Native messages: the dialect as a whole. Only delegates; each file of this folder has one job, and the same files with the same
//! function names are in the other two families.

pub(crate) mod budget;
pub(crate) mod decode;
pub(crate) mod decode_answer;
mod decode_tools;
pub(crate) mod encode;
pub(crate) mod encode_answer;
mod encode_turns;
mod error;
mod inspect;
mod marks;
mod patch;
mod reader;
mod synthetic;
mod writer;

use serde_json::{Value, json};

use crate::prompt::{Names, Prompt};
use crate::{
    AnswerFacts, AuthStyle, BadRequest, Case, ChatLimit, Edits, Family, Inspection, Protocol, Reader, SyntheticAnswer, Words,
    Writer,
};

/// The facts of a request whose input is only to be counted: like [`Protocol::inspect`], but no `max_tokens` is needed.
///
/// # Errors
/// As [`Protocol::inspect`].
pub fn inspect_count(body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
    inspect::inspect_count(body, seed)
}

/// Where the simulated provider finds things.
const NAMES: Names = Names {
    limits: &["max_tokens"],
    instructions: "system",
    conversation: "messages",
    schemas: &["/output_config/format/schema", "/output_format/schema"],
};

/// The header by which native clients switch on what is not yet in the dialect.
pub const FLAGS_HEADER: &str = "anthropic-beta";

/// The messages dialect.
#[derive(Debug, Clone, Copy)]
pub struct Messages;

impl Protocol for Messages {
    fn family(&self) -> Family {
        Family::Messages
    }

    fn path(&self) -> &'static str {
        "/messages"
    }

    fn count_path(&self) -> Option<&'static str> {
        Some("/messages/count_tokens")
    }

    fn public_path(&self) -> &'static str {
        "/native/v1/messages"
    }

    fn limit_field(&self, _chat: ChatLimit) -> &'static str {
        "max_tokens"
    }

    fn conversation_field(&self) -> &'static str {
        "messages"
    }

    fn credentials(&self) -> &'static [AuthStyle] {
        &[AuthStyle::Bearer, AuthStyle::ApiKey]
    }

    fn default_auth(&self) -> AuthStyle {
        AuthStyle::ApiKey
    }

    fn forwarded_headers(&self) -> &'static [&'static str] {
        &["anthropic-version", FLAGS_HEADER]
    }

    fn refuses_unknown_fields(&self) -> bool {
        false
    }

    fn inspect(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
        inspect::inspect(body, seed)
    }

    fn patch(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<u8> {
        patch::patch(body, seen, edits)
    }

    fn read_answer(&self, body: &[u8]) -> Option<AnswerFacts> {
        reader::read_answer(body)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(reader::Reader::default())
    }

    fn writer(&self) -> Box<dyn Writer> {
        Box::new(writer::Writer::default())
    }

    fn write_question(&self, model: &str, words: &str, limit: u32) -> String {
        json!({ "model": model, "messages": [{ "role": "user", "content": words }], "max_tokens": limit }).to_string()
    }

    fn first_text<'a>(&self, answer: &'a Value) -> Option<&'a str> {
        answer.pointer("/content/0/text")?.as_str()
    }

    fn read_prompt(&self, body: &[u8]) -> Result<Prompt, String> {
        Prompt::read(body, &NAMES)
    }

    fn write_answer(&self, draft: &SyntheticAnswer) -> Vec<u8> {
        synthetic::write_answer(draft)
    }

    fn write_frames(&self, draft: &SyntheticAnswer) -> Vec<Vec<u8>> {
        synthetic::write_frames(draft)
    }

    fn words(&self, case: Case) -> Words {
        error::words(case)
    }
}

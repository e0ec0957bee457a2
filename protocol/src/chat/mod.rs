//! Chat completions: the dialect as a whole. Only delegates; each file of this folder has one job, and the same files with the same
//! function names are in the other two families.

mod calls;
mod chunk;
pub(crate) mod decode;
pub(crate) mod decode_answer;
mod decode_tools;
pub(crate) mod encode;
pub(crate) mod encode_answer;
mod encode_turns;
mod error;
mod inspect;
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

/// Where the simulated provider finds things; instructions are messages.
const NAMES: Names = Names {
    limits: &["max_tokens", "max_completion_tokens"],
    instructions: "",
    conversation: "messages",
    schemas: &["/response_format/json_schema/schema"],
};

/// The chat dialect.
#[derive(Debug, Clone, Copy)]
pub struct Chat;

impl Protocol for Chat {
    fn family(&self) -> Family {
        Family::Chat
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn count_path(&self) -> Option<&'static str> {
        None
    }

    fn public_path(&self) -> &'static str {
        "/v1/chat/completions"
    }

    fn limit_field(&self, chat: ChatLimit) -> &'static str {
        match chat {
            ChatLimit::MaxCompletionTokens => "max_completion_tokens",
            ChatLimit::MaxTokens => "max_tokens",
        }
    }

    fn conversation_field(&self) -> &'static str {
        "messages"
    }

    fn credentials(&self) -> &'static [AuthStyle] {
        &[AuthStyle::Bearer]
    }

    fn default_auth(&self) -> AuthStyle {
        AuthStyle::Bearer
    }

    fn forwarded_headers(&self) -> &'static [&'static str] {
        &[]
    }

    fn refuses_unknown_fields(&self) -> bool {
        true
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
        answer.pointer("/choices/0/message/content")?.as_str()
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

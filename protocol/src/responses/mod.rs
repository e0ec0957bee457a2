//! Responses: the dialect as a whole. Only delegates; each file of this folder has one job, and the same files with the same
//! function names are in the other two families. `items` is this family's
//! own: its endings must repeat what was streamed.

mod blocks;
pub(crate) mod decode;
pub(crate) mod decode_answer;
mod decode_items;
mod decode_tools;
pub(crate) mod encode;
pub(crate) mod encode_answer;
mod encode_items;
mod encode_turns;
mod error;
mod inspect;
mod items;
mod patch;
mod reader;
mod synthetic;
mod writer;

use serde_json::{Value, json};

use crate::prompt::{Names, Prompt};
use crate::{
    AnswerFacts, AuthStyle, BadRequest, Case, ChatLimit, Edits, Family, Inspection, Protocol, Reader, Sample, SyntheticAnswer,
    Words, Writer,
};

/// Where the simulated provider finds things.
const NAMES: Names = Names {
    limits: &["max_output_tokens"],
    instructions: "instructions",
    conversation: "input",
    schemas: &["/text/format/schema"],
};

/// The responses dialect.
#[derive(Debug, Clone, Copy)]
pub struct Responses;

impl Protocol for Responses {
    fn family(&self) -> Family {
        Family::Responses
    }

    fn path(&self) -> &'static str {
        "/responses"
    }

    fn count_path(&self) -> Option<&'static str> {
        Some("/responses/input_tokens")
    }

    fn public_path(&self) -> &'static str {
        "/v1/responses"
    }

    fn limit_field(&self, _chat: ChatLimit) -> &'static str {
        "max_output_tokens"
    }

    fn conversation_field(&self) -> &'static str {
        "input"
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

    fn sample_answer(&self, body: &[u8], seed: u64) -> Sample {
        reader::sample_answer(body, seed)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(reader::Reader::default())
    }

    fn writer(&self) -> Box<dyn Writer> {
        Box::new(writer::Writer::default())
    }

    fn write_question(&self, model: &str, words: &str, limit: u32) -> String {
        json!({ "model": model, "input": words, "max_output_tokens": limit }).to_string()
    }

    fn first_text<'a>(&self, answer: &'a Value) -> Option<&'a str> {
        answer.pointer("/output/0/content/0/text")?.as_str()
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

//! Native messages: the dialect as a whole. Only delegates; each file of this folder has one job, and the same files with the same
//! function names are in the other two families.

mod error;
mod inspect;
mod patch;
mod reader;
mod synthetic;
mod writer;

use crate::{
    AnswerFacts, AuthStyle, BadRequest, Case, Edits, Family, Inspection, Protocol, Reader, SyntheticAnswer, Words, Writer,
};

/// The facts of a request whose input is only to be counted: like [`Protocol::inspect`], but no `max_tokens` is needed.
///
/// # Errors
/// As [`Protocol::inspect`].
pub fn inspect_count(body: &[u8]) -> Result<Inspection, BadRequest> {
    inspect::inspect_count(body)
}

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

    fn limit_field(&self) -> Option<&'static str> {
        Some("max_tokens")
    }

    fn default_auth(&self) -> AuthStyle {
        AuthStyle::ApiKey
    }

    fn forwarded_headers(&self) -> &'static [&'static str] {
        &["anthropic-version", "anthropic-beta"]
    }

    fn inspect(&self, body: &[u8]) -> Result<Inspection, BadRequest> {
        inspect::inspect(body)
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

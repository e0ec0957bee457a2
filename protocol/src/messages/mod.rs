//! Native messages: the dialect as a whole. Only delegates; each file of this folder has one job, and the same files with the same
//! function names are in the other two families.

mod draft;
mod ending;
mod error;
mod inspect;
mod patch;
mod usage;

use crate::{AnswerFacts, AuthStyle, BadRequest, Case, Draft, Edits, Family, Inspection, Protocol, StreamReader, Words};

/// The facts of a request whose input is only to be counted: like [`Protocol::inspect`], but no `max_tokens` is needed.
///
/// # Errors
/// As [`Protocol::inspect`].
pub fn inspect_count(body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
    inspect::inspect_count(body, seed)
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
        usage::read_answer(body)
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::new(usage::Reader::default())
    }

    fn write_answer(&self, draft: &Draft) -> Vec<u8> {
        draft::write_answer(draft)
    }

    fn write_frames(&self, draft: &Draft) -> Vec<Vec<u8>> {
        draft::write_frames(draft)
    }

    fn words(&self, case: Case) -> Words {
        error::words(case)
    }
}

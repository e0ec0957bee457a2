//! Chat completions: the dialect as a whole. Only delegates; each file of this folder has one job, and the same files with the same
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

    fn limit_field(&self) -> Option<&'static str> {
        None
    }

    fn default_auth(&self) -> AuthStyle {
        AuthStyle::Bearer
    }

    fn forwarded_headers(&self) -> &'static [&'static str] {
        &[]
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

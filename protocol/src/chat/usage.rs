//! What chat answers and frames say.

use super::ending;
use crate::{AnswerFacts, ErrorBody, Frame, FrameFacts, StreamReader, Usage, UsageWish, WireUsage};

pub(super) fn read_answer(body: &[u8]) -> Option<AnswerFacts> {
    let _ = body;
    None
}

/// Reads the frames of one streamed answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    usage: WireUsage,
}

impl StreamReader for Reader {
    fn read(&mut self, frame: &Frame) -> FrameFacts {
        let _ = frame;
        FrameFacts::default()
    }

    fn usage(&self) -> &WireUsage {
        &self.usage
    }

    fn answer_id(&self) -> Option<&str> {
        None
    }

    fn end_at_limit(&mut self, slug: &str, usage: &Usage, wish: UsageWish<'_>) -> Vec<u8> {
        ending::end_at_limit(slug, usage, wish)
    }

    fn error_event(&mut self, slug: &str, error: &ErrorBody) -> Vec<u8> {
        ending::error_event(slug, error)
    }
}

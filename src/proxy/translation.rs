//! Answers of targets of another family, on their way back.
//!
//! Usage never comes from here: the reader of the target's family counts, and the settled counts are written into the answer.

use bytes::Bytes;
use farebox_protocol::translate::{self, AnswerWish, Losses, Memo, Translator};
use farebox_protocol::{Family, ReportedUsage, UsageWish};

use crate::upstream::redact::{self, Redacted};

/// What the answer to a translated request needs.
#[derive(Debug)]
pub(super) struct Translation {
    /// The family of the target.
    pub(super) family: Family,
    /// The customer's.
    pub(super) caller: Family,
    pub(super) memo: Memo,
    pub(super) original: Bytes,
    /// The customer's name for the model.
    pub(super) model: String,
    pub(super) id: String,
    pub(super) created: i64,
}

impl Translation {
    fn wish(&self) -> AnswerWish<'_> {
        AnswerWish {
            model: &self.model,
            id: &self.id,
            created: self.created,
            request: &self.original,
        }
    }

    /// The id under which the customer sees the answer.
    pub(super) fn answer_id(&self) -> Redacted {
        redact::plain(&translate::answer_id(self.caller, &self.id))
    }

    /// A whole answer; `None` when it is broken.
    pub(super) fn read(&self, body: &[u8]) -> Option<translate::NeutralAnswer> {
        Some(translate::read_answer(self.family, body))
            .filter(|answer| !matches!(answer.end, Some(Err(_))))
    }

    /// What the customer does not get of a whole answer.
    pub(super) fn losses(&self, answer: &translate::NeutralAnswer) -> Losses {
        translate::answer_losses(self.caller, answer)
    }

    /// The whole answer as the customer gets it, with settled counts.
    pub(super) fn write(
        &self,
        answer: &translate::NeutralAnswer,
        usage: &ReportedUsage,
        asked: UsageWish<'_>,
    ) -> Bytes {
        Bytes::from(translate::write_answer(
            self.caller,
            answer,
            &self.memo,
            &self.wish(),
            usage,
            asked,
        ))
    }

    /// A translator for its streamed answer, of which the customer gets the frames, or all of it at its end.
    pub(super) fn translator(&self, frames: bool) -> Translator {
        let translator = if frames {
            Translator::new
        } else {
            Translator::folding
        };
        translator(self.family, self.caller, self.memo.clone(), &self.wish())
    }
}

//! Shared by the encoders of answers: what the caller asked for, and the frame of a text delta, rendered once per block.

use super::event::{AnswerEvent, NeutralAnswer, NeutralStop, Sink};
use super::ids::{Declared, Memo};
use super::losses::Losses;
use super::neutral::ToolKind;
use crate::{ErrorBody, Family, ReportedUsage, UsageWish};

/// What an answer needs from the request.
#[derive(Debug, Clone, Copy)]
pub struct AnswerWish<'w> {
    /// The name that the caller gave: the public slug or an alias of it.
    pub model: &'w str,
    /// The answer's id, without a family prefix.
    pub id: &'w str,
    /// Seconds since 1970.
    pub created: i64,
    /// The customer's request: responses repeats parts of it.
    pub request: &'w [u8],
}

/// Writes a streamed answer in one family.
pub(crate) trait AnswerEncoder: Send + std::fmt::Debug {
    /// The next event, unless it is an end.
    fn event(&mut self, event: AnswerEvent<'_>, out: &mut Vec<u8>);

    /// Closes the open block, which the caller's limit has cut; more follows.
    fn cut(&mut self, out: &mut Vec<u8>) {
        self.event(AnswerEvent::Close, out);
    }

    /// Closes open blocks and ends the answer with settled counts.
    fn stop(
        &mut self,
        stop: &NeutralStop,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
        out: &mut Vec<u8>,
    );

    /// The last frame of an answer that broke.
    fn fail(&mut self, error: &ErrorBody, out: &mut Vec<u8>);

    /// What the caller does not get of what was written so far, or gets in another form. A stream shows all of it.
    fn unsaid(&self) -> Losses {
        Losses::default()
    }
}

/// Collects a streamed answer for a caller who asked for a whole one.
#[derive(Debug)]
pub(crate) struct Fold {
    caller: Family,
    answer: NeutralAnswer,
    memo: Memo,
    model: String,
    id: String,
    created: i64,
    request: Vec<u8>,
}

impl Fold {
    pub(crate) fn new(caller: Family, memo: Memo, wish: &AnswerWish<'_>) -> Self {
        Self {
            caller,
            answer: NeutralAnswer::default(),
            memo,
            model: wish.model.to_owned(),
            id: wish.id.to_owned(),
            created: wish.created,
            request: wish.request.to_vec(),
        }
    }
}

impl AnswerEncoder for Fold {
    fn event(&mut self, event: AnswerEvent<'_>, _: &mut Vec<u8>) {
        self.answer.event(event);
    }

    fn stop(
        &mut self,
        stop: &NeutralStop,
        usage: &ReportedUsage,
        asked: UsageWish<'_>,
        out: &mut Vec<u8>,
    ) {
        let wish = AnswerWish {
            model: &self.model,
            id: &self.id,
            created: self.created,
            request: &self.request,
        };
        self.answer.end = Some(Ok(stop.clone()));
        let (answer, memo) = (&self.answer, &self.memo);
        out.extend(super::write_answer(
            self.caller,
            answer,
            memo,
            &wish,
            usage,
            asked,
        ));
    }

    /// A caller of a whole answer gets the error instead of it.
    fn fail(&mut self, _: &ErrorBody, _: &mut Vec<u8>) {}

    fn unsaid(&self) -> Losses {
        super::answer_losses(self.caller, &self.answer)
    }
}

/// What precedes and follows a text delta of the open block.
#[derive(Debug, Default)]
pub(crate) struct Template {
    pub(crate) before: Vec<u8>,
    pub(crate) behind: Vec<u8>,
}

impl Template {
    pub(crate) fn new(before: String, behind: &str) -> Self {
        Self {
            before: before.into_bytes(),
            behind: behind.as_bytes().to_vec(),
        }
    }

    pub(crate) fn write(&self, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.before);
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(&self.behind);
    }
}

/// A call under the name that the caller gave the tool. An undeclared name passes unchanged.
pub(crate) fn declared<'m>(
    memo: &'m Memo,
    name: &'m str,
) -> (&'m str, ToolKind, Option<&'m Declared>) {
    match memo.declared(name) {
        Some(tool) => (&tool.name, tool.kind, Some(tool)),
        // Models now and then call what was not offered; the caller's own check answers that better than a broken stream.
        None => (name, ToolKind::Function, None),
    }
}

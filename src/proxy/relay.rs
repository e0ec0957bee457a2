//! Passes an answer on to its customer, whole or as a stream, and settles it before the customer has its end.

use super::dispatch::BegunAnswer;
use super::end::End;
use super::stream::StreamRelay;
use super::whole::WholeRelay;
use crate::upstream::AnswerContent;

pub(super) enum AnswerRelay {
    /// All of it is there.
    Whole(Box<WholeRelay>),
    /// Its frames come one by one.
    Stream(Box<StreamRelay>),
}

impl AnswerRelay {
    pub(super) fn of(answer: BegunAnswer) -> Self {
        let BegunAnswer {
            admitted,
            family,
            content,
            reply,
        } = answer;
        match content {
            AnswerContent::Whole(body, facts, room) => Self::Whole(Box::new(WholeRelay::new(
                admitted,
                family,
                (body, room),
                facts,
                reply,
            ))),
            AnswerContent::Stream(first, frames) => Self::Stream(Box::new(StreamRelay::new(
                admitted,
                family,
                (first, frames),
                reply,
            ))),
        }
    }

    /// Counts the answer, and sends as much of it as may be sent before it is paid for; returns how it ended.
    pub(super) async fn relay(&mut self) -> End {
        match self {
            Self::Whole(whole) => whole.count(),
            Self::Stream(stream) => stream.pump().await,
        }
    }

    /// Settles, and only then sends the rest.
    pub(super) async fn settle(self, end: End) {
        match self {
            Self::Whole(whole) => whole.settle(end).await,
            Self::Stream(stream) => stream.settle(end).await,
        }
    }
}

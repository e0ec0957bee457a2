//! The end of a stream whose customer asked for a whole answer: its target had to be asked for a stream, so that the answer can be
//! cut before its end.

use bytes::Bytes;

use super::breakage::StreamFault;
use super::end::End;
use super::request::{ReplyTo, Settled};
use super::{Failure, Reply, ReplyBody, whole};
use crate::metering::Ending;

/// A customer who waits for the whole answer.
pub(super) struct Folded {
    reply: ReplyTo,
    headers: Vec<(&'static str, String)>,
}

impl Folded {
    pub(super) fn new(reply: ReplyTo, headers: Vec<(&'static str, String)>) -> Self {
        Self { reply, headers }
    }

    /// Sends the answer, or why there is none. A customer who has left is charged anyway: the answer was produced.
    pub(super) fn send(mut self, answer: Result<Bytes, Failure>, settled: &Settled) {
        self.headers.extend(whole::paid_headers(settled));
        let headers = self.headers;
        let _ = self.reply.send(answer.map(|body| Reply {
            headers,
            body: ReplyBody::Whole(body),
        }));
    }
}

/// Why a stream that ended like this makes no whole answer; `stopped`: a stop string ended the answer before.
pub(super) fn failure(end: &End, stopped: bool, fault: Option<&StreamFault>) -> Option<Failure> {
    match (end.ending, fault) {
        (Ending::Complete, _) => None,
        (Ending::Cut, _) if !end.is_charged_error() => None,
        (Ending::Cut | Ending::Broken, _) if stopped => None,
        (_, Some(StreamFault::Customers(told))) => {
            Some(Failure::Upstream(400, told.as_ref().clone()))
        }
        (_, Some(StreamFault::Overloaded) | None) => Some(Failure::NoTarget(None)),
    }
}

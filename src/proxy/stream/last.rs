//! The last frames of a stream: what the customer still gets once the request is settled, and with which counts.
//!
//! A stream that ended cleanly gets the frames that were kept back; one that was cut ends as at a length limit; one that broke
//! ends with the family's error event.

use bytes::Bytes;
use farebox_protocol::{AnswerReader, Family, UsageWish};

use super::super::breakage::{StreamFault, short, why_it_broke};
use super::super::end::End;
use super::super::outlet::{Outlet, SettledCounts};
use super::super::phase::Phase;
use super::super::record;
use super::super::request::{Admitted, Settled};
use crate::metering::{Ending, reported};

/// All that makes the last frames: settling a request consumes the rest of it.
pub(super) struct LastFrames {
    family: Family,
    request_id: String,
    shows_cost: bool,
    asks_usage: bool,
    reader: Box<dyn AnswerReader>,
    outlet: Box<dyn Outlet>,
    phase: Phase,
    fault: Option<StreamFault>,
    /// Why the answer ends, for lack of money.
    words: Option<String>,
    /// An error says so.
    with_error: bool,
}

impl LastFrames {
    pub(super) fn of(
        admitted: &Admitted,
        reader: Box<dyn AnswerReader>,
        outlet: Box<dyn Outlet>,
        phase: Phase,
        fault: Option<StreamFault>,
        words: Option<String>,
    ) -> Self {
        Self {
            family: admitted.request.family,
            request_id: record::request_id(admitted.request.id),
            shows_cost: admitted.count.seen.shows_cost(admitted.request.family),
            asks_usage: admitted.count.seen.asks_usage,
            reader,
            outlet,
            phase,
            fault,
            words,
            with_error: admitted.request.ends_with_error,
        }
    }

    /// The whole answer, for a customer who waits for one: the translator gathers it, so it is the last of its frames.
    pub(super) fn whole(self, end: &End, settled: &Settled) -> Bytes {
        self.frames(end, settled).pop().unwrap_or_default()
    }

    /// What is sent to the customer after the settlement.
    pub(super) fn frames(mut self, end: &End, settled: &Settled) -> Vec<Bytes> {
        let (usage, charge) = (reported(settled.usage), settled.charge());
        let printed = charge.to_string();
        let counts = SettledCounts {
            usage: &usage,
            charge: self.shows_cost.then_some(charge),
            wish: UsageWish {
                chunk: self.asks_usage,
                cost: self.shows_cost.then_some(printed.as_str()),
            },
            ours: settled.ours,
            id: self.reader.answer_id(),
        };
        let (outlet, phase) = (&mut self.outlet, self.phase);
        let words = self.words.as_deref();
        match end.ending {
            // The target's own end is replaced, so that the words precede an end.
            Ending::Complete if let Some(words) = words => match self.with_error {
                true => outlet.fail(phase, &counts, &short(self.family, words, self.request_id)),
                false => outlet.cut(phase, Some(words), &counts),
            },
            Ending::Complete => outlet.finish(phase, &counts),
            Ending::Cut | Ending::Broken if outlet.has_stopped() => outlet.finish(phase, &counts),
            Ending::Cut if !end.is_charged_error() => outlet.cut(phase, words, &counts),
            Ending::Cut | Ending::Broken | Ending::Lost | Ending::Nothing => {
                let why = why_it_broke(self.family, end, self.fault.as_ref(), self.request_id);
                outlet.fail(phase, &counts, &why)
            }
        }
    }
}

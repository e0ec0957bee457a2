//! The last frames of a stream: what the customer still gets once the request is settled, and with which counts.
//!
//! A stream that ended cleanly gets the frames that were kept back; one that was cut ends as at a length limit; one that broke
//! ends with the family's error event.

use bytes::Bytes;
use farebox_protocol::{Family, Marks, PublicAnswer, Reader, Usage, UsageWish, Writer};

use super::super::admitted::{Admitted, Outcome, Settled};
use super::super::broken::why_it_broke;
use super::super::end::End;
use super::super::phase::Phase;
use super::super::translation::Streamed;
use super::super::{Failure, folded, record, rewrite, whole};
use crate::metering::Ending;
use crate::upstream::redact::{self, CustomerError};

/// What of a request its last frames need: settling it consumes the rest.
pub(super) struct Wanted {
    family: Family,
    slug: String,
    request_id: String,
    cost: bool,
    usage: bool,
}

impl Wanted {
    pub(super) fn by(admitted: &Admitted) -> Self {
        Self {
            family: admitted.request.family,
            slug: admitted.model.slug.clone(),
            request_id: record::request_id(admitted.request.id),
            cost: admitted.seen.asks_cost,
            usage: admitted.seen.asks_usage,
        }
    }
}

/// All that makes the last frames.
pub(super) struct LastFrames {
    pub(super) wanted: Wanted,
    /// The public slug as JSON.
    pub(super) name: String,
    pub(super) reader: Box<dyn Reader>,
    pub(super) writer: Box<dyn Writer>,
    pub(super) translated: Option<Box<Streamed>>,
    pub(super) phase: Phase,
    pub(super) told: Option<Box<CustomerError>>,
    /// Why a stream ends for lack of money.
    pub(super) words: Option<String>,
    /// What the translator had not yet passed on.
    pub(super) rest: Option<Bytes>,
}

impl LastFrames {
    /// Ends the translation, which may find that the answer broke, and notes what became of the answer.
    pub(super) fn complete(&mut self, outcome: &mut Outcome, end: &mut End) {
        let Some(translated) = &mut self.translated else {
            let id = self.reader.answer_id();
            outcome.answer_id = id.map(|id| redact::answer_id(id, &outcome.secrets));
            return;
        };
        outcome.answer_id = Some(translated.answer_id.clone());
        if end.ending == Ending::Complete {
            self.rest = translated.end();
            if translated.is_broken() {
                *end = End::BROKEN;
            }
        }
        outcome.lost.merge(&translated.losses());
    }

    /// Why there is no whole answer, for a customer who waits for one.
    pub(super) fn failure(&self, end: &End) -> Option<Failure> {
        let stopped = (self.translated.as_ref()).is_some_and(|translated| translated.has_stopped());
        folded::failure(end, stopped, self.told.as_deref())
    }

    /// The whole answer. Only a translated answer is gathered from a stream.
    pub(super) fn whole(mut self, end: &End, settled: &Settled) -> Bytes {
        let (counted, charge) = (whole::wire(settled.usage), settled.charge().to_string());
        let wish = wish(&self.wanted, &charge);
        (self.translated.as_mut())
            .and_then(|translated| clean_end(translated, end, None, &counted, wish))
            .unwrap_or_default()
    }

    /// What is sent to the customer after the settlement.
    pub(super) fn frames(mut self, end: &End, settled: &Settled) -> Vec<Bytes> {
        let (counted, charge) = (whole::wire(settled.usage), settled.charge());
        let printed = charge.to_string();
        let wish = wish(&self.wanted, &printed);
        let (family, id) = (self.wanted.family, self.wanted.request_id.clone());
        let why = || why_it_broke(family, end, self.told.as_deref(), id);
        if let Some(translated) = &mut self.translated {
            let words = self.words.as_deref();
            let last = clean_end(translated, end, words, &counted, wish)
                .unwrap_or_else(|| translated.fail(&why()));
            let kept = self.phase.kept().into_iter().map(|(bytes, _)| bytes);
            return kept.chain(self.rest).chain([last]).collect();
        }
        let cost = self.wanted.cost.then_some(charge);
        let shown =
            |(bytes, marks): (Bytes, Marks)| rewrite::rewrite(&bytes, &marks, &self.name, cost);
        let answer = PublicAnswer {
            slug: &self.wanted.slug,
            id: self.reader.answer_id(),
        };
        let words = self.words.as_deref();
        match (end.ending, self.phase) {
            // The provider's own end is replaced, so that the words precede it.
            (Ending::Complete, _) if words.is_some() => {
                let end = self.writer.end_at_limit(answer, words, &counted, wish);
                vec![Bytes::from(end)]
            }
            (Ending::Complete, Phase::Ended(kept)) => kept.frames.into_iter().map(shown).collect(),
            (Ending::Complete, phase) => {
                let kept = phase.kept().into_iter().map(shown);
                kept.chain([Bytes::from(self.writer.missing_end())])
                    .collect()
            }
            (Ending::Cut, _) if !end.is_error() => {
                let end = self.writer.end_at_limit(answer, words, &counted, wish);
                vec![Bytes::from(end)]
            }
            (Ending::Cut | Ending::Broken | Ending::Lost | Ending::Nothing, _) => {
                vec![Bytes::from(self.writer.error_event(answer, &why()))]
            }
        }
    }
}

/// What the customer wants to read of the counts; `charge` as it is printed.
fn wish<'a>(wanted: &Wanted, charge: &'a str) -> UsageWish<'a> {
    UsageWish {
        chunk: wanted.usage,
        cost: wanted.cost.then_some(charge),
    }
}

/// The end of a translated answer, unless it broke.
fn clean_end(
    translated: &mut Streamed,
    end: &End,
    words: Option<&str>,
    counted: &Usage,
    wish: UsageWish<'_>,
) -> Option<Bytes> {
    match end.ending {
        Ending::Lost | Ending::Nothing => None,
        Ending::Complete if words.is_none() => Some(translated.finish(counted, wish)),
        Ending::Complete => Some(translated.cut(words, counted, wish)),
        _ if translated.has_stopped() => Some(translated.finish(counted, wish)),
        Ending::Cut if !end.is_error() => Some(translated.cut(words, counted, wish)),
        Ending::Cut | Ending::Broken => None,
    }
}

//! How the frames of a target become the customer's: passed on in the same family, or translated into the customer's.
//!
//! The relay reads, counts and settles without knowing which of the two it has.

use std::sync::Arc;

use bytes::Bytes;
use farebox_ledger::Amount;
use farebox_protocol::translate::Translator;
use farebox_protocol::{
    EndWriter, ErrorBody, Family, Frame, FrameFacts, FrameMarks, PublicAnswer, ReportedUsage,
    UsageWish, json,
};

use super::end::End;
use super::phase::Phase;
use super::request::{Admitted, AnswerOutcome};
use super::rewrite;
use super::translation::Translation;
use crate::config::Model;
use crate::metering::Ending;
use crate::upstream::redact;

/// Sent where a family has no frame of its own that says nothing.
const COMMENT: &[u8] = b": keepalive\n\n";

/// The frames so far form no valid answer.
pub(super) struct BrokenAnswer;

/// The counts of a settled answer, as its last frames print them.
pub(super) struct SettledCounts<'a> {
    pub(super) usage: &'a ReportedUsage,
    /// What is charged, unless the customer wants no `usage.cost`.
    pub(super) charge: Option<Amount>,
    /// What of it the customer reads.
    pub(super) wish: UsageWish<'a>,
    /// They are not the target's, which counted nothing or what cannot be.
    pub(super) ours: bool,
    /// The target's id of the answer.
    pub(super) id: Option<&'a str>,
}

/// Where the frames of a target go. Frames from the final usage on are kept in the stream's phase. `finish` sends them;
/// `cut` and `fail` send them only if they are translated, because a translator holds its end back, and a target's own would contradict
/// ours.
pub(super) trait Outlet: Send {
    /// What the customer gets of a frame now, if anything.
    fn frame(
        &mut self,
        frame: Frame,
        facts: FrameFacts,
        phase: &mut Phase,
    ) -> Result<Option<Bytes>, BrokenAnswer>;

    /// What follows an answer that is complete, or that a stop string has ended for the customer.
    fn finish(&mut self, phase: Phase, counts: &SettledCounts<'_>) -> Vec<Bytes>;

    /// What ends an answer as at a length limit, after these words of ours.
    fn cut(&mut self, phase: Phase, words: Option<&str>, counts: &SettledCounts<'_>) -> Vec<Bytes>;

    /// What ends an answer with an error.
    fn fail(&mut self, phase: Phase, counts: &SettledCounts<'_>, why: &ErrorBody) -> Vec<Bytes>;

    /// No frame follows: notes what became of the answer, and what the end turns out to be. `id` is the target's own.
    fn close(&mut self, outcome: &mut AnswerOutcome, end: &mut End, id: Option<&str>);

    /// What the customer gets while the upstream is silent.
    fn ping(&mut self) -> Bytes {
        Bytes::from_static(COMMENT)
    }

    /// The customer's family, where the target words its errors in another.
    fn foreign_to(&self) -> Option<Family> {
        None
    }

    /// Whether a stop string has ended the answer that the customer gets, while its target goes on.
    fn has_stopped(&self) -> bool {
        false
    }
}

/// The outlet for this answer; takes the translation out of `admitted`.
pub(super) fn of(admitted: &mut Admitted) -> Box<dyn Outlet> {
    let seen = &admitted.count.seen;
    match admitted.translation.take() {
        Some(translation) => Box::new(TranslatedOutlet {
            translator: translation.translator(seen.stream),
            rest: None,
            translation,
        }),
        None => Box::new(SameFamilyOutlet {
            model: Arc::clone(&admitted.model),
            asked: seen.model.as_str().into(),
            name: json::quoted(&seen.model).into_boxed_str(),
            writer: admitted.request.family.protocol().writer(),
            shows_usage: seen.asks_usage,
        }),
    }
}

/// Passes on bytes of the customer's own family, with the customer's name for the model in them.
struct SameFamilyOutlet {
    model: Arc<Model>,
    /// The slug or alias that was asked for; without the room that a `String` would keep for as long as the stream is open.
    asked: Box<str>,
    /// The same as JSON.
    name: Box<str>,
    /// Knows what was sent, so that it can end it.
    writer: Box<dyn EndWriter>,
    /// Frames that hold nothing but usage are for customers who asked for it; the target is asked for them in any case.
    shows_usage: bool,
}

impl SameFamilyOutlet {
    /// The bytes to send now; keeps them back if the settlement comes first.
    fn pass_on(&self, frame: (Bytes, FrameMarks), ends: bool, phase: &mut Phase) -> Option<Bytes> {
        let (bytes, marks) = phase.keep(Some(frame), ends)?;
        Some(rewrite::rewrite(&bytes, &marks, &self.name, None))
    }
}

/// How a customer knows the answer.
fn public<'a>(model: &'a str, counts: &SettledCounts<'a>) -> PublicAnswer<'a> {
    PublicAnswer {
        model,
        id: counts.id,
    }
}

impl Outlet for SameFamilyOutlet {
    fn frame(
        &mut self,
        frame: Frame,
        facts: FrameFacts,
        phase: &mut Phase,
    ) -> Result<Option<Bytes>, BrokenAnswer> {
        let has_content = !facts.unreadable && frame.has_data();
        // A count before the end is not the answer's: clients get one, at its end.
        if !has_content || facts.usage_only && (!self.shows_usage || phase.is_passing()) {
            return Ok(None);
        }
        // A frame of a kind that nobody knows may hold anything, so the provider's own names are taken out of all of it.
        if facts.unfamiliar {
            let bytes = rewrite::rewrite(frame.raw(), &facts.marks, &self.name, None);
            let bytes = redact::event(&bytes, &self.model.route);
            return Ok(self.pass_on((bytes, FrameMarks::default()), false, phase));
        }
        // Frames that are kept back are sent as they are, or not at all: the writer need not know them.
        if phase.is_passing() {
            self.writer.observe(&frame, &facts);
        }
        let shown = self.pass_on((frame.into_raw(), facts.marks), facts.end, phase);
        if facts.usage {
            return Ok(shown.map(|bytes| self.writer.without_count(bytes)));
        }
        Ok(shown)
    }

    fn finish(&mut self, phase: Phase, counts: &SettledCounts<'_>) -> Vec<Bytes> {
        // The target's own marker may not have come, and clients wait for one.
        let end = match phase {
            Phase::Ended(_) => None,
            Phase::Passing | Phase::Keeping(..) => Some(Bytes::from(self.writer.missing_end())),
        };
        let kept = phase.kept();
        let said = kept.iter().filter(|(_, marks)| marks.usage_end.is_some());
        let counted_once = !counts.ours && said.count() == 1;
        let (name, cost) = (&self.name, counts.charge.filter(|_| counted_once));
        let shown = kept
            .iter()
            .map(|(bytes, marks)| rewrite::rewrite(bytes, marks, name, cost));
        let mut last: Vec<Bytes> = shown.collect();
        if !counted_once {
            let answer = public(&self.asked, counts);
            last = (self.writer).with_counts(last, answer, counts.usage, counts.wish);
        }
        last.extend(end);
        last
    }

    fn cut(&mut self, _: Phase, words: Option<&str>, counts: &SettledCounts<'_>) -> Vec<Bytes> {
        // What was kept back is the target's own end, which would contradict this one.
        let answer = public(&self.asked, counts);
        let end = (self.writer).end_at_limit(answer, words, counts.usage, counts.wish);
        vec![Bytes::from(end)]
    }

    fn fail(&mut self, _: Phase, counts: &SettledCounts<'_>, why: &ErrorBody) -> Vec<Bytes> {
        let answer = public(&self.asked, counts);
        vec![Bytes::from(self.writer.error_event(answer, why))]
    }

    fn close(&mut self, outcome: &mut AnswerOutcome, _: &mut End, id: Option<&str>) {
        outcome.answer_id = id.map(|id| redact::answer_id(id, &outcome.secrets));
    }
}

/// Writes frames of the customer's family for those of another one.
struct TranslatedOutlet {
    translation: Box<Translation>,
    translator: Translator,
    /// What the translator had not yet passed on when the target ended.
    rest: Option<Bytes>,
}

impl TranslatedOutlet {
    /// Whether the frames so far form no valid answer, whatever their end says.
    fn is_broken(&self) -> bool {
        matches!(self.translator.ended(), Some(Err(_)))
    }

    /// What was kept back, what the translator still had, and the end.
    fn last(&mut self, phase: Phase, end: Bytes) -> Vec<Bytes> {
        let kept = phase.kept().into_iter().map(|(bytes, _)| bytes);
        kept.chain(self.rest.take()).chain([end]).collect()
    }
}

impl Outlet for TranslatedOutlet {
    fn frame(
        &mut self,
        frame: Frame,
        facts: FrameFacts,
        phase: &mut Phase,
    ) -> Result<Option<Bytes>, BrokenAnswer> {
        // One frame may become none or several: an opening, say, waits until it is known what it opens.
        let shown = some(self.translator.frame(&frame));
        if self.is_broken() {
            return Err(BrokenAnswer);
        }
        let shown = shown.map(|bytes| (bytes, FrameMarks::default()));
        Ok(phase.keep(shown, facts.end).map(|(bytes, _)| bytes))
    }

    fn finish(&mut self, phase: Phase, counts: &SettledCounts<'_>) -> Vec<Bytes> {
        let end = Bytes::from(self.translator.finish(counts.usage, counts.wish));
        self.last(phase, end)
    }

    fn cut(&mut self, phase: Phase, words: Option<&str>, counts: &SettledCounts<'_>) -> Vec<Bytes> {
        let end = Bytes::from(self.translator.cut(words, counts.usage, counts.wish));
        self.last(phase, end)
    }

    fn fail(&mut self, phase: Phase, _: &SettledCounts<'_>, why: &ErrorBody) -> Vec<Bytes> {
        let end = Bytes::from(self.translator.fail(why));
        self.last(phase, end)
    }

    fn close(&mut self, outcome: &mut AnswerOutcome, end: &mut End, _: Option<&str>) {
        outcome.answer_id = Some(self.translation.answer_id());
        // A stream that was cut has no end of its own that could be judged.
        if end.ending == Ending::Complete {
            self.rest = some(self.translator.end());
            if self.is_broken() {
                *end = End::BROKEN;
            }
        }
        outcome.lost.merge(&self.translator.losses());
    }

    fn ping(&mut self) -> Bytes {
        Bytes::copy_from_slice(self.translator.ping())
    }

    fn foreign_to(&self) -> Option<Family> {
        Some(self.translation.caller)
    }

    fn has_stopped(&self) -> bool {
        self.translator.has_stopped()
    }
}

fn some(bytes: &[u8]) -> Option<Bytes> {
    (!bytes.is_empty()).then(|| Bytes::copy_from_slice(bytes))
}

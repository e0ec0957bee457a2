//! A running request's text, as a tokenizer counts it: the prompt and the answer where a provider's count is missing, and both for
//! comparing the two.

use std::sync::Arc;

use farebox_ledger::Fact;
use farebox_protocol::{Content, TextSample};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{AnswerEnd, RunningCount};
use crate::billing::calibration::InputRead;
use crate::billing::holder;
use crate::clock;
use crate::metering::{Counted, Local, TextCounter, local};

/// Smaller prompts say little about a tokenizer: message framing and what a provider adds to them dominate their count.
const SMALLEST_COMPARED: u64 = 3_000;
/// Shorter streams say little about a pace: the first word takes its time.
const SMALLEST_MADE: u64 = 300;

/// Whether a prompt says something about a tokenizer: text, of which tools, which providers rewrite, are less than a tenth.
fn is_text(content: &Content) -> bool {
    let few_tools = content.tool_bytes.saturating_mul(10) < content.text.bytes();
    content.pictures.is_empty() && content.documents.is_empty() && few_tools
}

impl RunningCount {
    /// Starts counting the request for its checkpoints, in the background.
    pub(crate) fn count_input(&self) {
        let (content, limits, counter) =
            (self.seen.content.clone(), self.model.limits, self.counter());
        let (count, factor) = (Arc::clone(&self.input_count), self.learned.ratio);
        let (turns, holder) = (Arc::clone(&self.turns), holder(self.customer));
        self.tasks.spawn(async move {
            let counting = turns.run(holder, move || {
                let tokens = local::input(&content, &limits, counter);
                let compares = is_text(&content) && tokens < limits.context;
                InputRead {
                    charged: local::charged(tokens, factor),
                    text: compares.then_some(tokens),
                }
            });
            if let Some(read) = counting.await {
                let _ = count.set(read);
            }
        });
    }

    /// Has a tokenizer count the text delivered so far, for the hold, without waiting for it.
    pub(crate) fn weigh_output(&self, sample: TextSample) -> JoinHandle<Option<u64>> {
        let (counter, factor) = (self.counter(), self.learned.ratio);
        let (turns, holder) = (Arc::clone(&self.turns), holder(self.customer));
        self.tasks.spawn(async move {
            let counting = turns.run(holder, move || {
                local::charged(local::output(&sample, counter), factor)
            });
            counting.await.map(local::unrounded)
        })
    }

    /// Counts text as the answering target's model does.
    fn counter(&self) -> TextCounter {
        let target = &self.target;
        let model = target.split_once('/').map_or("", |(_, model)| model);
        TextCounter::of(model)
    }

    /// A tokenizer's counts, corrected by the target's calibration.
    pub(super) async fn count_locally(&mut self) -> Option<Local> {
        let (limits, counter, known) = (
            self.model.limits,
            self.counter(),
            self.input_count.get().map(|read| read.charged),
        );
        let (content, shown) = (
            std::mem::take(&mut self.seen.content),
            std::mem::take(&mut self.shown),
        );
        let factor = self.learned.ratio;
        let turns = Arc::clone(&self.turns);
        let counting = turns.run(holder(self.customer), move || Local {
            input: known.unwrap_or_else(|| {
                local::charged(local::input(&content, &limits, counter), factor)
            }),
            output: local::charged(local::output(&shown.sample(clock::seed()), counter), factor),
        });
        counting.await
    }

    /// Notes what the target counted for a finished request.
    pub(super) fn learn(&mut self, counted: &Counted, end: &AnswerEnd) {
        self.note_facts(counted, end);
        self.note_pace(counted, end);
        let (calibrations, target) = (self.calibrations.clone(), self.target.clone());
        let (classes, theirs) = (self.seen.classes, counted.usage.prompt());
        let read = self.input_count.get().copied();
        let only_text =
            read.map_or_else(|| is_text(&self.seen.content), |read| read.text.is_some());
        if !only_text
            || theirs < SMALLEST_COMPARED
            || !calibrations.opens(&target, self.customer, Instant::now())
        {
            return;
        }
        let (content, limits, counter) = (
            std::mem::take(&mut self.seen.content),
            self.model.limits,
            self.counter(),
        );
        let note = move |ours| calibrations.note_prompt(&target, classes, theirs, ours);
        // A checkpoint of a long stream has counted the prompt already; a short answer's is counted now, with nobody waiting for it.
        match read.and_then(|read| read.text) {
            Some(ours) => note(ours),
            None => {
                let turns = Arc::clone(&self.turns);
                let counting = turns.run(holder(self.customer), move || {
                    note(local::known(&content, &limits, counter))
                });
                drop(self.tasks.spawn(counting));
            }
        }
    }

    /// Notes what the target was seen to do.
    fn note_facts(&self, counted: &Counted, end: &AnswerEnd) {
        let (usage, marked) = (&counted.usage, self.seen.cache_marked);
        let output = usage.all_output();
        let within = end.ended_at.is_some_and(|limit| output <= limit);
        for (seen, fact) in [
            (self.meter.hid(usage), Fact::Hides),
            (!marked && usage.cache_read > 0, Fact::Caches),
            (!marked && usage.cache_written() > 0, Fact::WritesUnmarked),
            (usage.reasoning > 0 && within, Fact::LimitBinds),
        ] {
            if seen {
                let classes = self.seen.classes;
                self.calibrations.note_fact(&self.target, classes, fact);
            }
        }
        if let Some(excess) = self.meter.excess(usage) {
            self.calibrations
                .note_excess(&self.target, self.customer, excess, clock::now());
        }
    }

    /// Notes how fast the target made a stream.
    fn note_pace(&self, counted: &Counted, end: &AnswerEnd) {
        let usage = &counted.usage;
        let output = usage.all_output();
        let made = output.saturating_sub(self.meter.predicted());
        if self.seen.choices != 1 || made < SMALLEST_MADE || end.answered.is_zero() {
            return;
        }
        let classes = self.seen.classes;
        self.calibrations
            .note_stream(&self.target, classes, made, end.answered);
    }
}

//! A running request's text, as a tokenizer counts it: the prompt and the answer where a provider's count is missing, and both for
//! comparing the two.

use std::sync::Arc;

use farebox_protocol::{Content, TextSample};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::RunningCount;
use crate::billing::calibration::InputRead;
use crate::billing::holder;
use crate::clock;
use crate::metering::{Counted, Local, TextCounter, local};

/// Smaller prompts say little about a tokenizer: message framing and what a provider adds to them dominate their count.
const SMALLEST_VOTE: u64 = 3_000;
/// Smaller answers do not show whether a model would have reasoned.
const SMALLEST_ANSWER: u64 = 300;

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
        let (count, factor) = (
            Arc::clone(&self.input_count),
            self.calibrations.factor(&self.target),
        );
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
        let (counter, factor) = (self.counter(), self.calibrations.factor(&self.target));
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
        let factor = self.calibrations.factor(&self.target);
        let turns = Arc::clone(&self.turns);
        let counting = turns.run(holder(self.customer), move || Local {
            input: known.unwrap_or_else(|| {
                local::charged(local::input(&content, &limits, counter), factor)
            }),
            output: local::charged(local::output(&shown.sample(clock::seed()), counter), factor),
        });
        counting.await
    }

    /// Updates the calibration with what the target counted for a finished request.
    pub(super) fn learn(&mut self, counted: &Counted) {
        let (calibrations, target) = (self.calibrations.clone(), self.target.clone());
        let voter = self.customer.to_i64().unsigned_abs();
        // Whoever turned reasoning off says nothing about how fast it is.
        if let Some(pace) = self
            .meter
            .observed_pace(&counted.usage)
            .filter(|_| !self.seen.reasoning_off)
        {
            calibrations.observe_pace(&target, voter, clock::now(), pace);
        }
        if self.seen.reasoning_off {
            let (output, reasoning) = (counted.usage.output, counted.usage.reasoning);
            let reasoned = reasoning > 0 || !self.meter.shows_all(output);
            // A trivial answer needs no reasoning, so it does not show that the target complies.
            if reasoned || output >= SMALLEST_ANSWER {
                calibrations.reasoned(&target, self.customer, clock::now(), reasoned);
            }
        }
        let (theirs, read) = (counted.usage.prompt(), self.input_count.get().copied());
        let only_text =
            read.map_or_else(|| is_text(&self.seen.content), |read| read.text.is_some());
        if !only_text
            || theirs < SMALLEST_VOTE
            || !calibrations.opens(&target, voter, Instant::now())
        {
            return;
        }
        let (content, limits, counter) = (
            std::mem::take(&mut self.seen.content),
            self.model.limits,
            self.counter(),
        );
        let vote = move |ours| {
            calibrations.observe_count(&target, voter, clock::now(), (theirs, ours));
        };
        // A checkpoint of a long stream has counted the prompt already; a short answer's is counted now, with nobody waiting for it.
        match read.and_then(|read| read.text) {
            Some(ours) => vote(ours),
            None => {
                let turns = Arc::clone(&self.turns);
                let counting = turns.run(holder(self.customer), move || {
                    vote(local::known(&content, &limits, counter))
                });
                drop(self.tasks.spawn(counting));
            }
        }
    }
}

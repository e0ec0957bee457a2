//! Decides what is charged at the end of a request: the provider's count, or ours if that is missing or impossible.
//!
//! Tokenizers run aside, customer by customer. Only counts; must not change money.

use std::sync::Arc;

use farebox_protocol::{Content, Sample};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::admitted::Admitted;
use super::calibration::InputRead;
use super::holder;
use crate::clock;
use crate::metering::{Counted, Counter, Ending, Local, local};

/// Smaller prompts say little about a tokenizer: message framing and what a provider adds to them dominate their count.
const SMALLEST_VOTE: u64 = 3_000;
/// Smaller answers do not show whether a model would have reasoned.
const SMALLEST_ANSWER: u64 = 300;

/// Whether a prompt says something about a tokenizer: text, of which tools, which providers rewrite, are less than a tenth.
fn is_text(content: &Content) -> bool {
    let few_tools = content.tool_bytes.saturating_mul(10) < content.text.bytes();
    content.pictures.is_empty() && content.documents.is_empty() && few_tools
}

impl Admitted {
    /// The counts to charge for a request that ends this way.
    pub(super) async fn counted(&mut self, ending: Ending) -> Counted {
        // Failed tries that may be billed need a count too, unless the answer's own usage gives the size of the request.
        let local = if self.meter.needs_local(ending)
            || (ending == Ending::Nothing && self.has_billable_failures())
        {
            self.count_locally().await
        } else {
            None
        };
        self.local = local;
        self.hashed().await;
        self.recall();
        let took = self
            .request
            .arrived
            .elapsed()
            .saturating_sub(self.outcome.prepared);
        let counted = self.meter.finish(ending, local, took);
        // Counts of several steps say nothing about one prompt or its answer.
        let one_step = self.meter.steps(&counted.usage).1.is_empty();
        if ending == Ending::Complete
            && counted.evidence == Some(farebox_ledger::Evidence::Provider)
            && one_step
        {
            self.remember(&counted);
            self.learn(&counted);
        }
        counted
    }

    /// Starts counting the request for its checkpoints, in the background.
    pub(super) fn count_input(&self) {
        let (content, limits, counter) =
            (self.seen.content.clone(), self.model.limits, self.counter());
        let (count, factor) = (
            Arc::clone(&self.input_count),
            self.proxy.calibrations.factor(&self.outcome.target),
        );
        let (turns, holder) = (Arc::clone(&self.proxy.turns), holder(self.request.key));
        self.proxy.tasks.spawn(async move {
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
    pub(super) fn weigh_output(&self, sample: Sample) -> JoinHandle<Option<u64>> {
        let (counter, factor) = (
            self.counter(),
            self.proxy.calibrations.factor(&self.outcome.target),
        );
        let (turns, holder) = (Arc::clone(&self.proxy.turns), holder(self.request.key));
        self.proxy.tasks.spawn(async move {
            let counting = turns.run(holder, move || {
                local::charged(local::output(&sample, counter), factor)
            });
            counting.await.map(local::unrounded)
        })
    }

    /// Counts text as the answering target's model does.
    fn counter(&self) -> Counter {
        let target = &self.outcome.target;
        let model = target.split_once('/').map_or("", |(_, model)| model);
        Counter::of(model)
    }

    /// A tokenizer's counts, corrected by the target's calibration.
    async fn count_locally(&mut self) -> Option<Local> {
        let (limits, counter, known) = (
            self.model.limits,
            self.counter(),
            self.input_count.get().map(|read| read.charged),
        );
        let (content, shown) = (
            std::mem::take(&mut self.seen.content),
            std::mem::take(&mut self.shown),
        );
        let factor = self.proxy.calibrations.factor(&self.outcome.target);
        let turns = Arc::clone(&self.proxy.turns);
        let counting = turns.run(holder(self.request.key), move || Local {
            input: known.unwrap_or_else(|| {
                local::charged(local::input(&content, &limits, counter), factor)
            }),
            output: local::charged(local::output(&shown.sample(clock::seed()), counter), factor),
        });
        counting.await
    }

    /// Updates the calibration with what the target counted for a finished request.
    fn learn(&mut self, counted: &Counted) {
        let (proxy, target) = (Arc::clone(&self.proxy), self.outcome.target.clone());
        let voter = self.request.key.to_i64().unsigned_abs();
        // Whoever turned reasoning off says nothing about how fast it is.
        if let Some(pace) = self
            .meter
            .observed_pace(&counted.usage)
            .filter(|_| !self.seen.reasoning_off)
        {
            proxy
                .calibrations
                .observe_pace(&target, voter, clock::now(), pace);
        }
        if self.seen.reasoning_off {
            let (output, reasoning) = (counted.usage.output, counted.usage.reasoning);
            let reasoned = reasoning > 0 || !self.meter.shows_all(output);
            // A trivial answer needs no reasoning, so it does not show that the target complies.
            if reasoned || output >= SMALLEST_ANSWER {
                proxy
                    .calibrations
                    .reasoned(&target, self.request.key, clock::now(), reasoned);
            }
        }
        let (theirs, read) = (counted.usage.prompt(), self.input_count.get().copied());
        let only_text =
            read.map_or_else(|| is_text(&self.seen.content), |read| read.text.is_some());
        if !only_text
            || theirs < SMALLEST_VOTE
            || !proxy.calibrations.opens(&target, voter, Instant::now())
        {
            return;
        }
        let (content, limits, counter) = (
            std::mem::take(&mut self.seen.content),
            self.model.limits,
            self.counter(),
        );
        let vote = move |ours| {
            let calibrations = &proxy.calibrations;
            calibrations.observe_count(&target, voter, clock::now(), (theirs, ours));
        };
        match read.and_then(|read| read.text) {
            Some(ours) => vote(ours),
            None => {
                let turns = Arc::clone(&self.proxy.turns);
                let counting = turns.run(holder(self.request.key), move || {
                    vote(local::known(&content, &limits, counter))
                });
                drop(self.proxy.tasks.spawn(counting));
            }
        }
    }
}

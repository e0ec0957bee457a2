//! The counts of one running request, and what is charged at its end: the provider's count, or ours if that is missing or impossible.
//!
//! Tokenizers run aside, customer by customer. Only counts; must not change money.

pub(crate) mod prompt;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{CustomerId, Evidence};
use farebox_protocol::{Content, Inspection};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::calibration::{AnswerSample, Calibrations, InputCount, Learned, PromptRead};
use crate::config::{Capability, Model, Target};
use crate::metering::prefixes::PromptCache;
use crate::metering::{Counted, Ending, Local, Meter};
use crate::turns::Turns;

/// From so many tokens on, a target's pace is its own.
// By then what a pace begins with (10,000 tokens) weighs less than a tenth in it. Before, leavings are read to their usage, so that a few
// slow streams cannot make the later ones cheap.
const WELL_KNOWN: u64 = 100_000;

/// What of one request decides its counts.
pub(crate) struct RunningCount {
    pub(crate) calibrations: Calibrations,
    pub(crate) turns: Arc<Turns>,
    pub(crate) tasks: TaskTracker,
    pub(crate) customer: CustomerId,
    pub(crate) model: Arc<Model>,
    /// The facts of the request, from its target's answer on as that target got it.
    pub(crate) seen: Inspection,
    pub(crate) meter: Meter,
    /// `provider/model` that answers, or worked on an answer; empty before.
    pub(crate) target: String,
    /// Which of its provider's accounts, if there are several.
    pub(crate) account: Option<usize>,
    /// A sample of the answer's text.
    pub(crate) shown: AnswerSample,
    /// What is known of that target.
    pub(crate) learned: Learned,
    /// Whether a customer's leaving does not stop it: it bills what it would have answered, or nobody knows yet how fast it is.
    pub(crate) is_read_on: bool,
    input_count: InputCount,
    prompt: PromptRead,
    /// When it was sent to the target.
    sent: Instant,
    /// When the first text was shown.
    shown_at: Option<Instant>,
    /// What is cached of the prompt has been looked up.
    recalled: bool,
    /// The job that reads the prompt, if it is a large one.
    hashing: Option<JoinHandle<Option<()>>>,
    /// A tokenizer's counts, if the end needed them.
    pub(crate) local: Option<Local>,
}

/// How a request ends, as far as its counts go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerEnd {
    pub(crate) ending: Ending,
    /// A failed try may be billed, so that it is worth counting.
    pub(crate) billable: bool,
    /// Since it went to its first target.
    pub(crate) took: Duration,
    /// Since a stream's first frame; zero if something kept us from reading it.
    pub(crate) answered: Duration,
    /// The limit of all choices together, if it ended there.
    pub(crate) ended_at: Option<u64>,
}

/// What of the gateway a count needs, and whose request it counts.
pub(crate) struct CountOf<'a> {
    pub(crate) calibrations: &'a Calibrations,
    pub(crate) turns: &'a Arc<Turns>,
    pub(crate) tasks: &'a TaskTracker,
    pub(crate) customer: CustomerId,
    pub(crate) arrived: Instant,
}

impl RunningCount {
    pub(crate) fn new(of: &CountOf<'_>, model: Arc<Model>, seen: Inspection, meter: Meter) -> Self {
        Self {
            calibrations: of.calibrations.clone(),
            turns: Arc::clone(of.turns),
            tasks: of.tasks.clone(),
            customer: of.customer,
            model,
            seen,
            meter,
            target: String::new(),
            account: None,
            shown: AnswerSample::Nothing,
            learned: Learned::default(),
            is_read_on: false,
            input_count: InputCount::default(),
            prompt: PromptRead::default(),
            sent: of.arrived,
            shown_at: None,
            recalled: false,
            hashing: None,
            local: None,
        }
    }

    /// Where the prompt is cached.
    fn cache(&self) -> PromptCache<&str> {
        PromptCache {
            target: &self.target,
            account: self.account,
        }
    }

    /// Tells the meter what was found out beside the answer: the size of the prompt, and what of it is probably cached.
    pub(crate) fn catch_up(&mut self) {
        if let Some(read) = self.input_count.get() {
            self.meter.know_input(read.charged);
            // A counted prompt's sample is no longer needed, and a stream may run for an hour.
            self.seen.content = Content::default();
        }
        self.recall();
    }

    /// Notes the target that answers, or worked on an answer.
    pub(crate) fn answers(&mut self, target: &Target) {
        self.target = target.name();
        let classes = self.seen.classes;
        let named = target.speed(classes).or(self.model.limits.speed);
        self.learned = self.calibrations.learned(&self.target, classes, named);
        self.is_read_on = !target.stops || self.learned.own_tokens < WELL_KNOWN;
        let provider = &target.provider;
        self.meter.reasoning_outside(provider.reasoning_outside);
        self.meter.cost_field(provider.cost_field());
        self.expect();
    }

    /// Tells the meter what to expect of the answer: by what its target was sent.
    pub(crate) fn expect(&mut self) {
        let seen = &self.seen;
        let may_reason = self.model.can(Capability::Reasoning) && !seen.thinking.off;
        let hides = seen.thinking.hidden || may_reason || self.learned.hides;
        self.meter.expect(self.learned.pace, hides);
    }

    /// The counts to charge for a request that ends this way.
    pub(crate) async fn counted(&mut self, end: &AnswerEnd) -> Counted {
        // Failed tries that may be billed need a count too, unless the answer's own usage gives the size of the request.
        let counts =
            self.meter.needs_local(end.ending) || (end.ending == Ending::Nothing && end.billable);
        self.local = if counts {
            self.count_locally().await
        } else {
            None
        };
        self.hashed().await;
        self.recall();
        let counted = self.meter.finish(end.ending, self.local, end.took);
        // Counts of several steps say nothing about one prompt or its answer.
        let one_step = self.meter.steps(&counted.usage).1.is_empty();
        let theirs = counted.evidence == Some(Evidence::Provider);
        if end.ending == Ending::Complete && theirs && one_step {
            self.learn(&counted, end);
        }
        counted
    }
}

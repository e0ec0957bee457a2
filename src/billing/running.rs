//! The counts of one running request, and what is charged at its end: the provider's count, or ours if that is missing or impossible.
//!
//! Tokenizers run aside, customer by customer. Only counts; must not change money.

mod prompt;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{CustomerId, Evidence};
use farebox_protocol::{Content, Inspection};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::calibration::{AnswerSample, Calibrations, InputCount, PromptRead};
use crate::config::Model;
use crate::metering::pace::Hiding;
use crate::metering::{Counted, Ending, Local, Meter};
use crate::turns::Turns;

/// What of one request decides its counts.
pub(crate) struct RunningCount {
    pub(crate) calibrations: Calibrations,
    pub(crate) turns: Arc<Turns>,
    pub(crate) tasks: TaskTracker,
    pub(crate) customer: CustomerId,
    pub(crate) arrived: Instant,
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
    input_count: InputCount,
    prompt: PromptRead,
    /// The job that reads the prompt, if it is a large one.
    hashing: Option<JoinHandle<Option<()>>>,
    /// A tokenizer's counts, if the end needed them.
    pub(crate) local: Option<Local>,
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
            arrived: of.arrived,
            model,
            seen,
            meter,
            target: String::new(),
            account: None,
            shown: AnswerSample::Nothing,
            input_count: InputCount::default(),
            prompt: PromptRead::default(),
            hashing: None,
            local: None,
        }
    }

    /// Where the prompt is cached: each account has a cache of its own.
    fn cache(&self) -> String {
        let account = self.account.map(|account| format!(" {account}"));
        [&*self.target, account.as_deref().unwrap_or_default()].concat()
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

    /// How silence counts at the answering target; `None` where nothing is hidden. `whole`: the hold covers the stream's limit.
    pub(crate) fn hiding(&self, whole: bool) -> Option<Hiding> {
        let (calibrations, model) = (&self.calibrations, &self.model);
        calibrations
            .may_hide(model, &self.seen, &self.target)
            .then(|| {
                let pace = calibrations.hidden_pace(model, &self.target);
                Hiding::new(pace, &model.limits, whole)
            })
    }

    /// The counts to charge for a request that ends this way. `billable`: a failed try may be billed, so that it is worth counting;
    /// `took`: since it went to its first target.
    pub(crate) async fn counted(
        &mut self,
        ending: Ending,
        billable: bool,
        took: Duration,
    ) -> Counted {
        // Failed tries that may be billed need a count too, unless the answer's own usage gives the size of the request.
        let counts = self.meter.needs_local(ending) || (ending == Ending::Nothing && billable);
        self.local = if counts {
            self.count_locally().await
        } else {
            None
        };
        self.hashed().await;
        self.recall();
        let counted = self.meter.finish(ending, self.local, took);
        // Counts of several steps say nothing about one prompt or its answer.
        let one_step = self.meter.steps(&counted.usage).1.is_empty();
        if ending == Ending::Complete && counted.evidence == Some(Evidence::Provider) && one_step {
            self.remember(&counted);
            self.learn(&counted);
        }
        counted
    }
}

//! What is charged at the end of a request: the provider's count, or one of ours where that is missing or cannot be right.
//!
//! Tokenizers run on threads that serve nobody, a few at a time. What targets count for other requests corrects ours: each
//! finished request of a key is a vote, at most one a second for each target. Must not change money: it only counts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farebox_protocol::{Family, Sample};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::admitted::Admitted;
use super::end::End;
use crate::clock;
use crate::metering::local::{self, Calibration};
use crate::metering::price::input_total;
use crate::metering::{Counted, Ending, Local};

/// Tokenizers that run at the same time, over all requests.
static TOKENIZERS: Semaphore = Semaphore::const_new(2);
/// Between two votes at one target: reading a sample costs more than relaying a small answer.
const VOTES: Duration = Duration::from_secs(1);
/// Smaller prompts say little about a tokenizer: what frames them weighs too much.
const SMALLEST_VOTE: u64 = 200;

/// What the targets themselves count, by their names.
#[derive(Debug, Default)]
pub struct Calibrations(Mutex<HashMap<String, Target>>);

#[derive(Debug, Default)]
struct Target {
    votes: Calibration,
    last_vote: Option<Instant>,
    /// It has counted reasoning for a request that had it turned off.
    reasons_unasked: bool,
}

impl Calibrations {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Target>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn factor(&self, target: &str) -> u64 {
        self.lock().get(target).map_or_else(|| Calibration::default().factor(), |known| known.votes.factor())
    }

    /// Whether a vote may be cast now.
    fn opens(&self, target: &str, now: Instant) -> bool {
        let mut targets = self.lock();
        let known = targets.entry(target.to_owned()).or_default();
        let open = known.last_vote.is_none_or(|last| now >= last + VOTES);
        if open {
            known.last_vote = Some(now);
        }
        open
    }

    fn vote(&self, target: &str, voter: u64, theirs: u64, ours: u64) {
        self.lock().entry(target.to_owned()).or_default().votes.vote(voter, theirs, ours);
    }

    /// Whether a target has reasoned although it was told not to.
    pub(super) fn reasons_unasked(&self, target: &str) -> bool {
        self.lock().get(target).is_some_and(|known| known.reasons_unasked)
    }

    fn reasoned(&self, target: &str) {
        self.lock().entry(target.to_owned()).or_default().reasons_unasked = true;
    }
}

/// What an answer showed, as far as a tokenizer needs it.
#[derive(Debug, Default)]
pub(super) enum Shown {
    /// Nothing.
    #[default]
    Nothing,
    /// Of a stream.
    Sample(Sample),
    /// A whole answer of a target of this family.
    Whole(Family, Bytes),
}

impl Shown {
    fn sample(self, seed: u64) -> Sample {
        match self {
            Self::Nothing => Sample::default(),
            Self::Sample(sample) => sample,
            Self::Whole(family, body) => family.protocol().sample_answer(&body, seed),
        }
    }
}

/// The request's own count, once a tokenizer has made it.
pub(super) type InputCount = Arc<OnceLock<u64>>;

impl Admitted {
    /// What is charged when the request ends like this.
    pub(super) async fn counted(&mut self, end: End) -> Counted {
        let local = if self.meter.needs_local(end.ending) { self.count_locally().await } else { None };
        let took = self.request.arrived.elapsed().saturating_sub(self.outcome.prepared);
        let counted = self.meter.finish(end.ending, local, took);
        if end.ending == Ending::Complete && counted.evidence == farebox_ledger::Evidence::Provider {
            self.learn(&counted);
        }
        counted
    }

    /// Has the request counted for the checkpoints, without waiting for it.
    pub(super) fn count_input(&self) {
        let (content, limits, tokenizer) = (self.seen.content.clone(), self.model.limits.clone(), self.model.tokenizer);
        let (count, factor) = (Arc::clone(&self.input_count), self.proxy.calibrations.factor(&self.outcome.target));
        tokio::spawn(async move {
            let Ok(_turn) = TOKENIZERS.acquire().await else { return };
            let counted = tokio::task::spawn_blocking(move || local::input(&content, &limits, tokenizer)).await;
            if let Ok(tokens) = counted {
                let _ = count.set(local::charged(tokens, factor));
            }
        });
    }

    /// A tokenizer's counts, as the target would have made them.
    async fn count_locally(&mut self) -> Option<Local> {
        let (limits, tokenizer, known) = (self.model.limits.clone(), self.model.tokenizer, self.input_count.get().copied());
        let (content, shown) = (std::mem::take(&mut self.seen.content), std::mem::take(&mut self.shown));
        let factor = self.proxy.calibrations.factor(&self.outcome.target);
        let _turn = TOKENIZERS.acquire().await.ok()?;
        let counting = tokio::task::spawn_blocking(move || Local {
            input: known.unwrap_or_else(|| local::charged(local::input(&content, &limits, tokenizer), factor)),
            output: local::charged(local::output(&shown.sample(clock::seed()), tokenizer), factor),
        });
        counting.await.ok()
    }

    /// Learns from what the target counted for a finished request.
    fn learn(&mut self, counted: &Counted) {
        let (proxy, target) = (Arc::clone(&self.proxy), self.outcome.target.clone());
        if self.seen.reasoning_off && counted.usage.reasoning > 0 {
            proxy.calibrations.reasoned(&target);
        }
        let content = &mut self.seen.content;
        let (theirs, only_text) = (input_total(&counted.usage), content.pictures.is_empty() && content.documents.is_empty());
        if !only_text || theirs < SMALLEST_VOTE || !proxy.calibrations.opens(&target, Instant::now()) {
            return;
        }
        let (content, model) = (std::mem::take(content), Arc::clone(&self.model));
        let voter = self.request.key.id.to_i64().unsigned_abs();
        tokio::task::spawn_blocking(move || {
            let ours = local::known(&content, &model.limits, model.tokenizer);
            proxy.calibrations.vote(&target, voter, theirs, ours);
        });
    }
}

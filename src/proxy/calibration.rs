//! Compares the counts that targets report for finished requests with ours, and keeps the corrections for local counts.
//!
//! Each finished request of a key is a vote, at most one per second and target, because tokenizing a sample costs more than
//! relaying a small answer. Must not count anything itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{KeyId, Timestamp};
use farebox_protocol::talk::Beginning;
use farebox_protocol::{Family, Sample};
use tokio::time::Instant;

use crate::metering::local::Calibration;
use crate::metering::pace::Pace;
use crate::metering::prefixes::{Finished, Places, Prefixes};

/// The shortest time between two votes on one target.
const VOTES: Duration = Duration::from_secs(1);

/// Customer-days of observation from which a target's pace is known.
const KNOWN: usize = 10;
/// In milliseconds.
const DAY: i64 = 86_400_000;

/// What targets' answers have taught: the calibration of each, by name, and what each has cached of its customers' prompts.
#[derive(Debug, Default)]
pub struct Calibrations(Mutex<HashMap<String, Target>>, Mutex<Prefixes>);

#[derive(Debug, Default)]
struct Target {
    votes: Calibration,
    last_vote: Option<Instant>,
    /// How fast it produces what its streams do not show, in thousandths of a token a second: the last observation of each customer
    /// and day.
    paces: HashMap<(u64, i64), u64>,
    /// Whether it reasons even when told not to, judging by its counts.
    reasons_unasked: Option<bool>,
}

impl Calibrations {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Target>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prefixes(&self) -> MutexGuard<'_, Prefixes> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tokens of a prompt, marked for a cache or not, that a target has probably cached.
    pub(super) fn cached(
        &self,
        target: &str,
        key: KeyId,
        prompt: (&[Beginning], bool),
    ) -> Option<u64> {
        let now = Instant::now().into_std();
        let customer = key.to_i64().unsigned_abs();
        self.prefixes().cached(customer, target, prompt, now)
    }

    /// Remembers a finished request that arrived at `arrived`.
    pub(super) fn remember(&self, target: &str, key: KeyId, finished: Finished, arrived: Instant) {
        let customer = key.to_i64().unsigned_abs();
        self.prefixes()
            .remember(customer, target, finished, arrived.into_std());
    }

    pub(super) fn factor(&self, target: &str) -> u64 {
        self.lock().get(target).map_or_else(
            || Calibration::default().factor(),
            |known| known.votes.factor(),
        )
    }

    /// Whether a vote is accepted now.
    pub(super) fn opens(&self, target: &str, now: Instant) -> bool {
        let mut targets = self.lock();
        let known = targets.entry(target.to_owned()).or_default();
        let open = known.last_vote.is_none_or(|last| now >= last + VOTES);
        if open {
            known.last_vote = Some(now);
        }
        open
    }

    pub(super) fn vote(&self, target: &str, voter: u64, theirs: u64, ours: u64) {
        self.lock()
            .entry(target.to_owned())
            .or_default()
            .votes
            .vote(voter, theirs, ours);
    }

    /// How fast a target produces what its streams do not show; `None` before enough customers have observed it on enough days.
    pub(super) fn pace(&self, target: &str) -> Option<Pace> {
        let targets = self.lock();
        let mut paces: Vec<u64> = targets.get(target)?.paces.values().copied().collect();
        paces.sort_unstable();
        let at = |percent: usize| paces.get(paces.len().saturating_sub(1) * percent / 100);
        (paces.len() >= KNOWN).then_some(Pace {
            median: *at(50)?,
            p95: *at(95)?,
        })
    }

    /// Notes the pace of one finished stream of a customer.
    pub(super) fn observe_pace(&self, target: &str, customer: u64, at: Timestamp, pace: u64) {
        let day = at.millis().div_euclid(DAY);
        self.lock()
            .entry(target.to_owned())
            .or_default()
            .paces
            .insert((customer, day), pace);
    }

    /// Whether a target is known to obey when told not to reason: its counts have shown so, and never the opposite.
    pub(super) fn obeys(&self, target: &str) -> bool {
        self.lock()
            .get(target)
            .is_some_and(|known| known.reasons_unasked == Some(false))
    }

    /// Notes whether a target reasoned although it was told not to.
    pub(super) fn reasoned(&self, target: &str, reasoned: bool) {
        let mut targets = self.lock();
        let known = targets.entry(target.to_owned()).or_default();
        known.reasons_unasked = Some(reasoned || known.reasons_unasked == Some(true));
    }
}

/// A sample of an answer's text, for a tokenizer.
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
    pub(super) fn sample(self, seed: u64) -> Sample {
        match self {
            Self::Nothing => Sample::default(),
            Self::Sample(sample) => sample,
            Self::Whole(family, body) => family.protocol().sample_answer(&body, seed),
        }
    }
}

/// What a tokenizer made of the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputRead {
    /// Tokens to charge.
    pub(super) charged: u64,
    /// The tokenizer's own count, if the request is plain text and the context limit does not cap it.
    pub(super) text: Option<u64>,
}

/// The request's own count, once a tokenizer has made it.
pub(super) type InputCount = Arc<OnceLock<InputRead>>;

/// What is known of a prompt once it has been hashed.
#[derive(Debug, Default)]
pub(super) struct Prompt {
    pub(super) places: Places,
    /// Tokens of it that its target has probably cached.
    pub(super) cached: Option<u64>,
}

/// Filled by the job that hashes the prompt.
pub(super) type PromptRead = Arc<OnceLock<Prompt>>;

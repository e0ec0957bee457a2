//! Compares the counts that targets report for finished requests with ours, and keeps the corrections for local counts.
//!
//! Each finished request of a key is a vote, at most one per second and target, because tokenizing a sample costs more than
//! relaying a small answer. Must not count anything itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farebox_protocol::{Family, Sample};
use tokio::time::Instant;

use crate::metering::Votes;
use crate::metering::local::Calibration;

/// The shortest time between two votes on one target.
const VOTES: Duration = Duration::from_secs(1);

/// The calibration of each target, by name.
#[derive(Debug, Default)]
pub struct Calibrations(Mutex<HashMap<String, Target>>);

#[derive(Debug, Default)]
struct Target {
    votes: Calibration,
    last_vote: Option<Instant>,
    /// How fast it reasons before a stream's first frame, in thousandths of a token a second.
    paces: Votes,
    /// Whether it reasons even when told not to, judging by its counts.
    reasons_unasked: Option<bool>,
}

impl Calibrations {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Target>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// How fast a target reasons before a stream's first frame: the median of what keys have observed, 0 before the first.
    pub(super) fn pace_of_wait(&self, target: &str) -> u64 {
        self.lock()
            .get(target)
            .and_then(|known| known.paces.middle(1))
            .unwrap_or(0)
    }

    pub(super) fn vote_on_wait(&self, target: &str, voter: u64, pace: u64) {
        self.lock()
            .entry(target.to_owned())
            .or_default()
            .paces
            .cast(voter, pace);
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

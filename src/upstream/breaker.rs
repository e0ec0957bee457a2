//! The circuit breaker of one target: pure, the clock is passed in.
//!
//! Failures are counted for each key, and close the target to that key alone: what one customer sends says little about what
//! others would get. It opens for all when its last outcomes all failed and came from two keys or more, or when no request can
//! be their cause. An open breaker lets nothing through until its rest is over and then exactly one trial. A customer's own
//! mistake never reaches [`Breaker::failed`]. A trial always ends in one of the four calls, so nobody is locked out.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::byte_room::Holder;
use crate::config::BreakerPolicy;

/// What a breaker does with the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BreakerState {
    /// Lets it through.
    Closed,
    /// Refuses it because the one trial is under way, or lets it through as the trial.
    HalfOpen,
    /// Refuses it until a time.
    Open,
}

impl BreakerState {
    /// One word for metrics and status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// Leave to send one request of a key; it goes back with the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leave {
    key: Holder,
    /// The request is the one trial: of the target for all, of the target for its key.
    trial: (bool, bool),
}

/// How a target failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fault {
    /// No request can be the cause: connect, TLS, 401, 402.
    pub(super) certain: bool,
    /// The rest that the upstream named.
    pub(super) rest: Option<Duration>,
}

/// The breaker of one target.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    all: Circuit,
    /// Who doubted the target in its last trial: a single key's failed trials do not keep it from the others.
    doubted_by: Option<Holder>,
    last: VecDeque<Outcome>,
    keys: HashMap<Holder, KeyState>,
}

#[derive(Debug, Clone, Copy)]
struct Outcome {
    key: Holder,
    failed: bool,
    certain: bool,
}

/// One key's own count and circuit; forgotten at its next success.
#[derive(Debug, Default)]
struct KeyState {
    circuit: Circuit,
    failures: u32,
    /// When the rest that it earned ends.
    named: Option<Instant>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Circuit {
    #[default]
    Closed,
    Open(Instant),
    HalfOpen,
}

/// How long others wait while a trial is under way.
const TRIAL_WAIT: Duration = Duration::from_secs(1);
/// Keys with failures that are remembered. One more is treated as if it had none.
const KEYS_REMEMBERED: usize = 1_024;

impl Circuit {
    /// Whether a request may go, and as the trial.
    fn admits(self, now: Instant) -> Result<bool, Duration> {
        match self {
            Self::Closed => Ok(false),
            Self::Open(until) if now < until => Err(until - now),
            Self::Open(_) => Ok(true),
            Self::HalfOpen => Err(TRIAL_WAIT),
        }
    }
}

impl Breaker {
    /// Asks for leave to send a key's request.
    ///
    /// # Errors
    /// How long to wait before asking again.
    pub(super) fn admit(&mut self, key: Holder, now: Instant) -> Result<Leave, Duration> {
        let for_all = self.all.admits(now)?;
        let for_key = self.keys.get(&key).map_or(Ok(false), |own| own.circuit.admits(now))?;
        if for_all {
            self.all = Circuit::HalfOpen;
        }
        if let Some(own) = self.keys.get_mut(&key).filter(|_| for_key) {
            own.circuit = Circuit::HalfOpen;
        }
        Ok(Leave { key, trial: (for_all, for_key) })
    }

    /// Whether a key's request would be refused now; takes nothing.
    pub(super) fn is_open_to(&self, key: Holder, now: Instant) -> Option<Duration> {
        let own = self.keys.get(&key).map_or(Circuit::Closed, |own| own.circuit);
        self.all.admits(now).err().or(own.admits(now).err())
    }

    /// A good answer began: enough to end a trial, not enough to forget failures of streams that break later.
    pub(super) fn began(&mut self, leave: &mut Leave) {
        let (for_all, for_key) = std::mem::take(&mut leave.trial);
        if for_all {
            self.close();
        }
        if for_key {
            self.keys.remove(&leave.key);
        }
    }

    /// A good answer ended.
    pub(super) fn succeeded(&mut self, mut leave: Leave, policy: BreakerPolicy) {
        self.began(&mut leave);
        // What was sent before the breaker opened says nothing new about the target.
        if self.all != Circuit::Closed {
            return;
        }
        self.note(Outcome { key: leave.key, failed: false, certain: false }, policy);
        if self.keys.get(&leave.key).is_some_and(|own| own.circuit == Circuit::Closed) {
            self.keys.remove(&leave.key);
        }
    }

    /// An answer failed through the target's fault.
    pub(super) fn failed(&mut self, leave: Leave, now: Instant, policy: BreakerPolicy, fault: Fault) {
        let (for_all, for_key) = leave.trial;
        if !for_all && self.all != Circuit::Closed {
            return;
        }
        let rest = fault.rest.filter(|rest| !rest.is_zero());
        self.note(Outcome { key: leave.key, failed: true, certain: fault.certain }, policy);
        let also_named = rest.is_some() && self.keys.iter().any(|(key, own)| *key != leave.key && own.named > Some(now));
        self.fail_key(leave.key, for_key || for_all, now, policy, rest);
        if for_all {
            self.fail_trial(leave.key, now, policy, fault.certain, rest);
        } else if also_named || self.all_failed(policy) {
            self.all = Circuit::Open(now + rest.filter(|_| also_named).unwrap_or(policy.open));
            self.doubted_by = None;
        }
    }

    /// The request ended without saying anything about the target: the customer left, or was at fault.
    pub(super) fn abandoned(&mut self, leave: Leave, now: Instant) {
        let (for_all, for_key) = leave.trial;
        if for_all && self.all == Circuit::HalfOpen {
            self.all = Circuit::Open(now);
        }
        if let Some(own) = self.keys.get_mut(&leave.key).filter(|own| for_key && own.circuit == Circuit::HalfOpen) {
            own.circuit = Circuit::Open(now);
        }
    }

    /// The state for all as an observer sees it, and how long an open one still rests.
    pub(super) fn state(&self, now: Instant) -> (BreakerState, Option<Duration>) {
        match self.all {
            Circuit::Closed => (BreakerState::Closed, None),
            Circuit::Open(until) if now < until => (BreakerState::Open, Some(until - now)),
            Circuit::Open(_) | Circuit::HalfOpen => (BreakerState::HalfOpen, None),
        }
    }

    /// Keys that the target is closed to while it is open to others.
    pub(super) fn keys_closed(&self, now: Instant) -> usize {
        self.keys.values().filter(|own| matches!(own.circuit, Circuit::Open(until) if now < until)).count()
    }

    /// Failures in a row, over all keys.
    pub(super) fn failures(&self) -> u32 {
        u32::try_from(self.last.iter().rev().take_while(|outcome| outcome.failed).count()).unwrap_or(u32::MAX)
    }

    fn note(&mut self, outcome: Outcome, policy: BreakerPolicy) {
        self.last.push_back(outcome);
        while self.last.len() > size(policy) {
            self.last.pop_front();
        }
    }

    /// The last outcomes all failed, and no single key can be the reason.
    fn all_failed(&self, policy: BreakerPolicy) -> bool {
        let first = self.last.front().map(|outcome| outcome.key);
        let several = self.last.iter().any(|outcome| Some(outcome.key) != first);
        let certain = self.last.iter().all(|outcome| outcome.certain);
        self.last.len() >= size(policy) && self.last.iter().all(|outcome| outcome.failed) && (several || certain)
    }

    fn fail_key(&mut self, key: Holder, trial: bool, now: Instant, policy: BreakerPolicy, rest: Option<Duration>) {
        if self.keys.len() >= KEYS_REMEMBERED && !self.keys.contains_key(&key) {
            self.keys.retain(|_, own| own.circuit.admits(now).is_err());
            if self.keys.len() >= KEYS_REMEMBERED {
                return;
            }
        }
        let own = self.keys.entry(key).or_default();
        if !trial && own.circuit != Circuit::Closed {
            return;
        }
        own.failures = own.failures.saturating_add(1);
        own.named = rest.map(|rest| now + rest).or(own.named);
        if trial || rest.is_some() || own.failures >= policy.failures.max(1) {
            own.circuit = Circuit::Open(now + rest.unwrap_or(policy.open));
        }
    }

    /// A failed trial opens the breaker again; one that the request may have caused, only together with another key's.
    fn fail_trial(&mut self, key: Holder, now: Instant, policy: BreakerPolicy, certain: bool, rest: Option<Duration>) {
        let doubted_by_another = self.doubted_by.replace(key).is_some_and(|other| other != key);
        if certain || doubted_by_another {
            self.doubted_by = None;
            self.all = Circuit::Open(now + rest.unwrap_or(policy.open));
        } else {
            self.all = Circuit::Open(now);
        }
    }

    fn close(&mut self) {
        self.all = Circuit::Closed;
        self.doubted_by = None;
        self.last.clear();
    }
}

/// How many outcomes decide.
fn size(policy: BreakerPolicy) -> usize {
    usize::try_from(policy.failures.max(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;

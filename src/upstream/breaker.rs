//! The circuit breaker of one target: pure, the clock is passed in.
//!
//! Failures are counted per key and close the target to that key alone, so that one customer's unusual requests cannot take the
//! target away from the others. The breaker opens for all keys when its last outcomes all failed and came from at least two keys,
//! or when no request can have caused them. After its rest, an open breaker lets exactly one trial through; before that, it admits
//! only keys that the target served within the last 30 s (at most 90 s) and has not failed since. So several keys that fail on
//! purpose can open a breaker but not take the target away from a key that it serves: that key's next success closes it. In a real
//! outage such a key pays one failed try.
//!
//! A customer's own mistake never reaches [`Breaker::failed`]. A trial always ends in one of four calls ([`Breaker::began`],
//! [`Breaker::succeeded`], [`Breaker::failed`], [`Breaker::abandoned`]), so a breaker cannot stay half-open forever.

use std::collections::{HashMap, HashSet, VecDeque};
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

/// Permission to send one request of a key; it is handed back with the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leave {
    key: Holder,
    /// Whether the request is the trial of the circuit for all keys, and of its own key's circuit.
    trial: (bool, bool),
    /// The circuit for all was open, and the key passed because the target had just served it.
    served: bool,
}

/// How a target failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fault {
    /// No request can be the cause: connect, TLS, 401, 402.
    pub(super) certain: bool,
    /// How long the upstream asked to wait (`retry-after`).
    pub(super) rest: Option<Duration>,
}

/// The breaker of one target.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    all: Circuit,
    /// The key whose trial failed last. The breaker opens for all again only when another key's trial fails too.
    doubted_by: Option<Holder>,
    last: VecDeque<Outcome>,
    keys: HashMap<Holder, KeyState>,
    served: Served,
}

/// Keys whose last request here recently succeeded. Two sets alternate, so that forgetting costs nothing.
#[derive(Debug, Default)]
struct Served {
    recent: HashSet<Holder>,
    before: HashSet<Holder>,
    since: Option<Instant>,
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
    /// End of the wait that the upstream imposed on this key.
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
/// Most keys with failures that are remembered. Further keys are treated as if they had none, so memory stays bounded.
const KEYS_REMEMBERED: usize = 1_024;
/// A key that was served is remembered at least this long and at most three times as long; less if [`KEYS_SERVED`] others are
/// served meanwhile.
const SERVED_FOR: Duration = Duration::from_secs(30);
const KEYS_SERVED: usize = 4_096;

impl Served {
    fn note(&mut self, key: Holder, now: Instant) {
        self.turn(now);
        if self.recent.len() >= KEYS_SERVED {
            self.before = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key);
    }

    fn forget(&mut self, key: Holder) {
        self.recent.remove(&key);
        self.before.remove(&key);
    }

    fn knows(&mut self, key: Holder, now: Instant) -> bool {
        self.turn(now);
        self.recent.contains(&key) || self.before.contains(&key)
    }

    fn turn(&mut self, now: Instant) {
        let age = now.duration_since(*self.since.get_or_insert(now));
        if age < SERVED_FOR {
            return;
        }
        let recent = std::mem::take(&mut self.recent);
        self.before = if age < 2 * SERVED_FOR {
            recent
        } else {
            HashSet::new()
        };
        self.since = Some(now);
    }
}

impl Circuit {
    /// `Ok(true)`: the request is the trial. `Ok(false)`: it is an ordinary request. `Err`: how long to wait.
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
    /// Asks for permission to send a key's request.
    ///
    /// # Errors
    /// How long to wait before asking again.
    pub(super) fn admit(&mut self, key: Holder, now: Instant) -> Result<Leave, Duration> {
        // Both circuits are asked before either changes: a request refused by its key's circuit must not use up the trial for
        // all.
        let (for_all, served) = match self.all.admits(now) {
            Ok(for_all) => (for_all, false),
            Err(_) if self.served.knows(key, now) => (false, true),
            Err(wait) => return Err(wait),
        };
        let for_key = self
            .keys
            .get(&key)
            .map_or(Ok(false), |own| own.circuit.admits(now))?;
        if for_all {
            self.all = Circuit::HalfOpen;
        }
        if let Some(own) = self.keys.get_mut(&key).filter(|_| for_key) {
            own.circuit = Circuit::HalfOpen;
        }
        Ok(Leave {
            key,
            trial: (for_all, for_key),
            served,
        })
    }

    /// How long a key's request would have to wait now, if it would be refused. Changes nothing.
    pub(super) fn is_open_to(&mut self, key: Holder, now: Instant) -> Option<Duration> {
        let own = self
            .keys
            .get(&key)
            .map_or(Circuit::Closed, |own| own.circuit);
        let served = self.served.knows(key, now);
        self.all
            .admits(now)
            .err()
            .filter(|_| !served)
            .or(own.admits(now).err())
    }

    /// A good answer began. That ends a trial but does not clear the failure count: every stream may still break later.
    pub(super) fn began(&mut self, leave: &mut Leave) {
        let (for_all, for_key) = std::mem::take(&mut leave.trial);
        if for_all || std::mem::take(&mut leave.served) {
            self.close();
        }
        if for_key {
            self.keys.remove(&leave.key);
        }
    }

    /// A good answer ended.
    pub(super) fn succeeded(&mut self, mut leave: Leave, now: Instant, policy: BreakerPolicy) {
        self.began(&mut leave);
        // The request was sent before the breaker opened, so its late success says nothing about the target now.
        if self.all != Circuit::Closed {
            return;
        }
        self.note(
            Outcome {
                key: leave.key,
                failed: false,
                certain: false,
            },
            policy,
        );
        if self
            .keys
            .get(&leave.key)
            .is_some_and(|own| own.circuit == Circuit::Closed)
        {
            self.keys.remove(&leave.key);
        }
        if !self.keys.contains_key(&leave.key) {
            self.served.note(leave.key, now);
        }
    }

    /// An answer failed through the target's fault.
    pub(super) fn failed(
        &mut self,
        leave: Leave,
        now: Instant,
        policy: BreakerPolicy,
        fault: Fault,
    ) {
        let (for_all, for_key) = leave.trial;
        self.served.forget(leave.key);
        // Likewise for late failures of requests sent before it opened: they must not prolong its rest.
        if !for_all && self.all != Circuit::Closed {
            return;
        }
        let rest = fault.rest.filter(|rest| !rest.is_zero());
        self.note(
            Outcome {
                key: leave.key,
                failed: true,
                certain: fault.certain,
            },
            policy,
        );
        // One key that is told to wait may have used up its own quota. Two at the same time mean that the target limits us.
        let also_named = rest.is_some()
            && self
                .keys
                .iter()
                .any(|(key, own)| *key != leave.key && own.named > Some(now));
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
        // Open until now: the next request becomes the trial.
        if for_all && self.all == Circuit::HalfOpen {
            self.all = Circuit::Open(now);
        }
        if let Some(own) = self
            .keys
            .get_mut(&leave.key)
            .filter(|own| for_key && own.circuit == Circuit::HalfOpen)
        {
            own.circuit = Circuit::Open(now);
        }
    }

    /// The state of the circuit for all keys, and how long it stays open if it is.
    pub(super) fn state(&self, now: Instant) -> (BreakerState, Option<Duration>) {
        match self.all {
            Circuit::Closed => (BreakerState::Closed, None),
            Circuit::Open(until) if now < until => (BreakerState::Open, Some(until - now)),
            Circuit::Open(_) | Circuit::HalfOpen => (BreakerState::HalfOpen, None),
        }
    }

    /// How many keys cannot use the target because of their own failures.
    pub(super) fn keys_closed(&self, now: Instant) -> usize {
        self.keys
            .values()
            .filter(|own| matches!(own.circuit, Circuit::Open(until) if now < until))
            .count()
    }

    /// Failures in a row, over all keys.
    pub(super) fn failures(&self) -> u32 {
        u32::try_from(
            self.last
                .iter()
                .rev()
                .take_while(|outcome| outcome.failed)
                .count(),
        )
        .unwrap_or(u32::MAX)
    }

    fn note(&mut self, outcome: Outcome, policy: BreakerPolicy) {
        self.last.push_back(outcome);
        while self.last.len() > size(policy) {
            self.last.pop_front();
        }
    }

    /// Whether the last outcomes all failed and cannot have been caused by one key.
    fn all_failed(&self, policy: BreakerPolicy) -> bool {
        let first = self.last.front().map(|outcome| outcome.key);
        let several = self.last.iter().any(|outcome| Some(outcome.key) != first);
        let certain = self.last.iter().all(|outcome| outcome.certain);
        self.last.len() >= size(policy)
            && self.last.iter().all(|outcome| outcome.failed)
            && (several || certain)
    }

    fn fail_key(
        &mut self,
        key: Holder,
        trial: bool,
        now: Instant,
        policy: BreakerPolicy,
        rest: Option<Duration>,
    ) {
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

    /// Handles a failed trial. If no request can be the cause, or the previous failed trial was another key's, the breaker opens
    /// again for its full time. Otherwise the next request, perhaps of another key, is a trial right away.
    fn fail_trial(
        &mut self,
        key: Holder,
        now: Instant,
        policy: BreakerPolicy,
        certain: bool,
        rest: Option<Duration>,
    ) {
        let doubted_by_another = self
            .doubted_by
            .replace(key)
            .is_some_and(|other| other != key);
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

/// How many outcomes are looked at: the policy's `failures`.
fn size(policy: BreakerPolicy) -> usize {
    usize::try_from(policy.failures.max(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;

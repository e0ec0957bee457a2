//! The breaker of one target, account and family: pure, the clock is passed in.
//!
//! Failures are counted per customer and pause the target for that customer alone, whatever the status: one request can cause a 402,
//! a 403, a 429 and a 500. It is paused for all only on evidence that no customer can make: connections that fail, or a request of
//! our own that fails ([`probing`](super::probing) decides when we ask). What we learn by asking also resumes it. Where we cannot
//! ask, one customer's request every five seconds tries it; where we can, one every thirty seconds, because what we ask may fail
//! where customers' requests do not. Then our failures are no evidence for a while.
//!
//! A customer's own mistake never reaches [`Breaker::failed`]. Every [`Leave`] ends in [`Breaker::succeeded`], [`Breaker::failed`]
//! or [`Breaker::abandoned`], so a trial cannot stay open forever.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::classify::TargetFault;
use super::probing::{ProbeVerdict, Probing, TRY_EVERY};
use crate::config::BreakerPolicy;
use farebox_door::byte_room::Holder;

/// What a breaker does with the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BreakerState {
    /// Lets it through.
    Closed,
    /// Paused for all, and only customers' requests can tell when it works again: one every few seconds is let through.
    HalfOpen,
    /// Paused for all until a request of our own succeeds.
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

/// Permission to send one request of a customer; it is handed back with the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leave {
    key: Holder,
    /// Its place among the streams that wait for their first frame; `None` once it has begun, and for whole answers.
    waiting: Option<(Instant, u64)>,
    trial: Trial,
}

/// What a request lets through at a pause has to prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    No,
    /// That the customer's pause can end.
    OfKey,
    /// That the pause for all can end.
    OfAll,
}

/// The breaker of one target.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    all: Option<Paused>,
    /// Connections that failed in a row, over all customers.
    unreachable: u32,
    keys: HashMap<Holder, KeyState>,
    /// Streams without a first frame, by their beginning.
    waiting: BTreeMap<(Instant, u64), Holder>,
    begun: u64,
    /// When we ask ourselves.
    pub(super) probing: Probing,
    /// When a try here last ended without a frame, unless we have asked since.
    pub(super) silent: Option<Instant>,
}

/// A pause for all customers.
#[derive(Debug, Clone, Copy)]
struct Paused {
    /// No connection was possible: one that is made ends the pause.
    unreachable: bool,
    since: Instant,
    /// The wait that our own request was told.
    named: Option<Instant>,
    /// When a customer's request was last let through as a trial.
    tried: Option<Instant>,
}

/// What one customer met here; forgotten at its next success.
#[derive(Debug, Clone, Copy)]
struct KeyState {
    failures: u32,
    /// The last failure.
    at: Instant,
    pause: Option<KeyPause>,
    /// Our own request succeeded while this customer's failed: its next requests try the next target first.
    doubted: bool,
}

#[derive(Debug, Clone, Copy)]
struct KeyPause {
    until: Instant,
    /// The upstream named the time: nothing is let through before it is over.
    named: bool,
    /// When it began, or its last trial.
    tried: Instant,
}

/// Longest wait that an upstream can impose. A longer one is tried again: an attacker may have earned it.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// While our own requests fail, one customer's request is let through this often.
// Ours may fail for a reason of their own, which only a customer's success can show; each try is a customer's request that probably
// fails, hence so seldom.
const SECOND_OPINION: Duration = Duration::from_secs(30);
/// A failure older than this says nothing about the target now.
const FRESH: Duration = Duration::from_secs(60);
/// Most customers with failures that are remembered. Further ones are treated as if they had none, so memory stays bounded.
const KEYS_REMEMBERED: usize = 1_024;
/// A stream that has waited this long for its first frame is a sign of trouble.
// Models that reason may take longer, so it pauses nothing: it is a reason to ask ourselves.
const LONG_WAIT: Duration = Duration::from_secs(10);

impl Breaker {
    /// Asks for permission to send a customer's request.
    ///
    /// # Errors
    /// How long to wait before asking again.
    pub(super) fn admit(
        &mut self,
        key: Holder,
        stream: bool,
        now: Instant,
    ) -> Result<Leave, Duration> {
        if let Some(wait) = self.is_open_to(key, now) {
            return Err(wait);
        }
        let mut trial = Trial::No;
        let state = self.keys.get_mut(&key);
        if let Some(pause) = state.and_then(|state| state.pause.as_mut()) {
            pause.tried = now;
            trial = Trial::OfKey;
        }
        // This trial decides about the customer's pause, too: it ends both, or makes the customer's own longer.
        if let Some(all) = &mut self.all {
            all.tried = Some(now);
            trial = Trial::OfAll;
        }
        self.begun = self.begun.wrapping_add(1);
        let waiting = stream.then_some((now, self.begun));
        self.waiting.extend(waiting.map(|place| (place, key)));
        Ok(Leave {
            key,
            waiting,
            trial,
        })
    }

    /// How long a customer's request would have to wait now, if it would be refused. Changes nothing.
    pub(super) fn is_open_to(&self, key: Holder, now: Instant) -> Option<Duration> {
        let for_all = self.all.as_ref().and_then(|all| match all.named {
            Some(until) if now < until => Some(until - now),
            _ if self.probing.can_ask() => {
                let tried = all.tried.unwrap_or(all.since);
                // A request of our own may end the pause before: whoever is refused is told to come back by then.
                rest_of(tried + SECOND_OPINION, now).map(|rest| rest.min(TRY_EVERY))
            }
            _ => all.tried.and_then(|tried| rest_of(tried + TRY_EVERY, now)),
        });
        let pause = self.keys.get(&key).and_then(|state| state.pause);
        let for_key = pause.and_then(|pause| {
            let wait = rest_of(pause.until, now)?;
            if pause.named {
                Some(wait)
            } else {
                rest_of(pause.tried + TRY_EVERY, now).map(|trial| trial.min(wait))
            }
        });
        for_all.max(for_key)
    }

    /// Whether a customer's request should go to another target first.
    pub(super) fn doubts(&self, key: Holder, now: Instant) -> bool {
        self.keys
            .get(&key)
            .is_some_and(|state| state.doubted && now < state.at + FRESH)
    }

    /// Whether nobody may use the target.
    pub(super) fn is_paused(&self) -> bool {
        self.all.is_some()
    }

    /// Whether some connection failed and none was made since: asking twice in a row would fail twice.
    pub(super) fn is_unreachable(&self) -> bool {
        self.unreachable > 0
    }

    /// The first frame of a good answer arrived: the target works. That does not clear the customer's failures, because every
    /// stream may still break later.
    pub(super) fn began(&mut self, leave: &mut Leave, now: Instant) {
        self.unreachable = 0;
        if let Some(place) = leave.waiting.take() {
            self.waiting.remove(&place);
        }
        if self.all.is_some_and(|all| all.named.is_none()) {
            self.resume();
            if leave.trial == Trial::OfAll && self.probing.can_ask() {
                self.probing.misled(now);
            }
        }
        if std::mem::replace(&mut leave.trial, Trial::No) == Trial::OfKey {
            let own = self.keys.get_mut(&leave.key);
            if let Some(own) = own.filter(|own| own.pause.is_some_and(|pause| !pause.binds(now))) {
                own.pause = None;
            }
        }
    }

    /// A good answer ended.
    pub(super) fn succeeded(&mut self, mut leave: Leave, now: Instant) {
        self.began(&mut leave, now);
        let rests = |own: &KeyState| own.pause.is_some_and(|pause| pause.binds(now));
        if !self.keys.get(&leave.key).is_some_and(rests) {
            self.keys.remove(&leave.key);
        }
    }

    /// An answer failed through the target's fault.
    pub(super) fn failed(
        &mut self,
        leave: Leave,
        now: Instant,
        policy: BreakerPolicy,
        fault: TargetFault,
    ) {
        if let Some(place) = leave.waiting {
            self.waiting.remove(&place);
        }
        self.unreachable = if fault.unreachable {
            self.unreachable.saturating_add(1)
        } else {
            0
        };
        if self.unreachable >= policy.failures.max(1) && self.all.is_none() {
            self.pause(true, None, now);
            self.probing.may_ask_again();
        }
        self.fail_key(leave, now, policy, fault.rest);
    }

    /// The request ended without saying anything about the target: the customer left, or was at fault. The next request is the
    /// trial.
    pub(super) fn abandoned(&mut self, leave: Leave, now: Instant) {
        if let Some(place) = leave.waiting {
            self.waiting.remove(&place);
        }
        match leave.trial {
            Trial::No => {}
            Trial::OfAll => {
                if let Some(all) = &mut self.all {
                    all.tried = None;
                }
            }
            Trial::OfKey => {
                let own = self.keys.get_mut(&leave.key);
                if let Some(pause) = own.and_then(|own| own.pause.as_mut()) {
                    pause.tried = now.checked_sub(TRY_EVERY).unwrap_or(now);
                }
            }
        }
    }

    /// When we should ask ourselves; `None` as long as there is no reason to.
    pub(super) fn probe_due(&self, now: Instant) -> Option<Instant> {
        let since = match self.all {
            Some(all) => all.named.unwrap_or(now).max(now),
            None => self.troubled_since(now)?,
        };
        Some(self.probing.due(since))
    }

    /// What our own request, sent at `sent`, found.
    pub(super) fn probed(&mut self, verdict: ProbeVerdict, sent: Instant, now: Instant) {
        // Several may be under way. One that was sent before another one passed says nothing new when it fails.
        let outdated =
            self.probing.passed_since(sent) && matches!(verdict, ProbeVerdict::Failed(_));
        let misled = self.probing.is_misled(now)
            && matches!(verdict, ProbeVerdict::Failed(fault) if !fault.unreachable);
        let verdict = if outdated || misled {
            ProbeVerdict::Nothing
        } else {
            verdict
        };
        self.probing.learned(verdict, sent, self.all.is_some());
        match verdict {
            ProbeVerdict::Passed | ProbeVerdict::Accepted => self.passed(now),
            ProbeVerdict::Reached => self.reached(),
            ProbeVerdict::Listed if self.all.is_some() => self.resume(),
            ProbeVerdict::Listed => {}
            ProbeVerdict::Failed(TargetFault { unreachable, rest }) => {
                let named = rest.map(|rest| now + rest.min(LONGEST_REST));
                self.pause(unreachable, named, now);
            }
            ProbeVerdict::Nothing | ProbeVerdict::Unasked => {}
        }
    }

    /// A connection was made.
    pub(super) fn reached(&mut self) {
        self.unreachable = 0;
        if self.all.is_some_and(|all| all.unreachable) {
            self.resume();
        }
    }

    /// Whether only a connection is in doubt: then a free request is proof enough.
    pub(super) fn doubts_connection(&self) -> bool {
        self.all.is_some_and(|all| all.unreachable)
    }

    /// The state for all customers.
    pub(super) fn state(&self) -> BreakerState {
        match self.all {
            None => BreakerState::Closed,
            Some(_) if self.probing.can_ask() => BreakerState::Open,
            Some(_) => BreakerState::HalfOpen,
        }
    }

    /// The customers that cannot use the target because of their own failures.
    pub(super) fn paused_for(&self, now: Instant) -> impl Iterator<Item = Holder> {
        let paused = move |own: &KeyState| own.pause.is_some_and(|pause| now < pause.until);
        let keys = self.keys.iter();
        keys.filter(move |(_, own)| paused(own))
            .map(|(key, _)| *key)
    }

    fn pause(&mut self, unreachable: bool, named: Option<Instant>, now: Instant) {
        let tried = self.all.and_then(|all| all.tried);
        self.all = Some(Paused {
            unreachable,
            since: self.all.map_or(now, |all| all.since),
            named,
            tried,
        });
    }

    /// The target works again: what customers met during the outage was not their doing.
    fn resume(&mut self) {
        (self.all, self.unreachable) = (None, 0);
        self.keys
            .retain(|_, own| own.pause.is_some_and(|pause| pause.named));
        self.probing.calm();
    }

    /// Our own request succeeded: whoever failed meanwhile did so by its own requests, or met something that is over.
    fn passed(&mut self, now: Instant) {
        if self.all.is_some() {
            self.resume();
            return;
        }
        self.unreachable = 0;
        for own in self.keys.values_mut() {
            own.doubted |= now < own.at + FRESH;
            own.failures = 0;
            own.pause = own.pause.filter(|pause| pause.named);
        }
    }

    /// Since when two customers have failed, or wait too long for a first frame; in the future if nothing else happens.
    fn troubled_since(&self, now: Instant) -> Option<Instant> {
        let fresh = |own: &KeyState| own.failures > 0 && now < own.at + FRESH;
        let mut failed = self.keys.iter().filter(|(_, own)| fresh(own));
        let first = failed.next().map(|(key, _)| *key);
        if failed.next().is_some() {
            return Some(now);
        }
        let mut customers = first;
        for ((since, _), key) in &self.waiting {
            match customers {
                Some(other) if other != *key => return Some(*since + LONG_WAIT),
                Some(_) => {}
                None => customers = Some(*key),
            }
        }
        None
    }

    fn fail_key(
        &mut self,
        leave: Leave,
        now: Instant,
        policy: BreakerPolicy,
        rest: Option<Duration>,
    ) {
        if self.keys.len() >= KEYS_REMEMBERED && !self.keys.contains_key(&leave.key) {
            self.keys
                .retain(|_, own| own.pause.is_some_and(|pause| now < pause.until));
            if self.keys.len() >= KEYS_REMEMBERED {
                return;
            }
        }
        let own = self.keys.entry(leave.key).or_insert(KeyState {
            failures: 0,
            at: now,
            pause: None,
            doubted: false,
        });
        own.failures = own.failures.saturating_add(1);
        own.at = now;
        // Requests sent before a pause began must not prolong it.
        if leave.trial == Trial::No && own.pause.is_some_and(|pause| now < pause.until) {
            return;
        }
        let rest = rest
            .filter(|rest| !rest.is_zero())
            .map(|rest| rest.min(LONGEST_REST));
        if leave.trial == Trial::OfAll {
            // Who fails the trial for all leaves the next ones to others: else one who fails on purpose would take them all.
            own.pause = Some(KeyPause {
                until: now + FRESH,
                named: false,
                tried: now + (FRESH - TRY_EVERY),
            });
        } else if rest.is_some()
            || leave.trial == Trial::OfKey
            || own.failures >= policy.failures.max(1)
        {
            own.pause = Some(KeyPause {
                until: now + rest.unwrap_or(policy.open),
                named: rest.is_some(),
                tried: now,
            });
        }
    }
}

impl KeyPause {
    /// Whether an upstream's own word still holds.
    fn binds(self, now: Instant) -> bool {
        self.named && now < self.until
    }
}

/// How long it is until then; `None` if it is over.
fn rest_of(until: Instant, now: Instant) -> Option<Duration> {
    until
        .checked_duration_since(now)
        .filter(|rest| !rest.is_zero())
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;

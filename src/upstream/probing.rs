//! When we ask a target ourselves, and what an answer proves. Pure; the clock is passed in.
//!
//! A request of our own is the only evidence against a target that no customer can make. It costs the operator money, so it is
//! rare: at most one in five seconds, and each success doubles the interval. `probe.rs` sends it.

use std::time::Duration;

use tokio::time::Instant;

use super::classify::TargetFault;

/// What a request of our own found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeVerdict {
    /// It answers.
    Passed,
    /// It refuses only a parameter: it works, and its account may still have no money for an answer.
    Accepted,
    /// It can be reached again, which is all that was in doubt.
    Reached,
    /// Its account's list of models accepts our key, which is all that was in doubt.
    Listed,
    /// It fails for us too.
    Failed(TargetFault),
    /// It proves nothing: the fault is ours, or the target was busy with other answers.
    Nothing,
    /// We may not ask now: the budget of the day is spent, requests have a price of their own, or all places are taken.
    Unasked,
}

impl ProbeVerdict {
    /// Whether there was a connection, and nothing went wrong on it.
    pub(super) const fn is_connected(self) -> bool {
        self.is_well() || matches!(self, Self::Reached | Self::Listed)
    }

    /// Whether the target works.
    pub(super) const fn is_well(self) -> bool {
        matches!(self, Self::Passed | Self::Accepted)
    }
}

/// The pace of our own requests to one breaker's target.
#[derive(Debug)]
pub(super) struct Probing {
    last: Option<Instant>,
    /// When the latest one that passed was sent.
    passed: Option<Instant>,
    every: Duration,
    /// The last attempt was not allowed to ask.
    unasked: bool,
    /// Until when our failures prove nothing: a customer was served while ours failed.
    misled: Option<Instant>,
    /// The number of the latest finding of another gateway.
    heard: i64,
}

/// A paused target is tried this often, so that one that has recovered is used within five seconds.
pub(super) const TRY_EVERY: Duration = Duration::from_secs(5);
/// Longest interval: an attacker who keeps failing on purpose makes us ask no more often than this in the end.
const LONGEST: Duration = Duration::from_secs(300);

impl Default for Probing {
    fn default() -> Self {
        Self {
            last: None,
            passed: None,
            every: TRY_EVERY,
            unasked: false,
            misled: None,
            heard: 0,
        }
    }
}

impl Probing {
    /// When the next one is due, if there has been a reason since `since`.
    pub(super) fn due(&self, since: Instant) -> Instant {
        self.last.map_or(since, |last| since.max(last + self.every))
    }

    /// The shortest time between two probes.
    pub(super) fn every(&self) -> Duration {
        self.every
    }

    /// Notes that one is sent now. After a long calm the interval begins anew.
    pub(super) fn sent(&mut self, now: Instant) {
        if self.last.is_some_and(|last| now >= last + 2 * LONGEST) {
            self.calm();
        }
        self.last = Some(now);
    }

    /// Another gateway asks: what it finds may be known at any time.
    pub(super) fn look_again(&mut self, at: Instant) {
        self.last = at.checked_sub(self.every);
    }

    /// Whether a finding of another gateway is new here.
    pub(super) fn hear(&mut self, number: i64) -> bool {
        let is_new = number > self.heard;
        self.heard = self.heard.max(number);
        is_new
    }

    /// Another breaker of the target has just asked.
    pub(super) fn postpone(&mut self, now: Instant, by: Duration) {
        let earliest = (now + by).checked_sub(self.every);
        self.last = self.last.max(earliest);
    }

    /// Adapts the interval: while a target is paused it is asked as often as allowed, so that it is used again soon.
    pub(super) fn learned(&mut self, verdict: ProbeVerdict, sent: Instant, paused: bool) {
        if verdict.is_connected() {
            self.passed = self.passed.max(Some(sent));
        }
        if verdict.is_well() {
            self.misled = None;
        }
        match verdict {
            ProbeVerdict::Passed | ProbeVerdict::Accepted | ProbeVerdict::Listed if !paused => {
                self.every = (self.every * 2).min(LONGEST)
            }
            ProbeVerdict::Failed(_) => self.calm(),
            _ => {}
        }
        match verdict {
            ProbeVerdict::Unasked => self.unasked = true,
            ProbeVerdict::Nothing => {}
            ProbeVerdict::Passed
            | ProbeVerdict::Accepted
            | ProbeVerdict::Reached
            | ProbeVerdict::Listed
            | ProbeVerdict::Failed(_) => self.unasked = false,
        }
    }

    /// Whether one that was sent later has passed.
    pub(super) fn passed_since(&self, sent: Instant) -> bool {
        self.passed.is_some_and(|passed| sent < passed)
    }

    /// A customer was served while our own requests failed: they fail for a reason of their own, and are not worth their price.
    pub(super) fn misled(&mut self, now: Instant) {
        self.misled = Some(now + LONGEST);
        self.every = LONGEST;
    }

    /// Whether our failures prove nothing now.
    pub(super) fn is_misled(&self, now: Instant) -> bool {
        self.misled.is_some_and(|until| now < until)
    }

    /// Back to the shortest interval.
    pub(super) fn calm(&mut self) {
        self.every = TRY_EVERY;
    }

    /// There is a new reason to ask, perhaps one for which asking is free.
    pub(super) fn may_ask_again(&mut self) {
        self.unasked = false;
    }

    /// Whether our own requests decide when a pause ends.
    pub(super) fn can_ask(&self) -> bool {
        !self.unasked
    }
}

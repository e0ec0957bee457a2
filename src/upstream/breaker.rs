//! The circuit breaker of one target: pure, the clock is passed in.
//!
//! Three named states. Closed counts failures in a row; enough of them, or an upstream that names a time, open it; an open one
//! lets nothing through until its rest is over and then exactly one trial, half-open, whose result decides. What a customer's
//! own mistake earns never reaches [`Breaker::failed`]. A trial always ends in one of the four calls, so no target is locked out.

use std::time::Duration;

use tokio::time::Instant;

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

/// Leave to send one request; it goes back with the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Through a closed breaker.
    Ordinary,
    /// The one trial of a half-open breaker.
    Trial,
}

/// The breaker of one target.
#[derive(Debug)]
pub(super) struct Breaker {
    state: Circuit,
    failures: u32,
}

#[derive(Debug)]
enum Circuit {
    Closed,
    Open { until: Instant },
    HalfOpen,
}

/// How long others wait while a trial is under way.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

impl Breaker {
    pub(super) fn new() -> Self {
        Self { state: Circuit::Closed, failures: 0 }
    }

    /// Asks for leave to send.
    ///
    /// # Errors
    /// How long to wait before asking again.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Pass, Duration> {
        match self.state {
            Circuit::Closed => Ok(Pass::Ordinary),
            Circuit::Open { until } if now < until => Err(until - now),
            Circuit::Open { .. } => {
                self.state = Circuit::HalfOpen;
                Ok(Pass::Trial)
            }
            Circuit::HalfOpen => Err(TRIAL_WAIT),
        }
    }

    /// A good answer began: enough to end a trial, not enough to forget failures of streams that break later.
    pub(super) fn began(&mut self, pass: Pass) {
        if pass == Pass::Trial {
            self.close();
        }
    }

    /// A good answer ended.
    pub(super) fn succeeded(&mut self, pass: Pass) {
        if pass == Pass::Trial || matches!(self.state, Circuit::Closed) {
            self.close();
        }
    }

    /// An answer failed through the target's fault; `rest` is the time the upstream named.
    pub(super) fn failed(&mut self, pass: Pass, now: Instant, policy: BreakerPolicy, rest: Option<Duration>) {
        // What was sent before the breaker opened says nothing new about the target.
        if pass == Pass::Ordinary && !matches!(self.state, Circuit::Closed) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let named = rest.filter(|rest| !rest.is_zero());
        if pass == Pass::Trial || named.is_some() || self.failures >= policy.failures.max(1) {
            self.state = Circuit::Open { until: now + named.unwrap_or(policy.open) };
        }
    }

    /// The request ended without saying anything about the target: the customer left, or was at fault.
    pub(super) fn abandoned(&mut self, pass: Pass, now: Instant) {
        if pass == Pass::Trial && matches!(self.state, Circuit::HalfOpen) {
            self.state = Circuit::Open { until: now };
        }
    }

    /// The state as an observer sees it, and how long an open one still rests.
    pub(super) fn state(&self, now: Instant) -> (BreakerState, Option<Duration>) {
        match self.state {
            Circuit::Closed => (BreakerState::Closed, None),
            Circuit::Open { until } if now < until => (BreakerState::Open, Some(until - now)),
            Circuit::Open { .. } | Circuit::HalfOpen => (BreakerState::HalfOpen, None),
        }
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    fn close(&mut self) {
        self.state = Circuit::Closed;
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: BreakerPolicy = BreakerPolicy { failures: 3, open: Duration::from_secs(30) };

    fn after(start: Instant, secs: u64) -> Instant {
        start + Duration::from_secs(secs)
    }

    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::new();
        for _ in 0..POLICY.failures {
            breaker.failed(Pass::Ordinary, now, POLICY, None);
        }
        breaker
    }

    #[test]
    fn opens_after_failures_in_a_row_and_then_allows_one_trial() {
        let start = Instant::now();
        let mut breaker = Breaker::new();
        breaker.failed(Pass::Ordinary, start, POLICY, None);
        breaker.failed(Pass::Ordinary, start, POLICY, None);
        assert_eq!(breaker.admit(start), Ok(Pass::Ordinary));
        breaker.failed(Pass::Ordinary, start, POLICY, None);
        assert_eq!(breaker.admit(after(start, 10)), Err(Duration::from_secs(20)));
        assert_eq!(breaker.state(after(start, 10)), (BreakerState::Open, Some(Duration::from_secs(20))));

        assert_eq!(breaker.admit(after(start, 30)), Ok(Pass::Trial));
        assert_eq!(breaker.admit(after(start, 30)), Err(TRIAL_WAIT));
        assert_eq!(breaker.state(after(start, 30)).0, BreakerState::HalfOpen);
        breaker.began(Pass::Trial);
        assert_eq!(breaker.admit(after(start, 30)), Ok(Pass::Ordinary));
        assert_eq!(breaker.failures(), 0);
    }

    #[test]
    fn a_failed_trial_opens_again_at_once() {
        let start = Instant::now();
        let mut breaker = opened(start);
        assert_eq!(breaker.admit(after(start, 31)), Ok(Pass::Trial));
        breaker.failed(Pass::Trial, after(start, 32), POLICY, None);
        assert_eq!(breaker.admit(after(start, 33)), Err(Duration::from_secs(29)));
    }

    #[test]
    fn an_abandoned_trial_frees_its_place() {
        let start = Instant::now();
        let mut breaker = opened(start);
        assert_eq!(breaker.admit(after(start, 31)), Ok(Pass::Trial));
        breaker.abandoned(Pass::Trial, after(start, 32));
        assert_eq!(breaker.admit(after(start, 32)), Ok(Pass::Trial));
    }

    #[test]
    fn success_resets_the_count_and_a_mere_beginning_does_not() {
        let start = Instant::now();
        let mut breaker = Breaker::new();
        for _ in 0..10 {
            breaker.failed(Pass::Ordinary, start, POLICY, None);
            breaker.failed(Pass::Ordinary, start, POLICY, None);
            breaker.succeeded(Pass::Ordinary);
        }
        assert_eq!(breaker.state(start).0, BreakerState::Closed);
        for _ in 0..3 {
            breaker.began(Pass::Ordinary);
            breaker.failed(Pass::Ordinary, start, POLICY, None);
        }
        assert_eq!(breaker.state(start).0, BreakerState::Open);
    }

    #[test]
    fn a_named_time_opens_at_the_first_failure_and_zero_does_not() {
        let start = Instant::now();
        let mut breaker = Breaker::new();
        breaker.failed(Pass::Ordinary, start, POLICY, Some(Duration::ZERO));
        assert_eq!(breaker.state(start).0, BreakerState::Closed);
        breaker.failed(Pass::Ordinary, start, POLICY, Some(Duration::from_secs(7)));
        assert_eq!(breaker.admit(start), Err(Duration::from_secs(7)));
    }

    #[test]
    fn old_requests_do_not_move_an_open_breaker() {
        let start = Instant::now();
        let mut breaker = opened(start);
        breaker.failed(Pass::Ordinary, after(start, 20), POLICY, None);
        breaker.succeeded(Pass::Ordinary);
        assert_eq!(breaker.admit(after(start, 29)), Err(Duration::from_secs(1)));
        assert_eq!(breaker.admit(after(start, 30)), Ok(Pass::Trial));
        breaker.failed(Pass::Ordinary, after(start, 30), POLICY, None);
        breaker.succeeded(Pass::Trial);
        assert_eq!(breaker.state(after(start, 30)).0, BreakerState::Closed);
    }

    #[test]
    fn a_policy_of_zero_failures_opens_at_the_first() {
        let start = Instant::now();
        let mut breaker = Breaker::new();
        breaker.failed(Pass::Ordinary, start, BreakerPolicy { failures: 0, ..POLICY }, None);
        assert_eq!(breaker.state(start).0, BreakerState::Open);
    }
}

//! What is known about one target: its breakers, its counts, and the tries under way.
//!
//! Each family has its own breaker: a provider that fails on one path is still asked on the others. A [`Try`] is permission to send
//! one request. Dropping it always hands the permission back, so a customer who disconnects during a trial does not lock the target
//! out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farebox_protocol::Family;
use tokio::time::Instant;

use super::breaker::{Breaker, BreakerState, Fault, Leave};
use super::classify::Class;
use super::client::Place;
use super::redact::Redacted;
use crate::byte_room::Holder;
use crate::config::BreakerPolicy;

/// The health of one target of one slug.
#[derive(Debug)]
pub(super) struct Health(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    breakers: HashMap<Family, Breaker>,
    requests: u64,
    errors: u64,
    in_flight: u64,
    last_reason: Option<Redacted>,
}

/// One target as metrics, status and the console show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetState {
    /// The slug.
    pub slug: String,
    /// `provider/model`.
    pub target: String,
    /// Its breaker's state for all keys; that of the family in the worst state.
    pub state: BreakerState,
    /// How long an open breaker stays open.
    pub open_for: Option<Duration>,
    /// Failures in a row, over all keys.
    pub failures: u32,
    /// Keys shut out because of their own failures while it is open to others.
    pub keys_closed: usize,
    /// Tries since the target was configured.
    pub requests: u64,
    /// Tries that failed through the target's fault.
    pub errors: u64,
    /// Tries and answers under way.
    pub in_flight: u64,
    /// The last failure.
    pub last_reason: Option<Redacted>,
}

/// Longest rest that an upstream can impose.
const LONGEST_REST: Duration = Duration::from_secs(600);

impl Health {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Inner::default()))
    }

    /// Permission to send one request of a key, or how long to wait.
    pub(super) fn begin(
        self: &Arc<Self>,
        family: Family,
        key: Holder,
        policy: BreakerPolicy,
        place: Option<Place>,
    ) -> Result<Try, Duration> {
        let mut inner = self.lock();
        let leave = inner.breaker(family).admit(key, Instant::now())?;
        inner.requests += 1;
        inner.in_flight += 1;
        drop(inner);
        Ok(Try {
            health: Arc::clone(self),
            family,
            leave: Some(leave),
            policy,
            begun: false,
            _place: place,
        })
    }

    /// How long a key's request would have to wait; takes nothing and counts nothing.
    pub(super) fn is_open_to(&self, family: Family, key: Holder) -> Option<Duration> {
        self.lock().breaker(family).is_open_to(key, Instant::now())
    }

    /// As an observer sees it.
    pub(super) fn state(&self, slug: &str, target: &str) -> TargetState {
        let inner = self.lock();
        let now = Instant::now();
        let worst = inner
            .breakers
            .values()
            .map(|breaker| breaker.state(now))
            .max_by_key(|(state, rest)| (*state, *rest));
        let (state, open_for) = worst.unwrap_or((BreakerState::Closed, None));
        TargetState {
            slug: slug.to_owned(),
            target: target.to_owned(),
            state,
            open_for,
            failures: inner
                .breakers
                .values()
                .map(Breaker::failures)
                .max()
                .unwrap_or_default(),
            keys_closed: inner
                .breakers
                .values()
                .map(|breaker| breaker.keys_closed(now))
                .max()
                .unwrap_or_default(),
            requests: inner.requests,
            errors: inner.errors,
            in_flight: inner.in_flight,
            last_reason: inner.last_reason.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn breaker(&mut self, family: Family) -> &mut Breaker {
        self.breakers.entry(family).or_default()
    }
}

/// Permission to send one request to a target, held until its answer has ended.
#[derive(Debug)]
pub(super) struct Try {
    health: Arc<Health>,
    family: Family,
    /// Handed back with the outcome.
    leave: Option<Leave>,
    policy: BreakerPolicy,
    begun: bool,
    _place: Option<Place>,
}

impl Try {
    /// The first frame of a good answer arrived.
    pub(super) fn began(&mut self) {
        self.begun = true;
        if let Some(leave) = &mut self.leave {
            self.health.lock().breaker(self.family).began(leave);
        }
    }

    /// A good answer is complete.
    pub(super) fn succeeded(mut self) {
        self.begun = true;
    }

    /// The target failed.
    pub(super) fn failed(&mut self, class: Class, reason: &Redacted, fault: Fault) {
        let Some(leave) = self.leave.take() else {
            return;
        };
        let mut inner = self.health.lock();
        let rest = fault.rest.map(|rest| rest.min(LONGEST_REST));
        inner.breaker(self.family).failed(
            leave,
            Instant::now(),
            self.policy,
            Fault { rest, ..fault },
        );
        inner.errors += 1;
        inner.last_reason = Some(reason.labelled(class));
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        let mut inner = self.health.lock();
        inner.in_flight = inner.in_flight.saturating_sub(1);
        let Some(leave) = self.leave.take() else {
            return;
        };
        if self.begun {
            inner
                .breaker(self.family)
                .succeeded(leave, Instant::now(), self.policy);
        } else {
            inner.breaker(self.family).abandoned(leave, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::redact;
    use super::*;

    const POLICY: BreakerPolicy = BreakerPolicy {
        failures: 1,
        open: Duration::from_secs(30),
    };
    const KEY: Holder = Holder(1);
    const CERTAIN: Fault = Fault {
        certain: true,
        rest: None,
    };

    #[tokio::test(start_paused = true)]
    async fn a_dropped_trial_does_not_lock_the_target_out() {
        let health = Arc::new(Health::new());
        health
            .begin(Family::Chat, KEY, POLICY, None)
            .unwrap()
            .failed(Class::Broken, &redact::plain("x"), CERTAIN);
        assert_eq!(
            health
                .begin(Family::Chat, Holder(2), POLICY, None)
                .unwrap_err(),
            Duration::from_secs(30)
        );
        tokio::time::advance(Duration::from_secs(30)).await;
        let trial = health.begin(Family::Chat, KEY, POLICY, None).unwrap();
        assert!(health.begin(Family::Chat, Holder(2), POLICY, None).is_err());
        drop(trial);
        let mut trial = health.begin(Family::Chat, KEY, POLICY, None).unwrap();
        trial.began();
        assert!(health.begin(Family::Chat, Holder(2), POLICY, None).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_family_leaves_the_others_alone() {
        let health = Arc::new(Health::new());
        health
            .begin(Family::Chat, KEY, POLICY, None)
            .unwrap()
            .failed(Class::Broken, &redact::plain("x"), CERTAIN);
        assert!(health.is_open_to(Family::Chat, KEY).is_some());
        assert!(health.begin(Family::Messages, KEY, POLICY, None).is_ok());
        assert_eq!(
            health.state("slug", "a/b").state,
            BreakerState::Open,
            "the worst of them is shown"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn counts_and_reasons_are_shown() {
        let health = Arc::new(Health::new());
        let running = health.begin(Family::Chat, KEY, POLICY, None).unwrap();
        let mut broken = health.begin(Family::Chat, KEY, POLICY, None).unwrap();
        broken.began();
        broken.failed(
            Class::Broken,
            &redact::plain("cut"),
            Fault {
                certain: false,
                rest: Some(Duration::from_secs(9_000)),
            },
        );
        broken.failed(Class::Broken, &redact::plain("again"), CERTAIN);
        drop(broken);
        let state = health.state("slug", "a/b");
        assert_eq!((state.requests, state.errors, state.in_flight), (2, 1, 1));
        assert_eq!(
            (state.state, state.keys_closed),
            (BreakerState::Closed, 1),
            "closed to that key alone"
        );
        assert_eq!(health.is_open_to(Family::Chat, KEY), Some(LONGEST_REST));
        assert_eq!(
            state
                .last_reason
                .map(|reason| reason.to_string())
                .as_deref(),
            Some("broken: cut")
        );
        drop(running);
        assert_eq!(health.state("slug", "a/b").in_flight, 0);
    }
}

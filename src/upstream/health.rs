//! What is known about one target: its breakers, its counts, and the tries under way.
//!
//! Each family has its own breaker, and so has each of the provider's accounts (its keys): what fails on one path or with one key is
//! still asked on the others. A [`Try`] is permission to send one request. Dropping it always hands the permission back, so a
//! customer who disconnects during a trial does not lock the target out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use farebox_ledger::{Amount, lock};
use farebox_protocol::Family;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::accounts::{AccountRefusal, Accounts};
use super::breaker::{Breaker, BreakerState, Leave};
use super::classify::{AttemptFailure, FailureClass, TargetFault};
use super::outage::{OutageNews, Passing};
use super::places::TakenPlace;
use super::probing::{ProbeVerdict, TRY_EVERY};
use super::redact::{self, Redacted};
use super::signs::{BreakerPlace, Signs, Trouble, Wrong};
use crate::config::BreakerPolicy;
use farebox_door::byte_room::Holder;

/// The health of one target of one slug.
#[derive(Debug)]
pub(super) struct Health {
    inner: Mutex<Inner>,
    /// When an answer of this target last got a frame: milliseconds since `origin`, 0 for never. Outside the lock, because every
    /// frame sets it.
    last_frame: AtomicU64,
    origin: Instant,
    /// The provider's accounts: what one target learns of them holds for all.
    accounts: Arc<Accounts>,
    signals: Arc<Signals>,
}

/// What becomes of any target, for one task each that waits for it.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// A customer's request failed: a request of our own may be due.
    pub(super) trouble: Notify,
    /// Requests of our own showed that a target is out.
    pub(super) outages: OutageNews,
}

#[derive(Debug, Default)]
struct Inner {
    /// By family and account.
    breakers: HashMap<BreakerPlace, Breaker>,
    requests: u64,
    errors: u64,
    in_flight: u64,
    last_reason: Option<Redacted>,
    probes: Probes,
    signs: Signs,
    passing: Passing,
}

/// Our own requests to a target, since it was configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probes {
    /// How many were sent.
    pub sent: u64,
    /// How many failed.
    pub failed: u64,
    /// What they may have cost the operator.
    pub cost: Amount,
}

/// A request of our own that should be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) family: Family,
    pub(super) account: usize,
    /// How long nobody else should ask.
    pub(super) every: Duration,
    /// What it has to prove.
    pub(super) doubt: Doubt,
}

/// What is in doubt about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Only whether it can be reached: any answer proves it, and is free.
    Connection,
    /// Whether its account accepts our key: the free list of models may prove it.
    Key,
    /// Whether it answers.
    Answer,
}

/// What a request wants from a target.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetWish {
    pub(super) family: Family,
    pub(super) key: Holder,
    /// Whether a first frame is waited for.
    pub(super) stream: bool,
    /// Which of the provider's accounts.
    pub(super) account: usize,
}

/// One target as metrics, status and the console show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetState {
    /// The public name that customers ask for.
    pub slug: String,
    /// `provider/model`.
    pub target: String,
    /// Its breaker's state for all customers; that of the family and account in the worst state.
    pub state: BreakerState,
    /// Failures in a row, over all customers.
    pub failures: u32,
    /// Customers shut out because of their own failures while it is open to others.
    pub keys_closed: usize,
    /// Tries since the target was configured.
    pub requests: u64,
    /// Tries that failed through the target's fault.
    pub errors: u64,
    /// Tries and answers under way.
    pub in_flight: u64,
    /// The last failure.
    pub last_reason: Option<Redacted>,
    /// What is told of it.
    pub trouble: Option<Trouble>,
    /// Our own requests.
    pub probes: Probes,
}

/// How often to look for what another gateway has found.
const HEAR_EVERY: Duration = Duration::from_secs(1);
/// A try that got no frame is a reason to ask so long; we wait a moment, because others may be a better one.
const REASON: Duration = Duration::from_secs(10);
/// A frame this recent shows that the target is busy with answers, whatever became of a request of ours.
const BUSY: Duration = Duration::from_secs(10);

impl Health {
    pub(super) fn new(signals: Arc<Signals>, accounts: Arc<Accounts>) -> Self {
        Self {
            inner: Mutex::default(),
            last_frame: AtomicU64::new(0),
            origin: Instant::now(),
            accounts,
            signals,
        }
    }

    /// Permission to send one request of a customer with an account, or how long to wait.
    pub(super) fn begin(
        self: &Arc<Self>,
        wish: TargetWish,
        policy: BreakerPolicy,
        place: Option<TakenPlace>,
    ) -> Result<Try, Duration> {
        let (mut inner, now) = (self.lock(), Instant::now());
        let breaker = inner.breaker(wish.place());
        let leave = breaker.admit(wish.key, wish.stream, now)?;
        inner.requests += 1;
        inner.in_flight += 1;
        drop(inner);
        Ok(Try {
            health: Arc::clone(self),
            key: wish.key,
            family: wish.family,
            account: wish.account,
            leave: Some(leave),
            policy,
            sent: now,
            begun: false,
            _place: place,
        })
    }

    /// How long a customer's request would have to wait; takes nothing and counts nothing.
    pub(super) fn is_open_to(&self, wish: TargetWish) -> Option<Duration> {
        let (inner, now) = (self.lock(), Instant::now());
        let breaker = inner.breakers.get(&wish.place())?;
        breaker.is_open_to(wish.key, now)
    }

    /// Whether a customer's request should go to another target first.
    pub(super) fn doubts(&self, family: Family, key: Holder) -> bool {
        let now = Instant::now();
        self.lock()
            .of_family(family)
            .any(|breaker| breaker.doubts(key, now))
    }

    /// Whether no customer can use the target in some family, whatever the account.
    pub(super) fn is_paused(&self) -> bool {
        let inner = self.lock();
        Family::ALL.into_iter().any(|family| {
            let mut breakers = inner.of_family(family).peekable();
            breakers.peek().is_some() && breakers.all(Breaker::is_paused)
        })
    }

    /// Notes that an answer had got a frame by then.
    pub(super) fn frame(&self, at: Instant) {
        let millis = at.saturating_duration_since(self.origin).as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX).max(1);
        self.last_frame.store(millis, Ordering::Relaxed);
    }

    /// Whether an answer of this target got a frame lately.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        match self.last_frame.load(Ordering::Relaxed) {
            0 => false,
            millis => now < self.origin + Duration::from_millis(millis) + BUSY,
        }
    }

    /// Whether an answer of this target got a frame since an instant.
    fn is_heard_since(&self, since: Instant) -> bool {
        match self.last_frame.load(Ordering::Relaxed) {
            0 => false,
            millis => self.origin + Duration::from_millis(millis) >= since,
        }
    }

    /// How long a request of our own may wait for a frame, as those did that passed lately; `None` if none has.
    pub(super) fn patience(&self, now: Instant) -> Option<Duration> {
        self.lock().passing.patience(now)
    }

    /// Whether a request of our own that was sent at `sent` and had no frame shows that the target is out.
    pub(super) fn is_out(&self, sent: Instant, now: Instant) -> bool {
        self.patience(now).is_some() && !self.is_heard_since(sent)
    }

    /// Whether we are allowed to ask it ourselves.
    pub(super) fn can_ask(&self) -> bool {
        let inner = self.lock();
        inner
            .breakers
            .values()
            .all(|breaker| breaker.probing.can_ask())
    }

    /// A failure may say that we are refused as the provider's customer.
    pub(super) fn judge(&self, place: BreakerPlace, failure: &AttemptFailure, reason: &Redacted) {
        let (mut inner, now) = (self.lock(), Instant::now());
        if let Some(refusal) = AccountRefusal::of(failure) {
            self.accounts.refused(place.1, refusal, reason.clone(), now);
            inner.signs.met_refusal(place, now);
        } else if matches!(failure, AttemptFailure::NotServed(_)) {
            inner.signs.refused(place, reason.clone(), now);
        }
    }

    /// The next request of our own that is due: what is told has stood for a moment, or a breaker has a reason.
    pub(super) fn probe_due(&self, now: Instant) -> Option<Due> {
        let inner = self.lock();
        let due = inner.breakers.iter().filter_map(|(place, breaker)| {
            let told = inner.signs.told_since(*place, &self.accounts);
            let told = told.map(|since| breaker.probing.due(since + TRY_EVERY));
            let silent = breaker.silent.and_then(|since| {
                let due = breaker.probing.due(since + TRY_EVERY);
                (due <= since + REASON).then_some(due)
            });
            let due = [breaker.probe_due(now), told, silent];
            Some(Due {
                at: due.into_iter().flatten().min()?,
                family: place.0,
                account: place.1,
                every: breaker.probing.every(),
                doubt: if breaker.doubts_connection() {
                    Doubt::Connection
                } else if self.accounts.doubts_key(place.1) {
                    Doubt::Key
                } else {
                    Doubt::Answer
                },
            })
        });
        due.min_by_key(|due| (due.at, due.family, due.account))
    }

    /// Notes that a request of our own is sent now. The target's other breakers wait, so that it is asked once in five seconds.
    pub(super) fn probing(&self, due: &Due, now: Instant) {
        let (mut inner, asked) = (self.lock(), due.place());
        let breaker = inner.breaker(asked);
        breaker.silent = None;
        breaker.probing.sent(now);
        for (at, breaker) in &mut inner.breakers {
            if *at != asked {
                breaker.probing.postpone(now, TRY_EVERY);
            }
        }
    }

    /// What a request of our own found; `cost` is what it may have cost, `reason` what went wrong.
    pub(super) fn probed(
        &self,
        due: &Due,
        sent: Instant,
        verdict: ProbeVerdict,
        cost: Option<Amount>,
        reason: Option<Redacted>,
    ) {
        let mut inner = self.lock();
        self.found(&mut inner, due, verdict, sent);
        if verdict.is_connected() {
            // Whoever could not connect in another family can now.
            inner.breakers.values_mut().for_each(Breaker::reached);
        }
        let probes = &mut inner.probes;
        if let Some(cost) = cost {
            probes.sent += 1;
            probes.cost = probes.cost.checked_add(cost).unwrap_or(probes.cost);
        }
        if matches!(verdict, ProbeVerdict::Failed(_)) {
            probes.failed += 1;
            inner.last_reason = reason;
        }
    }

    /// Another gateway asks in our place; what it has found last, if that is recent. We look again soon, because a target that it finds
    /// well again is used here, too.
    pub(super) fn heard(&self, due: &Due, found: Option<(i64, Instant, ProbeVerdict)>) {
        let (mut inner, now) = (self.lock(), Instant::now());
        let breaker = inner.breaker(due.place());
        let found = found.filter(|(number, ..)| breaker.probing.hear(*number));
        if let Some((_, asked, verdict)) = found {
            self.found(&mut inner, due, verdict, asked);
        }
        let breaker = inner.breaker(due.place());
        if found.is_none() || breaker.is_paused() {
            breaker.probing.look_again(now + HEAR_EVERY);
        }
        if let Some((.., ProbeVerdict::Failed(_))) = found {
            inner.last_reason = Some(redact::plain("another gateway's own request failed"));
        }
    }

    /// A request of our own, sent at `sent`, shows this, whichever gateway has sent it. A refusal for money ends with an answer alone.
    fn found(&self, inner: &mut Inner, due: &Due, verdict: ProbeVerdict, sent: Instant) {
        let now = Instant::now();
        self.change(inner, due.place(), |breaker| {
            breaker.probed(verdict, sent, now);
        });
        match verdict {
            ProbeVerdict::Passed => self.accounts.served(due.account, sent),
            ProbeVerdict::Listed => self.accounts.listed(due.account, sent),
            ProbeVerdict::Accepted
            | ProbeVerdict::Reached
            | ProbeVerdict::Failed(_)
            | ProbeVerdict::Nothing
            | ProbeVerdict::Unasked => {}
        }
        if verdict.is_well() {
            inner.signs.served(due.place());
            inner.passing.passed(sent, now);
        }
    }

    /// As an observer sees it; `account`: why no account of its provider may be used, if that is so.
    pub(super) fn state(
        &self,
        slug: &str,
        target: &str,
        account: Option<(Wrong, Redacted)>,
    ) -> TargetState {
        let inner = self.lock();
        let now = Instant::now();
        let breakers = || inner.breakers.values();
        let wrong = account.or_else(|| inner.wrong(now));
        TargetState {
            slug: slug.to_owned(),
            target: target.to_owned(),
            state: breakers()
                .map(Breaker::state)
                .max()
                .unwrap_or(BreakerState::Closed),
            failures: inner.signs.failures(),
            keys_closed: breakers()
                .map(|breaker| breaker.paused_for(now).count())
                .max()
                .unwrap_or_default(),
            requests: inner.requests,
            errors: inner.errors,
            in_flight: inner.in_flight,
            last_reason: inner.last_reason.clone(),
            trouble: wrong.map(|(what, reason)| Trouble {
                what,
                slug: slug.to_owned(),
                target: target.to_owned(),
                reason: reason.to_string(),
            }),
            probes: inner.probes,
        }
    }

    /// Changes a breaker, and forgets the failures before if it ends a pause.
    fn change(&self, inner: &mut Inner, place: BreakerPlace, change: impl FnOnce(&mut Breaker)) {
        let breaker = inner.breaker(place);
        let before = breaker.is_paused();
        change(breaker);
        if before && !breaker.is_paused() {
            inner.signs.resumed();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

impl Inner {
    fn breaker(&mut self, place: BreakerPlace) -> &mut Breaker {
        self.breakers.entry(place).or_default()
    }

    /// What is wrong with the target itself, and why. A refusal says more than the pause that follows from it.
    fn wrong(&self, now: Instant) -> Option<(Wrong, Redacted)> {
        let last = || {
            let last = self.last_reason.clone();
            last.unwrap_or_else(|| redact::plain("no reason was given"))
        };
        let (wrong, reason) = match self.signs.wrong() {
            Some((wrong, Some(reason))) => (wrong, Some(reason.clone())),
            _ if self.breakers.values().any(Breaker::is_paused) => (Wrong::Paused, None),
            Some((wrong, None)) => (wrong, None),
            None => {
                let breakers = self.breakers.values();
                let mut paused_for: Vec<Holder> = breakers
                    .flat_map(|breaker| breaker.paused_for(now))
                    .collect();
                paused_for.sort_unstable_by_key(|key| key.0);
                paused_for.dedup();
                let paused_for = Some(paused_for).filter(|paused_for| !paused_for.is_empty())?;
                (Wrong::PausedFor(paused_for), None)
            }
        };
        Some((wrong, reason.unwrap_or_else(last)))
    }

    fn of_family(&self, family: Family) -> impl Iterator<Item = &Breaker> {
        self.breakers
            .iter()
            .filter(move |((of, _), _)| *of == family)
            .map(|(_, breaker)| breaker)
    }
}

impl Due {
    /// The breaker that asks.
    pub(super) fn place(&self) -> BreakerPlace {
        (self.family, self.account)
    }
}

impl TargetWish {
    fn place(self) -> BreakerPlace {
        (self.family, self.account)
    }
}

/// Permission to send one request to a target, held until its answer has ended.
#[derive(Debug)]
pub(super) struct Try {
    health: Arc<Health>,
    key: Holder,
    family: Family,
    /// Which of the provider's keys it is sent with.
    account: usize,
    /// Handed back with the outcome.
    leave: Option<Leave>,
    policy: BreakerPolicy,
    sent: Instant,
    begun: bool,
    _place: Option<TakenPlace>,
}

impl Try {
    fn place(&self) -> BreakerPlace {
        (self.family, self.account)
    }

    /// The first frame of a good answer arrived.
    pub(super) fn began(&mut self) {
        self.begun = true;
        let place = self.place();
        if let Some(leave) = &mut self.leave {
            let now = Instant::now();
            self.health.frame(now);
            let mut inner = self.health.lock();
            self.health
                .change(&mut inner, place, |breaker| breaker.began(leave, now));
        }
    }

    /// Whether the last connection failed.
    pub(super) fn is_unreachable(&self) -> bool {
        let mut inner = self.health.lock();
        inner.breaker(self.place()).is_unreachable()
    }

    /// The answer had got another frame by then.
    pub(super) fn frame(&self, at: Instant) {
        self.health.frame(at);
    }

    /// A good answer is complete.
    pub(super) fn succeeded(mut self) {
        self.begun = true;
    }

    /// The target refused us as its operator, if this failure says so.
    pub(super) fn judge(&self, failure: &AttemptFailure, reason: &Redacted) {
        self.health.judge(self.place(), failure, reason);
    }

    /// The target had the request and sent no frame: a request of our own tells whether that is its own doing.
    pub(super) fn silent(&self) {
        let mut inner = self.health.lock();
        inner.breaker(self.place()).silent = Some(Instant::now());
        drop(inner);
        self.health.signals.trouble.notify_one();
    }

    pub(super) fn failed(&mut self, class: FailureClass, reason: &Redacted, fault: TargetFault) {
        let Some(leave) = self.leave.take() else {
            return;
        };
        let (mut inner, now) = (self.health.lock(), Instant::now());
        self.health.change(&mut inner, self.place(), |breaker| {
            breaker.failed(leave, now, self.policy, fault);
        });
        inner.errors += 1;
        inner.signs.failed(self.key, self.place(), now);
        inner.last_reason = Some(reason.labelled(class));
        drop(inner);
        self.health.signals.trouble.notify_one();
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        let (place, now) = (self.place(), Instant::now());
        let mut inner = self.health.lock();
        inner.in_flight = inner.in_flight.saturating_sub(1);
        let Some(leave) = self.leave.take() else {
            return;
        };
        if self.begun {
            self.health.accounts.served(self.account, self.sent);
            inner.signs.served(place);
        }
        self.health.change(&mut inner, place, |breaker| {
            if self.begun {
                breaker.succeeded(leave, now);
            } else {
                breaker.abandoned(leave, now);
            }
        });
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;

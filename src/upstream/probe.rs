//! Sends our own requests to targets in trouble: the account's free list of models first, then the smallest answer.
//!
//! Nothing that a customer does can make one fail, so their results are evidence for all. `probing.rs` decides when one is due.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{Amount, clock};
use farebox_protocol::WireUsage;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::attempt::{self, Begun};
use super::classify::AttemptFailure;
use super::client::Pool;
use super::health::{Doubt, Due, Health, Signals};
use super::outage::Outage;
use super::probing::{ProbeVerdict, TRY_EVERY};
use super::redact::{self, Redacted};
use super::referee::{self, Heard, Lease, Referee};
use super::simulator::Simulated;
use super::{ListedTarget, Prepared, UpstreamCall, Upstreams};
use crate::config::{BreakerPolicy, OnDisconnect, Prefer, Rates, Route, Target};
use farebox_door::byte_room::{ByteRoom, Holder};

/// We ask as a customer that no key can be: keys' numbers are positive.
pub(super) const OURSELVES: Holder = Holder(u64::MAX);
/// How often to look for customers who wait too long; failures and pauses wake us at once.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The question. Any model answers it, and nobody minds it in a provider's log.
pub(super) const WORDS: &str = "ping";
/// Most tokens that its input can have, templates included: what a request is assumed to cost before it is counted.
const INPUT: u64 = 64;

/// One request of our own.
struct Probe {
    due: Due,
    target: Target,
    rates: Rates,
    route: Route,
    pool: Arc<Pool>,
    health: Arc<Health>,
    simulated: Arc<Simulated>,
    answers: Arc<ByteRoom>,
    signals: Arc<Signals>,
    sent: Instant,
}

/// What became of it, and what it may have cost.
struct ProbeResult {
    verdict: ProbeVerdict,
    cost: Option<Amount>,
    reason: Option<Redacted>,
}

impl Upstreams {
    /// Asks targets in trouble, as long as the gateway runs.
    pub async fn probe(&self, referee: impl Referee) -> Infallible {
        let (mut running, referee) = (JoinSet::new(), Arc::new(referee));
        loop {
            let next = self.send_due(&mut running, &referee);
            tokio::select! {
                () = self.signals.trouble.notified() => {}
                () = sleep_until(next) => {}
                Some(_) = running.join_next() => {}
            }
        }
    }

    /// Sends what is due; returns when to look again.
    fn send_due<R: Referee>(&self, running: &mut JoinSet<()>, referee: &Arc<R>) -> Instant {
        let now = Instant::now();
        let mut next = now + LOOK_EVERY;
        let known = self.known();
        for listed in &known.targets {
            let Some(due) = listed.health.probe_due(now) else {
                continue;
            };
            if due.at > now {
                next = next.min(due.at);
                continue;
            }
            if let Some(pool) = known.pools.get(&listed.target.provider.name) {
                listed.health.probing(&due, now);
                let probe = self.probe_of(listed, due, Arc::clone(pool), now);
                running.spawn(probe.run(Arc::clone(referee)));
            }
        }
        next
    }

    fn probe_of(&self, listed: &ListedTarget, due: Due, pool: Arc<Pool>, now: Instant) -> Probe {
        Probe {
            due,
            target: listed.target.clone(),
            rates: listed.rates,
            route: Route {
                call: listed.call,
                ..alone(&listed.slug, &listed.target)
            },
            pool,
            health: Arc::clone(&listed.health),
            simulated: Arc::clone(&self.simulated),
            answers: Arc::clone(&self.answers),
            signals: Arc::clone(&self.signals),
            sent: now,
        }
    }
}

/// A route that leads to one target only.
pub(super) fn alone(slug: &str, target: &Target) -> Route {
    Route {
        slug: slug.to_owned(),
        on_disconnect: OnDisconnect::Cancel,
        targets: vec![target.clone()],
        retry: 0,
        breaker: BreakerPolicy {
            failures: 1,
            open: TRY_EVERY,
        },
        translate: false,
        prefer: Prefer::Order,
        call: None,
    }
}

impl Probe {
    /// Asks, or hears what another gateway has found.
    async fn run<R: Referee>(self, referee: Arc<R>) {
        let target = self.target.name();
        let place = format!("{target} {} {}", self.due.family, self.due.account);
        // What is free, each gateway asks for itself.
        let free = match self.due.doubt {
            Doubt::Answer => None,
            Doubt::Connection | Doubt::Key => self.reach().await,
        };
        let asks_alone =
            free.is_some() || self.due.doubt == Doubt::Connection || self.has_own_price();
        if !asks_alone {
            match referee.lease(&target, &place).await {
                Some(Lease::Ours { spent }) => {
                    let purse = &self.pool.purse;
                    purse.known(&self.target.model, spent, today());
                }
                Some(Lease::Theirs(heard)) => return self.hear(heard),
                None => return self.hear(None),
            }
        }
        let found = match (free, self.due.doubt) {
            (Some(found), _) => Some(found),
            (None, Doubt::Answer) => self.reach().await,
            (None, Doubt::Connection | Doubt::Key) => None,
        };
        let found = match found {
            Some(found) => found,
            None => self.ask().await,
        };
        let ProbeResult {
            verdict,
            cost,
            reason,
        } = found;
        self.fails(verdict, self.sent);
        self.health
            .probed(&self.due, self.sent, verdict, cost, reason);
        if let Some(words) = referee::words(verdict).filter(|_| !asks_alone) {
            referee.tell(&place, &words).await;
        }
        if let Some(cost) = cost.filter(|cost| cost.is_positive()) {
            referee.paid(&target, cost).await;
        }
    }

    /// Says so if what was sent at `sent` shows that the target is out.
    fn fails(&self, verdict: ProbeVerdict, sent: Instant) {
        let failed = matches!(verdict, ProbeVerdict::Failed(_));
        if failed && self.health.is_out(sent, Instant::now()) {
            let target = self.target.name();
            self.signals.outages.tell(Outage { target, sent });
        }
    }

    /// Another gateway asks. What it found long ago says nothing about our customers' failures of now.
    fn hear(&self, heard: Option<Heard>) {
        let now = Instant::now();
        let recent = heard.filter(|heard| heard.known <= TRY_EVERY);
        let found = recent.and_then(|heard| {
            let asked = now.checked_sub(heard.asked).unwrap_or(now);
            Some((heard.number, asked, referee::verdict(&heard.found)?))
        });
        if let Some((_, sent, verdict)) = found {
            self.fails(verdict, sent);
        }
        self.health.heard(&self.due, found);
    }

    /// Whether a request has a price of its own: then we never ask.
    fn has_own_price(&self) -> bool {
        self.rates.per_request.is_positive() || self.rates.per_image.is_positive()
    }

    /// Asks for the list of models. It decides about the connection, and for a refused key: some services have no list, or refuse it to
    /// keys that may use the models.
    async fn reach(&self) -> Option<ProbeResult> {
        let (family, account) = (self.due.family, self.due.account);
        let reached = match self.pool.list(family, account) {
            Ok(Some(request)) => timeout(TRY_EVERY, attempt::send(request)).await,
            Ok(None) | Err(_) => return None,
        };
        match reached {
            Ok(Err(failure @ AttemptFailure::Unsent(_))) => Some(self.failed(&failure, None)),
            Ok(Err(AttemptFailure::Own(_))) => Some(ProbeVerdict::Nothing.into()),
            Ok(_) if self.due.doubt == Doubt::Connection => Some(ProbeVerdict::Reached.into()),
            Ok(Ok(reply)) if self.due.doubt == Doubt::Key && reply.status == 200 => {
                Some(ProbeVerdict::Listed.into())
            }
            _ => None,
        }
    }

    /// Asks for the smallest answer, if that may be paid.
    async fn ask(&self) -> ProbeResult {
        let unasked = ProbeVerdict::Unasked.into();
        let limit = match self.route.call {
            Some(_) => 0,
            None => self.due.family.protocol().least_output,
        };
        let most = price(&self.rates, INPUT, limit.into());
        let Some(most) = most.filter(|_| !self.has_own_price()) else {
            return unasked;
        };
        let account = self.pool.account(self.due.account);
        let Some(place) = account.and_then(|account| account.place(OURSELVES)) else {
            // Every place serves somebody.
            return ProbeVerdict::Nothing.into();
        };
        let (today, model) = (today(), &self.target.model);
        let budget = self.pool.provider.probe_budget;
        if !self.pool.purse.take(model, most, today, budget) {
            return unasked;
        }
        let answer = self.answer(limit).await;
        drop(place);
        let found = self.judge(answer, most);
        let cost = found.cost.unwrap_or_default();
        self.pool.purse.correct(model, most, cost, today);
        found
    }

    /// The answer to the question; `None` if it does not come in the time that a customer would wait, or much later than others did.
    async fn answer(&self, limit: u32) -> Option<Result<Begun, AttemptFailure>> {
        let (provider, family) = (&self.pool.provider, self.due.family);
        let protocol = family.protocol();
        let field = protocol.limit_field(self.target.fit.chat_limit, None);
        let question = match self.route.call {
            Some(call) => call.dialect().question(&self.target.model, WORDS),
            None => protocol.write_question_as(&self.target.model, WORDS, (field, limit)),
        };
        let prepared = Prepared {
            body: vec![Bytes::from(question)],
            parts: 1,
            ..Prepared::default()
        };
        let call = UpstreamCall::of_ourselves(&self.route, family);
        let room = self.answers.share(OURSELVES, usize::MAX);
        let asked = (&call, self.due.account);
        let asking = attempt::attempt(
            &self.pool,
            &self.simulated,
            asked,
            &self.target,
            &prepared,
            room,
        );
        let patience = self.health.patience(self.sent);
        let patience = patience.unwrap_or(provider.timeouts.first_byte);
        timeout(patience, asking).await.ok()
    }

    fn judge(&self, answer: Option<Result<Begun, AttemptFailure>>, most: Amount) -> ProbeResult {
        let well = |verdict, cost| ProbeResult {
            verdict,
            cost: Some(cost),
            reason: None,
        };
        match answer {
            Some(Ok(begun)) => {
                let counted = match begun {
                    Begun::Whole(_, facts, _) => self.cost(&facts.usage),
                    Begun::Stream(..) => None,
                };
                well(ProbeVerdict::Passed, counted.unwrap_or(most))
            }
            // It refuses a parameter, so it works.
            Some(Err(AttemptFailure::Client { usage, .. })) => well(
                ProbeVerdict::Accepted,
                self.cost(&usage).unwrap_or(Amount::ZERO),
            ),
            Some(Err(AttemptFailure::Own(_))) => ProbeVerdict::Nothing.into(),
            Some(Err(failure)) => {
                let billed = failure.may_be_billed();
                self.failed(&failure, Some(if billed { most } else { Amount::ZERO }))
            }
            None if self.health.is_busy(Instant::now()) => ProbeResult {
                cost: Some(most),
                ..ProbeVerdict::Nothing.into()
            },
            None => {
                let late =
                    AttemptFailure::Broken("no answer to our own request in time".to_owned());
                self.failed(&late, Some(most))
            }
        }
    }

    fn failed(&self, failure: &AttemptFailure, cost: Option<Amount>) -> ProbeResult {
        let fault = failure.fault().unwrap_or_default();
        let reason = redact::for_operator(&failure.reason(), &self.route);
        self.health.judge(self.due.place(), failure, &reason);
        ProbeResult {
            verdict: ProbeVerdict::Failed(fault),
            cost,
            reason: Some(reason.labelled(failure.class())),
        }
    }

    /// What the provider counted, at the operator's prices.
    fn cost(&self, usage: &WireUsage) -> Option<Amount> {
        price(&self.rates, usage.input?, usage.output?)
    }
}

impl From<ProbeVerdict> for ProbeResult {
    fn from(verdict: ProbeVerdict) -> Self {
        Self {
            verdict,
            cost: None,
            reason: None,
        }
    }
}

/// The day whose budget is used.
fn today() -> i64 {
    clock::now().hour() / 24
}

fn price(rates: &Rates, input: u64, output: u64) -> Option<Amount> {
    Amount::times(rates.input, input)?.checked_add(Amount::times(rates.output, output)?)
}

//! Calls to providers. The only room that uses reqwest; it knows nothing about money.
//!
//! [`Upstreams::dispatch`] tries the targets of a route in order and returns only after the first *frames* of a good answer (a 200
//! can begin with an error, or have one behind an opening that shows nothing), or the last failure. After that there is no retry: a customer never gets the start of two answers.
//! Dropping an [`UpstreamAnswer`] closes the upstream connection immediately.

mod account_use;
mod accounts;
mod additions;
mod attempt;
mod breaker;
mod classify;
mod client;
mod coding;
mod conversations;
mod dispatch;
mod health;
mod network;
pub mod online;
mod opening;
mod order;
mod organisations;
mod otherwise;
mod outage;
mod pieces;
mod places;
mod probe;
mod probing;
mod progress;
mod purse;
pub mod redact;
mod referee;
mod reply;
mod retry;
mod route;
mod secret_forms;
mod serving;
mod signs;
mod simulator;
mod stream;
#[cfg(test)]
mod tests;
pub mod trial;
mod trouble;

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use bytes::Bytes;
use farebox_protocol::{
    Additions, AnswerFacts, CallKind, Family, Frame, UpstreamError, WireUsage, translate,
};
use tokio::time::Instant;

use crate::config::{Config, Provider, Rates, Route, Target};
pub use account_use::AccountSeen;
pub use breaker::BreakerState;
pub use classify::{FailureClass, GivenUp};
pub use client::plain_client;
use client::{Pool, Trust};
use conversations::Conversations;
use farebox_door::byte_room::{ByteRoom, ByteShare, Holder};
use farebox_door::memory;
use health::{Health, Signals};
pub use health::{Probes, TargetState};
pub use order::{AccountPlace, AskOrder, Conversation};
pub use organisations::Organisations;
pub use otherwise::{Refusals, RefusedPin};
pub use outage::Outage;
pub use places::TokenShare;
pub use progress::{Progress, ProgressStage};
use redact::{CustomerError, Redacted};
pub use referee::{Heard, Lease, Referee};
pub use secret_forms::SecretForms;
pub use serving::ServingAccount;
pub use signs::{Trouble, Wrong};
#[cfg(test)]
pub(crate) use simulator::Recorded;
use simulator::Simulated;
pub use stream::{FrameStream, StreamBroken, TargetError};

/// Connections and health of every target; survives reloads for targets that did not change.
pub struct Upstreams {
    trust: Trust,
    simulated: Arc<Simulated>,
    known: RwLock<Pools>,
    /// Where conversations are.
    conversations: Conversations,
    /// Bytes of answers in flight over all requests.
    answers: Arc<ByteRoom>,
    signals: Arc<Signals>,
}

/// The state kept for one snapshot.
#[derive(Default)]
struct Pools {
    pools: HashMap<String, Arc<Pool>>,
    /// In the order of the files.
    targets: Vec<ListedTarget>,
    /// Positions in `targets` by slug.
    by_slug: HashMap<String, Vec<usize>>,
}

/// One target of one slug and its health.
#[derive(Clone)]
struct ListedTarget {
    slug: String,
    target: Target,
    health: Arc<Health>,
    /// What a request of our own costs the operator.
    rates: Rates,
    /// The call that its model is for.
    call: Option<CallKind>,
}

/// What a target is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetOperation {
    /// Make an answer.
    Generate,
    /// Count the input's tokens, for free.
    CountTokens,
}

/// One request to send somewhere.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamCall<'a> {
    /// Where it may go.
    pub route: &'a Route,
    /// The customer: its failures pause a target for it alone.
    pub holder: Holder,
    /// The customer's family: it decides which targets are asked, in which order and in which family.
    pub caller: Family,
    /// The family of the current target: its path, its authentication, and how its answer is read. The caller's own until a target
    /// is chosen.
    pub family: Family,
    /// What is asked for.
    pub operation: TargetOperation,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// The family whose targets are asked only after all others.
    pub last: Option<Family>,
    /// Estimate of the tokens it will use, for `max_tokens_per_minute`.
    pub tokens: u64,
    /// When the request has to have an answer, if at any time.
    pub until: Option<Instant>,
    /// Set when the caller has gone: the current attempt continues, and no other starts.
    pub abandoned: Option<&'a AtomicBool>,
    /// What its targets have refused, if it may be repeated otherwise.
    pub refusals: Option<&'a Refusals>,
    /// Notes where it is, for the operator.
    pub progress: Option<&'a Progress>,
}

impl<'a> UpstreamCall<'a> {
    /// A whole request to the targets of its own family, with nothing to remember between its tries.
    pub fn new(
        route: &'a Route,
        holder: Holder,
        family: Family,
        operation: TargetOperation,
    ) -> Self {
        Self {
            route,
            holder,
            caller: family,
            family,
            operation,
            stream: false,
            last: None,
            tokens: 0,
            until: None,
            abandoned: None,
            refusals: None,
            progress: None,
        }
    }

    /// A small whole request of our own.
    fn of_ourselves(route: &'a Route, family: Family) -> Self {
        Self::new(route, probe::OURSELVES, family, TargetOperation::Generate)
    }
}

impl UpstreamCall<'_> {
    /// The call that is asked for, if it is no conversation.
    fn kind(&self) -> Option<CallKind> {
        let is_made = self.operation == TargetOperation::Generate;
        self.route.call.filter(|_| is_made)
    }

    /// The customer's family, if the current target is of another.
    fn foreign_to(&self) -> Option<Family> {
        (self.family != self.caller).then_some(self.caller)
    }

    fn is_abandoned(&self) -> bool {
        self.abandoned
            .is_some_and(|abandoned| abandoned.load(Ordering::Relaxed))
    }
}

/// Builds the request for one target in one family, after these attempts.
pub trait Prepare: Send {
    /// `None` when this target cannot carry it, or there is no money for it there: then it is passed over.
    fn prepare<'a>(
        &'a mut self,
        target: &'a Target,
        family: Family,
        failed: &'a [Attempt],
    ) -> Preparing<'a>;
}

/// A request that is being built.
pub type Preparing<'a> = Pin<Box<dyn Future<Output = Option<Prepared>> + Send + 'a>>;

/// Built at once, and alike after any attempts.
impl<F: FnMut(&Target, Family) -> Option<Prepared> + Send> Prepare for F {
    fn prepare<'a>(
        &'a mut self,
        target: &'a Target,
        family: Family,
        _failed: &'a [Attempt],
    ) -> Preparing<'a> {
        Box::pin(std::future::ready(self(target, family)))
    }
}

/// A request for one target, built by the caller for each try.
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// The body, in consecutive pieces.
    pub body: Vec<Bytes>,
    /// Headers other than authentication and content type: lower-case name and value.
    pub headers: Vec<(String, Bytes)>,
    /// Parts that the answer to a call must have.
    pub parts: u32,
    /// It asks for a stream, whatever the customer asked for.
    pub streams: bool,
    /// Fields that are in it because they are pinned.
    pub pinned: Vec<&'static str>,
}

/// A good answer that has begun.
#[derive(Debug)]
pub struct UpstreamAnswer {
    /// As it was asked: an earlier refusal may have changed its fit.
    pub target: Target,
    /// The family it answered in.
    pub family: Family,
    /// Which of the provider's accounts.
    pub account: ServingAccount,
    /// Tries that failed before it.
    pub attempts: Vec<Attempt>,
    /// The answer itself.
    pub content: AnswerContent,
    /// The provider's secrets, which are redacted from the answer's id.
    pub secrets: SecretForms,
    /// What the target may add to it.
    pub additions: Option<Arc<dyn Additions>>,
    /// Its part of the provider's tokens in a minute, to be corrected by what it used.
    pub tokens: Option<TokenShare>,
}

/// Whole or streamed.
#[derive(Debug)]
pub enum AnswerContent {
    /// The whole body, its facts, and its share of the memory budget, which must live as long as the body.
    Whole(Bytes, Box<AnswerFacts>, ByteShare),
    /// Its first frames, already checked not to be an error, and the rest.
    Stream(Vec<Frame>, FrameStream),
}

/// Why no target answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DispatchError {
    /// The last target asked blames the customer's request (400 or 413). The error is redacted: nothing in it identifies the
    /// provider's account.
    ClientFault {
        /// 400 or 413 (or 422, sent on as 400).
        status: u16,
        /// The upstream's wording.
        error: CustomerError,
        /// What the target counted for it all the same.
        usage: Box<WireUsage>,
        /// The target that refused it.
        target: Target,
        /// Tries that failed before.
        attempts: Vec<Attempt>,
    },
    /// We gave up on a whole answer while its provider worked on it.
    GivenUp {
        /// Why we gave up instead of asking another target.
        why: GivenUp,
        /// The target that worked on it.
        target: Target,
        /// For how long.
        worked: Duration,
        /// This try, and the failed ones before it.
        attempts: Vec<Attempt>,
    },
    /// The answer is not what was asked for, or no target could be reached.
    NoTarget {
        /// For the log and metrics, never for the customer.
        attempts: Vec<Attempt>,
        /// When the first breaker or upstream says to come back.
        retry_after: Option<Duration>,
    },
    /// The request's time was over before any target answered.
    TooLate {
        /// The tries until then; the last one had not ended.
        attempts: Vec<Attempt>,
    },
}

/// One try that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// `provider/model`.
    pub target: String,
    /// What kind of failure it is.
    pub class: FailureClass,
    /// What went wrong, in words for the operator's log. Never a secret.
    pub reason: Redacted,
    /// How long the target may have worked on it, if it may bill that.
    pub worked: Option<Duration>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}: {}", self.target, self.class, self.reason)
    }
}

/// The most bytes of answers in flight, less where the process may have little memory: when they are used up, reading from upstreams
/// waits.
const ANSWER_BYTES_IN_FLIGHT: usize = 256 << 20;
impl Upstreams {
    /// Pools for every provider of a snapshot.
    ///
    /// # Errors
    /// When a client cannot be built.
    pub fn new(config: &Config) -> Result<Self, String> {
        let (trust, signals) = (Trust::load()?, Arc::default());
        let state = Pools::following(&Pools::default(), config, &trust, &signals)?;
        Ok(Self {
            trust,
            simulated: Arc::default(),
            known: RwLock::new(state),
            conversations: Conversations::default(),
            answers: ByteRoom::of_wholes(
                memory::share_of_flight(1, 3, ANSWER_BYTES_IN_FLIGHT),
                attempt::MAX_CALL_BYTES,
            ),
            signals,
        })
    }

    fn known(&self) -> RwLockReadGuard<'_, Pools> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a new snapshot: unchanged targets keep connections and health.
    pub fn reconcile(&self, config: &Config) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match Pools::following(&known, config, &self.trust, &self.signals) {
            Ok(state) => *known = state,
            Err(error) => tracing::error!(error, "providers keep their old connections"),
        }
    }

    /// Whether a target (`provider/model`) of a slug is paused for all customers in some family: then its failures are evidence
    /// against it, whoever met them.
    pub fn is_paused(&self, slug: &str, target: &str) -> bool {
        let known = self.known();
        let mut listed = known.by_slug.get(slug).into_iter().flatten();
        listed.any(|&at| {
            known
                .targets
                .get(at)
                .is_some_and(|listed| listed.target.name() == target && listed.health.is_paused())
        })
    }

    /// The connections of a target's provider.
    fn pool_of(&self, target: &Target) -> Option<Arc<Pool>> {
        self.pool_named(&target.provider.name)
    }

    fn pool_named(&self, provider: &str) -> Option<Arc<Pool>> {
        self.known().pools.get(provider).cloned()
    }

    /// Waits until a request of our own shows that a target is out. One task at a time may wait.
    pub async fn next_outage(&self) -> Outage {
        self.signals.outages.next().await
    }

    /// Whether we may ask a target (`provider/model`) ourselves.
    pub fn may_ask(&self, target: &str) -> bool {
        let known = self.known();
        let mut listed = known.targets.iter();
        listed.any(|listed| {
            let provider = &listed.target.provider;
            let rates = &listed.rates;
            let own_price = rates.per_request.is_positive() || rates.per_image.is_positive();
            listed.target.name() == target
                && provider.probe_budget.is_positive()
                && !own_price
                && listed.health.can_ask()
        })
    }

    /// Makes the built-in provider play a recorded stream from now on.
    #[cfg(test)]
    pub(crate) fn play(&self, recorded: Recorded) {
        *self.simulated.recorded.lock().unwrap() = Some(recorded);
    }

    /// Bytes of answers in flight, and the limit.
    pub fn answer_bytes(&self) -> (usize, usize) {
        (self.answers.in_use(), self.answers.total())
    }

    /// What is known about a target.
    fn health(&self, route: &Route, target: &Target) -> Option<Arc<Health>> {
        self.known().health(&route.slug, target)
    }

    /// Pool and health of a target. A request keeps its snapshot, so around a reload its target may be newer or older than the one
    /// here; it then gets a temporary pool.
    fn find(&self, route: &Route, target: &Target) -> Result<(Arc<Pool>, Arc<Health>), String> {
        let known = self.known();
        let pool = match known
            .pools
            .get(&target.provider.name)
            .filter(|pool| same(&pool.provider, &target.provider))
        {
            Some(pool) => Arc::clone(pool),
            None => Arc::new(Pool::new(Arc::clone(&target.provider), &self.trust, None)?),
        };
        let health = known.health(&route.slug, target).unwrap_or_else(|| {
            let accounts = Arc::clone(&pool.accounts);
            Arc::new(Health::new(Arc::clone(&self.signals), accounts))
        });
        Ok((pool, health))
    }
}

impl fmt::Debug for Upstreams {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Upstreams")
            .field("states", &self.states())
            .finish_non_exhaustive()
    }
}

impl Pools {
    /// The state for a snapshot, keeping what did not change.
    fn following(
        before: &Self,
        config: &Config,
        trust: &Trust,
        signals: &Arc<Signals>,
    ) -> Result<Self, String> {
        let mut state = Self::default();
        for provider in &config.providers {
            let old = before.pools.get(&provider.name);
            let pool = match old.filter(|old| same(&old.provider, provider)) {
                Some(old) => Arc::clone(old),
                None => Arc::new(Pool::new(
                    Arc::clone(provider),
                    trust,
                    old.map(Arc::as_ref),
                )?),
            };
            state.pools.insert(provider.name.clone(), pool);
        }
        for model in &config.catalog.models {
            let route = &model.route;
            for target in &route.targets {
                let health = before.health(&route.slug, target).unwrap_or_else(|| {
                    let pool = state.pools.get(&target.provider.name);
                    let accounts = pool.map(|pool| Arc::clone(&pool.accounts));
                    Arc::new(Health::new(
                        Arc::clone(signals),
                        accounts.unwrap_or_default(),
                    ))
                });
                let price = target.cost.as_deref().unwrap_or(&model.price);
                state
                    .by_slug
                    .entry(route.slug.clone())
                    .or_default()
                    .push(state.targets.len());
                state.targets.push(ListedTarget {
                    slug: route.slug.clone(),
                    target: target.clone(),
                    health,
                    rates: price.base,
                    call: route.call,
                });
            }
        }
        Ok(state)
    }

    fn health(&self, slug: &str, target: &Target) -> Option<Arc<Health>> {
        let positions = self.by_slug.get(slug)?.iter();
        let mut listed = positions.filter_map(|&at| self.targets.get(at));
        let found = listed.find(|known| {
            known.target.model == target.model && same(&known.target.provider, &target.provider)
        })?;
        Some(Arc::clone(&found.health))
    }
}

/// A refusal as the customer may read it, before a stream or inside it. One of a translated request is in the words of its `caller`'s
/// family: its own names the target's fields, which the customer never wrote.
fn as_told(error: UpstreamError, route: &Route, caller: Option<Family>) -> CustomerError {
    let error = match caller {
        None => error,
        Some(caller) => UpstreamError {
            kind: None,
            param: None,
            ..translate::error_for(caller, error)
        },
    };
    redact::for_customer(&error, route)
}

fn same(one: &Arc<Provider>, other: &Arc<Provider>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

//! Which account serves a request: what it counts there, and where that leaves the request's conversation.

use std::sync::Arc;

use tokio::time::Instant;

use super::account_use::{AccountCounts, AccountSeen};
use super::client::Pool;
use super::conversations::Seat;
use super::order::{AccountPlace, AskOrder};
use super::{TargetOperation, UpstreamCall, Upstreams};
use crate::config::Target;

/// The account that serves a request.
#[derive(Debug, Clone)]
pub struct ServingAccount {
    /// Its number at its provider, from 0.
    pub number: usize,
    counts: Arc<AccountCounts>,
    /// The conversation that is away from home there.
    away: Option<(u64, Seat)>,
}

impl Upstreams {
    /// Notes that an answer has begun at a place.
    pub(super) fn serves(
        &self,
        (call, target): (&UpstreamCall<'_>, &Target),
        (places, place): (&AskOrder, AccountPlace),
        pool: &Pool,
    ) -> ServingAccount {
        let account = pool.account(place.account);
        let mut serving = ServingAccount {
            number: place.account,
            counts: account.map_or_else(Arc::default, |account| Arc::clone(&account.counts)),
            away: None,
        };
        // Counting tokens caches nothing.
        if call.operation != TargetOperation::Generate {
            return serving;
        }
        serving.counts.began();
        let Some((home, conversation)) = places.home else {
            return serving;
        };
        // What nobody caches keeps no place.
        if home == place && conversation.cached_for.is_zero() {
            return serving;
        }
        let seat = Seat::of(target, place.account);
        let first = call.route.targets.get(home.target);
        let is_home =
            home == place || first.is_some_and(|first| Seat::of(first, home.account) == seat);
        let (whole, cached_for) = (conversation.whole, conversation.cached_for);
        let now = Instant::now();
        let left = self
            .conversations
            .began(whole, (seat, is_home), cached_for, now);
        if left {
            let pool = first.and_then(|first| self.pool_of(first));
            let account = pool.as_deref().and_then(|pool| pool.account(home.account));
            account.inspect(|account| account.counts.spilled());
        }
        serving.away = (!is_home).then_some((whole, seat));
        serving
    }

    /// Notes what a provider counted of a prompt that was sent at `sent`, and how much of it was cached.
    pub fn counted(&self, serving: &ServingAccount, sent: Instant, (input, cached): (u64, u64)) {
        serving.counts.counted(input, cached);
        if let Some((conversation, seat)) = serving.away {
            let now = Instant::now();
            self.conversations
                .counted(conversation, seat, (sent, cached > 0), now);
        }
    }

    /// What each account of a provider has done.
    pub fn accounts(&self, provider: &str) -> Vec<AccountSeen> {
        let pool = self.pool_named(provider);
        let uses = pool.as_deref().map(Pool::account_uses).unwrap_or_default();
        uses.iter().map(|account| account.counts.seen()).collect()
    }
}

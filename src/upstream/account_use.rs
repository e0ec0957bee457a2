//! One account of a provider: what it may take at once and in a minute, and what it has done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::places::{LimitedPlaces, TakenPlace, TokenShare};
use crate::config::Provider;
use farebox_door::byte_room::Holder;

/// One account's limits and counts.
#[derive(Debug)]
pub(super) struct AccountUse {
    places: Option<Arc<LimitedPlaces>>,
    tokens: Option<Arc<LimitedPlaces>>,
    pub(super) counts: Arc<AccountCounts>,
}

/// What an account has done since the gateway started.
#[derive(Debug, Default)]
pub(super) struct AccountCounts {
    requests: AtomicU64,
    input: AtomicU64,
    cached: AtomicU64,
    spills: AtomicU64,
}

/// The same, as an observer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountSeen {
    /// Answers that it began.
    pub requests: u64,
    /// Tokens of prompts that it counted …
    pub input: u64,
    /// … and those of them that it had cached.
    pub cached: u64,
    /// Conversations that left it, because it could not take them.
    pub spills: u64,
}

impl AccountUse {
    /// The account with this number in a provider's new definition: running requests keep counting against an unchanged limit.
    pub(super) fn following(before: Option<(&Provider, &Self)>, provider: &Provider) -> Self {
        let kept = before.filter(|(old, _)| old.max_concurrent == provider.max_concurrent);
        let kept_tokens =
            before.filter(|(old, _)| old.max_tokens_per_minute == provider.max_tokens_per_minute);
        let places = kept.and_then(|(_, old)| old.places.clone());
        let tokens = kept_tokens.and_then(|(_, old)| old.tokens.clone());
        Self {
            places: places.or_else(|| provider.max_concurrent.map(LimitedPlaces::at_once)),
            tokens: tokens.or_else(|| {
                let most = provider.max_tokens_per_minute;
                most.map(LimitedPlaces::in_a_minute)
            }),
            counts: before.map_or_else(Arc::default, |(_, old)| Arc::clone(&old.counts)),
        }
    }

    /// A place among its concurrent requests, if there is one; `Some(None)` if it has no limit.
    pub(super) fn place(&self, holder: Holder) -> Option<Option<TakenPlace>> {
        match &self.places {
            Some(places) => places.take(holder, 1).map(Some),
            None => Some(None),
        }
    }

    /// The same for its tokens in a minute.
    pub(super) fn token_share(&self, holder: Holder, tokens: u64) -> Option<Option<TokenShare>> {
        match &self.tokens {
            Some(places) => places.take(holder, tokens).map(TokenShare).map(Some),
            None => Some(None),
        }
    }

    /// As [`AccountUse::place`], waiting for it.
    pub(super) async fn wait_for_place(&self, holder: Holder) -> Option<TakenPlace> {
        let places = self.places.as_ref()?;
        Some(places.wait(holder, 1).await)
    }

    /// As [`AccountUse::token_share`], waiting for it.
    pub(super) async fn wait_for_tokens(&self, holder: Holder, tokens: u64) -> Option<TokenShare> {
        let places = self.tokens.as_ref()?;
        Some(TokenShare(places.wait(holder, tokens).await))
    }
}

impl AccountCounts {
    /// An answer has begun.
    pub(super) fn began(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// The provider has counted a prompt.
    pub(super) fn counted(&self, input: u64, cached: u64) {
        self.input.fetch_add(input, Ordering::Relaxed);
        self.cached.fetch_add(cached, Ordering::Relaxed);
    }

    /// A conversation has left.
    pub(super) fn spilled(&self) {
        self.spills.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn seen(&self) -> AccountSeen {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AccountSeen {
            requests: read(&self.requests),
            input: read(&self.input),
            cached: read(&self.cached),
            spills: read(&self.spills),
        }
    }
}

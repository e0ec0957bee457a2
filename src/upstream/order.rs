//! In which order the places of a route are asked: its targets, and at each the accounts of its provider.
//!
//! Prompt caches belong to accounts, so a conversation keeps its account. Which one is decided by rendezvous hashing: each account
//! draws lots with the conversation, as many as it has weight, and the highest lot wins. Every gateway of a fleet draws the same ones
//! without asking the others; an account that is added takes only the conversations that it wins, and one that is taken away leaves
//! only its own to the others. Where a conversation is for now, if not at home: [`conversations`](super::conversations).

use std::cmp::Reverse;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use farebox_protocol::Family;
use tokio::time::Instant;

use super::conversations::Seat;
use super::{UpstreamCall, Upstreams};
use crate::config::{KeysBy, Provider, Target};

/// What decides the account of a request at a provider with several, and its target while its first one cannot take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation {
    /// The same for all requests of one conversation, and for those of no other customer or slug.
    pub whole: u64,
    /// The request's own.
    pub request: u64,
    /// How long providers keep its prompt cached after each use.
    pub cached_for: Duration,
}

/// A place where a request may go: a target of its route, the family in which it is asked, and an account of its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountPlace {
    /// The target's number in its route.
    pub target: usize,
    /// The family in which it is asked.
    pub family: Family,
    /// The account's number at its provider.
    pub account: usize,
    /// What the account drew: the highest lot comes first.
    lot: u64,
}

/// The places where one request may go.
#[derive(Debug, Clone, Default)]
pub struct AskOrder {
    /// In the order in which they are asked.
    pub all: Vec<AccountPlace>,
    /// Where it would go if nothing stood in the way; none if nothing has to be decided.
    pub(super) home: Option<(AccountPlace, Conversation)>,
    /// Its prompt is probably cached at the first of them.
    pub(super) warm: bool,
}

impl Upstreams {
    /// Where a request may go: the targets that can carry it in the route's order, each in the first family that does, but those that
    /// do not work for this customer last; at each the accounts in the order that the conversation draws. A place where it is for now
    /// comes before all.
    pub fn order(
        &self,
        call: &UpstreamCall<'_>,
        conversation: Option<Conversation>,
        carries: impl Fn(&Target, Family) -> bool,
    ) -> AskOrder {
        let accounts = call.route.targets.iter();
        let accounts = accounts.map(|target| target.provider.keys.accounts());
        let mut all: Vec<AccountPlace> = Vec::with_capacity(accounts.sum());
        for (target, family) in call.route.candidates_with_last(call.caller, call.last) {
            let mut known = call.route.targets.iter();
            let Some(number) = known.position(|known| std::ptr::eq(known, target)) else {
                continue;
            };
            // A target that speaks several families is asked in only one of them.
            if all.iter().any(|place| place.target == number) || !carries(target, family) {
                continue;
            }
            let (keys, first) = (&target.provider.keys, all.len());
            let seed = conversation.map(|conversation| match keys.by {
                KeysBy::Conversation => conversation.whole,
                KeysBy::Request => conversation.request,
            });
            let mut weights = keys.iter().map(|key| key.weight);
            all.extend((0..keys.accounts()).map(|account| {
                let weight = weights.next().unwrap_or(1);
                AccountPlace {
                    target: number,
                    family,
                    account,
                    lot: seed.map_or(0, |seed| highest(seed, account, weight)),
                }
            }));
            let places = all.get_mut(first..).unwrap_or_default();
            places.sort_by_key(|place| Reverse(place.lot));
        }
        let first = all.first().copied();
        let home = first.zip(conversation).filter(|_| all.len() > 1);
        let mut places = AskOrder {
            all,
            home,
            warm: false,
        };
        self.doubted_last(call, &mut places.all);
        self.kept_first(call, &mut places);
        places
    }

    /// Puts targets behind the others that work for us, but not for this customer.
    fn doubted_last(&self, call: &UpstreamCall<'_>, places: &mut [AccountPlace]) {
        let of_several = |places: &[AccountPlace]| {
            let first = places.first().map(|place| place.target);
            places.iter().any(|place| Some(place.target) != first)
        };
        if !of_several(places) {
            return;
        }
        places.sort_by_cached_key(|place| {
            let target = call.route.targets.get(place.target);
            let health = target.and_then(|target| self.health(call.route, target));
            health.is_some_and(|health| health.doubts(place.family, call.holder))
        });
    }

    /// Puts the place first where the conversation is for now.
    fn kept_first(&self, call: &UpstreamCall<'_>, places: &mut AskOrder) {
        let Some((home, conversation)) = places.home else {
            return;
        };
        let found = self.conversations.find(conversation.whole, Instant::now);
        let Some(found) = found else {
            return;
        };
        let seat = |place: &AccountPlace| {
            let target = call.route.targets.get(place.target)?;
            Some(Seat::of(target, place.account))
        };
        // What is remembered as its home may no longer be that, since the files have changed.
        if found.is_home && seat(&home) != Some(found.seat) {
            return;
        }
        // An account or a target may be gone.
        let mut all = places.all.iter();
        let Some(at) = all.position(|place| seat(place) == Some(found.seat)) else {
            return;
        };
        if !found.is_home {
            let kept = places.all.remove(at);
            places.all.insert(0, kept);
        }
        // Where each request gets an account anew, no account has its prompt.
        places.warm = found.seat.account.is_some() && (at == 0 || !found.is_home);
    }
}

impl Seat {
    /// The place of a target's account, as long as both are there. Where each request gets an account anew, none is kept.
    pub(super) fn of(target: &Target, account: usize) -> Self {
        let Provider { name, keys, .. } = &*target.provider;
        let mut hash = DefaultHasher::new();
        (name, &target.model).hash(&mut hash);
        Self {
            target: hash.finish(),
            account: (keys.by == KeysBy::Conversation).then_some(account),
        }
    }
}

/// The highest lot that an account of a weight draws.
fn highest(seed: u64, account: usize, weight: u32) -> u64 {
    let lots = (0..u64::from(weight)).map(|lot| nth(seed, (account as u64) << 32 | lot));
    lots.max().unwrap_or_default()
}

/// The number at this position of the SplitMix64 sequence with this seed.
fn nth(seed: u64, position: u64) -> u64 {
    let step = 0x9e37_79b9_7f4a_7c15_u64;
    let mut mixed = seed.wrapping_add(step.wrapping_mul(position.wrapping_add(1)));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

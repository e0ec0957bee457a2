//! How much of a prompt its provider has probably cached, told from the same customer's other requests to the same target.
//!
//! A provider that counts only at the end of a stream tells nobody what a customer who left has used, and one that has not counted yet
//! may find a large prompt cached or not. But what it was sent a moment ago is still cached while that lives, as far as the next prompt
//! begins alike. Whoever leaves all its answers is believed three times; then a count has to show it. Kept in memory: hashes and
//! counts, no text. Pure; the clock is passed in.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use farebox_ledger::Amount;
use farebox_protocol::talk::{Beginning, Beginnings};

use super::lifetime::LEAST_CACHED;

/// Prompts of one customer that are remembered.
// As many as a customer's requests run at once where nobody has set it: each of them finds what it continues.
const PROMPTS: usize = 64;
/// Places of a prompt that are remembered; of a longer one, only some in between.
// With fewer, less of a long conversation counts as cached than is; each costs 24 bytes.
const PLACES: usize = 256;
/// The same of places with marks; no provider takes more than four.
const MARKS: usize = 8;
/// Places of all customers together: 24 MiB. Who comes when all are taken gives up its own first, so nobody drives out another.
const ALL_PLACES: usize = 1 << 20;
/// A request may arrive when what it begins like is no longer cached, so that a cache is not counted on to its last second.
const LATE: Duration = Duration::from_secs(10);
/// Ends in a row that nobody counted, from which on a prefix counts as fresh.
const UNCOUNTED: u8 = 3;
/// How long a prompt is looked for although one that continues it is remembered.
const LOOKED_FOR: Duration = Duration::from_secs(60);
/// How long a count can still take back what was booked as exposure.
const TAKEN_BACK: Duration = Duration::from_secs(60 * 60);

/// The places at which another prompt may part from this one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptPlaces {
    /// By their length.
    places: Vec<Beginning>,
    marks: Vec<Beginning>,
    /// What the whole prompt weighs.
    weight: u64,
    /// Whether only what is marked is cached.
    marked: bool,
}

impl PromptPlaces {
    /// Of all beginnings, so many that memory suffices; `marked`: its target caches what is marked.
    #[must_use]
    pub fn of(found: Beginnings, marked: bool) -> Self {
        // A power of two, so that the places of a prompt that has grown are still among those of its beginning.
        let step = found.all.len().div_ceil(PLACES).next_power_of_two();
        let last = found.all.len().saturating_sub(1);
        let kept = |(at, _): &(usize, Beginning)| at.is_multiple_of(step) || *at == last;
        let all = found.all.into_iter().enumerate();
        let mut marks = found.marks;
        marks.drain(..marks.len().saturating_sub(MARKS));
        Self {
            places: all.filter(kept).map(|(_, place)| place).collect(),
            marks,
            weight: found.weight,
            marked,
        }
    }

    fn len(&self) -> usize {
        self.places.len().saturating_add(self.marks.len())
    }

    fn has(&self, place: &Beginning) -> bool {
        let at = |own: &[Beginning]| own.iter().rev().any(|own| own.hash == place.hash);
        at(&self.places) || at(&self.marks)
    }

    /// The longest beginning in common that is cached: where marks say what is, up to the last mark that both have.
    fn common(&self, later: &Self) -> Option<Beginning> {
        let same = |own: &[Beginning], others: &[Beginning]| {
            let other = |own: &&Beginning| {
                others
                    .iter()
                    .rev()
                    .any(|other| (other.turn, other.hash) == (own.turn, own.hash))
            };
            own.iter().rev().find(other).copied()
        };
        match (self.marked, later.marked) {
            (true, true) => same(&self.marks, &later.marks),
            (false, false) => same(&self.places, &later.places),
            (true, false) | (false, true) => None,
        }
    }
}

/// A cache of prompts: a target's, or where its provider has several accounts, one of each. `N`: who keeps the target's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptCache<N> {
    /// The target's name.
    pub target: N,
    /// The account's number.
    pub account: Option<usize>,
}

impl<'a> PromptCache<&'a str> {
    /// The cache of a target that has but one.
    #[must_use]
    pub const fn of_target(target: &'a str) -> Self {
        Self {
            target,
            account: None,
        }
    }

    fn remembered(self) -> PromptCache<String> {
        PromptCache {
            target: self.target.to_owned(),
            account: self.account,
        }
    }
}

impl PromptCache<String> {
    fn is(&self, other: PromptCache<&str>) -> bool {
        self.account == other.account && self.target == other.target
    }
}

/// A request that was sent to a target.
#[derive(Debug, Clone, Copy)]
pub struct SentPrompt<'a> {
    /// Whose it is.
    pub customer: u64,
    /// Where it is cached.
    pub cache: PromptCache<&'a str>,
    /// What it says.
    pub places: &'a PromptPlaces,
    /// When it was sent there.
    pub sent: Instant,
}

/// What a provider counted of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedPrompt {
    /// All of it.
    pub input: u64,
    /// What it had cached of it.
    pub read: u64,
    /// What the request was charged.
    pub charge: Amount,
}

#[derive(Debug)]
struct RememberedPrompt {
    cache: PromptCache<String>,
    places: PromptPlaces,
    /// Its tokens: as they were counted, or else as they are likely.
    input: u64,
    sent: Instant,
    until: Instant,
    /// When its first text was shown: from then on the provider has read all of it.
    shown: Instant,
    /// Ends in a row, of this prompt and of those that begin like it, that nobody counted.
    uncounted: u8,
    /// What the last count of one that begins like this found: fresh, or not.
    fresh: bool,
}

impl RememberedPrompt {
    fn tokens(&self, of: &Beginning) -> u64 {
        let whole = u128::from(self.places.weight.max(1));
        let tokens = u128::from(self.input).saturating_mul(of.weight.into());
        let tokens = tokens.checked_div(whole).unwrap_or_default();
        u64::try_from(tokens).unwrap_or(u64::MAX).min(self.input)
    }

    fn is(&self, other: &SentPrompt<'_>) -> bool {
        self.sent == other.sent && self.places == *other.places
    }

    /// Whether a prompt is this one and perhaps more, so that nobody will look for this one any more.
    fn is_replaced_by(&self, later: &SentPrompt<'_>, now: Instant) -> bool {
        let whole = self.places.places.last();
        let continued = whole.is_some_and(|whole| later.places.has(whole));
        // Who was sent before the later one was shown may still look for it.
        let old = now.saturating_duration_since(self.shown) > LOOKED_FOR;
        self.cache.is(later.cache) && !self.places.marked && continued && old
    }
}

/// Exposure that was booked because nobody counted how much of a prompt was cached.
#[derive(Debug)]
struct Unconfirmed {
    cache: PromptCache<String>,
    place: Beginning,
    tokens: u64,
    difference: Amount,
    until: Instant,
}

#[derive(Debug, Default)]
struct CustomerPrompts {
    prompts: VecDeque<RememberedPrompt>,
    unconfirmed: VecDeque<Unconfirmed>,
}

/// A beginning in common with an earlier prompt that is long enough for a cache, and its tokens.
#[derive(Debug, Clone, Copy)]
struct Common {
    place: Beginning,
    tokens: u64,
    uncounted: u8,
    fresh: bool,
}

impl CustomerPrompts {
    fn size(&self) -> usize {
        self.prompts.iter().map(|one| one.places.len()).sum()
    }

    /// What begins like this longest, of what may still be cached.
    fn common(&self, of: &SentPrompt<'_>) -> Option<Common> {
        let cached = |one: &&RememberedPrompt| {
            one.cache.is(of.cache) && one.shown < of.sent && of.sent < one.until
        };
        let common = |one: &RememberedPrompt| {
            let place = one.places.common(of.places)?;
            Some(Common {
                place,
                tokens: one.tokens(&place),
                uncounted: one.uncounted,
                fresh: one.fresh,
            })
        };
        self.prompts
            .iter()
            .filter(cached)
            .filter_map(common)
            .filter(|common| common.tokens >= LEAST_CACHED)
            .max_by_key(|common| (common.place.weight, common.uncounted, common.fresh))
    }

    /// The prompt itself, if it is remembered, and all that begin like it for the most part.
    fn alike<'s>(
        &'s mut self,
        of: &'s SentPrompt<'_>,
        common: Option<Common>,
    ) -> impl Iterator<Item = &'s mut RememberedPrompt> {
        self.prompts.iter_mut().filter(move |one| {
            let mostly = |common: Common| {
                let place = common.place;
                one.places.has(&place) && place.weight.saturating_mul(2) >= one.places.weight
            };
            one.cache.is(of.cache) && (one.is(of) || common.is_some_and(mostly))
        })
    }
}

/// The last prompts of each customer.
#[derive(Debug, Default)]
pub struct Prefixes {
    customers: HashMap<u64, CustomerPrompts>,
    places: usize,
}

impl Prefixes {
    /// Tokens of a prompt that its target has probably cached; `None` if the customer has sent nothing like it there lately. `caches`:
    /// the target was counted to cache what nobody marked.
    pub fn cached(&self, of: &SentPrompt<'_>, caches: bool) -> Option<u64> {
        let common = self.common(of)?;
        let counts = (of.places.marked || caches) && common.uncounted < UNCOUNTED;
        counts.then_some(common.tokens)
    }

    /// The same before the prompt is sent, where no count has found it fresh since one found it cached.
    pub fn known(&self, of: &SentPrompt<'_>, caches: bool) -> Option<u64> {
        let fresh = self.common(of)?.fresh;
        self.cached(of, caches).filter(|_| !fresh)
    }

    /// Remembers a request whose first text was shown at `now`. What it begins like is believed of it, too. `input`: its tokens, as they
    /// are likely; `lifetime`: how long what it wrote is cached.
    pub fn shown(&mut self, of: &SentPrompt<'_>, input: u64, lifetime: Duration, now: Instant) {
        let common = self.common(of);
        self.make_room(of, now);
        if self.places.saturating_add(of.places.len()) > ALL_PLACES {
            return;
        }
        let Some(until) = of.sent.checked_add(lifetime.saturating_sub(LATE)) else {
            return;
        };
        self.places = self.places.saturating_add(of.places.len());
        let prompt = RememberedPrompt {
            cache: of.cache.remembered(),
            places: of.places.clone(),
            input,
            sent: of.sent,
            until,
            shown: now,
            uncounted: common.map_or(0, |common| common.uncounted),
            fresh: common.is_some_and(|common| common.fresh),
        };
        let customer = self.customers.entry(of.customer).or_default();
        customer.prompts.push_back(prompt);
    }

    /// A provider has counted a prompt. Returns what of the customer's exposure this takes back: what was booked for prompts that may
    /// not have been cached, and were; at most what this request was charged.
    pub fn counted(&mut self, of: &SentPrompt<'_>, counted: CountedPrompt, now: Instant) -> Amount {
        let Some(customer) = self.customers.get_mut(&of.customer) else {
            return Amount::ZERO;
        };
        let common = customer.common(of);
        // Providers cache in blocks, so not all that is in common is read.
        let reads = |tokens: u64| counted.read > 0 && counted.read >= tokens / 2;
        let fresh = common.map(|common| !reads(common.tokens));
        for one in customer.alike(of, common) {
            one.uncounted = 0;
            one.fresh = fresh.unwrap_or(one.fresh);
            if one.is(of) {
                one.input = counted.input;
            }
        }
        let mut left = counted.charge;
        customer.unconfirmed.retain_mut(|booked| {
            if booked.cache.is(of.cache) && of.places.has(&booked.place) && reads(booked.tokens) {
                let back = booked.difference.min(left);
                left = minus(left, back);
                booked.difference = minus(booked.difference, back);
            }
            booked.difference.is_positive() && now < booked.until
        });
        minus(counted.charge, left)
    }

    /// A request ended without a count of its prompt, and left this exposure, which may be less if the prompt was cached: by `per_token`
    /// for each token of it.
    pub fn uncounted(
        &mut self,
        of: &SentPrompt<'_>,
        exposure: Amount,
        per_token: Amount,
        now: Instant,
    ) {
        let Some(customer) = self.customers.get_mut(&of.customer) else {
            return;
        };
        let common = customer.common(of);
        for one in customer.alike(of, common) {
            one.uncounted = one.uncounted.saturating_add(1);
        }
        let Some(common) = common else { return };
        let difference = Amount::times(per_token, common.tokens).unwrap_or(exposure);
        let difference = difference.min(exposure);
        if !difference.is_positive() {
            return;
        }
        if customer.unconfirmed.len() == PROMPTS {
            customer.unconfirmed.pop_front();
        }
        customer.unconfirmed.push_back(Unconfirmed {
            cache: of.cache.remembered(),
            place: common.place,
            tokens: common.tokens,
            difference,
            until: now.checked_add(TAKEN_BACK).unwrap_or(now),
        });
    }

    fn common(&self, of: &SentPrompt<'_>) -> Option<Common> {
        self.customers.get(&of.customer)?.common(of)
    }

    /// Forgets what has expired, what this conversation was before, and the customer's oldest beyond what is kept.
    fn make_room(&mut self, new: &SentPrompt<'_>, now: Instant) {
        let wanted = new.places.len();
        if self.places.saturating_add(wanted) > ALL_PLACES {
            self.customers.retain(|_, of_one| {
                of_one.prompts.retain(|old| old.until > now);
                of_one.unconfirmed.retain(|booked| booked.until > now);
                !of_one.prompts.is_empty() || !of_one.unconfirmed.is_empty()
            });
            self.places = self.customers.values().map(CustomerPrompts::size).sum();
        }
        let Some(own) = self.customers.get_mut(&new.customer) else {
            return;
        };
        let others = self.places.saturating_sub(own.size());
        own.prompts
            .retain(|old| old.until > now && !old.is_replaced_by(new, now));
        while own.prompts.len() >= PROMPTS {
            own.prompts.pop_front();
        }
        let all = |own: &CustomerPrompts| others.saturating_add(own.size());
        while all(own).saturating_add(wanted) > ALL_PLACES && own.prompts.pop_front().is_some() {}
        self.places = all(own);
    }
}

fn minus(from: Amount, less: Amount) -> Amount {
    Amount::from_picos(from.picos().saturating_sub(less.picos()))
}

#[cfg(test)]
#[path = "prefixes_tests.rs"]
mod tests;

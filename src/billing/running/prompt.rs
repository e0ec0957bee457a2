//! What is known of a prompt from the same customer's others, and learned from it for the next: how much is cached.
//!
//! The prompt's hashes are taken when its target answers, just before its body is dropped.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{Amount, CustomerId};
use farebox_protocol::{Classes, Inspection, Talk};
use highway::{HighwayBuildHasher, Key};
use tokio::time::Instant;

use super::RunningCount;
use crate::billing::calibration::Calibrations;
use crate::billing::holder;
use crate::metering::prefixes::{CountedPrompt, PromptCache, PromptPlaces, SentPrompt};
use crate::metering::{Counted, LEAST_CACHED, Lifetimes};

/// Larger bodies are hashed off the request's thread. Up to here, hashing takes about as long as a change of threads and back.
const LARGE: usize = 256 * 1024;
/// How long the end of a request waits for the hashes of its prompt.
// Hashing takes milliseconds; only a queue of large bodies makes it long, and then less is known, in nobody's way.
const HASHING: Duration = Duration::from_secs(2);

/// Secret, so that nobody can write two prompts whose hashes are equal. The standard library's hash takes up to twice the time for a
/// large prompt; those that are faster still are not made against such prompts.
static HASHES: LazyLock<HighwayBuildHasher> = LazyLock::new(|| {
    let random = RandomState::new();
    HighwayBuildHasher::new(Key([0, 1, 2, 3].map(|part: u64| random.hash_one(part))))
});

/// What of a request's facts decides its prompt's places.
pub(crate) struct PromptFacts {
    talk: Talk,
    text: u64,
    marked: bool,
}

impl PromptFacts {
    pub(crate) fn of(seen: &Inspection) -> Self {
        Self {
            talk: seen.places.talk.clone(),
            text: seen.content.text.bytes(),
            marked: seen.cache_marked,
        }
    }

    /// Where another prompt may part from this one, which is sent with these headers: by name and value.
    pub(crate) fn places(&self, body: &[u8], headers: &[(String, Bytes)]) -> PromptPlaces {
        let around: Vec<&[u8]> = headers
            .iter()
            .flat_map(|(name, value)| [name.as_bytes(), value])
            .collect();
        let Self { talk, text, marked } = self;
        PromptPlaces::of(talk.beginnings(body, &around, *text, &*HASHES), *marked)
    }
}

/// Tokens of a customer's prompt that continue one that is likely cached at a target and account, before it is sent there.
pub(crate) fn known(
    calibrations: &Calibrations,
    customer: CustomerId,
    cache: PromptCache<&str>,
    places: &PromptPlaces,
) -> Option<u64> {
    let caches = calibrations
        .learned(cache.target, Classes::STANDARD, None)
        .caches;
    let prompt = SentPrompt {
        customer: customer.to_i64().unsigned_abs(),
        cache,
        places,
        sent: Instant::now().into_std(),
    };
    calibrations.known(&prompt, caches)
}

impl RunningCount {
    /// Hashes the prompt, which was sent at `sent`, and looks up what its target has cached of it. Prices that are the same either way
    /// have no use for that, nor has a prompt too small for any cache.
    pub(crate) fn read_prompt(
        &mut self,
        body: Bytes,
        headers: Vec<(String, Bytes)>,
        sent: Instant,
    ) {
        let rates = self.meter.rates();
        self.sent = sent;
        if self.prompt.get().is_some() {
            return self.recall();
        }
        if (body.len() as u64) < LEAST_CACHED || rates.cache_read == rates.input {
            return;
        }
        let facts = PromptFacts {
            talk: std::mem::take(&mut self.seen.places.talk),
            text: self.seen.content.text.bytes(),
            marked: self.seen.cache_marked,
        };
        let (large, prompt) = (body.len() > LARGE, Arc::clone(&self.prompt));
        let read = move || {
            // Only this job sets it.
            let _ = prompt.set(facts.places(&body, &headers));
        };
        if large {
            let turns = Arc::clone(&self.turns);
            let job = turns.run(holder(self.customer), read);
            self.hashing = Some(self.tasks.spawn(job));
        } else {
            read();
            self.recall();
        }
    }

    /// Waits a moment for the hashes of a large prompt: a short answer may have ended before their turn came.
    pub(crate) async fn hashed(&mut self) {
        if let Some(hashing) = self.hashing.take() {
            // Without them the prompt counts as fresh, and nothing is remembered of it.
            let _ = tokio::time::timeout(HASHING, hashing).await;
        }
    }

    fn with_prompt<T>(&self, with: impl FnOnce(&SentPrompt<'_>) -> T) -> Option<T> {
        self.with_prompt_at(self.cache(), with)
    }

    fn with_prompt_at<T>(
        &self,
        cache: PromptCache<&str>,
        with: impl FnOnce(&SentPrompt<'_>) -> T,
    ) -> Option<T> {
        let places = self.prompt.get()?;
        let prompt = SentPrompt {
            customer: self.customer.to_i64().unsigned_abs(),
            cache,
            places,
            sent: self.sent.into_std(),
        };
        Some(with(&prompt))
    }

    /// Tells the meter what is probably cached, once that is known, and remembers the prompt once it has shown text.
    pub(crate) fn recall(&mut self) {
        if self.recalled || self.prompt.get().is_none() {
            return;
        }
        self.recalled = true;
        let caches = self.learned.caches;
        let cached = self.with_prompt(|prompt| self.calibrations.cached(prompt, caches));
        if let Some(cached) = cached.flatten() {
            self.meter.know_cached(cached);
        }
        self.remember();
    }

    /// Notes that the answer shows text: from now on its prompt is cached, for as long as that lives.
    pub(crate) fn shows(&mut self) {
        if self.shown_at.is_none() {
            self.shown_at = Some(Instant::now());
            self.remember();
        }
    }

    fn remember(&self) {
        let Some(shown) = self.shown_at.filter(|_| self.recalled) else {
            return;
        };
        let lifetimes = Lifetimes {
            hour: self.seen.one_hour_cache,
            half_day: self.seen.half_day_cache,
        };
        let of = (self.meter.likely_input(), lifetimes.longest());
        self.with_prompt(|prompt| self.calibrations.shown(prompt, of, shown));
    }

    /// Learns from what a provider counted of the prompt, if it did. Returns what of the customer's exposure that takes back.
    pub(crate) fn judge_prompt(&self, counted: &Counted) -> Amount {
        let Some(usage) = self.meter.prompt() else {
            return Amount::ZERO;
        };
        let first = self.meter.steps(usage).0;
        let counted = CountedPrompt {
            input: first.prompt(),
            read: first.cache_read,
            charge: farebox_ledger::bill::cost(&counted.lines).unwrap_or(Amount::ZERO),
        };
        self.with_prompt(|prompt| self.calibrations.counted(prompt, counted))
            .unwrap_or(Amount::ZERO)
    }

    /// Notes that nobody has counted the prompt of a request that left this exposure; `tried`: the target that failed to answer it, if
    /// none did.
    pub(crate) fn uncounted(&self, exposure: Amount, tried: Option<&str>) {
        if self.meter.prompt().is_some() {
            return;
        }
        let per_token = self.meter.fresh_above_cached();
        let tried = tried.filter(|_| self.target.is_empty());
        let cache = tried.map_or_else(|| self.cache(), PromptCache::of_target);
        self.with_prompt_at(cache, |prompt| {
            self.calibrations.uncounted(prompt, exposure, per_token);
        });
    }
}

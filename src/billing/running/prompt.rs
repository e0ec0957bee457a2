//! What is learned from a prompt whose provider counted it, and applied to the next one whose customer left: how much is cached.
//!
//! The prompt's hashes are taken when its target answers, just before its body is dropped.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use farebox_protocol::Family;
use highway::{HighwayBuildHasher, Key};

use super::RunningCount;
use crate::billing::calibration::HashedPrompt;
use crate::billing::holder;
use crate::metering::prefixes::{FinishedRequest, PrefixPlaces};
use crate::metering::{Counted, LEAST_CACHED};

/// Larger bodies are hashed off the request's thread. Up to here, hashing takes about as long as a change of threads and back.
const LARGE: usize = 256 * 1024;
/// How long the end of a request waits for the hashes of its prompt.
const HASHING: Duration = Duration::from_secs(2);

/// Secret, so that nobody can write two prompts whose hashes are equal. The standard library's hash takes up to twice the time for a
/// large prompt; those that are faster still are not made against such prompts.
static HASHES: LazyLock<HighwayBuildHasher> = LazyLock::new(|| {
    let random = RandomState::new();
    HighwayBuildHasher::new(Key([0, 1, 2, 3].map(|part: u64| random.hash_one(part))))
});

impl RunningCount {
    /// Hashes the prompt, and looks up what its target has cached of it. Streams of a `family` that counts the prompt in the first
    /// frame have no use for that, nor have prices that are the same either way.
    pub(crate) fn read_prompt(&mut self, family: Family, body: Bytes) {
        let rates = self.meter.rates();
        let same = rates.cache_read == rates.input;
        if same || family.protocol().counts_cache_first() {
            return;
        }
        let (talk, marked) = (
            std::mem::take(&mut self.seen.places.talk),
            self.seen.cache_marked,
        );
        let (calibrations, customer) = (self.calibrations.clone(), self.customer);
        let (cache, prompt) = (self.cache(), Arc::clone(&self.prompt));
        let large = body.len() > LARGE;
        let read = move || {
            let beginnings = talk.beginnings(&body, &*HASHES);
            let cached = calibrations.cached(&cache, customer, (&beginnings, marked));
            let places = PrefixPlaces::of(&beginnings);
            // Only this job sets it.
            let _ = prompt.set(HashedPrompt { places, cached });
        };
        if large {
            let turns = Arc::clone(&self.turns);
            let job = turns.run(holder(customer), read);
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

    /// Tells the meter what is probably cached, once that is known.
    pub(crate) fn recall(&mut self) {
        if let Some(cached) = self.prompt.get().and_then(|prompt| prompt.cached) {
            self.meter.know_cached(cached);
        }
    }

    /// Remembers a finished request by what its provider counted.
    pub(crate) fn remember(&mut self, counted: &Counted) {
        let usage = &counted.usage;
        let Some(prompt) = self.prompt.get().filter(|_| usage.prompt() >= LEAST_CACHED) else {
            return;
        };
        let long = usage.cache_write_1h.saturating_add(usage.cache_write_12h);
        let finished = FinishedRequest {
            places: prompt.places.clone(),
            input: usage.prompt(),
            cached: usage.cache_read.saturating_add(usage.cache_written()),
            marked: self.seen.cache_marked,
            long: long > 0,
        };
        self.calibrations
            .remember(&self.cache(), self.customer, finished, self.arrived);
    }
}

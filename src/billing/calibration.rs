//! What targets' answers have taught: how their counts compare with ours, how fast they reason unseen, what they have cached.
//!
//! Customers vote (`metering/votes.rs`); the ledger keeps the votes, so that they outlive this process and all gateways of a fleet
//! share them. Must not count anything itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{Amount, CustomerId, LedgerError, Question, SharedLedger, Timestamp, Vote};
use farebox_protocol::talk::Beginning;
use farebox_protocol::{Family, TextSample};
use tokio::time::Instant;

use crate::config::Model;
use crate::metering::pace::Pace;
use crate::metering::prefixes::{FinishedRequest, PrefixPlaces, Prefixes};
use crate::metering::{Obedience, Paid, Votes, local};

/// The shortest time between two comparisons of one customer at one target: tokenizing a sample costs more than relaying a small
/// answer.
const COMPARING: Duration = Duration::from_secs(1);
/// In milliseconds.
const DAY: i64 = 86_400_000;

/// What each target has taught, by name, and what each has cached of its customers' prompts. Clones are the same book.
#[derive(Debug, Default, Clone)]
pub struct Calibrations(Arc<CalibrationBook>);

#[derive(Debug, Default)]
struct CalibrationBook {
    targets: Mutex<HashMap<String, CalibratedTarget>>,
    prefixes: Mutex<Prefixes>,
    /// Votes that the ledger does not have yet.
    unwritten: Mutex<BTreeMap<(String, Question, i64, CustomerId), u64>>,
}

#[derive(Debug, Default)]
struct CalibratedTarget {
    /// What it counts for a prompt, in thousandths of our count.
    counts: Votes,
    compared_at: HashMap<u64, Instant>,
    /// How fast it produces what its streams do not show, in thousandths of a token a second.
    paces: Votes,
    paid: Paid,
    told: Obedience,
    /// Its answers have named the class that was served.
    names_classes: bool,
}

impl CalibratedTarget {
    /// Takes what the ledger knows: by day and customer, the answer to a question.
    fn restore(&mut self, question: Question, stored: impl Iterator<Item = (i64, u64, u64)>) {
        match question {
            Question::Pace => self.paces.restore(stored),
            Question::Count => self.counts.restore(stored),
            Question::Obeys => self.told.restore(stored),
        }
    }

    fn pace(&self) -> Option<Pace> {
        // The median is what silence is charged at, the 95th percentile what is held for it: customers vote, so neither may be one
        // customer's to decide.
        let (median, p95) = (self.paces.at(50)?, self.paces.at(95)?);
        Some(Pace { median, p95 })
    }
}

/// What is known of one target, for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learned {
    /// How fast it reasons unseen: the median and the 95th percentile, in thousandths of a token a second.
    pub pace: Option<(u64, u64)>,
    /// How many customer-days that is from.
    pub pace_votes: usize,
    /// By how many thousandths our counts are multiplied.
    pub count: u64,
    /// How many customer-days that is from.
    pub count_votes: usize,
    /// Whether it left out the reasoning that customers turned off; `None` before an answer has shown it.
    pub obeys: Option<bool>,
}

impl Calibrations {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, CalibratedTarget>> {
        self.0
            .targets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn prefixes(&self) -> MutexGuard<'_, Prefixes> {
        self.0
            .prefixes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tokens of a prompt, marked for a cache or not, that a target has probably cached.
    pub(crate) fn cached(
        &self,
        target: &str,
        customer: CustomerId,
        prompt: (&[Beginning], bool),
    ) -> Option<u64> {
        let now = Instant::now().into_std();
        let customer = customer.to_i64().unsigned_abs();
        self.prefixes().cached(customer, target, prompt, now)
    }

    /// Remembers a finished request that arrived at `arrived`.
    pub(crate) fn remember(
        &self,
        target: &str,
        customer: CustomerId,
        finished: FinishedRequest,
        arrived: Instant,
    ) {
        let customer = customer.to_i64().unsigned_abs();
        self.prefixes()
            .remember(customer, target, finished, arrived.into_std());
    }

    pub(crate) fn factor(&self, target: &str) -> u64 {
        let targets = self.lock();
        let known = targets.get(target).map(|known| &known.counts);
        known.map_or_else(|| local::factor(&Votes::default()), local::factor)
    }

    /// A tokenizer's count, as the first target of a model would have counted.
    pub(crate) fn corrected(&self, model: &Model, tokens: u64) -> u64 {
        let first = model.route.targets.first().map(|target| target.name());
        local::corrected(tokens, self.factor(&first.unwrap_or_default()))
    }

    /// Whether a customer's request is compared now.
    pub(crate) fn opens(&self, target: &str, customer: u64, now: Instant) -> bool {
        let mut targets = self.lock();
        let known = targets.entry(target.to_owned()).or_default();
        known.compared_at.retain(|_, last| now < *last + COMPARING);
        let open = !known.compared_at.contains_key(&customer);
        known.compared_at.entry(customer).or_insert(now);
        open
    }

    /// Notes what a target counted for a customer's prompt, and we did.
    pub(crate) fn observe_count(
        &self,
        target: &str,
        customer: u64,
        at: Timestamp,
        (theirs, ours): (u64, u64),
    ) {
        if let Some(compared) = local::compared(theirs, ours) {
            let mut targets = self.lock();
            let known = targets.entry(target.to_owned()).or_default();
            known.counts.observe(customer, day(at), compared);
        }
    }

    /// How fast a target produces what its streams do not show; `None` before enough customers have voted on enough days.
    pub(crate) fn pace(&self, target: &str) -> Option<Pace> {
        self.lock().get(target)?.pace()
    }

    /// Whether a target has named the class that was served in an answer before this one, which did so or not.
    pub(crate) fn names_classes(&self, target: &str, named: bool) -> bool {
        let mut targets = self.lock();
        let known = targets.entry(target.to_owned()).or_default();
        // What this answer teaches must not judge this answer.
        let before = known.names_classes;
        known.names_classes |= named;
        before
    }

    /// Notes the pace of one finished stream of a customer.
    pub(crate) fn observe_pace(&self, target: &str, customer: u64, at: Timestamp, pace: u64) {
        let mut targets = self.lock();
        let known = targets.entry(target.to_owned()).or_default();
        known.paces.observe(customer, day(at), pace);
    }

    /// Notes what a customer was charged at a target: from a certain sum on, its votes of that day count.
    pub(crate) fn note_charge(
        &self,
        target: &str,
        customer: CustomerId,
        at: Timestamp,
        charge: Amount,
    ) {
        let (voter, day) = (customer.to_i64().unsigned_abs(), day(at));
        let mut targets = self.lock();
        let known = targets.entry(target.to_owned()).or_default();
        if !known.paid.add(voter, day, charge) {
            return;
        }
        let CalibratedTarget { paces, counts, .. } = known;
        // Votes wait here until their customer has paid enough that day: a vote must cost more than it can gain.
        for (question, votes) in [(Question::Pace, paces), (Question::Count, counts)] {
            if let Some(vote) = votes.cast(voter, day) {
                let place = (target.to_owned(), question, day, customer);
                self.unwritten().insert(place, vote);
            }
        }
    }

    fn unwritten(&self) -> MutexGuard<'_, BTreeMap<(String, Question, i64, CustomerId), u64>> {
        self.0
            .unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The votes that the ledger does not have yet.
    fn take_unwritten(&self) -> Vec<Vote> {
        let taken = std::mem::take(&mut *self.unwritten());
        let vote = |((target, question, day, customer), value)| Vote {
            target,
            question,
            day,
            customer,
            value,
        };
        taken.into_iter().map(vote).collect()
    }

    /// Writes the new votes to the ledger and takes its votes for what is known: those of other gateways, and none that an operator
    /// has reset.
    ///
    /// # Errors
    /// When the ledger cannot be written or read; the votes wait for the next time.
    pub async fn exchange(&self, ledger: &SharedLedger) -> Result<(), LedgerError> {
        let new = self.take_unwritten();
        if !new.is_empty()
            && let Err(error) = ledger.vote(new.clone()).await
        {
            let place = |vote: &Vote| (vote.target.clone(), vote.question, vote.day, vote.customer);
            let mut unwritten = self.unwritten();
            // A later vote of the same customer and day replaces an earlier one, so what came meanwhile stays.
            for vote in &new {
                unwritten.entry(place(vote)).or_insert(vote.value);
            }
            return Err(error);
        }
        let stored = ledger.votes().await?;
        let mut targets = self.lock();
        // Targets that only another gateway of the fleet has asked are known here, too.
        for vote in &stored {
            targets.entry(vote.target.clone()).or_default();
        }
        // What was cast since is not in the ledger yet.
        let late = self.unwritten().clone();
        for (name, target) in targets.iter_mut() {
            for question in Question::ALL {
                let stored = stored
                    .iter()
                    .filter(|vote| (&vote.target, vote.question) == (name, question))
                    .map(|vote| (vote.day, vote.customer.to_i64().unsigned_abs(), vote.value));
                let late = late
                    .iter()
                    .filter(|((other, asked, ..), _)| (other, *asked) == (name, question))
                    .map(|((_, _, day, customer), value)| {
                        (*day, customer.to_i64().unsigned_abs(), *value)
                    });
                target.restore(question, stored.chain(late));
            }
        }
        Ok(())
    }

    /// What is known of a target.
    #[must_use]
    pub fn learned(&self, target: &str) -> Learned {
        let targets = self.lock();
        let blank = CalibratedTarget::default();
        let known = targets.get(target).unwrap_or(&blank);
        Learned {
            pace: known.pace().map(|pace| (pace.median, pace.p95)),
            pace_votes: known.paces.len(),
            count: local::factor(&known.counts),
            count_votes: known.counts.len(),
            obeys: known.told.obeys(),
        }
    }

    /// Whether a target is known to obey when told not to reason: its counts have shown so, and never the opposite.
    pub(crate) fn obeys(&self, target: &str) -> bool {
        self.lock()
            .get(target)
            .is_some_and(|known| known.told.obeys() == Some(true))
    }

    /// Notes whether a target reasoned although a customer had turned that off.
    pub(crate) fn reasoned(
        &self,
        target: &str,
        customer: CustomerId,
        at: Timestamp,
        reasoned: bool,
    ) {
        let (voter, day) = (customer.to_i64().unsigned_abs(), day(at));
        let mut targets = self.lock();
        let known = targets.entry(target.to_owned()).or_default();
        if known.told.observe(voter, day, reasoned) {
            let place = (target.to_owned(), Question::Obeys, day, customer);
            self.unwritten().insert(place, u64::from(reasoned));
        }
    }
}

fn day(at: Timestamp) -> i64 {
    at.millis().div_euclid(DAY)
}

/// A sample of an answer's text, for a tokenizer.
#[derive(Debug, Default)]
pub(crate) enum AnswerSample {
    /// Nothing.
    #[default]
    Nothing,
    /// Of a stream.
    Sample(TextSample),
    /// A whole answer of a target of this family.
    Whole(Family, Bytes),
}

impl AnswerSample {
    pub(crate) fn sample(self, seed: u64) -> TextSample {
        match self {
            Self::Nothing => TextSample::default(),
            Self::Sample(sample) => sample,
            Self::Whole(family, body) => family.protocol().sample_answer(&body, seed),
        }
    }
}

/// What a tokenizer made of the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputRead {
    /// Tokens to charge.
    pub(crate) charged: u64,
    /// The tokenizer's own count, if the request is plain text and the context limit does not cap it.
    pub(crate) text: Option<u64>,
}

/// The request's own count, once a tokenizer has made it.
pub(crate) type InputCount = Arc<OnceLock<InputRead>>;

/// What is known of a prompt once it has been hashed.
#[derive(Debug, Default)]
pub(crate) struct HashedPrompt {
    pub(crate) places: PrefixPlaces,
    /// Tokens of it that its target has probably cached.
    pub(crate) cached: Option<u64>,
}

/// Filled by the job that hashes the prompt.
pub(crate) type PromptRead = Arc<OnceLock<HashedPrompt>>;

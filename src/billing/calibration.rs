//! What targets' answers have taught: how fast they are, how their counts compare with ours, what they were seen to do, which counts
//! exceeded what was held for them, what they have cached.
//!
//! Sums, which the ledger adds up, so that they outlive this process and all gateways of a fleet share them; what was added since the
//! last exchange counts here at once. Must not count anything itself.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{
    Amount, CustomerId, Excess, Fact, Facts, LedgerError, Lesson, Perform, SharedLedger, Taught,
    Timestamp, lock,
};
use farebox_protocol::{Classes, Family, TextSample};
use tokio::time::Instant;

use crate::config::Model;
use crate::metering::prefixes::{CountedPrompt, Prefixes, PromptPlaces, SentPrompt};
use crate::metering::{local, rates};

/// The shortest time between two comparisons of one customer at one target: tokenizing a sample costs more than relaying a small
/// answer.
const COMPARING: Duration = Duration::from_secs(1);
/// No stream is believed to have taken less time: what has gathered on its way comes at once.
// A buffered answer would otherwise teach a pace of millions of tokens a second.
const SHORTEST: Duration = Duration::from_millis(500);
/// A smaller excess raises a bound by as much.
const LEAST_EXCESS: u64 = 4_096;
/// From so many customers on, an excess counts for everybody.
// One customer may have made it come, by a request that nobody else sends, and must not make everybody's holds larger.
const FOR_EVERYBODY: usize = 2;

/// What each target has taught, by name, and what each has cached of its customers' prompts. Clones are the same book.
#[derive(Debug, Default, Clone)]
pub struct Calibrations(Arc<CalibrationBook>);

#[derive(Debug, Default)]
struct CalibrationBook {
    taught: Mutex<TaughtBook>,
    prefixes: Mutex<Prefixes>,
    /// When a customer's prompt was last compared at a target.
    compared_at: Mutex<HashMap<(String, CustomerId), Instant>>,
    /// Targets whose answers have named the class that was served.
    names_classes: Mutex<HashSet<String>>,
    /// One exchange at a time, so that nothing is sent twice.
    exchange: tokio::sync::Mutex<()>,
}

/// All of it is known; only what is new is not on its way to the ledger or there.
#[derive(Debug, Default)]
struct TaughtBook {
    stored: TaughtRows,
    sending: TaughtRows,
    new: TaughtRows,
}

#[derive(Debug, Default, Clone)]
struct TaughtRows(HashMap<String, TaughtTarget>);

#[derive(Debug, Default, Clone)]
struct TaughtTarget {
    lessons: BTreeMap<Classes, Lesson>,
    excesses: BTreeMap<CustomerId, Excess>,
}

impl TaughtRows {
    fn of(taught: Taught) -> Self {
        let mut known = Self::default();
        for lesson in taught.lessons {
            // Another version may know more classes.
            if let Some(classes) = class_of(&lesson.class) {
                known.lesson(&lesson.target, classes).add(&lesson);
            }
        }
        for excess in taught.excesses {
            known.exceed(excess);
        }
        known
    }

    fn lesson(&mut self, target: &str, classes: Classes) -> &mut Lesson {
        let known = self.0.entry(target.to_owned()).or_default();
        let empty = || Lesson::empty(target, classes.name());
        known.lessons.entry(classes).or_insert_with(empty)
    }

    fn exceed(&mut self, excess: Excess) {
        let known = self.0.entry(excess.target.clone()).or_default();
        let customer = excess.customer;
        let largest = known.excesses.entry(customer).or_insert(excess.clone());
        if !largest.counts(excess.at) {
            largest.tokens = 0;
        }
        largest.tokens = largest.tokens.max(excess.tokens);
        largest.at = largest.at.max(excess.at);
    }

    fn add(&mut self, others: Self) {
        for (target, other) in others.0 {
            for (classes, lesson) in other.lessons {
                self.lesson(&target, classes).add(&lesson);
            }
            for excess in other.excesses.into_values() {
                self.exceed(excess);
            }
        }
    }

    /// Keeps what may be added twice.
    fn drop_sums(&mut self) {
        for known in self.0.values_mut() {
            for (classes, lesson) in &mut known.lessons {
                *lesson = Lesson {
                    facts: lesson.facts,
                    ..Lesson::empty(&lesson.target, classes.name())
                };
            }
        }
    }

    fn rows(&self) -> Taught {
        let all = || self.0.values();
        let lessons = all().flat_map(|known| known.lessons.values()).cloned();
        let excesses = all().flat_map(|known| known.excesses.values()).cloned();
        Taught {
            lessons: lessons.collect(),
            excesses: excesses.collect(),
        }
    }
}

fn class_of(name: &str) -> Option<Classes> {
    let all = [Classes::STANDARD].into_iter().chain(Classes::NAMED);
    all.into_iter().find(|classes| classes.name() == name)
}

impl TaughtBook {
    fn of<'a>(&'a self, target: &'a str) -> impl Iterator<Item = &'a TaughtTarget> {
        let all = [&self.stored, &self.sending, &self.new];
        all.into_iter().filter_map(move |known| known.0.get(target))
    }

    /// What answers of a class have taught.
    fn sums(&self, target: &str, classes: Classes) -> Lesson {
        let mut sums = Lesson::default();
        for known in self.of(target) {
            if let Some(lesson) = known.lessons.get(&classes) {
                sums.add(lesson);
            }
        }
        sums
    }

    /// What a target was seen to do, whatever the class.
    fn facts(&self, target: &str) -> Facts {
        let lessons = self.of(target).flat_map(|known| known.lessons.values());
        lessons.fold(Facts::default(), |all, lesson| all.and(lesson.facts))
    }

    /// The largest excess of each customer that counts.
    fn excesses(&self, target: &str, now: Timestamp) -> BTreeMap<CustomerId, u64> {
        let mut found = BTreeMap::new();
        let all = self.of(target).flat_map(|known| known.excesses.values());
        for excess in all.filter(|excess| excess.counts(now)) {
            let largest = found.entry(excess.customer).or_default();
            *largest = excess.tokens.max(LEAST_EXCESS).max(*largest);
        }
        found
    }

    fn targets(&self) -> BTreeSet<String> {
        let all = [&self.stored, &self.sending, &self.new];
        all.into_iter()
            .flat_map(|known| known.0.keys().cloned())
            .collect()
    }
}

/// What is known of one target's answers of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Learned {
    /// How fast one choice is, in thousandths of a token a second.
    pub pace: u64,
    /// By how many thousandths our counts are multiplied.
    pub ratio: u64,
    /// How many tokens of its own streams the pace is from.
    pub own_tokens: u64,
    /// How many tokens of prompts, as we count them, the ratio is from.
    pub own_prompts: u64,
    /// The target was ever counted to hide output.
    pub hides: bool,
    /// The target was ever counted to cache by itself.
    pub caches: bool,
    /// The target was ever counted to write a cache without a mark.
    pub writes_unmarked: bool,
    /// An answer that reasoned has ended by length within its limit.
    pub limit_proved: bool,
}

/// By how much a target's counts have exceeded what was held for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceededTarget {
    /// `provider/model`.
    pub target: String,
    /// By how many tokens of output, at most.
    pub tokens: u64,
    /// Of how many customers, in seven days.
    pub customers: usize,
}

impl Calibrations {
    fn taught(&self) -> MutexGuard<'_, TaughtBook> {
        lock(&self.0.taught)
    }

    /// Tokens of a prompt that its target has probably cached. `caches`: the target was counted to cache what nobody marked.
    pub(crate) fn cached(&self, prompt: &SentPrompt<'_>, caches: bool) -> Option<u64> {
        lock(&self.0.prefixes).cached(prompt, caches)
    }

    /// The same before it is sent, where no count has found it fresh since one found it cached.
    pub(crate) fn known(&self, prompt: &SentPrompt<'_>, caches: bool) -> Option<u64> {
        lock(&self.0.prefixes).known(prompt, caches)
    }

    /// Remembers a prompt of `input` tokens whose first text was shown at `now`.
    pub(crate) fn shown(
        &self,
        prompt: &SentPrompt<'_>,
        (input, lifetime): (u64, Duration),
        now: Instant,
    ) {
        lock(&self.0.prefixes).shown(prompt, input, lifetime, now.into_std());
    }

    /// Notes what a provider counted of a prompt. Returns what of the customer's exposure that takes back.
    pub(crate) fn counted(&self, prompt: &SentPrompt<'_>, counted: CountedPrompt) -> Amount {
        let now = Instant::now().into_std();
        lock(&self.0.prefixes).counted(prompt, counted, now)
    }

    /// Notes that nobody counted a prompt; see [`Prefixes::uncounted`].
    pub(crate) fn uncounted(&self, prompt: &SentPrompt<'_>, exposure: Amount, per_token: Amount) {
        let now = Instant::now().into_std();
        lock(&self.0.prefixes).uncounted(prompt, exposure, per_token, now);
    }

    /// What is known of a target's answers of these classes. `named`: its speed, where somebody has named one, in tokens a second.
    pub fn learned(&self, target: &str, classes: Classes, named: Option<u32>) -> Learned {
        let taught = self.taught();
        let (sums, facts) = (taught.sums(target, classes), taught.facts(target));
        Learned {
            pace: rates::pace(sums.tokens, sums.millis, named),
            ratio: rates::ratio(sums.theirs, sums.ours),
            own_tokens: sums.tokens,
            own_prompts: sums.ours,
            hides: facts.has(Fact::Hides),
            caches: facts.has(Fact::Caches),
            writes_unmarked: facts.has(Fact::WritesUnmarked),
            limit_proved: facts.has(Fact::LimitBinds),
        }
    }

    /// The same of each class whose answers have taught anything, and of the standard one, by their names.
    pub fn by_class(&self, target: &str, named: Option<u32>) -> Vec<(&'static str, Learned)> {
        let classes: BTreeSet<Classes> = {
            let taught = self.taught();
            let lessons = taught.of(target).flat_map(|known| known.lessons.keys());
            lessons.copied().chain([Classes::STANDARD]).collect()
        };
        let learned = |classes| self.learned(target, classes, named);
        let classes = classes.into_iter();
        classes
            .map(|known| (known.name(), learned(known)))
            .collect()
    }

    /// In thousandths: by what our counts of prompts are multiplied at a target.
    pub(crate) fn ratio(&self, target: &str, classes: Classes) -> u64 {
        let sums = self.taught().sums(target, classes);
        rates::ratio(sums.theirs, sums.ours)
    }

    /// A tokenizer's count, as the first target of a model would have counted.
    pub(crate) fn corrected(&self, model: &Model, tokens: u64) -> u64 {
        let first = model.route.targets.first().map(|target| target.name());
        let ratio = self.ratio(&first.unwrap_or_default(), Classes::STANDARD);
        local::corrected(tokens, ratio)
    }

    /// By how many tokens of output a bound is raised for a customer: its own excess at once, anybody's when two customers have had one.
    /// 0 without any.
    pub fn excess(&self, target: &str, customer: CustomerId, now: Timestamp) -> u64 {
        let excesses = self.taught().excesses(target, now);
        let counts = if excesses.len() >= FOR_EVERYBODY {
            excesses.values().copied().max()
        } else {
            excesses.get(&customer).copied()
        };
        counts.unwrap_or_default()
    }

    /// All targets with an excess that counts.
    pub fn exceeded(&self, now: Timestamp) -> Vec<ExceededTarget> {
        let taught = self.taught();
        let exceeded = |target: String| {
            let excesses = taught.excesses(&target, now);
            let tokens = excesses.values().copied().max()?;
            let customers = excesses.len();
            Some(ExceededTarget {
                target,
                tokens,
                customers,
            })
        };
        taught.targets().into_iter().filter_map(exceeded).collect()
    }

    /// Whether a customer's request is compared now.
    pub(crate) fn opens(&self, target: &str, customer: CustomerId, now: Instant) -> bool {
        let mut compared = lock(&self.0.compared_at);
        compared.retain(|_, last| now < *last + COMPARING);
        let place = (target.to_owned(), customer);
        let open = !compared.contains_key(&place);
        compared.entry(place).or_insert(now);
        open
    }

    /// Adds a finished stream: what was counted of it, less what was predicted, and the time since its first frame.
    pub fn note_stream(&self, target: &str, classes: Classes, tokens: u64, elapsed: Duration) {
        let elapsed = elapsed.max(SHORTEST).as_millis();
        let millis = u64::try_from(elapsed).unwrap_or(u64::MAX);
        let mut taught = self.taught();
        taught.new.lesson(target, classes).add(&Lesson {
            tokens,
            millis,
            ..Lesson::default()
        });
    }

    /// Adds what a target counted for a prompt, and we did.
    pub fn note_prompt(&self, target: &str, classes: Classes, theirs: u64, ours: u64) {
        let mut taught = self.taught();
        taught.new.lesson(target, classes).add(&Lesson {
            theirs,
            ours,
            ..Lesson::default()
        });
    }

    /// Notes what a target was seen to do.
    pub fn note_fact(&self, target: &str, classes: Classes, fact: Fact) {
        let mut taught = self.taught();
        if !taught.facts(target).has(fact) {
            let lesson = taught.new.lesson(target, classes);
            lesson.facts = lesson.facts.with(fact);
        }
    }

    /// Notes a count that exceeded what was held for it, by so many tokens of output.
    pub fn note_excess(&self, target: &str, customer: CustomerId, tokens: u64, at: Timestamp) {
        self.taught().new.exceed(Excess {
            target: target.to_owned(),
            customer,
            tokens,
            at,
        });
    }

    /// Whether a target has named the class that was served in an answer before this one, which did so or not.
    pub(crate) fn names_classes(&self, target: &str, named: bool) -> bool {
        let mut names = lock(&self.0.names_classes);
        // What this answer teaches must not judge this answer.
        let before = names.contains(target);
        if named && !before {
            names.insert(target.to_owned());
        }
        before
    }

    /// Adds what is new to the ledger's sums and takes these for what is known: with those of other gateways, and without what an
    /// operator has reset.
    ///
    /// # Errors
    /// When the ledger cannot be written or read; what is new waits for the next time.
    pub async fn exchange(&self, ledger: &SharedLedger) -> Result<(), LedgerError> {
        let _alone = self.0.exchange.lock().await;
        let rows = {
            let mut taught = self.taught();
            // What an exchange that was dropped was about to send may have come there.
            let mut left = std::mem::take(&mut taught.sending);
            left.drop_sums();
            taught.new.add(left);
            taught.sending = std::mem::take(&mut taught.new);
            taught.sending.rows()
        };
        if !rows.is_empty() {
            let sent = ledger.perform(rows).await;
            let mut taught = self.taught();
            let mut sending = std::mem::take(&mut taught.sending);
            if let Err(error) = sent {
                // What may be in the ledger is not added again: a sum that lacks a few answers is as good.
                if matches!(error, LedgerError::Unknown(_)) {
                    sending.drop_sums();
                }
                taught.new.add(sending);
                return Err(error);
            }
            taught.stored.add(sending);
        }
        let stored = ledger.taught().await?;
        self.taught().stored = TaughtRows::of(stored);
        Ok(())
    }
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

/// A prompt's places, filled by the job that hashes it.
pub(crate) type PromptRead = Arc<OnceLock<PromptPlaces>>;

//! The running count of one answer, and the only place that decides what is charged at its end.
//!
//! It keeps two counts: what the provider reported, and what was shown since. While a stream runs, both together at the highest
//! rates decide whether the hold still suffices. At the end the provider's count is charged if it is present and plausible, else
//! ours, rounded slightly in the customer's favour.

mod classes;
mod due;
mod leaving;
mod ours;
mod owed;
mod start;
mod steps;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{Amount, BillLine, Evidence, Usage};
use farebox_protocol::{Classes, FrameFacts, SaidClasses, TextSize, UsageReading, WireUsage};

use super::pace::Hiding;
use super::{Lifetimes, estimate, local, pace, price};
use crate::config::{Model, Rates};
pub use classes::ClassTrouble;
pub use owed::Miscount;
pub use start::Start;

/// The density that size alone suggests.
const USUAL: u64 = 1_000;
/// A tokenizer's count is raised by so many thousandths for the hold: another vendor's may count that much more.
const COUNTED_UP: u64 = 20;

/// Counts one answer.
#[derive(Debug, Clone)]
pub struct Meter {
    model: Arc<Model>,
    /// Input as estimated before the call.
    estimated_input: u64,
    /// The most input that the provider can count, at most the context.
    most_input: u64,
    /// A low estimate of the same, until a tokenizer has counted it.
    input_at_least: u64,
    /// A tokenizer's count of it, once available.
    input_known: Option<u64>,
    /// Pictures, if they are priced individually.
    images: u64,
    /// How many pictures the request has.
    pictures: u64,
    /// Most output the upstream may produce, all choices together.
    output_limit: u64,
    choices: u64,
    /// Output that the customer predicted; its unused part is billed and never shown.
    predicted: u64,
    /// Whether the provider counts reasoning in addition to its output, and does not include it in its output limit.
    reasoning_outside: bool,
    /// The lifetimes of cache writes that the request asked for.
    lifetimes: Lifetimes,
    /// The classes that it asked for.
    asked: Classes,
    /// What the answer has said about its class.
    said: SaidClasses,
    /// What the answer says that it costs, in picodollars.
    provider_cost: Option<i64>,
    /// Some step of the answer was another model's.
    other_models: bool,
    /// Its prompt may be written to a cache.
    may_write: bool,
    /// Whether the customer may have asked for an answer without text.
    silence_asked: bool,
    shown: TextSize,
    /// Tokens of the shown text by a tokenizer, in thousandths of what its size alone suggests.
    density: u64,
    /// The part of it that a tokenizer has read.
    weighed: TextSize,
    /// The part of it that the provider's count includes.
    shown_counted: TextSize,
    /// How time without output counts.
    hiding: Hiding,
    /// Time in which hidden output was produced, since the provider's last count.
    hidden: Duration,
    /// The wait before a stream's first frame, until the provider's first count.
    wait: Duration,
    /// All other time without output.
    unseen: Duration,
    /// A pause behind shown output that may become hidden output: held for, and not charged.
    pause: Duration,
    /// Whether the prompt is marked for a cache, and no frame before the end reports the cache write.
    cache_marked: bool,
    /// Tokens of the prompt that the provider has probably cached.
    cached: u64,
    /// The provider's last plausible count.
    reported: Option<Usage>,
    /// The steps in it that are priced separately from the first.
    further: Vec<Usage>,
    /// What compacting the conversation may cost in addition, until the provider has counted.
    compaction: i128,
    /// Its price in picodollars; before the first count, the price of the estimated input at the highest rates. Cached, because
    /// every frame asks for it.
    counted_cost: i128,
    /// The same if nothing is written to a cache unasked.
    counted_due: i128,
    /// Whether it came with the end of the answer, so that it is complete.
    complete: bool,
    /// What was shown at the provider's last count.
    shown_at_report: TextSize,
    /// The provider's last count if it was implausible, and why.
    claimed: Option<(Usage, Miscount)>,
}

/// Local counts, rounded slightly in the customer's favour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Local {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the output shown.
    pub output: u64,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The provider finished it.
    Complete,
    /// Cut by us or the customer while it ran: the balance was used up, the customer left, or the time was over.
    Cut,
    /// The provider's stream broke.
    Broken,
    /// An answer began but is useless, through our fault or the provider's. Free, although the provider may bill it.
    Lost,
    /// Nothing was produced, through our fault or the provider's, or the customer left before anything began.
    Nothing,
}

/// The charge for one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Tokens to charge; none is in two of the counts.
    pub usage: Usage,
    /// What each kind of token costs: count × rate, in picodollars.
    pub lines: Vec<BillLine>,
    /// Who counted; `None` if nothing is charged.
    pub evidence: Option<Evidence>,
    /// What the provider may count; `None` if it produced nothing.
    pub owed: Option<Usage>,
}

impl Meter {
    /// A meter for one answer of `model`.
    #[must_use]
    pub fn new(model: Arc<Model>, start: Start) -> Self {
        let priced_images = model.price.base.per_image != Amount::ZERO
            || model
                .price
                .tiers
                .iter()
                .any(|tier| tier.1.per_image != Amount::ZERO);
        let mut meter = Self {
            estimated_input: start.estimated_input,
            most_input: start.most_input,
            // The estimate is high: its median is a quarter over a tokenizer's count.
            input_at_least: start.estimated_input.saturating_mul(7) / 10,
            input_known: None,
            images: if priced_images { start.images } else { 0 },
            pictures: start.images,
            output_limit: start.output_limit,
            choices: u64::from(start.choices),
            predicted: start.predicted,
            reasoning_outside: false,
            lifetimes: start.lifetimes,
            asked: start.classes,
            said: SaidClasses::default(),
            provider_cost: None,
            other_models: false,
            may_write: start.cache_marked,
            silence_asked: false,
            shown: TextSize::default(),
            density: USUAL,
            weighed: TextSize::default(),
            shown_counted: TextSize::default(),
            hiding: Hiding::unexpected(&model.limits),
            hidden: Duration::ZERO,
            wait: Duration::ZERO,
            unseen: Duration::ZERO,
            pause: Duration::ZERO,
            cache_marked: false,
            cached: 0,
            reported: None,
            further: Vec::new(),
            compaction: i128::from(start.compaction.picos()),
            complete: false,
            shown_at_report: TextSize::default(),
            claimed: None,
            counted_cost: 0,
            counted_due: 0,
            model,
        };
        meter.price_counted();
        meter
    }

    /// Sets how the answering provider counts its reasoning.
    pub fn reasoning_outside(&mut self, outside: bool) {
        self.reasoning_outside = outside;
    }

    /// Notes that an answer without text may be the customer's doing: stop strings in the request, or an output limit used up by
    /// reasoning. Then the prompt is charged whether or not the provider reports a count.
    pub fn ask_silence(&mut self) {
        self.silence_asked = true;
    }

    /// What the answer says that it costs, in picodollars.
    #[must_use]
    pub fn provider_cost(&self) -> Option<i64> {
        self.provider_cost
    }

    /// Whether another model made some of the answer.
    #[must_use]
    pub fn has_other_models(&self) -> bool {
        self.other_models
    }

    /// Adds one frame of a stream.
    pub fn observe(&mut self, facts: &FrameFacts, usage: &WireUsage) {
        self.show(facts.shown);
        if facts.usage {
            self.report(usage, facts.last);
        }
    }

    /// Adds output that was shown.
    pub fn show(&mut self, shown: TextSize) {
        self.shown.add(shown);
    }

    /// Applies a tokenizer's count of what had been shown when it began: dense text costs more than its size suggests, which the hold
    /// has to reflect, and most text costs less, so that its stream would end before its money does.
    pub fn weigh(&mut self, shown: TextSize, tokens: u64) {
        let counted = tokens.saturating_mul(USUAL + COUNTED_UP);
        self.density = counted.div_ceil(estimate::upper(shown).max(1));
        self.weighed = shown;
    }

    /// Bytes that were shown and that neither a tokenizer nor the provider has counted.
    #[must_use]
    pub fn unweighed(&self) -> u64 {
        self.shown
            .bytes()
            .saturating_sub(self.weighed.bytes().max(self.shown_counted.bytes()))
    }

    /// What was shown.
    #[must_use]
    pub fn shown(&self) -> TextSize {
        self.shown
    }

    /// Whether all of an output of `output` tokens can have been shown.
    #[must_use]
    pub fn shows_all(&self, output: u64) -> bool {
        output
            <= estimate::upper(self.shown)
                .saturating_mul(2)
                .saturating_add(100)
    }

    /// Sets a tokenizer's count of the request.
    pub fn know_input(&mut self, tokens: u64) {
        self.input_at_least = tokens;
        self.input_known = Some(tokens);
        self.price_counted();
    }

    /// Sets the provider's count; `last` if it came at the end of the answer. An absurd count never replaces a plausible one.
    pub fn report(&mut self, wire: &WireUsage, last: bool) {
        self.reasoning_outside |= wire.total_has_reasoning_outside();
        self.hear(&wire.said);
        self.provider_cost = wire.provider_cost.or(self.provider_cost);
        self.other_models |= wire.other_models;
        let (counted, further) = match wire.reading(self.reasoning_outside) {
            UsageReading::Missing => return,
            UsageReading::Absurd => (
                Err((self.with_images(wire.claimed()), Miscount::Malformed)),
                Vec::new(),
            ),
            UsageReading::Counted(counted) => {
                let (mut usage, mut further) =
                    (self.with_images(counted), steps::of(wire, &counted));
                if !wire.writes_divided && self.lifetimes.any() {
                    let rates = *self.rates();
                    for step in std::iter::once(&mut usage).chain(&mut further) {
                        self.lifetimes.undivided(step, &rates);
                    }
                }
                (
                    self.doubt(&usage, &further)
                        .map_or(Ok(usage), |why| Err((usage, why))),
                    further,
                )
            }
        };
        self.claimed = counted.err();
        let Ok(usage) = counted else { return };
        if last || !further.is_empty() {
            self.compaction = 0;
        }
        self.further = further;
        if last || self.reported.as_ref().map_or(0, output_total) < output_total(&usage) {
            self.shown_counted = self.shown;
            self.count_hidden();
        }
        self.shown_at_report = self.shown;
        self.reported = Some(usage);
        self.complete |= last;
        self.price_counted();
    }

    /// Whether anything was shown.
    #[must_use]
    pub fn shown_anything(&self) -> bool {
        self.shown != TextSize::default()
    }

    /// Whether anything was shown or counted.
    #[must_use]
    pub fn made_anything(&self) -> bool {
        let counted = |usage: &Usage| usage.prompt() > 0 || output_total(usage) > 0;
        self.shown_anything()
            || self.reported.as_ref().is_some_and(counted)
            || self.claimed.is_some()
    }

    /// Output tokens so far, estimated high.
    #[must_use]
    pub fn running_output(&self) -> u64 {
        self.counted_output()
            .saturating_add(self.uncounted_output())
            .saturating_add(self.hidden_at_most())
    }

    fn counted_output(&self) -> u64 {
        self.reported.as_ref().map_or(0, output_total)
    }

    /// Shown output that the provider's count does not include yet, estimated high.
    fn uncounted_output(&self) -> u64 {
        let ascii = self.shown.ascii.saturating_sub(self.shown_counted.ascii);
        let other = self.shown.other.saturating_sub(self.shown_counted.other);
        estimate::upper(TextSize { ascii, other }).saturating_mul(self.density) / USUAL
    }

    /// The output that one choice can have produced in this much time.
    fn by_time(&self, elapsed: Duration) -> u64 {
        pace::tokens(pace::Pace::named(self.model.limits.speed).median, elapsed)
    }

    /// The rates that apply to the input known so far.
    #[must_use]
    pub fn rates(&self) -> &Rates {
        let counted = self
            .reported
            .as_ref()
            .map_or(0, |usage| self.steps(usage).0.prompt());
        self.held().for_input(if counted > 0 {
            counted
        } else {
            self.estimated_input
        })
    }

    /// The charge if the answer ended now, for checkpoints: the best estimate rather than an upper bound. Per class, the larger of
    /// the provider's count so far and ours, plus hidden output since.
    #[must_use]
    pub fn charge_if_cut(&self) -> Counted {
        let mut counted = self.counted(
            self.left(self.estimated(), self.hidden_tokens()),
            self.evidence_of_left(),
        );
        counted.owed = self.owed(Ending::Cut, &counted, None);
        counted
    }

    /// Whether the end needs a local count.
    #[must_use]
    pub fn needs_local(&self, ending: Ending) -> bool {
        match ending {
            Ending::Nothing => false,
            Ending::Broken | Ending::Lost => true,
            Ending::Cut => !self.counted_whole(),
            Ending::Complete => {
                let charged = !self.complete
                    || self.shown_anything()
                    || self.silence_asked
                    || self.claimed.is_some();
                charged && !self.counted_whole()
            }
        }
    }

    /// Whether the provider has a complete and plausible count of the answer.
    fn counted_whole(&self) -> bool {
        let all = self.complete || (self.shown_anything() && self.shown == self.shown_at_report);
        let something = |usage: &Usage| {
            let (input, output) = (usage.prompt(), output_total(usage));
            (input > 0 || !self.silence_asked)
                && (input > 0 && output > 0 || !self.shown_anything())
        };
        all && self.claimed.is_none() && self.reported.as_ref().is_some_and(something)
    }

    /// The charge for this answer, which took `elapsed`. `local` is a tokenizer's count of it, if one was needed.
    #[must_use]
    pub fn finish(&self, ending: Ending, local: Option<Local>, took: Duration) -> Counted {
        let mut counted = self.charged(ending, local.unwrap_or_else(|| self.estimated()), took);
        counted.owed = self.owed(ending, &counted, local);
        counted
    }

    fn charged(&self, ending: Ending, local: Local, took: Duration) -> Counted {
        match (ending, &self.reported, &self.claimed) {
            (Ending::Nothing | Ending::Lost, ..) => free(),
            (Ending::Broken, ..) if !self.shown_anything() => free(),
            // The prompt bought nothing that the customer can use, because the next attempt sends it again.
            (Ending::Broken, ..) => {
                let usage = Usage {
                    output: local.output,
                    ..Usage::default()
                };
                let mut counted = self.counted(usage, Evidence::Local);
                counted.lines.retain(|line| line.what != price::REQUEST);
                counted
            }
            (Ending::Complete, _, Some((claimed, _))) => {
                self.counted(self.bounded(*claimed, local, took), Evidence::Disputed)
            }
            (Ending::Complete | Ending::Cut, Some(usage), None) if self.counted_whole() => {
                self.counted(*usage, Evidence::Provider)
            }
            (Ending::Complete, Some(usage), None)
                if self.complete && !self.shown_anything() && !self.silence_asked =>
            {
                self.counted(*usage, Evidence::Provider)
            }
            (Ending::Complete, ..) if self.shown_anything() => {
                let hidden = if self.hiding.known {
                    self.hidden_tokens()
                } else {
                    0
                };
                self.counted(self.running(local, hidden), Evidence::Local)
            }
            (Ending::Complete, ..) if self.silence_asked => {
                self.counted(self.running(local, self.hidden_tokens()), Evidence::Local)
            }
            (Ending::Complete, ..) => free(),
            (Ending::Cut, ..) => self.counted(
                self.left(local, self.hidden_tokens()),
                self.evidence_of_left(),
            ),
        }
    }

    /// The provider's claim, bounded by what it can have read and produced, and at least what we have seen.
    fn bounded(&self, claimed: Usage, local: Local, took: Duration) -> Usage {
        let mut usage = claimed;
        let mut room = self.most_input;
        for class in [
            &mut usage.cache_read,
            &mut usage.input,
            &mut usage.cache_write,
            &mut usage.cache_write_1h,
            &mut usage.cache_write_12h,
        ] {
            *class = (*class).min(room);
            room = room.saturating_sub(*class);
        }
        let most = self
            .output_limit
            .saturating_mul(2)
            .max(self.by_time(took).saturating_mul(self.choices));
        usage.reasoning = usage.reasoning.min(most);
        usage.output = usage.output.min(most.saturating_sub(usage.reasoning));
        let missing = local.input.saturating_sub(usage.prompt());
        usage.input = usage.input.saturating_add(missing);
        let missing = local.output.saturating_sub(output_total(&usage));
        usage.output = usage.output.saturating_add(missing);
        usage
    }

    /// Reasoning that the provider counted.
    #[must_use]
    pub fn counted_reasoning(&self) -> u64 {
        self.reported.map_or(0, |usage| usage.reasoning)
    }

    fn counted(&self, usage: Usage, evidence: Evidence) -> Counted {
        let (first, further) = self.steps(&usage);
        let (price, class) = self.sold_at(&first, further);
        let class = (!class.is_standard()).then(|| class.name());
        Counted {
            usage,
            lines: price::lines(price, &first, further, class),
            evidence: Some(evidence),
            owed: None,
        }
    }

    fn with_images(&self, counted: farebox_protocol::ReportedUsage) -> Usage {
        Usage {
            images: self.images,
            ..steps::of_tokens(counted)
        }
    }
}

fn output_total(usage: &Usage) -> u64 {
    usage.output.saturating_add(usage.reasoning)
}

fn free() -> Counted {
    Counted {
        usage: Usage::default(),
        lines: Vec::new(),
        evidence: None,
        owed: None,
    }
}

#[cfg(test)]
mod tests;

//! The running count of one answer, and the only place that decides what is charged at its end.
//!
//! It keeps two counts: what the provider reported, and what was shown since. At the end the provider's count is charged if it is present
//! and plausible, else ours, rounded slightly in the customer's favour.

mod classes;
mod departure;
mod ours;
mod provider_bill;
mod start;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{Amount, BillLine, Evidence, ToldCost, Usage, UsageKind};
use farebox_protocol::{
    CostField, FrameFacts, SaidClasses, SaidCosts, TextSize, UsageReading, WireUsage,
};

use super::rates::USUAL_SPEED;
use super::{counts, estimate, price};
use crate::config::{Model, Rates};
pub use classes::ClassTrouble;
pub use provider_bill::Miscount;
pub use start::Start;

/// What an answer may have beyond what was allowed, in tokens, beside an eighth of it: counts differ.
pub const BEYOND: u64 = 64;
/// Output that nobody shows is charged for the time since the last text only if that is longer: the next word takes its time anyhow.
const SILENCE: Duration = Duration::from_secs(2);

/// Counts one answer.
#[derive(Debug, Clone)]
pub struct Meter {
    model: Arc<Model>,
    /// What was known before the answer began, but for the output that its target was allowed.
    start: Start,
    /// Pictures, if they are priced individually.
    images: u64,
    /// A tokenizer's count of the input, once available.
    input_known: Option<u64>,
    /// Whether the provider counts reasoning in addition to its output, and does not include it in its output limit.
    reasoning_outside: bool,
    /// What the answer has said about its class.
    said: SaidClasses,
    /// What the answer says about its cost, and where its service tells it.
    costs: SaidCosts,
    cost_field: Option<CostField>,
    /// Some step of the answer was another model's.
    other_models: bool,
    /// Whether the customer may have asked for an answer without text.
    silence_asked: bool,
    shown: TextSize,
    pace: OutputPace,
    /// Whether the prompt is marked for a cache, and no frame before the end reports the cache write.
    cache_marked: bool,
    /// Tokens of the prompt that the provider has probably cached.
    cached: u64,
    report: CountReport,
}

/// How output comes that nobody counts.
#[derive(Debug, Clone, Copy, Default)]
struct OutputPace {
    /// How fast the target makes it, in thousandths of a token a second.
    rate: u64,
    /// Whether it may make output that it does not show.
    hides: bool,
    since_frame: Duration,
    since_text: Duration,
}

/// What the provider has counted so far.
#[derive(Debug, Clone, Default)]
struct CountReport {
    /// Its last plausible count.
    usage: Option<Usage>,
    /// The steps in it that are priced separately from the first.
    further: Vec<Usage>,
    /// Whether it came with the end of the answer, so that it is complete.
    complete: bool,
    /// What was shown then.
    shown: TextSize,
    /// Its last count if it was implausible, and why.
    claimed: Option<(Usage, Miscount)>,
}

impl CountReport {
    /// The count, if it has said what the prompt was.
    fn prompt(&self) -> Option<&Usage> {
        self.usage.as_ref().filter(|usage| usage.prompt() > 0)
    }
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
        let price = &model.price;
        let mut rates = std::iter::once(&price.base).chain(price.tiers.iter().map(|tier| &tier.1));
        let priced = rates.any(|rates| rates.per_image != Amount::ZERO);
        Self {
            images: if priced { start.images } else { 0 },
            start,
            input_known: None,
            reasoning_outside: false,
            said: SaidClasses::default(),
            costs: SaidCosts::default(),
            cost_field: None,
            other_models: false,
            silence_asked: false,
            shown: TextSize::default(),
            pace: OutputPace::default(),
            cache_marked: false,
            cached: 0,
            report: CountReport::default(),
            model,
        }
    }

    /// Sets how much output the answering target was allowed.
    pub fn allow(&mut self, output: u64) {
        self.start.output_limit = output;
    }

    /// Sets how fast the answering target makes output, in thousandths of a token a second, and whether it may hide some.
    pub fn expect(&mut self, pace: u64, hides: bool) {
        (self.pace.rate, self.pace.hides) = (pace, hides);
    }

    /// Sets how long ago its first frame came, and its last text.
    pub fn pass(&mut self, since_frame: Duration, since_text: Duration) {
        (self.pace.since_frame, self.pace.since_text) = (since_frame, since_text);
    }

    /// The target has worked for this long, and nobody has seen any of it.
    pub fn unseen(&mut self, worked: Duration) {
        self.pace.hides = true;
        self.pass(worked, worked);
    }

    /// Sets how the answering provider counts its reasoning.
    pub fn reasoning_outside(&mut self, outside: bool) {
        self.reasoning_outside = outside;
    }

    /// Sets where the answering provider tells what an answer costs; `None` if it does not.
    pub fn cost_field(&mut self, field: Option<CostField>) {
        self.cost_field = field;
    }

    /// Notes that an answer without text may be the customer's doing: stop strings in the request, or an output limit used up by
    /// reasoning. Then the prompt is charged whether or not the provider reports a count.
    pub fn ask_silence(&mut self) {
        self.silence_asked = true;
    }

    /// What the answer says that it costs.
    pub fn told_cost(&self) -> ToldCost {
        match self.said_cost() {
            Some(Ok(picos)) => ToldCost::Amount(Amount::from_picos(picos)),
            Some(Err(_)) => ToldCost::Unreadable,
            None => ToldCost::Nothing,
        }
    }

    /// The same in its words, if they are no amount.
    pub fn unread_cost(&self) -> Option<&str> {
        self.said_cost()?.err()
    }

    fn said_cost(&self) -> Option<Result<i64, &str>> {
        self.costs.told(self.cost_field?)
    }

    /// Whether another model made some of the answer.
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

    /// What has arrived of text, arguments of tools and reasoning.
    pub fn shown(&self) -> TextSize {
        self.shown
    }

    /// Whether all of an output of `output` tokens can have been shown.
    pub fn shows_all(&self, output: u64) -> bool {
        output
            <= estimate::upper(self.shown)
                .saturating_mul(2)
                .saturating_add(100)
    }

    /// Sets a tokenizer's count of the request.
    pub fn know_input(&mut self, tokens: u64) {
        self.input_known = Some(tokens);
    }

    /// Sets the provider's count; `last` if it came at the end of the answer. An absurd count never replaces a plausible one.
    pub fn report(&mut self, wire: &WireUsage, last: bool) {
        self.reasoning_outside |= wire.total_has_reasoning_outside();
        self.hear(&wire.said);
        self.costs.merge(&wire.costs);
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
                if !wire.writes_divided && self.start.lifetimes.any() {
                    let rates = *self.rates();
                    for step in std::iter::once(&mut usage).chain(&mut further) {
                        self.start.lifetimes.undivided(step, &rates);
                    }
                }
                (
                    self.doubt(&usage, &further)
                        .map_or(Ok(usage), |why| Err((usage, why))),
                    further,
                )
            }
        };
        let report = &mut self.report;
        report.claimed = counted.err();
        let Ok(usage) = counted else { return };
        report.further = further;
        report.shown = self.shown;
        report.usage = Some(usage);
        report.complete |= last;
    }

    /// Output that the customer predicted.
    pub const fn predicted(&self) -> u64 {
        self.start.predicted
    }

    /// By how much a count is clearly above what was allowed.
    pub fn excess(&self, usage: &Usage) -> Option<u64> {
        let limit = self.start.output_limit;
        let most = limit.saturating_add(limit / 8);
        let counted = usage.all_output();
        (counted > most.saturating_add(BEYOND)).then(|| counted.saturating_sub(limit))
    }

    /// Whether a finished answer had output that was not shown, as far as text says how many tokens it is.
    pub fn hid(&self, usage: &Usage) -> bool {
        let shown = self.near(None).output;
        let reasoned =
            usage.reasoning > 0 && shown <= usage.output.saturating_add(usage.reasoning / 2);
        let made = usage.all_output().saturating_sub(self.start.predicted);
        reasoned || !self.shows_all(made)
    }

    /// Whether anything was shown.
    pub fn shown_anything(&self) -> bool {
        self.shown != TextSize::default()
    }

    /// Whether anything was shown or counted.
    pub fn made_anything(&self) -> bool {
        let counted = |usage: &Usage| usage.prompt() > 0 || usage.all_output() > 0;
        self.shown_anything()
            || self.report.usage.as_ref().is_some_and(counted)
            || self.report.claimed.is_some()
    }

    /// Output that nobody counted, beside `shown`: of a target that may hide some, or makes several answers, as much as it makes in the time since
    /// its first frame; else what it makes in a long silence.
    fn unshown(&self, shown: u64) -> u64 {
        let pace = self.pace;
        if pace.hides || self.start.choices > 1 {
            return self.made_in(pace.since_frame).saturating_sub(shown);
        }
        if pace.since_text > SILENCE {
            made(pace.rate, pace.since_text)
        } else {
            0
        }
    }

    /// Output tokens that the target makes in this time.
    pub fn made_in(&self, time: Duration) -> u64 {
        made(self.pace.rate, time).saturating_mul(self.start.choices)
    }

    /// What the counted prompt costs, by the prices of the hold, and its tokens; `None` before a provider has counted it.
    pub fn counted_prompt(&self) -> Option<(Amount, u64)> {
        let counted = self.report.prompt()?;
        let (first, further) = self.steps(counted);
        let prompt = Usage {
            output: 0,
            reasoning: 0,
            ..first
        };
        let further = if further.is_empty() {
            0
        } else {
            price::picos(self.held(), counted, &[])
        };
        let cost = price::picos(self.held(), &prompt, &[]).max(further);
        Some((price::to_amount(cost), prompt.prompt()))
    }

    /// The rates that apply to the input known so far.
    pub fn rates(&self) -> &Rates {
        let counted = self
            .report
            .prompt()
            .map(|usage| self.steps(usage).0.prompt());
        let input = counted.filter(|input| *input > 0);
        self.held()
            .for_input(input.unwrap_or(self.start.estimated_input))
    }

    /// The charge if the answer ended now, for checkpoints: the best estimate rather than an upper bound. Per class, the larger of
    /// the provider's count so far and ours, plus output that is not shown.
    pub fn charge_if_cut(&self) -> Counted {
        let mut counted = self.counted(self.left(self.estimated()), self.evidence_of_left());
        counted.owed = self.owed(Ending::Cut, &counted, None);
        counted
    }

    /// Whether the end needs a local count.
    pub fn needs_local(&self, ending: Ending) -> bool {
        match ending {
            Ending::Nothing => false,
            Ending::Broken | Ending::Lost => true,
            Ending::Cut => !self.counted_whole(),
            Ending::Complete => {
                let charged = !self.report.complete
                    || self.shown_anything()
                    || self.silence_asked
                    || self.report.claimed.is_some();
                charged && !self.counted_whole()
            }
        }
    }

    /// Whether the provider has a complete and plausible count of the answer.
    fn counted_whole(&self) -> bool {
        let report = &self.report;
        let all = report.complete || (self.shown_anything() && self.shown == report.shown);
        let something = |usage: &Usage| {
            let (input, output) = (usage.prompt(), usage.all_output());
            (input > 0 || !self.silence_asked)
                && (input > 0 && output > 0 || !self.shown_anything())
        };
        all && report.claimed.is_none() && report.usage.as_ref().is_some_and(something)
    }

    /// The charge for this answer, which took `elapsed`. `local` is a tokenizer's count of it, if one was needed.
    pub fn finish(&self, ending: Ending, local: Option<Local>, took: Duration) -> Counted {
        let mut counted = self.charged(ending, local.unwrap_or_else(|| self.estimated()), took);
        counted.owed = self.owed(ending, &counted, local);
        counted
    }

    fn charged(&self, ending: Ending, local: Local, took: Duration) -> Counted {
        match (ending, &self.report.usage, &self.report.claimed) {
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
                if self.report.complete && !self.shown_anything() && !self.silence_asked =>
            {
                self.counted(*usage, Evidence::Provider)
            }
            (Ending::Complete, ..) if self.shown_anything() || self.silence_asked => {
                self.counted(self.running(local), Evidence::Local)
            }
            (Ending::Complete, ..) => free(),
            (Ending::Cut, ..) => self.counted(self.left(local), self.evidence_of_left()),
        }
    }

    /// The provider's claim, bounded by what it can have read and produced, and at least what we have seen.
    fn bounded(&self, claimed: Usage, local: Local, took: Duration) -> Usage {
        let mut usage = claimed;
        let mut room = self.start.most_input;
        for kind in [
            UsageKind::CacheRead,
            UsageKind::Input,
            UsageKind::CacheWrite,
            UsageKind::CacheWrite1h,
            UsageKind::CacheWrite12h,
        ] {
            usage[kind] = usage[kind].min(room);
            room = room.saturating_sub(usage[kind]);
        }
        let speed = u64::from(self.model.limits.speed.unwrap_or(USUAL_SPEED)).saturating_mul(1_000);
        let by_time = made(speed, took).saturating_mul(self.start.choices);
        let most = self.start.output_limit.saturating_mul(2).max(by_time);
        usage.reasoning = usage.reasoning.min(most);
        usage.output = usage.output.min(most.saturating_sub(usage.reasoning));
        let missing = local.input.saturating_sub(usage.prompt());
        usage.input = usage.input.saturating_add(missing);
        let missing = local.output.saturating_sub(usage.all_output());
        usage.output = usage.output.saturating_add(missing);
        usage
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
            ..counts::usage(counted)
        }
    }
}

/// Tokens made at this pace, in thousandths of a token a second.
fn made(pace: u64, time: Duration) -> u64 {
    let made = u128::from(pace).saturating_mul(time.as_millis()) / 1_000_000;
    u64::try_from(made).unwrap_or(u64::MAX)
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

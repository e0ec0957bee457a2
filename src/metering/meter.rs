//! The running count of one answer, and the one place that says what is charged at its end.
//!
//! Two counts stand side by side: what the provider said, and what was shown. While a stream runs the larger of the two decides
//! whether the hold still covers it; at the end the provider's count is charged when it is there and believable, else ours,
//! which then leans to the customer's side.

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{Amount, Evidence, Line, Usage};
use farebox_protocol::{FrameFacts, Reading, TextSize, WireUsage};

use super::{estimate, price};
use crate::config::{Model, Rates};

/// Counts one answer.
#[derive(Debug, Clone)]
pub struct Meter {
    model: Arc<Model>,
    /// Input as estimated before the call.
    estimated_input: u64,
    /// The same, leaning to the customer's side.
    input_at_least: u64,
    /// Pictures, where they have a price of their own.
    images: u64,
    /// Most output the upstream was allowed.
    output_limit: u64,
    /// The provider's reasoning count is not inside its output count.
    reasoning_outside: bool,
    shown: TextSize,
    /// Output that the stream does not show, metered by time, in tokens.
    hidden: u64,
    /// The last believable count of the provider's.
    reported: Option<Usage>,
    /// The provider's last count was not believable.
    absurd: bool,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As the provider meant it.
    Complete,
    /// Cut by us or the customer while it ran: the balance was used up, the customer left, the time was over.
    Cut,
    /// The provider's stream broke.
    Broken,
    /// Nothing was delivered, through our fault or the provider's, or the customer left before anything began.
    Nothing,
}

/// What one answer is charged for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Disjoint counts.
    pub usage: Usage,
    /// Their prices.
    pub lines: Vec<Line>,
    /// Who counted.
    pub evidence: Evidence,
}

/// What a meter starts from.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// Input as estimated.
    pub estimated_input: u64,
    /// Text of the request, for a count that leans to the customer's side.
    pub text: TextSize,
    /// Pictures in the request.
    pub images: u64,
    /// Most output the upstream was allowed, all choices together.
    pub output_limit: u64,
}

impl Meter {
    /// A meter for one answer of `model`.
    #[must_use]
    pub fn new(model: Arc<Model>, start: Start) -> Self {
        let priced_images =
            model.price.base.per_image != Amount::ZERO || model.price.tiers.iter().any(|tier| tier.1.per_image != Amount::ZERO);
        Self {
            estimated_input: start.estimated_input,
            input_at_least: estimate::lower(start.text).min(start.estimated_input),
            images: if priced_images { start.images } else { 0 },
            output_limit: start.output_limit,
            reasoning_outside: false,
            shown: TextSize::default(),
            hidden: 0,
            reported: None,
            absurd: false,
            model,
        }
    }

    /// Says how the provider that answers counts its reasoning.
    pub fn reasoning_outside(&mut self, outside: bool) {
        self.reasoning_outside = outside;
    }

    /// Takes in one frame of a stream.
    pub fn observe(&mut self, facts: &FrameFacts, usage: &WireUsage) {
        self.show(facts.shown);
        if facts.usage {
            self.report(usage);
        }
    }

    /// Takes in output that was shown.
    pub fn show(&mut self, shown: TextSize) {
        self.shown.ascii = self.shown.ascii.saturating_add(shown.ascii);
        self.shown.other = self.shown.other.saturating_add(shown.other);
    }

    /// Takes in time during which output was made that the stream does not show.
    pub fn hide(&mut self, elapsed: Duration) {
        let tokens = u128::from(self.model.limits.speed).saturating_mul(elapsed.as_millis()) / 1_000;
        self.hidden = self.hidden.saturating_add(u64::try_from(tokens).unwrap_or(u64::MAX));
    }

    /// Takes in what the provider says. An absurd count never replaces a believable one.
    pub fn report(&mut self, wire: &WireUsage) {
        match wire.reading(self.reasoning_outside) {
            Reading::Missing => {}
            Reading::Absurd => self.absurd = true,
            Reading::Counted(counted) => {
                let usage = self.with_images(counted);
                self.absurd = !self.believable(&usage);
                if !self.absurd {
                    self.reported = Some(usage);
                }
            }
        }
    }

    /// Whether anything was shown.
    #[must_use]
    pub fn shown_anything(&self) -> bool {
        self.shown != TextSize::default()
    }

    /// What the answer has cost up to now, rather too much: the hold must cover it.
    #[must_use]
    pub fn running_cost(&self) -> Amount {
        let counted = estimate::upper(self.shown).saturating_add(self.hidden);
        price::cost(&self.model.price, &self.running(self.estimated_input, counted)).unwrap_or(Amount::from_picos(i64::MAX))
    }

    /// Output tokens up to now, for a rate.
    #[must_use]
    pub fn running_output(&self) -> u64 {
        estimate::upper(self.shown).saturating_add(self.hidden)
    }

    /// The rates in force for what is known of the input.
    #[must_use]
    pub fn rates(&self) -> &Rates {
        let input = self.reported.as_ref().map_or(self.estimated_input, price::input_total);
        self.model.price.for_input(input)
    }

    /// What would be charged if the answer were cut here.
    #[must_use]
    pub fn so_far(&self) -> Counted {
        let counted = estimate::lower(self.shown).saturating_add(self.hidden);
        self.counted(self.running(self.input_at_least, counted), Evidence::Local)
    }

    /// What is charged for this answer. `held` bounds a count that the provider's own contradicts.
    #[must_use]
    pub fn finish(&self, ending: Ending, held: Amount) -> Counted {
        match ending {
            Ending::Nothing => free(),
            Ending::Broken if !self.shown_anything() => free(),
            Ending::Complete if self.absurd => self.disputed(held),
            Ending::Complete => match self.reported {
                Some(usage) => self.counted(usage, Evidence::Provider),
                None if self.shown_anything() => self.so_far(),
                None => free(),
            },
            Ending::Cut | Ending::Broken => self.so_far(),
        }
    }

    /// Our own count, at most the hold: the provider's was absurd, so nobody can be sure.
    fn disputed(&self, held: Amount) -> Counted {
        let mut usage = self.running(self.input_at_least, estimate::lower(self.shown));
        let output = usage.output.saturating_add(usage.reasoning);
        usage = Usage { output: 0, reasoning: 0, ..usage };
        let input_cost = price::cost(&self.model.price, &usage).unwrap_or(held);
        let left = held.picos().saturating_sub(input_cost.picos()).max(0);
        let affordable =
            left.checked_div(self.rates().output.picos()).map_or(output, |tokens| u64::try_from(tokens).unwrap_or(0));
        usage.output = output.min(affordable);
        self.counted(usage, Evidence::Disputed)
    }

    /// The larger of the provider's count so far and ours; the provider's input wins.
    fn running(&self, input: u64, output: u64) -> Usage {
        let local = Usage { input, images: self.images, ..Usage::default() };
        let mut usage = self.reported.unwrap_or(local);
        let counted = usage.output.saturating_add(usage.reasoning);
        usage.output = usage.output.saturating_add(output.saturating_sub(counted));
        usage
    }

    fn counted(&self, usage: Usage, evidence: Evidence) -> Counted {
        Counted { usage, lines: price::lines(&self.model.price, &usage), evidence }
    }

    fn with_images(&self, counted: farebox_protocol::Usage) -> Usage {
        Usage {
            input: counted.input,
            cache_read: counted.cache_read,
            cache_write: counted.cache_write,
            cache_write_1h: counted.cache_write_1h,
            output: counted.output,
            reasoning: counted.reasoning,
            images: self.images,
        }
    }

    fn believable(&self, usage: &Usage) -> bool {
        price::input_total(usage) <= self.model.limits.context
            && usage.output.saturating_add(usage.reasoning) <= self.output_limit.saturating_mul(2)
            && price::cost(&self.model.price, usage).is_some()
    }
}

fn free() -> Counted {
    Counted { usage: Usage::default(), lines: Vec::new(), evidence: Evidence::Local }
}

//! The running count of one answer, and the one place that says what is charged at its end.
//!
//! Two counts stand side by side: what the provider said, and what was shown since. While a stream runs, both together and at
//! the dearest rates decide whether the hold still covers it; at the end the provider's count is charged when it is there and
//! believable, else ours, which then leans to the customer's side.

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
    /// The request asked for cache writes of the dearer kind.
    one_hour_cache: bool,
    shown: TextSize,
    /// Of which the provider's count knows.
    shown_counted: TextSize,
    /// Time in which output was made that the stream does not show, since the provider counted last.
    hidden: Duration,
    /// The last believable count of the provider's.
    reported: Option<Usage>,
    /// It came with the end of the answer, so it is all of it.
    complete: bool,
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
    /// The request asked for cache writes of one hour.
    pub one_hour_cache: bool,
}

impl Meter {
    /// A meter for one answer of `model`.
    #[must_use]
    pub fn new(model: Arc<Model>, start: Start) -> Self {
        let priced_images =
            model.price.base.per_image != Amount::ZERO || model.price.tiers.iter().any(|tier| tier.1.per_image != Amount::ZERO);
        Self {
            estimated_input: start.estimated_input,
            input_at_least: estimate::least(start.text, start.estimated_input),
            images: if priced_images { start.images } else { 0 },
            output_limit: start.output_limit,
            reasoning_outside: false,
            one_hour_cache: start.one_hour_cache,
            shown: TextSize::default(),
            shown_counted: TextSize::default(),
            hidden: Duration::ZERO,
            reported: None,
            complete: false,
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
            self.report(usage, facts.last);
        }
    }

    /// Takes in output that was shown.
    pub fn show(&mut self, shown: TextSize) {
        self.shown.add(shown);
    }

    /// Takes in time during which output was made that the stream does not show.
    pub fn hide(&mut self, elapsed: Duration) {
        self.hidden = self.hidden.saturating_add(elapsed);
    }

    /// Takes in what the provider says; `last`: at the end of its answer. An absurd count never replaces a believable one.
    pub fn report(&mut self, wire: &WireUsage, last: bool) {
        let counted = match wire.reading(self.reasoning_outside) {
            Reading::Missing => return,
            Reading::Absurd => None,
            Reading::Counted(counted) => Some(self.with_images(counted)).filter(|usage| self.believable(usage)),
        };
        self.absurd = counted.is_none();
        let Some(usage) = counted else { return };
        if self.reported.as_ref().map_or(0, output_total) < output_total(&usage) {
            self.shown_counted = self.shown;
            self.hidden = Duration::ZERO;
        }
        self.reported = Some(usage);
        self.complete |= last;
    }

    /// Whether anything was shown.
    #[must_use]
    pub fn shown_anything(&self) -> bool {
        self.shown != TextSize::default()
    }

    /// What the answer has cost up to now, rather too much: the hold must cover it. What the provider has not counted yet may
    /// turn out to be of the dearest class.
    #[must_use]
    pub fn running_cost(&self) -> Amount {
        let rates = self.rates();
        let counted = match &self.reported {
            Some(usage) => price::picos(&self.model.price, usage),
            None => {
                let images = i128::from(rates.per_image.picos()) * i128::from(self.images);
                let input = price::dearest_input(rates, self.one_hour_cache) * i128::from(self.estimated_input);
                input + images + i128::from(rates.per_request.picos())
            }
        };
        let output = price::dearest_output(rates) * i128::from(self.uncounted_output());
        price::to_amount(counted.saturating_add(output))
    }

    /// Output tokens up to now, rather too many.
    #[must_use]
    pub fn running_output(&self) -> u64 {
        self.reported.as_ref().map_or(0, output_total).saturating_add(self.uncounted_output())
    }

    /// Output that the provider's count does not know yet, rather too much.
    fn uncounted_output(&self) -> u64 {
        let ascii = self.shown.ascii.saturating_sub(self.shown_counted.ascii);
        let other = self.shown.other.saturating_sub(self.shown_counted.other);
        estimate::upper(TextSize { ascii, other }).saturating_add(self.hidden_tokens())
    }

    fn hidden_tokens(&self) -> u64 {
        let tokens = u128::from(self.model.limits.speed).saturating_mul(self.hidden.as_millis()) / 1_000;
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }

    /// The rates in force for what is known of the input.
    #[must_use]
    pub fn rates(&self) -> &Rates {
        let input = self.reported.as_ref().map_or(self.estimated_input, price::input_total);
        self.model.price.for_input(input)
    }

    /// What would be charged if the answer were cut here: the larger of the provider's count so far and ours, and what was
    /// hidden since.
    #[must_use]
    pub fn so_far(&self) -> Counted {
        self.counted(self.running(self.hidden_tokens()), Evidence::Local)
    }

    /// What is charged for this answer. `held` bounds a count that the provider's own contradicts.
    #[must_use]
    pub fn finish(&self, ending: Ending, held: Amount) -> Counted {
        match ending {
            Ending::Nothing => free(),
            Ending::Broken if !self.shown_anything() => free(),
            Ending::Complete if self.absurd => {
                // Nobody can be sure, so it is what we have seen, and no more than was agreed on beforehand.
                let usage = price::at_most(&self.model.price, &self.running(0), held);
                self.counted(usage, Evidence::Disputed)
            }
            Ending::Complete => match self.reported {
                Some(usage) if self.complete => self.counted(usage, Evidence::Provider),
                _ if self.shown_anything() => self.so_far(),
                _ => free(),
            },
            Ending::Cut | Ending::Broken => self.so_far(),
        }
    }

    /// The provider's input, else ours; the larger of both outputs; and `hidden` tokens on top.
    fn running(&self, hidden: u64) -> Usage {
        let local = Usage { input: self.input_at_least, images: self.images, ..Usage::default() };
        let mut usage = self.reported.unwrap_or(local);
        let missing = estimate::lower(self.shown).saturating_sub(output_total(&usage));
        usage.output = usage.output.saturating_add(missing).saturating_add(hidden);
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
            && output_total(usage) <= self.output_limit.saturating_mul(2)
            && price::cost(&self.model.price, usage).is_some()
    }
}

fn output_total(usage: &Usage) -> u64 {
    usage.output.saturating_add(usage.reasoning)
}

fn free() -> Counted {
    Counted { usage: Usage::default(), lines: Vec::new(), evidence: Evidence::Local }
}

#[cfg(test)]
mod tests;

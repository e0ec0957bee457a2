//! What a request is held at: the most that its provider can bill for it, and the output limit that makes it so.
//!
//! A provider bills no more output than the limit that it was sent. So the ledger grants a limit for which there is room, the request is
//! held at its input and that limit, and the limit is written into what the provider gets. Nothing that happens while it runs changes
//! that: no clock, no pace and no look at what else the key has. All arithmetic is in `i128`, so nothing overflows.
//!
//! Rows of docs/interface.md: `spending_ends_at_the_balance`.

use farebox_ledger::{Amount, HoldWay};
use farebox_protocol::Classes;

use super::Lifetimes;
use super::estimate::Estimate;
use super::price::{dearest_input, dearest_output, input_rate, times, to_amount};
use crate::config::{LimitBinds, ModelLimits, Price, Rates};

/// Output tokens of a choice that must be affordable for an answer to be worth starting: a paragraph or two. With fewer, a customer
/// would pay for a long prompt to read half a sentence.
pub const SMALLEST_OUTPUT: u64 = 256;
/// The limit of a request beside others: most answers are shorter.
const FLOOR: u64 = 4_096;
/// The same where the model reasons first, and the most that an answer with a form waits for.
const REASONING_FLOOR: u64 = 16_384;
/// The least that a thinking budget is lowered to: vendors refuse less.
const SMALLEST_BUDGET: u64 = 1_024;
/// The least limit with a thinking budget in it.
const SMALLEST_WITH_BUDGET: u64 = SMALLEST_BUDGET + SMALLEST_OUTPUT;
/// The summary of a compacted conversation, which no limit bounds: several times what vendors' summaries have.
const SUMMARY: u64 = 8_192;

/// How long a request has waited for money: the longer, the smaller is the floor that it is content with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// Not for long.
    #[default]
    Fresh,
    /// For ten seconds.
    Waited,
    /// For twenty.
    WaitedLong,
}

impl Patience {
    /// All of them, in this order.
    pub const ALL: [Self; 3] = [Self::Fresh, Self::Waited, Self::WaitedLong];

    /// What is left of a floor.
    const fn of(self, floor: u64) -> u64 {
        match self {
            Self::Fresh => floor,
            Self::Waited => floor / 2,
            Self::WaitedLong => floor / 4,
        }
    }
}

/// What of a request decides its bound at a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The output limit that the customer declared.
    pub declared: Option<u32>,
    /// Answers requested (`n`).
    pub choices: u32,
    /// Tokens set aside for thinking inside the limit.
    pub thinking_budget: Option<u32>,
    /// The model reasons, and the request does not turn that off.
    pub reasons: bool,
    /// Half an answer is of no use.
    pub formed: bool,
    /// Tokens of each answer that the customer predicts; unused ones are billed as output.
    pub predicted: u64,
    /// Pictures in the request.
    pub images: u64,
    /// The lifetimes of cache writes that are asked for.
    pub lifetimes: Lifetimes,
    /// The classes that are asked for.
    pub classes: Classes,
    /// Its prompt may be written to a cache: it is marked for one, or the target has written without a mark.
    pub writes: bool,
    /// From how many input tokens on a provider compacts the conversation, if it is asked to.
    pub compacts_from: Option<u64>,
    /// Its input in tokens.
    pub estimate: Estimate,
    /// Tokens of it that the target has probably cached, if it is a prompt that is known there.
    pub cached: Option<u64>,
    /// What of the output the limit bounds at the target.
    pub binds: LimitBinds,
    /// What the target was seen to bill beyond its output bound, in tokens.
    pub excess: u64,
}

/// The limits of a choice between which a request may be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LimitRange {
    floor: u64,
    least: u64,
    most: u64,
}

/// One way to reckon what a request is held at, and what the provider may bill beyond that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReckonedWay {
    /// For the ledger.
    pub way: HoldWay,
    /// What this way leaves to the operator, should the input turn out to be what it may be.
    pub uncovered: Amount,
    /// Tokens of input that it reckons with: the bound, or what is likely.
    pub input: u64,
}

/// The least that one of these ways needs, beside others or alone.
pub fn least(ways: &[ReckonedWay], alone: bool) -> Amount {
    let needs = ways.iter().map(|reckoned| reckoned.way.needs(alone));
    needs.min().unwrap_or_default()
}

/// Terms under which a request is served at a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The output limit of each choice.
    pub limit: u64,
    /// What of it is to be written; `None` leaves the request as it is.
    pub written: Option<u32>,
    /// The thinking budget within it, if it had to be lowered, too.
    pub budget: Option<u32>,
    /// Whether the limit is below what was asked for, so that an answer that ends there ends for want of money.
    pub lowered: bool,
    /// The most output that the provider may bill, all choices together.
    pub output_bound: u64,
    /// The likely input, used until a provider has counted.
    pub likely_input: u64,
    /// The most input that a provider can count.
    pub most_input: u64,
    /// The predicted output, of all choices together.
    pub predicted: u64,
}

impl Terms {
    /// A lowered limit, as it is told: `8333; thinking=6249`.
    pub fn told(&self) -> Option<String> {
        let limit = self.lowered.then_some(self.limit)?;
        Some(match self.budget {
            Some(budget) => format!("{limit}; thinking={budget}"),
            None => limit.to_string(),
        })
    }
}

/// The balance is too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// What the smallest acceptable form of the request needs.
    pub needed: Amount,
    /// Output tokens that the available money still buys after the request's input.
    pub affordable_output: u64,
    /// The largest limit that can be paid, where a smaller one would make the request affordable.
    pub remedy: Option<u64>,
}

impl Ask {
    /// The largest limit of a choice.
    fn most(&self, limits: &ModelLimits) -> u64 {
        let most = limits.max_output;
        u64::from(self.declared.map_or(most, |declared| declared.min(most)))
    }

    /// Whether the limit may be below what was asked for: a service that is sent none takes none, and a prediction allows none.
    const fn can_lower(&self) -> bool {
        match self.binds {
            LimitBinds::None => false,
            LimitBinds::All | LimitBinds::Text => self.predicted == 0,
        }
    }

    fn range(&self, limits: &ModelLimits, patience: Patience) -> LimitRange {
        let most = match self.binds {
            LimitBinds::None => u64::from(limits.max_output),
            LimitBinds::All | LimitBinds::Text => self.most(limits),
        };
        if !self.can_lower() {
            return LimitRange {
                floor: most,
                least: most,
                most,
            };
        }
        let usual = if self.reasons { REASONING_FLOOR } else { FLOOR };
        let smallest = match self.thinking_budget {
            Some(_) => SMALLEST_WITH_BUDGET,
            None => SMALLEST_OUTPUT,
        };
        let shared = usual.checked_div(self.choices.into()).unwrap_or(usual);
        let floor = if self.formed {
            most.min(REASONING_FLOOR)
        } else {
            patience.of(shared).max(smallest)
        };
        LimitRange {
            floor,
            least: smallest,
            most,
        }
    }

    /// Output of a choice that is billed beside its limit.
    fn beside(&self, limits: &ModelLimits) -> u64 {
        match self.binds {
            LimitBinds::Text if self.reasons => {
                u64::from(limits.max_reasoning.unwrap_or(limits.max_output))
            }
            LimitBinds::All | LimitBinds::Text | LimitBinds::None => 0,
        }
    }

    /// The ways in which its cost may be reckoned: the bound; at the tier of what is likely; and, of a known prompt, at what it probably
    /// costs. `price` is what is held for the classes that are asked for.
    pub fn ways(
        &self,
        price: &Price,
        limits: &ModelLimits,
        patience: Patience,
    ) -> Vec<ReckonedWay> {
        let Estimate { input, bound, .. } = self.estimate;
        let likely = input.saturating_add(input / 10).min(bound);
        let range = self.range(limits, patience);
        let all = self.way(price.for_input(bound), bound, 0, limits, range);
        let mut ways = vec![ReckonedWay {
            way: all,
            uncovered: Amount::ZERO,
            input: bound,
        }];
        let mut or = |way: HoldWay, input| {
            let (most, less) = (all.amount(range.most), way.amount(range.most));
            let uncovered = most
                .zip(less)
                .and_then(|(most, less)| most.checked_sub(less));
            if let Some(uncovered) = uncovered.filter(|uncovered| uncovered.is_positive()) {
                ways.push(ReckonedWay {
                    way,
                    uncovered,
                    input,
                });
            }
        };
        let rates = price.for_input(likely);
        or(self.way(rates, bound, 0, limits, range), bound);
        if let Some(cached) = self.cached {
            or(self.way(rates, input, cached, limits, range), input);
        }
        ways
    }

    /// What is fixed and what a token of the limit costs, with so much input, `cached` tokens of which are read from a cache.
    fn way(
        &self,
        rates: &Rates,
        input: u64,
        cached: u64,
        limits: &ModelLimits,
        range: LimitRange,
    ) -> HoldWay {
        let choices = u64::from(self.choices);
        let of_output = dearest_output(rates);
        let rate = input_rate(rates, self.writes, self.lifetimes);
        let cached = cached.min(input);
        let summary = if self.compacts(input) { SUMMARY } else { 0 };
        let beyond = self
            .predicted
            .saturating_add(self.beside(limits))
            .saturating_mul(choices)
            .saturating_add(self.excess)
            .saturating_add(summary);
        let parts = [
            times(rate, input.saturating_sub(cached)),
            times(i128::from(rates.cache_read.picos()), cached),
            self.compaction(rates, input),
            times(i128::from(rates.per_image.picos()), self.images),
            i128::from(rates.per_request.picos()),
            times(of_output, beyond),
        ];
        HoldWay {
            fixed: to_amount(parts.into_iter().fold(0, i128::saturating_add)),
            token: to_amount(times(of_output, choices)),
            floor: range.floor,
            least: range.least,
            most: range.most,
        }
    }

    fn compacts(&self, input: u64) -> bool {
        self.compacts_from.is_some_and(|from| input >= from)
    }

    /// The cost of compacting the conversation: it is read once more. The summary is output.
    fn compaction(&self, rates: &Rates, input: u64) -> i128 {
        if self.compacts(input) {
            times(input_rate(rates, self.writes, self.lifetimes), input)
        } else {
            0
        }
    }

    /// The bound once a provider has counted the prompt: all but the output costs this much.
    pub fn counted(&self, (cost, input): (Amount, u64), price: &Price, terms: &Terms) -> Amount {
        let rates = price.for_input(input);
        let output = times(dearest_output(rates), terms.output_bound);
        let rest = output.saturating_add(self.compaction(rates, input));
        to_amount(rest.saturating_add(i128::from(cost.picos())))
    }

    /// What a prompt of so many tokens costs at most.
    pub fn prompt(&self, price: &Price, tokens: u64) -> Amount {
        let rate = input_rate(price.for_input(tokens), self.writes, self.lifetimes);
        to_amount(times(rate, tokens))
    }

    /// The terms that a granted limit makes.
    pub fn terms(&self, limits: &ModelLimits, limit: u64) -> Terms {
        let (most, choices) = (self.most(limits), u64::from(self.choices));
        let writes = match self.binds {
            LimitBinds::None => false,
            LimitBinds::All | LimitBinds::Text => true,
        };
        let lowered = limit < most && writes;
        let asked = u64::from(self.declared.unwrap_or(limits.max_output));
        // What is declared above what the model can do is written down, too: vendors refuse it.
        let written = (writes && limit != asked).then(|| self.within_context(limit, limits));
        let budget = self.thinking_budget.filter(|_| lowered).and_then(|budget| {
            let most = (limit.saturating_mul(3) / 4).max(SMALLEST_BUDGET);
            u32::try_from(most).ok().filter(|most| *most < budget)
        });
        let summary = if self.compacts(self.estimate.bound) {
            SUMMARY
        } else {
            0
        };
        Terms {
            limit,
            written,
            budget,
            lowered,
            output_bound: limit
                .saturating_add(self.predicted)
                .saturating_add(self.beside(limits))
                .saturating_mul(choices)
                .saturating_add(self.excess)
                .saturating_add(summary),
            likely_input: self.estimate.input,
            most_input: self.estimate.most,
            predicted: self.predicted.saturating_mul(choices),
        }
    }

    /// A limit that the customer did not declare, as it is written: vendors refuse one that does not fit the context beside the prompt. A long
    /// conversation, whose bytes say little about its tokens, still gets room for an ordinary answer.
    pub fn within_context(&self, limit: u64, limits: &ModelLimits) -> u32 {
        let room = if self.declared.is_some() {
            u64::MAX
        } else {
            let surely = limits.context.saturating_sub(self.estimate.bound);
            let likely = limits.context.saturating_sub(self.estimate.input);
            surely.max(likely.min(SUMMARY)).max(SMALLEST_OUTPUT)
        };
        u32::try_from(limit.min(room)).unwrap_or(u32::MAX)
    }

    /// What is missing of the least that the request needs in a room where so much is left.
    pub fn short(&self, price: &Price, limits: &ModelLimits, left: Amount) -> Shortfall {
        let ways = self.ways(price, limits, Patience::default());
        let buys = |way: &HoldWay| {
            let left = left
                .checked_sub(way.fixed)
                .filter(|left| !left.is_negative());
            let left = left.map_or(0, Amount::picos);
            let tokens = left.checked_div(way.token.picos());
            tokens.map_or(u64::MAX, |tokens| u64::try_from(tokens).unwrap_or(0))
        };
        let affordable = ways.iter().map(|reckoned| buys(&reckoned.way)).max();
        let affordable_output = affordable.unwrap_or_default();
        Shortfall {
            needed: least(&ways, true),
            affordable_output,
            remedy: (!self.can_lower() && affordable_output >= SMALLEST_OUTPUT)
                .then_some(affordable_output)
                .filter(|_| self.binds != LimitBinds::None),
        }
    }
}

/// A bound of a token for each byte is used where the key has so many times what it costs: no tokenizer runs then.
// A hold at a token for each byte is several times the bill. Lower, and such holds take room that other requests want; higher, and more
// requests pay for a tokenizer.
const AMPLE: i128 = 32;

/// Whether a token for each byte would be a good part of what is available.
pub fn is_short(
    price: &Price,
    estimate: &Estimate,
    lifetimes: Lifetimes,
    available: Amount,
) -> bool {
    let rate = dearest_input(price.for_input(estimate.bound), lifetimes);
    times(rate, estimate.bound).saturating_mul(AMPLE) > i128::from(available.picos())
}

#[cfg(test)]
mod tests;

//! The terms of a request: the hold, and the output limit that the balance can pay.
//!
//! Refusal is always decided by the estimate, never by the ceiling: a request that is probably affordable is served, and only
//! what is held grows towards the ceiling when the key is nearly empty. All arithmetic is in `i128`, so nothing overflows.

mod unseen;

use farebox_ledger::Amount;
use farebox_protocol::Classes;

use super::Lifetimes;
use super::estimate::Estimate;
use super::price::{dearest_input, dearest_output, likely_input, times, to_amount};
use crate::config::{ModelLimits, Price, Rates};

/// Output tokens that must be affordable for an answer to be worth starting: a paragraph or two. With fewer, a customer would pay
/// for a long prompt to read half a sentence.
pub const SMALLEST_OUTPUT: u64 = 256;
/// Output tokens a stream holds at a time. Larger, and ten agents could not run side by side on a few dollars; smaller, and the ledger
/// would commit an extension for every few seconds of every stream.
pub const SLICE: u64 = 2_048;
/// A key with less than this many ceilings, plus one for each of its running requests, is nearly empty: its holds are made at the
/// ceiling.
///
/// With ample money a hold at the estimate is safe: what it is off is paid from the rest of the balance. With fewer ceilings than
/// requests that may be wrong at once, the rest may not suffice, and the operator would pay.
const NEARLY_EMPTY: i128 = 4;

/// The facts of a request that determine its terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Streamed answers hold slice by slice, whole ones everything.
    pub stream: bool,
    /// The output limit the customer declared.
    pub declared: Option<u32>,
    /// Answers requested (`n`).
    pub choices: u32,
    /// Tokens set aside for thinking inside the limit.
    pub thinking_budget: Option<u32>,
    /// Tokens of the answer that the customer predicts; unused ones are billed as output.
    pub predicted: u64,
    /// Pictures in the request.
    pub images: u64,
    /// The lifetimes of cache writes that are asked for.
    pub lifetimes: Lifetimes,
    /// The classes that are asked for.
    pub classes: Classes,
    /// Its prompt is marked for a cache.
    pub cache_marked: bool,
    /// From how many input tokens on a provider compacts the conversation, if it is asked to.
    pub compacts_from: Option<u64>,
    /// The key's running requests, including this one.
    pub in_flight: u32,
    /// Its input in tokens: expected, ceiling, least and most.
    pub estimate: Estimate,
    /// Whether a provider that may answer reasons beyond the output limit.
    pub reasons_outside: bool,
    /// Whether the target may produce all of a stream's limit before it shows anything, at a pace that nobody knows.
    pub unseen: bool,
}

/// Terms under which a request is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The amount to hold before dispatch.
    pub hold: Amount,
    /// The output limit to write into the request; `None` leaves it as it is.
    pub limit: Option<u32>,
    /// Whether a stream's limit was lowered to what the money buys, so that an answer that ends there ends for want of it.
    pub lowered: bool,
    /// Most output tokens that the upstream may produce, all choices together.
    pub output_limit: u64,
    /// The estimated input, used until a provider has counted.
    pub estimated_input: u64,
    /// The most input that a provider can count.
    pub most_input: u64,
    /// The predicted output, of all choices together.
    pub predicted: u64,
    /// The part of the hold for compacting the conversation.
    pub compaction: Amount,
    /// Whether a stream's hold covers all that its limit allows.
    pub holds_whole_limit: bool,
    /// Whether the prompt may be written to a cache.
    pub cache_marked: bool,
}

/// The balance is too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// What the smallest acceptable form of the request needs.
    pub needed: Amount,
    /// Output tokens that the available money still buys after the request's input.
    pub affordable_output: u64,
    /// What would make the request affordable now, if only the declared limit is too expensive.
    pub remedies: Remedies,
}

/// Changes to a request that make it affordable without more money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Remedies {
    /// The largest limit that can be paid.
    pub limit: Option<u64>,
    /// Whether the request would be served as a stream, with its limit lowered.
    pub stream: bool,
}

/// Decides the terms for a key with this much available. `price` is what is held for the classes that are asked for.
///
/// # Errors
/// [`Shortfall`] if the balance is too small.
pub fn decide(
    ask: &Ask,
    price: &Price,
    limits: &ModelLimits,
    available: Amount,
) -> Result<Terms, Shortfall> {
    let budget = KeyBudget::new(ask, price, limits, available);
    let most = u64::from(
        ask.declared
            .unwrap_or(limits.max_output)
            .min(limits.max_output),
    );
    // Input and output share the context. The required amount assumes the estimated input; the held amount assumes the smallest
    // possible input.
    // At least one token each: a prompt that fills the context is for the vendor to refuse, who knows its exact size.
    let room = limits.context.saturating_sub(ask.estimate.input).max(1);
    let most_room = limits.context.saturating_sub(ask.estimate.least).max(1);
    // The wanted amount may exceed what is there, because the ceiling is a worst case: the hold then takes all there is.
    let mut cap = budget.available;
    let (mut holds_whole_limit, mut lowered) = (false, false);
    let (limit, sent, held) = if ask.stream && ask.unseen {
        let unseen = budget.unseen(ask, limits, most, most_room)?;
        (cap, holds_whole_limit) = (unseen.cap, unseen.held == unseen.sent);
        lowered = unseen.lowered;
        (
            changed(unseen.sent, ask.declared, limits.max_output),
            unseen.sent,
            unseen.held,
        )
    } else if ask.stream {
        let sent = budget.lowered(most, ask.thinking_budget)?;
        lowered = sent < most;
        (
            changed(sent, ask.declared, limits.max_output),
            sent,
            // The rest is held slice by slice while it runs.
            sent.min(SLICE),
        )
    } else if ask.declared.is_some() {
        // The customer said what the answer may need, so it is not lowered unasked: the refusal names the limit that can be paid.
        budget
            .require(most.min(room))
            .map_err(|short| budget.remedied(short, most, ask.thinking_budget))?;
        (changed(most, ask.declared, limits.max_output), most, most)
    } else {
        let sent = budget.lowered(undeclared(ask, limits), ask.thinking_budget)?;
        (u32::try_from(sent).ok(), sent, sent)
    };
    // A stream's hold can be extended, so only its first slice says how empty the key is.
    let (held, near) = (held.min(most_room), if ask.stream { SLICE } else { held });
    Ok(Terms {
        hold: to_amount(budget.hold(held, near).min(cap)),
        limit,
        lowered,
        output_limit: sent
            .saturating_add(ask.predicted)
            .saturating_mul(u64::from(ask.choices)),
        estimated_input: ask.estimate.input,
        most_input: ask.estimate.most,
        predicted: ask.predicted.saturating_mul(u64::from(ask.choices)),
        compaction: to_amount(of_compaction(
            ask,
            price.for_input(ask.estimate.input),
            ask.estimate.input,
        )),
        holds_whole_limit,
        cache_marked: ask.cache_marked || ask.lifetimes.any(),
    })
}

/// The limit of a whole answer whose request declares none.
fn undeclared(ask: &Ask, limits: &ModelLimits) -> u64 {
    // Vendors reject a limit that does not exceed the thinking budget inside it.
    let thinking = ask.thinking_budget.map_or(0, |budget| {
        u64::from(budget).saturating_add(SMALLEST_OUTPUT)
    });
    // Not the model's largest: it would hold more than most keys have, and few answers need it.
    u64::from(limits.default_output)
        .max(thinking)
        .min(u64::from(limits.max_output))
}

/// The cost of compacting a conversation with this much input: it is read once more, and the summary is output.
fn of_compaction(ask: &Ask, rates: &Rates, input: u64) -> i128 {
    if ask.compacts_from.is_none_or(|from| input < from) {
        return 0;
    }
    times(dearest_input(rates, ask.lifetimes), input)
        .saturating_add(times(dearest_output(rates), SLICE))
}

/// The cost of a request with this much input at these rates, each token of which costs `rate`, without its output, and of one
/// output token of every choice.
fn of_input(ask: &Ask, rates: &Rates, rate: i128, input: u64) -> (i128, i128) {
    // Unused tokens of a prediction are billed as output, so all of them are assumed unused.
    let per_output = times(dearest_output(rates), ask.choices);
    let parts = [
        times(rate, input),
        times(i128::from(rates.per_image.picos()), ask.images),
        i128::from(rates.per_request.picos()),
        times(per_output, ask.predicted),
        of_compaction(ask, rates, input),
    ];
    (parts.into_iter().fold(0, i128::saturating_add), per_output)
}

/// Whether a stream's limit may have to be lowered to what is available.
#[must_use]
pub fn is_short(
    price: &Price,
    limits: &ModelLimits,
    input: u64,
    (declared, choices): (Option<u32>, u32),
    available: Amount,
) -> bool {
    let rates = price.for_input(input);
    let most = declared.unwrap_or(limits.max_output).min(limits.max_output);
    let output = times(times(dearest_output(rates), choices), most);
    // Only a hint that saves work: what it misses, `decide` refuses.
    let cost = times(dearest_input(rates, Lifetimes::default()), input).saturating_add(output);
    cost > i128::from(available.picos())
}

/// The cost of one more slice of output, for extending a hold.
#[must_use]
pub fn slice_cost(rates: &Rates, choices: u32, tokens: u64) -> Amount {
    to_amount(times(times(dearest_output(rates), choices), tokens))
}

/// The limit to write, if it differs from the declared one (or from the default if none was declared).
fn changed(sent: u64, declared: Option<u32>, max_output: u32) -> Option<u32> {
    let asked = u64::from(declared.unwrap_or(max_output));
    if sent == asked {
        None
    } else {
        u32::try_from(sent).ok()
    }
}

/// One request's prices against one key's money, in picodollars.
struct KeyBudget {
    available: i128,
    /// Input and everything else that does not depend on the output.
    fixed: i128,
    /// The same if nothing is written to a cache unasked: what decides about the request and its limit. More is held.
    likely: i128,
    /// The same with the input at its ceiling, and with what a whole answer may cost beyond its limit.
    fixed_ceiling: i128,
    /// One output token of every choice.
    per_output: i128,
    /// The same with the input at its ceiling, which may reach a more expensive tier.
    per_output_ceiling: i128,
    /// The key is nearly empty if it has less than this many ceilings available.
    nearly_empty: i128,
}

impl KeyBudget {
    fn new(ask: &Ask, price: &Price, limits: &ModelLimits, available: Amount) -> Self {
        let estimate = &ask.estimate;
        let of = |input: u64, rate: fn(&Ask, &Rates) -> i128| {
            let rates = price.for_input(input);
            of_input(ask, rates, rate(ask, rates), input)
        };
        let dearest = |ask: &Ask, rates: &Rates| dearest_input(rates, ask.lifetimes);
        let (fixed, per_output) = of(estimate.input, dearest);
        let (likely, _) = of(estimate.input, |ask, rates| {
            likely_input(rates, ask.cache_marked, ask.lifetimes)
        });
        let (ceiling, per_output_ceiling) = of(estimate.ceiling, dearest);
        // Nothing extends the hold of a whole answer while it reasons beyond its limit.
        let beyond = if ask.reasons_outside && !ask.stream {
            times(per_output_ceiling, limits.max_output)
        } else {
            0
        };
        Self {
            available: i128::from(available.picos()),
            fixed,
            likely,
            fixed_ceiling: ceiling.saturating_add(beyond),
            per_output,
            per_output_ceiling,
            nearly_empty: NEARLY_EMPTY.saturating_add(i128::from(ask.in_flight)),
        }
    }

    /// Output tokens of each choice that the available money buys.
    fn affordable(&self) -> u64 {
        let left = self.available.saturating_sub(self.likely);
        match left.checked_div(self.per_output) {
            Some(tokens) => u64::try_from(tokens.max(0)).unwrap_or(u64::MAX),
            None if left >= 0 => u64::MAX,
            None => 0,
        }
    }

    fn require(&self, tokens: u64) -> Result<(), Shortfall> {
        // A key with nothing left is refused even if the model is free.
        if self.available > 0 && self.affordable() >= tokens {
            return Ok(());
        }
        let needed = self.likely.saturating_add(times(self.per_output, tokens));
        let affordable_output = if self.available > 0 {
            self.affordable()
        } else {
            0
        };
        Err(Shortfall {
            needed: to_amount(needed),
            affordable_output,
            remedies: Remedies::default(),
        })
    }

    /// Adds what helps when a declared limit of `most` tokens is too expensive. A limit stays above the thinking budget inside it.
    fn remedied(&self, short: Shortfall, most: u64, thinking_budget: Option<u32>) -> Shortfall {
        let smallest = thinking_budget.map_or(1, |budget| {
            u64::from(budget).saturating_add(SMALLEST_OUTPUT)
        });
        let limit = (short.affordable_output >= smallest).then_some(short.affordable_output);
        Shortfall {
            remedies: Remedies {
                limit,
                stream: self.lowered(most, thinking_budget).is_ok(),
            },
            ..short
        }
    }

    /// The wanted limit, lowered to what is affordable; never to or below a thinking budget, never below the smallest output.
    fn lowered(&self, wanted: u64, thinking_budget: Option<u32>) -> Result<u64, Shortfall> {
        let affordable = self.affordable();
        let smallest = match thinking_budget {
            // A limit at or below the budget would be rejected upstream after money was held. Where the wanted limit is
            // affordable it is sent as it came: then it is the customer's own mistake, and the vendor says so.
            Some(budget) if affordable < wanted => {
                u64::from(budget).saturating_add(SMALLEST_OUTPUT)
            }
            _ => SMALLEST_OUTPUT,
        };
        self.require(smallest.min(wanted))?;
        Ok(wanted.min(affordable))
    }

    /// What to hold for this much output, at most what is available. `near` of it decides whether the key is nearly empty.
    fn hold(&self, output: u64, near: u64) -> i128 {
        let at_ceiling = |output: u64| {
            self.fixed_ceiling
                .saturating_add(times(self.per_output_ceiling, output))
        };
        let at_estimate = self.fixed.saturating_add(times(self.per_output, output));
        let ceiling_near = at_ceiling(near.min(output));
        // A long answer that was declared whole must not make a well-filled key look empty, so only what is near counts.
        let nearly_empty = self.available < ceiling_near.saturating_mul(self.nearly_empty);
        if nearly_empty {
            // The estimate can be dearer where the ceiling reaches a cheaper rate: the greater one covers both.
            at_ceiling(output).max(at_estimate)
        } else {
            at_estimate
        }
        .min(self.available)
    }
}

#[cfg(test)]
mod tests;

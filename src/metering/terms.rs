//! The terms of a request: the hold, and the output limit that the balance can pay.
//!
//! Refusal is always decided by the estimate, never by the ceiling: a request that is probably affordable is served, and only
//! what is held grows towards the ceiling when the key is nearly empty. All arithmetic is in `i128`, so nothing overflows.

use farebox_ledger::Amount;

use super::estimate::Estimate;
use super::price::{dearest_input, dearest_output, to_amount};
use crate::config::{Limits, Price, Rates};

/// Output tokens that must be affordable for an answer to be worth starting.
pub const SMALLEST_OUTPUT: u64 = 256;
/// Output tokens a stream holds at a time.
pub const SLICE: u64 = 2_048;
/// A key with less than this many ceilings, plus one for each of its running requests, is nearly empty: its holds are made at the
/// ceiling.
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
    /// A cache write for one hour is asked for.
    pub one_hour_cache: bool,
    /// From how many input tokens on a provider compacts the conversation, if it is asked to.
    pub compacts_from: Option<u64>,
    /// The key's running requests, including this one.
    pub in_flight: u32,
    /// Its input.
    pub estimate: Estimate,
    /// Whether a provider that may answer reasons beyond the output limit.
    pub reasons_outside: bool,
}

/// Terms under which a request is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The amount to hold before dispatch.
    pub hold: Amount,
    /// The output limit to write into the request; `None` leaves it as it is.
    pub limit: Option<u32>,
    /// Most output tokens that the upstream may produce, all choices together.
    pub output_limit: u64,
    /// The estimated input, used until a provider has counted.
    pub estimated_input: u64,
    /// The predicted output, of all choices together.
    pub predicted: u64,
    /// The part of the hold for compacting the conversation.
    pub compaction: Amount,
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

/// Decides the terms for a key with this much available.
///
/// # Errors
/// [`Shortfall`] if the balance is too small.
pub fn decide(
    ask: &Ask,
    price: &Price,
    limits: &Limits,
    available: Amount,
) -> Result<Terms, Shortfall> {
    let budget = Budget::new(ask, price, limits, available);
    let most = u64::from(
        ask.declared
            .unwrap_or(limits.max_output)
            .min(limits.max_output),
    );
    // Input and output share the context. The required amount assumes the estimated input; the held amount assumes the smallest
    // possible input.
    let room = limits.context.saturating_sub(ask.estimate.input).max(1);
    let most_room = limits.context.saturating_sub(ask.estimate.least).max(1);
    let (limit, sent, held) = if ask.stream {
        let sent = budget.lowered(most, ask.thinking_budget)?;
        (
            changed(sent, ask.declared, limits.max_output),
            sent,
            sent.min(SLICE),
        )
    } else if ask.declared.is_some() {
        budget
            .require(most.min(room))
            .map_err(|short| budget.remedied(short, most, ask.thinking_budget))?;
        (changed(most, ask.declared, limits.max_output), most, most)
    } else {
        let thinking = ask.thinking_budget.map_or(0, |budget| {
            u64::from(budget).saturating_add(SMALLEST_OUTPUT)
        });
        let wanted = u64::from(limits.default_output)
            .max(thinking)
            .min(u64::from(limits.max_output));
        let sent = budget.lowered(wanted, ask.thinking_budget)?;
        (u32::try_from(sent).ok(), sent, sent)
    };
    Ok(Terms {
        hold: budget.hold(held.min(most_room)),
        limit,
        output_limit: sent
            .saturating_add(ask.predicted)
            .saturating_mul(u64::from(ask.choices)),
        estimated_input: ask.estimate.input,
        predicted: ask.predicted.saturating_mul(u64::from(ask.choices)),
        compaction: to_amount(of_compaction(
            ask,
            price.for_input(ask.estimate.input),
            ask.estimate.input,
        )),
    })
}

/// The cost of compacting a conversation with this much input: it is read once more, and the summary is output.
fn of_compaction(ask: &Ask, rates: &Rates, input: u64) -> i128 {
    if ask.compacts_from.is_none_or(|from| input < from) {
        return 0;
    }
    dearest_input(rates, ask.one_hour_cache) * i128::from(input)
        + dearest_output(rates) * i128::from(SLICE)
}

/// The cost of a request with this much input at these rates, without its output, and of one output token of every choice.
fn of_input(ask: &Ask, rates: &Rates, input: u64) -> (i128, i128) {
    let per_output = dearest_output(rates) * i128::from(ask.choices);
    let extras = i128::from(rates.per_image.picos()) * i128::from(ask.images)
        + i128::from(rates.per_request.picos())
        + per_output * i128::from(ask.predicted)
        + of_compaction(ask, rates, input);
    (
        dearest_input(rates, ask.one_hour_cache) * i128::from(input) + extras,
        per_output,
    )
}

/// The cost of one more slice of output, for extending a hold.
#[must_use]
pub fn slice_cost(rates: &Rates, choices: u32, tokens: u64) -> Amount {
    to_amount(dearest_output(rates) * i128::from(choices) * i128::from(tokens))
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
struct Budget {
    available: i128,
    /// Input and everything else that does not depend on the output.
    fixed: i128,
    /// The same with the input at its ceiling, and with what a whole answer may cost beyond its limit.
    fixed_ceiling: i128,
    /// One output token of every choice.
    per_output: i128,
    /// The same with the input at its ceiling, which may reach a more expensive tier.
    per_output_ceiling: i128,
    /// The key is nearly empty if it has less than this many ceilings available.
    nearly_empty: i128,
}

impl Budget {
    fn new(ask: &Ask, price: &Price, limits: &Limits, available: Amount) -> Self {
        let estimate = &ask.estimate;
        let (fixed, per_output) = of_input(ask, price.for_input(estimate.input), estimate.input);
        let (ceiling, per_output_ceiling) =
            of_input(ask, price.for_input(estimate.ceiling), estimate.ceiling);
        // Nothing extends the hold of a whole answer while it reasons beyond its limit.
        let beyond = if ask.reasons_outside && !ask.stream {
            per_output_ceiling * i128::from(limits.max_output)
        } else {
            0
        };
        Self {
            available: i128::from(available.picos()),
            fixed,
            fixed_ceiling: ceiling + beyond,
            per_output,
            per_output_ceiling,
            nearly_empty: NEARLY_EMPTY + i128::from(ask.in_flight),
        }
    }

    /// Output tokens of each choice that the available money buys.
    fn affordable(&self) -> u64 {
        let left = self.available - self.fixed;
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
        let needed = self.fixed + self.per_output * i128::from(tokens);
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
            Some(budget) if affordable < wanted => {
                u64::from(budget).saturating_add(SMALLEST_OUTPUT)
            }
            _ => SMALLEST_OUTPUT,
        };
        self.require(smallest.min(wanted))?;
        Ok(wanted.min(affordable))
    }

    fn hold(&self, output: u64) -> Amount {
        let at_ceiling = self.fixed_ceiling + self.per_output_ceiling * i128::from(output);
        let at_estimate = self.fixed + self.per_output * i128::from(output);
        let nearly_empty = self.available < at_ceiling.saturating_mul(self.nearly_empty);
        to_amount(
            if nearly_empty {
                at_ceiling.max(at_estimate)
            } else {
                at_estimate
            }
            .min(self.available),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USD: i64 = 1_000_000_000_000;

    fn price() -> Price {
        let rate = |picos| Amount::from_picos(picos);
        let base = Rates {
            input: rate(3_000_000),
            output: rate(15_000_000),
            cache_read: rate(300_000),
            cache_write: rate(3_750_000),
            cache_write_1h: None,
            reasoning: rate(15_000_000),
            per_image: Amount::ZERO,
            per_request: Amount::ZERO,
        };
        Price {
            base,
            tiers: Vec::new(),
        }
    }

    fn limits() -> Limits {
        Limits {
            context: 200_000,
            max_output: 64_000,
            default_output: 8_192,
            speed: 150,
            image_bytes: None,
            picture_tokens: None,
            tools: None,
        }
    }

    fn ask(stream: bool, declared: Option<u32>) -> Ask {
        let estimate = Estimate {
            input: 9_000,
            ceiling: 31_500,
            least: 6_300,
            known: 9_000,
        };
        let in_flight = 1;
        Ask {
            stream,
            declared,
            choices: 1,
            thinking_budget: None,
            predicted: 0,
            images: 0,
            one_hour_cache: false,
            compacts_from: None,
            in_flight,
            estimate,
            reasons_outside: false,
        }
    }

    fn terms(ask: &Ask, available: i64) -> Result<Terms, Shortfall> {
        decide(ask, &price(), &limits(), Amount::from_picos(available))
    }

    #[test]
    fn ten_agents_run_side_by_side_on_five_dollars() {
        let mut available = 5 * USD;
        for _ in 0..10 {
            let found = terms(&ask(true, Some(32_000)), available).unwrap();
            assert_eq!(found.limit, None, "nothing is lowered");
            available -= found.hold.picos();
        }
        assert!(available > 4 * USD);
    }

    #[test]
    fn a_stream_is_lowered_to_what_is_affordable_and_refused_below_the_smallest_output() {
        let input = 9_000 * 3_750_000;
        let found = terms(&ask(true, Some(32_000)), input + 1_000 * 15_000_000).unwrap();
        assert_eq!((found.limit, found.output_limit), (Some(1_000), 1_000));
        let refused = terms(&ask(true, Some(32_000)), input + 255 * 15_000_000).unwrap_err();
        let remedies = Remedies::default();
        assert_eq!(
            refused,
            Shortfall {
                needed: Amount::from_picos(input + 256 * 15_000_000),
                affordable_output: 255,
                remedies
            }
        );
    }

    #[test]
    fn a_whole_answer_with_a_declared_limit_is_held_whole_or_refused() {
        let needed = 9_000 * 3_750_000 + 4_000 * 15_000_000;
        assert_eq!(
            terms(&ask(false, Some(4_000)), needed).unwrap().hold,
            Amount::from_picos(needed)
        );
        assert_eq!(
            terms(&ask(false, Some(4_000)), needed - 1)
                .unwrap_err()
                .needed,
            Amount::from_picos(needed)
        );
    }

    #[test]
    fn what_is_too_dear_by_its_limit_alone_names_what_would_be_served() {
        let with = |declared, output: i64| {
            let available = 9_000 * 3_750_000 + output * 15_000_000;
            let short = terms(&ask(false, Some(declared)), available).unwrap_err();
            if let Some(limit) = short.remedies.limit {
                assert!(
                    terms(&ask(false, Some(u32::try_from(limit).unwrap())), available).is_ok(),
                    "{short:?}"
                );
            }
            assert_eq!(
                terms(&ask(true, Some(declared)), available).is_ok(),
                short.remedies.stream,
                "{short:?}"
            );
            short.remedies
        };
        assert_eq!(
            with(4_000, 3_000),
            Remedies {
                limit: Some(3_000),
                stream: true
            }
        );
        assert_eq!(
            with(4_000, 200),
            Remedies {
                limit: Some(200),
                stream: false
            }
        );
        assert_eq!(with(4_000, 0), Remedies::default());
        let thinking = Ask {
            thinking_budget: Some(2_900),
            ..ask(false, Some(4_000))
        };
        let available = 9_000 * 3_750_000 + 3_000 * 15_000_000;
        assert_eq!(
            terms(&thinking, available).unwrap_err().remedies,
            Remedies::default()
        );
    }

    #[test]
    fn a_whole_answer_without_a_limit_gets_one_that_the_balance_can_pay() {
        assert_eq!(
            terms(&ask(false, None), 100 * USD).unwrap().limit,
            Some(8_192)
        );
        let little = 9_000 * 3_750_000 + 300 * 15_000_000;
        assert_eq!(terms(&ask(false, None), little).unwrap().limit, Some(300));
    }

    #[test]
    fn a_thinking_budget_is_never_cut_into() {
        let thinking = Ask {
            thinking_budget: Some(31_999),
            ..ask(true, Some(32_000))
        };
        assert_eq!(terms(&thinking, 5 * USD).unwrap().limit, None);
        let short = 9_000 * 3_750_000 + 31_000 * 15_000_000;
        assert!(terms(&thinking, short).is_err());
    }

    #[test]
    fn an_empty_key_is_refused_even_where_the_model_is_free() {
        let free = Rates {
            input: Amount::ZERO,
            output: Amount::ZERO,
            cache_read: Amount::ZERO,
            cache_write: Amount::ZERO,
            reasoning: Amount::ZERO,
            ..price().base
        };
        let free = Price {
            base: free,
            tiers: Vec::new(),
        };
        assert!(decide(&ask(true, None), &free, &limits(), Amount::ZERO).is_err());
        assert_eq!(
            decide(&ask(true, None), &free, &limits(), Amount::from_picos(1))
                .unwrap()
                .hold,
            Amount::ZERO
        );
    }

    #[test]
    fn a_nearly_empty_key_holds_what_reasoning_beyond_the_limit_may_cost() {
        let outside = |stream| Ask {
            reasons_outside: true,
            ..ask(stream, Some(100))
        };
        let all = 31_500 * 3_750_000 + (64_000 + 100) * 15_000_000;
        assert_eq!(
            terms(&outside(false), 2 * USD).unwrap().hold,
            Amount::from_picos(all)
        );
        assert_eq!(
            terms(&outside(false), USD / 2).unwrap().hold,
            Amount::from_picos(USD / 2),
            "and never more than it has"
        );
        assert!(terms(&outside(false), 100 * USD).unwrap().hold < Amount::from_picos(USD / 10));
        assert!(
            terms(&outside(true), 2 * USD).unwrap().hold < Amount::from_picos(USD / 4),
            "a stream is extended"
        );
    }

    #[test]
    fn a_conversation_that_may_be_compacted_holds_its_input_twice_and_a_summary() {
        let compacted = |from| {
            terms(
                &Ask {
                    compacts_from: Some(from),
                    ..ask(true, Some(1_000))
                },
                100 * USD,
            )
            .unwrap()
        };
        let compaction = 9_000 * 3_750_000 + 2_048 * 15_000_000;
        let once = 9_000 * 3_750_000 + 1_000 * 15_000_000;
        assert_eq!(
            (
                compacted(9_000).hold.picos(),
                compacted(9_000).compaction.picos()
            ),
            (once + compaction, compaction)
        );
        assert_eq!(
            (compacted(9_001).hold.picos(), compacted(9_001).compaction),
            (once, Amount::ZERO),
            "too short for it"
        );
        let poor = terms(
            &Ask {
                compacts_from: Some(9_000),
                ..ask(false, Some(1_000))
            },
            once,
        )
        .unwrap_err();
        assert_eq!(poor.needed.picos(), once + compaction);
    }

    #[test]
    fn a_nearly_empty_key_holds_the_ceiling_at_the_price_of_its_tier() {
        let twice = |rate: Amount| Amount::from_picos(rate.picos() * 2);
        let Rates {
            input,
            output,
            cache_write,
            ..
        } = price().base;
        let dear = Rates {
            input: twice(input),
            output: twice(output),
            cache_write: twice(cache_write),
            ..price().base
        };
        let tiers = Price {
            tiers: vec![(20_000, dear)],
            ..price()
        };
        let hold = |available| {
            decide(
                &ask(false, Some(1_000)),
                &tiers,
                &limits(),
                Amount::from_picos(available),
            )
            .unwrap()
            .hold
        };
        let at_ceiling = 31_500 * 7_500_000 + 1_000 * 30_000_000;
        assert_eq!(
            hold(USD),
            Amount::from_picos(at_ceiling),
            "the input may turn out to be above the bound"
        );
        assert_eq!(hold(USD / 10), Amount::from_picos(USD / 10));
        assert_eq!(
            hold(100 * USD),
            Amount::from_picos(9_000 * 3_750_000 + 1_000 * 15_000_000)
        );
    }

    #[test]
    fn a_nearly_empty_key_holds_the_ceiling_and_never_more_than_it_has() {
        let little = 9_000 * 3_750_000 + 2_000 * 15_000_000;
        assert_eq!(
            terms(&ask(true, Some(2_000)), little).unwrap().hold,
            Amount::from_picos(little)
        );
        let rich = terms(&ask(true, Some(2_000)), 100 * USD).unwrap().hold;
        assert_eq!(rich, Amount::from_picos(little));
    }
}

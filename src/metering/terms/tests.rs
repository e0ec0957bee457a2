//! Terms of requests by the money of their keys, at $3 in, $15 out, $3.75 for a cache write.

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
        cache_write_12h: None,
        reasoning: rate(15_000_000),
        per_image: Amount::ZERO,
        per_request: Amount::ZERO,
    };
    Price {
        base,
        tiers: Vec::new(),
        classes: Vec::new(),
    }
}

fn limits() -> ModelLimits {
    ModelLimits {
        context: 200_000,
        max_output: 64_000,
        default_output: 8_192,
        speed: 150,
        hidden_speed: None,
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
        most: 35_596,
    };
    let in_flight = 1;
    Ask {
        stream,
        declared,
        choices: 1,
        thinking_budget: None,
        predicted: 0,
        images: 0,
        lifetimes: Lifetimes::default(),
        classes: Classes::STANDARD,
        cache_marked: true,
        compacts_from: None,
        in_flight,
        estimate,
        reasons_outside: false,
        unseen: false,
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

/// A target whose pace nobody knows.
fn unknown(declared: Option<u32>) -> Ask {
    Ask {
        unseen: true,
        ..ask(true, declared)
    }
}

#[test]
fn ten_agents_run_side_by_side_where_they_hold_their_whole_limits() {
    let mut available = 5 * USD;
    for number in 0..10 {
        let found = terms(&unknown(Some(32_000)), available).unwrap();
        assert!(found.holds_whole_limit);
        let least = if number < 8 { 32_000 } else { 3_000 };
        assert!(found.output_limit >= least, "{number}: {found:?}");
        available -= found.hold.picos();
        assert!(available > 0, "{number}");
    }
}

#[test]
fn the_limits_of_streams_that_may_be_hidden_fit_into_the_money_together() {
    for (declared, max_output) in [(Some(64_000), 64_000), (None, 64_000), (None, 16_000)] {
        let (mut available, mut bought) = (USD, 0);
        let limits = ModelLimits {
            max_output,
            ..limits()
        };
        for _ in 0..32 {
            let amount = Amount::from_picos(available);
            let Ok(found) = decide(&unknown(declared), &price(), &limits, amount) else {
                break;
            };
            assert!(found.holds_whole_limit);
            let input = 9_000 * 3_750_000;
            bought += input + i64::try_from(found.output_limit).unwrap() * 15_000_000;
            available -= found.hold.picos();
        }
        assert!(bought <= USD && bought > USD / 2, "{declared:?}: {bought}");
    }
}

#[test]
fn an_undeclared_limit_is_written_only_where_money_is_short() {
    let rich = terms(&unknown(None), 100 * USD).unwrap();
    assert_eq!(
        (rich.limit, rich.output_limit, rich.holds_whole_limit),
        (None, 64_000, false)
    );
    let whole = 9_000 * 3_750_000 + 32_768 * 15_000_000;
    assert_eq!(rich.hold.picos(), whole);
    let poor = terms(&unknown(None), 2 * USD).unwrap();
    assert_eq!(
        (poor.limit, poor.output_limit, poor.holds_whole_limit),
        (Some(32_768), 32_768, true)
    );
}

#[test]
fn only_a_limit_that_the_money_sets_counts_as_lowered() {
    let two_dollars = terms(&unknown(None), 2 * USD).unwrap();
    assert!(two_dollars.limit.is_some() && !two_dollars.lowered);
    let cents = USD / 10;
    for ask in [
        unknown(None),
        unknown(Some(32_000)),
        ask(true, None),
        ask(true, Some(32_000)),
    ] {
        assert!(terms(&ask, cents).unwrap().lowered);
        assert!(!terms(&ask, 100 * USD).unwrap().lowered);
    }
    assert!(!terms(&ask(true, Some(256)), cents).unwrap().lowered);
}

#[test]
fn where_a_whole_limit_is_lowered_a_tenth_stays_free_unless_the_smallest_needs_it() {
    let input = 9_000 * 3_750_000;
    let available = input + 2_000 * 15_000_000;
    let found = terms(&unknown(Some(32_000)), available).unwrap();
    let sent = (available - available / 10 - input) / 15_000_000;
    assert_eq!(i64::from(found.limit.unwrap()), sent);
    assert_eq!(found.hold.picos(), available - available / 10);
    let least = input + 256 * 15_000_000;
    assert_eq!(
        terms(&unknown(Some(32_000)), least).unwrap().limit,
        Some(256)
    );
    assert!(terms(&unknown(Some(32_000)), least - 1).is_err());
    let thinking = Ask {
        thinking_budget: Some(1_900),
        ..unknown(Some(32_000))
    };
    assert_eq!(
        terms(&thinking, input + 2_200 * 15_000_000).unwrap().limit,
        Some(2_156),
        "above its budget"
    );
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
        classes: Vec::new(),
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

/// Without a mark nothing is written to a cache, so the price of a write neither lowers the limit nor refuses the request; what is held
/// is the dearest price as far as there is money.
#[test]
fn a_prompt_without_a_cache_mark_is_judged_at_the_input_price() {
    let unmarked = Ask {
        cache_marked: false,
        ..ask(true, Some(64_000))
    };
    // 9,000 tokens at $3 are $0.027, and $0.03375 at the price of a write.
    let money = Amount::from_picos(27_000_000_000 + 256 * 15_000_000);
    let terms = decide(&unmarked, &price(), &limits(), money).unwrap();
    assert_eq!((terms.output_limit, terms.hold), (256, money));
    assert!(!terms.cache_marked);
    let marked = Ask {
        cache_marked: true,
        ..unmarked
    };
    assert!(decide(&marked, &price(), &limits(), money).is_err());
    let rich = Amount::from_picos(50 * USD);
    let (one, other) = (
        decide(&unmarked, &price(), &limits(), rich).unwrap(),
        decide(&marked, &price(), &limits(), rich).unwrap(),
    );
    assert_eq!(one.hold, other.hold, "what is held is the same");
}

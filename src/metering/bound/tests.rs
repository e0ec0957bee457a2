//! What requests are held at, at $3 in, $15 out, $3.75 for a cache write and $0.30 for a read.

use super::*;

const USD: i64 = 1_000_000_000_000;

fn rates(input: i64, output: i64) -> Rates {
    let rate = Amount::from_picos;
    Rates {
        input: rate(input),
        output: rate(output),
        cache_read: rate(input / 10),
        cache_write: rate(input * 5 / 4),
        cache_write_1h: None,
        cache_write_12h: None,
        reasoning: rate(output),
        per_image: Amount::ZERO,
        per_request: Amount::ZERO,
    }
}

fn price() -> Price {
    Price {
        base: rates(3_000_000, 15_000_000),
        tiers: Vec::new(),
        classes: Vec::new(),
    }
}

fn limits() -> ModelLimits {
    ModelLimits {
        context: 200_000,
        max_output: 64_000,
        max_reasoning: None,
        speed: None,
        image_bytes: None,
        picture_tokens: None,
        tools: None,
    }
}

fn ask(declared: Option<u32>) -> Ask {
    let estimate = Estimate {
        input: 9_000,
        bound: 10_000,
        known: 9_000,
        most: 35_596,
    };
    Ask {
        declared,
        choices: 1,
        thinking_budget: None,
        reasons: false,
        formed: false,
        predicted: 0,
        images: 0,
        lifetimes: Lifetimes::default(),
        classes: Classes::STANDARD,
        writes: false,
        compacts_from: None,
        estimate,
        cached: None,
        binds: LimitBinds::All,
        excess: 0,
    }
}

fn first(ask: &Ask) -> HoldWay {
    ask.ways(&price(), &limits(), Patience::Fresh)[0].way
}

fn range(way: HoldWay) -> (u64, u64, u64) {
    (way.floor, way.least, way.most)
}

#[test]
fn a_request_is_held_at_its_input_and_its_limit() {
    let way = first(&ask(Some(8_000)));
    assert_eq!(way.fixed.picos(), 10_000 * 3_000_000);
    assert_eq!(way.token.picos(), 15_000_000);
    assert_eq!(range(way), (4_096, 256, 8_000));
    assert_eq!(range(first(&ask(None))), (4_096, 256, 64_000));
    assert_eq!(range(first(&ask(Some(1)))).2, 1);
    assert_eq!(
        range(first(&ask(Some(u32::MAX)))).2,
        64_000,
        "what the model can do"
    );
}

#[test]
fn the_dearest_rates_that_can_apply_count() {
    let marked = Ask {
        writes: true,
        ..ask(None)
    };
    assert_eq!(first(&marked).fixed.picos(), 10_000 * 3_750_000);
    let compacts = Ask {
        compacts_from: Some(10_000),
        ..ask(None)
    };
    let both = 2 * 10_000 * 3_000_000 + 8_192 * 15_000_000;
    assert_eq!(first(&compacts).fixed.picos(), both);
    let beyond = Ask {
        excess: 4_096,
        ..ask(None)
    };
    let more = 10_000 * 3_000_000 + 4_096 * 15_000_000;
    assert_eq!(first(&beyond).fixed.picos(), more);
}

#[test]
fn floors_are_shared_by_choices_and_shrink_with_patience() {
    let several = |choices| Ask {
        choices,
        reasons: true,
        ..ask(None)
    };
    let floor = |ask: &Ask, patience| ask.ways(&price(), &limits(), patience)[0].way.floor;
    let one = several(1);
    let floors = Patience::ALL.map(|patience| floor(&one, patience));
    assert_eq!(floors, [16_384, 8_192, 4_096]);
    assert_eq!(floor(&several(8), Patience::Fresh), 2_048);
    assert_eq!(floor(&several(128), Patience::WaitedLong), 256);
    assert_eq!(first(&several(8)).token.picos(), 8 * 15_000_000);
}

#[test]
fn what_cannot_be_lowered_is_had_whole() {
    let predicted = Ask {
        predicted: 500,
        ..ask(Some(9_000))
    };
    assert_eq!(range(first(&predicted)), (9_000, 9_000, 9_000));
    assert_eq!(
        first(&predicted).fixed.picos(),
        10_000 * 3_000_000 + 500 * 15_000_000
    );
    let unbound = Ask {
        binds: LimitBinds::None,
        ..ask(Some(100))
    };
    assert_eq!(range(first(&unbound)), (64_000, 64_000, 64_000));
    assert_eq!(unbound.terms(&limits(), 64_000).written, None);
    let formed = Ask {
        formed: true,
        ..ask(None)
    };
    assert_eq!(range(first(&formed)), (16_384, 256, 64_000));
    assert_eq!(
        formed.ways(&price(), &limits(), Patience::WaitedLong)[0]
            .way
            .floor,
        16_384,
        "half a form is of no use"
    );
}

#[test]
fn reasoning_beside_the_limit_is_held_beside_it() {
    let text = Ask {
        binds: LimitBinds::Text,
        reasons: true,
        choices: 2,
        ..ask(Some(1_000))
    };
    assert_eq!(
        first(&text).fixed.picos(),
        10_000 * 3_000_000 + 2 * 64_000 * 15_000_000
    );
    assert_eq!(text.terms(&limits(), 1_000).output_bound, 2 * 65_000);
    let silent = Ask {
        reasons: false,
        ..text
    };
    assert_eq!(first(&silent).fixed.picos(), 10_000 * 3_000_000);
}

#[test]
fn a_limit_is_written_where_it_differs() {
    let written = |declared, granted| ask(declared).terms(&limits(), granted).written;
    assert_eq!(written(Some(8_000), 8_000), None);
    assert_eq!(written(Some(8_000), 5_000), Some(5_000));
    assert_eq!(written(None, 64_000), None, "what the model does anyhow");
    assert_eq!(written(None, 9_000), Some(9_000));
    assert_eq!(
        written(Some(u32::MAX), 64_000),
        Some(64_000),
        "what the model can do"
    );
    let long = Ask {
        estimate: Estimate {
            input: 198_000,
            bound: 200_000,
            known: 198_000,
            most: 200_000,
        },
        ..ask(None)
    };
    assert_eq!(
        long.terms(&limits(), 30_000).written,
        Some(2_000),
        "the context holds both"
    );
    let told = |declared, granted| ask(declared).terms(&limits(), granted).told();
    assert_eq!(told(Some(9_000), 8_333).as_deref(), Some("8333"));
    assert_eq!(told(Some(8_333), 8_333), None);
}

#[test]
fn a_thinking_budget_is_lowered_with_its_limit() {
    let thinks = Ask {
        thinking_budget: Some(32_000),
        reasons: true,
        ..ask(Some(64_000))
    };
    assert_eq!(first(&thinks).least, 1_280);
    let budget = |granted| thinks.terms(&limits(), granted).budget;
    assert_eq!(budget(8_333), Some(6_249));
    assert_eq!(budget(1_280), Some(1_024));
    assert_eq!(budget(60_000), None, "it fits");
    assert_eq!(budget(64_000), None);
    let told = thinks.terms(&limits(), 8_333).told();
    assert_eq!(told.as_deref(), Some("8333; thinking=6249"));
}

#[test]
fn a_tier_and_a_known_prompt_are_further_ways() {
    let tiered = Price {
        tiers: vec![(9_950, rates(6_000_000, 30_000_000))],
        ..price()
    };
    let ways = |ask: &Ask, price: &Price| ask.ways(price, &limits(), Patience::Fresh);
    assert_eq!(ways(&ask(None), &price()).len(), 1);
    let [dear, likely] = ways(&ask(None), &tiered)[..] else {
        panic!("two ways");
    };
    assert_eq!(
        (dear.way.token.picos(), dear.uncovered.picos()),
        (30_000_000, 0)
    );
    assert_eq!(likely.way.token.picos(), 15_000_000);
    let gap = 10_000 * 3_000_000 + 64_000 * 15_000_000;
    assert_eq!(likely.uncovered.picos(), gap, "what the operator may lose");
    let known = Ask {
        cached: Some(8_000),
        ..ask(None)
    };
    let [bound, known] = ways(&known, &price())[..] else {
        panic!("two ways");
    };
    assert_eq!(known.way.fixed.picos(), 8_000 * 300_000 + 1_000 * 3_000_000);
    let gap = bound.way.fixed.picos() - known.way.fixed.picos();
    assert_eq!(known.uncovered.picos(), gap);
}

#[test]
fn a_counted_prompt_leaves_the_output_bound() {
    let ask = ask(Some(1_000));
    let terms = ask.terms(&limits(), 1_000);
    let cost = Amount::from_picos(77);
    let size = ask.counted((cost, 20), &price(), &terms);
    assert_eq!(size.picos(), 77 + 1_000 * 15_000_000);
}

#[test]
fn a_refusal_names_what_helps() {
    let short = |ask: &Ask, left| ask.short(&price(), &limits(), Amount::from_picos(left));
    let little = 10_000 * 3_000_000 + 300 * 15_000_000;
    let found = short(&ask(Some(64_000)), little);
    assert_eq!(found.needed.picos(), 10_000 * 3_000_000 + 256 * 15_000_000);
    assert_eq!((found.affordable_output, found.remedy), (300, None));
    let predicted = Ask {
        predicted: 1,
        ..ask(Some(64_000))
    };
    let found = short(&predicted, little + 15_000_000);
    assert_eq!((found.affordable_output, found.remedy), (300, Some(300)));
    assert_eq!(short(&ask(None), 5).affordable_output, 0);
}

#[test]
fn only_a_prompt_that_is_a_good_part_of_the_money_is_counted() {
    let short = |left| {
        let left = Amount::from_picos(left);
        is_short(&price(), &ask(None).estimate, Lifetimes::default(), left)
    };
    let worst = 10_000 * 3_750_000;
    assert!(short(32 * worst - 1) && !short(32 * worst) && !short(USD * 100));
}

//! At which class's price an answer is charged, for every class asked for and served.

use farebox_protocol::{RequestRegion, SaidClasses, ServiceTier};

use super::*;

const FLEX: Classes = Classes::of(ServiceTier::Flex, RequestRegion::Global);
const FAST: Classes = Classes::of(ServiceTier::Fast, RequestRegion::Global);
const US: Classes = Classes::of(ServiceTier::Standard, RequestRegion::Us);

fn selling(classes: &str) -> Arc<Model> {
    let with = format!("cache_write = \"3.75\", classes = {{ {classes} }} }}");
    model(&CATALOG.replacen("cache_write = \"3.75\" }", &with, 1))
}

/// The charge for 10 tokens in and 2 out, the class of its lines, and what a dearer class costs beyond it.
fn charged(
    model: &Arc<Model>,
    asked: Classes,
    said: Option<Classes>,
) -> (i64, &'static str, Option<i64>) {
    let start = Start {
        classes: asked,
        ..START
    };
    let mut meter = Meter::new(Arc::clone(model), start);
    let mut wire = says(10, 2);
    if let Some(Classes { tier, place }) = said {
        wire.said = SaidClasses {
            tier: Some(tier),
            place: Some(place),
            unknown: None,
            named: true,
        };
    }
    meter.report(&wire, true);
    let counted = meter.finish(Ending::Complete, None, Duration::ZERO);
    let cost = farebox_ledger::bill::cost(&counted.lines).unwrap().picos();
    let class = counted.lines[0].class.clone();
    let dearer = meter.dearer(&counted.usage).map(Amount::picos);
    (
        cost,
        class.map_or("standard", |class| {
            if class == "fast" {
                "fast"
            } else if class == "flex" {
                "flex"
            } else {
                "us"
            }
        }),
        dearer,
    )
}

#[test]
fn what_was_served_is_charged_and_never_more_than_the_dearest_of_standard_and_asked() {
    let once = 10 * 3_000_000 + 2 * 15_000_000;
    let (half, twice, tenth) = (once / 2, once * 2, once / 10);
    let all = selling(r#"flex = "0.5", fast = "2", us = "1.1""#);
    let standard = Classes::STANDARD;
    for (asked, served, expected) in [
        (standard, None, (once, "standard", None)),
        (standard, Some(standard), (once, "standard", None)),
        (standard, Some(FLEX), (half, "flex", None)),
        (standard, Some(FAST), (once, "standard", Some(once))),
        (standard, Some(US), (once, "standard", Some(tenth))),
        (FLEX, None, (half, "flex", None)),
        (FLEX, Some(FLEX), (half, "flex", None)),
        (FLEX, Some(standard), (once, "standard", None)),
        (FLEX, Some(FAST), (once, "standard", Some(once))),
        (FAST, None, (twice, "fast", None)),
        (FAST, Some(FAST), (twice, "fast", None)),
        (FAST, Some(standard), (once, "standard", None)),
        (FAST, Some(FLEX), (half, "flex", None)),
        (US, Some(FAST), (once + tenth, "us", Some(once - tenth))),
    ] {
        assert_eq!(
            charged(&all, asked, served),
            expected,
            "{asked:?} {served:?}"
        );
    }
    // A class without a price is charged as the dearest of the two, and as the cheapest if it can only be cheaper.
    let fast = selling(r#"fast = "2""#);
    for (asked, served, expected) in [
        (standard, Some(US), (once, "standard", Some(0))),
        (standard, Some(FLEX), (once, "standard", None)),
        (FAST, Some(FLEX), (once, "standard", None)),
    ] {
        assert_eq!(
            charged(&fast, asked, served),
            expected,
            "{asked:?} {served:?}"
        );
    }
}

#[test]
fn money_is_held_by_the_dearer_of_each_rate() {
    let mixed = selling(r#"fast = { input = "1", output = "30", cache_write = "9" }"#);
    let start = Start {
        classes: FAST,
        ..START
    };
    let meter = Meter::new(mixed, start);
    let rates = meter.rates();
    assert_eq!(
        (rates.input.picos(), rates.output.picos()),
        (3_000_000, 30_000_000)
    );
    assert_eq!(rates.cache_write.picos(), 9_000_000);
}

#[test]
fn writes_that_nobody_divides_cost_the_dearest_lifetime_asked_for() {
    let catalog = CATALOG.replacen(
        "cache_write = \"3.75\" }",
        "cache_write = \"3.75\", cache_write_1h = \"6\", cache_write_12h = \"5\" }",
        1,
    );
    let model = model(&catalog);
    let both = Lifetimes {
        hour: true,
        half_day: true,
    };
    for (lifetimes, divided, expected) in [
        (Lifetimes::NONE, false, (100, 0, 0)),
        (
            Lifetimes {
                hour: true,
                ..Lifetimes::NONE
            },
            false,
            (0, 100, 0),
        ),
        (
            Lifetimes {
                half_day: true,
                ..Lifetimes::NONE
            },
            false,
            (0, 0, 100),
        ),
        (both, false, (0, 100, 0)),
        (both, true, (100, 0, 0)),
    ] {
        let mut meter = Meter::new(Arc::clone(&model), Start { lifetimes, ..START });
        let wire = WireUsage {
            cache_write: Some(100),
            writes_divided: divided,
            ..says(10, 2)
        };
        meter.report(&wire, true);
        let usage = meter.finish(Ending::Complete, None, Duration::ZERO).usage;
        let written = (
            usage.cache_write,
            usage.cache_write_1h,
            usage.cache_write_12h,
        );
        assert_eq!(written, expected, "{lifetimes:?} {divided}");
    }
}

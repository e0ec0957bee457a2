//! The rules of plans one by one: terms, months, windows, worth. What holds for any history is in `laws`.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "an overflow in a test is a failed test"
)]

#[path = "tests/laws.rs"]
mod laws;

use super::*;

pub(super) fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

pub(super) fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_millis(instant.as_millisecond())
}

pub(super) fn terms(windows: &[(&str, &str)]) -> PlanTerms {
    let windows = windows.iter().map(|(per, bound)| WindowBound {
        per: per.parse().unwrap(),
        usd: usd(bound),
    });
    PlanTerms {
        name: "coder".to_owned(),
        title: "Coder, monthly".to_owned(),
        price: usd("20"),
        allowance: usd("25"),
        period: PlanPeriod::Month,
        windows: windows.collect(),
        models: None,
        after: PlanAfter::Balance,
        carry: usd("5"),
        grace: 6 * HOUR,
    }
}

#[test]
fn months_follow_the_anchor_for_400_years() {
    for first in [
        "2026-01-31T10:00:00Z",
        "2024-02-29T00:00:00Z",
        "2026-11-30T23:59:59.999Z",
    ] {
        let anchor = PeriodAnchor {
            at: at(first),
            number: 1,
            period: PlanPeriod::Month,
        };
        let civil = |number| {
            let begin = jiff::Timestamp::from_millisecond(anchor.begin(number).millis()).unwrap();
            begin.to_zoned(jiff::tz::TimeZone::UTC).datetime()
        };
        let beginning = civil(1);
        for number in 2..=4_801 {
            let (before, now) = (civil(number - 1), civil(number));
            let month =
                |of: jiff::civil::DateTime| i32::from(of.year()) * 12 + i32::from(of.month());
            assert_eq!(month(now), month(before) + 1, "{first}: {number}");
            let last = now.date().last_of_month().day();
            assert_eq!(now.day(), beginning.day().min(last), "{first}: {number}");
            assert_eq!(now.time(), beginning.time());
        }
    }
}

#[test]
fn a_month_that_is_cut_short_moves_none_after_it() {
    let anchor = PeriodAnchor {
        at: at("2027-10-31T12:00:00Z"),
        number: 7,
        period: PlanPeriod::Month,
    };
    let begins: Vec<_> = (8..=12).map(|number| anchor.begin(number)).collect();
    let expected = [
        "2027-11-30",
        "2027-12-31",
        "2028-01-31",
        "2028-02-29",
        "2028-03-31",
    ];
    let expected = expected.map(|day| at(&format!("{day}T12:00:00Z")));
    assert_eq!(begins, expected);
}

#[test]
fn periods_and_windows_are_words() {
    for text in ["month", "week", "day", "30d", "366d"] {
        assert_eq!(text.parse::<PlanPeriod>().unwrap().to_string(), text);
    }
    assert_eq!("7d".parse::<PlanPeriod>().unwrap().to_string(), "week");
    for text in ["", "0d", "367d", "year", "-1d", "1.5d", "d"] {
        assert!(text.parse::<PlanPeriod>().is_err(), "{text}");
    }
    for text in ["1h", "5h", "168h", "day", "week", "month"] {
        assert_eq!(text.parse::<WindowSpan>().unwrap().to_string(), text);
    }
    for text in ["", "0h", "169h", "total", "h", "5"] {
        assert!(text.parse::<WindowSpan>().is_err(), "{text}");
    }
}

#[test]
fn a_window_of_hours_begins_with_its_first_request_and_others_by_the_calendar() {
    let now = at("2026-03-01T13:30:00Z");
    let around = |span: &str| span.parse::<WindowSpan>().unwrap().around(now);
    assert_eq!(around("5h"), (now, at("2026-03-01T18:30:00Z")));
    assert_eq!(
        around("day"),
        (at("2026-03-01T00:00:00Z"), at("2026-03-02T00:00:00Z"))
    );
    assert_eq!(
        around("week"),
        (at("2026-02-23T00:00:00Z"), at("2026-03-02T00:00:00Z"))
    );
    assert_eq!(
        around("month"),
        (at("2026-03-01T00:00:00Z"), at("2026-04-01T00:00:00Z"))
    );
}

#[test]
fn what_is_no_plan_is_refused() {
    terms(&[("5h", "4"), ("day", "8"), ("month", "25")])
        .check()
        .unwrap();
    let wrong: [(&str, PlanTerms); 12] = [
        (
            "name",
            PlanTerms {
                name: "Coder".to_owned(),
                ..terms(&[])
            },
        ),
        (
            "name",
            PlanTerms {
                name: String::new(),
                ..terms(&[])
            },
        ),
        (
            "title",
            PlanTerms {
                title: " ".to_owned(),
                ..terms(&[])
            },
        ),
        (
            "allowance",
            PlanTerms {
                allowance: Amount::ZERO,
                carry: Amount::ZERO,
                ..terms(&[])
            },
        ),
        (
            "price",
            PlanTerms {
                price: usd("-1"),
                ..terms(&[])
            },
        ),
        (
            "carried",
            PlanTerms {
                carry: usd("26"),
                ..terms(&[])
            },
        ),
        (
            "grace",
            PlanTerms {
                grace: 3 * DAY + 1,
                ..terms(&[])
            },
        ),
        (
            "model",
            PlanTerms {
                models: Some(Vec::new()),
                ..terms(&[])
            },
        ),
        ("window", terms(&[("5h", "26")])),
        ("window", terms(&[("5h", "0")])),
        ("windows", terms(&[("day", "8"), ("5h", "4")])),
        ("windows", terms(&[("5h", "9"), ("day", "8")])),
    ];
    for (what, wrong) in wrong {
        let refusal = wrong.check().unwrap_err().to_string();
        assert!(refusal.contains(what), "{what}: {refusal}");
    }
}

#[test]
fn an_unused_part_is_worth_its_share_of_the_price_rounded_down() {
    let terms = terms(&[]);
    assert_eq!(terms.worth(usd("25")), usd("20"));
    assert_eq!(terms.worth(usd("10")), usd("8"));
    assert_eq!(terms.worth(Amount::from_picos(1)), Amount::ZERO);
    assert_eq!(terms.worth(Amount::ZERO), Amount::ZERO);
}

#[test]
fn stored_terms_are_what_they_were() {
    let json = serde_json::to_string(&terms(&[("5h", "4")])).unwrap();
    assert_eq!(
        json,
        r#"{"name":"coder","title":"Coder, monthly","price":"20.00","allowance":"25.00","period":"month","windows":[{"per":"5h","usd":"4.00"}],"after":"balance","carry":"5.00","grace":21600000}"#
    );
    assert_eq!(
        serde_json::from_str::<PlanTerms>(&json).unwrap(),
        terms(&[("5h", "4")])
    );
}

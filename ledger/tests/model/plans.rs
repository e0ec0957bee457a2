//! Plans in the model test: they are sold, given, changed, paused and ended, and the clock goes over the ends of their periods and windows.

use farebox_ledger::*;
use proptest::prelude::*;

use super::common::*;
use super::facts::{a_payment, cents};

const HOUR: i64 = 3_600_000;

/// What somebody does to a subscription.
#[derive(Debug, Clone)]
pub(super) struct PlanStep {
    what: u8,
    number: u64,
    terms: u8,
    periods: u32,
    reference: u64,
}

pub(super) fn plan() -> impl Strategy<Value = PlanStep> {
    let what = prop_oneof![6 => Just(0_u8), 5 => 1..9_u8];
    let periods = prop_oneof![6 => 1..4_u32, 1 => 20..26_u32];
    (what, 0..5_u64, 0..5_u8, periods, 0..12_u64).prop_map(
        |(what, number, terms, periods, reference)| PlanStep {
            what,
            number,
            terms,
            periods,
            reference,
        },
    )
}

fn windows(all: &[(WindowSpan, i64)]) -> Vec<WindowBound> {
    let bound = |(per, usd): &(WindowSpan, i64)| WindowBound {
        per: *per,
        usd: cents(*usd),
    };
    all.iter().map(bound).collect()
}

/// Five plans by their numbers, two of one name.
pub(super) fn terms(number: u8) -> PlanTerms {
    let day = WindowSpan::Calendar(CapInterval::Day);
    let week = WindowSpan::Calendar(CapInterval::Week);
    let plain = PlanTerms {
        name: "coder".to_owned(),
        title: "Coder".to_owned(),
        price: cents(20),
        allowance: cents(31),
        period: PlanPeriod::Days(1),
        windows: windows(&[(WindowSpan::Hours(1), 10), (day, 20)]),
        models: None,
        after: PlanAfter::Balance,
        carry: cents(5),
        grace: 6 * HOUR,
    };
    match number {
        0 => plain,
        1 => PlanTerms {
            windows: windows(&[(day, 15), (week, 31)]),
            carry: cents(31),
            ..plain
        },
        2 => PlanTerms {
            name: "small".to_owned(),
            models: Some(vec!["small".to_owned()]),
            windows: Vec::new(),
            after: PlanAfter::Stop,
            carry: cents(0),
            grace: 0,
            ..plain
        },
        3 => PlanTerms {
            name: "odd".to_owned(),
            price: cents(7),
            period: PlanPeriod::Month,
            models: Some(vec!["odd".to_owned()]),
            windows: windows(&[(WindowSpan::Hours(5), 9)]),
            after: PlanAfter::Stop,
            ..plain
        },
        _ => PlanTerms {
            name: "free".to_owned(),
            price: cents(0),
            period: PlanPeriod::Days(7),
            windows: Vec::new(),
            ..plain
        },
    }
}

pub(super) async fn change(
    ledger: &dyn Ledger,
    (key_of, operation): (u64, u64),
    step: PlanStep,
) -> String {
    let customer = CustomerId::made_for(key(key_of));
    let terms = terms(step.terms);
    let subscription = SubscriptionId::from_random(step.number + 10 * key_of);
    let of = PlanPurchase {
        subscription,
        terms: terms.clone(),
        periods: step.periods,
        processor: None,
        invoiced_at: operation.is_multiple_of(4).then(|| at(1)),
    };
    let change = match step.what {
        0 => {
            let times = |each: Amount| each.picos() * i64::from(step.periods);
            let new = NewPayment {
                credit: Amount::from_picos(times(terms.allowance)),
                plan: Some(Box::new(of)),
                ..a_payment(key_of, operation, 20, step.reference)
            };
            return format!("{:?}", ledger.perform(new).await);
        }
        1 => PlanAct::Give(of),
        2 => PlanAct::Change {
            terms,
            at_once: false,
        },
        3 => PlanAct::Change {
            terms,
            at_once: true,
        },
        4 => PlanAct::Pause,
        5 | 6 => PlanAct::Resume,
        7 => PlanAct::End,
        _ => PlanAct::WantEnd,
    };
    let change = PlanChange {
        customer,
        subscription,
        change,
        act: act(operation, 60),
    };
    format!("{:?}", ledger.perform(change).await)
}

/// Laws that need no second store: no period is lost or given twice, and no window is above its bound.
pub(super) async fn laws(ledger: &dyn Ledger) -> Result<(), String> {
    let subscriptions = ledger.all::<Subscription>().await.unwrap();
    let begun: u32 = subscriptions.iter().map(|of| of.state.last).sum();
    let grants = ledger.all::<GrantRecord>().await.unwrap();
    let periods = grants
        .iter()
        .filter(|known| known.grant.kind == GrantKind::Plan);
    let periods = u32::try_from(periods.count()).unwrap();
    if periods != begun {
        return Err(format!(
            "{periods} periods are there, and {begun} have begun"
        ));
    }
    for number in 1..4 {
        let Some(found) = ledger.find_key(key(number)).await.unwrap() else {
            continue;
        };
        let mut windows = found.customer.grants.plans.windows();
        let beyond = windows
            .find(|window| window.charged.picos() + window.held.picos() > window.bound.picos());
        if let Some(window) = beyond {
            return Err(format!("{window:?} is above its bound"));
        }
    }
    Ok(())
}

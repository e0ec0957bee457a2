//! Plans: what is sold and given, what pays for a request, and what goes back, as far as no time passes.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::{account, refused};

const HOUR: i64 = 3_600_000;

pub(super) fn customer() -> CustomerId {
    CustomerId::made_for(key(1))
}

pub(super) fn sub(number: u64) -> SubscriptionId {
    SubscriptionId::from_random(number)
}

/// 25 dollars a month for 20, of which 5 are carried.
pub(super) fn coder() -> PlanTerms {
    PlanTerms {
        name: "coder".to_owned(),
        title: "Coder, monthly".to_owned(),
        price: usd("20"),
        allowance: usd("25"),
        period: PlanPeriod::Month,
        windows: Vec::new(),
        models: None,
        after: PlanAfter::Balance,
        carry: usd("5"),
        grace: 6 * HOUR,
    }
}

pub(super) fn windowed(windows: &[(&str, &str)], terms: PlanTerms) -> PlanTerms {
    let windows = windows.iter().map(|(per, bound)| WindowBound {
        per: per.parse().unwrap(),
        usd: usd(bound),
    });
    PlanTerms {
        windows: windows.collect(),
        ..terms
    }
}

pub(super) fn stopping(terms: PlanTerms) -> PlanTerms {
    PlanTerms {
        after: PlanAfter::Stop,
        ..terms
    }
}

pub(super) fn named(name: &str, terms: PlanTerms) -> PlanTerms {
    PlanTerms {
        name: name.to_owned(),
        ..terms
    }
}

pub(super) fn purchase(number: u64, periods: u32, terms: PlanTerms) -> PlanPurchase {
    PlanPurchase {
        subscription: sub(number),
        terms,
        periods,
        processor: None,
        invoiced_at: None,
    }
}

/// A payment for periods, whose reference is `sale-` and the operation.
pub(super) fn sale(operation: u64, of: PlanPurchase) -> NewPayment {
    let times = |each: Amount| Amount::from_picos(each.picos() * i64::from(of.periods));
    NewPayment {
        customer: customer(),
        paid: PaidSum::in_usd(times(of.terms.price)),
        credit: times(of.terms.allowance),
        plan: Some(Box::new(of)),
        ..new_payment(1, operation, "1", &format!("sale-{operation}"))
    }
}

pub(super) async fn buy(ledger: &dyn Ledger, operation: u64, of: PlanPurchase) -> PaymentMoved {
    let moved = ledger.perform(sale(operation, of)).await.unwrap();
    assert_eq!(moved.payment.status, PaymentStatus::Booked);
    moved
}

/// Why a payment was not booked.
pub(super) async fn unapplied(ledger: &dyn Ledger, operation: u64, of: PlanPurchase) -> String {
    let moved = ledger.perform(sale(operation, of)).await.unwrap();
    match moved.payment.status {
        PaymentStatus::Unapplied { why } => why,
        PaymentStatus::Booked | PaymentStatus::Returned => String::new(),
    }
}

pub(super) fn changed(number: u64, operation: u64, change: PlanAct) -> PlanChange {
    PlanChange {
        customer: customer(),
        subscription: sub(number),
        change,
        act: act(operation, 300),
    }
}

pub(super) fn to(terms: PlanTerms, at_once: bool) -> PlanAct {
    PlanAct::Change { terms, at_once }
}

pub(super) async fn subscription(ledger: &dyn Ledger, number: u64) -> Subscription {
    ledger.subscription(sub(number)).await.unwrap().unwrap()
}

/// All subscriptions' periods and other grants as they are now, by time: what is left and what is held of each that is open.
pub(super) async fn periods(ledger: &dyn Ledger) -> Vec<(GrantKind, Amount, Amount)> {
    let found = ledger.find_key(key(1)).await.unwrap().unwrap();
    let mut open: Vec<Grant> = found.customer.grants.iter().cloned().collect();
    open.sort_by_key(|grant| (grant.effective_at, grant.id));
    let shown = |grant: &Grant| (grant.kind, grant.remaining, grant.held);
    open.iter().map(shown).collect()
}

pub(super) async fn available(ledger: &dyn Ledger, slug: &str) -> Amount {
    let found = ledger.find_key(key(1)).await.unwrap().unwrap();
    found.customer.available(slug)
}

/// What a request could be charged within its windows.
pub(super) async fn open_windows(ledger: &dyn Ledger) -> Vec<(String, Amount, Amount)> {
    let found = ledger.find_key(key(1)).await.unwrap().unwrap();
    let mut all: Vec<PlanWindow> = found.customer.grants.plans.windows().cloned().collect();
    all.sort_by_key(|window| (window.begins, window.ends));
    let shown = |window: &PlanWindow| {
        let place = format!("{} {}", window.place.plan, window.place.per);
        (place, window.charged, window.held)
    };
    all.iter().map(shown).collect()
}

pub(super) async fn charge(ledger: &dyn Ledger, operation: u64, cents: u64) -> EndedHold {
    let finish = finish(operation, cents * 10_000);
    ledger.perform(Arc::new(finish)).await.unwrap()
}

/// Holds some of a request for a slug.
pub(super) fn hold_for(slug: &str, operation: u64, amount: &str) -> NewHold {
    NewHold {
        slug: slug.to_owned(),
        ..new_hold(1, operation, amount)
    }
}

/// Where the money of an entry came from or went to: `p` are periods, `g` other grants, the rest is the pool's.
pub(super) async fn parts(ledger: &dyn Ledger, operation: u64) -> String {
    let entry = ledger.entry(op(operation)).await.unwrap().unwrap();
    let grants = ledger.all::<GrantRecord>().await.unwrap();
    let kind = |id: Option<GrantId>| match id {
        None => "pool",
        Some(id) => {
            let known = grants.iter().find(|known| known.grant.id == id).unwrap();
            match known.grant.kind {
                GrantKind::Plan => "plan",
                GrantKind::Paid | GrantKind::Promotional => "grant",
            }
        }
    };
    let each = entry.parts.iter();
    let each = each.map(|part| format!("{} {}", kind(part.grant), part.amount));
    each.collect::<Vec<_>>().join(", ")
}

pub(super) async fn booked(ledger: &dyn Ledger, kind: EntryKind) -> Vec<Amount> {
    let entries = ledger.entries(EntryQuery::default()).await.unwrap();
    let mut of = entries;
    of.retain(|entry| entry.kind == kind);
    of.sort_by_key(|entry| entry.position);
    of.iter().map(|entry| entry.amount).collect()
}

pub(super) async fn claim(ledger: &dyn Ledger) -> Amount {
    let found = ledger.find_key(key(1)).await.unwrap().unwrap();
    found.customer.claim
}

/// Whether a plan binds as a cap does, with the window or period that opens next. The reference says only what is available.
fn by_plan(refusal: &Refusal, room: &str) -> bool {
    match refusal {
        Refusal::CapReached(reached) => {
            reached.plan.is_some() && reached.room == usd(room) && reached.resets_at.is_some()
        }
        Refusal::Insufficient { available, .. } => *available == usd(room),
        _ => false,
    }
}

pub(crate) async fn a_period_pays_first_and_the_balance_after_it(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("10"))).await.unwrap();
    let bought = buy(&*ledger, 20, purchase(1, 1, coder())).await;
    let entry = bought.entry.unwrap();
    assert_eq!((entry.kind, entry.amount), (EntryKind::Grant, usd("0")));
    assert_eq!(entry.reference.as_deref(), Some("sale-20"));
    assert_eq!(available(&*ledger, "small").await, usd("35"));
    assert_eq!(account(&*ledger, 1).await.credit, usd("35"));
    // Whatever is held of the balance, the period is used first.
    ledger.perform(new_hold(1, 100, "30")).await.unwrap();
    assert_eq!(
        periods(&*ledger).await,
        [(GrantKind::Plan, usd("25"), usd("20"))]
    );
    charge(&*ledger, 100, 2_000).await;
    assert_eq!(parts(&*ledger, 100).await, "plan -20.00");
    ledger.perform(new_hold(1, 101, "1")).await.unwrap();
    charge(&*ledger, 101, 900).await;
    assert_eq!(parts(&*ledger, 101).await, "plan -5.00, pool -4.00");
    // One that is used up runs on, and takes what is refunded.
    let refund = CreditKind::Refund {
        request: op(101),
        reason: "bad".to_owned(),
    };
    let refund = credit(1, 30, refund, "6", "refund");
    ledger.perform(refund).await.unwrap();
    assert_eq!(parts(&*ledger, 30).await, "pool 4.00, plan 2.00");
    assert_eq!(
        periods(&*ledger).await,
        [(GrantKind::Plan, usd("2"), usd("0"))]
    );
    assert_eq!(available(&*ledger, "small").await, usd("12"));
    sound(&*ledger).await;
}

pub(crate) async fn a_charge_beyond_its_window_is_paid_by_the_balance(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("10"))).await.unwrap();
    let terms = windowed(&[("5h", "4"), ("day", "8")], coder());
    buy(&*ledger, 20, purchase(1, 1, terms)).await;
    assert_eq!(available(&*ledger, "small").await, usd("14"));
    // A hold stores its windows even if it takes nothing of the plan yet.
    ledger.perform(new_hold(1, 100, "3")).await.unwrap();
    let begun = [("coder day", "0", "0"), ("coder 5h", "0", "0")];
    let shown = |all: &[(&str, &str, &str)]| -> Vec<(String, Amount, Amount)> {
        let one = |(place, charged, held): &(&str, &str, &str)| {
            ((*place).to_owned(), usd(charged), usd(held))
        };
        all.iter().map(one).collect()
    };
    assert_eq!(open_windows(&*ledger).await, shown(&begun));
    let ended = charge(&*ledger, 100, 600).await;
    assert_eq!((ended.charge, ended.loss), (usd("6"), usd("0")));
    assert_eq!(parts(&*ledger, 100).await, "plan -4.00, pool -2.00");
    let used = [("coder day", "4", "0"), ("coder 5h", "4", "0")];
    assert_eq!(open_windows(&*ledger).await, shown(&used));
    assert_eq!(available(&*ledger, "small").await, usd("8"));
    // A refund gives room back to its windows, and no more than it was.
    let refund = CreditKind::Refund {
        request: op(100),
        reason: "bad".to_owned(),
    };
    ledger
        .perform(credit(1, 30, refund, "5", "refund"))
        .await
        .unwrap();
    assert_eq!(parts(&*ledger, 30).await, "pool 2.00, plan 3.00");
    let given_back = [("coder day", "1", "0"), ("coder 5h", "1", "0")];
    assert_eq!(open_windows(&*ledger).await, shown(&given_back));
    ledger.perform(new_hold(1, 101, "13")).await.unwrap();
    let full = [("coder day", "1", "3"), ("coder 5h", "1", "3")];
    assert_eq!(open_windows(&*ledger).await, shown(&full));
    let refusal = refused(ledger.perform(new_hold(1, 102, "0.01")).await);
    assert!(by_plan(&refusal, "0"), "{refusal}");
    // A hold that is smaller gives the windows their room.
    ledger.perform(moved(101, "2", 0)).await.unwrap();
    let smaller = open_windows(&*ledger).await;
    charge(&*ledger, 101, 100).await;
    assert_eq!(parts(&*ledger, 101).await, "plan -1.00");
    assert_eq!(
        smaller,
        shown(&[("coder day", "1", "0"), ("coder 5h", "1", "0")])
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_plan_that_stops_lets_nothing_else_pay(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("10"))).await.unwrap();
    let terms = PlanTerms {
        models: Some(vec!["small".to_owned()]),
        ..stopping(windowed(&[("5h", "4")], coder()))
    };
    buy(&*ledger, 20, purchase(1, 1, terms)).await;
    assert_eq!(available(&*ledger, "small").await, usd("4"));
    // Other models are the balance's.
    assert_eq!(available(&*ledger, "odd").await, usd("10"));
    let refusal = refused(ledger.perform(new_hold(1, 100, "4.01")).await);
    assert!(!refusal.to_string().is_empty());
    ledger.perform(new_hold(1, 101, "3")).await.unwrap();
    // Beyond its hold a charge takes what the window has, and the rest is the operator's.
    let ended = charge(&*ledger, 101, 600).await;
    assert_eq!((ended.charge, ended.loss), (usd("4"), usd("2")));
    assert_eq!(parts(&*ledger, 101).await, "plan -4.00");
    refused(ledger.perform(new_hold(1, 102, "0.01")).await);
    ledger.perform(hold_for("odd", 103, "9")).await.unwrap();
    // `stop` binds no other subscription.
    let other = PlanTerms {
        models: Some(vec!["small".to_owned(), "odd".to_owned()]),
        ..named("other", coder())
    };
    buy(&*ledger, 21, purchase(2, 1, other)).await;
    assert_eq!(available(&*ledger, "small").await, usd("25"));
    assert_eq!(available(&*ledger, "odd").await, usd("26"));
    ledger.perform(new_hold(1, 104, "25")).await.unwrap();
    charge(&*ledger, 104, 2_600).await;
    assert_eq!(parts(&*ledger, 104).await, "plan -25.00");
    sound(&*ledger).await;
}

pub(crate) async fn plans_that_make_no_sense_are_refused(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let wrong = [
        windowed(&[("5h", "26")], coder()),
        windowed(&[("day", "8"), ("5h", "4")], coder()),
        windowed(&[("5h", "9"), ("day", "8")], coder()),
        windowed(&[("5h", "0")], coder()),
        named("Coder", coder()),
        PlanTerms {
            carry: usd("26"),
            ..coder()
        },
        PlanTerms {
            allowance: usd("0"),
            carry: usd("0"),
            ..coder()
        },
    ];
    for terms in wrong {
        let refusal = refused(ledger.perform(sale(20, purchase(1, 1, terms))).await);
        assert!(matches!(refusal, Refusal::Limit(_)), "{refusal}");
    }
    for periods in [0, 25] {
        let refusal = refused(
            ledger
                .perform(sale(20, purchase(1, periods, coder())))
                .await,
        );
        assert!(matches!(refusal, Refusal::Limit(_)), "{refusal}");
    }
    let other_credit = NewPayment {
        credit: usd("26"),
        ..sale(20, purchase(1, 1, coder()))
    };
    refused(ledger.perform(other_credit).await);
    let no_such = refused(ledger.perform(changed(1, 21, PlanAct::Pause)).await);
    assert_eq!(no_such, Refusal::NoSuchSubscription(sub(1)));
    let unsold = NewPayment {
        unsold: Some("the catalog sells no such plan".to_owned()),
        ..sale(22, purchase(1, 1, coder()))
    };
    let kept = ledger.perform(unsold).await.unwrap();
    assert!(matches!(
        kept.payment.status,
        PaymentStatus::Unapplied { .. }
    ));
    assert_eq!(ledger.all::<Subscription>().await.unwrap(), []);
    sound(&*ledger).await;
}

pub(crate) async fn four_subscriptions_are_paid_24_periods_ahead(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    for number in 1..=4 {
        let terms = named(&format!("plan-{number}"), coder());
        buy(&*ledger, 20 + number, purchase(number, 24, terms)).await;
    }
    let fifth = named("plan-5", coder());
    let why = unapplied(&*ledger, 30, purchase(5, 1, fifth.clone())).await;
    assert!(why.contains("at most 4"), "{why}");
    // One of each plan, and 24 periods that have not begun.
    let again = named("plan-1", coder());
    let why = unapplied(&*ledger, 31, purchase(6, 1, again.clone())).await;
    assert!(why.contains("already"), "{why}");
    buy(&*ledger, 32, purchase(1, 1, again.clone())).await;
    let why = unapplied(&*ledger, 33, purchase(1, 1, again)).await;
    assert!(why.contains("at most 24"), "{why}");
    let of = subscription(&*ledger, 1).await;
    assert_eq!((of.paid_ahead(), of.state.last), (24, 1));
    // Each gives its first period; what has ended makes room.
    assert_eq!(account(&*ledger, 1).await.credit, usd("100"));
    ledger.perform(changed(2, 34, PlanAct::End)).await.unwrap();
    buy(&*ledger, 35, purchase(5, 1, fifth)).await;
    assert_eq!(account(&*ledger, 1).await.credit, usd("125"));
    sound(&*ledger).await;
}

pub(crate) async fn a_sale_is_booked_once_and_two_are_two_periods(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let of = purchase(1, 1, coder());
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let (ledger, of) = (ledger.clone(), of.clone());
            let new = NewPayment {
                reference: format!("sale-{}", number % 2),
                ..sale(20 + number, of)
            };
            tokio::spawn(async move { ledger.perform(new).await.unwrap().repeated })
        })
        .collect();
    let mut first = 0;
    for task in tasks {
        first += usize::from(!task.await.unwrap());
    }
    assert_eq!(first, 2);
    let of = subscription(&*ledger, 1).await;
    assert_eq!((of.state.last, of.paid_ahead()), (1, 1));
    assert_eq!(account(&*ledger, 1).await.credit, usd("25"));
    sound(&*ledger).await;
}

pub(crate) async fn a_voucher_gives_a_period_at_no_price(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let lot = NewLot {
        kind: GrantKind::Plan,
        amount: usd("25"),
        plan: Some(Box::new(coder())),
        ..new_lot(1, 20, 3)
    };
    let wrong = NewLot {
        amount: usd("24"),
        ..lot.clone()
    };
    refused(ledger.perform(wrong).await);
    ledger.perform(lot).await.unwrap();
    let first = ledger.perform(redemption(200, 1, 30)).await.unwrap();
    let again = ledger.perform(redemption(200, 1, 31)).await.unwrap();
    assert_eq!((&again.entry, again.repeated), (&first.entry, true));
    assert_eq!(first.entry.amount, usd("0"));
    assert_eq!(account(&*ledger, 1).await.credit, usd("25"));
    // The next renews it, whoever started it.
    ledger.perform(redemption(201, 1, 32)).await.unwrap();
    let all = ledger.all::<Subscription>().await.unwrap();
    let [of] = &all[..] else { panic!("{all:?}") };
    assert_eq!((of.state.last, of.paid_ahead()), (1, 1));
    // At once changed, it was worth nothing; what is paid ahead is in the way.
    let change = PlanChange {
        subscription: of.id,
        ..changed(1, 40, to(named("other", coder()), true))
    };
    refused(ledger.perform(change).await);
    sound(&*ledger).await;
}

pub(crate) async fn a_paused_plan_waits_and_an_ended_one_is_not_renewed(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    ledger.perform(new_hold(1, 100, "5")).await.unwrap();
    ledger
        .perform(changed(1, 30, PlanAct::Pause))
        .await
        .unwrap();
    refused(ledger.perform(changed(1, 31, PlanAct::Pause)).await);
    // Holds run on, and what they give back is kept.
    assert_eq!(available(&*ledger, "small").await, usd("0"));
    refused(ledger.perform(new_hold(1, 101, "1")).await);
    charge(&*ledger, 100, 200).await;
    assert_eq!(parts(&*ledger, 100).await, "plan -2.00");
    let paid = buy(&*ledger, 21, purchase(1, 1, coder())).await;
    assert_eq!(paid.customer.account.balance(), usd("23"));
    ledger
        .perform(changed(1, 32, PlanAct::Resume))
        .await
        .unwrap();
    assert_eq!(available(&*ledger, "small").await, usd("23"));
    ledger
        .perform(changed(1, 33, PlanAct::WantEnd))
        .await
        .unwrap();
    assert!(subscription(&*ledger, 1).await.state.end_wanted);
    ledger.perform(changed(1, 34, PlanAct::End)).await.unwrap();
    refused(ledger.perform(changed(1, 35, PlanAct::End)).await);
    let elsewhere = PlanAct::Give(purchase(2, 1, coder()));
    refused(ledger.perform(changed(1, 36, elsewhere)).await);
    // What runs stays, what is paid stays paid, and a later payment is unapplied.
    assert_eq!(available(&*ledger, "small").await, usd("23"));
    assert_eq!(subscription(&*ledger, 1).await.paid_ahead(), 1);
    let why = unapplied(&*ledger, 22, purchase(1, 1, coder())).await;
    assert!(why.contains("ended"), "{why}");
    let ended = subscription(&*ledger, 1).await.state.ended_at.unwrap();
    let before = Timestamp::from_millis(ended.millis() - 1);
    for (operation, asked, ahead) in [(23, ended, 1), (24, before, 2)] {
        let of = PlanPurchase {
            invoiced_at: Some(asked),
            ..purchase(1, 1, coder())
        };
        ledger.perform(sale(operation, of)).await.unwrap();
        assert_eq!(subscription(&*ledger, 1).await.paid_ahead(), ahead);
    }
    // A customer with it is not closed.
    let close = CustomerChange {
        customer: customer(),
        change: CustomerAct::Close,
        act: act(40, 300),
    };
    refused(ledger.perform(close).await);
    sound(&*ledger).await;
}

pub(crate) async fn a_period_is_promotional_and_no_grant_of_32(ledger: SharedLedger) {
    for number in [1, 2] {
        let balance = Some("3").filter(|_| number == 1);
        ledger
            .perform(new_key(number, 10 + number, balance))
            .await
            .unwrap();
    }
    for number in 1..=32 {
        let new = NewGrant {
            id: GrantId::from_random(number),
            customer: customer(),
            kind: GrantKind::Promotional,
            amount: usd("1"),
            priority: Grant::PRIORITY,
            effective_at: None,
            expires_at: None,
            models: None,
            reference: format!("grant-{number}"),
            act: act(200 + number, 100),
        };
        ledger.perform(new).await.unwrap();
    }
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    assert_eq!(available(&*ledger, "small").await, usd("60"));
    let moved = |amount: &str| NewMove {
        from: customer(),
        into: CustomerId::made_for(key(2)),
        amount: usd(amount),
        reference: "moved".to_owned(),
        act: act(30, 300),
    };
    refused(ledger.perform(moved("3.01")).await);
    ledger.perform(moved("3")).await.unwrap();
    let period = ledger.all::<GrantRecord>().await.unwrap();
    let period = period
        .iter()
        .find(|known| known.grant.kind == GrantKind::Plan);
    let void = VoidGrant {
        grant: period.unwrap().grant.id,
        customer: customer(),
        act: act(31, 300),
    };
    // It is taken back as any other, and its subscription waits for the next payment.
    ledger.perform(void).await.unwrap();
    assert_eq!(available(&*ledger, "small").await, usd("32"));
    let left = subscription(&*ledger, 1).await.state;
    assert_eq!(
        (left.status, left.running),
        (SubscriptionStatus::Lapsed, None)
    );
    buy(&*ledger, 32, purchase(1, 1, coder())).await;
    assert_eq!(available(&*ledger, "small").await, usd("57"));
    sound(&*ledger).await;
}

pub(crate) async fn a_subscription_is_found_by_its_id(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    for (number, name) in [(1, "coder"), (2, "team")] {
        let of = purchase(number, 1, named(name, coder()));
        buy(&*ledger, 20 + number, of).await;
    }
    ledger.perform(changed(2, 30, PlanAct::End)).await.unwrap();
    let all = ledger.all::<Subscription>().await.unwrap();
    for (number, status) in [
        (1, SubscriptionStatus::Active),
        (2, SubscriptionStatus::Ended),
    ] {
        let found = ledger.subscription(sub(number)).await.unwrap().unwrap();
        assert_eq!((found.id, found.state.status), (sub(number), status));
        assert!(all.contains(&found), "{found:?}");
    }
    assert_eq!(ledger.subscription(sub(3)).await.unwrap(), None);
}

pub(crate) async fn two_subscriptions_of_one_plan_share_its_windows(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let first = windowed(&[("5h", "4")], coder());
    let second = windowed(&[("5h", "4"), ("day", "8")], coder());
    buy(&*ledger, 20, purchase(1, 1, first)).await;
    ledger.perform(changed(1, 30, PlanAct::End)).await.unwrap();
    buy(&*ledger, 21, purchase(2, 1, second)).await;
    assert_eq!(available(&*ledger, "small").await, usd("4"));
    ledger.perform(new_hold(1, 100, "4")).await.unwrap();
    refused(ledger.perform(new_hold(1, 101, "0.01")).await);
    sound(&*ledger).await;
    charge(&*ledger, 100, 100).await;
    sound(&*ledger).await;
    ledger.perform(new_hold(1, 102, "3")).await.unwrap();
    charge(&*ledger, 102, 300).await;
    assert_eq!(available(&*ledger, "small").await, usd("0"));
    sound(&*ledger).await;
}

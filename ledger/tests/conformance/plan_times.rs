//! What time does to plans: periods that begin and end, windows that open, and what comes late.

use farebox_ledger::*;

use super::common::*;
use super::plans::*;
use super::{account, refused};

fn instant(text: &str) -> Timestamp {
    let at: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_millis(at.as_millisecond())
}

/// Moves the clock to an instant.
fn it_is(text: &str) {
    clock::stand_at(Some(instant(text)));
}

fn daily(terms: PlanTerms) -> PlanTerms {
    PlanTerms {
        period: PlanPeriod::Days(1),
        ..terms
    }
}

/// What reads reckon in is what is booked then, and the books are right. Returns what a request can have.
async fn seen_and_booked(ledger: &dyn Ledger) -> Amount {
    let seen = ledger.find_key(key(1)).await.unwrap().unwrap().customer;
    let settle = SettleGrants {
        customer: customer(),
    };
    ledger.perform(settle).await.unwrap();
    let booked = ledger.find_key(key(1)).await.unwrap().unwrap().customer;
    assert_eq!(seen.account, booked.account);
    assert_eq!(seen.grants, booked.grants);
    sound(ledger).await;
    booked.available("small")
}

async fn begin(ledger: &dyn Ledger, text: &str) {
    it_is(text);
    ledger.perform(new_key(1, 10, None)).await.unwrap();
}

async fn running(ledger: &dyn Ledger) -> (u32, Timestamp, Timestamp) {
    let of = subscription(ledger, 1).await;
    let running = of.state.running.unwrap();
    (running.number, running.begins, running.ends)
}

fn runs(number: u32, begins: &str, ends: &str) -> (u32, Timestamp, Timestamp) {
    (number, instant(begins), instant(ends))
}

async fn use_up(ledger: &dyn Ledger, operation: u64, cents: u64) {
    let size = format!("{}.{:02}", cents / 100, cents % 100);
    ledger.perform(new_hold(1, operation, &size)).await.unwrap();
    charge(ledger, operation, cents).await;
}

pub(crate) async fn an_early_renewal_loses_no_days(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-31T10:00:00Z").await;
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    it_is("2027-02-10T00:00:00Z");
    buy(&*ledger, 21, purchase(1, 1, coder())).await;
    let of = subscription(&*ledger, 1).await;
    assert_eq!(of.paid_until(), Some(instant("2027-03-31T10:00:00Z")));
    it_is("2027-02-28T09:59:59.999Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("25"));
    it_is("2027-02-28T10:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
    let second = runs(2, "2027-02-28T10:00:00Z", "2027-03-31T10:00:00Z");
    assert_eq!(running(&*ledger).await, second);
    // It lives on for the grace, and no longer.
    it_is("2027-03-31T15:59:59.999Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
    it_is("2027-03-31T16:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    let of = subscription(&*ledger, 1).await;
    assert_eq!(
        (of.state.status, of.state.last),
        (SubscriptionStatus::Lapsed, 2)
    );
    assert_eq!(
        booked(&*ledger, EntryKind::Expired).await,
        [usd("-20"), usd("-30")]
    );
}

pub(crate) async fn months_end_with_their_last_day(ledger: SharedLedger) {
    begin(&*ledger, "2027-11-30T23:30:00Z").await;
    buy(&*ledger, 20, purchase(1, 12, coder())).await;
    let ends = [
        "2027-12-30",
        "2028-01-30",
        "2028-02-29",
        "2028-03-30",
        "2028-04-30",
        "2028-05-30",
    ];
    let mut begins = "2027-11-30";
    for (number, ends) in (1..).zip(ends) {
        let [from, to] = [begins, ends].map(|day| format!("{day}T23:30:00Z"));
        assert_eq!(running(&*ledger).await, runs(number, &from, &to));
        it_is(&to);
        assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
        begins = ends;
    }
}

pub(crate) async fn late_payments_begin_at_the_end_or_at_the_payment(ledger: SharedLedger) {
    begin(&*ledger, "2027-03-01T00:00:00Z").await;
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    use_up(&*ledger, 100, 2_200).await;
    // An hour late it begins where the one before ended.
    it_is("2027-04-01T01:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("3"));
    buy(&*ledger, 21, purchase(1, 1, coder())).await;
    let second = runs(2, "2027-04-01T00:00:00Z", "2027-05-01T00:00:00Z");
    assert_eq!(running(&*ledger).await, second);
    assert_eq!(seen_and_booked(&*ledger).await, usd("28"));
    // A month late it begins now, and nothing is carried.
    it_is("2027-06-15T12:00:00Z");
    assert_eq!(available(&*ledger, "small").await, usd("0"));
    buy(&*ledger, 22, purchase(1, 1, coder())).await;
    let third = runs(3, "2027-06-15T12:00:00Z", "2027-07-15T12:00:00Z");
    assert_eq!(running(&*ledger).await, third);
    assert_eq!(seen_and_booked(&*ledger).await, usd("25"));
    let anchor = subscription(&*ledger, 1).await.state.anchor;
    assert_eq!(
        (anchor.at, anchor.number),
        (instant("2027-06-15T12:00:00Z"), 3)
    );
}

pub(crate) async fn what_is_left_is_carried_up_to_a_sum(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T00:00:00Z").await;
    buy(&*ledger, 20, purchase(1, 2, daily(coder()))).await;
    for (operation, size) in [(100, "20"), (101, "3")] {
        ledger.perform(new_hold(1, operation, size)).await.unwrap();
    }
    it_is("2027-01-02T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("27"));
    assert_eq!(
        booked(&*ledger, EntryKind::Carry).await,
        [usd("-2"), usd("2")]
    );
    // Within an hour what comes back moves, too, up to the same sum.
    it_is("2027-01-02T00:59:00Z");
    charge(&*ledger, 101, 100).await;
    assert_eq!(seen_and_booked(&*ledger).await, usd("29"));
    ledger.perform(moved(100, "15", 0)).await.unwrap();
    assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
    assert_eq!(booked(&*ledger, EntryKind::Expired).await, [usd("-4")]);
    // Later it ends.
    it_is("2027-01-02T01:00:00Z");
    charge(&*ledger, 100, 1_000).await;
    assert_eq!(parts(&*ledger, 100).await, "plan -10.00");
    assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
    assert_eq!(
        booked(&*ledger, EntryKind::Expired).await,
        [usd("-4"), usd("-5")]
    );
    let carried = ["-2", "2", "-2", "2", "-1", "1"].map(usd);
    assert_eq!(booked(&*ledger, EntryKind::Carry).await, carried);
    // What was carried is no credit at a change.
    ledger
        .perform(changed(1, 30, to(named("other", coder()), true)))
        .await
        .unwrap();
    assert_eq!(account(&*ledger, 1).await.balance(), usd("20"));
    sound(&*ledger).await;
}

pub(crate) async fn periods_that_nobody_saw_begin_one_after_the_other(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T06:00:00Z").await;
    buy(&*ledger, 20, purchase(1, 4, daily(coder()))).await;
    it_is("2027-01-04T05:00:00Z");
    assert_eq!(available(&*ledger, "small").await, usd("30"));
    assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
    let third = runs(3, "2027-01-03T06:00:00Z", "2027-01-04T06:00:00Z");
    assert_eq!(running(&*ledger).await, third);
    assert_eq!(
        booked(&*ledger, EntryKind::Expired).await,
        [usd("-20"), usd("-25")]
    );
    // Far behind the end of all of them nothing is left.
    it_is("2027-03-01T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    assert_eq!(subscription(&*ledger, 1).await.state.last, 4);
    assert_eq!(account(&*ledger, 1).await.balance(), usd("0"));
}

pub(crate) async fn windows_go_on_over_periods(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T03:00:00Z").await;
    let terms = windowed(&[("5h", "4"), ("day", "8")], daily(coder()));
    buy(&*ledger, 20, purchase(1, 3, terms)).await;
    it_is("2027-01-02T02:00:00Z");
    use_up(&*ledger, 100, 400).await;
    it_is("2027-01-02T03:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    refused(ledger.perform(new_hold(1, 101, "0.01")).await);
    it_is("2027-01-02T07:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("4"));
    use_up(&*ledger, 102, 400).await;
    it_is("2027-01-02T23:59:59Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    it_is("2027-01-03T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("4"));
}

pub(crate) async fn a_charge_belongs_to_the_windows_of_its_hold(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T10:00:00Z").await;
    let terms = windowed(&[("5h", "4")], coder());
    buy(&*ledger, 20, purchase(1, 1, terms)).await;
    ledger.perform(new_hold(1, 100, "3")).await.unwrap();
    it_is("2027-01-01T16:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("4"));
    ledger.perform(new_hold(1, 101, "4")).await.unwrap();
    // A hold that grows does so in its own windows.
    let grown = ledger.perform(moved(100, "9", 0)).await.unwrap();
    assert_eq!(grown.amount, usd("4"));
    let ended = charge(&*ledger, 100, 600).await;
    assert_eq!((ended.charge, ended.loss), (usd("4"), usd("2")));
    refused(ledger.perform(new_hold(1, 102, "0.01")).await);
    charge(&*ledger, 101, 100).await;
    assert_eq!(seen_and_booked(&*ledger).await, usd("3"));
    // A refund of what is long over gives this one no room.
    let refund = CreditKind::Refund {
        request: op(100),
        reason: "bad".to_owned(),
    };
    ledger
        .perform(credit(1, 30, refund, "4", "refund"))
        .await
        .unwrap();
    assert_eq!(seen_and_booked(&*ledger).await, usd("3"));
    it_is("2027-01-01T21:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("4"));
}

pub(crate) async fn a_window_of_hours_begins_with_a_hold(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T10:00:00Z").await;
    let terms = windowed(&[("5h", "4")], coder());
    buy(&*ledger, 20, purchase(1, 1, terms)).await;
    it_is("2027-01-01T12:00:00Z");
    ledger.perform(new_hold(1, 100, "1")).await.unwrap();
    charge(&*ledger, 100, 0).await;
    // It stays begun.
    it_is("2027-01-01T16:00:00Z");
    use_up(&*ledger, 101, 400).await;
    it_is("2027-01-01T16:59:59.999Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    it_is("2027-01-01T17:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("4"));
    // A look begins none.
    it_is("2027-01-01T19:00:00Z");
    use_up(&*ledger, 102, 400).await;
    it_is("2027-01-01T23:59:59.999Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    it_is("2027-01-02T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("4"));
}

pub(crate) async fn a_window_that_is_over_and_unheld_is_forgotten(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T10:00:00Z").await;
    let terms = windowed(&[("5h", "4"), ("day", "8")], daily(coder()));
    buy(&*ledger, 20, purchase(1, 1, terms)).await;
    use_up(&*ledger, 100, 100).await;
    ledger.perform(new_hold(1, 101, "1")).await.unwrap();
    ledger.perform(changed(1, 30, PlanAct::End)).await.unwrap();
    ledger.perform(top_up(1, 40, "5", "pool")).await.unwrap();
    let window = |per: &str, held: &str| (format!("coder {per}"), usd("1"), usd(held));
    // Of a plan that has ended, reads begin no window, so that these are the stored ones: what a hold is counted in stays.
    it_is("2027-01-03T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("5"));
    ledger.perform(new_hold(1, 102, "1")).await.unwrap();
    let held = [window("day", "1"), window("5h", "1")];
    assert_eq!(open_windows(&*ledger).await, held);
    charge(&*ledger, 101, 0).await;
    charge(&*ledger, 102, 0).await;
    let over = [window("day", "0"), window("5h", "0")];
    assert_eq!(open_windows(&*ledger).await, over);
    // The next hold forgets them.
    ledger.perform(new_hold(1, 103, "1")).await.unwrap();
    assert_eq!(open_windows(&*ledger).await, []);
    sound(&*ledger).await;
}

pub(crate) async fn buying_again_resets_nothing(ledger: SharedLedger) {
    // A Monday.
    begin(&*ledger, "2027-01-04T12:00:00Z").await;
    let terms = windowed(&[("week", "8")], daily(coder()));
    buy(&*ledger, 20, purchase(1, 1, terms.clone())).await;
    use_up(&*ledger, 100, 600).await;
    ledger.perform(changed(1, 30, PlanAct::End)).await.unwrap();
    assert_eq!(seen_and_booked(&*ledger).await, usd("2"));
    it_is("2027-01-06T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    buy(&*ledger, 21, purchase(2, 2, terms.clone())).await;
    assert_eq!(seen_and_booked(&*ledger).await, usd("2"));
    // Nor does a change to another plan and back, nor a second one while the first runs out.
    ledger.perform(changed(2, 31, PlanAct::End)).await.unwrap();
    buy(&*ledger, 22, purchase(3, 1, terms.clone())).await;
    assert_eq!(seen_and_booked(&*ledger).await, usd("2"));
    ledger
        .perform(changed(3, 32, to(named("other", terms.clone()), true)))
        .await
        .unwrap();
    ledger
        .perform(changed(3, 33, to(terms.clone(), true)))
        .await
        .unwrap();
    ledger.perform(new_hold(1, 101, "2")).await.unwrap();
    charge(&*ledger, 101, 200).await;
    sound(&*ledger).await;
}

pub(crate) async fn pausing_keeps_days_and_allowance(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T00:00:00Z").await;
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    ledger.perform(new_hold(1, 100, "10")).await.unwrap();
    it_is("2027-01-11T00:00:00Z");
    ledger
        .perform(changed(1, 30, PlanAct::Pause))
        .await
        .unwrap();
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    it_is("2027-02-20T00:00:00Z");
    charge(&*ledger, 100, 400).await;
    buy(&*ledger, 21, purchase(1, 1, coder())).await;
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    it_is("2027-03-01T00:00:00Z");
    ledger
        .perform(changed(1, 31, PlanAct::Resume))
        .await
        .unwrap();
    assert_eq!(seen_and_booked(&*ledger).await, usd("21"));
    let first = runs(1, "2027-01-01T00:00:00Z", "2027-03-22T00:00:00Z");
    assert_eq!(running(&*ledger).await, first);
    it_is("2027-03-22T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
    let second = runs(2, "2027-03-22T00:00:00Z", "2027-04-22T00:00:00Z");
    assert_eq!(running(&*ledger).await, second);
    // Nothing is paused whose time is over.
    it_is("2027-04-22T01:00:00Z");
    refused(ledger.perform(changed(1, 32, PlanAct::Pause)).await);
}

pub(crate) async fn an_ended_plan_charges_nothing(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T00:00:00Z").await;
    let gift = CreditKind::Adjust {
        reason: "gift".to_owned(),
        is_paid: true,
    };
    ledger
        .perform(credit(1, 11, gift, "10", "gift"))
        .await
        .unwrap();
    buy(&*ledger, 20, purchase(1, 2, stopping(coder()))).await;
    ledger.perform(changed(1, 30, PlanAct::End)).await.unwrap();
    assert_eq!(seen_and_booked(&*ledger).await, usd("25"));
    // What is paid still begins.
    it_is("2027-02-01T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
    it_is("2027-03-01T06:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("10"));
    use_up(&*ledger, 100, 900).await;
    assert_eq!(parts(&*ledger, 100).await, "");
    for day in ["2027-04-01T00:00:00Z", "2028-01-01T00:00:00Z"] {
        it_is(day);
        assert_eq!(seen_and_booked(&*ledger).await, usd("1"));
    }
    assert_eq!(
        subscription(&*ledger, 1).await.state.status,
        SubscriptionStatus::Ended
    );
}

pub(crate) async fn a_change_takes_effect_with_what_is_not_paid(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-31T00:00:00Z").await;
    buy(&*ledger, 20, purchase(1, 2, coder())).await;
    let weekly = PlanTerms {
        period: PlanPeriod::Days(7),
        allowance: usd("9"),
        price: usd("8"),
        carry: usd("0"),
        ..named("weekly", coder())
    };
    ledger
        .perform(changed(1, 30, to(weekly.clone(), false)))
        .await
        .unwrap();
    refused(
        ledger
            .perform(changed(1, 31, to(weekly.clone(), true)))
            .await,
    );
    assert_eq!(seen_and_booked(&*ledger).await, usd("25"));
    buy(&*ledger, 21, purchase(1, 2, weekly)).await;
    let of = subscription(&*ledger, 1).await;
    assert_eq!(of.paid_until(), Some(instant("2027-04-14T00:00:00Z")));
    it_is("2027-02-28T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
    it_is("2027-03-31T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("14"));
    let third = runs(3, "2027-03-31T00:00:00Z", "2027-04-07T00:00:00Z");
    assert_eq!(running(&*ledger).await, third);
    it_is("2027-04-07T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("9"));
}

pub(crate) async fn what_comes_back_after_the_end_is_a_grant(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T00:00:00Z").await;
    let terms = PlanTerms {
        models: Some(vec!["small".to_owned()]),
        ..coder()
    };
    buy(&*ledger, 20, purchase(1, 2, terms)).await;
    use_up(&*ledger, 100, 600).await;
    it_is("2027-02-01T00:00:00Z");
    let refund = |operation: u64| {
        let kind = CreditKind::Refund {
            request: op(100),
            reason: "bad".to_owned(),
        };
        credit(1, operation, kind, "2", &format!("refund-{operation}"))
    };
    ledger.perform(refund(30)).await.unwrap();
    assert_eq!(parts(&*ledger, 30).await, "grant 2.00");
    assert_eq!(seen_and_booked(&*ledger).await, usd("32"));
    assert_eq!(available(&*ledger, "odd").await, usd("0"));
    // It ends with the running period, and then such a one lasts 30 days.
    it_is("2027-03-01T06:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    ledger.perform(refund(31)).await.unwrap();
    it_is("2027-03-31T05:59:59Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("2"));
    it_is("2027-03-31T06:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
}

pub(crate) async fn a_dispute_after_the_end_takes_the_price(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T00:00:00Z").await;
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    buy(&*ledger, 21, purchase(1, 1, coder())).await;
    use_up(&*ledger, 100, 500).await;
    it_is("2027-02-02T00:00:00Z");
    let told = |kind, payment: &str, operation, cumulative: &str| NewReversal {
        kind,
        ..refund_of(payment, operation, cumulative)
    };
    // What ran is over: its price is owed, and the running period stays as it is.
    let dispute = told(ReversalKind::Dispute, "sale-20", 30, "20");
    ledger.perform(dispute).await.unwrap();
    assert_eq!(claim(&*ledger).await, usd("20"));
    let won = told(ReversalKind::DisputeWon, "sale-20", 31, "20");
    ledger.perform(won).await.unwrap();
    assert_eq!(claim(&*ledger).await, usd("0"));
    assert_eq!(seen_and_booked(&*ledger).await, usd("30"));
    // The running one goes at once, and comes again as a grant.
    let dispute = told(ReversalKind::Dispute, "sale-21", 32, "20");
    ledger.perform(dispute).await.unwrap();
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    assert_eq!(account(&*ledger, 1).await.balance(), usd("0"));
    it_is("2027-04-01T00:00:00Z");
    let won = told(ReversalKind::DisputeWon, "sale-21", 33, "20");
    ledger.perform(won).await.unwrap();
    assert_eq!(seen_and_booked(&*ledger).await, usd("25"));
    it_is("2027-05-01T00:00:00Z");
    assert_eq!(seen_and_booked(&*ledger).await, usd("0"));
    assert_eq!(claim(&*ledger).await, usd("0"));
}

pub(crate) async fn a_hold_goes_on_into_the_next_period(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T00:00:00Z").await;
    let terms = windowed(&[("day", "20")], daily(coder()));
    buy(&*ledger, 20, purchase(1, 2, terms)).await;
    use_up(&*ledger, 100, 1_000).await;
    ledger.perform(new_hold(1, 101, "5")).await.unwrap();
    it_is("2027-01-02T00:00:00Z");
    // The old one's part, then the new one, within the window of the first day.
    charge(&*ledger, 101, 900).await;
    assert_eq!(parts(&*ledger, 101).await, "plan -5.00, plan -4.00");
    let windows = open_windows(&*ledger).await;
    assert_eq!(
        windows
            .iter()
            .filter(|(place, ..)| place == "coder day")
            .count(),
        windows.len()
    );
    assert_eq!(seen_and_booked(&*ledger).await, usd("20"));
}

pub(crate) async fn what_is_used_is_told_once(ledger: SharedLedger) {
    begin(&*ledger, "2027-01-01T00:00:00Z").await;
    let terms = windowed(&[("5h", "10"), ("day", "20")], daily(coder()));
    buy(&*ledger, 20, purchase(1, 2, terms)).await;
    for (operation, cents) in [(100, 900), (101, 100)] {
        use_up(&*ledger, operation, cents).await;
    }
    it_is("2027-01-01T05:00:00Z");
    for (operation, cents) in [(102, 600), (103, 400)] {
        use_up(&*ledger, operation, cents).await;
    }
    it_is("2027-01-04T00:00:00Z");
    seen_and_booked(&*ledger).await;
    let told: Vec<String> = events(&*ledger, 0)
        .await
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::PlanLow => {
                let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
                Some(format!("{} {}", data["per"], data["percent"]))
            }
            EventKind::PlanStarted => Some("started".to_owned()),
            EventKind::PlanRenewed => Some("renewed".to_owned()),
            EventKind::PlanLapsed => Some("lapsed".to_owned()),
            _ => None,
        })
        .collect();
    let expected = [
        "started",
        "\"5h\" 100",
        "\"day\" 80",
        "\"5h\" 100",
        "\"day\" 100",
        "null 80",
        "lapsed",
    ];
    let (mut told, mut expected) = (told, expected.map(str::to_owned).to_vec());
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
}

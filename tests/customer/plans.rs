//! Plans on the dashboard, on receipts and in the documents of programs: for owners alone.

use std::time::Duration;

use farebox::clock;
use farebox_ledger::{
    Amount, Gross, KeySettings, NewPayment, NewReversal, PaidSum, Perform, PlanAct, PlanAfter,
    PlanChange, PlanPurchase, PlanTerms, ReversalKind, SubscriptionId, SubscriptionStatus,
};
use serde_json::json;

use super::dashboard::{has_browser, signed_in};
use super::sessions::{Visitor, gateway};
use crate::support::browser::{DESKTOP, PHONE};
use crate::support::{Answer, Gateway, TestKey, act, chat};

/// Of which a request of 0.000075 leaves a third in its window of five hours.
fn coder() -> PlanTerms {
    let terms = json!({
        "name": "coder", "title": "Coder, monthly", "price": "20", "allowance": "25",
        "period": "month", "carry": "5",
        "windows": [{ "per": "5h", "usd": "0.0001" }, { "per": "day", "usd": "8" }],
    });
    serde_json::from_value(terms).unwrap()
}

async fn change(gateway: &Gateway, key: &TestKey, of: SubscriptionId, change: PlanAct) {
    let customer = gateway.account(key).await.customer.id;
    let change = PlanChange {
        customer,
        subscription: of,
        change,
        act: act(),
    };
    gateway.ledger.perform(change).await.unwrap();
}

/// Gives the key's customer periods of a plan.
async fn give(
    gateway: &Gateway,
    key: &TestKey,
    terms: PlanTerms,
    processor: Option<&str>,
) -> SubscriptionId {
    let subscription = SubscriptionId::from_random(u64::from_be_bytes(clock::random()));
    let purchase = PlanPurchase {
        subscription,
        terms,
        periods: 2,
        processor: processor.map(str::to_owned),
        invoiced_at: None,
    };
    change(gateway, key, subscription, PlanAct::Give(purchase)).await;
    subscription
}

/// Posts the form that ends a plan, as a browser would.
async fn end(visitor: &Visitor<'_>, plan: SubscriptionId) -> Answer {
    let page = visitor.get("/keys").await.text;
    let once = page.split("name=\"once\" value=\"").nth(1).expect("a form");
    let once = once.split('"').next().unwrap();
    let plan = plan.to_string();
    tokio::time::sleep(Duration::from_millis(300)).await;
    visitor
        .post("plans/end", &[("once", once), ("plan", &plan)], None)
        .await
}

async fn ask(gateway: &Gateway, key: &TestKey) -> String {
    let request = chat("test-model", false);
    let answer = gateway.post("/v1/chat/completions", key, &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    gateway.settled().await;
    answer.header("x-request-id").unwrap().to_owned()
}

#[tokio::test]
async fn an_owner_sees_its_plan_and_a_member_does_not() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("1").await;
    let member = gateway.member(&owner, KeySettings::default()).await;
    give(&gateway, &owner, coder(), None).await;
    for (key, sees) in [(&owner, true), (&member, false)] {
        let visitor = Visitor::signed_in(&gateway, key).await;
        let overview = visitor.get("").await.text;
        for words in [
            "0.00<span class=\"fine\">01</span></span> of it from Coder, monthly until ",
            "Coder, monthly: <span class=\"money\">25.00</span> USD left until ",
            "USD per 5 hours: ",
            "begins with the next request",
            "href=\"/dashboard/plans\"",
        ] {
            assert_eq!(overview.contains(words), sees, "{words}: {overview}");
        }
        let plans = visitor.get("/plans").await;
        assert_eq!(plans.status, if sees { 200 } else { 403 });
        for words in [
            "Paid until ",
            "with the next period",
            "USD of use per month",
            "When it is used up, your balance pays.",
            "5.00</span> USD of what is left move into the next period.",
            "End this plan",
        ] {
            assert_eq!(plans.text.contains(words), sees, "{words}: {}", plans.text);
        }
    }
    let other = gateway.owner("1").await;
    let visitor = Visitor::signed_in(&gateway, &other).await;
    let overview = visitor.get("").await.text;
    assert!(!overview.contains("/dashboard/plans"), "{overview}");
    let plans = visitor.get("/plans").await.text;
    assert!(plans.contains("This account has no plan."), "{plans}");
}

#[tokio::test]
async fn what_a_window_leaves_is_paid_from_the_plan_and_the_rest_from_the_balance() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("1").await;
    let plan = give(&gateway, &owner, coder(), None).await;
    ask(&gateway, &owner).await;
    let second = ask(&gateway, &owner).await;
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get(&format!("/requests/{second}")).await.text;
    let words = "0.000025 from your plan Coder, monthly, 0.00005 from your balance";
    assert!(page.contains(words), "{page}");
    let overview = visitor.get("").await.text;
    let words = "; your balance pays until then.";
    assert!(
        overview.contains("Coder, monthly is used up until ") && overview.contains(words),
        "{overview}"
    );
    // Given 26 in all, spent 0.00015.
    let credits = gateway.get("/v1/credits", &owner).await.json();
    assert_eq!(
        credits["data"],
        json!({ "total_credits": 26.0, "total_usage": 0.00015 })
    );
    // An ended one still runs; the window goes on for whoever buys the plan again.
    let stop = PlanTerms {
        after: PlanAfter::Stop,
        ..coder()
    };
    change(&gateway, &owner, plan, PlanAct::End).await;
    let left = gateway.account(&owner).await.customer.grants.plans;
    assert_eq!(
        left.get(plan).unwrap().state.status,
        SubscriptionStatus::Ended
    );
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let plans = visitor.get("/plans").await.text;
    assert!(
        plans.contains("It is renewed no more.") && !plans.contains("End this plan"),
        "{plans}"
    );
    give(&gateway, &owner, stop, None).await;
    let overview = visitor.get("").await.text;
    assert!(
        overview.contains("; its models are refused until then."),
        "{overview}"
    );
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

#[tokio::test]
async fn a_period_that_is_over_is_listed_with_what_was_used_of_it() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("1").await;
    let terms = PlanTerms {
        windows: Vec::new(),
        ..coder()
    };
    let of = SubscriptionId::from_random(7);
    let buy = |periods| PlanPurchase {
        subscription: of,
        terms: terms.clone(),
        periods,
        processor: None,
        invoiced_at: None,
    };
    change(&gateway, &owner, of, PlanAct::Give(buy(1))).await;
    ask(&gateway, &owner).await;
    let at_once = PlanAct::Change {
        terms: terms.clone(),
        at_once: true,
    };
    change(&gateway, &owner, of, at_once).await;
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get("/plans").await.text;
    assert!(page.contains("and the next one is not paid."), "{page}");
    change(&gateway, &owner, of, PlanAct::Give(buy(1))).await;
    let page = visitor.get("/plans").await.text;
    let row = page
        .split("Past periods, newest first")
        .nth(1)
        .expect("a table");
    for cell in ["25.00</span>", "0.00<span class=\"fine\">0075</span>"] {
        assert!(row.contains(cell), "{cell}: {row}");
    }
    let credits = gateway.get("/v1/credits", &owner).await.json();
    let given = credits["data"]["total_credits"].as_f64().unwrap();
    assert!((given - 26.000_075).abs() < 1e-9, "{credits}");
}

/// Pays for one period under this name.
async fn pay(gateway: &Gateway, key: &TestKey, of: SubscriptionId, reference: &str) {
    let bought = PlanPurchase {
        subscription: of,
        terms: coder(),
        periods: 1,
        processor: None,
        invoiced_at: None,
    };
    let usd = |text| Amount::from_usd_str(text).unwrap();
    let paid = NewPayment {
        customer: gateway.account(key).await.customer.id,
        paid: PaidSum::in_usd(usd("20")),
        expected: None,
        credit: usd("25"),
        reference: reference.to_owned(),
        addressee: None,
        reservation: None,
        plan: Some(Box::new(bought)),
        unsold: None,
        act: act(),
    };
    gateway.ledger.perform(paid).await.unwrap();
}

#[tokio::test]
async fn a_change_at_once_has_its_lines_among_the_payments() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("1").await;
    let of = SubscriptionId::from_random(7);
    pay(&gateway, &owner, of, "pi_1").await;
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let lines = [
        "Correction<span class=\"hint\">: the unused part of a period of coder</span>",
        "Taken back",
    ];
    let page = visitor.get("/payments").await.text;
    assert!(lines.iter().all(|line| !page.contains(line)), "{page}");
    let at_once = PlanAct::Change {
        terms: coder(),
        at_once: true,
    };
    change(&gateway, &owner, of, at_once).await;
    let page = visitor.get("/payments").await.text;
    let rows: Vec<&str> = page.split("<tr").collect();
    for (line, sum) in lines.into_iter().zip(["20.00", "-25.00"]) {
        let of_it = |row: &&str| row.contains(line) && row.contains(&format!("{sum}</span>"));
        assert!(rows.iter().any(of_it), "{line} {sum}: {page}");
    }
}

#[tokio::test]
async fn a_plan_that_has_ended_and_ran_out_stays_among_the_past() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("1").await;
    let of = SubscriptionId::from_random(7);
    pay(&gateway, &owner, of, "pi_1").await;
    change(&gateway, &owner, of, PlanAct::End).await;
    let back = NewReversal {
        payment: "pi_1".to_owned(),
        kind: ReversalKind::Refund,
        cumulative: Gross::parse("20").unwrap(),
        whole: None,
        reference: "re_1".to_owned(),
        act: act(),
    };
    gateway.ledger.perform(back).await.unwrap();
    let left = gateway.account(&owner).await.customer.grants.plans;
    assert!(left.get(of).is_none(), "nothing can come of it");
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get("/plans").await.text;
    for words in [
        "Coder, monthly <span class=\"pill warn\">ended</span>",
        "It has ended, and nothing of it is left.",
        "Past periods, newest first",
        "paid back",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("End this plan"), "{page}");
    // No view names the plans any more; the period among the payments leads there.
    let payments = visitor.get("/payments").await.text;
    let way = "<a href=\"/dashboard/plans\">Period of a plan</a>";
    assert!(payments.contains(way), "{payments}");
    assert_eq!(gateway.ledger.verify().await.unwrap().faults, [""; 0]);
}

#[tokio::test]
async fn an_owner_is_told_that_a_period_is_for_nothing_that_is_offered() {
    let (_upstream, gateway) = gateway().await;
    let words = "None of the models that this period pays for is offered any more.";
    // Of the second, one is offered beside the one that is retired.
    for (models, is_told) in [
        (vec!["test-old"], true),
        (vec!["test-old", "test-model"], false),
    ] {
        let owner = gateway.owner("1").await;
        let names = models.iter().map(|slug| (*slug).to_owned());
        let terms = PlanTerms {
            models: Some(names.collect()),
            ..coder()
        };
        give(&gateway, &owner, terms, None).await;
        let visitor = Visitor::signed_in(&gateway, &owner).await;
        let page = visitor.get("/plans").await.text;
        assert_eq!(page.contains(words), is_told, "{page}");
        // What was sold binds nobody to pay with it for what has come in its place.
        ask(&gateway, &owner).await;
        let left = gateway.account(&owner).await.customer.grants.plans;
        let used = left.windows().any(|window| window.charged.is_positive());
        assert_eq!(used, !is_told, "{models:?}");
    }
}

#[tokio::test]
async fn an_owner_asks_for_the_end_of_its_own_plan_alone() {
    let (_upstream, gateway) = gateway().await;
    let (owner, stranger) = (gateway.owner("1").await, gateway.owner("1").await);
    let plan = give(&gateway, &owner, coder(), None).await;
    let other = give(&gateway, &stranger, coder(), Some("sub_1")).await;
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let refused = end(&visitor, other).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert!(
        refused.text.contains("is of another customer"),
        "{}",
        refused.text
    );
    assert_eq!(end(&visitor, plan).await.status, 303);
    let page = visitor.get("/plans").await.text;
    assert!(
        page.contains("You asked for its end") && !page.contains("End this plan"),
        "{page}"
    );
    let plans = gateway.account(&owner).await.customer.grants.plans;
    let state = &plans.get(plan).unwrap().state;
    assert_eq!(
        (state.end_wanted, state.status),
        (true, SubscriptionStatus::Active)
    );
    let plans = gateway.account(&stranger).await.customer.grants.plans;
    assert!(!plans.get(other).unwrap().state.end_wanted);
    let member = gateway.member(&owner, KeySettings::default()).await;
    let visitor = Visitor::signed_in(&gateway, &member).await;
    let fields = [("once", "1-1"), ("plan", "s_0000000001")];
    assert_eq!(visitor.post("plans/end", &fields, None).await.status, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_are_seen_in_both_widths() {
    if !has_browser() {
        return;
    }
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("1").await;
    give(&gateway, &owner, coder(), None).await;
    ask(&gateway, &owner).await;
    for (name, window) in [("desktop", DESKTOP), ("phone", PHONE)] {
        let browser = signed_in(&gateway, &owner, window).await;
        for (page, path) in [("plans-overview", ""), ("plans", "/plans")] {
            browser
                .go(&format!("{}/dashboard{path}", gateway.base))
                .await;
            let figures = browser.text(".caps").await;
            assert!(figures.contains(" of 25.00 USD"), "{name}: {figures}");
            browser.assert_accessible(&format!("{name} {page}")).await;
            assert!(browser.overhang().await <= 0, "{name} {page}");
            browser.picture(&format!("{page}-{name}")).await;
        }
    }
}

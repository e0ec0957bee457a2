//! Plans on the dashboard, on receipts and in the documents of programs: for owners alone.

use std::time::Duration;

use farebox::clock;
use farebox_ledger::{
    KeySettings, Perform, PlanAct, PlanChange, PlanPurchase, PlanTerms, SubscriptionId,
    SubscriptionStatus,
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
        after: farebox_ledger::PlanAfter::Stop,
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

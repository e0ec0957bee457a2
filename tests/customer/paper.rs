//! Paper on the dashboard: receipts and statements for owners, as pages and as files.

use std::time::Duration;

use farebox_ledger::{
    Act, Amount, Credit, CreditKind, Gross, NewPayment, NewReversal, PaidSum, Perform, ReversalKind,
};

use super::dashboard::{has_browser, signed_in};
use super::sessions::{Visitor, gateway};
use crate::support::browser::{DESKTOP, PHONE, Window};
use crate::support::{Gateway, TestKey, chat};

/// An owner that has paid twice and used something.
async fn customer_of(gateway: &Gateway) -> TestKey {
    let owner = gateway.owner("5.00").await;
    gateway.top_up(&owner, "1.25").await;
    let request = chat("test-model", false);
    let answer = gateway.post("/v1/chat/completions", &owner, &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    owner
}

#[tokio::test]
async fn an_owner_finds_receipts_and_statements_and_a_member_does_not() {
    let (_upstream, gateway) = gateway().await;
    let owner = customer_of(&gateway).await;
    let account = gateway.account(&owner).await;
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get("/payments").await;
    let number = format!("{}-1-2", account.customer.id);
    let link = format!("/dashboard/paper/{number}");
    assert!(page.text.contains(&link), "{}", page.text);

    let receipt = visitor.get(&format!("/paper/{number}")).await;
    assert_eq!(receipt.status, 200);
    assert!(receipt.text.contains("1.25 USD"), "{}", receipt.text);
    let document = visitor.get(&format!("/paper/{number}.json")).await.json();
    assert_eq!(
        (&document["number"], &document["gross"]),
        (&number.as_str().into(), &"1.25".into())
    );
    let all = visitor.get("/paper/all.csv").await;
    assert_eq!(all.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(all.text.lines().count(), 3, "{}", all.text);
    let month = page.text.split("/dashboard/statements/").nth(1).unwrap();
    let month = month.get(..7).unwrap().to_owned();
    let statement = visitor
        .get(&format!("/statements/{month}.json"))
        .await
        .json();
    let balance = account.customer.account.balance().to_string();
    assert_eq!(statement["closing"], balance.as_str(), "{statement}");
    assert_eq!(statement["paid"], "6.25");
    assert_eq!(statement["used"][0]["model"], "test-model");
    assert_eq!(statement["used"][0]["charged"], statement["charged"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let page = visitor.get(&format!("/statements/{month}")).await;
    assert!(page.text.contains("test-model"), "{}", page.text);
    for nothing in [
        "/paper/c_0000000000-1-1",
        "/paper/all.exe",
        "/statements/2020-01",
        "/statements/x",
    ] {
        assert_eq!(visitor.get(nothing).await.status, 404, "{nothing}");
    }

    let member = gateway.member(&owner, Default::default()).await;
    let visitor = Visitor::signed_in(&gateway, &member).await;
    for hidden in [format!("/paper/{number}"), format!("/statements/{month}")] {
        let refused = visitor.get(&hidden).await;
        assert_eq!(refused.status, 403, "{hidden}");
        assert!(!refused.text.contains("6.25"), "{}", refused.text);
    }
    let stranger = gateway.owner("1.00").await;
    let visitor = Visitor::signed_in(&gateway, &stranger).await;
    assert_eq!(visitor.get(&format!("/paper/{number}")).await.status, 404);
}

#[tokio::test]
async fn an_owner_sees_what_is_owed_and_what_was_not_booked_and_a_member_does_not() {
    let (_upstream, gateway) = gateway().await;
    let owner = customer_of(&gateway).await;
    let customer = gateway.account(&owner).await.customer.id;
    let member = gateway.member(&owner, Default::default()).await;
    let now = farebox::clock::now();
    let act = || Act {
        operation: farebox::clock::operation_id(),
        actor: "shop".to_owned(),
        at: now,
    };
    let paid = |credit: &str, gross: &str, reference: &str| NewPayment {
        customer,
        credit: Amount::from_usd_str(credit).unwrap(),
        paid: PaidSum {
            currency: "EUR".to_owned(),
            gross: Gross::parse(gross).unwrap(),
            tax: Gross::ZERO,
        },
        reference: reference.to_owned(),
        addressee: None,
        expected: None,
        reservation: None,
        plan: None,
        unsold: None,
        act: act(),
    };
    gateway
        .ledger
        .perform(paid("3", "2.70", "pi_1"))
        .await
        .unwrap();
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get("/payments").await;
    assert!(!page.text.contains("are owed"), "{}", page.text);
    assert!(!page.text.contains("Not booked yet"), "{}", page.text);
    // All money goes, but for what was spent: that is owed.
    let left = gateway.account(&owner).await.customer.account.balance();
    let takes = Credit {
        operation: farebox::clock::operation_id(),
        to: customer.into(),
        kind: CreditKind::Adjust {
            reason: "spent elsewhere".to_owned(),
            is_paid: false,
        },
        amount: left.checked_neg().unwrap(),
        reference: "gone".to_owned(),
        actor: "ada".to_owned(),
        at: now,
    };
    gateway.ledger.perform(takes).await.unwrap();
    let back = NewReversal {
        payment: "pi_1".to_owned(),
        kind: ReversalKind::Dispute,
        cumulative: Gross::parse("2.70").unwrap(),
        whole: None,
        reference: "dp_1".to_owned(),
        act: act(),
    };
    gateway.ledger.perform(back).await.unwrap();
    let page = visitor.get("/payments").await;
    for told in ["3.00</span> USD</strong>", "are owed"] {
        assert!(page.text.contains(told), "{told}: {}", page.text);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let overview = visitor.get("").await;
    assert!(overview.text.contains("are owed"), "{}", overview.text);
    let visitor = Visitor::signed_in(&gateway, &member).await;
    let overview = visitor.get("").await;
    assert!(!overview.text.contains("are owed"), "{}", overview.text);
    assert_ne!(visitor.get("/payments").await.status, 200);
    // Beyond the highest balance a payment is kept, and shown.
    for number in 0..10 {
        let more = paid("100000", "90000.10", &format!("pi_more_{number}"));
        gateway.ledger.perform(more).await.unwrap();
    }
    let kept = gateway.ledger.unapplied().await.unwrap();
    assert_eq!(kept.len(), 0, "a claim left room for it");
    let last = paid("100000", "90000.10", "pi_last");
    gateway.ledger.perform(last).await.unwrap();
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get("/payments").await;
    for told in ["Not booked yet", "pi_last", "90000.10 EUR"] {
        assert!(page.text.contains(told), "{told}: {}", page.text);
    }
    assert!(!page.text.contains("are owed"), "{}", page.text);
}

#[tokio::test]
async fn an_owners_files_have_the_requests_of_every_key() {
    let (_upstream, gateway) = gateway().await;
    let owner = customer_of(&gateway).await;
    let member = gateway.member(&owner, Default::default()).await;
    let request = chat("test-model", false);
    let asked = gateway
        .post("/v1/chat/completions", &member, &request)
        .await;
    assert_eq!(asked.status, 200);
    let both = [owner.id.to_string(), member.id.to_string()];
    for (key, seen) in [(&owner, &both[..]), (&member, &both[1..])] {
        let visitor = Visitor::signed_in(&gateway, key).await;
        let csv = visitor.get("/requests.csv").await.text;
        assert_eq!(csv.lines().count(), seen.len() + 1, "{csv}");
        assert!(csv.lines().next().unwrap().ends_with(",key,parts,run"), "{csv}");
        let json = visitor.get("/requests.json").await.json();
        let mut keys: Vec<&str> = json["requests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|request| request["key"].as_str().unwrap())
            .collect();
        keys.sort_unstable();
        let mut wanted: Vec<&str> = seen.iter().map(String::as_str).collect();
        wanted.sort_unstable();
        assert_eq!(keys, wanted);
        let usage = visitor.get("/usage.json").await.json();
        assert_eq!(usage["days"][0]["requests"], seen.len(), "{usage}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paper_is_readable_in_a_browser_at_every_width() {
    if !has_browser() {
        return;
    }
    let (_upstream, gateway) = gateway().await;
    let owner = customer_of(&gateway).await;
    let number = format!("{}-1-1", gateway.account(&owner).await.customer.id);
    for (name, window) in [("desktop", DESKTOP), ("phone", PHONE)] {
        for dark in [false, true] {
            let browser = signed_in(&gateway, &owner, Window { dark, ..window }).await;
            let base = format!("{}/dashboard", gateway.base);
            browser.go(&format!("{base}/payments")).await;
            browser.assert_accessible(&format!("{name} payments")).await;
            browser.press(&format!("a[href$='{number}']")).await;
            browser.shows("h1", "Receipt").await;
            browser.assert_accessible(&format!("{name} receipt")).await;
            assert!(browser.overhang().await <= 0, "{name}");
            browser.picture(&format!("receipt-{name}-{dark}")).await;
            browser.go(&format!("{base}/payments")).await;
            browser.press(".statements a").await;
            browser.shows("#used", "by model").await;
            browser
                .assert_accessible(&format!("{name} statement"))
                .await;
            assert!(browser.overhang().await <= 0, "{name}");
            browser.picture(&format!("statement-{name}-{dark}")).await;
        }
    }
}

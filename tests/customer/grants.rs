//! Credit that ends, on the dashboard and on receipts: for owners alone.

use farebox::clock;
use farebox_ledger::{
    Amount, Grant, GrantId, GrantKind, KeySettings, LotId, NewGrant, NewLot, Perform, Timestamp,
    VoucherCode,
};
use serde_json::json;

use super::sessions::{Visitor, gateway};
use crate::support::{Gateway, TestKey, act, chat};

fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

/// Gives the key's customer credit that ends on 1 February 2099.
async fn give(gateway: &Gateway, key: &TestKey, amount: &str, models: Option<Vec<String>>) {
    let new = NewGrant {
        id: GrantId::from_random(u64::from_be_bytes(clock::random())),
        customer: gateway.account(key).await.customer.id,
        kind: GrantKind::Promotional,
        amount: usd(amount),
        priority: Grant::PRIORITY,
        effective_at: None,
        expires_at: Some(Timestamp::from_millis(4_073_587_200_000)),
        models,
        reference: format!("given-{amount}"),
        act: act(),
    };
    gateway.ledger.perform(new).await.unwrap();
}

#[tokio::test]
async fn an_owner_sees_what_ends_when_and_a_member_does_not() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("1").await;
    let member = gateway.member(&owner, KeySettings::default()).await;
    give(&gateway, &owner, "3", None).await;
    give(&gateway, &owner, "2", Some(vec!["test-blind".to_owned()])).await;
    for (key, sees) in [(&owner, true), (&member, false)] {
        let visitor = Visitor::signed_in(&gateway, key).await;
        let overview = visitor.get("").await.text;
        for words in [
            "3.00</span> of it until 1 February 2099<",
            "2.00</span> of it until 1 February 2099 for test-blind<",
        ] {
            assert_eq!(overview.contains(words), sees, "{words}: {overview}");
        }
        let payments = visitor.get("/payments").await.text;
        assert_eq!(payments.contains("Given credit"), sees, "{payments}");
    }
}

#[tokio::test]
async fn a_receipt_says_where_the_money_came_from() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("1").await;
    let member = gateway.member(&owner, KeySettings::default()).await;
    let code = VoucherCode::generate(clock::random());
    let lot = NewLot {
        id: LotId::from_random(u64::from_be_bytes(clock::random())),
        codes: vec![code.hash()],
        amount: usd("0.0001"),
        expires_at: None,
        once_per_customer: false,
        kind: GrantKind::Promotional,
        plan: None,
        act: act(),
    };
    gateway.ledger.perform(lot).await.unwrap();
    let body = json!({ "code": code.reveal() });
    let redeemed = gateway.post("/v1/vouchers", &owner, &body).await;
    assert_eq!(redeemed.status, 200, "{}", redeemed.text);
    // Two requests of 0.000075 each: the second one is paid from both.
    let mut asked = Vec::new();
    for key in [&owner, &member] {
        let request = chat("test-model", false);
        let answer = gateway.post("/v1/chat/completions", key, &request).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        gateway.settled().await;
        asked.push(answer.header("x-request-id").unwrap().to_owned());
    }
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get(&format!("/requests/{}", asked[1])).await.text;
    let words = "0.000025 from your voucher, 0.00005 from your balance";
    assert!(page.contains(words), "{page}");
    let path = format!("/v1/generation?id={}", asked[1]);
    let seen = gateway.get(&path, &member).await.json();
    assert_eq!(seen["data"]["parts"], json!(null));
    let visitor = Visitor::signed_in(&gateway, &member).await;
    let page = visitor.get(&format!("/requests/{}", asked[1])).await.text;
    assert!(!page.contains("from your"), "{page}");
    let path = format!("/v1/generation?id={}", asked[0]);
    let seen = gateway.get(&path, &owner).await.json();
    let parts = seen["data"]["parts"].as_array().unwrap();
    assert_eq!((parts.len(), &parts[0]["kind"]), (1, &json!("promotional")));
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

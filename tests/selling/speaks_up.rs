//! What an operator is told of sales without asking: a token near its daily bound, and money that could not be booked.

use std::time::{Duration, Instant};

use farebox_ledger::TokenRole;
use serde_json::{Value, json};

use super::{Program, gateway};
use crate::support::Gateway;

/// The books are looked at every three seconds; a busy machine takes longer.
const SOON: Duration = Duration::from_secs(30);

/// Waits until an alert of this kind stands, or no longer does.
async fn until(gateway: &Gateway, kind: &str, stands: bool) -> Value {
    let begun = Instant::now();
    loop {
        let status = gateway.ask("/status").await.json();
        let alerts = status["alerts"].as_array().unwrap();
        let found = alerts.iter().find(|alert| alert["kind"] == kind);
        if found.is_some() == stands {
            return found.cloned().unwrap_or_default();
        }
        assert!(begun.elapsed() < SOON, "{kind}: {status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_token_near_its_bound_and_money_that_is_not_booked_are_alerts() {
    let (_upstream, gateway) = gateway().await;
    // It may credit 100 USD a day.
    let shop = Program::new(&gateway, TokenRole::Sell).await;
    let manager = Program::new(&gateway, TokenRole::Manage).await;
    let customer = manager.customer("Ada").await;
    let pay = async |amount: &str, reference: &str, status| {
        let body = json!({ "amount": amount, "reference": reference });
        let path = format!("/customers/{customer}/top-ups");
        shop.does(&path, &body, status).await;
    };
    pay("79.99", "pi_1", 201).await;
    // One that could not be booked proves that the books were looked at since.
    pay("30", "pi_2", 202).await;
    let alert = until(&gateway, "payment_unapplied", true).await;
    let status = gateway.ask("/status").await.json();
    assert!(!status.to_string().contains("token_near_daily"), "{status}");
    assert_eq!(alert["subject"], "pi_2");
    let reason = alert["reason"].as_str().unwrap();
    assert!(
        reason.contains("30.00 USD")
            && reason.contains(&customer)
            && reason.contains("a day (UTC)"),
        "{reason}"
    );
    pay("0.01", "pi_3", 201).await;
    let alert = until(&gateway, "token_near_daily", true).await;
    assert_eq!(alert["subject"], "sell");
    let reason = alert["reason"].as_str().unwrap();
    assert!(
        reason.contains("credit 100.00 USD a day (UTC)") && reason.contains("80.00 are done"),
        "{alert}"
    );
    let body = json!({ "to": customer });
    manager.does("/payments/pi_2/assign", &body, 200).await;
    until(&gateway, "payment_unapplied", false).await;
    // What goes back beyond the bound waits, is told, and is booked by who manages.
    let path = format!("/customers/{customer}/reversals");
    let back = |payment: &str, cumulative: &str, reference: &str| json!({ "payment": payment, "kind": "refund", "cumulative": cumulative, "reference": reference });
    shop.does(&path, &back("pi_2", "30", "re_2"), 200).await;
    let kept = shop.does(&path, &back("pi_1", "79.99", "re_1"), 202).await;
    assert_eq!(kept["payment"]["waiting"][0]["cumulative"], "79.99");
    let alert = until(&gateway, "payment_unapplied", true).await;
    let reason = alert["reason"].as_str().unwrap();
    assert!(
        reason.contains("refund of 79.99 (re_1) is not booked"),
        "{reason}"
    );
    let booked = manager
        .does(&path, &back("pi_1", "79.99", "re_3"), 200)
        .await;
    assert_eq!(booked["entry"]["amount"], "-79.99");
    until(&gateway, "payment_unapplied", false).await;
}

//! Answers that were lost: a secret is replaced before its first use, and a process that dies is asked again.

use farebox_ledger::TokenRole;
use serde_json::json;

use super::{Program, code, gateway, text};
use crate::support::{TestKey, chat};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn a_lost_secret_is_replaced_before_its_first_use_and_not_after() {
    let (_upstream, gateway) = gateway().await;
    let sell = Program::new(&gateway, TokenRole::Sell).await;
    let customer = sell.customer("Ada").await;
    let paid = json!({ "amount": "5", "reference": "pi_1" });
    sell.does(&format!("/customers/{customer}/top-ups"), &paid, 201)
        .await;
    let key = json!({ "label": "laptop", "owner": true });
    let lost = sell
        .does(&format!("/customers/{customer}/keys"), &key, 201)
        .await;
    let path = format!("/keys/{}/reissue", text(&lost, "id"));
    let new = sell.does(&path, &json!({}), 200).await;
    assert_eq!(new["id"], lost["id"]);
    assert_ne!(new["secret"], lost["secret"]);
    let with = |made: &serde_json::Value| TestKey {
        id: text(made, "id").parse().unwrap(),
        secret: text(made, "secret"),
    };
    let body = chat("test-model", false);
    assert_eq!(gateway.post(CHAT, &with(&lost), &body).await.status, 401);
    assert_eq!(gateway.post(CHAT, &with(&new), &body).await.status, 200);
    gateway.settled().await;
    let late = sell.post(&path, "late", &json!({})).await;
    assert_eq!(late.status, 409, "{}", late.text);
    assert_eq!(code(&late), "not_applicable");
    // Not for keys that another made.
    let other = gateway.key("1").await;
    let foreign = sell
        .post(&format!("/keys/{}/reissue", other.id), "f", &json!({}))
        .await;
    assert_eq!(
        (foreign.status, code(&foreign).as_str()),
        (403, "not_allowed")
    );
}

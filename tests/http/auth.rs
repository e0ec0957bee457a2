//! Who may call: missing, mistyped, unknown, blocked, expired and revoked keys, on both path families.

use farebox_ledger::key::Change;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Amount, Credit, CreditKind, Durability, KeyChange, KeyEdit, KeySettings, OpenMode, Perform,
    Said, SecretHash, Timestamp,
};
use serde_json::json;

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Gateway, act, chat, payment, talking};

#[tokio::test]
async fn a_blocked_key_is_refused_at_once_and_served_again_after_unblock() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    gateway.change(&key, Change::Block).await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (403, json!("key_blocked"))
    );
    let noted = gateway.records.all().pop().unwrap();
    assert_eq!(
        (noted.key, noted.end_reason.as_str()),
        (Some(key.id), "key_blocked"),
        "the operator sees who comes in vain"
    );
    gateway.change(&key, Change::Unblock).await;
    assert_eq!(
        gateway
            .post("/v1/chat/completions", &key, &chat("test-model", false))
            .await
            .status,
        200
    );
    gateway.change(&key, Change::Revoke).await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (403, json!("key_revoked"))
    );
}

#[tokio::test]
async fn what_a_console_does_to_a_key_in_use_holds_for_its_next_request() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let console =
        SqliteLedger::open(gateway.ledger_path(), OpenMode::Write, Durability::Prompt).unwrap();
    // Twice, so that the key is cached.
    let served = async || {
        for _ in 0..2 {
            let answer = gateway
                .post("/v1/chat/completions", &key, &chat("test-model", false))
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
    };
    let refused = async || {
        gateway
            .post("/v1/chat/completions", &key, &chat("test-model", false))
            .await
            .status
    };
    let change = async |change| {
        console
            .perform(KeyChange {
                key: key.id,
                change,
                act: act(),
            })
            .await
            .unwrap()
    };

    served().await;
    change(Change::Block).await;
    assert_eq!(refused().await, 403);
    change(Change::Unblock).await;
    served().await;

    let one_is_left = gateway
        .account(&key)
        .await
        .customer
        .account
        .available()
        .checked_sub(Amount::from_picos(1))
        .unwrap();
    let kind = CreditKind::Adjust {
        reason: "taken back".to_owned(),
        is_paid: false,
    };
    let taken = payment(
        key.id,
        one_is_left.checked_neg().unwrap(),
        "taken back".to_owned(),
    );
    console.perform(Credit { kind, ..taken }).await.unwrap();
    assert_eq!(refused().await, 429);
    console
        .perform(payment(
            key.id,
            Amount::from_usd_str("5").unwrap(),
            "paid again".to_owned(),
        ))
        .await
        .unwrap();
    served().await;

    let models = |models| {
        Change::Edit(KeyEdit {
            models,
            ..KeyEdit::default()
        })
    };
    change(models(Said::Set(vec!["another".to_owned()]))).await;
    assert_eq!(refused().await, 403);
    change(models(Said::Clear)).await;
    served().await;
    change(Change::Rotate {
        secret: SecretHash::of("another"),
        old_until: None,
    })
    .await;
    assert_eq!(refused().await, 401);
}

#[tokio::test]
async fn an_expired_key_is_refused() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let settings = KeySettings {
        expires_at: Some(Timestamp::from_millis(1)),
        ..KeySettings::default()
    };
    let key = gateway.key_with("5.00", settings).await;
    let answer = gateway.get("/v1/models", &key).await;
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (403, json!("key_expired"))
    );
}

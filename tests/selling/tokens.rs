//! Forged, expired and revoked tokens, and those who try many.

use farebox::clock;
use farebox_ledger::{Perform, RevokeToken, Timestamp, TokenRole};

use super::{Program, code, gateway, new_token};
use crate::support::Answer;

#[tokio::test]
async fn without_a_good_token_nothing_is_shown() {
    let (_upstream, gateway) = gateway().await;
    let mut program = Program::new(&gateway, TokenRole::Manage).await;
    assert_eq!(program.get("/customers").await.status, 200);
    let bare = gateway.ask_with("/api/v1/customers", None).await;
    assert_eq!((bare.status, code(&bare).as_str()), (401, "token_missing"));
    assert_eq!(bare.header("www-authenticate"), Some("Bearer"));
    // Forged: whole, but unknown; mistyped; of a customer.
    let good = program.secret.clone();
    let (_, unknown) = (
        (),
        farebox_ledger::TokenSecret::generate(clock::random())
            .reveal()
            .to_owned(),
    );
    let key = gateway.key("1").await;
    for wrong in [unknown, good.replace("fb-token-", "fb-tokem-"), key.secret] {
        program.secret = wrong;
        let answer = program.get("/customers").await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (401, "invalid_token")
        );
    }
    // Expired.
    let past = Timestamp::from_millis(clock::now().millis() - 1);
    let (_, expired) = new_token(&*gateway.ledger, "old", TokenRole::Read, Some(past)).await;
    program.secret = expired;
    assert_eq!(code(&program.get("/customers").await), "token_expired");
    // Revoked while it is in use.
    program.secret = good;
    gateway
        .ledger
        .perform(RevokeToken {
            token: program.token.id,
            act: super::act(),
        })
        .await
        .unwrap();
    let answer = program.get("/customers").await;
    assert_eq!(
        (answer.status, code(&answer).as_str()),
        (401, "token_revoked")
    );
}

#[tokio::test]
async fn who_tries_many_tokens_waits_and_others_do_not() {
    let (_upstream, gateway) = gateway().await;
    let shop = Program::new(&gateway, TokenRole::Sell).await;
    assert_eq!(shop.get("/models").await.status, 200);
    let url = format!("{}/api/v1/models", gateway.admin);
    let mut refused = Vec::new();
    for _ in 0..12 {
        let wrong = farebox_ledger::TokenSecret::generate(clock::random());
        let sent = gateway.client.get(&url).bearer_auth(wrong.reveal());
        let answer = Answer::read(sent.send().await.unwrap()).await;
        refused.push((
            answer.status,
            answer.header("retry-after").map(str::to_owned),
        ));
    }
    assert_eq!(refused[0], (401, None));
    assert_eq!(refused[11], (429, Some("5".to_owned())), "{refused:?}");
    // A token that was right before is not kept out by what others send from the same address.
    assert_eq!(shop.get("/models").await.status, 200);
}

//! Edits that say which state they expect.

use farebox_ledger::TokenRole;
use serde_json::{Value, json};

use super::{Program, code, gateway};
use crate::support::Answer;

async fn edit(program: &Program, path: &str, etag: Option<&str>, body: &Value) -> Answer {
    let mut request = program.request("PATCH", path).json(body);
    if let Some(etag) = etag {
        request = request.header("if-match", etag);
    }
    Answer::read(request.send().await.unwrap()).await
}

#[tokio::test]
async fn an_edit_of_what_was_changed_meanwhile_is_refused() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let customer = format!("/customers/{}", program.customer("Ada").await);
    let etag = async || {
        let read = program.get(&customer).await;
        read.header("etag").unwrap().to_owned()
    };
    let first = etag().await;
    // Money changes no ETag.
    let paid = json!({ "amount": "1", "reference": "pi_1" });
    program
        .does(&format!("{customer}/top-ups"), &paid, 201)
        .await;
    assert_eq!(etag().await, first);
    let rated = edit(&program, &customer, Some(&first), &json!({ "rate": 20 })).await;
    assert_eq!((rated.status, &rated.json()["rate"]), (200, &json!(20)));
    let second = rated.header("etag").unwrap().to_owned();
    assert_ne!(first, second);
    let late = edit(&program, &customer, Some(&first), &json!({ "rate": 30 })).await;
    assert_eq!(
        (late.status, code(&late).as_str()),
        (412, "changed_meanwhile")
    );
    assert_eq!(program.get(&customer).await.json()["rate"], 20);
    // What is left out stays, null is the default, and without If-Match the last one wins.
    let named = edit(
        &program,
        &customer,
        None,
        &json!({ "name": "Ada L.", "metadata": { "a": "b" } }),
    )
    .await;
    let named = named.json();
    assert_eq!(
        (&named["rate"], &named["personal"]["name"]),
        (&json!(20), &json!("Ada L."))
    );
    let cleared = edit(&program, &customer, None, &json!({ "rate": null }))
        .await
        .json();
    assert_eq!(
        (&cleared["rate"], &cleared["label"]),
        (&Value::Null, &json!("Ada"))
    );
    let wrong = edit(&program, &customer, Some("17"), &json!({})).await;
    assert_eq!(
        (wrong.status, code(&wrong).as_str()),
        (400, "invalid_if_match")
    );
}

#[tokio::test]
async fn of_edits_that_expect_the_same_state_one_is_done() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let customer = program.customer("Ada").await;
    let key = json!({ "label": "k" });
    let key = program
        .does(&format!("/customers/{customer}/keys"), &key, 201)
        .await;
    let key = format!("/keys/{}", super::text(&key, "id"));
    let etag = program.get(&key).await.header("etag").unwrap().to_owned();
    let bodies: Vec<Value> = (1..=8).map(|rate| json!({ "rate": rate })).collect();
    let sent = bodies
        .iter()
        .map(|body| edit(&program, &key, Some(&etag), body));
    let answers = futures_util::future::join_all(sent).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|status| **status == 412).count(),
        7,
        "{statuses:?}"
    );
}

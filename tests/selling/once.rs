//! One effect per idempotency key: repeated, at the same time, with another body, without a key.

use farebox::clock;
use farebox_ledger::{Amount, Credit, CreditKind, Perform, TokenRole, document};
use serde_json::{Value, json};

use super::{Program, code, gateway};
use crate::process::cli::Cli;
use crate::support::Answer;

#[tokio::test]
async fn the_same_again_is_answered_the_same_without_its_secret() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let body = json!({ "label": "Ada", "key": { "owner": true } });
    let first = program.post("/customers", "create-1", &body).await;
    let again = program.post("/customers", "create-1", &body).await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let (mut first, again) = (first.json(), again.json());
    assert!(
        first["key"]["secret"]
            .as_str()
            .unwrap()
            .starts_with("sk-fb-")
    );
    first["key"].as_object_mut().unwrap().remove("secret");
    assert_eq!(first, again);
    let listed = program.get("/customers").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    // Another body under the same key, and the same key on another path.
    let other = program
        .post("/customers", "create-1", &json!({ "label": "Bob" }))
        .await;
    assert_eq!(
        (other.status, code(&other).as_str()),
        (422, "idempotency_key_reused")
    );
    let id = first["id"].as_str().unwrap();
    let path = format!("/customers/{id}/suspend");
    assert_eq!(
        program.post(&path, "create-1", &json!({})).await.status,
        200
    );
    // What was refused was not stored: under the same key it may be put right.
    let wrong = program
        .post("/customers", "create-2", &json!({ "lable": "x" }))
        .await;
    assert_eq!(
        (wrong.status, code(&wrong).as_str()),
        (400, "unknown_field")
    );
    let right = program
        .post("/customers", "create-2", &json!({ "label": "x" }))
        .await;
    assert_eq!(right.status, 201);
}

#[tokio::test]
async fn a_post_without_a_key_is_refused_with_what_to_send() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let sent = program
        .request("POST", "/customers")
        .json(&json!({ "label": "x" }));
    let answer = Answer::read(sent.send().await.unwrap()).await;
    assert_eq!(
        (answer.status, code(&answer).as_str()),
        (400, "idempotency_key_missing")
    );
    assert!(answer.text.contains("Idempotency-Key"));
    let long = "k".repeat(256);
    let answer = program
        .post("/customers", &long, &json!({ "label": "x" }))
        .await;
    assert_eq!(code(&answer), "invalid_idempotency_key");
    let listed = program.get("/customers").await.json();
    assert_eq!(listed["data"], json!([]));
}

#[tokio::test]
async fn thirty_at_once_have_one_effect_and_one_answer() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let customer = program.customer("Ada").await;
    let (path, body) = (
        format!("/customers/{customer}/top-ups"),
        json!({ "amount": "10", "reference": "pi_1", "currency": "EUR", "gross": "11.90", "tax": "1.90" }),
    );
    let sent = (0..30).map(|_| program.post(&path, "pay-1", &body));
    let answers = futures_util::future::join_all(sent).await;
    let mut bodies: Vec<Value> = Vec::new();
    for answer in &answers {
        assert_eq!(answer.status, 201, "{}", answer.text);
        bodies.push(answer.json());
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    let fresh = answers
        .iter()
        .filter(|answer| answer.header("idempotent-replayed").is_none());
    assert_eq!(fresh.count(), 1);
    // The same payment told under another key is known by its reference.
    let told = program.post(&path, "pay-2", &body).await;
    assert_eq!(told.status, 200);
    let shown = program.get(&format!("/customers/{customer}")).await.json();
    assert_eq!(shown["balance"], "10.00");
    let entries = program
        .get(&format!("/customers/{customer}/entries"))
        .await
        .json();
    assert_eq!(entries["data"].as_array().unwrap().len(), 1);
}

/// A command, a program and a form tell of one payment, whoever is first.
#[tokio::test]
async fn a_payment_is_one_whoever_tells_of_it_first() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let customer = program.customer("Ada").await;
    let cli = Cli::on(&gateway.ledger_path());
    let path = format!("/customers/{customer}/top-ups");
    let command = async |name: &str| {
        let paid = ["customers", "top-up", &customer, "10", "--reference", name];
        cli.json(&[&paid[..], &["--json"]].concat())["entry"].clone()
    };
    let called = async |name: &str| {
        let body = json!({ "amount": "10", "reference": name });
        program.tries(&path, &body).await.json()["entry"].clone()
    };
    let form = async |name: &str| {
        let typed = Credit {
            operation: clock::operation_id(),
            to: customer.parse().unwrap(),
            kind: CreditKind::TopUp,
            amount: Amount::from_usd_str("10").unwrap(),
            reference: name.to_owned(),
            actor: "ada".to_owned(),
            at: clock::now(),
        };
        let posted = gateway.ledger.perform(typed).await.unwrap();
        document::json(&posted.entry)
    };
    let first = command("inv-1").await;
    assert_eq!(
        [called("INV-1").await, form("inv-1").await],
        [first.clone(), first]
    );
    let first = called("inv-2").await;
    assert_eq!(
        [form("inv-2").await, command("inv-2").await],
        [first.clone(), first]
    );
    let first = form("inv-3").await;
    assert_eq!(
        [command("inv-3").await, called("inv-3").await],
        [first.clone(), first]
    );
    let shown = program.get(&format!("/customers/{customer}")).await.json();
    assert_eq!(shown["balance"], "30.00");
    // Another sum is another payment.
    let other = [
        "customers",
        "top-up",
        &customer,
        "11",
        "--reference",
        "inv-3",
    ];
    let refused = cli.run(&other);
    assert_eq!(refused.status.code(), Some(1));
}

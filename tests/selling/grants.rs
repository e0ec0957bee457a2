//! Grants by API: given once, listed, taken back, used for their models alone, and gone at their end.

use std::time::Duration;

use farebox::clock;
use farebox_ledger::{KeySettings, Timestamp, TokenRole};
use serde_json::{Value, json};

use super::{Program, code, gateway, new_token, text};
use crate::support::chat;

/// A grant's terms, changed by `change`.
fn wanted(reference: &str, change: Value) -> Value {
    let mut body = json!({ "amount": "5", "reference": reference, "expires_at": "2099-01-31" });
    let (Value::Object(all), Value::Object(more)) = (&mut body, change) else {
        panic!("no objects");
    };
    all.extend(more);
    body
}

#[tokio::test]
async fn a_grant_is_given_once_and_taken_back() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let customer = manage.customer("Ada").await;
    let path = format!("/customers/{customer}/grants");
    let given = manage
        .does(&path, &wanted("Spring-1", json!({ "priority": 0 })), 201)
        .await;
    for (name, value) in [
        ("customer", json!(customer)),
        ("kind", json!("promotional")),
        ("amount", json!("5.00")),
        ("remaining", json!("5.00")),
        ("held", json!("0.00")),
        ("available", json!("5.00")),
        ("priority", json!(0)),
        ("expires_at", json!("2099-02-01T00:00:00.000Z")),
        ("models", json!(null)),
        ("status", json!("active")),
        ("reference", json!("Spring-1")),
        ("created_by", json!("manage")),
    ] {
        assert_eq!(given[name], value, "{name}: {given}");
    }
    // The same name and terms are the same grant; other terms are refused.
    let again = manage
        .does(&path, &wanted("spring-1", json!({ "priority": 0 })), 200)
        .await;
    assert_eq!(again, given);
    let other = manage
        .tries(&path, &wanted("spring-1", json!({ "amount": "6" })))
        .await;
    assert_eq!((other.status, &*code(&other)), (409, "reference_used"));
    let shown = manage.get(&format!("/customers/{customer}")).await.json();
    assert_eq!(
        (&shown["available"], &shown["credit"]),
        (&json!("5.00"), &json!("5.00"))
    );
    // One that begins later is in no balance.
    let later = wanted("autumn-1", json!({ "effective_at": "2098-01-01" }));
    let later = manage.does(&path, &later, 201).await;
    assert_eq!(
        (&later["status"], &later["available"]),
        (&json!("pending"), &json!("0.00"))
    );
    let shown = manage.get(&format!("/customers/{customer}")).await.json();
    assert_eq!(shown["balance"], "5.00");
    let list = async |query: &str| {
        let found = manage.get(&format!("/grants{query}")).await.json();
        let rows = found["data"].as_array().unwrap().iter();
        rows.map(|row| text(row, "reference")).collect::<Vec<_>>()
    };
    assert_eq!(list("?status=pending").await, ["autumn-1"]);
    assert_eq!(list("?status=active").await, ["Spring-1"]);
    assert_eq!(list("?reference=SPRING-1").await, ["Spring-1"]);
    let id = text(&given, "id");
    let voided = manage
        .does(&format!("/grants/{id}/void"), &json!({}), 200)
        .await;
    assert_eq!(
        (&voided["status"], &voided["remaining"]),
        (&json!("voided"), &json!("0.00"))
    );
    let again = manage
        .does(&format!("/grants/{id}/void"), &json!({}), 200)
        .await;
    assert_eq!(again, voided);
    assert_eq!(manage.get(&format!("/grants/{id}")).await.json(), voided);
    let entries = manage
        .get(&format!("/customers/{customer}/entries"))
        .await
        .json();
    let entries = entries["data"].as_array().unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|entry| (text(entry, "kind"), &entry["parts"]))
        .collect();
    assert_eq!(
        told,
        [
            (
                "void".to_owned(),
                &json!([{ "grant": id, "amount": "-5.00" }])
            ),
            (
                "grant".to_owned(),
                &json!([{ "grant": id, "amount": "5.00" }])
            ),
        ]
    );
    let month = manage
        .get(&format!("/customers/{customer}/statement"))
        .await
        .json();
    assert_eq!(
        (&month["promotional"], &month["voided"], &month["closing"]),
        (&json!("5.00"), &json!("5.00"), &json!("0.00"))
    );
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

#[tokio::test]
async fn grants_are_listed_in_pages_newest_first() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let (one, other) = (manage.customer("Ada").await, manage.customer("Bob").await);
    let mut given = Vec::new();
    for number in 0..5 {
        let body = wanted(&format!("n-{number}"), json!({}));
        given.insert(
            0,
            text(
                &manage
                    .does(&format!("/customers/{one}/grants"), &body, 201)
                    .await,
                "id",
            ),
        );
    }
    manage
        .does(
            &format!("/customers/{other}/grants"),
            &wanted("other", json!({})),
            201,
        )
        .await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = manage
            .get(&format!("/customers/{one}/grants?limit=2{cursor}"))
            .await
            .json();
        seen.extend(
            page["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| text(row, "id")),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    // Those of one instant come in the order of their ids.
    seen.sort_unstable();
    given.sort_unstable();
    assert_eq!(seen, given);
    let all = manage.get("/grants").await.json();
    assert_eq!(all["data"].as_array().unwrap().len(), 6);
    assert_eq!(all["data"][0]["reference"], "other");
    let of_other = manage
        .get(&format!("/grants?customer={other}"))
        .await
        .json();
    assert_eq!(of_other["data"].as_array().unwrap().len(), 1);
    let none = manage.get("/grants?until=2020-01-01").await.json();
    assert_eq!(none["data"], json!([]));
}

#[tokio::test]
async fn what_is_no_grant_is_refused_and_other_roles_give_none() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let customer = manage.customer("Ada").await;
    let path = format!("/customers/{customer}/grants");
    for (change, status, wrong, says) in [
        (
            json!({ "amount": "0" }),
            400,
            "invalid_field",
            "more than zero",
        ),
        (json!({ "amount": "100001" }), 400, "limit", "at most"),
        (
            json!({ "priority": 101 }),
            400,
            "invalid_field",
            "between 0 and 100",
        ),
        (
            json!({ "priority": -1 }),
            400,
            "invalid_field",
            "between 0 and 100",
        ),
        (
            json!({ "kind": "plan" }),
            400,
            "invalid_field",
            "promotional or paid",
        ),
        (
            json!({ "kind": "paid", "expires_at": null }),
            409,
            "not_applicable",
            "top-up",
        ),
        (
            json!({ "expires_at": "2020-01-01" }),
            400,
            "invalid_field",
            "nothing was given",
        ),
        (
            json!({ "effective_at": "2099-03-01" }),
            400,
            "limit",
            "end after it begins",
        ),
        (
            json!({ "models": ["tset-model"] }),
            400,
            "invalid_field",
            "did you mean `test-model`?",
        ),
        (
            json!({ "models": ["test-old"] }),
            400,
            "invalid_field",
            "is retired; write `test-model`",
        ),
        (
            json!({ "models": ["zzz"] }),
            400,
            "invalid_field",
            "does not publish `zzz`",
        ),
    ] {
        let refused = manage.tries(&path, &wanted("wrong", change.clone())).await;
        assert_eq!(
            (refused.status, &*code(&refused)),
            (status, wrong),
            "{change}: {}",
            refused.text
        );
        let message = text(&refused.json()["error"], "message");
        assert!(message.contains(says), "{change}: {message}");
    }
    // A model that none of its keys may use: nobody could spend it.
    let key = json!({ "label": "narrow", "models": ["test-blind"] });
    manage
        .does(&format!("/customers/{customer}/keys"), &key, 201)
        .await;
    let refused = manage
        .tries(
            &path,
            &wanted("narrow", json!({ "models": ["test-model"] })),
        )
        .await;
    assert!(refused.text.contains("no key of c_"), "{}", refused.text);
    manage
        .does(
            &path,
            &wanted("narrow", json!({ "models": ["test-blind"] })),
            201,
        )
        .await;
    // One more than there may be.
    for number in 1..32 {
        manage
            .does(&path, &wanted(&format!("n-{number}"), json!({})), 201)
            .await;
    }
    let refused = manage.tries(&path, &wanted("n-32", json!({}))).await;
    assert_eq!((refused.status, &*code(&refused)), (409, "not_applicable"));
    assert!(
        refused.text.contains("at most 32 grants"),
        "{}",
        refused.text
    );
    for path in ["/grants/g_0000000000/void", "/grants/nothing/void"] {
        let refused = manage.tries(path, &json!({})).await;
        assert_eq!(
            (refused.status, &*code(&refused)),
            (404, "grant_not_found"),
            "{path}"
        );
    }
    for role in [TokenRole::Sell, TokenRole::Read] {
        let program = Program::new(&gateway, role).await;
        let id = text(&manage.get("/grants").await.json()["data"][0], "id");
        for refused in [
            program.tries(&path, &wanted("mine", json!({}))).await,
            program
                .tries(&format!("/grants/{id}/void"), &json!({}))
                .await,
        ] {
            assert_eq!(
                (refused.status, &*code(&refused)),
                (403, "role_exceeded"),
                "{role}"
            );
            assert!(
                refused.text.contains("this needs manage"),
                "{}",
                refused.text
            );
        }
        let (status, told) = match role {
            TokenRole::Sell => (403, "not_yours"),
            TokenRole::Read | TokenRole::Manage => (200, ""),
        };
        for read in [format!("/grants/{id}"), "/grants".to_owned(), path.clone()] {
            let answer = program.get(&read).await;
            assert_eq!(answer.status, status, "{role} {read}: {}", answer.text);
            assert!(told.is_empty() || code(&answer) == told, "{read}");
        }
    }
    // Of customers that it made itself a token that sells reads them.
    let (token, secret) = new_token(&*gateway.ledger, "other", TokenRole::Sell, None).await;
    let sell = Program {
        base: manage.base.clone(),
        client: manage.client.clone(),
        token,
        secret,
    };
    let own = sell.customer("Its own").await;
    manage
        .does(
            &format!("/customers/{own}/grants"),
            &wanted("own", json!({})),
            201,
        )
        .await;
    let found = sell.get(&format!("/grants?customer={own}")).await.json();
    assert_eq!(found["data"][0]["reference"], "own");
}

#[tokio::test]
async fn a_grant_for_one_model_pays_for_that_model_alone() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let owner = gateway.owner_with("0", KeySettings::default()).await;
    let customer = gateway.account(&owner).await.customer.id;
    let path = format!("/customers/{customer}/grants");
    let terms = wanted("blind", json!({ "models": ["test-blind"] }));
    manage.does(&path, &terms, 201).await;
    // The door lets it pass, and money refuses it: nothing of it is for this model.
    let refused = gateway
        .post("/v1/chat/completions", &owner, &chat("test-model", false))
        .await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert!(
        refused.text.contains("insufficient_quota"),
        "{}",
        refused.text
    );
    let terms = wanted(
        "voucher-like",
        json!({ "models": ["test-model"], "amount": "0.01" }),
    );
    let narrow = manage.does(&path, &terms, 201).await;
    let mut body = chat("test-model", false);
    body["max_tokens"] = json!(50);
    let served = gateway.post("/v1/chat/completions", &owner, &body).await;
    assert_eq!(served.status, 200, "{}", served.text);
    gateway.settled().await;
    let receipt = format!(
        "/v1/generation?id={}",
        served.header("x-request-id").unwrap()
    );
    let receipt = gateway.get(&receipt, &owner).await.json();
    let parts = receipt["data"]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 1, "{receipt}");
    assert_eq!(
        (&parts[0]["grant"], &parts[0]["kind"], &parts[0]["amount"]),
        (
            &narrow["id"],
            &json!("promotional"),
            &receipt["data"]["charge"]
        )
    );
    let left = manage
        .get(&format!("/grants/{}", text(&narrow, "id")))
        .await
        .json();
    assert_ne!(left["remaining"], left["amount"]);
    // What was given counts as credit, and of what DeepSeek's tools read as granted.
    let credits = gateway.get("/v1/credits", &owner).await;
    assert!(
        credits.text.contains(r#""total_credits":5.01"#),
        "{}",
        credits.text
    );
    let balance = gateway.get("/user/balance", &owner).await.json();
    let info = &balance["balance_infos"][0];
    assert_eq!(
        (&info["granted_balance"], &info["topped_up_balance"]),
        (&info["total_balance"], &json!("0.00"))
    );
}

#[tokio::test]
async fn at_its_end_it_is_gone_whether_or_not_it_is_booked() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let owner = gateway.owner("1").await;
    let customer = gateway.account(&owner).await.customer.id;
    let end = Timestamp::from_millis(clock::now().millis() + 1_500);
    let terms = wanted("short", json!({ "expires_at": end.to_string() }));
    let given = manage
        .does(&format!("/customers/{customer}/grants"), &terms, 201)
        .await;
    let credits = async || gateway.get("/v1/credits", &owner).await.text;
    assert!(credits().await.contains(r#""total_credits":6.00"#));
    while clock::now() < end {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let path = format!("/grants/{}", text(&given, "id"));
    let ended = manage.get(&path).await.json();
    assert_eq!(
        (&ended["status"], &ended["remaining"]),
        (&json!("expired"), &json!("0.00"))
    );
    assert!(credits().await.contains(r#""total_credits":1.00"#));
    for (status, count) in [("expired", 1), ("active", 0)] {
        let found = manage.get(&format!("/grants?status={status}")).await.json();
        assert_eq!(found["data"].as_array().unwrap().len(), count, "{status}");
    }
    // Given again under its name, it is answered as it is now.
    let again = manage
        .does(&format!("/customers/{customer}/grants"), &terms, 200)
        .await;
    assert_eq!(again["status"], "expired");
    let refused = manage.tries(&format!("{path}/void"), &json!({})).await;
    assert_eq!((refused.status, &*code(&refused)), (409, "not_applicable"));
}

#[tokio::test]
async fn a_closed_customer_has_no_grant_left() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let customer = manage.customer("Leaves").await;
    manage
        .does(
            &format!("/customers/{customer}/grants"),
            &wanted("left", json!({})),
            201,
        )
        .await;
    let gift = json!({ "amount": "+2.50", "reason": "sorry", "reference": "sorry-1" });
    manage
        .does(&format!("/customers/{customer}/adjust"), &gift, 200)
        .await;
    let paid = json!({ "amount": "+1", "reason": "cash", "reference": "cash-1", "paid": true });
    let posted = manage
        .does(&format!("/customers/{customer}/adjust"), &paid, 200)
        .await;
    assert_eq!(posted["entry"].get("parts"), None);
    let wrong = json!({ "amount": "-1", "reason": "x", "reference": "x-1", "paid": true });
    let refused = manage
        .tries(&format!("/customers/{customer}/adjust"), &wrong)
        .await;
    assert_eq!((refused.status, &*code(&refused)), (400, "invalid_field"));
    let refused = manage
        .tries(&format!("/customers/{customer}/close"), &json!({}))
        .await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let off = json!({ "write_off": "off-1", "reason": "moved away" });
    let closed = manage
        .does(&format!("/customers/{customer}/close"), &off, 200)
        .await;
    assert_eq!(
        (&closed["status"], &closed["balance"]),
        (&json!("closed"), &json!("0.00"))
    );
    let month = manage
        .get(&format!("/customers/{customer}/statement"))
        .await
        .json();
    assert_eq!(
        (&month["voided"], &month["written_off"]),
        (&json!("7.50"), &json!("1.00"))
    );
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

//! What each role may do, and what none may do to customers of another.

use farebox_ledger::TokenRole;
use serde_json::json;

use super::{Program, code, gateway, text};

#[tokio::test]
async fn a_token_does_no_more_than_its_role() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let sell = Program::new(&gateway, TokenRole::Sell).await;
    let read = Program::new(&gateway, TokenRole::Read).await;
    let theirs = manage.customer("theirs").await;
    let own = sell.customer("own").await;
    // Reads.
    for path in ["/customers", "/margin", "/entries", "/payments", "/models"] {
        assert_eq!(read.get(path).await.status, 200, "{path}");
    }
    let refused = read.post("/customers", "k", &json!({ "label": "x" })).await;
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (403, "role_exceeded")
    );
    // Sells: its own customers only.
    assert_eq!(sell.get(&format!("/customers/{own}")).await.status, 200);
    for path in [
        format!("/customers/{theirs}"),
        format!("/customers/{theirs}/entries"),
        format!("/entries?customer={theirs}"),
        "/entries".to_owned(),
    ] {
        let refused = sell.get(&path).await;
        assert_eq!(
            (refused.status, code(&refused).as_str()),
            (403, "not_yours"),
            "{path}"
        );
    }
    let listed = sell.get("/customers").await.json();
    let listed = listed["data"].as_array().unwrap();
    assert_eq!((listed.len(), text(&listed[0], "id")), (1, own.clone()));
    for path in ["/margin", "/payments"] {
        assert_eq!(code(&sell.get(path).await), "role_exceeded", "{path}");
    }
    // It tops up any active customer, without seeing it.
    let paid = json!({ "amount": "5", "reference": "pi_1" });
    let paid = sell
        .does(&format!("/customers/{theirs}/top-ups"), &paid, 201)
        .await;
    assert!(
        paid["customer"].is_null() && paid["payment"]["status"] == "booked",
        "{paid}"
    );
    assert!(paid["entry"]["balance_after"].is_null(), "{paid}");
    // A reference or an external id that is taken leads to no customer of others.
    let named = json!({ "label": "theirs", "external_id": "crm-9" });
    let named = manage.does("/customers", &named, 201).await;
    let named = text(&named, "id");
    let booked = json!({ "amount": "3", "reference": "pi_9" });
    let path = format!("/customers/{named}/top-ups");
    manage.does(&path, &booked, 201).await;
    for (path, body) in [
        (format!("/customers/{own}/top-ups"), booked),
        (
            "/customers".to_owned(),
            json!({ "label": "x", "external_id": "crm-9" }),
        ),
    ] {
        let taken = sell.post(&path, "taken", &body).await;
        assert_eq!(taken.status, 409, "{}", taken.text);
        assert!(!taken.text.contains(&named), "{}", taken.text);
        let told = manage.post(&path, "taken", &body).await;
        assert!(told.text.contains(&named), "{}", told.text);
    }
    // First key of its own, no second one, none of others.
    let first = sell
        .does(
            &format!("/customers/{own}/keys"),
            &json!({ "label": "a" }),
            201,
        )
        .await;
    let second = sell
        .post(
            &format!("/customers/{own}/keys"),
            "2",
            &json!({ "label": "b" }),
        )
        .await;
    assert!(
        second.status == 403 || second.status == 409,
        "{}",
        second.text
    );
    let foreign = sell
        .post(
            &format!("/customers/{theirs}/keys"),
            "3",
            &json!({ "label": "c" }),
        )
        .await;
    assert_eq!(
        (foreign.status, code(&foreign).as_str()),
        (403, "not_allowed"),
        "{}",
        foreign.text
    );
    let key = text(&first, "id");
    for (path, body) in [
        (format!("/keys/{key}/rotate"), json!({})),
        (format!("/keys/{key}/links"), json!({})),
        (format!("/keys/{key}/block"), json!({})),
        (
            format!("/keys/{key}/caps"),
            json!({ "interval": "day", "limit": "1" }),
        ),
        (format!("/customers/{own}/resume"), json!({})),
        (
            format!("/customers/{own}/adjust"),
            json!({ "amount": "1", "reason": "r", "reference": "x" }),
        ),
    ] {
        let refused = sell.post(&path, "4", &body).await;
        assert_eq!(
            (refused.status, code(&refused).as_str()),
            (403, "role_exceeded"),
            "{path}"
        );
    }
    // A payment that another one booked is not taken back by it, nor shown.
    let booked = json!({ "amount": "3", "reference": "pi_2" });
    manage
        .does(&format!("/customers/{own}/top-ups"), &booked, 201)
        .await;
    let back =
        json!({ "payment": "pi_2", "kind": "refund", "cumulative": "3", "reference": "re_2" });
    let refused = sell
        .post(&format!("/customers/{own}/reversals"), "5", &back)
        .await;
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (403, "not_allowed"),
        "{}",
        refused.text
    );
    assert_eq!(code(&sell.get("/payments/pi_2").await), "not_yours");
    let back =
        json!({ "payment": "pi_1", "kind": "refund", "cumulative": "5", "reference": "re_1" });
    let back = sell
        .does(&format!("/customers/{theirs}/reversals"), &back, 200)
        .await;
    assert_eq!(back["entry"]["amount"], "-5.00");
    // The actor is the token's label.
    assert_eq!(
        (&back["entry"]["actor"], &paid["entry"]["actor"]),
        (&"sell".into(), &"sell".into())
    );
}

#[tokio::test]
async fn what_is_beyond_the_daily_bound_is_kept_and_not_booked() {
    let (_upstream, gateway) = gateway().await;
    let sell = Program::new(&gateway, TokenRole::Sell).await;
    let customer = sell.customer("a").await;
    let path = format!("/customers/{customer}/top-ups");
    let paid = |reference: &str, amount: &str| json!({ "amount": amount, "reference": reference });
    sell.does(&path, &paid("pi_1", "60"), 201).await;
    let kept = sell.does(&path, &paid("pi_2", "60"), 202).await;
    assert_eq!(kept["payment"]["status"], "unapplied");
    assert!(kept["entry"].is_null());
    sell.does(&path, &paid("pi_3", "40"), 201).await;
    let shown = sell.get(&format!("/customers/{customer}")).await.json();
    assert_eq!(shown["balance"], "100.00");
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let waiting = manage.get("/payments?status=unapplied").await.json();
    assert_eq!(waiting["data"][0]["reference"], "pi_2");
    let assigned = manage
        .does("/payments/pi_2/assign", &json!({ "to": customer }), 200)
        .await;
    assert_eq!(assigned["customer"]["balance"], "160.00");
}

//! Lots of vouchers by API: made, listed and voided by tokens that manage; codes are shown once, and are the customers'.

use farebox_ledger::{HouseSubject, Lot, Perform as _, TokenRole};
use serde_json::{Value, json};

use super::{Program, code, gateway, text};
use crate::support::Answer;

#[tokio::test]
async fn codes_are_shown_once_and_redeemed_once() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let wanted = json!({ "count": 3, "amount": "5", "expires_at": "2099-01-31" });
    let made = manage.post("/vouchers", "lot-1", &wanted).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let lot = made.json();
    let codes = lot["codes"].as_array().unwrap();
    assert_eq!((codes.len(), &lot["status"]), (3, &json!("good")));
    // The same again: the same lot, and no codes.
    let again = manage.post("/vouchers", "lot-1", &wanted).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let replayed = again.json();
    assert_eq!(
        (again.status, &replayed["id"], replayed.get("codes")),
        (201, &lot["id"], None)
    );
    assert!(!again.text.contains("FB-"), "{}", again.text);
    // A customer redeems one, by the path that the command's codes have, too.
    let key = gateway.key("1").await;
    let redeem = async |code: &Value| {
        let sent = gateway
            .client
            .post(format!("{}/v1/vouchers", gateway.base))
            .bearer_auth(&key.secret)
            .json(&json!({ "code": code }));
        Answer::read(sent.send().await.unwrap()).await
    };
    let redeemed = redeem(&codes[0]).await;
    assert_eq!(redeemed.json()["amount"], "5.00", "{}", redeemed.text);
    let listed = manage.get("/vouchers").await.json();
    assert_eq!(
        (&listed["data"][0]["redeemed"], &listed["has_more"]),
        (&json!(1), &json!(false))
    );
    assert!(!listed.to_string().contains("FB-"), "{listed}");
    // Voided, the others are worth nothing; what was redeemed stays.
    let path = format!("/vouchers/{}/void", text(&lot, "id"));
    let voided = manage.does(&path, &json!({}), 200).await;
    assert_eq!(
        (&voided["status"], &voided["redeemed"]),
        (&json!("void"), &json!(1))
    );
    assert_eq!(redeem(&codes[1]).await.status, 400);
    assert_eq!(redeem(&codes[0]).await.json()["repeated"], true);
    // Who made it and voided it is in the audit, without codes.
    let acts = gateway.ledger.house_acts().await.unwrap();
    let of = HouseSubject::Lot(text(&lot, "id").parse().unwrap());
    let told: Vec<_> = acts.iter().filter(|act| act.of == of).collect();
    let words: Vec<_> = told.iter().map(|act| (&*act.act, &*act.actor)).collect();
    assert_eq!(words, [("create_lot", "manage"), ("void_lot", "manage")]);
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

#[tokio::test]
async fn lots_are_listed_in_pages() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let mut lots = Vec::new();
    for _ in 0..5 {
        let wanted = json!({ "count": 1, "amount": "1" });
        lots.push(text(&manage.does("/vouchers", &wanted, 201).await, "id"));
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = manage
            .get(&format!("/vouchers?limit=2{cursor}"))
            .await
            .json();
        let rows = page["data"].as_array().unwrap();
        seen.extend(rows.iter().map(|row| text(row, "id")));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
        // One that comes meanwhile is seen at the end, and hides and repeats none.
        if seen.len() == 2 {
            let wanted = json!({ "count": 1, "amount": "1" });
            lots.push(text(&manage.does("/vouchers", &wanted, 201).await, "id"));
        }
    }
    seen.sort_unstable();
    lots.sort_unstable();
    assert_eq!(seen, lots);
    let path = format!("/vouchers/{}/void", lots[0]);
    manage.does(&path, &json!({}), 200).await;
    let void = manage.get("/vouchers?status=void").await.json();
    assert_eq!(
        (
            void["data"].as_array().unwrap().len(),
            &void["data"][0]["id"]
        ),
        (1, &json!(lots[0]))
    );
    let good = manage.get("/vouchers?status=good").await.json();
    assert_eq!(good["data"].as_array().unwrap().len(), lots.len() - 1);
}

#[tokio::test]
async fn what_is_no_lot_is_refused_and_other_roles_make_none() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    for (body, wrong) in [
        (json!({ "amount": "1" }), "missing_field"),
        (json!({ "count": 0, "amount": "1" }), "invalid_field"),
        (json!({ "count": 10_001, "amount": "1" }), "invalid_field"),
        (
            json!({ "count": 4_000_000_000_u32, "amount": "1" }),
            "invalid_field",
        ),
        (json!({ "count": 1, "amount": "0" }), "invalid_field"),
        (json!({ "count": 1, "amount": "100001" }), "limit"),
        (
            json!({ "count": 1, "amount": "1", "expires_at": "2020-01-01" }),
            "invalid_field",
        ),
        (
            json!({ "count": 1, "amount": "1", "kind": "free" }),
            "invalid_field",
        ),
    ] {
        let refused = manage.post("/vouchers", "k", &body).await;
        assert_eq!(
            (refused.status, code(&refused).as_str()),
            (400, wrong),
            "{body}: {}",
            refused.text
        );
    }
    for path in ["/vouchers/l_0000000000/void", "/vouchers/nothing/void"] {
        let refused = manage.post(path, "v", &json!({})).await;
        assert_eq!(
            (refused.status, code(&refused).as_str()),
            (404, "lot_not_found"),
            "{path}"
        );
    }
    for role in [TokenRole::Sell, TokenRole::Read] {
        let program = Program::new(&gateway, role).await;
        let wanted = json!({ "count": 1, "amount": "1" });
        for refused in [
            program.post("/vouchers", "k", &wanted).await,
            program
                .post("/vouchers/l_0000000000/void", "k", &json!({}))
                .await,
            program.get("/vouchers").await,
        ] {
            assert_eq!(
                (refused.status, code(&refused).as_str()),
                (403, "role_exceeded"),
                "{role}"
            );
        }
    }
    assert_eq!(gateway.ledger.all::<Lot>().await.unwrap(), []);
}

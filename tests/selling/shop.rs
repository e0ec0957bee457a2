//! What the shop needs of the API: room before the card, sums that differ, the seller, and auto top-ups of owners who agreed.

use farebox::clock;
use farebox_ledger::{Timestamp, TokenRole};
use serde_json::{Value, json};

use super::{Program, code, gateway, text};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, CATALOG, Gateway, routes, talking};

const SHOP: &str = r#"
[shop]
name        = "Key Corner"
contact     = "help@shop.example"
pay_url     = "https://shop.example/?from=page#top"
address     = "1 Key Street, 12345 Town"
tax_id      = "DE123456789"
terms_url   = "https://shop.example/terms"
privacy_url = "https://shop.example/privacy"
"#;

/// A gateway whose seller has a shop.
async fn selling() -> (ScriptedUpstream, Gateway) {
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let catalog = format!("{SHOP}{CATALOG}");
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    (upstream, gateway)
}

fn in_minutes(minutes: i64) -> String {
    Timestamp::from_millis(clock::now().millis() + minutes * 60_000).to_string()
}

fn reservation(credit: &str) -> Value {
    json!({ "credit": credit, "until": in_minutes(20) })
}

async fn delete(program: &Program, path: &str) -> Answer {
    Answer::read(program.request("DELETE", path).send().await.unwrap()).await
}

#[tokio::test]
async fn a_checkout_reserves_its_credit_before_the_card() {
    let (_upstream, gateway) = gateway().await;
    let (sell, manage) = (
        Program::new(&gateway, TokenRole::Sell).await,
        Program::new(&gateway, TokenRole::Manage).await,
    );
    let own = sell.customer("own").await;
    let today = sell.get("/token").await.json();
    assert_eq!(
        (
            &today["daily"],
            &today["most_reservable"],
            &today["reserved"]
        ),
        (&json!("100.00"), &json!("50.00"), &json!("0.00"))
    );
    let body = json!({ "credit": "30", "customer": own, "until": in_minutes(99) });
    let made = sell.does("/reservations", &body, 201).await;
    let id = text(&made, "id");
    assert_eq!(
        (&made["credit"], &made["customer"]),
        (&json!("30.00"), &json!(own))
    );
    assert!(text(&made, "until") < in_minutes(31), "{made}");
    let today = sell.get("/token").await.json();
    assert_eq!(
        (&today["reserved"], &today["reservable"]),
        (&json!("30.00"), &json!("20.00"))
    );
    let refused = sell.tries("/reservations", &reservation("20.01")).await;
    assert_eq!((refused.status, &*code(&refused)), (409, "sold_out"));
    let details = refused.json()["error"]["details"].clone();
    assert_eq!(
        (&details["most"], &details["free_at"]),
        (&json!("20.00"), &made["until"])
    );
    assert!(refused.header("retry-after").is_some());
    let never = sell.tries("/reservations", &reservation("50.01")).await;
    assert_eq!(never.json()["error"]["details"]["free_at"], Value::Null);
    // Of its money at most what others have not reserved; its own payment ends one.
    let path = format!("/customers/{own}/top-ups");
    let paid = json!({ "amount": "71", "reference": "pi_1" });
    let kept = sell.does(&path, &paid, 202).await;
    assert!(
        text(&kept["payment"], "why").contains("30.00 are reserved"),
        "{kept}"
    );
    let paid = json!({ "amount": "30", "reference": "pi_2", "reservation": id });
    sell.does(&path, &paid, 201).await;
    let gone = json!({ "credit": "30", "customer": own, "until": in_minutes(9), "id": id });
    let gone = sell.tries("/reservations", &gone).await;
    assert_eq!((gone.status, &*code(&gone)), (404, "reservation_not_found"));
    // One that was completed unpaid is kept for two weeks, and given up; by nobody else.
    let made = sell.does("/reservations", &reservation("10"), 201).await;
    let id = text(&made, "id");
    let longer = json!({ "credit": "10", "until": in_minutes(60 * 24 * 9), "id": id });
    let kept = sell.does("/reservations", &longer, 201).await;
    assert_eq!(text(&kept, "id"), id);
    assert!(text(&kept, "until") > in_minutes(60 * 24 * 8));
    for (program, left) in [(&manage, "10.00"), (&sell, "0.00"), (&sell, "0.00")] {
        let ended = delete(program, &format!("/reservations/{id}")).await;
        assert_eq!((ended.status, &*ended.text), (204, ""));
        assert_eq!(sell.get("/token").await.json()["reserved"], left);
    }
    // Who cannot be topped up is told before.
    manage
        .does(&format!("/customers/{own}/suspend"), &json!({}), 200)
        .await;
    let of_own = json!({ "credit": "1", "customer": own, "until": in_minutes(9) });
    let stopped = sell.tries("/reservations", &of_own).await;
    assert_eq!(
        (stopped.status, &*code(&stopped)),
        (409, "customer_not_active")
    );
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

#[tokio::test]
async fn another_sum_is_kept_and_what_goes_back_is_a_part() {
    let (_upstream, gateway) = gateway().await;
    let (sell, manage) = (
        Program::new(&gateway, TokenRole::Sell).await,
        Program::new(&gateway, TokenRole::Manage).await,
    );
    let own = sell.customer("own").await;
    let path = format!("/customers/{own}/top-ups");
    let paid = |reference: &str, currency: &str, gross: &str| {
        json!({
            "amount": "10", "reference": reference, "currency": currency, "gross": gross,
            "expected_currency": "EUR", "expected_gross": "11.90",
        })
    };
    for (reference, currency, gross) in [("pi_1", "USD", "11.90"), ("pi_2", "EUR", "6.00")] {
        let kept = sell
            .does(&path, &paid(reference, currency, gross), 202)
            .await;
        let why = format!("{gross} {currency} was paid where 11.90 EUR was asked");
        assert_eq!(kept["payment"]["why"], why);
    }
    sell.does(&path, &paid("pi_3", "EUR", "11.9"), 201).await;
    let half = json!({ "amount": "1", "reference": "x", "expected_currency": "EUR" });
    assert_eq!(code(&sell.tries(&path, &half).await), "missing_field");
    // All of it in yen, then the same again in euros.
    let path = format!("/customers/{own}/reversals");
    for (reference, cumulative, whole, refunded) in [
        ("re_1", "1011", "2022", "5.95"),
        ("re_2", "5.95", "11.90", "5.95"),
        ("re_3", "2022", "2022", "11.90"),
    ] {
        let back = json!({
            "payment": "pi_3", "kind": "refund", "reference": reference, "cumulative": cumulative, "whole": whole,
        });
        let moved = sell.does(&path, &back, 200).await;
        assert_eq!(moved["payment"]["refunded"], refunded, "{moved}");
    }
    let waiting = manage.get("/waiting").await.json();
    let waiting = waiting["data"].as_array().unwrap();
    assert_eq!(waiting.len(), 2);
    for thing in waiting {
        assert_eq!(thing["kind"], "unapplied");
        let assign = format!("unapplied assign {} --to", text(thing, "reference"));
        assert!(text(thing, "next").contains(&assign), "{thing}");
    }
    assert_eq!(code(&sell.get("/waiting").await), "role_exceeded");
}

#[tokio::test]
async fn the_seller_is_told_to_every_program_and_on_paper() {
    let (_upstream, gateway) = selling().await;
    let sell = Program::new(&gateway, TokenRole::Sell).await;
    let shop = sell.get("/shop").await.json();
    for (name, told) in [
        ("name", json!("Key Corner")),
        ("tax_id", json!("DE123456789")),
        ("address", json!("1 Key Street, 12345 Town")),
        ("terms_url", json!("https://shop.example/terms")),
        ("privacy_url", json!("https://shop.example/privacy")),
        ("note", Value::Null),
        ("public_url", json!(gateway.base)),
    ] {
        assert_eq!(shop[name], told, "{name}");
    }
    let own = sell.customer("own").await;
    let paid = json!({ "amount": "5", "reference": "pi_1" });
    sell.does(&format!("/customers/{own}/top-ups"), &paid, 201)
        .await;
    let receipt = sell.get("/payments/pi_1/receipt").await.json();
    let seller = &receipt["seller"];
    assert_eq!(
        (&seller["address"], &seller["tax_id"]),
        (&shop["address"], &shop["tax_id"])
    );
    let page = sell.get("/payments/pi_1/receipt?format=html").await;
    for told in ["1 Key Street, 12345 Town", "DE123456789"] {
        assert!(page.text.contains(told), "{}", page.text);
    }
}

const RULE: &str = r#"{"threshold":"50","amount":"20","per_month":4,"processor_ref":"cus_1"}"#;

/// A customer with an owner key, made by this program, and the key's id.
async fn owner(program: &Program, label: &str) -> (String, String) {
    let body = json!({ "label": label, "key": { "owner": true } });
    let made = program.does("/customers", &body, 201).await;
    (text(&made, "id"), text(&made["key"], "id"))
}

#[tokio::test]
async fn only_an_owner_who_came_lets_a_shop_set_a_rule() {
    let (_upstream, gateway) = selling().await;
    let (sell, manage) = (
        Program::new(&gateway, TokenRole::Sell).await,
        Program::new(&gateway, TokenRole::Manage).await,
    );
    let (theirs, key) = owner(&manage, "theirs").await;
    let rule: Value = serde_json::from_str(RULE).unwrap();
    let path = format!("/customers/{theirs}/auto-top-up");
    let refused = sell.tries(&path, &rule).await;
    assert_eq!((refused.status, &*code(&refused)), (403, "not_allowed"));
    // A way to the dashboard is none to the shop, and the other way round.
    let links = format!("/keys/{key}/links");
    let sign_in = text(&manage.does(&links, &json!({}), 201).await, "link");
    let token = sign_in.rsplit('#').next().unwrap();
    let wrong = sell.tries("/visits", &json!({ "link": token })).await;
    assert_eq!((wrong.status, &*code(&wrong)), (404, "link_not_found"));
    let way = manage.does(&links, &json!({ "kind": "shop" }), 201).await;
    let url = text(&way, "link");
    let (before, rest) = url.split_once("link=").unwrap();
    let (token, after) = rest.split_once('#').unwrap();
    assert_eq!((before, after), ("https://shop.example/?from=page&", "top"));
    let visit = json!({ "link": token });
    let came = sell.post("/visits", "came", &visit).await;
    assert_eq!(came.status, 201, "{}", came.text);
    assert_eq!(
        (&came.json()["customer"], &came.json()["key"]),
        (&json!(theirs), &json!(key))
    );
    // Once, however often it is said.
    assert_eq!(sell.post("/visits", "came", &visit).await.text, came.text);
    assert_eq!(code(&sell.tries("/visits", &visit).await), "link_not_found");
    let set = sell.does(&path, &rule, 200).await;
    assert_eq!(
        set.as_object().unwrap().len(),
        2,
        "it may not read it: {set}"
    );
    assert!(!set.to_string().contains("cus_1"), "{set}");
    // Its own it may replace and remove; that of others it leaves alone.
    sell.does(&path, &rule, 200).await;
    assert_eq!(delete(&sell, &path).await.status, 200);
    manage.does(&path, &rule, 200).await;
    for refused in [sell.tries(&path, &rule).await, delete(&sell, &path).await] {
        assert_eq!((refused.status, &*code(&refused)), (403, "not_allowed"));
    }
    // A member's key leads nowhere.
    let member = json!({ "label": "member" });
    let member = manage
        .does(&format!("/customers/{theirs}/keys"), &member, 201)
        .await;
    let links = format!("/keys/{}/links", text(&member, "id"));
    let way = manage.does(&links, &json!({ "kind": "shop" }), 201).await;
    let token = text(&way, "link");
    let token = token.split_once("link=").unwrap().1;
    let token = token.split('#').next().unwrap();
    let refused = sell.tries("/visits", &json!({ "link": token })).await;
    assert_eq!(code(&refused), "link_not_found");
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

#[tokio::test]
async fn a_shop_hears_of_its_wishes_and_answers_each() {
    let (_upstream, gateway) = selling().await;
    let (sell, manage) = (
        Program::new(&gateway, TokenRole::Sell).await,
        Program::new(&gateway, TokenRole::Manage).await,
    );
    let ((own, _), (theirs, _)) = (owner(&sell, "own").await, owner(&manage, "theirs").await);
    let rule: Value = serde_json::from_str(RULE).unwrap();
    for (program, customer) in [(&sell, &own), (&manage, &theirs)] {
        program
            .does(&format!("/customers/{customer}/auto-top-up"), &rule, 200)
            .await;
    }
    let feed = |after: &str| format!("/events?type=top_up.wanted&limit=1{after}");
    let page = sell.get(&feed("")).await.json();
    let told = page["data"].as_array().unwrap().clone();
    assert_eq!(
        (told.len(), &told[0]["customer"]),
        (1, &json!(own)),
        "{page}"
    );
    let wish = text(&told[0]["data"], "reference");
    // From there on nothing is lost and nothing comes twice.
    let next = format!("&after={}", text(&page, "next_cursor"));
    let page = sell.get(&feed(&next)).await.json();
    assert_eq!(
        (&page["data"], &page["has_more"]),
        (&json!([]), &json!(false))
    );
    let all = sell.get("/events").await.json();
    for event in all["data"].as_array().unwrap() {
        assert_eq!(event["customer"], json!(own), "{event}");
    }
    assert_eq!(
        manage.get("/events").await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    assert_eq!(code(&sell.get("/events?type=x").await), "invalid_field");
    // It looks before it charges.
    let path = format!("/top-ups/{wish}");
    let seen = sell.get(&path).await.json();
    assert_eq!(
        (&seen["status"], &seen["amount"], &seen["processor_ref"]),
        (&json!("wanted"), &json!("20.00"), &json!("cus_1"))
    );
    let foreign = manage.get("/events?type=top_up.wanted").await.json();
    let foreign = foreign["data"].as_array().unwrap().iter();
    let mut foreign = foreign.map(|event| text(&event["data"], "reference"));
    let foreign = foreign.next_back().unwrap();
    let unseen = sell.get(&format!("/top-ups/{foreign}")).await;
    assert_eq!((unseen.status, &*code(&unseen)), (404, "top_up_not_found"));
    // The card asks for its owner: said twice, it failed once, and waits for a person.
    let failed = json!({ "reason": "authentication_required" });
    for _ in 0..2 {
        sell.does(&format!("{path}/failed"), &failed, 200).await;
    }
    assert_eq!(sell.get(&path).await.json()["status"], "failed");
    let waiting = manage.get("/waiting").await.json();
    let thing = waiting["data"][0].clone();
    assert_eq!(
        (&thing["kind"], &thing["customer"]),
        (&json!("top_up_failed"), &json!(own))
    );
    assert!(
        text(&thing, "why").starts_with("authentication_required"),
        "{thing}"
    );
    // The money came all the same, twice told: it is booked once.
    let paid = json!({ "amount": "20", "reference": wish });
    for status in [201, 200] {
        sell.does(&format!("/customers/{own}/top-ups"), &paid, status)
            .await;
    }
    // What is known of the buyer goes with the rest of the person, and with the rule.
    manage
        .does(&format!("/customers/{own}/erase"), &json!({}), 200)
        .await;
    assert_eq!(sell.get(&path).await.json()["processor_ref"], Value::Null);
    assert_eq!(
        delete(&sell, &format!("/customers/{own}/auto-top-up"))
            .await
            .status,
        200
    );
    assert_eq!(sell.get(&path).await.status, 404);
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

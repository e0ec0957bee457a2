//! Plans by API: sold, given, renewed, changed, paused, ended and paid back, each once, and refused where they cannot be.

use farebox_ledger::{Perform, PlanAct, PlanChange, PlanPurchase, TokenRole};
use serde_json::{Value, json};

use super::{Program, code, gateway, text};
use crate::support::act;

/// A customer with a subscription to `coder` that it paid: both ids.
async fn coder(manage: &Program, label: &str) -> (String, String) {
    let customer = manage.customer(label).await;
    let sale = json!({ "plan": "coder", "reference": format!("first of {label}") });
    let sold = manage
        .does(&format!("/customers/{customer}/plans"), &sale, 201)
        .await;
    (customer, text(&sold["subscription"], "id"))
}

async fn reverse(manage: &Program, customer: &str, payment: &str, cumulative: &str) {
    let back = json!({ "payment": payment, "kind": "refund", "cumulative": cumulative, "reference": format!("re of {payment}") });
    let path = format!("/customers/{customer}/reversals");
    manage.does(&path, &back, 200).await;
}

#[tokio::test]
async fn a_plan_is_sold_once_and_renewed_ahead() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let customer = manage.customer("Ada").await;
    let path = format!("/customers/{customer}/plans");
    let sale = json!({ "plan": "coder", "reference": "pi_1", "currency": "EUR", "gross": "23.80", "tax": "3.80" });
    let sold = manage.does(&path, &sale, 201).await;
    let of = &sold["subscription"];
    for (name, value) in [
        ("customer", json!(customer)),
        ("plan", json!("coder")),
        ("title", json!("Coder, monthly")),
        ("status", json!("active")),
        ("paid_ahead", json!(0)),
        ("end_wanted", json!(false)),
        ("processor", json!(null)),
        ("created_by", json!("manage")),
    ] {
        assert_eq!(of[name], value, "{name}: {of}");
    }
    for (name, value) in [
        ("number", json!(1)),
        ("plan", json!("coder")),
        ("allowance", json!("25.00")),
        ("remaining", json!("25.00")),
        ("held", json!("0.00")),
        ("available", json!("4.00")),
        ("payment", json!("pi_1")),
    ] {
        assert_eq!(of["period"][name], value, "{name}: {of}");
    }
    assert_eq!(
        of["terms"]["windows"][0],
        json!({ "per": "5h", "usd": "4.00" })
    );
    assert_eq!(of["windows"][1]["bound"], "8.00");
    let payment = &sold["payment"];
    assert_eq!(
        (&payment["amount"], &payment["plan"]),
        (
            &json!("25.00"),
            &json!({ "subscription": of["id"], "name": "coder", "periods": 1 })
        )
    );
    assert_eq!(
        (&sold["entry"]["amount"], &sold["entry"]["reference"]),
        (&json!("0.00"), &json!("pi_1"))
    );
    // Told again it is the same; under its name nothing else is sold.
    let again = manage.does(&path, &sale, 200).await;
    assert_eq!(again["payment"], sold["payment"]);
    let other = json!({ "plan": "team", "reference": "pi_1" });
    let other = manage.tries(&path, &other).await;
    assert_eq!((other.status, &*code(&other)), (409, "reference_used"));
    // The next periods are of the same subscription.
    let next = json!({ "plan": "coder", "reference": "pi_2", "periods": 2 });
    let next = manage.does(&path, &next, 201).await;
    assert_eq!(
        (
            &next["subscription"]["id"],
            &next["subscription"]["paid_ahead"]
        ),
        (&of["id"], &json!(2))
    );
    let given = json!({ "plan": "coder", "given": true });
    let given = manage.does(&path, &given, 201).await;
    assert_eq!(
        (&given["payment"], &given["subscription"]["paid_ahead"]),
        (&json!(null), &json!(3))
    );
    let shown = manage.get(&format!("/customers/{customer}")).await.json();
    assert_eq!(
        (&shown["plans"][0]["id"], &shown["plans"][0]["plan"]),
        (&of["id"], &json!("coder"))
    );
    let one = manage
        .get(&format!("/subscriptions/{}", text(of, "id")))
        .await
        .json();
    assert_eq!(one["paid_until"], given["subscription"]["paid_until"]);
    for (query, count) in [
        (String::new(), 1),
        (format!("?customer={customer}"), 1),
        ("?plan=team".to_owned(), 0),
        ("?status=active".to_owned(), 1),
        ("?status=paused".to_owned(), 0),
    ] {
        let found = manage.get(&format!("/subscriptions{query}")).await.json();
        assert_eq!(found["data"].as_array().unwrap().len(), count, "{query}");
    }
    assert_eq!(manage.get(&path).await.json()["data"][0], one);
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

#[tokio::test]
async fn a_subscription_is_changed_paused_and_ended() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let (customer, id) = coder(&manage, "Ada").await;
    let (plans, of) = (
        format!("/customers/{customer}/plans"),
        format!("/subscriptions/{id}"),
    );
    let does =
        async |what: &str, body: Value| manage.does(&format!("{of}/{what}"), &body, 200).await;
    let paused = does("pause", json!({})).await;
    assert_eq!(
        (&paused["status"], &paused["period"]["available"]),
        (&json!("paused"), &json!("0.00"))
    );
    assert_eq!(paused["period"]["usable_until"], json!(null));
    let twice = manage.tries(&format!("{of}/pause"), &json!({})).await;
    assert_eq!((twice.status, &*code(&twice)), (409, "not_applicable"));
    assert_eq!(does("resume", json!({})).await["status"], "active");
    // The next period is of another plan; the running one stays.
    let changed = does("change", json!({ "plan": "team" })).await;
    assert_eq!(
        (&changed["plan"], &changed["period"]["plan"]),
        (&json!("team"), &json!("coder"))
    );
    // Paid ahead, it is not changed at once.
    let ahead = json!({ "plan": "team", "reference": "ahead" });
    manage.does(&plans, &ahead, 201).await;
    let at_once = json!({ "plan": "team", "at_once": true });
    let refused = manage.tries(&format!("{of}/change"), &at_once).await;
    assert_eq!((refused.status, &*code(&refused)), (409, "not_applicable"));
    assert!(refused.text.contains("paid ahead"), "{}", refused.text);
    // What was paid ahead goes back whole; then what is unused becomes credit at its price.
    reverse(&manage, &customer, "ahead", "40.00").await;
    let changed = does("change", at_once).await;
    assert_eq!(
        (&changed["status"], &changed["period"]),
        (&json!("lapsed"), &json!(null))
    );
    let shown = manage.get(&format!("/customers/{customer}")).await.json();
    assert_eq!(shown["balance"], "20.00");
    let team = json!({ "plan": "team", "reference": "team-1" });
    let team = manage.does(&plans, &team, 201).await;
    assert_eq!(
        (&team["subscription"]["id"], &team["subscription"]["status"]),
        (&json!(id), &json!("active"))
    );
    let ended = does("end", json!({})).await;
    assert_eq!(
        (&ended["status"], &ended["period"]["remaining"]),
        (&json!("ended"), &json!("50.00"))
    );
    // Paid back whole, nothing is left of it, and it is no more in lists.
    reverse(&manage, &customer, "team-1", "40.00").await;
    let gone = manage.get(&of).await.json();
    assert_eq!(
        (&gone["status"], &gone["period"]),
        (&json!("ended"), &json!(null))
    );
    assert_eq!(manage.get(&plans).await.json()["data"], json!([]));
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

#[tokio::test]
async fn what_the_catalog_does_not_sell_is_kept_as_unapplied() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let (customer, _) = coder(&manage, "Ada").await;
    let path = format!("/customers/{customer}/plans");
    for (reference, plan, allowance) in [("dear", "coder", "30"), ("gone", "gone", "10")] {
        let sale = json!({
            "plan": plan, "reference": reference, "allowance": allowance,
            "currency": "EUR", "gross": "23.80", "processor": "sub_1",
        });
        let kept = manage.does(&path, &sale, 202).await;
        assert_eq!(kept["payment"]["status"], "unapplied", "{kept}");
        let why = text(&kept["payment"], "why");
        assert!(
            why.contains("gives 25.00 by now") || why.contains("has no plan `gone`"),
            "{why}"
        );
        let again = manage.tries(&path, &sale).await;
        assert_eq!(again.json()["payment"], kept["payment"]);
    }
    // As it is sold, what a processor renews is of the subscription that is there.
    let sale =
        json!({ "plan": "coder", "reference": "in_1", "allowance": "25", "processor": "sub_1" });
    let sold = manage.does(&path, &sale, 201).await;
    assert_eq!(
        (
            &sold["subscription"]["processor"],
            &sold["subscription"]["paid_ahead"]
        ),
        (&json!("sub_1"), &json!(1))
    );
}

#[tokio::test]
async fn what_is_no_sale_of_a_plan_is_refused() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let customer = manage.customer("Ada").await;
    let path = format!("/customers/{customer}/plans");
    for (body, status, wrong, says) in [
        (
            json!({ "plan": "coder", "reference": "x", "periods": 25 }),
            400,
            "limit",
            "between 1 and 24",
        ),
        (
            json!({ "plan": "coder", "reference": "x", "periods": 0 }),
            400,
            "invalid_field",
            "above 0",
        ),
        (
            json!({ "plan": "codr", "reference": "x" }),
            400,
            "invalid_field",
            "did you mean `coder`?",
        ),
        (
            json!({ "plan": "coder" }),
            400,
            "missing_field",
            "`reference`",
        ),
        (
            json!({ "plan": "coder", "reference": "x", "given": true }),
            400,
            "invalid_field",
            "leave out the reference",
        ),
        (
            json!({ "plan": "free", "reference": "x" }),
            400,
            "missing_field",
            "no price to go by",
        ),
    ] {
        let refused = manage.tries(&path, &body).await;
        assert_eq!(
            (refused.status, &*code(&refused)),
            (status, wrong),
            "{body}: {}",
            refused.text
        );
        assert!(refused.text.contains(says), "{body}: {}", refused.text);
    }
    for plan in ["coder", "team", "free", "daily"] {
        let given = json!({ "plan": plan, "given": true });
        manage.does(&path, &given, 201).await;
    }
    let fifth = json!({ "plan": "fifth", "given": true });
    let refused = manage.tries(&path, &fifth).await;
    assert!(
        refused.status == 409 && refused.text.contains("at most 4"),
        "{}",
        refused.text
    );
    for path in ["/subscriptions/s_0000000000/end", "/subscriptions/x/pause"] {
        let refused = manage.tries(path, &json!({})).await;
        assert_eq!(
            (refused.status, &*code(&refused)),
            (404, "subscription_not_found")
        );
    }
}

#[tokio::test]
async fn a_token_that_sells_sells_changes_and_ends_plans() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let sell = Program::new(&gateway, TokenRole::Sell).await;
    let (customer, id) = coder(&manage, "Ada").await;
    let path = format!("/customers/{customer}/plans");
    let sold = json!({ "plan": "coder", "reference": "in_1" });
    let sold = sell.does(&path, &sold, 201).await;
    assert_eq!(
        (&sold["subscription"], &sold["customer"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(sold["payment"]["plan"]["subscription"], json!(id));
    let given = json!({ "plan": "coder", "given": true });
    assert_eq!(sell.tries(&path, &given).await.status, 403);
    let of = format!("/subscriptions/{id}");
    for read in [&path, &of, "/subscriptions"] {
        assert_eq!(code(&sell.get(read).await), "not_yours", "{read}");
    }
    let team = json!({ "plan": "team" });
    let changed = sell.does(&format!("{of}/change"), &team, 200).await;
    assert_eq!(
        (&changed["plan"], &changed["period"]),
        (&json!("team"), &json!(null))
    );
    let at_once = json!({ "plan": "team", "at_once": true });
    for (what, body) in [
        ("change", at_once),
        ("pause", json!({})),
        ("resume", json!({})),
    ] {
        let refused = sell.tries(&format!("{of}/{what}"), &body).await;
        assert_eq!(refused.status, 403, "{what}: {}", refused.text);
    }
    let ended = sell.does(&format!("{of}/end"), &json!({}), 200).await;
    assert_eq!(ended["status"], "ended");
}

#[tokio::test]
async fn a_token_hears_who_wants_the_end_of_what_it_began_and_of_nothing_else() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let sell = Program::new(&gateway, TokenRole::Sell).await;
    let (customer, given) = coder(&manage, "Ada").await;
    let kept = json!({ "credit": "50", "until": "2099-01-31T12:00:00Z" });
    let kept = sell.does("/reservations", &kept, 201).await;
    let sold = json!({ "plan": "team", "reference": "in_1", "processor": "sub_1", "reservation": kept["id"] });
    sell.does(&format!("/customers/{customer}/plans"), &sold, 201)
        .await;
    let left = sell.get("/token").await.json();
    assert_eq!(left["reserved"], "0.00", "its sale ends it: {left}");
    let again = json!({ "credit": "50", "until": "2099-01-31T12:00:00Z", "customer": customer, "plan": "team" });
    let refused = sell.tries("/reservations", &again).await;
    assert_eq!((refused.status, &*code(&refused)), (409, "has_plan"));
    let other = json!({ "credit": "1", "until": "2099-01-31T12:00:00Z", "customer": customer, "plan": "coder" });
    sell.does("/reservations", &other, 201).await;
    let began = PlanPurchase::of_processor("sub_1");
    for subscription in [began, given.parse().unwrap()] {
        let wants = PlanChange {
            customer: customer.parse().unwrap(),
            subscription,
            change: PlanAct::WantEnd,
            act: act(),
        };
        gateway.ledger.perform(wants).await.unwrap();
    }
    let told = sell.get("/events").await.json();
    let told = told["data"].as_array().unwrap();
    let [told] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(
        (&told["type"], &told["data"]["processor"]),
        (&json!("plan.end_wanted"), &json!("sub_1"))
    );
}

#[tokio::test]
async fn a_voucher_gives_a_period() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let owner = gateway.owner("1").await;
    let customer = gateway.account(&owner).await.customer.id;
    let lot = json!({ "count": 1, "plan": "coder" });
    let lot = manage.does("/vouchers", &lot, 201).await;
    assert_eq!(
        (&lot["amount"], &lot["kind"], &lot["plan"]),
        (&json!("25.00"), &json!("plan"), &json!("coder"))
    );
    let code = json!({ "code": lot["codes"][0] });
    let redeemed = gateway.post("/v1/vouchers", &owner, &code).await;
    assert_eq!(redeemed.status, 200, "{}", redeemed.text);
    let found = manage
        .get(&format!("/customers/{customer}/plans"))
        .await
        .json();
    let period = &found["data"][0]["period"];
    assert_eq!(
        (&period["number"], &period["payment"]),
        (&json!(1), &json!(null))
    );
    for wrong in [
        json!({ "count": 1 }),
        json!({ "count": 1, "amount": "5", "plan": "coder" }),
    ] {
        let refused = manage.tries("/vouchers", &wrong).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
    }
}

//! The published Python library is the judge: what it sends and signs is in `fixtures/stripe.json`, written by
//! `fixtures/stripe_reference.py`, and is compared with what the shop sends and takes. Its types are generated from Stripe's OpenAPI
//! document, which is in no package registry; so they stand for it here.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Street, Visitor, WEBHOOK_SECRET};

fn reference() -> Value {
    serde_json::from_str(include_str!("fixtures/stripe.json")).unwrap()
}

#[tokio::test]
async fn a_session_is_asked_for_as_the_library_does() {
    let street = Street::open().await;
    Visitor::new(&street)
        .buy(&[("name", "Zoë & Söhne"), ("address", "1 Street\u{2014}2")])
        .await;
    let seen = street.stripe.begun().remove(0);
    let reference = reference();
    // The ids of this checkout are its own.
    let own = |name: &str| {
        let ours = [
            "farebox_buyer",
            "farebox_once",
            "farebox_reservation",
            "expires_at",
        ];
        ours.iter().any(|part| name.contains(part))
    };
    let plain = |form: BTreeMap<String, String>| -> BTreeMap<String, String> {
        let ours = form.into_iter().filter(|(name, _)| !own(name));
        // So is what the way back shows of its browser.
        ours.map(|(name, value)| match value.split_once("?paid=") {
            Some((page, rest)) => (
                name,
                format!("{page}?{}", rest.get(65..).unwrap_or_default()),
            ),
            None => (name, value),
        })
        .collect()
    };
    let wanted: BTreeMap<String, String> =
        serde_json::from_value(reference["request"]["form"].clone()).unwrap();
    assert_eq!(plain(seen.form), plain(wanted));
    for name in ["content-type", "authorization"] {
        let wanted = reference["request"]["headers"][name].as_str().unwrap();
        assert_eq!(seen.headers[name], wanted, "{name}");
    }
    assert!(seen.headers["idempotency-key"].len() <= 255);
}

/// The place of a field in the library's types, which have one name for all members of `metadata`.
fn place(field: &str) -> String {
    match field.split_once("[farebox_") {
        Some((before, _)) => format!("{before}[*]"),
        None => field.to_owned(),
    }
}

#[tokio::test]
async fn every_field_is_one_of_the_processors_own_and_none_is_missing() {
    let street = Street::open().await;
    let all = [
        ("name", "Ada"),
        ("address", "1 Street"),
        ("again", "on"),
        ("per_month", "2"),
    ];
    Visitor::new(&street).buy(&all).await;
    let sent = street.stripe.begun().remove(0).form;
    fits(&sent, &reference()["parameters"]);
}

#[tokio::test]
async fn a_subscription_is_asked_for_and_read_in_the_librarys_words() {
    let street = crate::plans::open().await;
    let onward = crate::plans::choose(&mut Visitor::new(&street), "/", &[]).await;
    let sent = street.stripe.begun().remove(0).form;
    let reference = reference();
    fits(&sent, &reference["parameters"]);
    let page = crate::support::pay_page(&onward);
    let (_, sub, [_, paid]) = street.stripe.subscribe(&page);
    let changed = street.stripe.change(&sub, "evt_1", |_| ());
    for event in [paid, changed] {
        let kind = event["type"].as_str().unwrap();
        let fields = reference["fields"][kind].as_array().unwrap();
        for name in event["data"]["object"].as_object().unwrap().keys() {
            assert!(
                fields.contains(&name.as_str().into()),
                "{kind} has no {name}"
            );
        }
    }
    let has = |of: &str, word: &str| {
        let words = reference["words"][of].as_array().unwrap();
        words.contains(&word.into())
    };
    assert!(has("subscription", "canceled"));
    assert!(has("billing_reason", "subscription_create"));
    assert!(has("billing_reason", "subscription_cycle"));
}

/// Whether a form has fields of the library's types alone, and all that must stand there.
fn fits(sent: &BTreeMap<String, String>, parameters: &Value) {
    let parameters = parameters.as_object().unwrap();
    for (field, value) in sent {
        let rule = &parameters
            .get(&place(field))
            .unwrap_or_else(|| panic!("{field} is no field"));
        let kinds = rule["kinds"].as_array().unwrap();
        let fits = kinds.contains(&"str".into())
            || kinds.contains(&"bool".into()) && value.parse::<bool>().is_ok()
            || kinds.contains(&"int".into()) && value.parse::<i64>().is_ok();
        assert!(fits, "{field}={value}: {rule}");
        let words = rule["words"].as_array().unwrap();
        let is_switch = kinds.contains(&"bool".into()) && value.parse::<bool>().is_ok();
        assert!(
            is_switch || words.is_empty() || words.contains(&value.as_str().into()),
            "{field}={value}: {rule}"
        );
    }
    // What must stand beside something that is sent, is sent.
    for (field, rule) in parameters {
        let (within, _) = field.rsplit_once('[').unwrap_or_default();
        let asked = sent
            .keys()
            .any(|sent| sent.starts_with(&format!("{within}[")));
        if rule["required"] == true && asked && !within.is_empty() {
            let is_sent = sent.keys().any(|sent| sent.starts_with(field.as_str()));
            assert!(is_sent, "{field} is missing");
        }
    }
}

#[tokio::test]
async fn a_stored_card_is_charged_as_the_library_does() {
    let street = Street::open().await;
    let again = [("again", "on"), ("per_month", "2")];
    let (_, paid) = street.stripe.pay(&Visitor::new(&street).buy(&again).await);
    assert_eq!(street.deliver(&paid).await.status, 200);
    let customer = street.books.customers()[0]["id"].clone();
    let wish = street.books.wish(customer.as_str().unwrap());
    street.books.after(&wish, "wanted").await;
    let sent = street.stripe.asked(&wish);
    let reference = reference();
    fits(&sent, &reference["charged"]);
    let plain = |form: BTreeMap<String, String>| -> BTreeMap<String, String> {
        let form = form.into_iter();
        form.filter(|(name, _)| !name.starts_with("metadata["))
            .collect()
    };
    let wanted = serde_json::from_value(reference["charge"]["form"].clone()).unwrap();
    assert_eq!(plain(sent), plain(wanted));
}

#[tokio::test]
async fn the_events_and_states_that_the_shop_knows_are_the_processors() {
    let source = include_str!("../src/stripe.rs");
    let reference = reference();
    let words = |of: &str| {
        let words = reference["words"][of].as_array().unwrap();
        (words.iter())
            .map(|word| word.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let events = words("event");
    let known: Vec<&str> = source
        .split('"')
        .filter(|text| {
            [
                "checkout.session.",
                "charge.",
                "payment_intent.",
                "invoice.",
                "customer.sub",
            ]
            .iter()
            .any(|begin| text.starts_with(begin))
        })
        .collect();
    assert!(known.len() >= 8, "{known:?}");
    let version = format!("const VERSION: &str = {};", reference["version"]);
    assert!(source.contains(&version), "{version} is the newest");
    for event in known {
        assert!(events.contains(&event.to_owned()), "{event}");
    }
    assert_eq!(
        words("payment_status"),
        ["no_payment_required", "paid", "unpaid"]
    );
    assert!(words("dispute").contains(&"won".to_owned()));
}

#[tokio::test]
async fn what_the_library_signs_is_believed_and_what_we_sign_it_believes() {
    let street = Street::open().await;
    for signed in reference()["signatures"].as_array().unwrap() {
        let (body, at) = (
            signed["body"].as_str().unwrap(),
            signed["at"].as_i64().unwrap(),
        );
        let ours = crate::support::stripe::signed(WEBHOOK_SECRET, at, body);
        assert_eq!(ours, signed["header"].as_str().unwrap());
        // Too old by now, and nothing else is wrong with it.
        let answer = street
            .post_callback(body, signed["header"].as_str().unwrap())
            .await;
        assert_eq!(answer.text, "the signature is too old\n");
    }
}

/// The library reads the events that the tests send as the kinds of objects that they stand for.
#[tokio::test]
async fn the_tests_events_are_what_the_library_reads() {
    let street = Street::open().await;
    let page = Visitor::new(&street).buy(&[]).await;
    let (id, paid) = street.stripe.pay(&page);
    let told = [
        paid,
        crate::support::stripe::event("evt_1", "charge.refunded", &street.stripe.charge(&id, 1)),
        crate::support::stripe::event(
            "evt_2",
            "charge.dispute.funds_withdrawn",
            &street.stripe.dispute(&id, "dp_1", 1, "needs_response"),
        ),
    ];
    let again = [("again", "on"), ("per_month", "2")];
    let (_, agreed) = street.stripe.pay(&Visitor::new(&street).buy(&again).await);
    assert_eq!(street.deliver(&agreed).await.status, 200);
    let customer = street.books.customers()[0]["id"].clone();
    let wish = street.books.wish(customer.as_str().unwrap());
    street.books.after(&wish, "wanted").await;
    let intent = street.stripe.charged().remove(0).1;
    let intent = crate::support::stripe::event("evt_3", "payment_intent.succeeded", &intent);
    let endpoint = crate::support::stripe::endpoint("https://shop.example/webhook", &[]);
    let endpoint = crate::support::stripe::event("", "webhook_endpoint", &endpoint);
    let reference = reference();
    for event in told.into_iter().chain([intent, endpoint]) {
        let kind = event["type"].as_str().unwrap();
        let fields = reference["fields"][kind].as_array().unwrap();
        let object = event["data"]["object"].as_object().unwrap();
        for name in object.keys() {
            assert!(
                fields.contains(&Value::from(name.as_str())),
                "{kind} has no {name}"
            );
        }
    }
}

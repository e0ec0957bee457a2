//! The published Python library is the judge: what it sends and signs is in `fixtures/stripe.json`, written by
//! `fixtures/stripe_reference.py`, and is compared with what the shop sends and takes.

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
    let own = |name: &str| name.contains("farebox_buyer") || name.contains("farebox_once");
    let plain = |form: BTreeMap<String, String>| -> BTreeMap<String, String> {
        form.into_iter().filter(|(name, _)| !own(name)).collect()
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
    let reference = reference();
    for event in told {
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

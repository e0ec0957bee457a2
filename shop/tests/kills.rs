//! `kill -9` at each step: what was paid stands in the books once, whenever it is told again.

use std::time::Duration;

use crate::support::books::Weather;
use crate::support::{Street, Visitor, hidden};

#[tokio::test]
async fn a_shop_that_is_killed_at_any_step_books_each_payment_once() {
    let mut street = Street::open().await;
    let (_, event) = {
        let page = Visitor::new(&street).buy(&[("name", "Ada")]).await;
        street.stripe.pay(&page)
    };
    // Two changes are made for a first purchase: the customer, and its money.
    for step in 0..2 {
        for weather in [Weather::StandsBefore(step), Weather::StandsAfter(step)] {
            street.books.weather(weather);
            let delivery = tokio::time::timeout(Duration::from_millis(400), street.deliver(&event));
            assert!(delivery.await.is_err() || step > 0, "{weather:?}");
            street.books.weather(Weather::Fine);
            street.kill_and_restart().await;
        }
    }
    for _ in 0..2 {
        assert_eq!(street.deliver(&event).await.status, 200);
    }
    assert_eq!(street.books.payments().len(), 1);
    assert_eq!(street.books.customers().len(), 1);
}

#[tokio::test]
async fn a_key_whose_answer_was_lost_is_shown_by_the_next_shop() {
    let mut street = Street::open().await;
    let cookie;
    let (id, proof) = {
        let mut visitor = Visitor::new(&street);
        let page = visitor.buy(&[]).await;
        let (id, event) = street.stripe.pay(&page);
        assert_eq!(street.deliver(&event).await.status, 200);
        let thanks = visitor.get(&format!("/bought?checkout={id}")).await;
        let proof = hidden(&thanks.text, "proof");
        street.books.weather(Weather::StandsAfter(0));
        let fields = [("proof", proof.as_str()), ("checkout", &id)];
        let asked = tokio::time::timeout(Duration::from_millis(400), visitor.post("/key", &fields));
        assert!(asked.await.is_err());
        street.books.weather(Weather::Fine);
        cookie = visitor.cookie.clone();
        (id, proof)
    };
    street.kill_and_restart().await;
    let mut visitor = Visitor {
        street: &street,
        cookie,
    };
    let fields = [("proof", proof.as_str()), ("checkout", &id)];
    let shown = visitor.post("/key", &fields).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    let last = street
        .books
        .state
        .lock()
        .unwrap()
        .secrets
        .last()
        .cloned()
        .unwrap();
    assert!(shown.text.contains(&last));
    let customers = street.books.customers();
    assert_eq!(customers[0]["keys"].as_array().unwrap().len(), 1);
}

//! Credit is kept before the card is charged: nobody pays for what cannot be booked, and nobody closes the shop without paying.

use farebox_ledger::clock;
use serde_json::json;

use crate::support::books::Weather;
use crate::support::stripe::event;
use crate::support::{Answer, Street, Visitor, pay_page, read};

async fn asks(visitor: &mut Visitor<'_>, more: &[(&str, &str)]) -> Answer {
    let page = visitor.get("/").await;
    visitor.send_form(&page, more).await
}

#[tokio::test]
async fn past_the_bound_at_a_dead_gateway_and_for_a_suspended_customer_no_card_is_asked_for() {
    let street = Street::open().await;
    let mut visitor = Visitor::new(&street);
    let known = street.books.customer();
    street.books.state.lock().unwrap().most = 5;
    let sold_out = asks(&mut visitor, &[]).await;
    assert_eq!(sold_out.status, 409);
    assert!(sold_out.text.contains("Sold out"), "{}", sold_out.text);
    street.books.state.lock().unwrap().most = 50;
    street.books.weather(Weather::Away);
    let dead = asks(&mut visitor, &[]).await;
    assert!(
        dead.status == 503 && dead.text.contains("Nothing was charged"),
        "{}",
        dead.text
    );
    street.books.weather(Weather::Fine);
    // Whether somebody is suspended or is nobody is not told apart.
    street
        .books
        .state
        .lock()
        .unwrap()
        .closed
        .push(known.clone());
    let of = async |visitor: &mut Visitor<'_>, id: &str| {
        let page = asks(visitor, &[("customer", id)]).await;
        (page.status, page.text)
    };
    let suspended = of(&mut visitor, &known).await;
    assert_eq!(suspended.0, 409);
    assert!(
        suspended.1.contains("cannot be topped up"),
        "{}",
        suspended.1
    );
    assert_eq!(of(&mut visitor, "c_0000000000").await, suspended);
    assert!(street.stripe.begun().is_empty());
    assert_eq!(street.books.reserved(), 0);
    assert_eq!(asks(&mut visitor, &[]).await.status, 200);
}

#[tokio::test]
async fn a_processor_that_is_away_keeps_one_reservation_and_the_next_try_uses_it() {
    let street = Street::open().await;
    let mut visitor = Visitor::new(&street);
    let page = visitor.get("/").await;
    street.stripe.down(true);
    for _ in 0..3 {
        assert_eq!(visitor.send_form(&page, &[]).await.status, 503);
    }
    assert_eq!(street.books.reserved(), 1);
    street.stripe.down(false);
    let onward = visitor.send_form(&page, &[]).await;
    assert_eq!(onward.status, 200, "{}", onward.text);
    assert_eq!(street.books.reserved(), 1);
}

/// The call ends by time; the page says so, nothing is booked, and the credit is kept for the next try, at most as long as a checkout.
#[tokio::test]
async fn a_processor_that_never_answers_charges_and_books_nothing() {
    let street = Street::open().await;
    let mut visitor = Visitor::new(&street);
    let page = visitor.get("/").await;
    street.stripe.silent(true);
    let told = visitor.send_form(&page, &[]).await;
    assert_eq!(told.status, 503);
    assert!(
        told.text.contains("does not answer") && told.text.contains("Nothing was charged"),
        "{}",
        told.text
    );
    assert_eq!(street.stripe.unanswered(), 1, "it is asked once");
    assert!(street.books.payments().is_empty() && street.stripe.begun().is_empty());
    let kept = {
        let state = street.books.state.lock().unwrap();
        let kept = state.reserved.iter().next().unwrap();
        let (name, (_, _, until)) = kept;
        assert!(until.millis() - clock::now().millis() <= 30 * 60_000);
        name.clone()
    };
    assert_eq!(street.books.reserved(), 1);
    // The next try uses what is kept, and pays.
    street.stripe.silent(false);
    let onward = visitor.send_form(&page, &[]).await;
    assert_eq!(onward.status, 200, "{}", onward.text);
    let reserved: Vec<String> = {
        let state = street.books.state.lock().unwrap();
        state.reserved.keys().cloned().collect()
    };
    assert_eq!(reserved, [kept]);
    let (_, paid) = street.stripe.pay(&pay_page(&onward));
    assert_eq!(street.deliver(&paid).await.status, 200);
    assert_eq!(street.books.payments().len(), 1);
    assert_eq!(street.books.reserved(), 0);
}

#[tokio::test]
async fn twenty_four_who_reserve_and_leave_take_what_is_kept_for_strangers_and_no_more() {
    let street = Street::open().await;
    let mut open = Vec::new();
    let mut refused = 0;
    for _ in 0..24 {
        let answer = asks(&mut Visitor::new(&street), &[]).await;
        match answer.status {
            200 => open.push(pay_page(&answer)),
            _ => {
                assert_eq!(answer.status, 409, "{}", answer.text);
                assert!(
                    answer.text.contains("Sold out today") && answer.text.contains("UTC"),
                    "{}",
                    answer.text
                );
                refused += 1;
            }
        }
    }
    assert_eq!((open.len(), refused), (5, 19));
    assert_eq!(street.stripe.begun().len(), 5);
    // One closes at the processor: its credit is for sale again.
    let id = open[0].rsplit('/').next().unwrap();
    let gone = event(
        "evt_x",
        "checkout.session.expired",
        &street.stripe.session(id),
    );
    assert_eq!(street.deliver(&gone).await.status, 200);
    assert_eq!(asks(&mut Visitor::new(&street), &[]).await.status, 200);
}

#[tokio::test]
async fn one_address_has_one_checkout_at_a_time() {
    let street = Street::open().await;
    let form = async |address: &str| {
        let mut visitor = Visitor::new(&street);
        let page = visitor.get("/").await;
        let request = visitor.form(&page);
        read(request.header("x-forwarded-for", address)).await
    };
    assert_eq!(form("2001:db8:1:2::1").await.status, 200);
    let neighbour = form("2001:db8:1:2:ffff::9").await;
    assert_eq!(neighbour.status, 409);
    assert!(
        neighbour.text.contains("network address"),
        "{}",
        neighbour.text
    );
    assert_eq!(form("2001:db8:1:3::1").await.status, 200);
    assert_eq!(street.stripe.begun().len(), 2);
}

#[tokio::test]
async fn a_bank_that_pays_later_has_its_credit_kept_for_fourteen_days() {
    let street = Street::open().await;
    let page = Visitor::new(&street).buy(&[]).await;
    let (id, completed) = street.stripe.pay_later(&page);
    assert_eq!(street.deliver(&completed).await.status, 200);
    let kept = {
        let state = street.books.state.lock().unwrap();
        let (_, _, until) = state.reserved.values().next().unwrap();
        until.millis() - clock::now().millis()
    };
    let day = 86_400_000;
    assert!((13 * day..=14 * day).contains(&kept), "{kept}");
    assert!(street.books.payments().is_empty());
    let failed = event(
        "evt_f",
        "checkout.session.async_payment_failed",
        &street.stripe.session(&id),
    );
    assert_eq!(street.deliver(&failed).await.status, 200);
    assert_eq!(street.books.reserved(), 0);
    // Another one is paid in the end.
    let page = Visitor::new(&street).buy(&[]).await;
    let (_, completed) = street.stripe.pay_later(&page);
    assert_eq!(street.deliver(&completed).await.status, 200);
    let (_, mut paid) = street.stripe.pay(&page);
    paid["type"] = json!("checkout.session.async_payment_succeeded");
    assert_eq!(street.deliver(&paid).await.status, 200);
    assert_eq!(street.books.payment("pi_2").status, "booked");
    assert_eq!(street.books.reserved(), 0);
}

/// It is booked if there is room, else kept as unapplied: never lost.
#[tokio::test]
async fn a_reservation_that_ends_while_the_card_is_charged_loses_nothing() {
    let street = Street::open().await;
    for (most, status) in [(50, "booked"), (5, "unapplied")] {
        let page = Visitor::new(&street).buy(&[]).await;
        let (_, event) = street.stripe.pay(&page);
        {
            let mut state = street.books.state.lock().unwrap();
            state.reserved.clear();
            state.most = most;
        }
        // And the gateway is away when the payment is told first.
        street.books.weather(Weather::Away);
        assert_eq!(street.deliver(&event).await.status, 503);
        street.books.weather(Weather::Fine);
        let answer = street.deliver(&event).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let reference = event["data"]["object"]["payment_intent"].as_str().unwrap();
        assert_eq!(street.books.payment(reference).status, status);
    }
}

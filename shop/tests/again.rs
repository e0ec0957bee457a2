//! Automatic top-ups: a buyer agrees, a rule wishes, and the stored card is charged once for each wish, or says why not.

use serde_json::{Value, json};

use crate::support::stripe::{CardMood, event};
use crate::support::{Answer, SHOP, Street, Visitor, hidden, pay_page};

const AGREED: [(&str, &str); 2] = [("again", "on"), ("per_month", "3")];

/// A buyer who stored a card; the page of the purchase, and the customer.
async fn agreed<'a>(street: &'a Street) -> (Visitor<'a>, Answer, String) {
    let mut buyer = Visitor::new(street);
    let (id, paid) = street.stripe.pay(&buyer.buy(&AGREED).await);
    assert_eq!(street.deliver(&paid).await.status, 200);
    let thanks = buyer.get(&format!("/bought?checkout={id}")).await;
    let reference = street.stripe.session(&id)["payment_intent"].clone();
    let customer = street.books.payment(reference.as_str().unwrap()).customer;
    (buyer, thanks, customer)
}

fn paid_for(street: &Street, wish: &str) -> Value {
    street.books.payment(wish).body
}

#[tokio::test]
async fn who_agrees_is_charged_again_by_the_rule_and_who_does_not_stores_no_card() {
    let street = Street::open().await;
    let mut plain = Visitor::new(&street);
    let page = plain.get("/").await;
    assert!(
        page.text.contains("name=\"again\" value=\"on\"") && !page.text.contains("checked>Keep"),
        "{}",
        page.text
    );
    let (_, paid) = street.stripe.pay(&plain.buy(&[]).await);
    assert_eq!(street.deliver(&paid).await.status, 200);
    assert!(street.books.state.lock().unwrap().rules.is_empty());
    assert!(paid["data"]["object"]["customer"].is_null());

    let (_, thanks, customer) = agreed(&street).await;
    assert!(thanks.text.contains("Automatic top-up"), "{}", thanks.text);
    let rule = street.books.state.lock().unwrap().rules[&customer].clone();
    assert_eq!(
        rule,
        json!({ "threshold": "2.00", "amount": "10.00", "per_month": 3, "processor_ref": "cus_2:11.90:1.90:EUR" })
    );
    let wish = street.books.wish(&customer);
    assert_eq!(
        street.books.after(&wish, "wanted").await["status"],
        "booked"
    );
    let body = paid_for(&street, &wish);
    let told = [
        &body["amount"],
        &body["gross"],
        &body["tax"],
        &body["currency"],
    ];
    assert_eq!(told, ["10.00", "11.90", "1.90", "EUR"]);
    assert_eq!(street.stripe.charged().len(), 1);
    assert_eq!(street.stripe.charged()[0].0, wish);
    assert_eq!(street.books.reserved(), 0);
    // The processor tells of it, too: nothing is booked twice. What goes back of it finds its payment.
    let intent = street.stripe.charged()[0].1.clone();
    let told = event("evt_pi", "payment_intent.succeeded", &intent);
    assert_eq!(street.deliver(&told).await.status, 200);
    assert_eq!(street.books.payments().len(), 3);
    let charge = street.stripe.charge(intent["id"].as_str().unwrap(), 595);
    let refund = event("evt_r", "charge.refunded", &charge);
    assert_eq!(street.deliver(&refund).await.status, 200);
    let registers = street.books.payment(&wish).registers;
    assert_eq!(registers["refund"].to_string(), "5.95");
}

#[tokio::test]
async fn a_card_that_is_refused_asks_for_its_owner_or_is_gone_fails_the_wish_and_says_where_to_pay()
{
    let street = Street::open().await;
    let (_, _, customer) = agreed(&street).await;
    let by_hand = format!("pay at {SHOP}/?customer={customer}");
    for (mood, told) in [
        (
            CardMood::Declined,
            "the card was refused (insufficient_funds)",
        ),
        (CardMood::AsksForItsOwner, "the card asks for its owner"),
    ] {
        street.stripe.mood(mood);
        let wish = street.books.wish(&customer);
        let failed = street.books.after(&wish, "wanted").await;
        assert_eq!(failed["status"], "failed");
        assert_eq!(failed["reason"], format!("{told}; {by_hand}"));
    }
    street.stripe.mood(CardMood::Pays);
    street.stripe.forget_cards();
    let wish = street.books.wish(&customer);
    let failed = street.books.after(&wish, "wanted").await;
    assert_eq!(
        failed["reason"],
        format!("no card is stored any more; {by_hand}")
    );
    assert!(street.stripe.charged().is_empty());
    assert_eq!(street.books.reserved(), 0);
    // And the page to pay by hand takes a card.
    let page = Visitor::new(&street).buy(&[("customer", &customer)]).await;
    let (_, paid) = street.stripe.pay(&page);
    assert_eq!(street.deliver(&paid).await.status, 200);
}

#[tokio::test]
async fn a_customer_who_was_suspended_meanwhile_is_not_charged() {
    let street = Street::open().await;
    let (_, _, customer) = agreed(&street).await;
    street
        .books
        .state
        .lock()
        .unwrap()
        .closed
        .push(customer.clone());
    let wish = street.books.wish(&customer);
    let failed = street.books.after(&wish, "wanted").await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(street.stripe.asked_to_charge(), 0);
}

/// By the shop's clock, or by the gateway's, which fails what nobody booked in time.
#[tokio::test]
async fn a_wish_whose_time_is_over_is_not_charged() {
    let street = Street::open().await;
    let customer = agreed(&street).await.2;
    let books = &street.books;
    let late = books.wish_that_is(&customer, "wanted", -1_000);
    let failed = books.wish_that_is(&customer, "failed", 60_000);
    // It is told after them: they were read before it is booked.
    let next = books.wish(&customer);
    assert_eq!(books.after(&next, "wanted").await["status"], "booked");
    assert_eq!(street.stripe.asked_to_charge(), 1);
    assert_eq!(street.stripe.charged()[0].0, next);
    assert_eq!((books.payments().len(), books.reserved()), (2, 0));
    let state = books.state.lock().unwrap();
    assert_eq!(
        state.wishes[&late]["reason"],
        Value::Null,
        "nobody fails it twice"
    );
    assert_eq!(state.wishes[&failed]["status"], "failed");
}

/// The call of the charge ends by time, what was kept for it is given back, and the next call is the same charge.
#[tokio::test]
async fn a_wish_at_a_processor_that_never_answers_waits_and_is_charged_once() {
    let street = Street::open().await;
    let customer = agreed(&street).await.2;
    street.stripe.silent(true);
    let wish = street.books.wish(&customer);
    street.shop.says("what the gateway asks for waits").await;
    assert_eq!(street.books.reserved(), 0);
    assert_eq!(street.books.payments().len(), 1);
    assert!(street.stripe.unanswered() >= 1 && street.stripe.charged().is_empty());
    street.stripe.silent(false);
    assert_eq!(
        street.books.after(&wish, "wanted").await["status"],
        "booked"
    );
    assert_eq!(street.stripe.charged().len(), 1);
    assert_eq!(street.books.payments().len(), 2);
}

/// The answer of the charge is lost, and the shop is killed: the same wish is the same charge, and is booked once.
#[tokio::test]
async fn a_wish_whose_answer_was_lost_is_charged_once_by_the_next_shop() {
    let mut street = Street::open().await;
    let customer = agreed(&street).await.2;
    street.stripe.loses_answers(true);
    let wish = street.books.wish(&customer);
    while street.stripe.charged().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    street.kill_and_restart().await;
    street.stripe.loses_answers(false);
    assert_eq!(
        street.books.after(&wish, "wanted").await["status"],
        "booked"
    );
    assert_eq!(street.stripe.charged().len(), 1);
    assert_eq!(street.books.payments().len(), 2);
}

/// A card that takes its time keeps its credit, and the processor's message books it; a late one is never lost.
#[tokio::test]
async fn a_charge_that_ends_later_is_booked_when_it_is_told() {
    let street = Street::open().await;
    let (_, _, customer) = agreed(&street).await;
    street.stripe.mood(CardMood::TakesItsTime);
    let wish = street.books.wish(&customer);
    while street.stripe.asked_to_charge() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let charge = street.stripe.charge("pi_stored_1", 0);
    let done = json!({ "id": "pi_stored_1", "object": "payment_intent", "status": "succeeded", "amount": 1190,
        "amount_received": 1190, "currency": "eur", "metadata": charge["metadata"] });
    let told = event("evt_done", "payment_intent.succeeded", &done);
    for _ in 0..2 {
        assert_eq!(street.deliver(&told).await.status, 200);
    }
    assert_eq!(
        street.books.after(&wish, "wanted").await["status"],
        "booked"
    );
    assert_eq!(street.books.payments().len(), 2);
}

#[tokio::test]
async fn a_stranger_stores_no_card_for_a_victim_and_ends_no_rule_of_it() {
    let street = Street::open().await;
    let (mut owner, thanks, victim) = agreed(&street).await;
    let mut stranger = Visitor::new(&street);
    let page = stranger.get(&format!("/?customer={victim}")).await;
    assert!(!page.text.contains("name=\"again\""), "{}", page.text);
    let form = [&AGREED[..], &[("customer", victim.as_str())]].concat();
    let refused = stranger.send_form(&page, &form).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("Only its owner"), "{}", refused.text);
    let proof = hidden(&page.text, "proof");
    let checkout = hidden(&thanks.text, "checkout");
    for (field, of) in [("customer", &victim), ("checkout", &checkout)] {
        let form = [("proof", proof.as_str()), (field, of.as_str())];
        let refused = stranger.post("/stop", &form).await;
        assert!(refused.status >= 400, "{field}: {}", refused.text);
    }
    // A link of the dashboard works once, for the browser that opened it.
    let link = "ab".repeat(32);
    let links = |link: String| {
        let mut state = street.books.state.lock().unwrap();
        state.links.insert(link, victim.clone());
    };
    links(link.clone());
    let mut dashboard = Visitor::new(&street);
    let sent = dashboard.get(&format!("/?link={link}")).await;
    assert_eq!(sent.status, 303);
    assert_eq!(sent.headers["location"], format!("/?customer={victim}"));
    assert_eq!(stranger.get(&format!("/?link={link}")).await.status, 404);
    assert_eq!(stranger.get("/?link=nonsense").await.status, 404);
    let stolen = dashboard.cookie.clone().unwrap();
    let paper = stolen
        .split("; ")
        .find(|pair| pair.starts_with("__Host-farebox-owner"))
        .unwrap();
    let mut thief = stranger.clone();
    thief.cookie = Some(format!("{}; {paper}", stranger.cookie.clone().unwrap()));
    let page = thief.get(&format!("/?customer={victim}")).await;
    assert!(!page.text.contains("name=\"again\""), "{}", page.text);
    let page = dashboard.get(&format!("/?customer={victim}")).await;
    assert!(page.text.contains("name=\"again\""), "{}", page.text);
    let onward = dashboard.send_form(&page, &form).await;
    assert_eq!(onward.status, 200, "{}", onward.text);
    let (_, paid) = street.stripe.pay(&pay_page(&onward));
    assert_eq!(street.deliver(&paid).await.status, 200);
    let rule = street.books.state.lock().unwrap().rules[&victim].clone();
    assert_eq!(rule["processor_ref"], "cus_2:11.90:1.90:EUR");
    // Who bought it ends it, and nothing is charged any more.
    let form = [
        ("proof", hidden(&thanks.text, "proof")),
        ("checkout", checkout),
    ];
    let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
    let ended = owner.post("/stop", &form).await;
    assert!(
        ended.text.contains("Automatic top-up is off"),
        "{}",
        ended.text
    );
    assert!(street.books.state.lock().unwrap().rules.is_empty());
}

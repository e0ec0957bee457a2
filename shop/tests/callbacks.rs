//! Callbacks: forged, old, changed, repeated, in any order, of another shop, with another amount; and whatever they meet, every
//! payment stands once.

use farebox_ledger::Gross;
use serde_json::json;

use crate::support::books::Weather;
use crate::support::stripe::{SETTLED, event, now, signed};
use crate::support::{Street, Visitor, WEBHOOK_SECRET};

/// A paid checkout: its id, and the event about it.
async fn paid(street: &Street, more: &[(&str, &str)]) -> (String, serde_json::Value) {
    let page = Visitor::new(street).buy(more).await;
    street.stripe.pay(&page)
}

#[tokio::test]
async fn a_payment_is_booked_once_however_often_it_is_told() {
    let street = Street::open().await;
    let (_, event) = paid(&street, &[("name", "Ada"), ("address", "1 Street")]).await;
    for _ in 0..4 {
        let answer = street.deliver(&event).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let payments = street.books.payments();
    assert_eq!(payments.len(), 1, "{payments:?}");
    let booked = street.books.payment("pi_1").body;
    let told = json!({ "amount": "10.00", "reference": "pi_1", "currency": "EUR", "gross": "11.90", "tax": "1.90", "expected_currency": "EUR",
        "expected_gross": "11.90", "reservation": "r_1", "name": "Ada", "address": "1 Street" });
    assert_eq!(booked, told);
    let customers = street.books.customers();
    assert_eq!(customers.len(), 1);
    assert_eq!(
        customers[0]["personal"],
        json!({ "name": "Ada", "address": "1 Street" })
    );
}

#[tokio::test]
async fn only_the_processor_is_believed_and_only_lately() {
    let street = Street::open().await;
    let (_, event) = paid(&street, &[]).await;
    let body = event.to_string();
    let other = body.replace("1190", "9999999");
    for (body, header) in [
        (&body, String::new()),
        (&body, "t=1,v1=00".to_owned()),
        (&body, signed("whsec_guessed", now(), &body)),
        (&body, signed(WEBHOOK_SECRET, now() - 400, &body)),
        (&body, signed(WEBHOOK_SECRET, now() + 400, &body)),
        (&other, signed(WEBHOOK_SECRET, now(), &body)),
    ] {
        let answer = street.post_callback(body, &header).await;
        assert_eq!(answer.status, 400, "{header}: {}", answer.text);
    }
    let bare = street.client.post(format!("{}/webhook", street.shop.base));
    assert_eq!(
        bare.body(body.clone())
            .send()
            .await
            .unwrap()
            .status()
            .as_u16(),
        400
    );
    assert!(street.books.payments().is_empty());
    // While a secret is replaced, both count.
    let old = signed("whsec_replaced", now() - 200, &body);
    assert_eq!(street.post_callback(&body, &old).await.status, 200);
    assert_eq!(street.books.payments().len(), 1);
}

#[tokio::test]
async fn what_is_not_ours_or_says_nothing_is_acknowledged_and_forgotten() {
    let street = Street::open().await;
    let (id, paid) = paid(&street, &[]).await;
    let session = street.stripe.session(&id);
    let mut foreign = session.clone();
    foreign["metadata"]["farebox_shop"] = json!("https://other.example");
    let mut bare = session.clone();
    bare["metadata"] = json!({});
    let mut unpaid = session.clone();
    unpaid["payment_status"] = json!("unpaid");
    let mut charge = street.stripe.charge(&id, 100);
    charge["metadata"] = json!({});
    for (kind, object) in [
        ("checkout.session.completed", &foreign),
        ("checkout.session.completed", &bare),
        ("checkout.session.completed", &unpaid),
        ("checkout.session.async_payment_failed", &session),
        ("checkout.session.expired", &session),
        ("charge.refunded", &charge),
        ("customer.created", &json!({ "id": "cus_1" })),
        ("some.future.kind", &json!({ "anything": [1, 2] })),
    ] {
        let answer = street.deliver(&event("evt_other", kind, object)).await;
        assert_eq!(answer.status, 200, "{kind}: {}", answer.text);
    }
    assert!(street.books.payments().is_empty());
    // A bank that pays later is told in another event.
    let later = event(
        "evt_later",
        "checkout.session.async_payment_succeeded",
        &session,
    );
    assert_eq!(street.deliver(&later).await.status, 200);
    assert_eq!(street.deliver(&paid).await.status, 200);
    assert_eq!(street.books.payments().len(), 1);
}

#[tokio::test]
async fn another_sum_than_was_asked_is_kept_as_it_came_and_never_booked() {
    let street = Street::open().await;
    let (id, _) = paid(&street, &[]).await;
    let session = street.stripe.session(&id);
    for (n, field, value, told) in [
        (1, "amount_total", json!(1), ["EUR", "0.01"]),
        (2, "currency", json!("usd"), ["USD", "11.90"]),
        (3, "currency", json!("jpy"), ["JPY", "1190.00"]),
    ] {
        let mut changed = session.clone();
        let reference = format!("pi_other_{n}");
        changed["payment_intent"] = json!(reference);
        changed[field] = value.clone();
        let answer = street
            .deliver(&event("evt_x", "checkout.session.completed", &changed))
            .await;
        assert_eq!(answer.status, 200, "{field} {value}: {}", answer.text);
        let kept = street.books.payment(&reference);
        assert_eq!(kept.status, "unapplied");
        let body = [&kept.body["currency"], &kept.body["gross"]];
        assert_eq!(body, [&json!(told[0]), &json!(told[1])]);
    }
    for (field, value) in [
        ("amount_total", json!(-1190)),
        ("amount_total", json!(null)),
        ("payment_intent", json!(null)),
    ] {
        let mut changed = session.clone();
        changed[field] = value.clone();
        let answer = street
            .deliver(&event("evt_x", "checkout.session.completed", &changed))
            .await;
        assert_eq!(answer.status, 422, "{field} {value}: {}", answer.text);
    }
    let mut changed = session.clone();
    changed["metadata"]["farebox_credit"] = json!("1e9");
    let told = event("evt_y", "checkout.session.completed", &changed);
    assert_eq!(street.deliver(&told).await.status, 422);
    for nonsense in ["{}", "[]", "null", "{\"id\":1}", "\u{1f980}"] {
        let answer = street
            .post_callback(nonsense, &signed(WEBHOOK_SECRET, now(), nonsense))
            .await;
        assert_eq!(answer.status, 422, "{nonsense}");
    }
    assert_eq!(street.books.payments().len(), 3);
}

#[tokio::test]
async fn money_that_goes_back_is_told_in_any_order() {
    let street = Street::open().await;
    let (id, paid) = paid(&street, &[]).await;
    let refund = event("evt_re", "charge.refunded", &street.stripe.charge(&id, 500));
    let dispute = street.stripe.dispute(&id, "dp_1", 300, "needs_response");
    let first = event("evt_d1", "charge.dispute.funds_withdrawn", &dispute);
    for early in [&refund, &first] {
        let answer = street.deliver(early).await;
        assert_eq!(
            answer.status, 503,
            "its payment is not booked: {}",
            answer.text
        );
    }
    assert_eq!(street.deliver(&paid).await.status, 200);
    // Two disputes of one payment add up, whichever event comes first.
    let dispute = street.stripe.dispute(&id, "dp_2", 200, "needs_response");
    let second = event("evt_d2", "charge.dispute.funds_withdrawn", &dispute);
    let won = street.stripe.dispute(&id, "dp_1", 300, "won");
    let won = event("evt_d3", "charge.dispute.funds_reinstated", &won);
    for told in [&second, &refund, &first, &won, &won, &refund, &second] {
        let answer = street.deliver(told).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let registers = street.books.payment("pi_1").registers;
    let shown = |kind: &str| registers[kind].to_string();
    assert_eq!(
        [shown("refund"), shown("dispute"), shown("dispute-won")],
        ["5.00", "5.00", "3.00"]
    );
    // A dispute of somebody else's payment is none of ours.
    let mut foreign = dispute.clone();
    foreign["charge"] = json!("ch_of_another");
    let foreign = event("evt_d4", "charge.dispute.funds_withdrawn", &foreign);
    assert_eq!(street.deliver(&foreign).await.status, 200);
    // While the processor cannot be asked whose it is, it has to tell again.
    street.stripe.down(true);
    assert_eq!(street.deliver(&won).await.status, 503);
}

#[tokio::test]
async fn a_gateway_that_is_away_or_loses_its_answers_books_at_the_next_delivery() {
    let street = Street::open().await;
    let (_, event) = paid(&street, &[]).await;
    for weather in [Weather::Away, Weather::LosesAnswers] {
        street.books.weather(weather);
        for _ in 0..2 {
            let answer = street.deliver(&event).await;
            assert_eq!(answer.status, 503, "{weather:?}: {}", answer.text);
        }
    }
    street.books.weather(Weather::Fine);
    assert_eq!(street.deliver(&event).await.status, 200);
    assert_eq!(street.books.payments().len(), 1);
    assert_eq!(street.books.customers().len(), 1);
}

#[tokio::test]
async fn a_top_up_goes_to_whom_it_names_or_to_a_purse_of_its_own() {
    let street = Street::open().await;
    let known = street.books.customer();
    let (_, event) = paid(&street, &[("customer", &known)]).await;
    assert_eq!(street.deliver(&event).await.status, 200);
    assert_eq!(
        street.books.payments(),
        [("pi_1".to_owned(), known.clone())]
    );
    // Nobody has this id any more: the money is somebody's all the same.
    let gone = street.books.customer();
    let (_, event) = paid(&street, &[("customer", &gone)]).await;
    street.books.state.lock().unwrap().customers.remove(&gone);
    assert_eq!(street.deliver(&event).await.status, 200);
    let payments = street.books.payments();
    assert!(
        payments[1].1 != known && payments[1].1 != gone,
        "{payments:?}"
    );
    // A payment that cannot be booked is kept, and acknowledged.
    let (_, event) = paid(&street, &[("customer", &known)]).await;
    street.books.close(&known);
    let answer = street.deliver(&event).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(street.books.payment("pi_3").status, "unapplied");
}

#[tokio::test]
async fn a_name_that_the_books_refuse_does_not_keep_the_money_out() {
    let street = Street::open().await;
    for (n, name) in [
        "Zoë \"<b>\" & Söhne 株式会社",
        "O'Brien; DROP TABLE",
        "=cmd|' /C calc'!A0",
        "مرحبا",
        "🦀🦀",
        "this one is refused",
    ]
    .iter()
    .enumerate()
    {
        let (_, event) = paid(&street, &[("name", name)]).await;
        let answer = street.deliver(&event).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text);
        assert_eq!(street.books.payments().len(), n + 1, "{name}");
    }
    let customers = street.books.customers();
    let named: Vec<&str> = customers
        .iter()
        .filter_map(|of| of["personal"]["name"].as_str())
        .collect();
    assert!(named.contains(&"Zoë \"<b>\" & Söhne 株式会社"), "{named:?}");
    assert!(customers.iter().any(|of| of["label"] == "Shop customer"));
}

/// In units of no, two and three decimals: what is asked, what goes back in steps, and disputes in a currency of the bank's.
#[tokio::test]
async fn three_currencies_are_bought_refunded_and_disputed_as_shares() {
    let mut street = Street::open().await;
    for (currency, rate, price, tax, parts) in [
        ("EUR", "1", "11.90", "1.90", 1_190),
        ("JPY", "0.0065", "1700", "155", 1_700),
        ("KWD", "3.2", "3.570", "0.570", 3_570),
    ] {
        street.edit(|file| {
            let (head, rest) = file.split_once("currency = ").unwrap();
            let (_, rest) = rest.split_once("[gateway]").unwrap();
            let (rest, _) = rest.split_once("[[offer]]").unwrap();
            format!(
                "{head}currency = \"{currency}\"\nusd_per_unit = \"{rate}\"\n[gateway]{rest}[[offer]]\n\
                 credit = \"10\"\nprice = \"{price}\"\ntax = \"{tax}\"\n"
            )
        });
        street.kill_and_restart().await;
        let (id, told) = paid(&street, &[]).await;
        assert_eq!(street.stripe.session(&id)["amount_total"], parts);
        assert_eq!(street.deliver(&told).await.status, 200);
        let reference = street.stripe.session(&id)["payment_intent"].clone();
        let reference = reference.as_str().unwrap();
        assert_eq!(street.books.payment(reference).status, "booked");
        let gross = Gross::parse(price).unwrap().parts();
        let register = |kind: &str| street.books.payment(reference).registers[kind].parts();
        for step in [parts / 10, parts / 2, parts] {
            let charge = street.stripe.charge(&id, step);
            let refund = event(&format!("evt_r{step}"), "charge.refunded", &charge);
            assert_eq!(street.deliver(&refund).await.status, 200);
            assert_eq!(
                register("refund"),
                gross * step / parts,
                "{currency} {step}"
            );
        }
        // Half of it, named in dollars: what the account lost of what it got is the share.
        let settled = if currency == "EUR" { parts } else { SETTLED };
        let half = (777, settled / 2);
        let dispute = street
            .stripe
            .dispute_in("usd", &id, "dp_usd", half, "needs_response");
        let taken = event("evt_usd", "charge.dispute.funds_withdrawn", &dispute);
        assert_eq!(street.deliver(&taken).await.status, 200);
        assert_eq!(register("dispute"), gross / 2, "{currency}");
    }
}

//! Buyers: the way from the price page to the key, and what is shown to whom.

use crate::support::books::Weather;
use crate::support::{Answer, SHOP, Street, Visitor, hidden, option, pay_page};

fn secret(page: &Answer) -> String {
    let secret = page.text.split("id=\"secret\">").nth(1);
    let secret = secret.unwrap_or_else(|| panic!("{}", page.text));
    secret.split('<').next().unwrap().to_owned()
}

async fn show_key(visitor: &mut Visitor<'_>, page: &Answer) -> Answer {
    let (proof, checkout) = (hidden(&page.text, "proof"), hidden(&page.text, "checkout"));
    visitor
        .post("/key", &[("proof", &proof), ("checkout", &checkout)])
        .await
}

#[tokio::test]
async fn a_stranger_buys_a_key_comes_back_and_tops_up() {
    let street = Street::open().await;
    let mut visitor = Visitor::new(&street);
    let page = visitor.get("/").await;
    for part in [
        "11.90 EUR",
        "tax of 1.90 EUR included",
        "Small &amp; fast",
        "1.00 / 2.00",
        "https://llm.example/prices",
        "1 Market Square, 10115 Berlin · DE123456789",
        "href=\"https://shop.example/terms\"",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let pay = visitor.buy(&[("name", "Ada")]).await;
    let (id, event) = street.stripe.pay(&pay);
    let session = street.stripe.session(&id);
    let back = session["success_url"].as_str().unwrap();
    assert!(
        back.starts_with(&format!("{SHOP}/bought?paid="))
            && back.ends_with("&checkout={CHECKOUT_SESSION_ID}"),
        "{back}"
    );
    let back = back.replace("{CHECKOUT_SESSION_ID}", &id);

    let waiting = visitor.get(&back).await;
    assert_eq!(waiting.status, 200);
    assert!(
        waiting
            .text
            .contains("http-equiv=\"refresh\" content=\"2\""),
        "{}",
        waiting.text
    );
    assert_eq!(street.deliver(&event).await.status, 200);
    assert!(
        street.books.customers()[0]["keys"]
            .as_array()
            .unwrap()
            .is_empty(),
        "no key before it is asked for"
    );

    let thanks = visitor.get(&back).await;
    assert!(
        thanks.text.contains("10.00 USD of credit"),
        "{}",
        thanks.text
    );
    let first = show_key(&mut visitor, &thanks).await;
    assert_eq!(first.status, 200, "{}", first.text);
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(first.headers[name], value);
    }
    let policy = first.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'") && policy.contains("script-src 'self';"),
        "{policy}"
    );
    assert!(
        first.text.matches("<script").count() == 1 && !first.text.contains("style="),
        "{}",
        first.text
    );
    assert!(
        first
            .text
            .contains("https://llm.example/v1/chat/completions")
            && first.text.contains("&quot;model&quot;: &quot;small&quot;"),
        "{}",
        first.text
    );
    let secret_text = secret(&first);
    for part in [
        "data-copy=\"secret\"".to_owned(),
        "data-copy=\"try\"".to_owned(),
        format!("https://llm.example/dashboard#key={secret_text}"),
    ] {
        assert!(first.text.contains(&part), "{part}: {}", first.text);
    }
    let again = show_key(&mut visitor, &thanks).await;
    assert_ne!(
        secret(&first),
        secret(&again),
        "asked again, it is replaced"
    );
    let receipt = visitor.get(&format!("/receipt?checkout={id}")).await;
    for part in [
        "-1-1",
        "2026-11-24 10:00:00 UTC",
        "Key Corner\n1 Market Square\nDE123456789",
        "10.00 USD of credit",
        "19 %",
        "11.90 EUR",
    ] {
        assert!(receipt.text.contains(part), "{part}: {}", receipt.text);
    }

    // In use, it is not shown again.
    let customer = street.books.customers()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let key = customer.replace("c_", "k_");
    street.books.state.lock().unwrap().used_keys.push(key);
    let used = show_key(&mut visitor, &thanks).await;
    assert_eq!(used.status, 409);
    assert!(
        used.text.contains("in use") && !used.text.contains("sk-fb-"),
        "{}",
        used.text
    );

    // And tops up again, without a new key.
    let larger = option(&visitor.get("/").await.text, 1);
    let more = visitor
        .buy(&[("customer", &customer), ("offer", &larger)])
        .await;
    let (id, event) = street.stripe.pay(&more);
    assert_eq!(street.deliver(&event).await.status, 200);
    let thanks = visitor.get(&format!("/bought?checkout={id}")).await;
    assert!(
        thanks.text.contains("50.00 USD of credit"),
        "{}",
        thanks.text
    );
    assert!(!thanks.text.contains("Show my key"), "{}", thanks.text);
    assert_eq!(street.books.customers().len(), 1);
}

#[tokio::test]
async fn without_its_cookie_a_browser_sees_reference_and_contact_alone() {
    let street = Street::open().await;
    let mut buyer = Visitor::new(&street);
    let (id, event) = street
        .stripe
        .pay(&buyer.buy(&[("name", "Ada Secret")]).await);
    assert_eq!(street.deliver(&event).await.status, 200);
    let thanks = buyer.get(&format!("/bought?checkout={id}")).await;

    let mut other = Visitor::new(&street);
    other.get("/").await;
    for mut stranger in [Visitor::new(&street), other] {
        for path in ["bought", "receipt"] {
            let page = stranger.get(&format!("/{path}?checkout={id}")).await;
            assert_eq!(page.status, 403, "{path}");
            assert!(
                // The processor is not asked for whoever brings no cookie.
                (page.text.contains("pi_1") || page.text.contains(&id))
                    && page.text.contains("help@shop.example"),
                "{}",
                page.text
            );
            for hidden in ["Ada", "10.00", "11.90", "c_"] {
                assert!(
                    !page.text.contains(hidden),
                    "{path} {hidden}: {}",
                    page.text
                );
            }
        }
        // The forms of the buyer's page do nothing in another browser.
        let refused = show_key(&mut stranger, &thanks).await;
        assert_eq!(refused.status, 403, "{}", refused.text);
    }
    assert!(street.books.state.lock().unwrap().secrets.is_empty());
    for nothing in ["cs_test_99", "", "../../v1/charges", "cs_%2e%2e"] {
        let page = buyer.get(&format!("/bought?checkout={nothing}")).await;
        assert_eq!(page.status, 404, "{nothing}");
    }
}

#[tokio::test]
async fn forms_of_other_pages_begin_nothing() {
    let street = Street::open().await;
    let mut visitor = Visitor::new(&street);
    let page = visitor.get("/").await;
    for (fields, status) in [
        (vec![("proof", "")], 422),
        (vec![("proof", "00")], 422),
        (vec![("offer", "7")], 422),
        (vec![("offer", "-1")], 422),
        (vec![("offer", "10.00 USD, 1.00 EUR with 0.00")], 422),
        (vec![("customer", "k_1")], 422),
        (vec![("customer", "<script>")], 422),
        (vec![("name", "a\u{202e}b")], 422),
        (vec![("name", "sk-fb-abc")], 422),
        (vec![("once", "'")], 422),
    ] {
        let answer = visitor.send_form(&page, &fields).await;
        assert_eq!(answer.status, status, "{fields:?}");
        assert!(answer.text.contains("role=\"alert\""), "{fields:?}");
        assert_eq!(answer.text.matches("<script").count(), 1, "{fields:?}");
    }
    let long = "x".repeat(500);
    assert_eq!(
        visitor.send_form(&page, &[("name", &long)]).await.status,
        422
    );
    let mut without = Visitor::new(&street);
    let refused = without.send_form(&page, &[]).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("no cookie"), "{}", refused.text);
    assert!(street.stripe.begun().is_empty());
    // Whether somebody has an id is not told to whoever types it.
    let known = street.books.customer();
    let seen = |page: Answer, id: &str| {
        let (proof, once) = (hidden(&page.text, "proof"), hidden(&page.text, "once"));
        let plain = page
            .text
            .replace(id, "ID")
            .replace(&proof, "")
            .replace(&once, "");
        (page.status, plain)
    };
    let real = seen(visitor.get(&format!("/?customer={known}")).await, &known);
    let made_up = seen(visitor.get("/?customer=c_0000000000").await, "c_0000000000");
    assert_eq!(real, made_up);
}

/// One card, and two tabs: whatever is paid is booked, and only what is kept can be paid.
#[tokio::test]
async fn the_same_form_is_one_checkout_and_a_second_tab_takes_its_place() {
    let street = Street::open().await;
    let mut visitor = Visitor::new(&street);
    let page = visitor.get("/").await;
    let first = visitor.send_form(&page, &[]).await;
    let again = visitor.send_form(&page, &[]).await;
    assert_eq!(first.text, again.text);
    let second = visitor.buy(&[]).await;
    assert!(!first.text.contains(&second));
    let id = |page: &str| page.rsplit('/').next().unwrap().to_owned();
    let state = |page: &str| street.stripe.session(&id(page))["status"].clone();
    assert_eq!(
        (state(&pay_page(&first)), state(&second)),
        ("expired".into(), "open".into())
    );
    assert_eq!(street.books.reserved(), 1);
    // Paid in one tab before the other began: both are paid, and both are booked at once.
    let one = street.stripe.pay(&second);
    let third = visitor.buy(&[]).await;
    assert_eq!(state(&second), "complete");
    let two = street.stripe.pay(&third);
    let (a, b) = tokio::join!(street.deliver(&one.1), street.deliver(&two.1));
    assert_eq!((a.status, b.status), (200, 200));
    let payments = street.books.payments();
    assert_eq!(payments.len(), 2);
    assert_ne!(payments[0].1, payments[1].1);
    assert_eq!(street.books.reserved(), 0);
    for (id, _) in [one, two] {
        let thanks = visitor.get(&format!("/bought?checkout={id}")).await;
        assert!(thanks.text.contains("Show my key"), "{}", thanks.text);
    }
}

#[tokio::test]
async fn who_is_away_is_named_and_nothing_is_lost() {
    let street = Street::open().await;
    let mut visitor = Visitor::new(&street);
    let page = visitor.get("/").await;
    street.stripe.down(true);
    let refused = visitor.send_form(&page, &[]).await;
    assert_eq!(refused.status, 503);
    assert!(
        refused.text.contains("Nothing was charged"),
        "{}",
        refused.text
    );
    street.stripe.down(false);
    let (id, event) = street.stripe.pay(&visitor.buy(&[]).await);
    street.books.weather(Weather::Away);
    let waiting = visitor.get(&format!("/bought?checkout={id}")).await;
    assert_eq!(waiting.status, 503);
    assert!(waiting.text.contains("on its way"), "{}", waiting.text);
    street.books.weather(Weather::Fine);
    assert_eq!(street.deliver(&event).await.status, 200);
    assert_eq!(
        visitor.get(&format!("/bought?checkout={id}")).await.status,
        200
    );
    // A browser that never comes back leaves a customer with money and no key.
    let left = street.books.customers();
    assert!(left[0]["keys"].as_array().unwrap().is_empty());
}

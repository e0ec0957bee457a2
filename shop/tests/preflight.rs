//! `--check` and every start ask the gateway and the processor: nothing says `ok` that could take money for what it cannot give.

use crate::support::stripe::endpoint;
use crate::support::{SHOP, Street};

#[tokio::test]
async fn a_shop_that_can_sell_is_good_and_its_secret_unproved_until_an_event() {
    let street = Street::open().await;
    let (code, said) = street.check(&[]).await;
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("ok: 2 offers in EUR") && said.contains("warning[W715]"),
        "{said}"
    );
    let health = async || {
        let url = format!("{}/healthz", street.shop.base);
        street
            .client
            .get(url)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    };
    assert_eq!(
        health().await,
        "ok; no callback proved the webhook's secret yet\n"
    );
    let other = crate::support::stripe::event("evt_1", "customer.created", &serde_json::json!({}));
    assert_eq!(street.deliver(&other).await.status, 200);
    assert!(health().await.contains("a callback proved"));
}

#[tokio::test]
async fn a_gateway_that_is_dead_or_knows_no_such_token_is_told() {
    let street = Street::open().await;
    let api = street.books.base.clone();
    street.edit(|file| file.replace(&api, "http://127.0.0.1:1"));
    let (code, said) = street.check(&[]).await;
    assert!(code == 78 && said.contains("error[E711]"), "{said}");
    street.edit(|file| {
        file.replace("http://127.0.0.1:1", &api)
            .replace("{ file = \"token\" }", "{ env = \"OTHER\" }")
    });
    let (code, said) = street.check(&[("OTHER", "fb-token-of-somebody")]).await;
    assert!(code == 78 && said.contains("error[E712]"), "{said}");
    assert!(!said.contains("fb-token-of-somebody"), "{said}");
}

#[tokio::test]
async fn a_token_of_another_role_is_told() {
    let street = Street::open().await;
    for (role, code, told) in [("read", 78, "error[E712]"), ("manage", 0, "warning[W712]")] {
        street.books.state.lock().unwrap().role = Some(role);
        let (found, said) = street.check(&[]).await;
        assert!(found == code && said.contains(told), "{role}: {said}");
    }
}

/// Offers of 10 and 50: the bound of the token is on one side of them, or between.
#[tokio::test]
async fn an_offer_that_could_never_be_booked_is_told_and_not_put_on_sale() {
    let mut street = Street::open().await;
    street.books.state.lock().unwrap().most = 49;
    let (code, said) = street.check(&[]).await;
    assert!(code == 78 && said.contains("error[E713]"), "{said}");
    assert!(
        said.contains("50.00 USD is above half of the token's daily bound, 49.00 USD")
            && !said.contains("10.00 USD is above"),
        "{said}"
    );
    // A save does not put it on sale either.
    street.edit(|file| file.replace("Key Corner", "Key Crossing"));
    street.shop.says("offers what cannot be sold").await;
    street.books.state.lock().unwrap().most = 50;
    assert_eq!(street.check(&[]).await.0, 0);
    street.kill_and_restart().await;
}

#[tokio::test]
async fn a_processor_that_would_not_tell_of_payments_is_told() {
    let street = Street::open().await;
    let (code, said) = street.check(&[("STRIPE_KEY", "sk_test_of_another")]).await;
    assert!(code == 78 && said.contains("error[E715]"), "{said}");
    assert!(!said.contains("sk_test_of_another"), "{said}");
    let webhook = format!("{SHOP}/webhook");
    let mut disabled = endpoint(&webhook, &["*"]);
    disabled["status"] = "disabled".into();
    let mut older = endpoint(&webhook, &["*"]);
    older["api_version"] = "2024-06-20".into();
    for (endpoints, code, told) in [
        (vec![], 78, "error[E717]"),
        (
            vec![endpoint("https://other.example/webhook", &["*"])],
            78,
            "error[E717]",
        ),
        (vec![disabled], 78, "error[E717]"),
        (
            vec![endpoint(&webhook, &["checkout.session.completed"])],
            78,
            "add checkout.session.async_payment_succeeded",
        ),
        (vec![older], 0, "warning[W713]"),
    ] {
        street.stripe.endpoints(endpoints);
        let (found, said) = street.check(&[]).await;
        assert!(found == code && said.contains(told), "{told}: {said}");
    }
    street.stripe.cannot_charge();
    let (code, said) = street.check(&[]).await;
    assert!(code == 78 && said.contains("error[E716]"), "{said}");
    street.stripe.down(true);
    let (code, said) = street.check(&[]).await;
    assert!(code == 78 && said.contains("error[E714]"), "{said}");
}

//! The simulated processor: its page, its declined card, and callbacks that are believed and repeated like a real one's.

use std::time::Duration;

use crate::plans::{choose, with_plan};
use crate::support::books::Weather;
use crate::support::{SHOP, Street, Visitor, hidden};

#[tokio::test]
async fn a_test_card_pays_and_a_declined_one_does_not() {
    let mut street = Street::of_test_cards().await;
    let cookie;
    let back = {
        let mut visitor = Visitor::new(&street);
        let page = visitor.get("/").await;
        let onward = visitor.send_form(&page, &[("name", "Zoë & Söhne")]).await;
        let to = onward
            .text
            .split("a class=\"button\" href=\"")
            .nth(1)
            .unwrap();
        let to = to.split('"').next().unwrap().to_owned();
        let cards = visitor.get(&to).await;
        assert!(cards.text.contains("Pay 11.90 EUR"), "{}", cards.text);
        let id = hidden(&cards.text, "checkout");
        let declined = visitor
            .post("/test-cards", &[("checkout", &id), ("card", "declined")])
            .await;
        assert!(declined.text.contains("declined"), "{}", declined.text);
        assert!(street.books.payments().is_empty());
        // A changed id is no checkout: nobody names a price of their own.
        let (text, mac) = id.split_at(id.len() - 64);
        let forged = format!("{}A{mac}", text.get(..text.len() - 2).unwrap());
        for wrong in [forged.as_str(), "sim_", "cs_1"] {
            let nothing = visitor
                .post("/test-cards", &[("checkout", wrong), ("card", "good")])
                .await;
            assert_eq!(nothing.status, 404, "{wrong}");
        }
        // The gateway is away for a moment; the callback comes again.
        street.books.weather(Weather::Away);
        let paid = visitor
            .post("/test-cards", &[("checkout", &id), ("card", "good")])
            .await;
        assert_eq!(paid.status, 303);
        let back = paid.headers["location"].to_str().unwrap().to_owned();
        assert!(
            back.starts_with(&format!("{SHOP}/bought?paid=")) && back.contains("&checkout=sim_"),
            "{back}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
        street.books.weather(Weather::Fine);
        let mut looks = 0;
        while street.books.payments().is_empty() {
            looks += 1;
            assert!(looks < 600, "the callback does not come again");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cookie = visitor.cookie.clone();
        back
    };
    // The next shop knows the checkout, too: its id carries what was asked.
    street.kill_and_restart().await;
    let mut visitor = Visitor {
        street: &street,
        cookie,
    };
    let thanks = visitor.get(&back).await;
    assert!(thanks.text.contains("Show my key"), "{}", thanks.text);
    assert_eq!(street.books.payments().len(), 1);
    let forged = street.client.post(format!("{}/webhook", street.shop.base));
    let forged = forged.header("simulated-signature", "t=1,v1=00").body("{}");
    assert_eq!(forged.send().await.unwrap().status().as_u16(), 400);
}

/// Waits until the books have so many payments.
async fn paid(street: &Street, count: usize) {
    for _ in 0..600 {
        if street.books.payments().len() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{:?}", street.books.payments());
}

#[tokio::test]
async fn a_simulated_subscription_is_paid_again_fails_goes_back_and_is_cancelled() {
    let street = with_plan(Street::of_test_cards().await).await;
    let mut buyer = Visitor::new(&street);
    let onward = choose(&mut buyer, "/", &[]).await;
    let to = |page: &str| {
        let to = page.split("a class=\"button\" href=\"").nth(1).unwrap();
        to.split('"').next().unwrap().replace("&amp;", "&")
    };
    let cards = buyer.get(&to(&onward.text)).await;
    let id = hidden(&cards.text, "checkout");
    let sent = [("checkout", &*id), ("card", "good")];
    let back = buyer.post("/test-cards", &sent).await.headers["location"].clone();
    paid(&street, 1).await;
    let thanks = buyer.get(back.to_str().unwrap()).await;
    assert!(
        thanks.text.contains("Coder, monthly was booked"),
        "{}",
        thanks.text
    );
    let fields =
        ["proof", "customer", "subscription"].map(|name| (name, hidden(&thanks.text, name)));
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let portal = buyer.post("/portal", &fields).await;
    let page = buyer.get(&to(&portal.text)).await;
    assert!(
        page.text.contains("A simulated subscription"),
        "{}",
        page.text
    );
    let does = async |does: &str, payment: &str| {
        let form = [("checkout", &*id), ("does", does), ("payment", payment)];
        let told = buyer.clone().post("/test-cards", &form).await;
        assert!(told.text.contains("Told to the shop"), "{}", told.text);
    };
    does("renew", "0").await;
    paid(&street, 2).await;
    does("renew", "0").await;
    does("fail", "2").await;
    street.shop.says("was not paid").await;
    does("renew", "1").await;
    paid(&street, 3).await;
    does("refund", "1").await;
    does("dispute", "2").await;
    does("cancel", "2").await;
    let registers = || {
        let state = street.books.state.lock().unwrap();
        let of = state.payments.values().flat_map(|of| of.registers.clone());
        let ended = state
            .plans
            .subscriptions
            .values()
            .all(|of| of["status"] == "ended");
        let mut of: Vec<_> = of.map(|(kind, sum)| format!("{kind} {sum}")).collect();
        of.sort();
        (of, ended)
    };
    for _ in 0..600 {
        if registers().0.len() == 2 && registers().1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let wanted = ["dispute 23.80", "refund 23.80"].map(str::to_owned);
    assert_eq!(registers(), (wanted.to_vec(), true));
}

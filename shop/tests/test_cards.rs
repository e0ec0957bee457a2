//! The simulated processor: its page, its declined card, and callbacks that are believed and repeated like a real one's.

use std::time::Duration;

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

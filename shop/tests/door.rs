//! Strangers at the shop's door while its processor is slow: buyers are served.

use std::time::{Duration, Instant};

use crate::support::{Street, Visitor, client, read};

/// Who asks for purchases that are not theirs, at once.
const CALLERS: usize = 24;
/// Buyers who come back meanwhile.
const BUYERS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn strangers_with_a_slow_processor_keep_no_buyer_from_their_purchase() {
    let street = Street::open().await;
    let mut buyers = Vec::new();
    let mut known = String::new();
    for _ in 0..2 {
        let mut buyer = Visitor::new(&street);
        let page = buyer.buy(&[]).await;
        let (id, event) = street.stripe.pay(&page);
        assert_eq!(street.deliver(&event).await.status, 200);
        let back = street.stripe.session(&id)["success_url"]
            .as_str()
            .unwrap()
            .to_owned();
        known.clone_from(&id);
        buyers.push((buyer, back.replace("{CHECKOUT_SESSION_ID}", &id)));
    }
    street.stripe.slow(Duration::from_millis(500));
    let strangers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let url = format!("{}/bought?checkout={known}", street.shop.base);
            // Every other one has a cookie that it made itself.
            let cookie = format!("__Host-farebox-shop={number:064x}");
            tokio::spawn(async move {
                let client = client();
                loop {
                    let from = format!("198.51.100.{number}");
                    let mut request = client.get(&url).header("x-forwarded-for", from);
                    if number % 2 == 0 {
                        request = request.header("cookie", &cookie);
                    }
                    read(request).await;
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (before, since) = (street.stripe.found(), Instant::now());
    for turn in 0..BUYERS {
        let (buyer, back) = &mut buyers[turn % 2];
        let begun = Instant::now();
        let answer = buyer.get(back).await;
        assert!(
            answer.text.contains("Thank you") && begun.elapsed() < Duration::from_secs(10),
            "{turn}: {} after {:?}",
            answer.status,
            begun.elapsed()
        );
    }
    let asked = street.stripe.found() - before;
    strangers.iter().for_each(tokio::task::JoinHandle::abort);
    // Strangers have forty calls and then ten a second; whoever brings no cookie has none.
    let seconds = usize::try_from(since.elapsed().as_secs()).unwrap();
    let most = BUYERS + 40 + 10 * (seconds + 1);
    assert!(asked <= most, "{asked} calls to the processor");
}

#[tokio::test]
async fn a_form_is_small_and_urlencoded_and_a_callback_is_signed_before_it_is_read() {
    let street = Street::open().await;
    let post = |path: &str, kind: &str, body: Vec<u8>| {
        let request = street.client.post(format!("{}{path}", street.shop.base));
        read(request.header("content-type", kind).body(body))
    };
    let files = post(
        "/checkout",
        "multipart/form-data; boundary=x",
        b"--x--".to_vec(),
    )
    .await;
    assert_eq!(files.status, 415, "{}", files.text);
    let urlencoded = "application/x-www-form-urlencoded";
    let large = post("/checkout", urlencoded, vec![b'x'; 5_000]).await;
    assert_eq!(large.status, 413, "{}", large.text);
    let unsigned = post("/webhook", "application/json", vec![b'x'; 4 << 20]).await;
    assert_eq!(unsigned.status, 400, "{}", unsigned.text);
    assert!(unsigned.text.contains("no signature"), "{}", unsigned.text);
}

/// Who paid waits for the callback, and asks the processor at most once in five seconds meanwhile; strangers add nothing to it.
#[tokio::test]
async fn twenty_four_strangers_at_the_return_page_ask_the_processor_once_and_a_callback_ends_the_wait()
 {
    let street = Street::open().await;
    let mut buyer = Visitor::new(&street);
    let (id, event) = street.stripe.pay(&buyer.buy(&[]).await);
    let back = street.stripe.session(&id)["success_url"].clone();
    let back = back.as_str().unwrap().replace("{CHECKOUT_SESSION_ID}", &id);
    for _ in 0..5 {
        let waiting = buyer.get(&back).await;
        assert!(waiting.text.contains("on its way"), "{}", waiting.text);
    }
    let url = format!("{}/bought?checkout={id}", street.shop.base);
    for number in 0..24 {
        let request = street.client.get(&url);
        let request = request.header("x-forwarded-for", format!("198.51.100.{number}"));
        let cookie = format!("__Host-farebox-shop={number:064x}");
        let answer = read(request.header("cookie", cookie)).await;
        assert!(!answer.text.contains("Thank you"), "{}", answer.text);
    }
    assert!(street.stripe.found() <= 2, "{}", street.stripe.found());
    let before = street.stripe.found();
    assert_eq!(street.deliver(&event).await.status, 200);
    for path in [&back, &format!("/receipt?checkout={id}")] {
        assert_eq!(buyer.get(path).await.status, 200);
    }
    assert!(buyer.get(&back).await.text.contains("Thank you"));
    assert_eq!(street.stripe.found(), before);
}

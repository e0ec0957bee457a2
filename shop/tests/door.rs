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

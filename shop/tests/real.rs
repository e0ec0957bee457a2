//! The shop before the real gateway, with a real ledger: kills of both, and the books afterwards.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::support::gateway::RealGateway;
use crate::support::stripe::{event, now, signed};
use crate::support::{Street, Visitor, WEBHOOK_SECRET, hidden, is_full, option};

#[tokio::test]
async fn a_card_becomes_a_key_that_works_and_money_goes_back() {
    let gateway = RealGateway::start().await;
    let street = Street::at(&format!("http://{}", gateway.admin), &gateway.token("100")).await;
    let mut visitor = Visitor::new(&street);
    assert!(
        visitor
            .get("/")
            .await
            .text
            .contains("data-label=\"Customer slug\"")
    );
    let pay = visitor.buy(&[("name", "Zoë & Söhne")]).await;
    let (id, paid) = street.stripe.pay(&pay);
    for _ in 0..3 {
        let answer = street.deliver(&paid).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    assert_eq!(gateway.references(), ["pi_1"]);
    let thanks = visitor.get(&format!("/bought?checkout={id}")).await;
    let fields = [
        ("proof", hidden(&thanks.text, "proof")),
        ("checkout", id.clone()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let secret = async |visitor: &mut Visitor<'_>| {
        let page = visitor.post("/key", &fields).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let text = page.text.split("id=\"secret\">").nth(1).unwrap().to_owned();
        text.split('<').next().unwrap().to_owned()
    };
    let first = secret(&mut visitor).await;
    let second = secret(&mut visitor).await;
    assert_ne!(first, second);
    let ask = async |secret: &str| {
        let url = format!("http://{}/v1/key", gateway.listen);
        let answer = street
            .client
            .get(url)
            .bearer_auth(secret)
            .send()
            .await
            .unwrap();
        answer.status().as_u16()
    };
    assert_eq!((ask(&first).await, ask(&second).await), (401, 200));
    let receipt = visitor.get(&format!("/receipt?checkout={id}")).await;
    assert!(
        receipt.text.contains("-1-1") && receipt.text.contains("11.90 EUR"),
        "{}",
        receipt.text
    );

    // A refund, told twice, and a dispute that is won.
    let charge = street.stripe.charge(&id, 595);
    let refund = event("evt_r", "charge.refunded", &charge);
    let dispute = street.stripe.dispute(&id, "dp_1", 595, "needs_response");
    let taken = event("evt_d", "charge.dispute.funds_withdrawn", &dispute);
    let dispute = street.stripe.dispute(&id, "dp_1", 595, "won");
    let won = event("evt_w", "charge.dispute.funds_reinstated", &dispute);
    for told in [&refund, &taken, &refund, &won, &taken] {
        let answer = street.deliver(told).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let back: Vec<String> = gateway
        .entries()
        .iter()
        .filter(|entry| entry["kind"] == "reversal")
        .map(|entry| entry["amount"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(back, ["-5.00", "-5.00", "5.00"]);
    gateway.assert_sound();
}

/// The bound is met before the card: what could not be booked is sold out.
#[tokio::test]
async fn past_its_daily_bound_a_token_is_sold_out_and_no_card_is_asked_for() {
    let gateway = RealGateway::start().await;
    let street = Street::at(&format!("http://{}", gateway.admin), &gateway.token("100")).await;
    let mut visitor = Visitor::new(&street);
    let larger = option(&visitor.get("/").await.text, 1);
    let larger = [("offer", larger.as_str())];
    let (_, event) = street.stripe.pay(&visitor.buy(&larger).await);
    assert_eq!(street.deliver(&event).await.status, 200);
    // Half of what is left of the day can be reserved: 25 USD.
    let mut next = Visitor::new(&street);
    let page = next.get("/").await;
    let refused = next.send_form(&page, &larger).await;
    assert!(
        refused.status == 409 && refused.text.contains("Sold out"),
        "{}",
        refused.text
    );
    assert_eq!(street.stripe.begun().len(), 1);
    let (_, event) = street.stripe.pay(&next.buy(&[]).await);
    assert_eq!(street.deliver(&event).await.status, 200);
    assert_eq!(gateway.references(), ["pi_1", "pi_2"]);
    gateway.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_shop_and_gateway_leave_books_where_every_payment_stands_once() {
    let mut gateway = RealGateway::start().await;
    let token = gateway.token("1000");
    let mut street = Street::at(&format!("http://{}", gateway.admin), &token).await;
    let mut events = Vec::new();
    let rounds = if is_full() { 60 } else { 6 };
    for n in 0..rounds {
        let page = Visitor::new(&street).buy(&[]).await;
        events.push(street.stripe.pay(&page).1);
        // Everything is told again meanwhile; who is killed, and after how long, differs from round to round.
        let patience = Duration::from_millis(3 + n * 7 % 97);
        let telling = async {
            for event in &events {
                street.deliver(event).await;
            }
        };
        let _ = tokio::time::timeout(patience, telling).await;
        if n % 2 == 0 {
            gateway.kill();
            gateway.resume().await;
        }
        if n % 3 != 1 {
            street.kill_and_restart().await;
        }
    }
    for event in &events {
        let answer = street.deliver(event).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let mut wanted: Vec<String> = (1..=rounds).map(|n| format!("pi_{n}")).collect();
    wanted.sort();
    assert_eq!(gateway.references(), wanted);
    let customers = gateway.json(&["customers", "list"]);
    assert_eq!(
        customers["customers"].as_array().unwrap().len(),
        wanted.len()
    );
    gateway.assert_sound();
}

const LIST: &str = r#"
[[price_list]]
name = "partners"
only = true
price.sim-codex = { input = "1.75", output = "7.25" }
"#;

/// An owner's page has its own prices; a stranger's has the catalog's, and so has its own where nobody knows who it is.
#[tokio::test]
async fn an_owner_sees_the_prices_of_its_list_and_nobody_else_does() {
    let gateway = RealGateway::selling(LIST).await;
    let street = Street::at(&format!("http://{}", gateway.admin), &gateway.token("100")).await;
    let mut owner = Visitor::new(&street);
    let (id, paid) = street.stripe.pay(&owner.buy(&[]).await);
    assert_eq!(street.deliver(&paid).await.status, 200);
    let thanks = owner.get(&format!("/bought?checkout={id}")).await;
    let proof = hidden(&thanks.text, "proof");
    let key = owner
        .post("/key", &[("proof", &proof), ("checkout", &id)])
        .await;
    assert_eq!(key.status, 200, "{}", key.text);
    let customers = gateway.json(&["customers", "list"]);
    let customer = customers["customers"][0]["id"].as_str().unwrap().to_owned();
    let own = format!("/?customer={customer}");
    // Its page, with the catalog's price of this model and with the list's, and whether it has another model.
    let prices = async |visitor: &mut Visitor<'_>, path: &str| {
        let page = visitor.get(path).await.text;
        ["in $2.00 · out $8.00", "in $1.75 · out $7.25", "sim-text"].map(|part| page.contains(part))
    };
    let usual = [true, false, true];
    assert_eq!(prices(&mut owner, &own).await, usual);
    gateway.json(&["customers", "set", &customer, "--price-list", "partners"]);
    assert_eq!(prices(&mut owner, &own).await, [false, true, false]);
    for path in ["/", &own] {
        assert_eq!(
            prices(&mut Visitor::new(&street), path).await,
            usual,
            "{path}"
        );
    }
    gateway.json(&["customers", "set", &customer, "--price-list", "none"]);
    assert_eq!(prices(&mut owner, &own).await, usual);
}

/// Whoever pays has a name; it stands on paper as it was typed, and is nothing but text.
#[tokio::test]
async fn a_name_of_any_kind_stands_on_the_receipt() {
    let gateway = RealGateway::start().await;
    let street = Street::at(&format!("http://{}", gateway.admin), &gateway.token("1000")).await;
    for name in [
        "Zoë \"<b>\" & Söhne 株式会社",
        "</dd><script>alert(1)</script>",
        "O'Brien; DROP TABLE",
        "=cmd|' /C calc'!A0",
        "مرحبا بالعالم",
        "🦀🦀 {{name}} ${name} %00 \\u0000",
        "&lt;&amp;",
    ] {
        let mut visitor = Visitor::new(&street);
        let page = visitor.buy(&[("name", name), ("address", name)]).await;
        let (id, event) = street.stripe.pay(&page);
        assert_eq!(street.deliver(&event).await.status, 200, "{name}");
        let receipt = visitor.get(&format!("/receipt?checkout={id}")).await.text;
        let escaped = (name.replace('&', "&amp;").replace('<', "&lt;"))
            .replace('>', "&gt;")
            .replace('"', "&quot;");
        assert_eq!(receipt.matches(&escaped).count(), 2, "{name}: {receipt}");
        assert!(!receipt.contains("<script>"), "{receipt}");
        let reference = street.stripe.session(&id)["payment_intent"].clone();
        let customers = gateway.json(&["customers", "list"]);
        let customers = customers["customers"].as_array().unwrap();
        let bought = (customers.iter())
            .find(|customer| customer["external_id"] == reference)
            .unwrap();
        let of = bought["id"].as_str().unwrap();
        let paper = gateway.json(&["customers", "receipts", of]);
        assert_eq!(paper["receipts"][0]["name"], name);
        assert_eq!(paper["receipts"][0]["address"], name);
    }
    gateway.assert_sound();
}

/// A buyer pays, and returns as the processor sends it back: as somebody who has paid, whom no budget of strangers holds up.
async fn bought(street: &Street, fields: &[(&str, &str)]) -> (String, String) {
    let mut visitor = Visitor::new(street);
    let page = visitor.buy(fields).await;
    let (id, event) = street.stripe.pay(&page);
    assert_eq!(street.deliver(&event).await.status, 200);
    let back = street.stripe.session(&id)["success_url"].clone();
    let back = back.as_str().unwrap().replace("{CHECKOUT_SESSION_ID}", &id);
    let thanks = visitor.get(&back).await;
    assert_eq!(thanks.status, 200, "{}", thanks.text);
    let receipt = visitor.get(&format!("/receipt?checkout={id}")).await;
    assert_eq!(receipt.status, 200, "{}", receipt.text);
    (receipt.text, thanks.text)
}

/// Anybody can pay for anybody's id, and learns nothing of whose it is.
#[tokio::test]
async fn who_buys_for_a_victim_reads_nothing_of_it() {
    let gateway = RealGateway::start().await;
    let street = Street::at(&format!("http://{}", gateway.admin), &gateway.token("1000")).await;
    let private = [
        ("name", "Victoria Victim"),
        ("address", "13 Hidden Street, Nowhere"),
    ];
    bought(&street, &private).await;
    let victim = gateway.json(&["customers", "list"])["customers"][0].clone();
    let id = victim["id"].as_str().unwrap().to_owned();
    let reference = victim["external_id"].as_str().unwrap().to_owned();
    assert_eq!(victim["label"], "Shop customer");
    let mail = "victoria@victim.example";
    gateway.json(&[
        "customers",
        "set",
        &id,
        "--metadata",
        &format!("mail={mail}"),
    ]);
    let tells_nothing = |text: &str| {
        for private in ["Victoria", "Hidden Street", mail] {
            assert!(!text.contains(private), "{private}: {text}");
        }
    };
    for fields in [
        vec![("customer", id.as_str())],
        vec![("customer", id.as_str()), ("name", "Mallory")],
    ] {
        let (receipt, thanks) = bought(&street, &fields).await;
        tells_nothing(&receipt);
        tells_nothing(&thanks);
        assert_eq!(receipt.contains("Mallory"), fields.len() == 2, "{receipt}");
    }
    // Its id, its payment's reference and its address in every form and path of the shop.
    for typed in [id.as_str(), &reference, mail, "Victoria Victim"] {
        let mut visitor = Visitor::new(&street);
        for path in ["", "bought", "receipt", "key"] {
            for field in ["customer", "checkout", "reference", "name"] {
                tells_nothing(&visitor.get(&format!("/{path}?{field}={typed}")).await.text);
            }
        }
        let page = visitor.get("/").await;
        let proof = hidden(&page.text, "proof");
        for (path, field) in [("/key", "checkout"), ("/checkout", "customer")] {
            let offer = option(&page.text, 0);
            let fields = [("proof", proof.as_str()), (field, typed), ("offer", &offer)];
            tells_nothing(&visitor.post(path, &fields).await.text);
        }
    }
    // The seller's own paper names each payment's own addressee.
    let paper = gateway.json(&["customers", "receipts", &id]);
    let names: Vec<_> = (paper["receipts"].as_array().unwrap().iter())
        .map(|receipt| receipt["name"].clone())
        .collect();
    assert_eq!(json!(names), json!(["Victoria Victim", null, "Mallory"]));
    gateway.assert_sound();
}

/// Erased is erased: from the file with its free pages, from the log and from a backup, while the gateway runs.
#[tokio::test]
async fn nothing_is_left_of_a_buyer_who_was_erased() {
    let gateway = RealGateway::start().await;
    let street = Street::at(&format!("http://{}", gateway.admin), &gateway.token("1000")).await;
    let street_of = |n: usize| format!("No{n:02} Trace Lane {}", "long way ".repeat(30));
    for n in 0..24 {
        let (name, address) = (format!("Tracy{n:02}Trace"), street_of(n));
        bought(&street, &[("name", &name), ("address", &address)]).await;
    }
    let customers = gateway.json(&["customers", "list"]);
    let mut all = Vec::new();
    for customer in customers["customers"].as_array().unwrap() {
        let id = customer["id"].as_str().unwrap().to_owned();
        let shown = gateway.json(&["customers", "show", &id]);
        let name = shown["personal"]["name"].as_str().unwrap().to_owned();
        all.push((id, name));
    }
    assert_eq!(all.len(), 24);
    for (id, name) in &all {
        assert!(!gateway.files_with(name.as_bytes()).is_empty(), "{name}");
        // Described anew, at another length: what it replaces goes, too.
        gateway.json(&["customers", "set", id, "--address", "2 Trace Lane"]);
    }
    let (gone, kept) = all.split_at(18);
    for (id, _) in gone {
        gateway.json(&["customers", "erase", id]);
    }
    gateway.json(&["ledger", "backup", "backup.db"]);
    for (_, name) in gone {
        let nothing: [std::path::PathBuf; 0] = [];
        assert_eq!(gateway.files_with(name.as_bytes()), nothing, "{name}");
        let number = name.trim_start_matches("Tracy").trim_end_matches("Trace");
        let lane = street_of(number.parse().unwrap());
        assert_eq!(
            gateway.files_with(&lane.as_bytes()[..20]),
            nothing,
            "{lane}"
        );
    }
    for (_, name) in kept {
        assert!(!gateway.files_with(name.as_bytes()).is_empty(), "{name}");
    }
    gateway.assert_sound();
}

/// Everything that is told wrongly, too often, too early or twice at once, in one ledger.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_comes_every_payment_stands_once() {
    let mut gateway = RealGateway::start().await;
    let street = Street::at(&format!("http://{}", gateway.admin), &gateway.token("1000")).await;
    // Two tabs of one browser, the second begun when the first was paid; and a browser that never comes back.
    let mut visitor = Visitor::new(&street);
    let first = street.stripe.pay(&visitor.buy(&[]).await);
    let tabs = [first, street.stripe.pay(&visitor.buy(&[]).await)];
    let gone = street.stripe.pay(&Visitor::new(&street).buy(&[]).await);
    let (id, event_of) = &tabs[0];

    let mut foreign = street.stripe.session(id);
    foreign["metadata"]["farebox_shop"] = json!("https://other.example");
    let mut cheaper = street.stripe.session(id);
    cheaper["amount_total"] = json!(1);
    let mut elsewhere = street.stripe.session(id);
    elsewhere["currency"] = json!("huf");
    cheaper["payment_intent"] = json!("pi_cheaper");
    elsewhere["payment_intent"] = json!("pi_elsewhere");
    for (object, status) in [(&foreign, 200), (&cheaper, 200), (&elsewhere, 200)] {
        let told = event("evt_wrong", "checkout.session.completed", object);
        assert_eq!(street.deliver(&told).await.status, status, "{object}");
    }
    let body = event_of.to_string();
    for header in [
        "t=1,v1=00".to_owned(),
        signed("whsec_guessed", now(), &body),
        signed(WEBHOOK_SECRET, now() - 400, &body),
    ] {
        assert_eq!(street.post_callback(&body, &header).await.status, 400);
    }
    // Early news of a payment, while the gateway is there, and the payment while it is not.
    let refund = event("evt_r", "charge.refunded", &street.stripe.charge(id, 595));
    assert_eq!(street.deliver(&refund).await.status, 503);
    assert!(gateway.references().is_empty());
    gateway.kill();
    for told in [event_of, &tabs[1].1, &gone.1, &refund] {
        assert_eq!(street.deliver(told).await.status, 503);
    }
    let waiting = visitor.get(&format!("/bought?checkout={id}")).await;
    assert!(waiting.text.contains("on its way"), "{}", waiting.text);
    gateway.resume().await;
    // Everything again, four times, all at once.
    let all = [event_of, &tabs[1].1, &gone.1, &refund];
    for _ in 0..2 {
        let told = all.iter().flat_map(|told| [told, told]);
        let told: Vec<_> = told.map(|told| street.deliver(told)).collect();
        for answer in join_all(told).await {
            assert!(matches!(answer.status, 200 | 503), "{}", answer.text);
        }
    }
    for told in all {
        assert_eq!(street.deliver(told).await.status, 200);
    }
    assert_eq!(gateway.references(), ["pi_1", "pi_2", "pi_3"]);
    let back: Vec<_> = (gateway.entries().into_iter())
        .filter(|entry| entry["kind"] == "reversal")
        .map(|entry| entry["amount"].clone())
        .collect();
    assert_eq!(back, ["-5.00"]);
    // Each tab has a key of its own; another browser gets neither.
    for (id, _) in &tabs {
        let thanks = visitor.get(&format!("/bought?checkout={id}")).await;
        let proof = hidden(&thanks.text, "proof");
        let fields = [("proof", proof.as_str()), ("checkout", id)];
        assert_eq!(visitor.post("/key", &fields).await.status, 200);
        let mut other = Visitor::new(&street);
        other.get("/").await;
        assert_eq!(other.post("/key", &fields).await.status, 403);
    }
    let customers = gateway.json(&["customers", "list"]);
    let mut balances: Vec<_> = (customers["customers"].as_array().unwrap().iter())
        .map(|customer| customer["balance"].as_str().unwrap().to_owned())
        .collect();
    balances.sort();
    // What came as another sum is kept, on customers of their own.
    assert_eq!(balances, ["0.00", "0.00", "10.00", "10.00", "5.00"]);
    gateway.assert_sound();
}

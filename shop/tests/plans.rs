//! Plans: bought, renewed, changed, ended and paid back, by whom and in which order the processor tells of it.

use serde_json::{Value, json};

use crate::support::gateway::RealGateway;
use crate::support::stripe::plans::paid_event;
use crate::support::stripe::{event, now};
use crate::support::{Answer, Street, Visitor, hidden, option, pay_page};

/// A shop that sells a plan beside credit.
pub(crate) async fn open() -> Street {
    with_plan(Street::open().await).await
}

pub(crate) async fn with_plan(mut street: Street) -> Street {
    street.edit(|file| {
        format!("{file}\n[[offer]]\nplan = \"coder\"\nprice = \"23.80\"\ntax = \"3.80\"\n")
    });
    street.kill_and_restart().await;
    street
}

/// The form of the page's plan.
pub(crate) async fn choose(buyer: &mut Visitor<'_>, path: &str, more: &[(&str, &str)]) -> Answer {
    let page = buyer.get(path).await;
    let plan = option(&page.text, 2);
    let fields = [&[("offer", plan.as_str())], more].concat();
    buyer.send_form(&page, &fields).await
}

/// A stranger's plan: the checkout, the subscription, and the events about checkout and invoice.
async fn subscribed(buyer: &mut Visitor<'_>) -> (String, String, [Value; 2]) {
    let onward = choose(buyer, "/", &[("name", "Ada")]).await;
    assert_eq!(onward.status, 200, "{}", onward.text);
    buyer.street.stripe.subscribe(&pay_page(&onward))
}

async fn told(street: &Street, event: &Value) -> String {
    let answer = street.deliver(event).await;
    assert_eq!(answer.status, 200, "{event}: {}", answer.text);
    answer.text
}

async fn not_yet(street: &Street, event: &Value) {
    let answer = street.deliver(event).await;
    assert_eq!(answer.status, 503, "{event}: {}", answer.text);
}

#[tokio::test]
async fn a_stranger_buys_a_plan_gets_a_key_and_the_processors_portal() {
    let street = open().await;
    let mut buyer = Visitor::new(&street);
    let page = buyer.get("/").await;
    for part in [
        "Coder, monthly",
        "23.80 EUR each month",
        "25.00 USD to use, 4.00 per 5h",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let (id, sub, [completed, paid]) = subscribed(&mut buyer).await;
    let form = street.stripe.begun().pop().unwrap().form;
    assert_eq!(form["line_items[0][price_data][unit_amount]"], "2380");
    assert_eq!(
        form["line_items[0][price_data][recurring][interval]"],
        "month"
    );
    assert_eq!(form["subscription_data[metadata][farebox_credit]"], "25.00");
    assert_eq!(street.books.reserved(), 1);
    told(&street, &completed).await;
    assert!(
        street.books.payments().is_empty(),
        "the invoice tells of it"
    );
    for _ in 0..3 {
        told(&street, &paid).await;
    }
    assert_eq!(
        (street.books.payments().len(), street.books.reserved()),
        (1, 0)
    );
    let intent = street.stripe.intent("in_1");
    let body = street.books.payment(&intent).body;
    let invoiced_at = body["invoiced_at"].clone();
    assert_eq!(
        body,
        json!({ "plan": "coder", "reference": intent, "currency": "EUR", "gross": "23.80", "tax": "3.80",
            "expected_currency": "EUR", "expected_gross": "23.80", "processor": sub, "invoiced_at": invoiced_at,
            "allowance": "25.00", "name": "Ada", "reservation": "r_1" })
    );
    let thanks = buyer.get(&format!("/bought?checkout={id}")).await;
    for part in [
        "Coder, monthly was booked for 23.80 EUR",
        "12.50 of 25.00 USD",
        "next payment at 2026-12-30 10:00 UTC",
    ] {
        assert!(thanks.text.contains(part), "{part}: {}", thanks.text);
    }
    let (proof, checkout) = (
        hidden(&thanks.text, "proof"),
        hidden(&thanks.text, "checkout"),
    );
    let key = buyer
        .post("/key", &[("proof", &proof), ("checkout", &checkout)])
        .await;
    assert!(
        key.text.contains("sk-fb-") && key.text.contains("12.50 of 25.00 USD"),
        "{}",
        key.text
    );
    // The browser that paid is its owner from now on; nobody else is.
    let customer = street.books.customers()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let subscription = hidden(&thanks.text, "subscription");
    let mut stranger = Visitor::new(&street);
    let page = stranger.get(&format!("/?customer={customer}")).await;
    assert!(
        !page.text.contains("What you have left") && !page.text.contains("Coder"),
        "{}",
        page.text
    );
    let theirs = hidden(&page.text, "proof");
    let fields = |proof| {
        [
            ("proof", proof),
            ("customer", &*customer),
            ("subscription", &*subscription),
        ]
    };
    assert_eq!(stranger.post("/portal", &fields(&theirs)).await.status, 403);
    assert_eq!(stranger.post("/portal", &fields(&proof)).await.status, 403);
    let onward = buyer.post("/portal", &fields(&proof)).await;
    assert!(
        onward.text.contains("https://billing.example/pay/bps_1"),
        "{}",
        onward.text
    );
    assert_eq!(street.stripe.portals()[0]["customer"], "cus_1");
    let other = [
        ("proof", &*proof),
        ("customer", &*customer),
        ("subscription", "s_of_others"),
    ];
    assert_eq!(buyer.post("/portal", &other).await.status, 404);
    let page = buyer.get(&format!("/?customer={customer}")).await;
    assert!(page.text.contains("What you have left"), "{}", page.text);
}

#[tokio::test]
async fn periods_are_booked_once_each_in_any_order_and_late() {
    let street = open().await;
    let (_, sub, [_, first]) = subscribed(&mut Visitor::new(&street)).await;
    let second = street
        .stripe
        .invoice(&sub, "in_second", "subscription_cycle");
    let mut third = street
        .stripe
        .invoice(&sub, "in_third", "subscription_cycle");
    // Processors draft an invoice, and charge it an hour later.
    third["created"] = json!(now() - 3_600);
    for paid in [
        paid_event(&third),
        first.clone(),
        paid_event(&second),
        first,
        paid_event(&third),
    ] {
        told(&street, &paid).await;
    }
    assert_eq!(street.books.payments().len(), 3);
    assert_eq!(
        street.books.customers().len(),
        1,
        "one customer, whichever came first"
    );
    assert_eq!(street.books.subscription(&sub)["paid"], 3);
    let late = street.books.payment(&street.stripe.intent("in_third")).body;
    let asked: farebox_ledger::Timestamp =
        serde_json::from_value(late["invoiced_at"].clone()).unwrap();
    assert_eq!(asked.millis() / 1_000, third["created"].as_i64().unwrap());
}

#[tokio::test]
async fn what_is_no_whole_paid_period_is_told_and_books_nothing() {
    let street = open().await;
    let (_, sub, _) = subscribed(&mut Visitor::new(&street)).await;
    let line = |change: fn(&mut Value)| {
        let mut odd = street.stripe.invoice(&sub, "in_odd", "subscription_cycle");
        change(&mut odd);
        paid_event(&odd)
    };
    for (odd, why) in [
        (line(|of| of["amount_paid"] = json!(0)), "nothing was paid"),
        (
            line(|of| of["lines"]["data"][0]["quantity"] = json!(2)),
            "its quantity is 2",
        ),
        (
            line(|of| {
                of["lines"]["data"][0]["parent"]["subscription_item_details"]["proration"] =
                    json!(true)
            }),
            "a part of a period",
        ),
        (
            line(|of| {
                let line = of["lines"]["data"][0].clone();
                of["lines"]["data"].as_array_mut().unwrap().push(line);
            }),
            "it has 2 lines",
        ),
        (
            line(|of| of["billing_reason"] = json!("subscription_update")),
            "it is of subscription_update",
        ),
        (
            line(|of| of["billing_reason"] = json!("manual")),
            "it is of manual",
        ),
        (
            line(|of| of["id"] = json!("in_paid_otherwise")),
            "not by one card payment",
        ),
    ] {
        let text = told(&street, &odd).await;
        assert!(text.contains(why), "{why}: {text}");
        street.shop.says(why).await;
    }
    let mut failed = street
        .stripe
        .invoice(&sub, "in_failed", "subscription_cycle");
    failed["amount_paid"] = json!(0);
    told(
        &street,
        &event("evt_failed", "invoice.payment_failed", &failed),
    )
    .await;
    street.shop.says("in_failed of sub_1 was not paid").await;
    // Of another shop, of none, and what nobody can read.
    let foreign = line(|of| {
        of["parent"]["subscription_details"]["metadata"]["farebox_shop"] =
            json!("https://other.example");
    });
    told(&street, &foreign).await;
    told(&street, &line(|of| of["parent"] = Value::Null)).await;
    let spoilt =
        line(|of| of["parent"]["subscription_details"]["metadata"]["farebox_price"] = json!("x"));
    assert_eq!(street.deliver(&spoilt).await.status, 422);
    street.stripe.down(true);
    not_yet(&street, &line(|_| ())).await;
    assert!(street.books.payments().is_empty() && street.books.customers().is_empty());
}

#[tokio::test]
async fn a_plan_that_is_gone_or_costs_something_else_is_kept_as_unapplied() {
    let street = open().await;
    let (_, sub, [_, first]) = subscribed(&mut Visitor::new(&street)).await;
    told(&street, &first).await;
    let mut dearer = street
        .stripe
        .invoice(&sub, "in_dearer", "subscription_cycle");
    dearer["amount_paid"] = json!(2_500);
    told(&street, &paid_event(&dearer)).await;
    let status = |invoice| street.books.payment(&street.stripe.intent(invoice)).status;
    assert_eq!(status("in_dearer"), "unapplied");
    street.books.state.lock().unwrap().plans.sold.clear();
    let gone = street.stripe.invoice(&sub, "in_gone", "subscription_cycle");
    for _ in 0..2 {
        told(&street, &paid_event(&gone)).await;
    }
    assert_eq!((status("in_1"), status("in_gone")), ("booked", "unapplied"));
    let (code, said) = street.check(&[]).await;
    assert!(
        code == 78 && said.contains("the gateway sells no plan `coder`"),
        "{said}"
    );
}

#[tokio::test]
async fn another_plan_and_an_end_are_told_in_any_order() {
    let street = open().await;
    let (_, sub, [_, first]) = subscribed(&mut Visitor::new(&street)).await;
    let plan =
        |name: &'static str| move |of: &mut Value| of["metadata"]["farebox_plan"] = json!(name);
    let to_team = street.stripe.change(&sub, "evt_team", plan("team"));
    not_yet(&street, &to_team).await;
    told(&street, &first).await;
    told(&street, &to_team).await;
    assert_eq!(street.books.subscription(&sub)["plan"], "team");
    told(&street, &street.stripe.change(&sub, "evt_same", |_| ())).await;
    // An older message comes after a newer one: what counts is how the subscription is now.
    let back = street.stripe.change(&sub, "evt_back", plan("coder"));
    told(&street, &back).await;
    told(&street, &to_team).await;
    assert_eq!(street.books.subscription(&sub)["plan"], "coder");
    let unknown = street.stripe.change(&sub, "evt_unknown", plan("nothing"));
    assert!(told(&street, &unknown).await.contains("invalid_field"));
    told(
        &street,
        &street.stripe.change(&sub, "evt_known", plan("coder")),
    )
    .await;

    let before = street
        .stripe
        .invoice(&sub, "in_before", "subscription_cycle");
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let end = street.stripe.cancel(&sub);
    for _ in 0..2 {
        told(&street, &end).await;
    }
    assert_eq!(street.books.subscription(&sub)["status"], "ended");
    told(&street, &to_team).await;
    // What was asked for before the end still renews; what is asked for later does not.
    told(&street, &paid_event(&before)).await;
    let mut after = street
        .stripe
        .invoice(&sub, "in_after", "subscription_cycle");
    after["created"] = json!(now() + 10);
    told(&street, &paid_event(&after)).await;
    let status = |invoice| street.books.payment(&street.stripe.intent(invoice)).status;
    assert_eq!(
        (status("in_before"), status("in_after")),
        ("booked", "unapplied")
    );
}

#[tokio::test]
async fn an_end_before_its_first_payment_waits_for_it() {
    let street = open().await;
    let (_, sub, [_, first]) = subscribed(&mut Visitor::new(&street)).await;
    let end = street.stripe.cancel(&sub);
    not_yet(&street, &end).await;
    told(&street, &first).await;
    told(&street, &end).await;
    assert_eq!(street.books.subscription(&sub)["status"], "ended");
}

/// Waits until so many ends were asked of the processor.
async fn asked_for_ends(street: &Street, count: usize) {
    for _ in 0..1_500 {
        if street.stripe.ends().len() >= count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{:?}", street.stripe.ends());
}

#[tokio::test]
async fn an_end_that_an_owner_wants_is_asked_of_the_processor_once() {
    let mut street = open().await;
    let (_, sub, [_, first]) = subscribed(&mut Visitor::new(&street)).await;
    told(&street, &first).await;
    street.books.want_end(None);
    street.books.want_end(Some("sub_of_others"));
    street.stripe.down(true);
    street.books.want_end(Some(&sub));
    street.shop.says("what the gateway asks for waits").await;
    street.stripe.down(false);
    asked_for_ends(&street, 1).await;
    let (key, form) = street.stripe.ends().remove(0);
    assert_eq!(key, "farebox-end-evt_end3");
    let form: Vec<_> = form
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let asked = [
        ("cancel_at_period_end", "true"),
        ("metadata[farebox_end]", "evt_end3"),
    ];
    assert_eq!(form, asked);
    // What the shop wrote there is no other plan; the end itself follows from the processor's message.
    let renamed = street
        .stripe
        .change(&sub, "evt_1", |of| of["metadata"]["other"] = json!("x"));
    assert!(told(&street, &renamed).await.contains("is coder already"));
    assert_eq!(street.books.subscription(&sub)["status"], "active");
    // Its owner took it back at the processor: a shop that starts again reads the wish again, and does nothing more for it.
    let back = |of: &mut Value| of["cancel_at_period_end"] = json!(false);
    told(&street, &street.stripe.change(&sub, "evt_2", back)).await;
    street.kill_and_restart().await;
    street.shop.says("no more renewals").await;
    street.books.want_end(Some(&sub));
    asked_for_ends(&street, 2).await;
    assert_eq!(street.stripe.ends()[1].0, "farebox-end-evt_end4");
    told(&street, &street.stripe.cancel(&sub)).await;
    assert_eq!(street.books.subscription(&sub)["status"], "ended");
}

#[tokio::test]
async fn what_goes_back_of_a_renewal_finds_its_payment() {
    let street = open().await;
    let (_, sub, [_, first]) = subscribed(&mut Visitor::new(&street)).await;
    told(&street, &first).await;
    let second = street
        .stripe
        .invoice(&sub, "in_second", "subscription_cycle");
    let intent = street.stripe.intent("in_second");
    let refund = event(
        "evt_r",
        "charge.refunded",
        &street.stripe.charge(&intent, 1_190),
    );
    let dispute = street
        .stripe
        .dispute(&intent, "dp_1", 2_380, "needs_response");
    let dispute = event("evt_d", "charge.dispute.funds_withdrawn", &dispute);
    for early in [&refund, &dispute] {
        not_yet(&street, early).await;
    }
    told(&street, &paid_event(&second)).await;
    for _ in 0..2 {
        told(&street, &refund).await;
        told(&street, &dispute).await;
    }
    let registers = street.books.payment(&intent).registers;
    let shown = ["refund", "dispute"].map(|kind| registers[kind].to_string());
    assert_eq!(shown, ["11.90", "23.80"]);
    // The same account sells something else.
    let mut other = street.stripe.charge(&intent, 1_190);
    other["payment_intent"] = json!("pi_of_others");
    told(&street, &event("evt_o", "charge.refunded", &other)).await;
}

/// The same with a real ledger: bought, renewed late, another allowance by then, paid back, ended.
#[tokio::test]
async fn the_real_gateway_keeps_a_subscription_as_it_is_told() {
    let plan = |allowance: &str| {
        format!(
            "[[plan]]\nname = \"coder\"\ntitle = \"Coder, monthly\"\nprice = \"20.00\"\nallowance = \"{allowance}\"\nperiod = \"month\"\n"
        )
    };
    let mut gateway = RealGateway::selling(&plan("25.00")).await;
    let token = gateway.token("200");
    let street = with_plan(Street::at(&format!("http://{}", gateway.admin), &token).await).await;
    let mut buyer = Visitor::new(&street);
    let (id, sub, [completed, first]) = subscribed(&mut buyer).await;
    let second = street
        .stripe
        .invoice(&sub, "in_second", "subscription_cycle");
    for paid in [&completed, &first, &paid_event(&second), &first] {
        told(&street, paid).await;
    }
    let thanks = buyer.get(&format!("/bought?checkout={id}")).await;
    assert!(
        thanks.text.contains("25.00 of 25.00 USD"),
        "{}",
        thanks.text
    );
    let intent = street.stripe.intent("in_second");
    let refund = event(
        "evt_r",
        "charge.refunded",
        &street.stripe.charge(&intent, 2_380),
    );
    told(&street, &refund).await;
    gateway.kill();
    gateway.sell(&plan("30.00"));
    gateway.resume().await;
    let third = street
        .stripe
        .invoice(&sub, "in_third", "subscription_cycle");
    assert!(
        told(&street, &paid_event(&third))
            .await
            .contains("unapplied")
    );
    for _ in 0..2 {
        told(&street, &street.stripe.cancel(&sub)).await;
    }
    let thanks = buyer.get(&format!("/bought?checkout={id}")).await;
    assert!(
        thanks.text.contains("paid until") && !thanks.text.contains("/portal"),
        "{}",
        thanks.text
    );
    gateway.assert_sound();
}

/// An owner who came from the dashboard, sent to pay for the plan.
async fn owner_pays<'street>(
    street: &'street Street,
    customer: &str,
) -> (Visitor<'street>, String) {
    let link = "ab".repeat(32);
    let known = (link.clone(), customer.to_owned());
    street.books.state.lock().unwrap().links.extend([known]);
    let mut owner = Visitor::new(street);
    assert_eq!(owner.get(&format!("/?link={link}")).await.status, 303);
    let onward = own_plan(&mut owner, customer).await;
    assert_eq!(onward.status, 200, "{}", onward.text);
    (owner, pay_page(&onward))
}

async fn own_plan(owner: &mut Visitor<'_>, customer: &str) -> Answer {
    let page = format!("/?customer={customer}");
    choose(owner, &page, &[("customer", customer)]).await
}

#[tokio::test]
async fn nobody_buys_a_plan_for_a_victim_and_an_owner_does() {
    let street = open().await;
    let victim = street.books.customer();
    let mut stranger = Visitor::new(&street);
    let page = stranger.get(&format!("/?customer={victim}")).await;
    assert!(!page.text.contains("Coder"), "{}", page.text);
    let refused = choose(&mut stranger, "/", &[("customer", &victim)]).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("Only its owner"), "{}", refused.text);
    let refused = choose(&mut stranger, "/", &[("again", "on"), ("per_month", "2")]).await;
    assert!(
        refused.text.contains("renewed by itself"),
        "{}",
        refused.text
    );
    assert!(street.stripe.begun().is_empty());

    let (_owner, page) = owner_pays(&street, &victim).await;
    let (_, sub, [_, first]) = street.stripe.subscribe(&page);
    // It is gone when the money comes: the money is somebody's all the same, and what follows is of the same one.
    let document = street.books.state.lock().unwrap().customers.remove(&victim);
    told(&street, &first).await;
    street
        .books
        .state
        .lock()
        .unwrap()
        .customers
        .insert(victim.clone(), document.unwrap());
    let made = street.books.payment(&street.stripe.intent("in_1")).customer;
    assert_ne!(made, victim);
    told(&street, &street.stripe.cancel(&sub)).await;
    assert_eq!(street.books.subscription(&sub)["status"], "ended");
}

#[tokio::test]
async fn who_has_a_plan_does_not_pay_for_it_twice() {
    let street = open().await;
    let customer = street.books.customer();
    let (mut owner, page) = owner_pays(&street, &customer).await;
    let (_, sub, [completed, paid]) = street.stripe.subscribe(&page);
    for event in [&completed, &paid] {
        told(&street, event).await;
    }
    // The shop did not make this customer and cannot read its plans: the gateway says so before there is a checkout.
    let begun = street.stripe.begun().len();
    let refused = own_plan(&mut owner, &customer).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert!(
        refused.text.contains("You have this plan"),
        "{}",
        refused.text
    );
    assert_eq!(
        (street.stripe.begun().len(), street.books.reserved()),
        (begun, 0)
    );
    // Once it is renewed no more, it is sold again.
    told(&street, &street.stripe.cancel(&sub)).await;
    assert_eq!(own_plan(&mut owner, &customer).await.status, 200);
}

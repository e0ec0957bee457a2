//! Owners and members: who makes, bounds, rotates and blocks keys, and what a member is told of its customer's money.

use std::time::Duration;

use farebox_ledger::key::Change;
use farebox_ledger::{
    Amount, Cap, CapInterval, CustomerAct, CustomerChange, KeyQuery, KeySettings, Perform, Refill,
    SecretHash, TopUpRule,
};
use serde_json::json;

use super::dashboard::{has_browser, signed_in};
use super::seller::SHOP;
use super::sessions::{Visitor, gateway};
use crate::support::browser::{Browser, DESKTOP, PHONE, Window};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, CATALOG, Gateway, TestKey, act, chat, routes, talking};

/// The name of the forms of a page.
fn once(page: &Answer) -> String {
    let field = r#"name="once" value=""#;
    let value = page.text.split(field).nth(1).expect("a form of an owner");
    value.split('"').next().unwrap().to_owned()
}

/// The secret that a page shows once, of the key that it names.
fn secret(page: &Answer) -> TestKey {
    let secret = page
        .text
        .split("id=\"new-secret\">")
        .nth(1)
        .expect("a secret");
    let secret = secret.split('<').next().unwrap().to_owned();
    let (id, _) = farebox_ledger::Secret::parse(&secret).unwrap();
    TestKey { id, secret }
}

/// A visitor may open ten pages a second.
async fn unhurried() {
    tokio::time::sleep(Duration::from_millis(120)).await;
}

/// Posts a form of an owner's page, as its browser would.
async fn send(visitor: &Visitor<'_>, path: &str, fields: &[(&str, &str)]) -> Answer {
    unhurried().await;
    let once = once(&visitor.get("/keys").await);
    unhurried().await;
    let all: Vec<(&str, &str)> = [("once", once.as_str())]
        .into_iter()
        .chain(fields.iter().copied())
        .collect();
    visitor.post(path, &all, None).await
}

async fn ask(gateway: &Gateway, key: &TestKey) -> u16 {
    gateway
        .post("/v1/chat/completions", key, &chat("test-model", false))
        .await
        .status
}

async fn told(gateway: &Gateway, key: &TestKey) -> serde_json::Value {
    gateway.get("/v1/key", key).await.json()["data"].clone()
}

#[tokio::test]
async fn an_owner_makes_bounds_rotates_and_blocks_keys() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("5.00").await;
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get("/keys").await;
    let form = [
        ("once", once(&page)),
        ("label", "web".to_owned()),
        ("limit", "1.00".to_owned()),
        ("interval", "day".to_owned()),
    ];
    let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
    let made = visitor.post("keys", &form, None).await;
    assert_eq!(made.status, 200, "{}", made.text);
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let web = secret(&made);
    assert_eq!(ask(&gateway, &web).await, 200);
    let own = told(&gateway, &web).await;
    assert_eq!(
        (&own["label"], &own["limit"], &own["limit_reset"]),
        (&json!("web"), &json!(1.0), &json!("daily"))
    );
    assert_eq!(own["disabled"], false);

    // The same form again, from the back button, makes no second key.
    let again = visitor.post("keys", &form, None).await;
    assert_eq!(again.status, 422);
    assert!(
        again.text.contains("This form was sent before"),
        "{}",
        again.text
    );
    let customer = gateway.account(&owner).await.customer.id;
    let all = KeyQuery {
        customer: Some(customer),
        limit: 9,
        ..KeyQuery::default()
    };
    assert_eq!(gateway.ledger.list_keys(all).await.unwrap().len(), 2);

    let path = |deed: &str| format!("keys/{}/{deed}", web.id);
    let rotated = send(&visitor, &path("rotate"), &[("overlap", "")]).await;
    let fresh = secret(&rotated);
    assert_eq!(
        (
            fresh.id,
            ask(&gateway, &fresh).await,
            ask(&gateway, &web).await
        ),
        (web.id, 200, 401)
    );

    assert_eq!(send(&visitor, &path("block"), &[]).await.status, 303);
    assert_eq!(ask(&gateway, &fresh).await, 403);
    assert_eq!(send(&visitor, &path("unblock"), &[]).await.status, 303);
    assert_eq!(ask(&gateway, &fresh).await, 200);
    gateway.change(&fresh, Change::Block).await;
    let refused = send(&visitor, &path("unblock"), &[]).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.text.contains("The seller has blocked this key"),
        "{}",
        refused.text
    );
    assert_eq!(ask(&gateway, &fresh).await, 403);
    gateway.change(&fresh, Change::Unblock).await;

    let cleared = send(&visitor, &path("caps/clear"), &[("interval", "day")]).await;
    assert_eq!(cleared.status, 303, "{}", cleared.text);
    assert_eq!(told(&gateway, &fresh).await["limit_reset"], json!(null));
    for (limit, words) in [
        ("0", "more than zero"),
        ("five", "US dollars"),
        ("", "US dollars"),
    ] {
        let refused = send(&visitor, "caps", &[("interval", "week"), ("limit", limit)]).await;
        assert_eq!(refused.status, 422);
        assert!(refused.text.contains(words), "{limit}: {}", refused.text);
    }
    let all_keys = send(&visitor, "caps", &[("interval", "week"), ("limit", "0.50")]).await;
    assert_eq!(all_keys.status, 303, "{}", all_keys.text);
    assert_eq!(told(&gateway, &owner).await["limit_reset"], "weekly");
    let acts = gateway
        .ledger
        .audit(Some(customer.into()), None, 50)
        .await
        .unwrap();
    let by_owner = acts
        .iter()
        .filter(|act| act.actor == format!("owner key {}", owner.id));
    assert_eq!(
        by_owner.count(),
        7,
        "make and its cap, rotate, block, unblock, clear a cap, set one: {acts:?}"
    );
}

#[tokio::test]
async fn a_member_is_told_of_nothing_but_itself() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("7319.31").await;
    let member = gateway
        .member(
            &owner,
            KeySettings {
                label: "class".to_owned(),
                ..KeySettings::default()
            },
        )
        .await;
    let cap = Cap {
        interval: CapInterval::Month,
        model: None,
        limit: farebox_ledger::Amount::from_usd_str("1").unwrap(),
    };
    gateway.change(&member, Change::SetCap(cap)).await;
    let answer = gateway
        .post("/v1/chat/completions", &owner, &chat("test-model", false))
        .await;
    let foreign = answer.header("x-request-id").unwrap().to_owned();
    let answer = gateway
        .post("/v1/chat/completions", &member, &chat("test-model", false))
        .await;
    let (cost, left) = (
        answer.header("x-farebox-cost").unwrap(),
        answer.header("x-farebox-balance").unwrap(),
    );
    assert!(left.starts_with("0.99"), "{left}: one dollar less {cost}");
    let own = told(&gateway, &member).await;
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    assert_eq!(
        (text(&own["balance"]), text(&own["key_spent"])),
        (left.to_owned(), cost.to_owned())
    );
    assert_eq!(own["limit_remaining"].to_string(), left);
    assert_eq!(own["usage"].to_string(), cost);

    let visitor = Visitor::signed_in(&gateway, &member).await;
    let mine = format!("/requests/{}", answer.header("x-request-id").unwrap());
    let mut seen = String::new();
    for view in [
        "",
        "/requests",
        &mine,
        "/setup",
        "/models",
        "/usage.json",
        "/requests.csv",
        "/requests.json",
    ] {
        unhurried().await;
        let page = visitor.get(view).await;
        assert_eq!(page.status, 200, "{view}");
        seen.push_str(&page.text);
    }
    for path in [
        "/v1/credits",
        "/user/balance",
        "/api/usage/token",
        "/v1/usage",
        "/v1/dashboard/billing/subscription",
    ] {
        seen.push_str(&gateway.get(path, &member).await.text);
    }
    seen.push_str(
        &gateway
            .get(
                &format!(
                    "/v1/generation?id={}",
                    answer.header("x-request-id").unwrap()
                ),
                &member,
            )
            .await
            .text,
    );
    for hidden in [
        // With its point, which no id has, and longer than the seconds of an instant.
        "7319.",
        "7,319",
        &foreign,
        &owner.id.to_string(),
        "/dashboard/payments",
        "/dashboard/keys",
    ] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
    for view in ["/payments", "/keys", &format!("/keys/{}", owner.id)] {
        unhurried().await;
        assert_eq!(visitor.get(view).await.status, 403, "{view}");
    }
    assert_eq!(
        visitor.get(&format!("/requests/{foreign}")).await.status,
        404
    );
    for (path, fields) in [
        ("keys", ("label", "more")),
        ("caps", ("limit", "9")),
        ("low-balance", ("limit", "9")),
    ] {
        unhurried().await;
        assert_eq!(
            visitor
                .post(path, &[("once", "1-1"), fields], None)
                .await
                .status,
            403,
            "{path}"
        );
    }
    let path = format!("keys/{}/caps/clear", member.id);
    assert_eq!(
        visitor
            .post(&path, &[("interval", "month")], None)
            .await
            .status,
        403
    );
    assert_eq!(gateway.account(&member).await.caps.iter().count(), 1);

    // The owner sees both, and whose they are.
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get("/requests").await.text;
    assert_eq!(page.matches("data-label=\"Receipt\"").count(), 2, "{page}");
    assert!(page.contains(">class</td>"), "{page}");
    let page = visitor
        .get(&format!("/requests?key={}", member.id))
        .await
        .text;
    assert_eq!(page.matches("data-label=\"Receipt\"").count(), 1, "{page}");
    assert_eq!(visitor.get(&mine).await.status, 200);
    assert!(visitor.get("/payments").await.text.contains("Top-up"));
}

#[tokio::test]
async fn an_owner_manages_only_its_own_customer_and_from_its_own_pages() {
    let (_upstream, gateway) = gateway().await;
    let (owner, stranger) = (gateway.owner("5.00").await, gateway.owner("5.00").await);
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    for deed in ["block", "rotate", "caps/clear"] {
        let path = format!("keys/{}/{deed}", stranger.id);
        assert_eq!(
            send(&visitor, &path, &[("interval", "day")]).await.status,
            404,
            "{deed}"
        );
    }
    assert_eq!(
        send(&visitor, "keys/nonsense/caps/clear", &[("interval", "day")])
            .await
            .status,
        404
    );
    assert_eq!(
        visitor.get(&format!("/keys/{}", stranger.id)).await.status,
        404
    );
    assert_eq!(ask(&gateway, &stranger).await, 200);
    let own = send(&visitor, &format!("keys/{}/block", owner.id), &[]).await;
    assert_eq!(own.status, 422, "it would lock itself out");
    let form = [
        ("once", once(&visitor.get("/keys").await)),
        ("label", "evil".to_owned()),
    ];
    let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(
        visitor
            .post("keys", &form, Some("https://evil.example"))
            .await
            .status,
        403
    );
    let old = visitor
        .post("keys", &[("once", "1-1"), ("label", "old")], None)
        .await;
    assert_eq!(old.status, 422);
    assert!(old.text.contains("too old"), "{}", old.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_needs_no_scripts_and_every_view_is_accessible() {
    if !has_browser() {
        return;
    }
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("5.00").await;
    for (name, window) in [
        ("desktop", DESKTOP),
        (
            "desktop-dark",
            Window {
                dark: true,
                ..DESKTOP
            },
        ),
        (
            "phone",
            Window {
                dark: false,
                ..PHONE
            },
        ),
        ("phone-dark", PHONE),
    ] {
        let browser = signed_in(&gateway, &owner, window).await;
        for (page, path) in [
            ("keys", "keys".to_owned()),
            ("key", format!("keys/{}", owner.id)),
            ("owner", "requests".to_owned()),
        ] {
            browser
                .go(&format!("{}/dashboard/{path}", gateway.base))
                .await;
            browser.assert_accessible(&format!("{name} {page}")).await;
            assert!(browser.overhang().await <= 0, "{name} {page}");
            browser.picture(&format!("{page}-{name}")).await;
        }
    }
    let plain = Window {
        scripts: false,
        ..DESKTOP
    };
    let browser = Browser::open(&gateway.client, plain).await;
    browser.go(&format!("{}/dashboard", gateway.base)).await;
    browser.type_into("#key", &owner.secret).await;
    browser.press("form .primary").await;
    browser.press("nav a[href='/dashboard/keys']").await;
    browser.type_into("#label", "class").await;
    browser.type_into("#new-limit", "0.25").await;
    browser.press("form[action='/dashboard/keys'] button").await;
    browser.shows("#new-secret", "sk-fb-").await;
    browser.press("main a[href^='/dashboard/keys/k_']").await;
    browser.shows("h1", "class").await;
    browser.shows(".caps", "0.25").await;
    browser.press("form[action$='/caps/clear'] button").await;
    browser.shows(".empty", "None.").await;
}

/// By a form, so that no address that somebody follows does it.
#[tokio::test]
async fn an_owner_goes_to_the_shop_and_switches_auto_top_up_off() {
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let catalog = format!("{SHOP}{CATALOG}");
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    let owner = gateway.owner("5.00").await;
    let customer = gateway.account(&owner).await.customer.id;
    let rule = TopUpRule {
        threshold: Amount::from_usd_str("7").unwrap(),
        refill: Refill::Amount(Amount::from_usd_str("20").unwrap()),
        per_month: 3,
    };
    for change in [
        CustomerAct::SetAutoTopUp(rule, None),
        CustomerAct::FailTopUp {
            number: 4,
            reason: Some("card_declined".to_owned()),
        },
    ] {
        let act = act();
        let change = CustomerChange {
            customer,
            change,
            act,
        };
        gateway.ledger.perform(change).await.unwrap();
    }
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    let page = visitor.get("/keys").await;
    for told in [&*rule.to_string(), "card_declined", "Switch it off"] {
        assert!(page.text.contains(told), "{told}: {}", page.text);
    }
    let way = send(&visitor, "shop", &[]).await;
    let url = way
        .text
        .split("top-up?from=page&amp;to=us&amp;link=")
        .nth(1);
    let token = url.unwrap().get(..64).unwrap();
    assert!(
        token.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{token}"
    );
    // It is no way into the dashboard.
    let hash = SecretHash::of(token);
    let entered = gateway
        .ledger
        .consume_link(hash, farebox::clock::now())
        .await;
    assert_eq!(entered.unwrap(), None);
    assert_eq!(send(&visitor, "auto-top-up/end", &[]).await.status, 303);
    let left = gateway.account(&owner).await.customer.auto_top_up;
    assert_eq!(left.unwrap().rule, None);
    // A member does neither.
    let member = gateway.member(&owner, KeySettings::default()).await;
    let visitor = Visitor::signed_in(&gateway, &member).await;
    for path in ["shop", "auto-top-up/end"] {
        unhurried().await;
        let refused = visitor.post(path, &[("once", "1-1")], None).await;
        assert_eq!(refused.status, 403, "{path}");
    }
}

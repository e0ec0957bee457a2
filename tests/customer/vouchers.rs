//! Vouchers over HTTP, with a key and on the dashboard: every spelling, one winner in a race, guesses, and the one refusal.

use std::collections::BTreeSet;

use farebox::clock;
use farebox_ledger::key::Change;
use farebox_ledger::{Lot, LotId, NewLot, Perform, Said, Timestamp, VoidLot, VoucherCode};
use serde_json::{Value, json};

use super::dashboard::{has_browser, signed_in};
use super::sessions::{Visitor, gateway};
use crate::support::browser::{Browser, DESKTOP, PHONE, Window};
use crate::support::{Answer, Gateway, TestKey, act};

const UNKNOWN: &str = "this voucher is not known, or can no longer be redeemed";

/// Makes a lot of vouchers that are worth 5 dollars each.
async fn lot(
    gateway: &Gateway,
    count: usize,
    change: impl FnOnce(&mut NewLot),
) -> (Lot, Vec<String>) {
    let codes: Vec<VoucherCode> = (0..count)
        .map(|_| VoucherCode::generate(clock::random()))
        .collect();
    let mut new = NewLot {
        id: LotId::from_random(u64::from_be_bytes(clock::random())),
        codes: codes.iter().map(VoucherCode::hash).collect(),
        amount: farebox_ledger::Amount::from_usd_str("5").unwrap(),
        expires_at: None,
        once_per_customer: false,
        kind: farebox_ledger::GrantKind::Promotional,
        plan: None,
        act: act(),
    };
    change(&mut new);
    let lot = gateway.ledger.perform(new).await.unwrap();
    let codes = codes.iter().map(|code| code.reveal().to_owned()).collect();
    (lot, codes)
}

async fn redeem(gateway: &Gateway, key: &TestKey, code: &str) -> Answer {
    gateway
        .post("/v1/vouchers", key, &json!({ "code": code }))
        .await
}

async fn balance(gateway: &Gateway, key: &TestKey) -> String {
    let account = gateway.account(key).await.customer.account;
    account.balance().to_string()
}

/// A code of the right form that nobody made.
fn guess() -> String {
    VoucherCode::generate(clock::random()).reveal().to_owned()
}

#[tokio::test]
async fn a_voucher_is_credited_once_however_it_is_typed() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("0").await;
    let (lot, codes) = lot(&gateway, 2, |_| {}).await;
    let first = redeem(&gateway, &key, &codes[0]).await;
    assert_eq!(first.status, 200, "{}", first.text);
    assert_eq!(first.header("cache-control"), Some("no-store"));
    let told = first.json();
    let reference = format!("voucher:{}-1", lot.id);
    assert_eq!(
        (&told["amount"], &told["reference"], &told["repeated"]),
        (&json!("5.00"), &json!(reference), &json!(false))
    );
    let bare = codes[0].trim_start_matches("FB").replace('-', "");
    for typed in [
        codes[0].to_lowercase(),
        codes[0].replace('-', " "),
        format!("\n{bare}\t"),
        bare.replace('0', "o").replace('1', "l"),
        codes[0].replace('0', "O").replace('1', "I"),
        codes[0].replace('-', "—"),
    ] {
        let again = redeem(&gateway, &key, &typed).await;
        assert_eq!(again.status, 200, "{typed}: {}", again.text);
        let mut wanted = told.clone();
        wanted["repeated"] = json!(true);
        assert_eq!(again.json(), wanted, "{typed}");
    }
    assert_eq!(balance(&gateway, &key).await, "5.00");
    let member = gateway.member(&key, Default::default()).await;
    let by_member = redeem(&gateway, &member, &codes[1]).await;
    assert_eq!(by_member.status, 200, "{}", by_member.text);
    assert_eq!(balance(&gateway, &key).await, "10.00", "one purse");
    let balance = gateway.get("/v1/key", &key).await.json();
    assert_eq!(balance["data"]["balance"], "10.00");
    gateway.stop().await;
}

#[tokio::test]
async fn what_is_worth_nothing_gets_one_answer() {
    let (_upstream, gateway) = gateway().await;
    let (key, other) = (gateway.key("0").await, gateway.key("0").await);
    let (_, used) = lot(&gateway, 1, |_| {}).await;
    assert_eq!(redeem(&gateway, &other, &used[0]).await.status, 200);
    let past = Timestamp::from_millis(clock::now().millis() - 1);
    let (_, expired) = lot(&gateway, 1, |new| new.expires_at = Some(past)).await;
    let (voided, void) = lot(&gateway, 1, |_| {}).await;
    gateway
        .ledger
        .perform(VoidLot {
            lot: voided.id,
            act: act(),
        })
        .await
        .unwrap();
    let mistyped = if used[0].ends_with('7') { "8" } else { "7" };
    let mistyped = format!("{}{mistyped}", &used[0][..used[0].len() - 1]);
    let mut answers = BTreeSet::new();
    for code in [&used[0], &expired[0], &void[0], &guess(), &mistyped] {
        let answer = redeem(&gateway, &key, code).await;
        assert!(!answer.text.contains(code.as_str()), "{}", answer.text);
        let mut told = answer.json();
        told["request_id"] = Value::Null;
        answers.insert((answer.status, told.to_string()));
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    let (status, text) = answers.first().unwrap();
    assert!(*status == 400 && text.contains(UNKNOWN), "{text}");
    assert_eq!(balance(&gateway, &key).await, "0.00");

    // What is no code at all is told apart, and nobody without a key is told anything.
    for body in [json!({}), json!({ "code": 7 }), json!([])] {
        let answer = gateway.post("/v1/vouchers", &other, &body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(
            answer.text.contains("send the code as JSON"),
            "{}",
            answer.text
        );
    }
    let nobody = TestKey {
        id: key.id,
        secret: "sk-fb-nobody".to_owned(),
    };
    assert_eq!(redeem(&gateway, &nobody, &used[0]).await.status, 401);
    let (_, fresh) = lot(&gateway, 1, |_| {}).await;
    gateway.change(&other, Change::Block).await;
    assert_eq!(redeem(&gateway, &other, &fresh[0]).await.status, 403);
    gateway.stop().await;
}

#[tokio::test]
async fn of_a_lot_for_everybody_a_customer_redeems_one() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("0").await;
    let (_, codes) = lot(&gateway, 7, |new| new.once_per_customer = true).await;
    assert_eq!(redeem(&gateway, &key, &codes[0]).await.status, 200);
    // These are no guesses: the answer is the same after any number of them.
    for code in &codes[1..] {
        let second = redeem(&gateway, &key, code).await;
        assert_eq!(second.status, 400);
        assert!(
            second.text.contains("only one voucher of this kind"),
            "{}",
            second.text
        );
    }
    assert_eq!(redeem(&gateway, &key, &codes[0]).await.status, 200);
    assert_eq!(balance(&gateway, &key).await, "5.00");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_all_who_try_at_once_one_customer_gets_it() {
    let (_upstream, gateway) = gateway().await;
    let mut keys = Vec::new();
    for _ in 0..4 {
        keys.push(gateway.key("0").await);
    }
    // Nine are wrong each time, and twenty of an address are too many.
    let (_, codes) = lot(&gateway, 2, |_| {}).await;
    for code in &codes {
        let racers = keys.iter().flat_map(|key| [key, key, key]);
        let answers = futures_util::future::join_all(
            racers.map(async |key| (key.id, redeem(&gateway, key, code).await)),
        )
        .await;
        let won: Vec<_> = (answers.iter())
            .filter(|(_, answer)| answer.status == 200)
            .map(|(id, answer)| (*id, answer.json()["repeated"] == true))
            .collect();
        assert!(!won.is_empty() && won.iter().all(|(id, _)| *id == won[0].0));
        let first = won.iter().filter(|(_, repeated)| !repeated).count();
        assert_eq!(first, 1, "{won:?}");
        for (_, answer) in &answers {
            assert!(matches!(answer.status, 200 | 400 | 429), "{}", answer.text);
        }
        // Whoever lost has three wrong codes now.
        for key in &mut keys {
            *key = gateway.key("0").await;
        }
    }
    let all = gateway.ledger.all::<Lot>().await.unwrap();
    assert_eq!(all[0].redeemed, 2);
    gateway.stop().await;
}

#[tokio::test]
async fn whoever_guesses_waits_and_is_not_told_when_one_would_be_right() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("0").await;
    let (_, codes) = lot(&gateway, 2, |_| {}).await;
    for _ in 0..5 {
        assert_eq!(redeem(&gateway, &key, &guess()).await.status, 400);
    }
    for code in [&guess(), &codes[0]] {
        let answer = redeem(&gateway, &key, code).await;
        assert_eq!(answer.status, 429, "{}", answer.text);
        assert!(
            answer.text.contains("wrong voucher codes"),
            "{}",
            answer.text
        );
        assert_eq!(answer.header("retry-after"), Some("5"));
    }
    // The same customer's page and other keys are no way around it.
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let page = visitor.post("vouchers", &[("code", &codes[0])], None).await;
    assert_eq!((page.status, page.header("retry-after")), (429, Some("5")));
    assert!(
        page.text.contains("Too many codes were wrong"),
        "{}",
        page.text
    );
    let member = gateway.member(&key, Default::default()).await;
    assert_eq!(redeem(&gateway, &member, &codes[0]).await.status, 429);
    assert_eq!(balance(&gateway, &key).await, "0.00");
    // Everything else works as before, and others redeem from the same address, until twenty were wrong there.
    assert_eq!(gateway.get("/v1/key", &key).await.status, 200);
    for _ in 0..3 {
        let other = gateway.key("0").await;
        for _ in 0..5 {
            assert_eq!(redeem(&gateway, &other, &guess()).await.status, 400);
        }
    }
    let stranger = gateway.key("0").await;
    assert_eq!(redeem(&gateway, &stranger, &codes[1]).await.status, 429);
    gateway.stop().await;
}

/// A burst is no way around the limit: what is being looked up counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_guesses_is_no_more_than_five() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("0").await;
    let burst = (0..18).map(async |_| redeem(&gateway, &key, &guess()).await.status);
    let answers = futures_util::future::join_all(burst).await;
    let looked_up = answers.iter().filter(|status| **status == 400).count();
    assert_eq!(looked_up, 5, "{answers:?}");
    assert!(answers.iter().all(|status| matches!(status, 400 | 429)));
    gateway.stop().await;
}

#[tokio::test]
async fn the_dashboard_redeems_for_owners_and_members_and_only_from_its_own_page() {
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("0").await;
    let member = gateway.member(&owner, Default::default()).await;
    let (lot, codes) = lot(&gateway, 3, |_| {}).await;
    let visitor = Visitor::signed_in(&gateway, &owner).await;
    assert!(
        visitor
            .get("")
            .await
            .text
            .contains("href=\"/dashboard/vouchers\"")
    );
    let form = visitor.get("/vouchers").await;
    assert_eq!(form.status, 200, "{}", form.text);
    let foreign = visitor
        .post(
            "vouchers",
            &[("code", &codes[0])],
            Some("https://evil.example"),
        )
        .await;
    assert_eq!(foreign.status, 403);
    assert_eq!(balance(&gateway, &owner).await, "0.00");

    let done = visitor.post("vouchers", &[("code", &codes[0])], None).await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert_eq!(done.header("cache-control"), Some("no-store"));
    let reference = format!("voucher:{}-1", lot.id);
    assert!(
        done.text.contains("5.00") && done.text.contains(&reference),
        "{}",
        done.text
    );
    assert!(!done.text.contains(&codes[0]), "a code is not sent back");
    let again = visitor.post("vouchers", &[("code", &codes[0])], None).await;
    assert!(
        again.status == 200 && again.text.contains("was redeemed here before"),
        "{}",
        again.text
    );
    let visitor = Visitor::signed_in(&gateway, &member).await;
    let done = visitor.post("vouchers", &[("code", &codes[1])], None).await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert_eq!(balance(&gateway, &owner).await, "10.00");
    let wrong = visitor.post("vouchers", &[("code", "FB-1")], None).await;
    assert_eq!(wrong.status, 422);
    assert!(
        wrong.text.contains("This voucher is not known") && wrong.text.contains("role=\"alert\""),
        "{}",
        wrong.text
    );
    // An expired key's page shows its history, and nothing more comes in through it.
    let past = Timestamp::from_millis(clock::now().millis() - 1);
    let edit = farebox_ledger::KeyEdit {
        expires_at: Said::Set(past),
        ..Default::default()
    };
    gateway.change(&member, Change::Edit(edit)).await;
    let stopped = visitor.post("vouchers", &[("code", &codes[2])], None).await;
    assert_eq!(stopped.status, 403, "{}", stopped.text);
    let unsigned = Visitor::new(&gateway);
    let refused = unsigned
        .post("vouchers", &[("code", &codes[2])], None)
        .await;
    assert_eq!(refused.status, 401);
    assert_eq!(unsigned.get("/vouchers").await.status, 303);
    assert_eq!(balance(&gateway, &owner).await, "10.00");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voucher_needs_no_scripts_and_its_page_is_accessible() {
    if !has_browser() {
        return;
    }
    let (_upstream, gateway) = gateway().await;
    let owner = gateway.owner("0").await;
    let (_, codes) = lot(&gateway, 5, |_| {}).await;
    let windows = [("desktop", DESKTOP), ("phone", PHONE)];
    let all = windows
        .into_iter()
        .flat_map(|(name, window)| [false, true].map(|dark| (name, Window { dark, ..window })));
    for ((name, window), code) in all.zip(&codes) {
        let name = format!("{name}{}", if window.dark { "-dark" } else { "" });
        let browser = signed_in(&gateway, &owner, window).await;
        browser.press(".pay a[href='/dashboard/vouchers']").await;
        browser.shows("h1", "Redeem a voucher").await;
        browser.assert_accessible(&format!("{name} form")).await;
        browser.type_into("#code", "FB-7777").await;
        browser.press("form.card .primary").await;
        browser.shows(".problem", "not known").await;
        browser.assert_accessible(&format!("{name} refused")).await;
        browser.picture(&format!("voucher-refused-{name}")).await;
        browser.type_into("#code", code).await;
        browser.press("form.card .primary").await;
        browser.shows(".success", "5.00 USD").await;
        browser.assert_accessible(&format!("{name} done")).await;
        assert!(browser.overhang().await <= 0, "{name}");
        browser.picture(&format!("voucher-{name}")).await;
    }
    let plain = Window {
        scripts: false,
        ..DESKTOP
    };
    let browser = Browser::open(&gateway.client, plain).await;
    browser.go(&format!("{}/dashboard", gateway.base)).await;
    browser.type_into("#key", &owner.secret).await;
    browser.press("form .primary").await;
    browser.press(".pay a[href='/dashboard/vouchers']").await;
    browser.type_into("#code", &codes[4]).await;
    browser.press("form.card .primary").await;
    browser.shows(".success", "5.00 USD").await;
    assert_eq!(balance(&gateway, &owner).await, "25.00");
}

//! What a customer sees at a glance: one program unfolded and found by name, bars that can be seen, charts that end today, and answers
//! that no failures push away.

use std::sync::Arc;

use farebox::clock;
use farebox_ledger::key::Change;
use farebox_ledger::{
    Amount, Bill, Cap, CapInterval, CustomerId, EndReason, Finish, HoldWay, NewHold, OperationId,
    Perform, Timestamp,
};

use super::dashboard::{has_browser, signed_in};
use super::sessions::{Visitor, gateway};
use crate::support::browser::{Browser, DESKTOP, PHONE, Window};
use crate::support::{Gateway, TestKey, chat};

/// The titles of the programs that are listed, and of those that are unfolded.
const LISTED: &str = "return [...document.querySelectorAll('.programs details')].filter((one) => one.checkVisibility()).map((one) => one.querySelector('h3').textContent)";
const UNFOLDED: &str = "return [...document.querySelectorAll('.programs details[open]')].filter((one) => one.checkVisibility()).map((one) => one.querySelector('h3').textContent)";
const HEIGHT: &str = "return document.documentElement.scrollHeight";

fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

/// Both themes in both sizes.
fn windows() -> [(&'static str, Window); 4] {
    let of = |window: Window, dark: bool| Window { dark, ..window };
    [
        ("desktop", of(DESKTOP, false)),
        ("desktop-dark", of(DESKTOP, true)),
        ("phone", of(PHONE, false)),
        ("phone-dark", of(PHONE, true)),
    ]
}

async fn titles(browser: &Browser, script: &str) -> Vec<String> {
    serde_json::from_value(browser.ask(script).await).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_set_up_page_unfolds_one_program_which_is_found_by_name() {
    if !has_browser() {
        return;
    }
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let all = farebox::setup::clients().len();
    let setup = format!("{}/dashboard/setup", gateway.base);
    for (name, window) in windows() {
        let browser = signed_in(&gateway, &key, window).await;
        browser.go(&setup).await;
        let height = browser.ask(HEIGHT).await.as_i64().unwrap();
        let most = if name.starts_with("desktop") {
            4_000
        } else {
            5_000
        };
        assert!(height < most, "{name}: {height} pixels");
        assert_eq!(titles(&browser, LISTED).await.len(), all, "{name}");
        assert_eq!(titles(&browser, UNFOLDED).await.len(), 1, "{name}");

        // A pasted key stays while somebody looks for a program, and presses Enter.
        browser.type_into("#key", &key.secret).await;
        browser.type_into("#find", "Code x\u{e007}").await;
        assert_eq!(titles(&browser, LISTED).await, ["Codex CLI"], "{name}");
        assert_eq!(titles(&browser, UNFOLDED).await, ["Codex CLI"], "{name}");
        assert_eq!(browser.text("#found").await, format!("1 of {all} programs"));
        browser
            .assert_accessible(&format!("{name}, one found"))
            .await;
        browser
            .ask("document.getElementById('find').value = ''")
            .await;
        browser.type_into("#find", "curl").await;
        assert_eq!(titles(&browser, UNFOLDED).await, ["curl"], "{name}");
        let shown = browser.text(".programs").await;
        assert!(shown.contains(&key.secret), "{name}: {shown}");
        assert!(browser.overhang().await <= 0, "{name}");
        browser.picture(&format!("setup-found-{name}")).await;

        browser
            .ask("document.getElementById('find').value = ''")
            .await;
        browser.type_into("#find", "emacs").await;
        assert_eq!(titles(&browser, LISTED).await.len(), all, "{name}");
        assert!(
            browser.text("#found").await.contains("No program"),
            "{name}"
        );
        browser.press("details:nth-child(2) summary").await;
        assert_eq!(titles(&browser, UNFOLDED).await, ["Codex CLI"], "{name}");
        browser.press("details:first-child summary").await;
        assert_eq!(titles(&browser, UNFOLDED).await, ["Claude Code"], "{name}");

        // An address may name a program, and another model is shown in the same one.
        browser.go(&format!("{setup}#codex")).await;
        assert_eq!(titles(&browser, UNFOLDED).await, ["Codex CLI"], "{name}");
        browser.press("#model option[value='test-blind']").await;
        browser.press("#find-program button").await;
        let chosen = "return location.search.includes('model=test-blind') && document.readyState === 'complete'";
        browser.until("the model is chosen", chosen).await;
        assert_eq!(titles(&browser, UNFOLDED).await, ["Codex CLI"], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_is_found_without_scripts() {
    if !has_browser() {
        return;
    }
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let plain = Window {
        scripts: false,
        ..DESKTOP
    };
    let browser = Browser::open(&gateway.client, plain).await;
    browser.go(&format!("{}/dashboard", gateway.base)).await;
    browser.type_into("#key", &key.secret).await;
    browser.press("form .primary").await;
    browser.press("nav a[href='/dashboard/setup']").await;
    browser.shows("details[open] h3", "Claude Code").await;
    browser.type_into("#find", "opencode").await;
    browser.press("#find-program button").await;
    browser.shows("#found", "1 of ").await;
    browser.shows("details[open] h3", "opencode").await;
    let listed = browser.text(".programs").await;
    assert!(!listed.contains("Claude Code"), "{listed}");
    browser
        .go(&format!("{}/dashboard/setup#codex", gateway.base))
        .await;
    browser.shows("#codex", "config.toml").await;
}

/// The contrast of two colours as the browser computes them, by WCAG.
const CONTRAST: &str = "
    const parts = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    const light = (colour) => { const [r, g, b] = parts(colour); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
    return [...document.querySelectorAll('.bar')].map((bar) => {
        const style = getComputedStyle(bar);
        const card = getComputedStyle(bar.closest('.card') ?? document.body).backgroundColor;
        const fill = getComputedStyle(bar.querySelector('.used')).fill;
        return [contrast(fill, style.backgroundColor), contrast(style.borderTopColor, card),
            bar.getBoundingClientRect().height, bar.getBoundingClientRect().width];
    });";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bars_of_caps_are_seen_in_both_themes() {
    if !has_browser() {
        return;
    }
    let (_upstream, gateway) = gateway().await;
    let key = gateway.owner("5.00").await;
    let caps = [
        (CapInterval::Day, Some("test-model")),
        (CapInterval::Week, Some("test-model")),
        (CapInterval::Month, None),
    ];
    let set = async |at: usize, limit: Amount| {
        let (interval, model) = caps[at];
        let model = model.map(str::to_owned);
        let cap = Cap {
            interval,
            model,
            limit,
        };
        gateway.change(&key, Change::SetCap(cap)).await;
    };
    for at in 0..caps.len() {
        set(at, usd("2.50")).await;
    }
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let cost = usd(answer.header("x-farebox-cost").unwrap());
    gateway.settled().await;
    // One that is reached, one that nearly is, and one that is hardly begun.
    set(0, cost).await;
    set(1, Amount::from_picos(cost.picos() * 10 / 9)).await;
    let again = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    assert_eq!(again.status, 429, "the cap of the day is reached");
    for (name, window) in windows() {
        let browser = signed_in(&gateway, &key, window).await;
        let own = format!("keys/{}", key.id);
        for view in ["", own.as_str()] {
            let page = format!("{}/dashboard/{view}", gateway.base);
            browser.go(page.trim_end_matches('/')).await;
            let bars = browser.ask(CONTRAST).await;
            let bars: Vec<[f64; 4]> = serde_json::from_value(bars).unwrap();
            assert_eq!(bars.len(), 3, "{name} {view}");
            for [fill, edge, height, width] in bars {
                assert!(fill >= 3.0 && edge >= 3.0, "{name}: {fill}, {edge}");
                assert!(
                    height >= 16.0 && width >= 120.0,
                    "{name}: {height}, {width}"
                );
            }
            let figures = browser.text(".caps").await;
            assert!(figures.contains(" of 2.50 USD"), "{name}: {figures}");
            browser.assert_accessible(&format!("{name} {view}")).await;
            assert!(browser.overhang().await <= 0, "{name} {view}");
            let picture = if view.is_empty() { "caps" } else { "caps-key" };
            browser.picture(&format!("{picture}-{name}")).await;
        }
    }
}

/// A request of then as the books have it.
async fn ended(gateway: &Gateway, key: &TestKey, number: i64, at: i64, status: u16) {
    let number = u128::from(number.unsigned_abs());
    let at = Timestamp::from_millis(at);
    let request = OperationId::new(at, number);
    let hold = NewHold {
        request,
        customer: CustomerId::made_for(key.id),
        key: key.id,
        ways: vec![HoldWay::exactly(usd("0.01"))],
        slug: "test-model".to_owned(),
        family: "chat".to_owned(),
        at,
    };
    gateway.ledger.perform(hold).await.unwrap();
    let end_reason = if status == 200 {
        EndReason::Stop
    } else {
        EndReason::UpstreamUnavailable
    };
    let bill = Bill {
        slug: "test-model".to_owned(),
        family: "chat".to_owned(),
        status,
        end_reason,
        ..Bill::default()
    };
    gateway
        .ledger
        .perform(Arc::new(Finish { request, bill, at }))
        .await
        .unwrap();
}

/// A program tried two hundred times while the provider was away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_leave_the_answers_in_sight() {
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    let now = clock::now().millis();
    let mut number = 0;
    for (status, times) in [(200, 3), (503, 5), (200, 2), (503, 200)] {
        for _ in 0..times {
            number += 1;
            ended(
                &gateway,
                &key,
                number,
                now - 500_000 + number * 1_000,
                status,
            )
            .await;
        }
    }
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let page = visitor.get("").await.text;
    let newest = page.split("id=\"newest\"").nth(1).unwrap();
    assert_eq!(newest.matches("200 stop").count(), 5, "{newest}");
    assert_eq!(newest.matches("503 upstream unavailable").count(), 2);
    for times in ["200 times</a> since", "5 times</a> since"] {
        assert!(newest.contains(&format!(">{times} ")), "{times}: {newest}");
    }
    // Every one of them is listed where the row leads.
    let all = newest.split("<a href=\"/dashboard").nth(1).unwrap();
    let all = all.split('"').next().unwrap().replace("&amp;", "&");
    let listed = visitor.get(&all).await;
    assert_eq!(listed.status, 200, "{all}");
    let rows = listed.text.matches("503 upstream unavailable").count();
    assert_eq!(rows, 50, "a page of them");
    assert!(!listed.text.contains("200 stop"), "{all}");
    if !has_browser() {
        return;
    }
    for (name, window) in windows() {
        let browser = signed_in(&gateway, &key, window).await;
        browser.assert_accessible(name).await;
        assert!(browser.overhang().await <= 0, "{name}");
        browser.picture(&format!("failures-{name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_chart_ends_today() {
    if !has_browser() {
        return;
    }
    let (_upstream, gateway) = gateway().await;
    let key = gateway.key("5.00").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let browser = signed_in(&gateway, &key, DESKTOP).await;
    for range in ["7d", "30d"] {
        let page = format!("{}/dashboard?range={range}", gateway.base);
        browser.go(&page).await;
        let today = "return new Date().toLocaleString('en-US', { month: 'short', day: '2-digit', timeZone: 'UTC' })";
        let today = browser.ask(today).await;
        let last = browser.text(".when span:last-child").await;
        assert!(last.starts_with(today.as_str().unwrap()), "{last}, {today}");
        let bars = "const bars = [...document.querySelectorAll('.chart g')]; \
            return bars.map((bar) => bar.querySelectorAll('rect').length > 1)";
        let bars: Vec<bool> = serde_json::from_value(browser.ask(bars).await).unwrap();
        assert!(bars.last().unwrap(), "{range}: the last bar is now");
    }
}

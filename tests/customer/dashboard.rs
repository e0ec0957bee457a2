//! The dashboard in a real browser: signing in, the live balance, chart, export, set-up, on a desktop and on a phone.

use farebox_ledger::{KeySettings, NewLink, Perform, SecretHash, Timestamp};
use serde_json::json;

use super::seller::{SHOP, with_every_price};
use crate::support::browser::{Browser, DESKTOP, PHONE, Window};
use crate::support::skip::installed;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, TestKey, act, chat, routes, talking};

/// A label that would run a script or break the page wherever it is not escaped.
const HOSTILE: &str =
    r#""><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>"#;

pub(super) fn has_browser() -> bool {
    installed("chromedriver", "the dashboard in a browser")
}

pub(super) async fn signed_in(gateway: &Gateway, key: &TestKey, window: Window) -> Browser {
    let browser = Browser::open(&gateway.client, window).await;
    browser.go(&format!("{}/dashboard", gateway.base)).await;
    browser.type_into("#key", &key.secret).await;
    browser.press("form .primary").await;
    browser
        .until(
            "the overview opens",
            "return !!document.getElementById('available')",
        )
        .await;
    browser
}

/// A native request as a coding client sends it.
async fn native(gateway: &Gateway, key: &TestKey) -> Answer {
    let body = json!({ "model": "test-model", "max_tokens": 100, "messages": [{ "role": "user", "content": "hi" }] });
    gateway
        .post("/native/v1/messages?beta=true", key, &body)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_open_page_moves_after_a_request_without_a_reload() {
    if !has_browser() {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    for (name, window) in [("desktop", DESKTOP), ("phone", PHONE)] {
        let browser = signed_in(&gateway, &key, window).await;
        browser.ask("window.opened = true").await;
        let before = browser.text("#available").await;
        assert_eq!(native(&gateway, &key).await.status, 200);
        let account = gateway.account(&key).await.customer.account;
        let moved = format!(
            "return document.getElementById('available').textContent.startsWith('{}')",
            account.available()
        );
        browser.until("the balance moves", &moved).await;
        assert_ne!(before, browser.text("#available").await);
        assert_eq!(
            browser.ask("return window.opened").await,
            true,
            "the page was not loaded again"
        );
        assert!(browser.text("#newest").await.contains("test-model"));
        assert!(
            browser
                .ask("return document.title")
                .await
                .as_str()
                .unwrap()
                .contains("USD")
        );
        gateway.top_up(&key, "1.00").await;
        let topped = format!(
            "return document.getElementById('available').textContent.startsWith('{}')",
            gateway.account(&key).await.customer.account.available()
        );
        browser.until("a top-up shows", &topped).await;
        assert!(
            browser.overhang().await <= 0,
            "nothing sticks out at the side"
        );
        browser.picture(&format!("overview-{name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_view_is_accessible_in_both_sizes_and_colours() {
    if !has_browser() {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let catalog = format!("{SHOP}{}", with_every_price());
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    let key = gateway.owner("5.00").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-blind", false))
        .await;
    for _ in 0..3 {
        gateway
            .post("/v1/chat/completions", &key, &chat("no-such-model", false))
            .await;
    }
    let light = |window: Window| Window {
        dark: false,
        ..window
    };
    let dark = |window: Window| Window {
        dark: true,
        ..window
    };
    let windows = [
        ("desktop", light(DESKTOP)),
        ("desktop-dark", dark(DESKTOP)),
        ("phone", light(PHONE)),
        ("phone-dark", dark(PHONE)),
    ];
    for (name, window) in windows {
        let browser = Browser::open(&gateway.client, window).await;
        browser.go(&format!("{}/dashboard", gateway.base)).await;
        browser.assert_accessible("the sign-in page").await;
        browser.picture(&format!("sign-in-{name}")).await;
        browser.go(&format!("{}/prices", gateway.base)).await;
        browser.assert_accessible(&format!("{name} /prices")).await;
        assert!(browser.overhang().await <= 0, "{name} /prices");
        browser.picture(&format!("prices-{name}")).await;
        drop(browser);
        let browser = signed_in(&gateway, &key, window).await;
        let receipt = browser
            .ask("return document.querySelector('#newest td.id a').getAttribute('href')")
            .await;
        let receipt = receipt.as_str().unwrap().trim_start_matches("/dashboard");
        let filtered = "/requests?model=test-model&status=ok";
        let chosen = "/setup?model=test-model";
        for view in [
            "",
            "?range=24h",
            "/requests",
            filtered,
            receipt,
            "/payments",
            "/setup",
            chosen,
            "/models",
            "/enter",
        ] {
            browser
                .go(&format!("{}/dashboard{view}", gateway.base))
                .await;
            browser.assert_accessible(&format!("{name} {view}")).await;
            if view == "/setup" {
                let open = "return document.querySelectorAll('.programs details[open]').length";
                assert_eq!(browser.ask(open).await, 1, "one program is unfolded");
            }
            assert!(
                browser.overhang().await <= 0,
                "{name} {view}: nothing sticks out at the side"
            );
            let picture = if view == receipt {
                "receipt".to_owned()
            } else {
                view.trim_start_matches(['/', '?'])
                    .replace(['=', '?', '&'], "-")
            };
            browser.picture(&format!("{picture}-{name}")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_and_receipts_work_without_scripts() {
    if !has_browser() {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let blind = gateway
        .post("/v1/chat/completions", &key, &chat("test-blind", false))
        .await;
    let browser = Browser::open(
        &gateway.client,
        Window {
            scripts: false,
            ..DESKTOP
        },
    )
    .await;
    browser.go(&format!("{}/", gateway.base)).await;
    browser.type_into("#key", &key.secret).await;
    browser.press("form .primary").await;
    browser
        .shows(".runway", "mean use since the first request")
        .await;
    browser.press("nav a[href='/dashboard/requests']").await;
    browser.press("#model option[value='test-blind']").await;
    browser
        .press("form[action='/dashboard/requests'] button")
        .await;
    browser
        .shows("#newest tbody tr:only-child .name", "test-blind")
        .await;
    browser
        .type_into("#id", blind.header("x-request-id").unwrap())
        .await;
    browser
        .press("form[action='/dashboard/requests'] button")
        .await;
    browser
        .shows("#newest tbody tr:only-child .name", "test-blind")
        .await;
    let today = browser.text("#newest time").await;
    assert!(!today.is_empty());
    browser.press("#newest td.id a").await;
    browser.shows("h1", "Receipt").await;
    browser
        .shows("#charged", blind.header("x-farebox-cost").unwrap())
        .await;
    browser.shows("#facts ~ dl", "It ended normally.").await;
    let elsewhere = format!(
        "{}/dashboard/requests?day=2020-01-01&model=&status=",
        gateway.base
    );
    browser.go(&elsewhere).await;
    browser.shows(".empty", "None.").await;
    browser
        .go(&format!(
            "{}/dashboard/requests?day=yesterday",
            gateway.base
        ))
        .await;
    browser.shows(".problem", "2026-11-22").await;
    let other = gateway.key("5.00").await;
    let foreign = gateway
        .post("/v1/chat/completions", &other, &chat("test-model", false))
        .await;
    browser
        .go(&format!(
            "{}/dashboard/requests/{}",
            gateway.base,
            foreign.header("x-request-id").unwrap()
        ))
        .await;
    browser.shows("h1", "Something went wrong").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_are_only_text() {
    if !has_browser() {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let settings = KeySettings {
        label: HOSTILE.to_owned(),
        ..KeySettings::default()
    };
    let key = gateway.owner_with("5.00", settings).await;
    gateway
        .post("/v1/chat/completions", &key, &chat(HOSTILE, false))
        .await;
    let browser = signed_in(&gateway, &key, DESKTOP).await;
    for view in ["", "/requests", "/payments", "/setup", "/models"] {
        browser
            .go(&format!("{}/dashboard{view}", gateway.base))
            .await;
        let title = browser.ask("return document.title").await;
        assert!(
            !title.as_str().unwrap().contains("owned"),
            "{view}: {title}"
        );
        assert_eq!(
            browser
                .ask("return document.querySelectorAll('img').length")
                .await,
            0,
            "{view}"
        );
        assert!(
            browser.text(".who").await.contains("onerror"),
            "the label is shown as it is"
        );
    }
    browser
        .go(&format!("{}/dashboard/requests", gateway.base))
        .await;
    assert!(
        browser.text("#refusals").await.contains("onerror"),
        "the refused name is shown as it is"
    );
    // The script inserts updates into the page: they must not run either.
    gateway
        .post(
            "/v1/chat/completions",
            &key,
            &chat(&format!("live {HOSTILE}"), false),
        )
        .await;
    browser
        .until(
            "the refusal arrives",
            "return document.getElementById('refusals').textContent.includes('live ')",
        )
        .await;
    assert_ne!(browser.ask("return document.title").await, "owned");
    assert_eq!(
        browser
            .ask("return document.querySelectorAll('img').length")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chart_export_and_set_up_do_what_they_say() {
    if !has_browser() {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let browser = signed_in(&gateway, &key, DESKTOP).await;
    for range in ["24h", "7d", "30d"] {
        browser.press(&format!(".ranges a[href$='{range}']")).await;
        browser
            .until(
                "the chart opens",
                "return document.querySelectorAll('.chart rect.s0').length === 1",
            )
            .await;
        let label = browser
            .ask("return document.querySelector('.chart svg').getAttribute('aria-label')")
            .await;
        assert!(label.as_str().unwrap().contains("USD in all"), "{label}");
    }
    let export = "const sent = await fetch('/dashboard/requests.csv'); return [sent.status, await sent.text()]";
    let export = browser
        .ask(&format!("return (async () => {{ {export} }})()"))
        .await;
    assert_eq!(export[0], 200);
    assert!(
        export[1].as_str().unwrap().contains("test-model"),
        "{export}"
    );

    browser
        .go(&format!("{}/dashboard/setup", gateway.base))
        .await;
    let setup = browser.text("main").await;
    for part in [
        format!("{}/v1", gateway.base),
        format!("{}/native", gateway.base),
        "<API_KEY>".to_owned(),
        "test-model".to_owned(),
    ] {
        assert!(setup.contains(&part), "{part}");
    }
    browser.type_into("#key", &key.secret).await;
    browser.type_into("#find", "curl").await;
    assert!(
        browser
            .text("#content")
            .await
            .contains(&format!("Bearer {}", key.secret)),
        "the pasted key is filled in"
    );
    browser.press("#key-test .primary").await;
    browser
        .until(
            "the key is tested",
            "return document.getElementById('key-result').textContent.startsWith('200')",
        )
        .await;
    browser
        .ask("document.getElementById('key').value = 'sk-fb-wrong'")
        .await;
    browser.press("#key-test .primary").await;
    browser
        .until(
            "a wrong key is told",
            "return document.getElementById('key-result').textContent.startsWith('401')",
        )
        .await;
    browser
        .ask("document.getElementById('key').value = ''")
        .await;
    browser.press("#key-test .primary").await;
    browser
        .until(
            "the page's own key",
            "return document.getElementById('key-result').textContent.includes('valid and active')",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_opens_with_one_press_and_leaves_no_trace() {
    if !has_browser() {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let token = farebox::customer::new_token();
    let act = act();
    let later = Timestamp::from_millis(act.at.millis() + 60_000);
    gateway
        .ledger
        .perform(NewLink {
            key: key.id,
            token: SecretHash::of(&token),
            expires: later,
            act,
        })
        .await
        .unwrap();
    let browser = Browser::open(&gateway.client, DESKTOP).await;
    browser
        .go(&format!("{}/dashboard/enter#{token}", gateway.base))
        .await;
    browser
        .until(
            "the token leaves the address bar",
            "return !location.href.includes('#')",
        )
        .await;
    assert_eq!(
        browser
            .ask("return document.getElementById('token-row').hidden")
            .await,
        true
    );
    browser
        .assert_accessible("the landing page of a link")
        .await;
    browser.press("#enter .primary").await;
    browser
        .until(
            "the overview opens",
            "return !!document.getElementById('available')",
        )
        .await;
    assert!(
        !browser
            .ask("return document.documentElement.outerHTML")
            .await
            .as_str()
            .unwrap()
            .contains(&token)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_but_the_movement_works_without_scripts() {
    if !has_browser() {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let expires_at = Some(Timestamp::from_millis(4_000_000_000_000));
    let key = gateway
        .owner_with(
            "5.00",
            KeySettings {
                label: "plain".to_owned(),
                expires_at,
                ..KeySettings::default()
            },
        )
        .await;
    let browser = Browser::open(
        &gateway.client,
        Window {
            scripts: false,
            ..DESKTOP
        },
    )
    .await;
    browser.go(&format!("{}/dashboard", gateway.base)).await;
    browser.type_into("#key", &key.secret).await;
    browser.press("form .primary").await;
    browser.shows("#available", "5.00").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    browser.press("noscript a").await;
    browser.shows("#available", "4.99").await;
    for (view, title) in [
        ("requests", "Requests"),
        ("payments", "Payments"),
        ("setup", "Set up"),
        ("models", "Models"),
    ] {
        browser
            .press(&format!("nav a[href='/dashboard/{view}']"))
            .await;
        browser.shows("h1", title).await;
    }
    browser.press("nav a[href='/dashboard/setup']").await;
    browser.shows("h1", "Set up").await;
    browser.press("#key-test .primary").await;
    browser.shows("#key-result", "valid and active").await;
    browser.press(".top form button").await;
    browser.shows("label", "Your key").await;
}

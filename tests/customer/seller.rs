//! The seller's pages: prices for everybody, the seller's name on every page, and what is printed.

use crate::support::browser::{PHONE, Window};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, chat, routes, talking};

use super::dashboard::{has_browser, signed_in};
use super::sessions::Visitor;

/// A seller whose name would break the page wherever it is not escaped.
pub(super) const SHOP: &str = r#"
[shop]
name    = "Key <Corner> & Sons"
contact = "help@shop.example"
pay_url = "https://shop.example/top-up?from=page&to=us"
note    = "Top-ups are booked within a minute."
"#;

/// The catalog of test gateways with tiers, classes and further rates.
pub(super) fn with_every_price() -> String {
    let plain = r#"cache_read = "0.30", cache_write = "3.75" }"#;
    assert!(CATALOG.contains(plain));
    CATALOG.replace(
        plain,
        r#"cache_read = "0.30", cache_write = "3.75", cache_write_1h = "6.00", reasoning = "20.00", per_request = "0.001",
           classes = { flex = "0.5", us = "1.1" },
           tiers = [{ above_input = 128_000, price = { input = "6.00", output = "22.50", cache_read = "0.60", cache_write = "7.50",
                                                       cache_write_1h = "12.00", reasoning = "30.00" } }] }"#,
    )
}

async fn selling() -> (ScriptedUpstream, Gateway) {
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let catalog = format!("{SHOP}{}", with_every_price());
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    (upstream, gateway)
}

/// What the row of a table says that begins with this name, tags left out.
fn cells(page: &str, name: &str) -> Vec<String> {
    let head = format!("role=\"rowheader\">{name}</th>");
    let row = page.split(&head).nth(1).expect(name);
    let row = row.split("</tr>").next().unwrap();
    row.split("</td>")
        .filter_map(|cell| cell.rsplit('>').next())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn prices_are_for_everybody() {
    let (_upstream, gateway) = selling().await;
    let url = format!("{}/prices", gateway.base);
    let answer = gateway.client.get(&url).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(
        answer.headers()["content-security-policy"]
            .to_str()
            .unwrap()
            .contains("default-src 'none'")
    );
    assert!(answer.headers().get("set-cookie").is_none());
    let page = answer.text().await.unwrap();
    for part in [
        "<code>test-model</code>",
        "<code>test-blind</code>",
        "help@shop.example",
        "href=\"https://shop.example/top-up?from=page&amp;to=us\"",
        "Top-ups are booked within a minute.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let rates = [
        "$3.00", "$15.00", "$0.30", "$3.75", "$6.00", "$20.00", "$0.001",
    ];
    assert_eq!(cells(&page, "standard"), rates);
    assert_eq!(
        cells(&page, "standard, above 128,000 input tokens")[..3],
        ["$6.00", "$22.50", "$0.60"]
    );
    assert_eq!(cells(&page, "flex")[..2], ["$1.50", "$7.50"]);
    assert_eq!(cells(&page, "flex, us")[..2], ["$1.65", "$8.25"]);
    assert_eq!(
        cells(&page, "flex, above 128,000 input tokens")[..2],
        ["$3.00", "$11.25"]
    );
    // A model whose price has four figures needs no table of its own.
    assert_eq!(page.matches("<h3>").count(), 1, "{page}");
    assert_eq!(
        gateway.client.head(&url).send().await.unwrap().status(),
        200
    );
}

#[tokio::test]
async fn every_page_is_the_sellers() {
    let (_upstream, gateway) = selling().await;
    let key = gateway.owner("5.00").await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let receipt = format!("/requests/{}", answer.header("x-request-id").unwrap());
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let mut pages = vec![
        gateway
            .client
            .get(format!("{}/prices", gateway.base))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap(),
    ];
    // The page of settings names programs' own profiles, some of them after the gateway.
    for view in [
        "",
        "/requests",
        &receipt,
        "/payments",
        "/keys",
        "/vouchers",
        "/models",
        "/enter",
        "/requests/req_unknown",
    ] {
        pages.push(visitor.get(view).await.text);
        tokio::time::sleep(std::time::Duration::from_millis(120)).await;
    }
    pages.push(
        gateway
            .client
            .get(format!("{}/dashboard", gateway.base))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap(),
    );
    for page in pages {
        let seen = page.replace("Authorization", "");
        assert!(seen.contains("Key &lt;Corner&gt; &amp; Sons"), "{page}");
        assert!(
            !page.contains("<Corner>") && !page.contains("Farebox"),
            "{page}"
        );
    }
    let setup = visitor.get("/setup").await.text;
    assert!(setup.contains("<title>Set up · 4.99"), "{setup}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paper_is_black_on_white_with_whole_tables_and_nothing_to_press() {
    if !has_browser() {
        return;
    }
    let (_upstream, gateway) = selling().await;
    let key = gateway.owner("5.00").await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let receipt = format!(
        "/dashboard/requests/{}",
        answer.header("x-request-id").unwrap()
    );
    // As wide as a sheet of paper, where the screen would have cards for tables.
    let sheet = Window {
        width: 700,
        ..PHONE
    };
    let browser = signed_in(&gateway, &key, sheet).await;
    for (name, path) in [
        ("receipt", receipt.as_str()),
        ("payments", "/dashboard/payments"),
        ("prices", "/prices"),
    ] {
        browser.go(&format!("{}{path}", gateway.base)).await;
        browser.on_paper().await;
        let look = "const style = (query) => getComputedStyle(document.querySelector(query)); \
                    const pressed = [...document.querySelectorAll('button, nav, .screen')]; \
                    return [style('body').backgroundColor, style('h1').color, style('tbody tr').display, \
                            pressed.every((part) => part.getClientRects().length === 0)]";
        let seen = browser.ask(look).await;
        let wanted = serde_json::json!(["rgb(255, 255, 255)", "rgb(0, 0, 0)", "table-row", true]);
        assert_eq!(seen, wanted, "{path}");
        let text = browser.text("body").await;
        assert!(
            text.contains("Key <Corner> & Sons") && text.contains("as of "),
            "{path}: {text}"
        );
        browser.picture(&format!("paper-{name}")).await;
    }
}

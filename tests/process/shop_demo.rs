//! `farebox demo --shop`: from the price page through a test card to a key, paid answers in curl and in coding clients, a receipt and a
//! statement, without a window and in a browser.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::replay::recording;
use crate::support::browser::{Browser, DESKTOP, PHONE, Window};
use crate::support::codex;
use crate::support::process::client;
use crate::support::skip::installed;

const PATIENCE: Duration = Duration::from_secs(60);

/// A running demo. Dropping it kills it.
struct Demo {
    child: Child,
    gateway: String,
    shop: String,
}

impl Demo {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_farebox"))
            .env_clear()
            .args(["demo", "--shop", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut demo = Self {
            child,
            gateway: String::new(),
            shop: String::new(),
        };
        for line in said.lines().map_while(Result::ok) {
            if let Some(at) = line.strip_prefix("Farebox demo at ") {
                demo.gateway = at.trim().to_owned();
            }
            if let Some(at) = line.strip_prefix("Shop at ") {
                demo.shop = at.trim().trim_end_matches('/').to_owned();
            }
            if line.starts_with("Ctrl-c ends") {
                break;
            }
        }
        assert!(demo.shop.starts_with("http://localhost:"), "{}", demo.shop);
        demo
    }

    /// What `farebox setup` prints of a program, as the set-up page shows it.
    fn settings(&self, program: &str, secret: &str, model: &str) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_farebox"))
            .env_clear()
            .args(["setup", program, "--base-url", &self.gateway, "--json"])
            .args(["--key", secret, "--model", model])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Asks with coding clients: what two of them send, byte for byte, and the program itself where it is installed.
    async fn ask_in_coding_clients(&self, client: &reqwest::Client, secret: &str) {
        for (name, model) in [
            ("codex.text.01.json", RESPONSES),
            ("claude-code.print.text.01.json", NATIVE),
        ] {
            let sent = recording(name);
            let answer = sent.send(client, &self.gateway, secret, model).await;
            assert_eq!(answer.status, 200, "{name}: {}", answer.text);
            let ends = ["event: response.completed", "event: message_stop"];
            assert!(
                ends.iter().any(|end| answer.text.contains(end)),
                "{name}: {}",
                answer.text
            );
        }
        let settings = self.settings("codex", secret, RESPONSES);
        if let Some(said) = codex::answer(&settings) {
            assert!(said.contains("PONG"), "{said}");
        }
    }
}

/// The models of the demo that the coding clients use.
const RESPONSES: &str = "sim-codex";
const NATIVE: &str = "claude-sim-sonnet";

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the command that the shop's page shows with a new key: a paid answer in curl.
fn ask_in_curl(command: &str) {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = answer["choices"][0]["message"]["content"].as_str();
    assert!(
        said.is_some_and(|said| said.to_lowercase().contains("hello")),
        "{command}: {answer}"
    );
}

/// What stands between two texts.
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let rest = text.split(before).nth(1);
    let rest = rest.unwrap_or_else(|| panic!("{before}: {text}"));
    rest.split(after).next().unwrap()
}

/// A buyer without a window.
struct Buyer {
    client: reqwest::Client,
    shop: String,
    cookie: String,
}

impl Buyer {
    async fn page(&mut self, request: reqwest::RequestBuilder) -> (u16, String, String) {
        let answer = request.header("cookie", &self.cookie).send().await.unwrap();
        let header = |name: &str| {
            let value = answer
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned());
            value.unwrap_or_default()
        };
        let (set, to) = (header("set-cookie"), header("location"));
        if let Some(cookie) = set.split(';').next().filter(|cookie| !cookie.is_empty())
            && !self.cookie.contains(cookie)
        {
            self.cookie = format!("{}; {cookie}", self.cookie);
        }
        (answer.status().as_u16(), answer.text().await.unwrap(), to)
    }

    async fn get(&mut self, path: &str) -> String {
        let path = path.strip_prefix(&self.shop).unwrap_or(path).to_owned();
        let request = self.client.get(format!("{}{path}", self.shop));
        self.page(request).await.1
    }

    async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> (u16, String, String) {
        let mut url = reqwest::Url::parse("http://form.invalid").unwrap();
        url.query_pairs_mut().extend_pairs(fields);
        let request = self
            .client
            .post(format!("{}{path}", self.shop))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(url.query().unwrap().to_owned());
        self.page(request).await
    }
}

#[tokio::test]
async fn a_newcomer_goes_from_a_price_page_to_a_statement() {
    let demo = Demo::start();
    let plain = reqwest::redirect::Policy::none();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder();
    let client = client
        .no_proxy()
        .tls_certs_only([])
        .redirect(plain)
        .build()
        .unwrap();
    let mut buyer = Buyer {
        client: client.clone(),
        shop: demo.shop.clone(),
        cookie: String::new(),
    };
    let prices = buyer.get("/").await;
    assert!(
        prices.contains("11.90 EUR") && prices.contains("data-label=\"Customer slug\""),
        "{prices}"
    );
    let hidden = |page: &str, name: &str| {
        between(page, &format!("name=\"{name}\" value=\""), "\"").to_owned()
    };
    let (proof, once) = (hidden(&prices, "proof"), hidden(&prices, "once"));
    let offer = between(&prices, "name=\"offer\" value=\"", "\"");
    let form = [
        ("proof", proof.as_str()),
        ("once", &once),
        ("offer", offer),
        ("name", "Zoë & Söhne"),
    ];
    let (_, onward, _) = buyer.post("/checkout", &form).await;
    let cards = between(&onward, "a class=\"button\" href=\"", "\"").replace("&amp;", "&");
    let page = buyer.get(&cards).await;
    let checkout = hidden(&page, "checkout");
    let declined = buyer
        .post(
            "/test-cards",
            &[("checkout", &checkout), ("card", "declined")],
        )
        .await;
    assert!(declined.1.contains("declined"), "{}", declined.1);
    let (status, _, back) = buyer
        .post("/test-cards", &[("checkout", &checkout), ("card", "good")])
        .await;
    assert_eq!(status, 303);
    let begun = Instant::now();
    let thanks = loop {
        let page = buyer.get(&back).await;
        if page.contains("Show my key") {
            break page;
        }
        assert!(begun.elapsed() < PATIENCE, "{page}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let proof = hidden(&thanks, "proof");
    let (status, shown, _) = buyer
        .post("/key", &[("proof", &proof), ("checkout", &checkout)])
        .await;
    assert_eq!(status, 200, "{shown}");
    let secret = between(&shown, "id=\"secret\">", "<").to_owned();

    let slug = between(&prices, "data-label=\"Customer slug\"><code>", "<").to_owned();
    ask_in_curl(&between(&shown, "id=\"try\">", "<").replace("&quot;", "\""));
    demo.ask_in_coding_clients(&client, &secret).await;
    let receipt = buyer.get(&back.replace("/bought?", "/receipt?")).await;
    for part in [
        "-1-1",
        "11.90 EUR",
        "1.90 EUR",
        "10.00 USD",
        "Zoë &amp; Söhne",
    ] {
        assert!(receipt.contains(part), "{part}: {receipt}");
    }
    let used = buyer
        .post("/key", &[("proof", &proof), ("checkout", &checkout)])
        .await;
    assert_eq!(used.0, 409, "a used key is not shown again: {}", used.1);

    // The same money on the dashboard, which points at the shop.
    let login = client.post(format!("{}/dashboard/login", demo.gateway));
    let login = login
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("key={secret}"));
    let session = login.send().await.unwrap();
    let session = session.headers()["set-cookie"]
        .to_str()
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let page = async |path: &str| {
        let request = client
            .get(format!("{}{path}", demo.gateway))
            .header("cookie", &session);
        request.send().await.unwrap().text().await.unwrap()
    };
    assert!(
        page("/dashboard")
            .await
            .contains(&format!("{}/?customer=c_", demo.shop))
    );
    let payments = page("/dashboard/payments").await;
    let month = between(&payments, "/dashboard/statements/", "\"").to_owned();
    let statement = page(&format!("/dashboard/statements/{month}.json")).await;
    let statement: Value = serde_json::from_str(&statement).unwrap();
    assert_eq!(
        (&statement["opening"], &statement["paid"]),
        (&"0.00".into(), &"10.00".into())
    );
    let mut used: Vec<_> = (statement["used"].as_array().unwrap().iter())
        .map(|of| of["model"].as_str().unwrap())
        .collect();
    used.dedup();
    let mut asked = [slug.as_str(), RESPONSES, NATIVE];
    asked.sort_unstable();
    assert_eq!(used, asked, "{statement}");
    // Every dollar that was paid is on it.
    let usd = |name: &str| {
        let text = statement[name].as_str().unwrap();
        farebox_ledger::Amount::from_usd_str(text).unwrap()
    };
    let sum = usd("closing").checked_add(usd("charged")).unwrap();
    assert_eq!(sum.to_string(), "10.00");
    assert!(usd("charged").is_positive());
    let paper = page(&format!("/dashboard/statements/{month}")).await;
    assert!(
        paper.contains("Statement") && paper.contains(NATIVE),
        "{paper}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_way_is_walked_in_a_browser_without_scripts() {
    if !installed("chromedriver", "the shop in a browser") {
        return;
    }
    let demo = Demo::start();
    let client = client();
    for (name, window, dark) in [
        ("desktop", DESKTOP, false),
        ("desktop-dark", DESKTOP, true),
        ("phone", PHONE, false),
        ("phone-dark", PHONE, true),
    ] {
        let scripts = name != "desktop";
        let window = Window {
            dark,
            scripts,
            ..window
        };
        let browser = Browser::open(&client, window).await;
        let look = async |place: &str| {
            // Those who judge are scripts themselves.
            if !scripts {
                return;
            }
            browser.assert_accessible(&format!("{name} {place}")).await;
            assert!(browser.overhang().await <= 0, "{name} {place}");
            browser.picture(&format!("shop-{place}-{name}")).await;
        };
        browser.go(&format!("{}/", demo.shop)).await;
        look("prices").await;
        browser.type_into("#name", "Zoë & Söhne").await;
        browser.press("form .primary").await;
        browser.shows("h1", "Pay 11.90 EUR").await;
        look("cards").await;
        browser.press("form .primary").await;
        browser.shows("h1", "Thank you").await;
        look("thanks").await;
        browser.press("form[action='/key'] button").await;
        browser.shows("#secret", "sk-fb-").await;
        look("key").await;
        let secret = browser.text("#secret").await;
        ask_in_curl(&browser.text("#try").await);
        if !scripts {
            demo.ask_in_coding_clients(&client, &secret).await;
        }
        browser.press("main p > a[href^='/bought']").await;
        browser.press("a[href^='/receipt']").await;
        browser.shows(".parties p:last-of-type", "-1-1").await;
        look("receipt").await;

        // On to the gateway, with the key, to the month's statement.
        browser.press(".who a[href$='/dashboard']").await;
        browser.type_into("#key", &secret).await;
        browser.press("form .primary").await;
        browser.shows("#available", "9.").await;
        browser
            .shows(".pay a.button[href*='?customer=c_']", "Top up")
            .await;
        look("balance").await;
        browser.press("nav a[href='/dashboard/payments']").await;
        browser.press("a[href^='/dashboard/paper/c_']").await;
        browser.shows("h1", "Receipt c_").await;
        browser.shows(".lines .sum", "11.90 EUR").await;
        browser.press("nav a[href='/dashboard/payments']").await;
        browser.press(".statements a").await;
        browser.shows("h1", "Statement 20").await;
        browser.shows(".lines .sum", "USD").await;
        browser
            .shows("[aria-labelledby='used'] th[scope='row']", "sim-")
            .await;
        look("statement").await;
    }
}

//! What the year stands on: gateway and shop of the demo in this process, a buyer, the seller's program, and somebody who looks at pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farebox::clock;
use farebox_cli::demo_shop;
use farebox_ledger::{Amount, CustomerId, Subscription, SubscriptionId, Timestamp, TokenRole};
use serde_json::json;

use crate::customer::dashboard::has_browser;
use crate::customer::sessions::Visitor;
use crate::selling::Program;
use crate::support::browser::{Browser, DESKTOP, PHONE, Window};
use crate::support::{Answer, Gateway, TestKey, act};

const ROUTES: &str = include_str!("../../../routes.toml");
/// What the seller has beside the demo's plan.
const TEAM: &str = r#"
[[plan]]
name      = "team"
title     = "Team, monthly"
price     = "40.00"
allowance = "50.00"
period    = "month"
"#;
/// The shop's page, as the owner comes to it from the dashboard.
pub(super) const OWN: &str = "OWN";
/// A visitor opens ten pages a second, by the machine's clock.
pub(super) const PACE: Duration = Duration::from_millis(110);
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Year {
    pub(super) gateway: Arc<Gateway>,
    pub(super) manage: Program,
    shop: String,
    client: reqwest::Client,
    /// What the buyer's browser keeps of the shop.
    cookies: BTreeMap<String, String>,
    /// The checkout of the plan.
    pub(super) checkout: String,
    pub(super) key: Option<TestKey>,
    pub(super) customer: CustomerId,
    pub(super) subscription: Option<SubscriptionId>,
    browsers: usize,
}

impl Year {
    pub(super) async fn begins(at: &str) -> Self {
        clock::stand_at(Some(instant(at)));
        let place = demo_shop::place().unwrap();
        let catalog = format!("{}{TEAM}", demo_shop::catalog(place.1));
        let gateway = Gateway::start(&catalog, ROUTES).await;
        let admin = gateway.admin.trim_start_matches("http://").parse().unwrap();
        let shop = demo_shop::open(act(), &*gateway.ledger, place, admin, &gateway.base).await;
        let shop = shop.unwrap();
        let url = shop.public_url().to_owned();
        tokio::spawn(shop.serve(std::future::pending()));
        Self {
            manage: Program::new(&gateway, TokenRole::Manage).await,
            client: Visitor::new(&gateway).client,
            gateway: Arc::new(gateway),
            shop: url,
            cookies: BTreeMap::new(),
            checkout: String::new(),
            key: None,
            customer: CustomerId::from_random(0),
            subscription: None,
            browsers: 0,
        }
    }

    pub(super) fn at(&self, at: &str) {
        clock::stand_at(Some(instant(at)));
    }

    pub(super) fn key(&self) -> &TestKey {
        self.key.as_ref().unwrap()
    }

    pub(super) async fn verified(&self) {
        let report = self.gateway.ledger.verify().await.unwrap();
        assert_eq!(report.faults, [""; 0]);
    }

    /// What is left of the plan, and of the balance beside it.
    pub(super) async fn money(&self) -> (Amount, Amount) {
        let path = format!("/customers/{}/plans", self.customer);
        let plans = self.manage.get(&path).await.json();
        let left = plans["data"][0]["period"]["remaining"].as_str();
        let left = usd(left.unwrap_or("0"));
        let all = self.gateway.account(self.key()).await.customer.account;
        (left, all.balance().checked_sub(left).unwrap())
    }

    pub(super) async fn plan(&self) -> Subscription {
        let plans = (self.gateway.account(self.key()).await.customer.grants).plans;
        plans.get(self.subscription.unwrap()).unwrap().clone()
    }

    /// Waits until what was told has reached the books.
    pub(super) async fn until(&self, is_there: impl Fn(&Subscription) -> bool) {
        let begun = Instant::now();
        while !is_there(&self.plan().await) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.plan().await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the customer has so many receipts and corrections; returns the number of the last.
    pub(super) async fn paper(&self, count: usize) -> String {
        let path = format!("/customers/{}/receipts", self.customer);
        let begun = Instant::now();
        loop {
            let all = self.manage.get(&path).await.json();
            let all = all["data"].as_array().unwrap();
            if let Some(document) = all.get(count - 1) {
                return document["number"].as_str().unwrap().to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "{all:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A small request.
    pub(super) async fn ask(&self) {
        let body =
            json!({ "model": "sim-chat", "messages": [{ "role": "user", "content": "hi" }] });
        let path = "/v1/chat/completions";
        let answer = self.gateway.post(path, self.key(), &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        self.gateway.settled().await;
    }

    /// A page of the shop, or a form that is posted to it, in the buyer's browser.
    pub(super) async fn shop(&mut self, path: &str, fields: Option<&[(&str, &str)]>) -> Answer {
        let path = path.strip_prefix(&self.shop).unwrap_or(path);
        let mut url = reqwest::Url::parse(&format!("{}{path}", self.shop)).unwrap();
        let mut request = self.client.get(url.clone());
        if let Some(fields) = fields {
            url.query_pairs_mut().clear().extend_pairs(fields);
            let form = url.query().unwrap().to_owned();
            url.set_query(None);
            let kind = "application/x-www-form-urlencoded";
            request = self
                .client
                .post(url)
                .header("content-type", kind)
                .body(form);
        }
        let cookies: Vec<_> = (self.cookies.iter())
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let answer = request.header("cookie", cookies.join("; ")).send().await;
        let answer = Answer::read(answer.unwrap()).await;
        for set in answer.headers.get_all("set-cookie") {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }

    /// The shop's page, on which the owner comes from the dashboard.
    pub(super) async fn own(&mut self) -> Answer {
        let visitor = Visitor::signed_in(&self.gateway, self.key()).await;
        let once = field(&visitor.get("/keys").await, "once");
        let way = visitor.post("shop", &[("once", &once)], None).await;
        let way = (way.text.split("href=\"")).find(|part| part.contains("?link="));
        let way = way.expect("a way").split('"').next().unwrap();
        let entered = self.shop(way, None).await;
        let page = entered.header("location").expect("a page").to_owned();
        self.shop(&page, None).await
    }

    /// Buys the n-th offer of a page with a test card; returns the page of the purchase.
    pub(super) async fn buy(&mut self, page: &Answer, offer: usize, name: &str) -> Answer {
        let (proof, once) = (field(page, "proof"), field(page, "once"));
        let offer = page.text.split("name=\"offer\" value=\"").nth(offer + 1);
        let offer = offer.unwrap().split('"').next().unwrap();
        let customer = match page.text.contains("name=\"customer\"") {
            true => field(page, "customer"),
            false => String::new(),
        };
        let form = [
            ("proof", &*proof),
            ("once", &once),
            ("offer", offer),
            ("name", name),
            ("customer", &customer),
        ];
        let onward = self.shop("/checkout", Some(&form)).await;
        let cards = onward
            .text
            .split("href=\"")
            .filter(|part| part.contains("/test-cards?"))
            .last();
        let cards = cards.unwrap_or_else(|| panic!("{}", onward.text));
        let cards = cards.split('"').next().unwrap().replace("&amp;", "&");
        let checkout = field(&self.shop(&cards, None).await, "checkout");
        let card = [("checkout", &*checkout), ("card", "good")];
        let paid = self.shop("/test-cards", Some(&card)).await;
        let back = paid.header("location").expect("a way back").to_owned();
        let begun = Instant::now();
        loop {
            let page = self.shop(&back, None).await;
            if page.text.contains("Thank you") {
                return page;
            }
            assert!(begun.elapsed() < PATIENCE, "{}", page.text);
            tokio::time::sleep(PACE).await;
        }
    }

    /// Does something on the processor's page of the plan.
    pub(super) async fn processor(&mut self, does: &str, payment: u32) -> Answer {
        let (checkout, payment) = (self.checkout.clone(), payment.to_string());
        let form = [
            ("checkout", &*checkout),
            ("does", does),
            ("payment", &payment),
        ];
        let told = self.shop("/test-cards", Some(&form)).await;
        assert!(told.text.contains("Told to the shop"), "{}", told.text);
        told
    }

    pub(super) fn says(&self, page: &Answer, words: &[&str]) {
        let said = text_of(&page.text);
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }

    /// The books verify, and pages say this: without a window, and then in a browser if there is one.
    pub(super) async fn looks(&mut self, step: &str, pages: &[(&str, &[&str])]) {
        self.verified().await;
        let gateway = Arc::clone(&self.gateway);
        let visitor = Visitor::signed_in(&gateway, self.key()).await;
        let mut urls = Vec::new();
        for (page, words) in pages {
            let path = match (*page, page.strip_prefix("PAPER ")) {
                (_, Some(count)) => {
                    let number = self.paper(count.parse().unwrap()).await;
                    format!("/dashboard/paper/{number}")
                }
                (OWN, _) => {
                    self.own().await;
                    format!("/?customer={}", self.customer)
                }
                (path, _) => path.to_owned(),
            };
            tokio::time::sleep(PACE).await;
            let (answer, base) = match path.strip_prefix("/dashboard") {
                Some(path) => (visitor.get(path).await, &gateway.base),
                None => (self.shop(&path, None).await, &self.shop),
            };
            let url = format!("{base}{path}");
            assert_eq!(answer.status, 200, "{step} {path}: {}", answer.text);
            self.says(&answer, words);
            urls.push((url, heading(&answer.text)));
        }
        if has_browser() {
            self.looks_in_browser(step, &visitor.cookie, &urls).await;
        }
    }

    pub(super) async fn looks_in_browser(
        &mut self,
        step: &str,
        session: &str,
        urls: &[(String, String)],
    ) {
        let windows: [Window; 2] = [DESKTOP, PHONE];
        let browser = Browser::open(&self.gateway.client, windows[self.browsers % 2]).await;
        self.browsers += 1;
        browser
            .go(&format!("{}/dashboard", self.gateway.base))
            .await;
        let (name, value) = session.split_once('=').unwrap();
        browser.keep(name, value).await;
        browser.go(&format!("{}/healthz", self.shop)).await;
        for (name, value) in &self.cookies {
            browser.keep(name, value).await;
        }
        for (at, (url, heading)) in urls.iter().enumerate() {
            browser.go(url).await;
            let shown = browser.text("h1").await;
            assert_eq!(shown, *heading, "{step} {url}");
            browser.assert_accessible(&format!("{step} {url}")).await;
            assert!(browser.overhang().await <= 0, "{step} {url}");
            browser.picture(&format!("year-{step}-{at}")).await;
        }
    }
}

pub(super) fn instant(text: &str) -> Timestamp {
    serde_json::from_value(json!(text)).unwrap()
}

pub(super) fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

/// The value of a hidden field.
pub(super) fn field(page: &Answer, name: &str) -> String {
    let before = format!("name=\"{name}\" value=\"");
    let value = page.text.split(&before).nth(1);
    let value = value.unwrap_or_else(|| panic!("{name}: {}", page.text));
    value.split('"').next().unwrap().to_owned()
}

/// What a page is about.
fn heading(page: &str) -> String {
    let heading = page.split("<h1").nth(1).unwrap().split("</h1>").next();
    text_of(&format!("<h1{}", heading.unwrap()))
}

/// What a person reads on a page, in one line.
pub(super) fn text_of(page: &str) -> String {
    let body = page.split("<main").nth(1).unwrap_or(page);
    let mut text = String::new();
    for part in format!("<main{body}").split('<').skip(1) {
        let (tag, rest) = part.split_once('>').unwrap_or((part, ""));
        if !tag.trim_start_matches('/').starts_with("span") {
            text.push(' ');
        }
        text.push_str(rest);
    }
    let text = text
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">");
    let words: Vec<_> = text.split_whitespace().collect();
    words
        .join(" ")
        .replace("&amp;", "&")
        .replace(" ,", ",")
        .replace(" :", ":")
        .replace(" .", ".")
}

//! What the tests stand on: the shop's process, a browser without windows, and the two services beside it.

pub(crate) mod books;
pub(crate) mod gateway;
pub(crate) mod stripe;
pub(crate) mod toll;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use salvo::conn::tcp::TcpAcceptor;
use salvo::prelude::{Router, Server};
use tempfile::TempDir;
use tokio::net::TcpListener;

use books::Books;
use stripe::FakeStripe;
use toll::Toll;

pub(crate) const WEBHOOK_SECRET: &str = "whsec_of_the_tests";
pub(crate) const SHOP: &str = "https://shop.example";
const STRIPE: &str = r#"stripe = { api = "ADDRESS", key = { env = "STRIPE_KEY" },
    webhook_secrets = [{ env = "OLD_SECRET" }, { env = "WEBHOOK_SECRET" }] }"#;
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves a router on a free port until the test ends.
pub(crate) async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TcpAcceptor::try_from(listener).unwrap();
    tokio::spawn(Server::new(acceptor).serve(router));
    format!("http://{address}")
}

pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

/// Whether this run has the full sizes.
pub(crate) fn is_full() -> bool {
    std::env::var_os("FAREBOX_FULL").is_some()
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

pub(crate) async fn read(request: reqwest::RequestBuilder) -> Answer {
    try_read(request).await.expect("an answer")
}

/// The same of somebody who may be killed meanwhile.
pub(crate) async fn try_read(request: reqwest::RequestBuilder) -> Option<Answer> {
    let answer = request.send().await.ok()?;
    Some(Answer {
        status: answer.status().as_u16(),
        headers: answer.headers().clone(),
        text: answer.text().await.ok()?,
    })
}

/// Everything around one shop.
pub(crate) struct Street {
    pub(crate) client: reqwest::Client,
    pub(crate) stripe: FakeStripe,
    pub(crate) books: Books,
    pub(crate) shop: ShopProcess,
    folder: TempDir,
}

impl Street {
    pub(crate) async fn open() -> Self {
        let books = Books::start().await;
        let api = books.base.clone();
        Self::before(books, &api, "fb-token-sell", STRIPE).await
    }

    /// A shop whose cards are simulated.
    pub(crate) async fn of_test_cards() -> Self {
        let books = Books::start().await;
        let api = books.base.clone();
        Self::before(books, &api, "fb-token-sell", "simulated = {}").await
    }

    /// A shop whose gateway is another one, which gave it this token.
    pub(crate) async fn at(api: &str, token: &str) -> Self {
        Self::before(Books::start().await, api, token, STRIPE).await
    }

    /// A shop whose every call to this gateway and to the processor passes a toll.
    pub(crate) async fn behind(toll: &Toll, api: &str, token: &str) -> Self {
        let stripe = FakeStripe::start().await;
        let (to_api, to_stripe) = (toll.before(api).await, toll.before(&stripe.base).await);
        let processor = STRIPE.replace("ADDRESS", &to_stripe);
        Self::with(Books::start().await, stripe, &to_api, token, &processor).await
    }

    async fn before(books: Books, api: &str, token: &str, processor: &str) -> Self {
        let stripe = FakeStripe::start().await;
        let processor = processor.replace("ADDRESS", &stripe.base);
        Self::with(books, stripe, api, token, &processor).await
    }

    async fn with(
        books: Books,
        stripe: FakeStripe,
        api: &str,
        token: &str,
        processor: &str,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = format!(
            r#"
            name = "Key Corner"
            contact = "help@shop.example"
            listen = "127.0.0.1:0"
            public_url = "{SHOP}"
            trusted_proxy = ["127.0.0.1"]
            currency = "EUR"
            [gateway]
            api = "{api}"
            url = "https://llm.example"
            token = {{ file = "token" }}
            [processor]
            {processor}
            [[offer]]
            credit = "10"
            price = "11.90"
            tax = "1.90"
            [[offer]]
            credit = "50"
            price = "59.50"
            tax = "9.50"
            "#,
        );
        std::fs::write(folder.path().join("token"), token).unwrap();
        std::fs::write(folder.path().join("shop.toml"), file).unwrap();
        let shop = ShopProcess::start(&folder).await;
        Self {
            client: client(),
            stripe,
            books,
            shop,
            folder,
        }
    }

    /// Saves the shop's file anew.
    pub(crate) fn edit(&self, change: impl FnOnce(String) -> String) {
        let path = self.folder.path().join("shop.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, change(text)).unwrap();
    }

    /// What `--check` says: its exit code, and everything that it prints.
    pub(crate) async fn check(&self, variables: &[(&str, &str)]) -> (i32, String) {
        let mut command = command(&self.folder);
        command.envs(variables.iter().copied()).arg("--check");
        // Gateway and processor answer meanwhile.
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.unwrap().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(said).unwrap(),
        )
    }

    /// Kills the shop where it stands and starts it again.
    pub(crate) async fn kill_and_restart(&mut self) {
        self.shop.kill();
        self.shop = ShopProcess::start(&self.folder).await;
    }

    /// Posts a callback with this signature header.
    pub(crate) async fn post_callback(&self, body: &str, signature: &str) -> Answer {
        read(self.callback(body, signature)).await
    }

    fn callback(&self, body: &str, signature: &str) -> reqwest::RequestBuilder {
        self.client
            .post(format!("{}/webhook", self.shop.base))
            .header("stripe-signature", signature)
            .body(body.to_owned())
    }

    /// Delivers an event, signed now.
    pub(crate) async fn deliver(&self, event: &serde_json::Value) -> Answer {
        self.try_deliver(event).await.expect("an answer")
    }

    /// To a shop that may be killed meanwhile.
    pub(crate) async fn try_deliver(&self, event: &serde_json::Value) -> Option<Answer> {
        let body = event.to_string();
        let signature = stripe::signed(WEBHOOK_SECRET, stripe::now(), &body);
        try_read(self.callback(&body, &signature)).await
    }
}

/// The shop's program in its folder.
fn command(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farebox-shop"));
    command
        .env_clear()
        .envs([
            ("STRIPE_KEY", "sk_test_of_the_tests"),
            ("OLD_SECRET", "whsec_replaced"),
            ("WEBHOOK_SECRET", WEBHOOK_SECRET),
        ])
        .current_dir(folder.path())
        .stdin(Stdio::null());
    command
}

/// The shop's process. Dropping it kills it.
pub(crate) struct ShopProcess {
    child: Child,
    log: Arc<Mutex<String>>,
    pub(crate) base: String,
}

impl ShopProcess {
    /// Waits until it has said this.
    pub(crate) async fn says(&self, part: &str) {
        let begun = Instant::now();
        while !self.log.lock().unwrap().contains(part) {
            let said = self.log.lock().unwrap().clone();
            assert!(begun.elapsed() < PATIENCE, "{part}: {said}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn start(folder: &TempDir) -> Self {
        let mut child = command(folder).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, kept) = (child.stderr.take().unwrap(), Arc::clone(&log));
        let mut shop = Self {
            child,
            log: Arc::clone(&log),
            base: String::new(),
        };
        std::thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                kept.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let begun = Instant::now();
        loop {
            let said = log.lock().unwrap().clone();
            if let Some(address) = said.split("listening on ").nth(1) {
                let address = address.split_whitespace().next().unwrap();
                let plain: String = address
                    .chars()
                    .filter(|c| c.is_ascii_digit() || ".:".contains(*c))
                    .collect();
                shop.base = format!("http://{plain}");
                return shop;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "the shop does not start: {said}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for ShopProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A buyer's browser, without windows: keeps its cookie and fills in forms.
#[derive(Clone)]
pub(crate) struct Visitor<'a> {
    pub(crate) street: &'a Street,
    pub(crate) cookie: Option<String>,
}

impl<'a> Visitor<'a> {
    pub(crate) const fn new(street: &'a Street) -> Self {
        Self {
            street,
            cookie: None,
        }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.try_get(path).await.expect("an answer")
    }

    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.try_post(path, fields).await.expect("an answer")
    }

    /// Of a shop that may be killed meanwhile.
    pub(crate) async fn try_get(&mut self, path: &str) -> Option<Answer> {
        let request = self.street.client.get(self.url(path));
        self.send(request).await
    }

    /// The same for a form.
    pub(crate) async fn try_post(&mut self, path: &str, fields: &[(&str, &str)]) -> Option<Answer> {
        let mut url = reqwest::Url::parse("http://form.invalid").unwrap();
        url.query_pairs_mut().extend_pairs(fields);
        let request = self
            .street
            .client
            .post(self.url(path))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(url.query().unwrap_or_default().to_owned());
        self.send(request).await
    }

    fn url(&self, path: &str) -> String {
        let path = path.strip_prefix(SHOP).unwrap_or(path);
        format!("{}{path}", self.street.shop.base)
    }

    async fn send(&mut self, mut request: reqwest::RequestBuilder) -> Option<Answer> {
        request = request.header("x-forwarded-for", self.address());
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let answer = try_read(request).await?;
        for set in answer.headers.get_all("set-cookie") {
            let set = set.to_str().unwrap();
            assert!(
                set.starts_with("__Host-") && set.ends_with("; Secure"),
                "{set}"
            );
            self.keep(set.split(';').next().unwrap());
        }
        Some(answer)
    }

    /// Every browser has an address of its own.
    fn address(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.cookie.hash(&mut hasher);
        let [.., a, b, c] = hasher.finish().to_be_bytes();
        format!("10.{a}.{b}.{c}")
    }

    /// Keeps a cookie in place of an earlier one of its name.
    fn keep(&mut self, pair: &str) {
        let name = pair.split('=').next().unwrap();
        let kept = self.cookie.take().unwrap_or_default();
        let others = kept
            .split("; ")
            .filter(|other| !other.is_empty() && other.split('=').next() != Some(name));
        let all: Vec<&str> = others.chain([pair]).collect();
        self.cookie = Some(all.join("; "));
    }

    /// Fills in the form of the price page; returns the processor's page that it leads to.
    pub(crate) async fn buy(&mut self, more: &[(&str, &str)]) -> String {
        let page = self.get("/").await;
        let mut answer = self.send_form(&page, more).await;
        // Many buyers of one address are asked to come back.
        for _ in 0..60 {
            if answer.status != 503 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            answer = self.send_form(&page, more).await;
        }
        assert_eq!(answer.status, 200, "{}", answer.text);
        pay_page(&answer)
    }

    /// The form of a price page with these fields over its own.
    pub(crate) async fn send_form(&mut self, page: &Answer, more: &[(&str, &str)]) -> Answer {
        let (proof, once) = (hidden(&page.text, "proof"), hidden(&page.text, "once"));
        let offer = option(&page.text, 0);
        let own = [
            ("proof", proof.as_str()),
            ("once", &once),
            ("offer", &offer),
        ];
        let own = own
            .into_iter()
            .filter(|(name, _)| !more.iter().any(|(other, _)| other == name));
        let fields: Vec<(&str, &str)> = own.chain(more.iter().copied()).collect();
        self.post("/checkout", &fields).await
    }

    /// The same as a request that says itself where it is from.
    pub(crate) fn form(&self, page: &Answer) -> reqwest::RequestBuilder {
        let (proof, once) = (hidden(&page.text, "proof"), hidden(&page.text, "once"));
        let offer = option(&page.text, 0);
        let mut url = reqwest::Url::parse("http://form.invalid").unwrap();
        let fields = [("proof", &proof), ("once", &once), ("offer", &offer)];
        url.query_pairs_mut().extend_pairs(fields);
        self.street
            .client
            .post(self.url("/checkout"))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("cookie", self.cookie.as_deref().unwrap_or_default())
            .body(url.query().unwrap_or_default().to_owned())
    }
}

/// Where an answer sends the browser to pay.
pub(crate) fn pay_page(answer: &Answer) -> String {
    let links = answer.text.split("href=\"");
    let link = links.filter(|part| part.contains("/pay/")).last();
    let link = link.expect("a page to pay on").split('"').next();
    link.unwrap().replace("&amp;", "&")
}

/// What the form calls the n-th offer.
pub(crate) fn option(page: &str, n: usize) -> String {
    let value = page
        .split("name=\"offer\" value=\"")
        .nth(n + 1)
        .expect("an offer");
    value.split('"').next().unwrap().to_owned()
}

/// The value of a hidden field.
pub(crate) fn hidden(page: &str, name: &str) -> String {
    let field = format!("name=\"{name}\" value=\"");
    let value = page
        .split(&field)
        .nth(1)
        .unwrap_or_else(|| panic!("{name}: {page}"));
    value.split('"').next().unwrap().to_owned()
}

//! A headless Chromium, driven over WebDriver: open, type, press, query the page, take a screenshot.
//!
//! One browser at a time: tests share two cores with everything else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

static TURN: Mutex<()> = Mutex::const_new(());

/// A window on a page. Dropping it ends the browser.
pub(crate) struct Browser {
    client: reqwest::Client,
    session: String,
    driver: Child,
    /// Where driver and browser keep their files. They do not remove all of them.
    _folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// The window's size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
    pub(crate) scripts: bool,
}

/// A desktop's window and a phone's.
pub(crate) const DESKTOP: Window = Window {
    width: 1280,
    height: 900,
    dark: false,
    scripts: true,
};
pub(crate) const PHONE: Window = Window {
    width: 390,
    height: 844,
    dark: true,
    scripts: true,
};

impl Browser {
    /// Starts one.
    pub(crate) async fn open(client: &reqwest::Client, window: Window) -> Self {
        let turn = TURN.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let (driver, port) = (0..5)
            .find_map(|_| start_driver(folder.path()))
            .expect("chromedriver says its port");
        let mut options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                format!("--window-size={},{}", window.width, window.height)],
            "prefs": { "profile.managed_default_content_settings.javascript": if window.scripts { 1 } else { 2 } },
        });
        if window.width < 500 {
            options["mobileEmulation"] = json!({ "deviceMetrics": { "width": window.width, "height": window.height, "pixelRatio": 2, "touch": true } });
        }
        let wanted = json!({ "capabilities": { "alwaysMatch": { "browserName": "chrome", "timeouts": { "implicit": 60_000, "script": 120_000 }, "goog:chromeOptions": options } } });
        let base = format!("http://127.0.0.1:{port}/session");
        let answer: Value = client
            .post(&base)
            .json(&wanted)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let id = answer["value"]["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("no Chromium: {answer}"));
        let session = format!("{base}/{id}");
        let browser = Self {
            client: client.clone(),
            session,
            driver,
            _folder: folder,
            _turn: turn,
        };
        if window.dark {
            let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
            browser.chromium("Emulation.setEmulatedMedia", dark).await;
        }
        browser
    }

    async fn call(&self, path: &str, body: Value) -> Value {
        let sent = self
            .client
            .post(format!("{}/{path}", self.session))
            .json(&body)
            .send()
            .await
            .unwrap();
        let answer: Value = sent.json().await.unwrap();
        assert!(
            answer["value"].get("error").is_none(),
            "{path}: {}",
            answer["value"]
        );
        answer["value"].clone()
    }

    async fn chromium(&self, command: &str, parameters: Value) -> Value {
        self.call(
            "goog/cdp/execute",
            json!({ "cmd": command, "params": parameters }),
        )
        .await
    }

    /// Opens an address.
    pub(crate) async fn go(&self, url: &str) {
        self.call("url", json!({ "url": url })).await;
    }

    /// Has it keep a cookie of the host whose page is open.
    pub(crate) async fn keep(&self, name: &str, value: &str) {
        let secure = name.starts_with("__Host-");
        let cookie = json!({ "name": name, "value": value, "path": "/", "secure": secure, "httpOnly": true });
        self.call("cookie", json!({ "cookie": cookie })).await;
    }

    /// Runs a script in the page and returns its result.
    pub(crate) async fn ask(&self, script: &str) -> Value {
        self.call("execute/sync", json!({ "script": script, "args": [] }))
            .await
    }

    /// The text that a person sees in the first element that matches.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let element = self.element(selector).await;
        let sent = self
            .client
            .get(format!("{}/element/{element}/text", self.session))
            .send()
            .await
            .unwrap();
        let answer: Value = sent.json().await.unwrap();
        answer["value"].as_str().unwrap_or_default().to_owned()
    }

    /// Types into the first element that matches.
    pub(crate) async fn type_into(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        self.call(&format!("element/{element}/value"), json!({ "text": text }))
            .await;
    }

    /// Presses the first element that matches.
    pub(crate) async fn press(&self, selector: &str) {
        let element = self.element(selector).await;
        self.call(&format!("element/{element}/click"), json!({}))
            .await;
    }

    async fn element(&self, selector: &str) -> String {
        let found = self
            .call(
                "element",
                json!({ "using": "css selector", "value": selector }),
            )
            .await;
        found
            .as_object()
            .and_then(|found| found.values().next()?.as_str())
            .unwrap()
            .to_owned()
    }

    /// Waits until a script returns true.
    pub(crate) async fn until(&self, what: &str, script: &str) {
        for _ in 0..1_200 {
            if self.ask(script).await == true {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!(
            "{what}: {}",
            self.ask("return document.body.innerText").await
        );
    }

    /// Waits until a person sees this in the first element that matches; needs no scripts in the page.
    pub(crate) async fn shows(&self, selector: &str, part: &str) {
        for _ in 0..1_200 {
            let found = json!({ "using": "css selector", "value": selector });
            let sent = self
                .client
                .post(format!("{}/element", self.session))
                .json(&found)
                .send()
                .await
                .unwrap();
            let found: Value = sent.json().await.unwrap();
            // An element of a page that is being left has no text: the next look finds the new one.
            if let Some(element) = found["value"]
                .as_object()
                .and_then(|found| found.values().next()?.as_str())
            {
                let sent = self
                    .client
                    .get(format!("{}/element/{element}/text", self.session))
                    .send()
                    .await
                    .unwrap();
                let answer: Value = sent.json().await.unwrap();
                if answer["value"]
                    .as_str()
                    .is_some_and(|text| text.contains(part))
                {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{selector} never shows {part:?}");
    }

    /// How many pixels the page is wider than its window.
    pub(crate) async fn overhang(&self) -> i64 {
        let script = "return document.documentElement.scrollWidth - window.innerWidth";
        self.ask(script).await.as_i64().unwrap()
    }

    /// Shows the page as it is printed.
    pub(crate) async fn on_paper(&self) {
        self.chromium("Emulation.setEmulatedMedia", json!({ "media": "print" }))
            .await;
    }

    /// Stores a picture of the whole page below target/screenshots.
    pub(crate) async fn picture(&self, name: &str) {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let whole = json!({ "format": "png", "captureBeyondViewport": true });
        let taken = self.chromium("Page.captureScreenshot", whole).await;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(taken["data"].as_str().unwrap())
            .unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Runs axe-core over the page and fails with what it found.
    pub(crate) async fn assert_accessible(&self, place: &str) {
        self.ask(include_str!("../assets/axe.min.js")).await;
        let script = "const done = arguments[0]; axe.run(document, { resultTypes: ['violations'] }).then((found) => \
             done(found.violations.map((v) => `${v.id}: ${v.help}: ` + v.nodes.map((n) => n.html).join(' | '))));";
        let found = self
            .call("execute/async", json!({ "script": script, "args": [] }))
            .await;
        let found: Vec<&str> = found
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert!(found.is_empty(), "{place}:\n{}", found.join("\n"));
    }
}

/// The driver on a port of its own choice; `None` when somebody else took that port in between.
fn start_driver(folder: &Path) -> Option<(Child, String)> {
    let mut driver = Command::new("chromedriver");
    let started = driver
        .arg("--port=0")
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut driver = started
        .unwrap_or_else(|error| panic!("chromedriver: {error}; ./test --install installs it"));
    let mut lines = BufReader::new(driver.stdout.take().expect("its output is a pipe"))
        .lines()
        .map_while(Result::ok);
    let port = lines.find_map(|line| {
        line.split("successfully on port ")
            .nth(1)
            .map(|port| port.trim_end_matches('.').to_owned())
    });
    match port {
        Some(port) => {
            // Nobody reads further lines, but the driver must be able to write them.
            std::thread::spawn(move || lines.for_each(drop));
            Some((driver, port))
        }
        None => {
            let _ = driver.wait();
            None
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Only the driver can end its browser, and only when it is asked to: a signal would leave every process of it behind.
        let asked = end_session(&self.session);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        assert!(
            asked.is_ok() || std::thread::panicking(),
            "the browser is still there: {asked:?}"
        );
    }
}

/// Ends a session and its browser, and waits until that is done. Without the runtime, which may be ending too.
fn end_session(session: &str) -> std::io::Result<()> {
    let address = session.trim_start_matches("http://");
    let (host, path) = address
        .split_once('/')
        .expect("a session is a path on a host");
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(
        stream,
        "DELETE /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )?;
    stream.read(&mut [0; 64]).map(drop)
}

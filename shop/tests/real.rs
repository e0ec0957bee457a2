//! The shop before the real gateway, with a real ledger: kills of both, and the books afterwards.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Street, Visitor, hidden};

/// The gateway as a process, on the same addresses after each start. Dropping it kills it.
struct RealGateway {
    child: Option<Child>,
    folder: TempDir,
    admin: SocketAddr,
    listen: SocketAddr,
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Built beside the shop, as `cargo test --workspace` does.
fn binary() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_farebox-shop")).with_file_name("farebox");
    assert!(
        path.exists(),
        "build the gateway first: cargo build --workspace"
    );
    path
}

impl RealGateway {
    fn command(&self, arguments: &[&str]) -> Command {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut command = Command::new(binary());
        command
            .env_clear()
            .current_dir(self.folder.path())
            .env("FAREBOX_CATALOG", root.join("catalog.toml"))
            .env("FAREBOX_ROUTES", root.join("routes.toml"))
            .env("FAREBOX_LISTEN", self.listen.to_string())
            .env("FAREBOX_ADMIN_LISTEN", self.admin.to_string())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).arg("--json").output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {told}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    async fn start() -> Self {
        let mut gateway = Self {
            child: None,
            folder: tempfile::tempdir().unwrap(),
            admin: free(),
            listen: free(),
        };
        gateway.resume().await;
        gateway
    }

    async fn resume(&mut self) {
        let serving = self
            .command(&["serve", "--wait-lock", "30"])
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(serving.unwrap());
        let begun = Instant::now();
        while std::net::TcpStream::connect(self.admin).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "the gateway does not serve"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn token(&self, daily: &str) -> String {
        let made = self.json(&[
            "tokens", "create", "shop", "--role", "sell", "--daily", daily,
        ]);
        made["secret"].as_str().unwrap().to_owned()
    }

    fn entries(&self) -> Vec<Value> {
        let all = self.json(&["ledger", "entries"]);
        all["entries"].as_array().unwrap().clone()
    }

    fn references(&self) -> Vec<String> {
        let entries = self.entries();
        let paid = entries.iter().filter(|entry| entry["kind"] == "top_up");
        let mut found: Vec<String> = paid
            .map(|entry| entry["reference"].as_str().unwrap().to_owned())
            .collect();
        found.sort();
        found
    }

    fn assert_sound(&self) {
        let output = self.command(&["ledger", "verify"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for RealGateway {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test]
async fn a_card_becomes_a_key_that_works_and_money_goes_back() {
    let gateway = RealGateway::start().await;
    let street = Street::at(&format!("http://{}", gateway.admin), &gateway.token("100")).await;
    let mut visitor = Visitor::new(&street);
    assert!(
        visitor
            .get("/")
            .await
            .text
            .contains("data-label=\"Customer slug\"")
    );
    let pay = visitor.buy(&[("name", "Zoë & Söhne")]).await;
    let (id, event) = street.stripe.pay(&pay);
    for _ in 0..3 {
        let answer = street.deliver(&event).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    assert_eq!(gateway.references(), ["pi_1"]);
    let thanks = visitor.get(&format!("/bought?checkout={id}")).await;
    let fields = [
        ("proof", hidden(&thanks.text, "proof")),
        ("checkout", id.clone()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let secret = async |visitor: &mut Visitor<'_>| {
        let page = visitor.post("/key", &fields).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let text = page.text.split("id=\"secret\">").nth(1).unwrap().to_owned();
        text.split('<').next().unwrap().to_owned()
    };
    let first = secret(&mut visitor).await;
    let second = secret(&mut visitor).await;
    assert_ne!(first, second);
    let ask = async |secret: &str| {
        let url = format!("http://{}/v1/key", gateway.listen);
        let answer = street
            .client
            .get(url)
            .bearer_auth(secret)
            .send()
            .await
            .unwrap();
        answer.status().as_u16()
    };
    assert_eq!((ask(&first).await, ask(&second).await), (401, 200));
    let receipt = visitor.get(&format!("/receipt?checkout={id}")).await;
    assert!(
        receipt.text.contains("-1-1") && receipt.text.contains("11.90 EUR"),
        "{}",
        receipt.text
    );

    // A refund, told twice, and a dispute that is won.
    let charge = street.stripe.charge(&id, 595);
    let refund = crate::support::stripe::event("evt_r", "charge.refunded", &charge);
    let dispute = street.stripe.dispute(&id, "dp_1", 595, "needs_response");
    let taken = crate::support::stripe::event("evt_d", "charge.dispute.funds_withdrawn", &dispute);
    let dispute = street.stripe.dispute(&id, "dp_1", 595, "won");
    let won = crate::support::stripe::event("evt_w", "charge.dispute.funds_reinstated", &dispute);
    for told in [&refund, &taken, &refund, &won, &taken] {
        let answer = street.deliver(told).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let back: Vec<String> = gateway
        .entries()
        .iter()
        .filter(|entry| entry["kind"] == "reversal")
        .map(|entry| entry["amount"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(back, ["-5.00", "-5.00", "5.00"]);
    gateway.assert_sound();
}

#[tokio::test]
async fn beyond_its_daily_bound_a_token_books_nothing_and_the_payment_is_kept() {
    let gateway = RealGateway::start().await;
    let street = Street::at(&format!("http://{}", gateway.admin), &gateway.token("15")).await;
    for _ in 0..2 {
        let page = Visitor::new(&street).buy(&[]).await;
        let (_, event) = street.stripe.pay(&page);
        let answer = street.deliver(&event).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    assert_eq!(gateway.references(), ["pi_1"]);
    let kept = gateway.json(&["customers", "unapplied"]);
    assert_eq!(kept["payments"][0]["reference"], "pi_2", "{kept}");
    gateway.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_shop_and_gateway_leave_books_where_every_payment_stands_once() {
    let mut gateway = RealGateway::start().await;
    let token = gateway.token("1000");
    let mut street = Street::at(&format!("http://{}", gateway.admin), &token).await;
    let mut events = Vec::new();
    for n in 0_u64..6 {
        let page = Visitor::new(&street).buy(&[]).await;
        events.push(street.stripe.pay(&page).1);
        // Everything is told again meanwhile; who is killed, and after how long, differs from round to round.
        let patience = Duration::from_millis(3 + n * 7);
        let telling = async {
            for event in &events {
                street.deliver(event).await;
            }
        };
        let _ = tokio::time::timeout(patience, telling).await;
        if n % 2 == 0 {
            gateway.kill();
            gateway.resume().await;
        }
        if n % 3 != 1 {
            street.kill_and_restart().await;
        }
    }
    for event in &events {
        let answer = street.deliver(event).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    assert_eq!(
        gateway.references(),
        ["pi_1", "pi_2", "pi_3", "pi_4", "pi_5", "pi_6"]
    );
    let customers = gateway.json(&["customers", "list"]);
    assert_eq!(customers["customers"].as_array().unwrap().len(), 6);
    gateway.assert_sound();
}

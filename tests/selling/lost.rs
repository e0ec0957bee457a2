//! Answers that were lost: a secret is replaced before its first use, and a process that dies is asked again.

use farebox_ledger::{CustomerId, KeySettings, TokenRole};
use serde_json::{Value, json};

use super::{Program, code, gateway, new_token, text};
use crate::support::cluster::Cluster;
use crate::support::load::{UPSTREAM_KEY, new_ledger};
use crate::support::process::{self, Served};
use crate::support::skip::skip;
use crate::support::{CATALOG, TestKey, chat, sized};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn a_lost_secret_is_replaced_before_its_first_use_and_not_after() {
    let (_upstream, gateway) = gateway().await;
    let sell = Program::new(&gateway, TokenRole::Sell).await;
    let customer = sell.customer("Ada").await;
    let paid = json!({ "amount": "5", "reference": "pi_1" });
    sell.does(&format!("/customers/{customer}/top-ups"), &paid, 201)
        .await;
    let key = json!({ "label": "laptop", "owner": true });
    let lost = sell
        .does(&format!("/customers/{customer}/keys"), &key, 201)
        .await;
    let path = format!("/keys/{}/reissue", text(&lost, "id"));
    let new = sell.does(&path, &json!({}), 200).await;
    assert_eq!(new["id"], lost["id"]);
    assert_ne!(new["secret"], lost["secret"]);
    let with = |made: &Value| TestKey {
        id: text(made, "id").parse().unwrap(),
        secret: text(made, "secret"),
    };
    let body = chat("test-model", false);
    assert_eq!(gateway.post(CHAT, &with(&lost), &body).await.status, 401);
    assert_eq!(gateway.post(CHAT, &with(&new), &body).await.status, 200);
    gateway.settled().await;
    let late = sell.post(&path, "late", &json!({})).await;
    assert_eq!(late.status, 409, "{}", late.text);
    assert_eq!(code(&late), "not_applicable");
    // Not for keys that another made.
    let other = gateway.key("1").await;
    let foreign = sell
        .post(&format!("/keys/{}/reissue", other.id), "f", &json!({}))
        .await;
    assert_eq!(
        (foreign.status, code(&foreign).as_str()),
        (403, "not_allowed")
    );
}

/// A process that serves this folder, and a client of it that has this token.
fn served(folder: &std::path::Path, secret: &str) -> (Served, Client) {
    let served = Served::start(folder, &[]);
    let client = Client {
        base: format!("{}/api/v1", served.admin),
        client: process::client(),
        secret: secret.to_owned(),
    };
    (served, client)
}

/// A program that knows no more than its token.
struct Client {
    base: String,
    client: reqwest::Client,
    secret: String,
}

impl Client {
    /// The status and body of a POST, if one came.
    async fn post(&self, path: &str, key: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request
            .bearer_auth(&self.secret)
            .header("idempotency-key", key);
        let answer = request.json(body).send().await.ok()?;
        let status = answer.status().as_u16();
        let text = answer.text().await.ok()?;
        Some((status, serde_json::from_str(&text).ok()?))
    }
}

/// Whom a repetition reaches is another gateway of the fleet, at once: it knows what the dead one did, or does it.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_instant_a_fleet_books_each_payment_once() {
    let Some(cluster) = Cluster::shared() else {
        return skip("payments at a fleet: PostgreSQL is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
    let routes = crate::support::routes("http://127.0.0.1:1/v1");
    std::fs::write(folder.path().join("routes.toml"), routes).unwrap();
    let address = cluster.url(&cluster.database());
    let ledger = new_ledger(&address).await;
    let (_, secret) = new_token(&*ledger, "shop", TokenRole::Manage, None).await;
    let key = crate::support::new_key(&*ledger, "1", KeySettings::default()).await;
    let customer = CustomerId::made_for(key.id);
    let path = format!("/customers/{customer}/top-ups");
    let environment = [
        UPSTREAM_KEY,
        ("FAREBOX_ALLOW_SINGLE", "true"),
        ("FAREBOX_LEDGER", &address),
    ];
    let start = || {
        let served = Served::start_with(folder.path(), &[], &environment);
        let client = Client {
            base: format!("{}/api/v1", served.admin),
            client: process::client(),
            secret: secret.clone(),
        };
        (served, client)
    };
    let (_survivor, other) = start();
    let (mut lost, rounds) = (0, sized(12, 200));
    for round in 0..rounds {
        let name = format!("pi_{round}");
        let body = json!({ "amount": "2", "reference": name });
        let (mut process, program) = start();
        // Its connections to the database are there by now; the first call pays for nothing else.
        assert!(program.post(&path, "none", &json!({})).await.is_some());
        let killing = async {
            tokio::time::sleep(std::time::Duration::from_micros(500 * (round % 24))).await;
            process.kill();
        };
        let (told, ()) = tokio::join!(program.post(&path, &name, &body), killing);
        lost += u64::from(told.is_none());
        // The database may still be ending the dead one's transaction.
        let mut first = other.post(&path, &name, &body).await.unwrap();
        for _ in 0..20 {
            if first.0 != 409 {
                break;
            }
            first = other.post(&path, &name, &body).await.unwrap();
        }
        assert_eq!(first.0, 201, "{first:?}");
        assert_eq!(other.post(&path, &name, &body).await, Some(first));
    }
    println!("{lost} of {rounds} answers were lost");
    let shown = ledger.find_customer(customer).await.unwrap().unwrap();
    let expected = format!("{}.00", 1 + 2 * rounds);
    assert_eq!(shown.account.balance().to_string(), expected);
    let report = ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_instant_each_payment_is_booked_once() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["catalog.toml", "routes.toml"] {
        let from = std::path::Path::new(crate::support::HOME).join(name);
        std::fs::copy(from, folder.path().join(name)).unwrap();
    }
    let key = process::funded_key(folder.path(), "1");
    let token = process::json(
        folder.path(),
        &["tokens", "create", "shop", "--role", "manage"],
    );
    let secret = text(&token, "secret");
    assert!(secret.starts_with("fb-token-"));
    let path = format!("/customers/{}/top-ups", text(&key, "customer"));
    let (mut replays, rounds) = (0, 12);
    for round in 0..rounds {
        let name = format!("pi_{round}");
        let body = json!({ "amount": "2", "reference": name });
        let (mut process, program) = served(folder.path(), &secret);
        let lost = async {
            let told = program.post(&path, &name, &body).await;
            told.map(|(status, _)| status)
        };
        // From before the request arrives to after its answer was sent.
        let killing = async {
            tokio::time::sleep(std::time::Duration::from_micros(700 * round)).await;
            process.kill();
        };
        let (_, ()) = tokio::join!(lost, killing);
        let (_process, program) = served(folder.path(), &secret);
        let (status, first) = program.post(&path, &name, &body).await.unwrap();
        assert_eq!(status, 201, "{first}");
        let (status, again) = program.post(&path, &name, &body).await.unwrap();
        assert_eq!((status, &again), (201, &first));
        replays += 1;
    }
    assert_eq!(replays, rounds);
    let shown = process::json(
        folder.path(),
        &["customers", "show", &text(&key, "customer")],
    );
    assert_eq!(shown["balance"], "25.00");
    let report = process::json(folder.path(), &["ledger", "verify"]);
    assert_eq!(report["faults"], json!([]));
}

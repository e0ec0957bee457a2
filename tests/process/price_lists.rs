//! Price lists in the real program: given by command, charged, and missing at a start or on one gateway of a fleet.

use std::fs;
use std::path::Path;

use farebox_ledger::Amount;
use serde_json::Value;
use tokio::task::block_in_place;

use super::bad_days::{over, told};
use crate::money::price_lists::put_on;
use crate::support::cluster::Cluster;
use crate::support::load::{self, UPSTREAM_KEY};
use crate::support::process::{Served, client, document_at, farebox, json};
use crate::support::skip::skip;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, routes, talking};

const LIST: &str = r#"
[[price_list]]
name = "partners"
price.test-model = { input = "1.50", output = "7.50" }
"#;

/// The word for what nobody here knows.
const UNKNOWN: &str = "price_list_unknown";

fn save(folder: &Path, list: &str) {
    fs::write(folder.join("catalog.toml"), format!("{CATALOG}{list}")).unwrap();
}

/// A customer with a dollar and a key, made by commands: its id and the secret.
fn customer(folder: &Path, label: &str, more: &[&str]) -> (String, String) {
    let create = ["customers", "create", "--label", label];
    let id = text(&json(folder, &[&create[..], more].concat()), "id");
    let paid = ["customers", "top-up", &id, "1", "--reference", label];
    json(folder, &paid);
    let key = ["keys", "create", "--label", label, "--customer", &id];
    (id.clone(), text(&json(folder, &key), "secret"))
}

fn text(document: &Value, name: &str) -> String {
    document[name].as_str().unwrap().to_owned()
}

/// Why a command refuses.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = farebox(folder, arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_list_is_given_shown_and_taken_by_command() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    save(place, LIST);
    fs::write(place.join("routes.toml"), routes("http://127.0.0.1:9")).unwrap();
    json(
        place,
        &["keys", "create", "--label", "first", "--new-ledger"],
    );
    let (id, _) = customer(place, "Ada", &["--price-list", "partners"]);
    let list = || {
        let shown = json(place, &["customers", "show", &id]);
        shown["price_list"].clone()
    };
    assert_eq!(list(), "partners");
    let set = |name| ["customers", "set", &id, "--price-list", name];
    let why = refusal(place, &set("Partners"));
    assert!(
        why.contains("the catalog has no price list `Partners`; did you mean `partners`?"),
        "{why}"
    );
    let create = [
        "customers",
        "create",
        "--label",
        "x",
        "--price-list",
        "gold",
    ];
    let why = refusal(place, &create);
    assert!(
        why.contains("the catalog has no price list `gold`"),
        "{why}"
    );
    assert_eq!(list(), "partners");
    let listed = json(place, &["models", "--price-list", "partners"]);
    assert!(
        listed.to_string().contains("in $1.50 · out $7.50"),
        "{listed}"
    );
    json(place, &set("none"));
    assert_eq!(list(), Value::Null);
    json(place, &set("partners"));
    assert_eq!(list(), "partners");
    let verified = json(place, &["ledger", "verify"]);
    assert_eq!(verified["faults"], serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_a_customers_list_refuses_that_customer_alone() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    save(place, LIST);
    fs::write(place.join("routes.toml"), routes(&upstream.base_url())).unwrap();
    json(
        place,
        &["keys", "create", "--label", "first", "--new-ledger"],
    );
    let (id, listed) = customer(place, "Ada", &["--price-list", "partners"]);
    let (other_id, other) = customer(place, "Bob", &[]);
    let start = || {
        let ledger = place.join("farebox.db").display().to_string();
        block_in_place(|| Served::start_with(place, &[], &[UPSTREAM_KEY]).watched(&ledger))
    };
    let mut gateway = start();
    for secret in [&listed, &other] {
        gateway.ask("test-model", secret).await.unwrap();
    }
    gateway.signal("TERM");
    block_in_place(|| gateway.ended());
    let spent = |id: &str| {
        let shown = json(place, &["customers", "show", id]);
        shown["spent"].as_str().unwrap().parse::<f64>().unwrap()
    };
    let (half, whole) = (spent(&id), spent(&other_id));
    assert!(
        half > 0.0 && (half * 2.0 - whole).abs() < 1e-12,
        "{half} {whole}"
    );

    save(place, "");
    let mut gateway = start();
    let refused = gateway.ask("test-model", &listed).await.unwrap_err();
    assert!(
        refused.starts_with("503 ") && refused.contains(UNKNOWN),
        "{refused}"
    );
    gateway.ask("test-model", &other).await.unwrap();
    let alert = told(&gateway, UNKNOWN, "partners").await;
    assert!(
        alert["reason"]
            .as_str()
            .unwrap()
            .contains("customers who have it: 1"),
        "{alert}"
    );
    // It is back, as it was.
    save(place, LIST);
    over(&gateway, UNKNOWN, "partners").await;
    gateway.ask("test-model", &listed).await.unwrap();
    gateway.signal("TERM");
    block_in_place(|| gateway.ended());
    assert!((spent(&id) - 2.0 * half).abs() < 1e-12);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_gateways_the_one_without_a_list_refuses_its_customer() {
    let Some(cluster) = Cluster::shared() else {
        return skip("a fleet with different price lists: PostgreSQL is not installed");
    };
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folders = [LIST, LIST, ""].map(|list| {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), list);
        fs::write(
            folder.path().join("routes.toml"),
            routes(&upstream.base_url()),
        )
        .unwrap();
        folder
    });
    let address = cluster.url(&cluster.database());
    let ledger = load::new_ledger(&address).await;
    let (listed, other) = (
        load::key(&*ledger, "5").await,
        load::key(&*ledger, "5").await,
    );
    put_on(&*ledger, &listed, Some("partners")).await;
    let environment = [UPSTREAM_KEY, ("FAREBOX_LEDGER", address.as_str())];
    let mut gateways = folders.each_ref().map(|folder| {
        block_in_place(|| {
            let flags = ["--allow-single"];
            Served::start_with(folder.path(), &flags, &environment).watched(&address)
        })
    });
    let [one, two, lacking] = &gateways;
    for gateway in [one, two] {
        gateway.ask("test-model", &listed.secret).await.unwrap();
    }
    let refused = lacking.ask("test-model", &listed.secret).await.unwrap_err();
    assert!(
        refused.starts_with("503 ") && refused.contains(UNKNOWN),
        "{refused}"
    );
    for gateway in &gateways {
        gateway.ask("test-model", &other.secret).await.unwrap();
    }
    told(lacking, UNKNOWN, "partners").await;
    told(one, "configuration_differs", "").await;
    for gateway in [one, two] {
        let status = document_at(&client(), format!("{}/status", gateway.admin)).await;
        assert!(!status["alerts"].to_string().contains(UNKNOWN), "{status}");
    }
    // Twice its own price, and nothing for the refusal.
    for gateway in &mut gateways {
        gateway.signal("TERM");
        block_in_place(|| gateway.ended());
    }
    let mut spent = Vec::new();
    for key in [&listed, &other] {
        let account = ledger
            .find_key(key.id)
            .await
            .unwrap()
            .unwrap()
            .customer
            .account;
        assert_eq!(account.held, Amount::ZERO);
        spent.push(account.spent.picos());
    }
    assert!(spent[0] > 0 && spent[0] * 3 == spent[1], "{spent:?}");
}

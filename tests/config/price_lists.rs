//! Price lists in the file: an edit says how many have what it changes, and a reload that would lose one that customers have is refused.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::money::price_lists::put_on;
use crate::support::process::json;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, routes, talking};

const LISTS: &str = r#"
[[price_list]]
name = "partners"
price.test-model = { input = "2.00", output = "10.00" }

[[price_list]]
name = "staff"
only = true
price.test-blind = { input = "0", output = "0" }
"#;

/// What `/status` says, when it says this of the files.
async fn status(gateway: &Gateway, state: &str, generation: u64) -> Value {
    for _ in 0..600 {
        let status = gateway.ask("/status").await.json();
        if status["state"] == state && status["generation"] == generation {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{}", gateway.ask("/status").await.text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_customers_have_stays_until_they_have_another() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    let [catalog, paths] = ["catalog.toml", "routes.toml"].map(|name| folder.path().join(name));
    fs::write(&catalog, format!("{CATALOG}{LISTS}")).unwrap();
    fs::write(&paths, routes(&upstream.base_url())).unwrap();
    let gateway = Gateway::watching(&catalog, &paths).await;
    let key = gateway.key("1").await;
    put_on(&*gateway.ledger, &key, Some("partners")).await;

    let renamed = LISTS
        .replace("\"partners\"", "\"Partners\"")
        .replace("\"0\"", "\"0.01\"");
    fs::write(
        folder.path().join("new.toml"),
        format!("{CATALOG}{renamed}"),
    )
    .unwrap();
    let ledger = gateway.ledger_path();
    let differs = json(
        folder.path(),
        &[
            "diff",
            "--catalog",
            "new.toml",
            "--ledger",
            ledger.to_str().unwrap(),
            "--admin-listen",
            gateway.admin.strip_prefix("http://").unwrap(),
        ],
    );
    let said = |row: &Value| {
        ["change", "subject", "name", "field", "customers"]
            .map(|name| row[name].to_string())
            .join(" ")
    };
    let rows: Vec<String> = differs["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(said)
        .collect();
    assert_eq!(
        rows,
        [
            r#""added" "price_list" "Partners" "only" 0"#,
            r#""added" "price_list" "Partners/test-model" "price" 0"#,
            r#""changed" "price_list" "staff/test-blind" "price" 0"#,
            r#""removed" "price_list" "partners" "only" 1"#,
            r#""removed" "price_list" "partners/test-model" "price" 1"#,
        ]
    );

    fs::write(&catalog, format!("{CATALOG}{renamed}")).unwrap();
    let kept = status(&gateway, "rejected", 1).await;
    let why = kept["diagnostics"][0]["message"].as_str().unwrap();
    assert_eq!(
        why,
        "the price list `partners` is gone; customers who have it: 1"
    );
    let models = gateway.get("/v1/models", &key).await.json();
    assert_eq!(models["data"][0]["price"]["input"], "2.00");
    // With the name back, only the other list changes.
    let mended = renamed.replace("\"Partners\"", "\"partners\"");
    fs::write(&catalog, format!("{CATALOG}{mended}")).unwrap();
    status(&gateway, "ok", 2).await;
    // Nobody has it any more.
    put_on(&*gateway.ledger, &key, None).await;
    fs::write(&catalog, CATALOG).unwrap();
    let taken = status(&gateway, "ok", 3).await;
    assert_eq!(taken["lists"], serde_json::json!([]));
}

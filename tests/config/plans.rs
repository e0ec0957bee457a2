//! Plans in the file: an edit says how many have what it changes, and a plan whose models are all gone is an alert.

use std::fs;
use std::time::Duration;

use farebox_ledger::{Perform as _, PlanAct, PlanChange, PlanPurchase, SubscriptionId};
use serde_json::Value;

use crate::support::process::json;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, act, routes, talking};

const PLAN: &str = r#"
[[plan]]
name      = "coder"
title     = "Coder, monthly"
price     = "20.00"
allowance = "25.00"
period    = "month"
"#;

/// A subscription to the plan, that somebody is given.
async fn subscribe(gateway: &Gateway) {
    let key = gateway.key("1").await;
    let customer = gateway.account(&key).await.customer.id;
    let config = gateway.front.proxy.config.current();
    let subscription = SubscriptionId::from_random(1);
    let purchase = PlanPurchase {
        subscription,
        terms: config.catalog.plan("coder").unwrap().clone(),
        periods: 1,
        processor: None,
        invoiced_at: None,
    };
    let given = PlanChange {
        customer,
        subscription,
        change: PlanAct::Give(purchase),
        act: act(),
    };
    gateway.ledger.perform(given).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_says_how_many_have_a_plan_and_a_dead_one_is_an_alert() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    let [catalog, paths] = ["catalog.toml", "routes.toml"].map(|name| folder.path().join(name));
    fs::write(&catalog, format!("{CATALOG}{PLAN}")).unwrap();
    fs::write(&paths, routes(&upstream.base_url())).unwrap();
    let gateway = Gateway::watching(&catalog, &paths).await;
    subscribe(&gateway).await;

    let dearer = PLAN.replace("\"25.00\"", "\"15.00\"");
    let other = PLAN.replace("coder", "reader");
    fs::write(
        folder.path().join("new.toml"),
        format!("{CATALOG}{dearer}{other}"),
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
    let rows: Vec<&Value> = differs["changes"].as_array().unwrap().iter().collect();
    let said = |row: &&Value| {
        ["change", "subject", "name", "field", "subscriptions"].map(|name| row[name].to_string())
    };
    let quoted = |words: [&str; 4], count: &str| {
        let [change, subject, name, field] = words.map(|word| format!("{word:?}"));
        [change, subject, name, field, count.to_owned()]
    };
    assert_eq!(
        rows.iter().map(said).collect::<Vec<_>>(),
        [
            quoted(["changed", "plan", "coder", "allowance"], "1"),
            quoted(["added", "plan", "reader", "price"], "0"),
        ]
    );

    let dead = PLAN.replace("title ", "models = [\"gone\"]\ntitle ");
    let retired = "[[retired]]\nslug = \"gone\"\nsince = 2026-09-01\n";
    fs::write(&catalog, format!("{CATALOG}\n{retired}{dead}")).unwrap();
    for _ in 0..600 {
        let status = gateway.ask("/status").await.json();
        let alerts = status["alerts"].as_array().unwrap();
        if alerts
            .iter()
            .any(|alert| alert["kind"] == "plan_dead" && alert["plan"] == "coder")
        {
            let why = gateway
                .front
                .proxy
                .config
                .current()
                .catalog
                .plan("coder")
                .unwrap_err();
            assert!(why.contains("all of its models are retired"), "{why}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no alert tells of the plan");
}

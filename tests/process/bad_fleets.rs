//! Bad days of a fleet: its files differ, its database has no standby, cannot be reached, or has two servers that take writes.

use std::fs;
use std::time::{Duration, Instant};

use farebox_ledger::{LedgerAddress, OpenMode, Opening};
use serde_json::Value;
use tokio::task::block_in_place;

use super::bad_days::{over, told};
use crate::support::cluster::Cluster;
use crate::support::load::{self, UPSTREAM_KEY};
use crate::support::pair::Pair;
use crate::support::process::{Served, client, document_at};
use crate::support::skip::skip;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{TestKey, talking};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn gateways_with_different_files_and_no_standby_say_so() {
    let Some(cluster) = Cluster::shared() else {
        return skip("gateways with different files: PostgreSQL is not installed");
    };
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (one, other) = (load::place(&upstream).0, load::place(&upstream).0);
    let address = cluster.url(&cluster.database());
    load::new_ledger(&address).await.close();
    let start = |folder: &tempfile::TempDir| {
        let environment = [UPSTREAM_KEY, ("FAREBOX_LEDGER", address.as_str())];
        block_in_place(|| {
            Served::start_with(folder.path(), &["--allow-single"], &environment).watched(&address)
        })
    };
    let gateways = [start(&one), start(&other)];
    let single = told(&gateways[0], "single", "").await;
    assert!(single["remedy"].as_str().unwrap().contains("standby"));
    let catalog = other.path().join("catalog.toml");
    let good = fs::read_to_string(&catalog).unwrap();
    fs::write(&catalog, good.replace("\"15.00\"", "\"16.00\"")).unwrap();
    for gateway in &gateways {
        told(gateway, "configuration_differs", "").await;
    }
    fs::write(&catalog, good).unwrap();
    for gateway in &gateways {
        over(gateway, "configuration_differs", "").await;
    }
}

/// A gateway on a primary and its standby.
struct Fleet {
    gateway: Served,
    key: TestKey,
    _upstream: ScriptedUpstream,
    _folder: tempfile::TempDir,
    pair: Pair,
}

impl Fleet {
    async fn start() -> Option<Self> {
        let pair = block_in_place(Pair::start)?;
        let upstream = ScriptedUpstream::start(talking("PONG")).await;
        let (folder, _) = load::place(&upstream);
        let address: LedgerAddress = pair.url("postgres").parse().unwrap();
        let ledger = address
            .create(&Opening::new(OpenMode::Write))
            .await
            .unwrap();
        let key = load::key(&*ledger, "100").await;
        ledger.close();
        let url = pair.url("postgres");
        let environment = [UPSTREAM_KEY, ("FAREBOX_LEDGER", url.as_str())];
        let gateway =
            block_in_place(|| Served::start_with(folder.path(), &[], &environment).watched(&url));
        let fleet = Self {
            gateway,
            key,
            _upstream: upstream,
            _folder: folder,
            pair,
        };
        fleet.sells().await;
        Some(fleet)
    }

    async fn sells(&self) {
        let begun = Instant::now();
        while let Err(why) = self.gateway.ask("test-model", &self.key.secret).await {
            assert!(begun.elapsed() < PATIENCE, "{why}\n{}", self.gateway.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What the alert of this kind is about, once it stands.
    async fn subject(&self, kind: &str) -> String {
        let begun = Instant::now();
        loop {
            let status = document_at(&client(), format!("{}/status", self.gateway.admin)).await;
            let alerts = status["alerts"].as_array().unwrap();
            let found = alerts.iter().find(|alert| alert["kind"] == kind);
            if let Some(subject) = found.and_then(|alert| alert["subject"].as_str()) {
                return subject.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "{}", self.gateway.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_standby_a_frozen_primary_and_a_stale_one_are_told() {
    let Some(mut fleet) = Fleet::start().await else {
        return skip("bad days of a fleet: PostgreSQL is not installed");
    };
    let standby = fleet.pair.standby();
    block_in_place(|| fleet.pair.kill(standby));
    let missing = told(&fleet.gateway, "standby_missing", "").await;
    says(&missing, "nothing is sold");
    block_in_place(|| fleet.pair.run_server(standby));
    over(&fleet.gateway, "standby_missing", "").await;
    fleet.sells().await;

    let primary = fleet.pair.primary();
    block_in_place(|| fleet.pair.signal(primary, "STOP"));
    let away = told(&fleet.gateway, "ledger_unreachable", "").await;
    says(&away, "cannot be reached");
    block_in_place(|| fleet.pair.signal(primary, "CONT"));
    over(&fleet.gateway, "ledger_unreachable", "").await;
    fleet.sells().await;

    block_in_place(|| {
        fleet.pair.kill(primary);
        fleet.pair.promote();
        fleet.pair.run_server(primary);
    });
    let place = fleet.subject("server").await;
    let stale = told(&fleet.gateway, "server", &place).await;
    says(&stale, "stale primary");
    block_in_place(|| fleet.pair.build_standbys());
    over(&fleet.gateway, "server", &place).await;
    fleet.sells().await;
}

#[track_caller]
fn says(alert: &Value, words: &str) {
    let reason = alert["reason"].as_str().unwrap_or_default();
    assert!(reason.contains(words), "{words:?} is not in {alert}");
}

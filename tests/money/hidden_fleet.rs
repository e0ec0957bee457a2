//! What `hidden.rs` attempts at one gateway, at a fleet of three: the key's money is one, wherever its streams run.

use std::time::Duration;

use farebox_ledger::store::SharedStore;
use farebox_ledger::{EntryKind, EntryQuery};

use super::hidden::{Attempt, BALANCE, STREAMS};
use crate::support::cluster::Cluster;
use crate::support::load::{self, UPSTREAM_KEY, new_ledger, sized};
use crate::support::process::{Served, client};
use crate::support::skip::skip;
use crate::support::{Answer, TestKey, path};

/// These databases have no standby.
const SINGLE: (&str, &str) = ("FAREBOX_ALLOW_SINGLE", "true");
const GATEWAYS: usize = 3;
/// How long all streams and their settlements may take; they end by themselves much sooner.
const PATIENCE: Duration = Duration::from_secs(600);

/// All streams of a fresh key, at the gateways in turn; what was billed and charged, in picodollars.
async fn run(attempt: &Attempt, cluster: &'static Cluster) -> (i64, i64) {
    let (place, folder) = (attempt.place().await, tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("catalog.toml"), &place.catalog).unwrap();
    std::fs::write(folder.path().join("routes.toml"), &place.routes).unwrap();
    let address = cluster.url(&cluster.database());
    let ledger = new_ledger(&address).await;
    let key = load::key(&*ledger, BALANCE).await;
    let environment = [UPSTREAM_KEY, SINGLE, ("FAREBOX_LEDGER", &*address)];
    let gateways: Vec<Served> = (0..GATEWAYS)
        .map(|_| Served::start_with(folder.path(), &[], &environment))
        .collect();
    let (client, body) = (client(), attempt.body());
    let asking = (0..STREAMS).map(|number| {
        let base = gateways[number % GATEWAYS].base.trim_end_matches("/v1");
        let sent = client
            .post(format!("{base}{}", path(attempt.caller)))
            .bearer_auth(&key.secret)
            .json(&body)
            .send();
        async { Answer::read(sent.await.unwrap()).await }
    });
    let ended = async {
        futures_util::future::join_all(asking).await;
        while !ledger.open_holds(None, 1).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, ended).await;
    ended.expect("all streams end and settle");
    (place.billed(), charged(&ledger, &key).await)
}

async fn charged(ledger: &SharedStore, key: &TestKey) -> i64 {
    let query = EntryQuery {
        key: Some(key.id),
        ..EntryQuery::default()
    };
    let entries = ledger.entries(query).await.unwrap();
    let charges = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Charge);
    charges.map(|charge| -charge.amount.picos()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_at_three_gateways_are_bounded_by_the_money_of_their_key() {
    let Some(cluster) = Cluster::shared() else {
        return skip("hidden output at a fleet: PostgreSQL is not installed");
    };
    println!("| attempt | billed | charged | against P10 |");
    let mut faults = Vec::new();
    // Every day one in five, which meets all families, speeds and kinds of thinking.
    for attempt in Attempt::all().iter().step_by(sized(5, 1) as usize) {
        let sums = run(attempt, cluster).await;
        faults.extend(attempt.judge("a fleet of three", sums));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

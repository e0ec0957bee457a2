//! Of a fleet's gateways one asks a target in trouble; the others are told, and one of them takes over when it is gone.

use std::time::{Duration, Instant};

use farebox::clock;
use farebox_ledger::store::SharedStore;
use farebox_ledger::{Amount, MarginBy, MarginOrder, MarginQuery, Timestamp};
use serde_json::Value;

use crate::support::cluster::Cluster;
use crate::support::load::{self, UPSTREAM_KEY, new_ledger, place};
use crate::support::process::{Served, ask, client};
use crate::support::skip::skip;
use crate::support::talking;
use crate::support::upstream::{Reply, ScriptedUpstream};

/// How long to wait for what takes a lease, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

fn down() -> Reply {
    Reply::error(500, "server_error", None, "no")
}

struct Fleet {
    cluster: &'static Cluster,
    database: String,
    upstream: ScriptedUpstream,
    ledger: SharedStore,
    gateways: Vec<Served>,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Fleet {
    async fn start(cluster: &'static Cluster) -> Self {
        let upstream = ScriptedUpstream::start(down()).await;
        let (folder, _) = place(&upstream);
        let database = cluster.database();
        let url = cluster.url(&database);
        let ledger = new_ledger(&url).await;
        let environment = [
            UPSTREAM_KEY,
            ("FAREBOX_ALLOW_SINGLE", "true"),
            ("FAREBOX_LEDGER", url.as_str()),
        ];
        // One after the other, so that their epochs are 1, 2 and 3.
        let start = |_| Served::start_with(folder.path(), &[], &environment);
        let gateways = (0..3).map(start).collect();
        Self {
            cluster,
            database,
            upstream,
            ledger,
            gateways,
            http: client(),
            _folder: folder,
        }
    }

    async fn served(&self, gateway: &Served) -> Result<Value, String> {
        let key = load::key(&*self.ledger, "5").await;
        ask(&self.http, &gateway.base, "test-model", &key.secret).await
    }

    /// Two customers of each gateway meet the outage.
    async fn goes_down(&self) {
        self.upstream.follow(down());
        for gateway in &self.gateways {
            for _ in 0..2 {
                self.served(gateway).await.unwrap_err();
            }
        }
    }

    async fn target(&self, gateway: &Served) -> Value {
        let url = format!("{}/status", gateway.admin);
        let text = self
            .http
            .get(url)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        let status: Value = serde_json::from_str(&text).unwrap();
        status["targets"][0].clone()
    }

    /// Until the target has this state at every gateway.
    async fn become_all(&self, state: &str) {
        for gateway in &self.gateways {
            let begun = Instant::now();
            while self.target(gateway).await["state"] != state {
                assert!(begun.elapsed() < PATIENCE, "{}", gateway.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// The gateways' own requests so far.
    fn asked(&self) -> usize {
        let seen = self.upstream.requests();
        let ours = seen
            .iter()
            .filter(|seen| seen.json().to_string().contains("\"ping\""));
        ours.count()
    }

    /// What these requests cost, by the ledger.
    async fn cost(&self) -> Amount {
        let query = MarginQuery {
            by: MarginBy::Target,
            from: Timestamp::default(),
            to: Timestamp::from_millis(clock::now().millis() + 3_600_000),
            order: MarginOrder::Name,
            reverse: false,
            limit: 9,
        };
        let margins = self.ledger.margins(query).await.unwrap();
        let rows = margins.rows.iter().map(|row| row.own);
        assert_eq!(Amount::checked_sum(rows), Some(margins.total.own));
        margins.total.own
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_fleet_of_three_one_asks_and_all_know() {
    let Some(cluster) = Cluster::shared() else {
        return skip("a fleet's requests to targets in trouble: no PostgreSQL");
    };
    let mut fleet = Fleet::start(cluster).await;
    let begun = Instant::now();
    fleet.goes_down().await;
    fleet.become_all("open").await;
    while fleet.asked() < 3 {
        assert!(begun.elapsed() < PATIENCE, "it is asked again and again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        begun.elapsed() >= Duration::from_secs(10),
        "three gateways together ask once in five seconds, not each: {:?}",
        begun.elapsed()
    );

    fleet.upstream.follow(talking("PONG"));
    fleet.become_all("closed").await;
    for gateway in &fleet.gateways {
        fleet.served(gateway).await.unwrap();
    }
    let told = Instant::now();
    while !fleet.cost().await.is_positive() {
        assert!(told.elapsed() < PATIENCE, "the margins know what it cost");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    // The gateway that asks is gone: another one takes over.
    fleet.goes_down().await;
    fleet.become_all("open").await;
    let asks = fleet
        .cluster
        .psql(&fleet.database, "SELECT epoch FROM probe_leases");
    let asks: usize = asks.unwrap().trim().parse().unwrap();
    let gone = fleet.gateways.remove(asks - 1);
    gone.signal("KILL");
    let before = fleet.asked();
    fleet.upstream.follow(talking("PONG"));
    fleet.become_all("closed").await;
    assert!(fleet.asked() > before, "by a question, not by a customer");
}

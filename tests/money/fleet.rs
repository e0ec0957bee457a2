//! Three gateways on one PostgreSQL under mixed load: in turn one is killed, one is stopped for longer than its lease, and all
//! connections are cut; the outside checker judges the result. Only the customers and the upstream are believed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use farebox::clock;
use farebox_ledger::store::SharedStore;
use farebox_ledger::{EntryQuery, LedgerAddress, OpenMode, Opening};

use crate::support::checker::{Outside, judge_ledger};
use crate::support::cluster::Cluster;
use crate::support::load::{self, Dice, Load, UPSTREAM_KEY, honest, new_ledger, place};
use crate::support::process::{Served, farebox};
use crate::support::skip::skip;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{TestKey, big_ledger, sized};

/// Holds of a lost gateway end within this time (P12). Asserted at full size alone: every day the machine may be busy.
const BOUND: Duration = Duration::from_secs(15);
/// How long to wait for it.
const PATIENCE: Duration = Duration::from_secs(90);
/// Longer than ten seconds of silence and a round of the others.
const LONGER_THAN_A_LEASE: Duration = Duration::from_secs(12);
/// How many gateways are silent for longer than a lease and not yet considered dead.
pub(super) const UNNOTICED: &str =
    "SELECT count(*) FROM nodes WHERE ended IS NULL AND renewed_at < now() - interval '11 s'";

/// These databases have no standby.
const SINGLE: (&str, &str) = ("FAREBOX_ALLOW_SINGLE", "true");

/// The fault of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    Stop,
    /// Half of all connections to the database end, again and again.
    Cut,
}

struct Fleet {
    cluster: &'static Cluster,
    database: String,
    upstream: ScriptedUpstream,
    folder: tempfile::TempDir,
    address: String,
    ledger: SharedStore,
    gateways: Vec<Served>,
    keys: Vec<TestKey>,
    numbers: Arc<AtomicU64>,
    outside: Outside,
}

impl Fleet {
    async fn start(cluster: &'static Cluster) -> Self {
        let upstream = ScriptedUpstream::start(honest()).await;
        let (folder, _) = place(&upstream);
        let database = cluster.database();
        let address = cluster.url(&database);
        let ledger = new_ledger(&address).await;
        let mut keys = Vec::new();
        // The third key is soon out of money, which must not be spent twice at two gateways.
        for amount in ["900", "900", "0.40"] {
            keys.push(load::key(&*ledger, amount).await);
        }
        let mut fleet = Self {
            cluster,
            database,
            upstream,
            folder,
            address,
            ledger,
            gateways: Vec::new(),
            keys,
            numbers: Arc::new(AtomicU64::new(1)),
            outside: Outside::default(),
        };
        for _ in 0..3 {
            fleet.gateways.push(fleet.gateway());
        }
        fleet
    }

    fn gateway(&self) -> Served {
        Served::start_with(
            self.folder.path(),
            &[],
            &[UPSTREAM_KEY, SINGLE, ("FAREBOX_LEDGER", &self.address)],
        )
    }

    /// Loads all gateways, causes the fault meanwhile, and waits until no hold is open.
    async fn round(&mut self, fault: Fault, dice: &mut Dice) -> Duration {
        let victim = dice.below(3) as usize;
        let loads: Vec<Load> = self
            .gateways
            .iter()
            .map(|gateway| {
                Load::start(
                    &gateway.base,
                    &self.keys,
                    4,
                    &self.numbers,
                    dice.below(u64::from(u32::MAX)),
                )
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(400 + dice.below(600))).await;
        let lost = Instant::now();
        match fault {
            Fault::Stop => {
                self.gateways[victim].signal("STOP");
                tokio::time::sleep(LONGER_THAN_A_LEASE).await;
                // The others may be slow to find it.
                while self.cluster.psql(&self.database, UNNOTICED).unwrap() != "0" {
                    assert!(lost.elapsed() < PATIENCE, "nobody misses it");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                self.gateways[victim].signal("CONT");
                let ended = self.gateways[victim].ended();
                assert!(
                    !ended.success(),
                    "it was fenced off, says so and ends: {}",
                    self.gateways[victim].log()
                );
                assert!(
                    self.gateways[victim]
                        .log()
                        .contains("considered this one dead"),
                    "{}",
                    self.gateways[victim].log()
                );
            }
            Fault::Kill => {
                self.gateways[victim].kill();
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Fault::Cut => {
                let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'farebox' \
                     AND datname = current_database() AND random() < 0.5";
                for _ in 0..5 {
                    self.cluster.psql(&self.database, cut).unwrap();
                    tokio::time::sleep(Duration::from_millis(100 + dice.below(200))).await;
                }
            }
        }
        for load in loads {
            self.outside.told.extend(load.end().await);
        }
        while !self.ledger.open_holds(None, 1).await.unwrap().is_empty() {
            assert!(lost.elapsed() < PATIENCE, "holds are still open");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let took = lost.elapsed();
        if fault != Fault::Cut {
            self.gateways[victim] = self.gateway();
        }
        took
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_loses_gateways_and_nothing_else() {
    let Some(cluster) = Cluster::shared() else {
        return skip("a fleet: PostgreSQL is not installed");
    };
    let mut fleet = Fleet::start(cluster).await;
    let (mut dice, mut slowest) = (Dice::new(7), Duration::ZERO);
    for fault in [Fault::Kill, Fault::Stop, Fault::Cut]
        .into_iter()
        .cycle()
        .take(sized(3, 100) as usize)
    {
        let took = fleet.round(fault, &mut dice).await;
        let in_time = took < BOUND || sized(0, 1) == 0;
        assert!(
            fault != Fault::Kill || in_time,
            "holds of a killed gateway end within 15 s: {took:?}"
        );
        slowest = slowest.max(took);
    }
    for gateway in &mut fleet.gateways {
        gateway.signal("TERM");
        assert!(gateway.ended().success(), "{}", gateway.log());
    }
    let judged = judge_ledger(&*fleet.ledger, &fleet.outside, &fleet.upstream.requests()).await;
    let entries = fleet.ledger.entries(EntryQuery::default()).await.unwrap();
    let charged = entries
        .iter()
        .filter_map(|entry| entry.bill.as_ref())
        .filter(|bill| !bill.lines.is_empty());
    let nodes: HashSet<&String> = charged
        .map(|bill| {
            bill.facts
                .get("node")
                .expect("a charge says which gateway made it")
        })
        .collect();
    assert!(nodes.len() >= 3, "{nodes:?}");
    println!("{judged:?}; the last hold of a lost gateway ended after {slowest:?}");
    assert!(
        judged.acknowledged > 0 && judged.recovered > 0,
        "the load was alive when one was lost: {judged:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_work_on_a_database() {
    let Some(cluster) = Cluster::shared() else {
        return skip("commands on PostgreSQL: it is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let address = cluster.url(&cluster.database());
    let run = |arguments: &[&str]| {
        let output = farebox(folder.path(), arguments)
            .envs([SINGLE, ("FAREBOX_LEDGER", &address)])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.success(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    let (made, said) = run(&["keys", "create", "--label", "acme"]);
    assert!(
        !made && said.contains("there is no ledger in this database"),
        "{said}"
    );
    let (made, said) = run(&[
        "keys",
        "create",
        "--new-ledger",
        "--label",
        "acme",
        "--balance",
        "5",
        "--reference",
        "first",
        "--json",
    ]);
    assert!(made, "{said}");
    let key: serde_json::Value =
        serde_json::from_str(said.split_once('{').map(|_| said.trim()).unwrap()).unwrap();
    let key = key["id"].as_str().unwrap();
    for (arguments, expected) in [
        (
            vec!["keys", "top-up", key, "7", "--reference", "inv-1"],
            "12",
        ),
        (vec!["keys", "list"], "acme"),
        (vec!["ledger", "entries"], "inv-1"),
        (
            vec!["ledger", "verify"],
            "the books are sound: 1 customer, 1 key, 2 entries",
        ),
    ] {
        let (done, said) = run(&arguments);
        assert!(done && said.contains(expected), "{arguments:?}: {said}");
    }
    let (done, said) = run(&["ledger", "backup", "copy.db"]);
    assert!(!done && said.contains("pg_basebackup"), "{said}");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing was made beside the database"
    );
}

/// Entries as the program prints them, and its word that their hashes are right: together they make the hashes equal.
fn content(run: &impl Fn(&str, &[&str]) -> (bool, String), ledger: &str) -> String {
    let (sound, said) = run(ledger, &["ledger", "verify"]);
    assert!(sound && said.contains("the books are sound"), "{said}");
    let (read, entries) = run(
        ledger,
        &["ledger", "entries", "--limit", "1000000", "--json"],
    );
    assert!(read, "{entries}");
    // Each store decides the position of an entry among those of other keys.
    let entries: serde_json::Value = serde_json::from_str(&entries).unwrap();
    let mut lines: Vec<String> = entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    lines.sort();
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_takes_a_ledger_there_and_back() {
    let Some(cluster) = Cluster::shared() else {
        return skip("ledger copy: PostgreSQL is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let entries = sized(3_000, 100_000);
    {
        let opened: LedgerAddress = folder
            .path()
            .join("a.db")
            .display()
            .to_string()
            .parse()
            .unwrap();
        let ledger = opened.create(&Opening::new(OpenMode::Serve)).await.unwrap();
        big_ledger::generate(&(ledger.clone() as _), 50, entries, clock::now()).await;
        ledger.close();
    }
    let address = cluster.url(&cluster.database());
    let run = |ledger: &str, arguments: &[&str]| {
        let output = farebox(folder.path(), arguments)
            .envs([SINGLE, ("FAREBOX_LEDGER", ledger)])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stdout);
        (
            output.status.success(),
            if output.status.success() {
                said
            } else {
                said + &text(&output.stderr)
            },
        )
    };
    let begun = Instant::now();
    let (copied, said) = run("a.db", &["ledger", "copy", "--to", &address]);
    assert!(
        copied
            && said.contains(&format!(
                "is a verified copy: 50 customers, 50 keys, {entries} entries"
            )),
        "{said}"
    );
    println!("{entries} entries there: {:?}", begun.elapsed());
    let (again, said) = run("a.db", &["ledger", "copy", "--to", &address]);
    assert!(!again && said.contains("not empty"), "{said}");
    let (same, said) = run("a.db", &["ledger", "copy", "--to", "c.db"]);
    assert!(!same && said.contains("farebox ledger backup"), "{said}");
    let begun = Instant::now();
    let (copied, said) = run(&address, &["ledger", "copy", "--to", "b.db"]);
    assert!(
        copied && said.contains(&format!("{entries} entries")),
        "{said}"
    );
    println!("{entries} entries back: {:?}", begun.elapsed());
    let (there, back) = (content(&run, &address), content(&run, "b.db"));
    assert!(
        content(&run, "a.db") == there && there == back,
        "every entry is the same"
    );
}

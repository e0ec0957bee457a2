//! Hold+settle pairs on PostgreSQL through the public contract, against raw PostgreSQL doing the same statements in batches.
//!
//! `cargo bench -p farebox-ledger --bench fleet` starts a private cluster (in `TMPDIR`: name a folder on the disk to measure) and
//! prints five Markdown tables: pairs per second compared with raw batches; one hot key; the effect of a hot key on the others; the
//! same with and without a standby that commits wait for; and this process's CPU per pair, compared with SQLite. The rows of a
//! table are measured in turns, and the median counts.
//!
//! Sizes: `FAREBOX_KEYS` (1,000), `FAREBOX_PAIRS` (20,000) in each of `FAREBOX_ROUNDS` (3), fewer where fewer requests are open
//! at once. `FAREBOX_TABLES` names some of the tables: `raw`, `hot`, `beside`, `standby`, `cpu`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench is a program for its developers"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::store::SharedStore;
use farebox_ledger::*;
use nix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;

#[path = "../../../tests/support/big_ledger.rs"]
mod big_ledger;
#[path = "../../../tests/support/bill.rs"]
mod bill;
#[expect(dead_code, reason = "the suites use more of it")]
#[path = "../../tests/common/cluster.rs"]
mod cluster;
mod raw;
mod standby;

use big_ledger::key_id;
use bill::bill;
use cluster::Cluster;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const HOLD: i64 = 3_000_000_000;
const CHARGE: i64 = 960_000_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// A request's id; no two calls of this program have one in common.
fn fresh() -> OperationId {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    OperationId::new(NOW, u128::from(NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Which keys a load spends: one, or all in a scattered order.
#[derive(Clone, Copy)]
enum Keys {
    Hot,
    /// The first key is the hot one, and none of these.
    Others(u64),
}

impl Keys {
    fn of(self, pair: u64) -> KeyId {
        match self {
            Self::Hot => key_id(0),
            Self::Others(keys) => key_id(1 + pair.wrapping_mul(0x9e37_79b9) % (keys - 1)),
        }
    }
}

/// What a load measured.
#[derive(Default)]
struct Measured {
    pairs: u64,
    took: Duration,
    holds: Vec<Duration>,
    /// CPU of this process.
    cpu: Duration,
}

impl Measured {
    fn per_second(&self) -> f64 {
        self.pairs as f64 / self.took.as_secs_f64()
    }

    fn at(&mut self, percent: usize) -> Duration {
        self.holds.sort();
        self.holds[(self.holds.len() - 1) * percent / 100]
    }
}

/// This process's CPU so far.
fn cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .unwrap()
        .into()
}

/// `parallel` callers at every gateway together, until `pairs` pairs are done or `over` is set; `pause` after each pair.
async fn load(
    fleet: &[SharedStore],
    keys: Keys,
    parallel: u64,
    pairs: u64,
    pause: Duration,
    over: &Arc<AtomicBool>,
) -> Measured {
    let (begun, cpu_before) = (Instant::now(), cpu());
    let tasks: Vec<_> = (0..parallel)
        .map(|task| {
            let ledger = Arc::clone(&fleet[task as usize % fleet.len()]);
            let over = Arc::clone(over);
            tokio::spawn(async move {
                let mut holds = Vec::new();
                for pair in (task..pairs).step_by(parallel as usize) {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let amount = Amount::from_picos(HOLD);
                    let (slug, family) = ("claude-sonnet-4.5".into(), "messages".into());
                    let asked = Instant::now();
                    let new = NewHold {
                        request: fresh(),
                        customer: CustomerId::made_for(keys.of(pair)),
                        key: keys.of(pair),
                        ways: vec![farebox_ledger::HoldWay::exactly(amount)],
                        slug,
                        family,
                        at: NOW,
                    };
                    let hold = Hold::open(ledger.clone() as Arc<dyn Ledger>, new)
                        .await
                        .unwrap();
                    holds.push(asked.elapsed());
                    hold.settle(bill(), NOW).await.unwrap();
                    if !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                }
                holds
            })
        })
        .collect();
    let mut holds = Vec::new();
    for task in tasks {
        holds.extend(task.await.unwrap());
    }
    Measured {
        pairs: holds.len() as u64,
        took: begun.elapsed(),
        holds,
        cpu: cpu() - cpu_before,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The sizes of a run, and where it runs.
struct Bench {
    cluster: Cluster,
    runtime: Runtime,
    keys: u64,
    pairs: u64,
    rounds: u64,
}

impl Bench {
    /// A database with a ledger of so many keys.
    fn database(&self) -> String {
        let database = self.cluster.database();
        let address = self.cluster.url(&database).parse::<LedgerAddress>();
        let opening = Opening {
            allow_single: true,
            ..Opening::new(OpenMode::Write)
        };
        let made = self.runtime.block_on(address.unwrap().create(&opening));
        made.unwrap().close();
        let ledger = self.gateways(&database, 1).remove(0);
        self.runtime.block_on(big_ledger::generate(
            &(ledger.clone() as _),
            self.keys,
            self.keys,
            NOW,
        ));
        let rich = "UPDATE keys SET concurrency = 100000; UPDATE accounts SET credit = 8000000000000000000";
        self.cluster.psql(&database, rich).unwrap();
        database
    }

    fn gateways(&self, database: &str, count: usize) -> Vec<SharedStore> {
        let LedgerAddress::Postgres(config) = self.cluster.url(database).parse().unwrap() else {
            unreachable!()
        };
        let open = async || {
            let ledger = PostgresLedger::open(
                &config,
                &Opening {
                    allow_single: true,
                    ..Opening::new(OpenMode::Serve)
                },
            )
            .await
            .unwrap();
            ledger.recover(NOW).await.unwrap();
            Arc::new(ledger) as SharedStore
        };
        self.runtime.block_on(async {
            let mut fleet = Vec::new();
            for _ in 0..count {
                fleet.push(open().await);
            }
            fleet
        })
    }

    /// Pairs of a round: the fewer at once, the longer each takes.
    const fn pairs_of(&self, parallel: u64) -> u64 {
        self.pairs * parallel / 64
    }

    fn run(&self, fleet: &[SharedStore], keys: Keys, parallel: u64) -> Measured {
        let pairs = self.pairs_of(parallel);
        self.runtime.block_on(load(
            fleet,
            keys,
            parallel,
            pairs,
            Duration::ZERO,
            &Arc::default(),
        ))
    }

    /// Pairs per second of the contract, beside raw batches as large as there are requests at once.
    fn beside_raw(&self) {
        println!(
            "| gateways | requests at once | pairs/s | raw pairs/s | ratio | hold p50 | hold p99 |"
        );
        println!("|---:|---:|---:|---:|---:|---:|---:|");
        let (ours, raws) = (self.database(), self.database());
        for (gateways, parallel) in [(1, 1), (1, 8), (1, 64), (2, 64), (3, 64)] {
            let fleet = self.gateways(&ours, gateways);
            let mut raw = self
                .runtime
                .block_on(raw::Raw::connect(&self.cluster.url(&raws)));
            let (mut our, mut theirs, mut ratios, mut all) =
                (Vec::new(), Vec::new(), Vec::new(), Measured::default());
            // The round before the first warms the caches.
            for turn in 0..=self.rounds {
                let measured = self.run(&fleet, Keys::Others(self.keys), parallel);
                let pairs = self.pairs_of(parallel);
                let raw =
                    self.runtime
                        .block_on(raw.pairs(Keys::Others(self.keys), parallel, pairs));
                if turn > 0 {
                    our.push(measured.per_second());
                    theirs.push(raw);
                    ratios.push(measured.per_second() / raw);
                    all.holds.extend(measured.holds);
                }
            }
            let (our, theirs, ratio) = (median(our), median(theirs), median(ratios));
            println!(
                "| {gateways} | {parallel} | {our:.0} | {theirs:.0} | {ratio:.2} | {:.1?} | {:.1?} |",
                all.at(50),
                all.at(99)
            );
        }
    }

    /// One key at one, two and three gateways.
    fn hot_key(&self) {
        println!(
            "\n| one hot key: gateways | requests at once | pairs/s | hold p50 | hold p99 | operations a commit | a commit |\n\
             |---:|---:|---:|---:|---:|---:|---:|"
        );
        let database = self.database();
        for gateways in 1..=3 {
            let fleet = self.gateways(&database, gateways);
            let mut rounds: Vec<Measured> = (0..=self.rounds)
                .map(|_| self.run(&fleet, Keys::Hot, 64))
                .skip(1)
                .collect();
            let (commits, operations, took) = fleet
                .iter()
                .map(|ledger| ledger.stats())
                .fold((0, 0, Duration::ZERO), |sum, of| {
                    (sum.0 + of.commits, sum.1 + of.operations, sum.2 + of.total)
                });
            let speed = median(rounds.iter().map(Measured::per_second).collect());
            let mut all = Measured {
                holds: rounds
                    .iter_mut()
                    .flat_map(|round| std::mem::take(&mut round.holds))
                    .collect(),
                ..Measured::default()
            };
            let (size, commit) = (operations as f64 / commits as f64, took / commits as u32);
            println!(
                "| {gateways} | 64 | {speed:.0} | {:.1?} | {:.1?} | {size:.0} | {commit:.1?} |",
                all.at(50),
                all.at(99)
            );
        }
    }

    /// Other keys at a steady pace: alone, with 32 callers beside them on other keys, and with the same 32 on one key.
    fn beside_a_hot_key(&self) {
        println!(
            "\n| beside other keys (2 gateways) | their hold p50 | p99 | of p99 alone | pairs/s beside them |\n|---|---:|---:|---:|---:|"
        );
        let database = self.database();
        let fleet = self.gateways(&database, 2);
        let pause = Duration::from_millis(20);
        let mut alone = 0.0;
        let beside = |keys: Option<Keys>| {
            self.runtime.block_on(async {
                let over: Arc<AtomicBool> = Arc::default();
                let neighbours = {
                    let (fleet, over) = (fleet.clone(), Arc::clone(&over));
                    tokio::spawn(async move {
                        match keys {
                            Some(keys) => {
                                load(&fleet, keys, 32, u64::MAX, Duration::from_millis(5), &over)
                                    .await
                            }
                            None => Measured::default(),
                        }
                    })
                };
                let measured = load(
                    &fleet,
                    Keys::Others(self.keys),
                    16,
                    self.pairs / 4,
                    pause,
                    &Arc::default(),
                )
                .await;
                over.store(true, Ordering::Relaxed);
                (measured, neighbours.await.unwrap())
            })
        };
        for (what, keys) in [
            ("nobody", None),
            ("32 callers on all keys", Some(Keys::Others(self.keys))),
            ("32 callers on one key", Some(Keys::Hot)),
        ] {
            let (mut all, mut speeds) = (Measured::default(), Vec::new());
            for _ in 0..self.rounds {
                let (measured, neighbours) = beside(keys);
                all.holds.extend(measured.holds);
                speeds.push(if keys.is_some() {
                    neighbours.per_second()
                } else {
                    0.0
                });
            }
            let p99 = all.at(99).as_secs_f64();
            alone = if keys.is_none() { p99 } else { alone };
            println!(
                "| {what} | {:.1?} | {:.1?} | {:.2} | {:.0} |",
                all.at(50),
                all.at(99),
                p99 / alone,
                median(speeds)
            );
        }
    }

    /// The same load at one gateway, with and without a standby that every commit waits for.
    fn beside_a_standby(&self) {
        println!(
            "\n| 64 at once, 1 gateway | commits wait for a standby | pairs/s | hold p50 | hold p99 |\n|---|---|---:|---:|---:|"
        );
        let fleet = self.gateways(&self.database(), 1);
        let standby = standby::StreamingStandby::of(&self.cluster);
        for (what, keys) in [
            ("all keys", Keys::Others(self.keys)),
            ("one hot key", Keys::Hot),
        ] {
            let mut measured = [
                (false, Vec::new(), Measured::default()),
                (true, Vec::new(), Measured::default()),
            ];
            for turn in 0..=self.rounds {
                for (waited, speeds, all) in &mut measured {
                    standby.is_waited_for(&self.cluster, *waited);
                    let round = self.run(&fleet, keys, 64);
                    if turn > 0 {
                        speeds.push(round.per_second());
                        all.holds.extend(round.holds);
                    }
                }
            }
            for (waited, speeds, mut all) in measured {
                let (waits, speed) = (if waited { "yes" } else { "no" }, median(speeds));
                println!(
                    "| {what} | {waits} | {speed:.0} | {:.1?} | {:.1?} |",
                    all.at(50),
                    all.at(99)
                );
            }
        }
        standby.is_waited_for(&self.cluster, false);
    }

    /// This process's CPU for a pair: on SQLite the database is in it, on PostgreSQL it is not.
    fn cpu_of_a_pair(&self) {
        println!(
            "\n| requests at once | CPU of a pair, PostgreSQL | SQLite | ratio |\n|---:|---:|---:|---:|"
        );
        let folder = tempfile::tempdir().unwrap();
        let sqlite = SqliteLedger::create(
            folder.path().join("farebox.db"),
            OpenMode::Serve,
            Durability::Prompt,
        )
        .unwrap();
        let sqlite: Vec<SharedStore> = vec![Arc::new(sqlite)];
        self.runtime.block_on(big_ledger::generate(
            &(sqlite[0].clone() as _),
            self.keys,
            self.keys,
            NOW,
        ));
        let postgres = self.gateways(&self.database(), 1);
        for parallel in [1, 8, 64] {
            let mut costs = [Vec::new(), Vec::new()];
            for _ in 0..self.rounds {
                for (fleet, costs) in [&postgres, &sqlite].into_iter().zip(&mut costs) {
                    let measured = self.run(fleet, Keys::Others(self.keys), parallel);
                    costs.push(measured.cpu.as_secs_f64() * 1e6 / measured.pairs as f64);
                }
            }
            let [postgres, sqlite] = costs.map(median);
            println!(
                "| {parallel} | {postgres:.0} µs | {sqlite:.0} µs | {:.2} |",
                postgres / sqlite
            );
        }
    }
}

fn main() {
    let bin = cluster::programs().unwrap();
    let bench = Bench {
        cluster: Cluster::start(bin, &["shared_buffers=128MB", "max_wal_size=4GB"]),
        runtime: tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
        keys: number("FAREBOX_KEYS", 1_000),
        pairs: number("FAREBOX_PAIRS", 20_000),
        rounds: number("FAREBOX_ROUNDS", 3),
    };
    let wanted =
        |name: &str| std::env::var("FAREBOX_TABLES").map_or(true, |names| names.contains(name));
    if wanted("raw") {
        bench.beside_raw();
    }
    if wanted("hot") {
        bench.hot_key();
    }
    if wanted("beside") {
        bench.beside_a_hot_key();
    }
    if wanted("standby") {
        bench.beside_a_standby();
    }
    if wanted("cpu") {
        bench.cpu_of_a_pair();
    }
}

//! The whole fleet: a primary and its synchronous standby (two of them with `FAREBOX_FULL=1`), three gateways, and load on shared
//! keys while gateways die, servers die, freeze and run out of disk, and connections break, always in the middle of a COMMIT. Only
//! the customers and the upstream are believed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use farebox_ledger::store::SharedStore;
use farebox_ledger::{LedgerAddress, OpenMode, Opening, anchor};
use tokio::task::block_in_place;

use super::fleet::UNNOTICED;
use crate::process::alerts::OF_DATABASES;
use crate::support::checker::{Outside, judge_ledger};
use crate::support::load::{self, Dice, Load, UPSTREAM_KEY, honest, place};
use crate::support::pair::Pair;
use crate::support::process::{Served, client, text_at};
use crate::support::skip::skip;
use crate::support::upstream::ScriptedUpstream;
use crate::support::wires::{Fault, Wires};
use crate::support::{TestKey, sized};

/// Every hold of a lost gateway ends within this time (P12). Asserted at full size alone: every day the machine may be busy.
const BOUND: Duration = Duration::from_secs(15);
/// Longer than ten seconds of silence and a round of the others.
const LONGER_THAN_A_LEASE: Duration = Duration::from_secs(12);
/// How long to wait until a gateway sells again after a fault, and until holds end.
const PATIENCE: Duration = Duration::from_secs(90);

/// The fault of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Blow {
    /// A gateway is killed before its COMMIT has left, or after it and before the answer.
    KillBefore,
    KillAfter,
    /// A gateway is frozen between its check and its COMMIT, for longer than its lease.
    Freeze,
    /// The primary is killed under a COMMIT and the standby promoted.
    LosePrimary,
    /// The same while the standby receives nothing.
    LosePrimaryBehindFrozenStandby,
    /// The primary is frozen, answers nothing and stays so, and the standby is promoted beside it.
    SilencePrimary,
    /// The same as when it is lost, and then the old primary boots again as it was, beside the promoted one.
    StalePrimary,
    /// Every standby is frozen during a COMMIT for 5 s.
    FreezeStandby,
    /// Every standby is killed under a COMMIT, and comes back.
    LoseStandby,
    /// One of two standbys is killed, and comes back: selling goes on.
    LoseOneOfTwo,
    /// The primary dies of its full disk under a COMMIT, and comes back when there is room.
    FillDisk,
    /// A connection ends, answers 3 s late, or is half open.
    Cut,
    Delay,
    HalfOpen,
    /// Five cuts in a row.
    Cuts,
}

const ROUNDS: [Blow; 15] = [
    Blow::Cut,
    Blow::StalePrimary,
    Blow::Cuts,
    Blow::SilencePrimary,
    Blow::LosePrimary,
    Blow::Delay,
    Blow::FreezeStandby,
    Blow::KillAfter,
    Blow::FillDisk,
    Blow::HalfOpen,
    Blow::LosePrimaryBehindFrozenStandby,
    Blow::KillBefore,
    Blow::LoseStandby,
    Blow::LoseOneOfTwo,
    Blow::Freeze,
];

/// What a fault cost, from when recovery is possible: after the promotion, and where there is one standby, when a new one streams.
#[derive(Debug, Clone, Copy, Default)]
struct Took {
    /// Until every gateway sells.
    away: Duration,
    /// Until every hold has ended.
    holds: Duration,
}

impl Took {
    fn max(self, other: Self) -> Self {
        Self {
            away: self.away.max(other.away),
            holds: self.holds.max(other.holds),
        }
    }
}

struct Fleet {
    upstream: ScriptedUpstream,
    folder: tempfile::TempDir,
    wires: Vec<Wires>,
    ledger: SharedStore,
    gateways: Vec<Served>,
    keys: Vec<TestKey>,
    numbers: Arc<AtomicU64>,
    outside: Outside,
    // Last: the servers end after everything that is connected to them.
    pair: Pair,
}

impl Fleet {
    async fn start(pair: Pair) -> Self {
        let upstream = ScriptedUpstream::start(honest()).await;
        let (folder, _) = place(&upstream);
        let address: LedgerAddress = pair.url("postgres").parse().unwrap();
        let ledger = address
            .create(&Opening::new(OpenMode::Write))
            .await
            .unwrap();
        let mut keys = Vec::new();
        // The third key is soon out of money, which must not be spent twice at two gateways.
        for amount in ["9000", "9000", "0.40"] {
            keys.push(load::key(&*ledger, amount).await);
        }
        let wires = (0..3).map(|_| Wires::lay(pair.folders())).collect();
        let (numbers, outside) = (Arc::new(AtomicU64::new(1)), Outside::default());
        let mut fleet = Self {
            upstream,
            folder,
            wires,
            ledger,
            gateways: Vec::new(),
            keys,
            numbers,
            outside,
            pair,
        };
        for number in 0..3 {
            fleet.gateways.push(fleet.gateway(number));
        }
        fleet
    }

    fn gateway(&self, number: usize) -> Served {
        let address = Pair::url_at(self.wires[number].folders(), "postgres");
        let state = self
            .folder
            .path()
            .join(format!("state-{number}.json"))
            .display()
            .to_string();
        let anchors = self.anchors(number).display().to_string();
        let settings = [
            UPSTREAM_KEY,
            ("FAREBOX_LEDGER", address.as_str()),
            ("FAREBOX_STATE", state.as_str()),
            ("FAREBOX_ANCHORS", anchors.as_str()),
            (
                "FAREBOX_DURABILITY",
                if number == 0 { "strict" } else { "prompt" },
            ),
        ];
        block_in_place(|| Served::start_with(self.folder.path(), &[], &settings))
    }

    fn anchors(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("anchors-{number}"))
    }

    /// Why a gateway does not sell, if one does not.
    async fn trouble(&self) -> Option<String> {
        for gateway in &self.gateways {
            let answer = client()
                .get(format!("{}/readyz", gateway.admin))
                .send()
                .await
                .unwrap();
            if answer.status() != 200 {
                return Some(format!(
                    "{}\n{}\n{}",
                    answer.text().await.unwrap(),
                    gateway.log(),
                    self.pair.last_words()
                ));
            }
        }
        None
    }

    /// Waits until every gateway sells.
    async fn all_ready(&self) {
        let begun = Instant::now();
        while let Some(trouble) = self.trouble().await {
            assert!(begun.elapsed() < PATIENCE, "{trouble}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Loads all gateways, causes the fault, and waits until every gateway sells and every hold has ended.
    async fn round(&mut self, blow: Blow, dice: &mut Dice) -> Took {
        self.all_ready().await;
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
        tokio::time::sleep(Duration::from_millis(200 + dice.below(400))).await;
        let victim = usize::try_from(dice.below(3)).unwrap();
        let over = self.strike(blow, victim).await;
        let first = self.numbers.load(Ordering::Relaxed);
        // One that was killed has another address since, so only its word is taken.
        let replaced = matches!(blow, Blow::KillBefore | Blow::KillAfter | Blow::Freeze);
        for (number, load) in loads.iter().enumerate() {
            while !(load.has_sold_since(first) || replaced && number == victim) {
                assert!(
                    over.elapsed() < PATIENCE,
                    "{blow:?}: {:?}",
                    self.trouble().await
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        self.all_ready().await;
        let away = over.elapsed();
        tokio::time::sleep(Duration::from_millis(300)).await;
        for load in loads {
            self.outside.told.extend(load.end().await);
        }
        let open = "SELECT count(*) FROM holds";
        while block_in_place(|| self.pair.sql(open)) != "0" {
            let logs: Vec<String> = self.gateways.iter().map(Served::log).collect();
            assert!(
                over.elapsed() < PATIENCE,
                "{blow:?}: {}",
                logs.join("\n---\n")
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let holds = over.elapsed();
        Took { away, holds }
    }

    /// Causes the fault in the middle of a COMMIT, and returns the time from which recovery is possible.
    async fn strike(&mut self, blow: Blow, victim: usize) -> Instant {
        match blow {
            Blow::KillBefore => self.wires[victim].hit(Fault::KeepCommit).await,
            Blow::KillAfter | Blow::LosePrimary | Blow::StalePrimary | Blow::Delay => {
                self.wires[victim].hit(Fault::KeepAnswer).await
            }
            Blow::Freeze => self.wires[victim].hit(Fault::KeepCommit).await,
            Blow::SilencePrimary => {
                self.wires[victim].hit(Fault::KeepAnswer).await;
                self.pair.signal(self.pair.primary(), "STOP");
            }
            Blow::Cut => self.wires[victim].hit(Fault::Cut).await,
            Blow::Cuts => {
                for _ in 0..5 {
                    self.wires[victim].hit(Fault::Cut).await;
                }
            }
            Blow::HalfOpen => self.wires[victim].hit(Fault::HalfOpen).await,
            Blow::FreezeStandby | Blow::LosePrimaryBehindFrozenStandby | Blow::LoseStandby => {
                self.lose_standbys(blow).await
            }
            Blow::FillDisk => block_in_place(|| self.pair.fill_disk()),
            Blow::LoseOneOfTwo => block_in_place(|| self.pair.kill(self.pair.standby())),
        }
        let struck = Instant::now();
        match blow {
            Blow::KillBefore | Blow::KillAfter => {
                self.gateways[victim].kill();
                self.wires[victim].release();
                self.gateways[victim] = self.gateway(victim);
                return struck;
            }
            Blow::Freeze => {
                self.gateways[victim].signal("STOP");
                tokio::time::sleep(LONGER_THAN_A_LEASE).await;
                // The others may be slow to find it.
                while block_in_place(|| self.pair.sql(UNNOTICED)) != "0" {
                    assert!(struck.elapsed() < PATIENCE, "nobody misses it");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                self.wires[victim].release();
                self.gateways[victim].signal("CONT");
                let ended = block_in_place(|| self.gateways[victim].ended());
                let log = self.gateways[victim].log();
                assert!(
                    !ended.success() && log.contains("considered this one dead"),
                    "it finds out and ends: {log}"
                );
                self.gateways[victim] = self.gateway(victim);
                return struck;
            }
            Blow::LosePrimary | Blow::LosePrimaryBehindFrozenStandby => block_in_place(|| {
                self.pair.kill(self.pair.primary());
                self.wires[victim].release();
                if blow == Blow::LosePrimaryBehindFrozenStandby {
                    self.pair
                        .standbys()
                        .into_iter()
                        .for_each(|standby| self.pair.signal(standby, "CONT"));
                }
                self.pair.promote();
                self.pair.build_standbys();
            }),
            Blow::SilencePrimary => block_in_place(|| {
                self.pair.promote_beside(self.pair.farthest());
                self.wires[victim].release();
            }),
            Blow::StalePrimary => {
                let old = self.pair.primary();
                block_in_place(|| {
                    self.pair.kill(old);
                    self.wires[victim].release();
                    self.pair.promote();
                    // A standby that still followed the old primary would confirm what that one takes.
                    for standby in self.pair.standbys() {
                        if standby != old {
                            self.pair.follow(standby);
                        }
                    }
                    self.pair.run_server(old);
                });
                // Whoever used it would be heard of: it has neither standby nor what is confirmed from now on.
                tokio::time::sleep(Duration::from_secs(3)).await;
                block_in_place(|| self.pair.build_standbys());
            }
            Blow::FreezeStandby => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                self.pair
                    .standbys()
                    .into_iter()
                    .for_each(|standby| self.pair.signal(standby, "CONT"));
            }
            Blow::LoseStandby => {
                tokio::time::sleep(Duration::from_secs(2)).await;
                block_in_place(|| {
                    self.pair
                        .standbys()
                        .into_iter()
                        .for_each(|standby| self.pair.run_server(standby))
                });
            }
            Blow::LoseOneOfTwo => {
                self.nobody_minds().await;
                block_in_place(|| self.pair.run_server(self.pair.standby()));
            }
            Blow::Cut | Blow::Cuts | Blow::FillDisk => {}
            Blow::Delay | Blow::HalfOpen => {
                tokio::time::sleep(Duration::from_secs(3)).await;
                self.wires[victim].release();
            }
        }
        Instant::now()
    }

    /// Every gateway sells, all the time.
    async fn nobody_minds(&self) {
        let (begun, before) = (Instant::now(), self.ledger.totals().await.unwrap().entries);
        while begun.elapsed() < Duration::from_secs(2) {
            assert_eq!(self.trouble().await, None);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(
            self.ledger.totals().await.unwrap().entries > before,
            "charges go on"
        );
    }

    /// Takes the standbys away, and waits until a COMMIT waits for one.
    async fn lose_standbys(&mut self, blow: Blow) {
        for standby in self.pair.standbys() {
            match blow {
                Blow::LoseStandby => block_in_place(|| self.pair.kill(standby)),
                _ => self.pair.signal(standby, "STOP"),
            }
        }
        let waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'";
        let begun = Instant::now();
        while block_in_place(|| self.pair.sql(waiting)) != "t" {
            assert!(
                begun.elapsed() < PATIENCE,
                "no COMMIT waits for the standby"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_keeps_its_promises_through_every_fault() {
    let standbys = usize::try_from(sized(1, 2)).unwrap();
    let Some(pair) = block_in_place(|| Pair::start_with(standbys, true)) else {
        return skip("a fleet with a standby: PostgreSQL is not installed");
    };
    if !pair.has_disks() {
        skip("a full disk of the primary: mounting a tmpfs is not permitted here");
    }
    let possible = |blow: &Blow| match blow {
        Blow::FillDisk => pair.has_disks(),
        Blow::LoseOneOfTwo | Blow::SilencePrimary => standbys == 2,
        _ => true,
    };
    let blows: Vec<Blow> = ROUNDS.into_iter().filter(possible).collect();
    let begun = Instant::now();
    let mut fleet = Fleet::start(pair).await;
    let mut dice = Dice::new(11);
    let mut table: BTreeMap<String, (u32, Took)> = BTreeMap::new();
    for blow in blows
        .iter()
        .copied()
        .cycle()
        .take(blows.len().max(usize::try_from(sized(0, 100)).unwrap()))
    {
        let took = fleet.round(blow, &mut dice).await;
        println!(
            "{:5.1} s: {blow:?}; {took:?}",
            begun.elapsed().as_secs_f64()
        );
        let in_time = took.holds < BOUND || sized(0, 1) == 0;
        assert!(
            blow == Blow::Freeze || in_time,
            "{blow:?}: every hold ends within 15 s: {took:?}"
        );
        if blow == Blow::SilencePrimary {
            // It is switched off in the end, and becomes a standby.
            block_in_place(|| fleet.pair.build_standbys());
        }
        let row = table.entry(format!("{blow:?}")).or_default();
        *row = (row.0 + 1, row.1.max(took));
    }
    for (blow, (rounds, Took { away, holds })) in &table {
        let (away, holds) = (away.as_secs_f64(), holds.as_secs_f64());
        println!("| {blow} | {rounds} | {away:.1} s | {holds:.1} s |");
    }
    fleet.all_ready().await;
    let metrics = text_at(&client(), format!("{}/metrics", fleet.gateways[0].admin)).await;
    for series in OF_DATABASES {
        assert!(metrics.contains(series), "{series}: {metrics}");
    }
    for gateway in &mut fleet.gateways {
        gateway.signal("TERM");
        assert!(
            block_in_place(|| gateway.ended()).success(),
            "{}",
            gateway.log()
        );
        assert!(
            !gateway.log().contains("back in time"),
            "nothing that was confirmed is lost: {}",
            gateway.log()
        );
    }
    let anchors = (0..3).flat_map(|number| anchor::read(&fleet.anchors(number)).unwrap());
    let report = fleet.ledger.verify_with(anchors.collect()).await.unwrap();
    assert!(
        report.anchors >= 3 && report.faults.is_empty(),
        "{report:?}"
    );
    let judged = judge_ledger(&*fleet.ledger, &fleet.outside, &fleet.upstream.requests()).await;
    println!("{judged:?}; {:?} in all", begun.elapsed());
    assert!(
        judged.acknowledged > sized(0, 100) as usize && judged.recovered > 0,
        "the load was alive all the time: {judged:?}"
    );
}

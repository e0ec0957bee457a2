//! Hold+settle pairs through the public contract, against raw SQLite doing the same statements on the same schema.
//!
//! `cargo bench -p farebox-ledger` prints a Markdown table: pairs per second of the contract, of raw batches as large as the number
//! of concurrent requests, their ratio, and how long a hold takes; for few keys, for many, and for many with a long history.
//!
//! Sizes: `FAREBOX_KEYS` (1,000), `FAREBOX_MANY_KEYS` (1,000,000), `FAREBOX_ENTRIES` (10,000,000), `FAREBOX_PAIRS` (50,000) in
//! each of `FAREBOX_ROUNDS` (3), of which the median counts. `FAREBOX_DIR` is the disk. Large ledgers take minutes to make:
//! `FAREBOX_MANY` and `FAREBOX_LONG` name ledgers of the `seed` example, which are copied instead.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench is a program for its developers"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::*;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};
use tokio::runtime::Runtime;

#[path = "../../tests/support/big_ledger.rs"]
mod big_ledger;
#[path = "../../tests/support/bill.rs"]
mod bill;

use big_ledger::key_id;
use bill::bill;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const HOLD: i64 = 3_000_000_000;
const CHARGE: i64 = 960_000_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn op(number: u64) -> OperationId {
    OperationId::new(NOW, u128::from(number))
}

fn open(path: &Path) -> Arc<SqliteLedger> {
    Arc::new(SqliteLedger::open(path, OpenMode::Serve, Durability::Prompt).unwrap())
}

/// A ledger of this size at `path`: a copy of the one that the variable names, or a new one.
fn prepare(runtime: &Runtime, path: &Path, keys: u64, entries: u64, variable: &str) {
    if let Some(from) = std::env::var_os(variable).map(PathBuf::from) {
        eprintln!("copying {}", from.display());
        std::fs::copy(from, path).unwrap();
        return std::fs::File::open(path).unwrap().sync_all().unwrap();
    }
    eprintln!("making {keys} keys and {entries} entries");
    let ledger = SqliteLedger::create(path, OpenMode::Serve, Durability::Prompt);
    let ledger = Arc::new(ledger.unwrap());
    runtime.block_on(big_ledger::generate(
        &(Arc::clone(&ledger) as SharedLedger),
        keys,
        entries,
        NOW,
    ));
}

/// The pairs of one round; no two rounds have a request in common.
#[derive(Clone, Copy)]
struct Round {
    keys: u64,
    parallel: u64,
    pairs: u64,
    first: u64,
}

impl Round {
    fn request(self, pair: u64) -> OperationId {
        op(self.first + pair)
    }

    fn key(self, pair: u64) -> KeyId {
        key_id((self.first + pair).wrapping_mul(0x9e37_79b9) % self.keys)
    }

    fn per_second(self, begun: Instant) -> f64 {
        self.pairs as f64 / begun.elapsed().as_secs_f64()
    }
}

/// Pairs per second through the contract, and what each hold took.
async fn contract(ledger: &Arc<SqliteLedger>, round: Round) -> (f64, Vec<Duration>) {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..round.parallel)
        .map(|task| {
            let ledger: SharedLedger = Arc::clone(ledger) as SharedLedger;
            tokio::spawn(async move {
                let mut holds = Vec::new();
                for pair in (task..round.pairs).step_by(round.parallel as usize) {
                    let (request, key, amount) = (
                        round.request(pair),
                        round.key(pair),
                        Amount::from_picos(HOLD),
                    );
                    let (slug, family) = ("claude-sonnet-4.5".into(), "messages".into());
                    let asked = Instant::now();
                    let new = NewHold {
                        request,
                        customer: CustomerId::made_for(key),
                        key,
                        ways: vec![farebox_ledger::HoldWay::exactly(amount)],
                        slug,
                        family,
                        at: NOW,
                    };
                    let hold = Hold::open(Arc::clone(&ledger), new).await.unwrap();
                    holds.push(asked.elapsed());
                    hold.settle(bill(), NOW).await.unwrap();
                }
                holds
            })
        })
        .collect();
    let mut holds = Vec::new();
    for task in tasks {
        holds.extend(task.await.unwrap());
    }
    (round.per_second(begun), holds)
}

/// The statements of a hold and of a settlement, without rules, hashes, queue or replies.
fn raw(conn: &Connection, round: Round) -> f64 {
    let begun = Instant::now();
    for first in (0..round.pairs).step_by(round.parallel as usize) {
        let these = first..(first + round.parallel).min(round.pairs);
        transaction(conn, || {
            these
                .clone()
                .for_each(|pair| raw_hold(conn, round.key(pair), round.request(pair)))
        });
        transaction(conn, || {
            these
                .clone()
                .for_each(|pair| raw_settle(conn, round.key(pair), round.request(pair)))
        });
    }
    round.per_second(begun)
}

fn transaction(conn: &Connection, work: impl FnOnce()) {
    conn.prepare_cached("BEGIN IMMEDIATE")
        .unwrap()
        .execute([])
        .unwrap();
    query(conn, "SELECT entries FROM totals");
    work();
    let update = "UPDATE totals SET keys = keys, entries = ?1, audits = audits, epoch = epoch, credit = credit,
                  spent = spent, loss = loss";
    conn.prepare_cached(update)
        .unwrap()
        .execute([query(conn, "SELECT max(position) FROM entries")])
        .unwrap();
    conn.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
}

fn query(conn: &Connection, sql: &str) -> i64 {
    conn.prepare_cached(sql)
        .unwrap()
        .query_row([], |row| row.get(0))
        .unwrap()
}

/// The columns a hold reads of its key: `(spent, seq, last, hash)`.
fn account(conn: &Connection, key: KeyId) -> (i64, i64, i64, Vec<u8>) {
    let sql = "SELECT a.credit, a.spent, a.held, a.seq, a.last, a.hash, k.status, k.expires_at
               FROM accounts a JOIN keys k ON k.id = a.id WHERE a.id = ?1";
    let mut statement = conn.prepare_cached(sql).unwrap();
    statement
        .query_row([key.to_i64()], |row| {
            Ok((row.get(1)?, row.get(3)?, row.get(4)?, row.get(5)?))
        })
        .unwrap()
}

fn raw_hold(conn: &Connection, key: KeyId, request: OperationId) {
    let (id, key_number) = (request.to_bytes(), key.to_i64());
    assert!(
        !conn
            .prepare_cached("SELECT * FROM holds WHERE request = ?1")
            .unwrap()
            .exists([id])
            .unwrap()
    );
    assert!(
        !conn
            .prepare_cached("SELECT 1 FROM entries WHERE operation = ?1")
            .unwrap()
            .exists([id])
            .unwrap()
    );
    account(conn, key);
    let mut statement = conn
        .prepare_cached("INSERT INTO holds VALUES (?1, ?2, ?3, ?3, 0, ?4, ?5, ?6, ?7, NULL, 0)")
        .unwrap();
    statement
        .execute(params![
            id,
            key_number,
            HOLD,
            "claude-sonnet-4.5",
            "messages",
            NOW.millis(),
            0
        ])
        .unwrap();
    let mut statement = conn
        .prepare_cached("UPDATE accounts SET held = held + ?2 WHERE id = ?1")
        .unwrap();
    statement.execute(params![key_number, HOLD]).unwrap();
}

fn raw_settle(conn: &Connection, key: KeyId, request: OperationId) {
    let (id, key_number) = (request.to_bytes(), key.to_i64());
    let mut statement = conn
        .prepare_cached("SELECT * FROM holds WHERE request = ?1")
        .unwrap();
    statement
        .query_row([id], |row| row.get::<_, i64>(3))
        .unwrap();
    let (spent, seq, last, hash) = account(conn, key);
    let position = query(conn, "SELECT max(position) FROM entries") + 1;
    let sql = "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, 2, ?6, ?7, 1790000000000, 'gateway', NULL, NULL, NULL, 1, 'messages',
               'anthropic/claude-sonnet-4-5', 200, 'stop', 420, 2300, 'msg_01ABCDEFGHIJKLMNOPQRSTUV', 3000000000, 0, 1, 900, 8000, 0, 0,
               300, 0, 0, ?8, ?9, 3, NULL, NULL)";
    let lines = r#"[["input",900,300000],["cache_read",8000,30000],["output",300,1500000]]"#;
    let mut statement = conn.prepare_cached(sql).unwrap();
    statement
        .execute(params![
            position,
            key_number,
            seq + 1,
            last,
            id,
            -CHARGE,
            1_000_000_000_000_000 - spent,
            lines,
            hash
        ])
        .unwrap();
    let sql = "INSERT INTO usage VALUES (?1, ?2, 1, 1, 1, 900, 8000, 0, 0, 300, 0, 0, ?3, 0, 0, 0, 0, 0)
               ON CONFLICT (hour, key, slug, target) DO UPDATE SET requests = requests + 1, input = input + excluded.input,
                 cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write,
                 cache_write_1h = cache_write_1h + excluded.cache_write_1h, output = output + excluded.output,
                 reasoning = reasoning + excluded.reasoning, images = images + excluded.images,
                 charge = min(charge + excluded.charge, 9223372036854775807), loss = min(loss + excluded.loss, 9223372036854775807)";
    conn.prepare_cached(sql)
        .unwrap()
        .execute(params![NOW.hour(), key_number, CHARGE])
        .unwrap();
    let sql = "UPDATE accounts SET credit = credit, spent = ?2, held = held - ?6, seq = ?3, last = ?4, last_at = 1790000000000,
               hash = ?5 WHERE id = ?1";
    conn.prepare_cached(sql)
        .unwrap()
        .execute(params![
            key_number,
            spent + CHARGE,
            seq + 1,
            position,
            hash,
            HOLD
        ])
        .unwrap();
    conn.prepare_cached("DELETE FROM holds WHERE request = ?1")
        .unwrap()
        .execute([id])
        .unwrap();
}

/// A connection set up as the ledger's own.
fn raw_connection(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.set_prepared_statement_cache_capacity(64);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .unwrap();
    conn.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0; PRAGMA synchronous = NORMAL;
         PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 10000; INSERT OR IGNORE INTO slugs VALUES (1, 'claude-sonnet-4.5', NULL);
         INSERT OR IGNORE INTO targets VALUES (1, 'anthropic/claude-sonnet-4-5', 'standard', 'global', 0, '')",
    )
    .unwrap();
    conn
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures the ledger at `path` and prints a row: rounds of the contract and of raw batches take turns, so that a busy machine
/// is unjust to neither. Returns the contract's pairs per second.
fn row(runtime: &Runtime, path: &Path, keys: u64, entries: u64, parallel: u64) -> f64 {
    let (rounds, pairs) = (number("FAREBOX_ROUNDS", 3), number("FAREBOX_PAIRS", 50_000));
    let pairs = if parallel == 1 { pairs / 4 } else { pairs };
    let (mut ours, mut raws, mut ratios, mut holds) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // The round before the first warms the caches.
    for turn in 0..=rounds {
        let first = (parallel << 40) + (turn << 32);
        let ledger = open(path);
        let (our, took) = runtime.block_on(contract(
            &ledger,
            Round {
                keys,
                parallel,
                pairs,
                first,
            },
        ));
        drop(ledger);
        let conn = raw_connection(path);
        let raw = raw(
            &conn,
            Round {
                keys,
                parallel,
                pairs,
                first: first + pairs,
            },
        );
        if turn > 0 {
            ours.push(our);
            raws.push(raw);
            ratios.push(our / raw);
            holds.extend(took);
        }
    }
    holds.sort();
    let (our, raw, ratio) = (median(ours), median(raws), median(ratios));
    let at = |share: usize| holds[holds.len() * share / 100];
    println!(
        "| {keys} | {entries} | {parallel} | {our:.0} | {raw:.0} | {ratio:.2} | {:.0?} | {:.0?} |",
        at(50),
        at(99)
    );
    our
}

fn main() {
    let parent = std::env::var_os("FAREBOX_DIR").map_or_else(std::env::temp_dir, Into::into);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let (few, many, entries) = (
        number("FAREBOX_KEYS", 1_000),
        number("FAREBOX_MANY_KEYS", 1_000_000),
        number("FAREBOX_ENTRIES", 10_000_000),
    );
    println!(
        "| keys | entries before | requests at once | pairs/s | raw pairs/s | ratio | hold p50 | hold p99 |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    let measure = |keys, entries, variable: &str, parallels: &[u64]| {
        let directory = tempfile::tempdir_in(&parent).unwrap();
        let path = directory.path().join("farebox.db");
        prepare(&runtime, &path, keys, entries, variable);
        parallels
            .iter()
            .map(|parallel| row(&runtime, &path, keys, entries, *parallel))
            .last()
            .unwrap()
    };
    measure(few, few, "FAREBOX_FEW", &[1, 8, 64]);
    let empty = measure(many, many, "FAREBOX_MANY", &[1, 8, 64]);
    let long = measure(many, entries, "FAREBOX_LONG", &[64]);
    println!(
        "\nWith {entries} entries it writes {:.2} of what it writes without a history.",
        long / empty
    );
}

//! Hold+settle pairs through the public contract, against raw SQLite doing the same statements on the same schema.
//!
//! `cargo bench -p farebox-ledger` prints pairs per second for 1, 8 and 64 concurrent requests and the ratio to raw batches of
//! the same size. `FAREBOX_KEYS` (1,000) and `FAREBOX_PAIRS` (20,000) set the sizes, `FAREBOX_DIR` the disk.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for its developers")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farebox_ledger::sqlite::{Durability, OpenMode, SqliteLedger};
use farebox_ledger::*;
use rusqlite::{Connection, params};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn op(number: u64) -> OperationId {
    OperationId::new(Timestamp::from_millis(1_790_000_000_000), u128::from(number))
}

/// Keys with money, through the contract.
async fn fill(ledger: &Arc<SqliteLedger>, keys: u64) {
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let ledger = Arc::clone(ledger);
            tokio::spawn(async move {
                for key in (0..keys).filter(|key| key % 64 == task) {
                    let act = Act { operation: op(key), actor: "bench".into(), at: Timestamp::from_millis(1) };
                    let first_credit = Some((Amount::from_usd_str("1000").unwrap(), format!("first-{key}")));
                    let settings = KeySettings { label: format!("key {key}"), ..KeySettings::default() };
                    let new = NewKey { id: KeyId::from_random(key), secret: SecretHash([1; 32]), settings, first_credit, act };
                    ledger.create_key(new).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

fn bill() -> Bill {
    let line = |what: &'static str, count, picos| Line { what: what.into(), count, rate: Amount::from_picos(picos) };
    Bill {
        slug: "claude-sonnet-4.5".into(),
        family: "messages".into(),
        target: "anthropic/claude-sonnet-4-5".into(),
        status: 200,
        end_reason: "stop".into(),
        first_byte_ms: Some(420),
        total_ms: 2_300,
        answer_id: Some("msg_01ABCDEFGHIJKLMNOPQRSTUV".into()),
        usage: Usage { input: 900, cache_read: 8_000, output: 300, ..Usage::default() },
        lines: vec![line("input", 900, 3_000_000), line("cache_read", 8_000, 300_000), line("output", 300, 15_000_000)],
        ..Bill::default()
    }
}

/// Where in the id space a run begins, so that runs never meet.
const RUN: u64 = 1 << 40;

async fn contract(ledger: &Arc<SqliteLedger>, keys: u64, parallel: u64, pairs: u64, run: u64) -> (f64, Vec<Duration>) {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..parallel)
        .map(|task| {
            let ledger: SharedLedger = Arc::clone(ledger) as SharedLedger;
            tokio::spawn(async move {
                let mut holds = Vec::new();
                for pair in (0..pairs).filter(|pair| pair % parallel == task) {
                    let at = Timestamp::from_millis(1_790_000_000_000);
                    let amount = Amount::from_picos(30_000_000_000);
                    let key = KeyId::from_random(pair.wrapping_mul(0x9e37_79b9) % keys);
                    let request = op(run * RUN + pair);
                    let (slug, family) = ("claude-sonnet-4.5".into(), "messages".into());
                    let asked = Instant::now();
                    let hold = Hold::open(Arc::clone(&ledger), NewHold { request, key, amount, slug, family, at }).await.unwrap();
                    holds.push(asked.elapsed());
                    hold.settle(bill(), at).await.unwrap();
                }
                holds
            })
        })
        .collect();
    let mut holds = Vec::new();
    for task in tasks {
        holds.extend(task.await.unwrap());
    }
    holds.sort();
    (per_second(pairs, begun), holds)
}

fn per_second(pairs: u64, begun: Instant) -> f64 {
    pairs as f64 / begun.elapsed().as_secs_f64()
}

/// The statements of a hold and of a settlement, without rules, hashes, queue or replies.
fn raw(conn: &Connection, keys: u64, batch: u64, pairs: u64, run: u64) -> f64 {
    let begun = Instant::now();
    let mut first = 0;
    while first < pairs {
        let these = first..(first + batch).min(pairs);
        transaction(conn, || {
            these.clone().for_each(|pair| raw_hold(conn, pair.wrapping_mul(0x9e37_79b9) % keys, run * RUN + pair))
        });
        transaction(conn, || {
            these.clone().for_each(|pair| raw_settle(conn, pair.wrapping_mul(0x9e37_79b9) % keys, run * RUN + pair))
        });
        first += batch;
    }
    per_second(pairs, begun)
}

fn transaction(conn: &Connection, work: impl FnOnce()) {
    conn.prepare_cached("BEGIN IMMEDIATE").unwrap().execute([]).unwrap();
    let entries: i64 = query(conn, "SELECT entries FROM totals");
    work();
    let update = "UPDATE totals SET keys = keys, entries = ?1, audits = audits, holds = 0, epoch = 0, credit = '1', spent = '1', held = '0', loss = '0'";
    conn.prepare_cached(update).unwrap().execute([entries.max(query(conn, "SELECT max(position) FROM entries"))]).unwrap();
    conn.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
}

fn query(conn: &Connection, sql: &str) -> i64 {
    conn.prepare_cached(sql).unwrap().query_row([], |row| row.get(0)).unwrap()
}

fn account(conn: &Connection, key: u64) -> (i64, i64, i64, Vec<u8>) {
    let sql = "SELECT a.credit, a.spent, a.held, a.seq, a.last, a.hash, k.status, k.expires_at
               FROM accounts a JOIN keys k ON k.id = a.id WHERE a.id = ?1";
    let mut statement = conn.prepare_cached(sql).unwrap();
    statement.query_row([key.cast_signed()], |row| Ok((row.get(1)?, row.get(3)?, row.get(4)?, row.get(5)?))).unwrap()
}

fn raw_hold(conn: &Connection, key: u64, request: u64) {
    let id = op(request).to_bytes();
    assert!(!conn.prepare_cached("SELECT * FROM holds WHERE request = ?1").unwrap().exists([id]).unwrap());
    assert!(!conn.prepare_cached("SELECT 1 FROM entries WHERE operation = ?1").unwrap().exists([id]).unwrap());
    account(conn, key);
    let mut statement = conn.prepare_cached("INSERT INTO holds VALUES (?1, ?2, ?3, ?3, 0, ?4, ?5, ?6, ?7, NULL)").unwrap();
    statement
        .execute(params![id, key.cast_signed(), 30_000_000_000_i64, "claude-sonnet-4.5", "messages", 1_790_000_000_000_i64, 0])
        .unwrap();
    let mut statement = conn.prepare_cached("UPDATE accounts SET held = held + ?2 WHERE id = ?1").unwrap();
    statement.execute(params![key.cast_signed(), 30_000_000_000_i64]).unwrap();
}

fn raw_settle(conn: &Connection, key: u64, request: u64) {
    let id = op(request).to_bytes();
    let mut statement = conn.prepare_cached("SELECT * FROM holds WHERE request = ?1").unwrap();
    statement.query_row([id], |row| row.get::<_, i64>(3)).unwrap();
    let (spent, seq, last, hash) = account(conn, key);
    let charge = 9_600_000_000_i64;
    let position = query(conn, "SELECT max(position) FROM entries") + 1;
    let sql = "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, 2, ?6, ?7, 1790000000000, 'gateway', NULL, NULL, NULL, 1, 'messages',
               'anthropic/claude-sonnet-4-5', 200, 'stop', 420, 2300, 'msg_01ABCDEFGHIJKLMNOPQRSTUV', 30000000000, 0, 1, 900, 8000, 0, 0,
               300, 0, 0, ?8, ?9)";
    let lines = r#"[["input",900,3000000],["cache_read",8000,300000],["output",300,15000000]]"#;
    let mut statement = conn.prepare_cached(sql).unwrap();
    statement
        .execute(params![position, key.cast_signed(), seq + 1, last, id, -charge, 1_000_000_000_000_000 - spent, lines, hash])
        .unwrap();
    let sql = "INSERT INTO usage VALUES (?1, ?2, 1, 1, 900, 8000, 0, 0, 300, 0, 0, ?3, 0)
               ON CONFLICT (hour, key, slug) DO UPDATE SET requests = requests + 1, input = input + excluded.input,
                 cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write,
                 cache_write_1h = cache_write_1h + excluded.cache_write_1h, output = output + excluded.output,
                 reasoning = reasoning + excluded.reasoning, images = images + excluded.images,
                 charge = min(charge + excluded.charge, 9223372036854775807), loss = min(loss + excluded.loss, 9223372036854775807)";
    conn.prepare_cached(sql).unwrap().execute(params![497_222, key.cast_signed(), charge]).unwrap();
    let sql = "UPDATE accounts SET credit = credit, spent = ?2, held = held - 30000000000, seq = ?3, last = ?4, last_at = 1790000000000,
               hash = ?5 WHERE id = ?1";
    conn.prepare_cached(sql).unwrap().execute(params![key.cast_signed(), spent + charge, seq + 1, position, hash]).unwrap();
    conn.prepare_cached("DELETE FROM holds WHERE request = ?1").unwrap().execute([id]).unwrap();
}

fn raw_connection(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0; PRAGMA synchronous = NORMAL;
         PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 10000; INSERT OR IGNORE INTO slugs VALUES (1, 'claude-sonnet-4.5', NULL)",
    )
    .unwrap();
    conn
}

fn main() {
    let (keys, pairs) = (number("FAREBOX_KEYS", 1_000), number("FAREBOX_PAIRS", 20_000));
    let parent = std::env::var("FAREBOX_DIR").map_or_else(|_| std::env::temp_dir(), Into::into);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{keys} keys, pairs of hold and settle per second");
    println!("{:>8} {:>10} {:>10} {:>6} {:>10} {:>10}", "parallel", "contract", "raw", "ratio", "hold p50", "hold p99");
    for (run, parallel) in (1..).zip([1, 8, 64]) {
        let dir = tempfile::tempdir_in(&parent).unwrap();
        let (ours, raws) = (dir.path().join("contract.db"), dir.path().join("raw.db"));
        let few = if parallel == 1 { pairs / 4 } else { pairs };
        let open = |path: &Path| Arc::new(SqliteLedger::open(path, OpenMode::Serve, Durability::Prompt).unwrap());
        let ledger = open(&ours);
        runtime.block_on(fill(&ledger, keys));
        runtime.block_on(contract(&ledger, keys, parallel, few / 10, 100 + run));
        let (contract, holds) = runtime.block_on(contract(&ledger, keys, parallel, few, run));
        drop(ledger);
        let ledger = open(&raws);
        runtime.block_on(fill(&ledger, keys));
        drop(ledger);
        let conn = raw_connection(&raws);
        raw(&conn, keys, parallel, few / 10, 100 + run);
        let raw = raw(&conn, keys, parallel, few, run);
        let at = |share: usize| holds.get(holds.len() * share / 100).copied().unwrap_or_default();
        println!("{parallel:>8} {contract:>10.0} {raw:>10.0} {:>6.2} {:>10.0?} {:>10.0?}", contract / raw, at(50), at(99));
    }
}

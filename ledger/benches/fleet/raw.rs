//! Raw PostgreSQL: the statements of a batch of holds and of a batch of settlements, sent as the ledger sends them, in two round
//! trips.
//!
//! It has no rules, hashes, queue or replies, and constant columns are literals in the statements: all in raw PostgreSQL's favour.

use std::collections::BTreeMap;
use std::time::Instant;

use futures_util::future::{join, join_all};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use crate::{CHARGE, HOLD, Keys, NOW, fresh};

type Value<'value> = &'value (dyn ToSql + Sync);

const LOCK: &str = "SELECT k.id, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, \
     k.old_until, a.credit, a.spent, a.held, k.created_at, k.created_by, a.last_at, a.audit_seq, a.audit_last, a.audit_hash, a.seq, \
     a.last, a.hash, a.opened FROM keys k JOIN accounts a ON a.id = k.id WHERE k.id = ANY ($1::bigint[]) ORDER BY k.id \
     FOR NO KEY UPDATE OF a, k";
const HOLDS: &str = "SELECT request, key, amount, used, slug, family, at, epoch, opened, checkpoint FROM holds \
     WHERE request = ANY ($1::bytea[])";
const ENTRIES: &str = "SELECT * FROM entries WHERE operation = ANY ($1::bytea[])";
const PLACE: &str = "SELECT nextval('positions')";
const FENCE: &str = "SELECT 1 FROM nodes WHERE epoch = $1 AND ended IS NULL FOR KEY SHARE";

const ACCOUNTS: &str = "UPDATE accounts t SET credit = t.credit, spent = u.spent, held = u.held, seq = u.seq, last = u.last, \
     last_at = 1790000000000, hash = t.hash, opened = u.opened FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], \
     $5::bigint[], $6::bigint[]) AS u (id, spent, held, seq, last, opened) WHERE t.id = u.id";
const INSERT_HOLDS: &str = "INSERT INTO holds (request, amount, used, checkpoint, key, opened, slug, family, at, epoch) \
     SELECT u.request, 3000000000, 0, NULL, u.key, 3000000000, 'claude-sonnet-4.5', 'messages', 1790000000000, 1 \
     FROM unnest($1::bytea[], $2::bigint[]) AS u (request, key)";
const DELETE_HOLDS: &str = "DELETE FROM holds WHERE request = ANY ($1::bytea[])";
const INSERT_ENTRIES: &str = "INSERT INTO entries SELECT u.key, u.seq, u.position, u.operation, 2, -960000000, u.balance, \
     1790000000000, 'gateway', NULL, NULL, NULL, 'claude-sonnet-4.5', 'messages', 'anthropic/claude-sonnet-4-5', 200, 'stop', 420, \
     2300, 'msg_01ABCDEFGHIJKLMNOPQRSTUV', 3000000000, 0, 1, 900, 8000, 0, 0, 300, 0, 0, \
     '[[\"input\",900,300000],[\"cache_read\",8000,30000],[\"output\",300,1500000]]', NULL, 2, decode(repeat('07', 32), 'hex') \
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[]) AS u (key, seq, position, operation, balance)";
const USAGE: &str = "INSERT INTO usage AS t SELECT u.key, 497222, 'claude-sonnet-4.5', 'anthropic/claude-sonnet-4-5', u.count, \
     900 * u.count, 8000 * u.count, 0, 0, 300 * u.count, 0, 0, 960000000 * u.count, 0, 0, 0 \
     FROM unnest($1::bigint[], $2::bigint[]) AS u (key, count) ON CONFLICT (key, hour, slug, target, tier, place, context_band, account) DO UPDATE SET \
     requests = least(t.requests::numeric + excluded.requests, 9223372036854775807)::bigint, \
     input = least(t.input::numeric + excluded.input, 9223372036854775807)::bigint, \
     cache_read = least(t.cache_read::numeric + excluded.cache_read, 9223372036854775807)::bigint, \
     cache_write = least(t.cache_write::numeric + excluded.cache_write, 9223372036854775807)::bigint, \
     cache_write_1h = least(t.cache_write_1h::numeric + excluded.cache_write_1h, 9223372036854775807)::bigint, \
     output = least(t.output::numeric + excluded.output, 9223372036854775807)::bigint, \
     reasoning = least(t.reasoning::numeric + excluded.reasoning, 9223372036854775807)::bigint, \
     images = least(t.images::numeric + excluded.images, 9223372036854775807)::bigint, \
     charge = least(t.charge::numeric + excluded.charge, 9223372036854775807)::bigint, \
     loss = least(t.loss::numeric + excluded.loss, 9223372036854775807)::bigint, \
     exposure = least(t.exposure::numeric + excluded.exposure, 9223372036854775807)::bigint, \
     cost = least(t.cost::numeric + excluded.cost, 9223372036854775807)::bigint";

const ALL: [&str; 10] = [
    FENCE,
    LOCK,
    PLACE,
    HOLDS,
    ENTRIES,
    ACCOUNTS,
    INSERT_HOLDS,
    DELETE_HOLDS,
    INSERT_ENTRIES,
    USAGE,
];

/// A connection with all statements prepared.
pub(crate) struct Raw {
    client: Client,
    statements: BTreeMap<&'static str, Statement>,
    done: u64,
}

/// A locked account.
struct Account {
    credit: i64,
    spent: i64,
    held: i64,
    seq: i64,
    last: i64,
    opened: i64,
    charges: i64,
}

impl Raw {
    pub(crate) async fn connect(url: &str) -> Self {
        let config: tokio_postgres::Config = url.parse().unwrap();
        let (client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        let by_index = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; \
             SET plan_cache_mode = force_generic_plan";
        client.batch_execute(by_index).await.unwrap();
        let mut statements = BTreeMap::new();
        for sql in ALL {
            statements.insert(sql, client.prepare(sql).await.unwrap());
        }
        Self {
            client,
            statements,
            done: 0,
        }
    }

    /// Pairs per second, in batches of `size`: all holds of a batch, then all its settlements.
    pub(crate) async fn pairs(&mut self, keys: Keys, size: u64, pairs: u64) -> f64 {
        let begun = Instant::now();
        for first in (0..pairs).step_by(size as usize) {
            let of: Vec<(i64, Vec<u8>)> = (first..(first + size).min(pairs))
                .map(|pair| {
                    (
                        keys.of(self.done + pair).to_i64(),
                        fresh().to_bytes().to_vec(),
                    )
                })
                .collect();
            self.holds(&of).await;
            self.settlements(&of).await;
        }
        self.done += pairs;
        pairs as f64 / begun.elapsed().as_secs_f64()
    }

    async fn query(&self, sql: &'static str, values: &[Value<'_>]) -> Vec<Row> {
        self.client
            .query(&self.statements[sql], values)
            .await
            .unwrap()
    }

    /// Trip one: the accounts of the batch, and the first place.
    async fn fetch(&self, of: &[(i64, Vec<u8>)]) -> (BTreeMap<i64, Account>, i64) {
        let keys: std::collections::BTreeSet<i64> = of.iter().map(|(key, _)| *key).collect();
        let keys: Vec<i64> = keys.into_iter().collect();
        let requests: Vec<&[u8]> = of.iter().map(|(_, request)| request.as_slice()).collect();
        let (keys, requests): ([Value<'_>; 1], [Value<'_>; 1]) = ([&keys], [&requests]);
        let all = [
            (FENCE, &[&1_i64 as Value<'_>][..]),
            (LOCK, &keys),
            (PLACE, &[]),
            (HOLDS, &requests),
            (ENTRIES, &requests),
        ];
        let queries = join_all(all.map(|(sql, values)| self.query(sql, values)));
        let (begun, rows) = join(self.client.batch_execute("BEGIN"), queries).await;
        begun.unwrap();
        let account = |row: &Row| {
            let number = |at: usize| row.get::<_, i64>(at);
            let (credit, spent, held, seq, last, opened) = (
                number(10),
                number(11),
                number(12),
                number(19),
                number(20),
                number(22),
            );
            (
                number(0),
                Account {
                    credit,
                    spent,
                    held,
                    seq,
                    last,
                    opened,
                    charges: 0,
                },
            )
        };
        (rows[1].iter().map(account).collect(), rows[2][0].get(0))
    }

    /// Trip two.
    async fn flush(&self, writes: &[(&'static str, &[Value<'_>])]) {
        let writes = join_all(writes.iter().map(|(sql, values)| self.query(sql, values)));
        let (_, committed) = join(writes, self.client.batch_execute("COMMIT")).await;
        committed.unwrap();
    }

    async fn holds(&self, of: &[(i64, Vec<u8>)]) {
        let (mut accounts, _) = self.fetch(of).await;
        for (key, _) in of {
            let account = accounts.get_mut(key).unwrap();
            (account.held, account.opened) = (account.held + HOLD, account.opened + 1);
        }
        let columns = Columns::of(&accounts);
        let (keys, requests): (Vec<i64>, Vec<&[u8]>) = of
            .iter()
            .map(|(key, request)| (*key, request.as_slice()))
            .unzip();
        self.flush(&[
            (ACCOUNTS, &columns.values()),
            (INSERT_HOLDS, &[&requests, &keys]),
        ])
        .await;
    }

    async fn settlements(&self, of: &[(i64, Vec<u8>)]) {
        let (mut accounts, mut place) = self.fetch(of).await;
        let (mut seqs, mut places, mut balances) = (Vec::new(), Vec::new(), Vec::new());
        for (key, _) in of {
            let account = accounts.get_mut(key).unwrap();
            (account.held, account.spent) = (account.held - HOLD, account.spent + CHARGE);
            (account.seq, account.last, account.charges) =
                (account.seq + 1, place, account.charges + 1);
            seqs.push(account.seq);
            places.push(place);
            balances.push(account.credit - account.spent);
            place += 1;
        }
        let columns = Columns::of(&accounts);
        let (keys, requests): (Vec<i64>, Vec<&[u8]>) = of
            .iter()
            .map(|(key, request)| (*key, request.as_slice()))
            .unzip();
        let charges: Vec<i64> = accounts.values().map(|account| account.charges).collect();
        assert_eq!(NOW.hour(), 497_222);
        self.flush(&[
            (ACCOUNTS, &columns.values()),
            (DELETE_HOLDS, &[&requests]),
            (
                INSERT_ENTRIES,
                &[&keys, &seqs, &places, &requests, &balances],
            ),
            (USAGE, &[&columns.0[0], &charges]),
        ])
        .await;
    }
}

/// Accounts by column: id, spent, held, seq, last, opened.
struct Columns([Vec<i64>; 6]);

impl Columns {
    fn of(accounts: &BTreeMap<i64, Account>) -> Self {
        let column = |pick: fn(&Account) -> i64| accounts.values().map(pick).collect();
        Self([
            accounts.keys().copied().collect(),
            column(|account| account.spent),
            column(|account| account.held),
            column(|account| account.seq),
            column(|account| account.last),
            column(|account| account.opened),
        ])
    }

    fn values(&self) -> Vec<Value<'_>> {
        self.0.iter().map(|column| column as Value<'_>).collect()
    }
}

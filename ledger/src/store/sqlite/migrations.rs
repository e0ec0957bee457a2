//! The schema's versions and the migrations between them.
//!
//! A migration runs in one exclusive transaction and keeps every row. `user_version` counts the migrations that were applied. A
//! published file under `schema/` never changes again; tests/upgrade.rs opens ledgers of every earlier version.

use rusqlite::{Connection, OptionalExtension, Result, Transaction, TransactionBehavior, params};

use super::rows::Columns;
use crate::book::chain;
use crate::book::head::HouseHead;
use crate::book::house_act::{self, ChainedHouseAct};
use crate::store::voucher_rows;
use crate::value::reference;
use crate::{OperationId, SecretHash, Timestamp};

/// `fare`, in the header of every ledger.
const APPLICATION_ID: i64 = 0x6661_7265;
/// The schema version of this program.
pub(super) const VERSION: i64 = 17;

/// What a new ledger is created with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Birth {
    /// Random; distinguishes this ledger from every other one.
    pub(super) ledger: [u8; 16],
    /// Now.
    pub(super) at: Timestamp,
}

type Migration = fn(&Connection, &Birth) -> Result<()>;

const MIGRATIONS: [Migration; 17] = [
    |conn, _| conn.execute_batch(include_str!("schema/1.sql")),
    |conn, birth| {
        conn.execute_batch(include_str!("schema/2.sql"))?;
        conn.execute(
            "INSERT INTO identity VALUES (1, ?1, 1, ?2)",
            params![birth.ledger, birth.at],
        )?;
        register_references(conn)
    },
    |conn, _| conn.execute_batch(include_str!("schema/3.sql")),
    |conn, _| {
        conn.execute_batch(include_str!("schema/4.sql"))?;
        total_owed(conn)
    },
    |conn, _| {
        conn.execute_batch(include_str!("schema/5.sql"))?;
        register_references(conn)
    },
    |conn, _| conn.execute_batch(include_str!("schema/6.sql")),
    |conn, _| conn.execute_batch(include_str!("schema/7.sql")),
    |conn, _| conn.execute_batch(include_str!("schema/8.sql")),
    |conn, _| conn.execute_batch(include_str!("schema/9.sql")),
    |conn, _| conn.execute_batch(include_str!("schema/10.sql")),
    |conn, _| conn.execute_batch(include_str!("schema/11.sql")),
    |conn, _| conn.execute_batch(include_str!("schema/12.sql")),
    |conn, _| conn.execute_batch(include_str!("schema/13.sql")),
    |conn, _| conn.execute_batch(include_str!("schema/14.sql")),
    |conn, _| conn.execute_batch(include_str!("schema/15.sql")),
    |conn, _| {
        conn.execute_batch(include_str!("schema/16.sql"))?;
        adopt_lots(conn)
    },
    |conn, _| conn.execute_batch(include_str!("schema/17.sql")),
];

/// The content of a database file.
pub(super) enum FileContent {
    /// Empty.
    Empty,
    /// Another program's.
    Foreign,
    /// A ledger with this version of the schema.
    Ledger(i64),
}

/// Identifies the file's content.
pub(super) fn identify(conn: &Connection) -> Result<FileContent> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    if application == APPLICATION_ID && version > 0 {
        return Ok(FileContent::Ledger(version));
    }
    let objects = number("SELECT count(*) FROM sqlite_schema")?;
    Ok(if application == 0 && version == 0 && objects == 0 {
        FileContent::Empty
    } else {
        FileContent::Foreign
    })
}

/// Migrates the schema to [`VERSION`], and returns the version that it found: another process may already have done so.
pub(super) fn migrate(conn: &Connection, birth: &Birth) -> Result<i64> {
    let transaction = Transaction::new_unchecked(conn, TransactionBehavior::Exclusive)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    for migration in MIGRATIONS.iter().skip(done) {
        migration(&transaction, birth)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(version)
}

/// The sum over the hours. Computed here because SQL's sum of integers ends at 64 bits.
fn total_owed(conn: &Connection) -> Result<()> {
    let mut hours =
        conn.prepare("SELECT exposure, cost FROM usage WHERE exposure <> 0 OR cost <> 0")?;
    let mut rows = hours.query([])?;
    let (mut exposure, mut cost) = (0_i128, 0_i128);
    while let Some(row) = rows.next()? {
        exposure = exposure.saturating_add(row.get::<_, i64>(0)?.into());
        cost = cost.saturating_add(row.get::<_, i64>(1)?.into());
    }
    conn.execute(
        "UPDATE totals SET exposure = ?1, cost = ?2",
        params![exposure.to_string(), cost.to_string()],
    )?;
    Ok(())
}

/// Lots that were there before acts told of them get one each.
fn adopt_lots(conn: &Connection) -> Result<()> {
    let mut lots = conn.prepare(
        "SELECT id, count, amount, expires_at, once, void, redeemed, created_at, created_by, operation FROM lots ORDER BY created_at, id",
    )?;
    let mut codes = conn.prepare("SELECT code FROM vouchers WHERE lot = ?1 ORDER BY number")?;
    let ledger = conn.query_row("SELECT ledger FROM identity", [], |row| row.get(0))?;
    let genesis = chain::genesis(&ledger);
    let mut head = conn
        .query_row(
            "SELECT seq, hash FROM house_acts ORDER BY seq DESC LIMIT 1",
            [],
            |row| {
                let (seq, SecretHash(hash)) = (row.get(0)?, row.get(1)?);
                Ok(HouseHead { seq, hash })
            },
        )
        .optional()?
        .unwrap_or_default();
    let mut rows = lots.query([])?;
    while let Some(row) = rows.next()? {
        let made = voucher_rows::lot(&mut Columns::of(row))?;
        let codes: Vec<SecretHash> = codes
            .query_map([made.0.id], |row| row.get(0))?
            .collect::<Result<_>>()?;
        let ChainedHouseAct { act, state, hash } = house_act::adopted(genesis, head, &made, &codes);
        conn.execute(
            "INSERT INTO house_acts VALUES (?1, ?2, ?3, ?4, NULL, ?5, ?6, ?7, ?8, ?9)",
            params![
                act.seq,
                act.at,
                act.actor,
                act.act,
                made.0.id,
                act.operation,
                act.details,
                state,
                hash
            ],
        )?;
        head = HouseHead { seq: act.seq, hash };
    }
    Ok(())
}

/// Old ledgers may contain several entries whose references are equal by today's rule. All of them stay; the first owns the
/// reference from now on, and the others are still found by their exact spelling.
fn register_references(conn: &Connection) -> Result<()> {
    let mut register = conn.prepare("INSERT OR IGNORE INTO refs VALUES (?1, ?2)")?;
    let mut named = conn.prepare(
        "SELECT reference, operation FROM entries WHERE reference IS NOT NULL ORDER BY position",
    )?;
    let mut rows = named.query([])?;
    while let Some(row) = rows.next()? {
        let spelled: String = row.get(0)?;
        register.execute(params![
            reference::folded(&spelled),
            row.get::<_, OperationId>(1)?
        ])?;
    }
    Ok(())
}

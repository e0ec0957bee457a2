//! The schema with which ledgers begin, and the steps that lead on from it.
//!
//! All steps of a ledger are one exclusive transaction and keep every row. `user_version` is the number of the last one. A published
//! file under `schema/` never changes again: `ledger verify` compares every ledger with a new one.

use rusqlite::{Connection, Result, Transaction, TransactionBehavior, params};

use crate::Timestamp;

/// `fare`, in the header of every ledger.
const APPLICATION_ID: i64 = 0x6661_7265;
/// The schema with which ledgers begin. Older ones are refused.
pub(super) const BASE: i64 = 17;
/// The schema version of this program: `BASE`, and one for each step.
pub(super) const VERSION: i64 = 31;
/// What leads on from the base, `schema/18.sql` first.
const STEPS: [&str; 14] = [
    include_str!("schema/18.sql"),
    include_str!("schema/19.sql"),
    include_str!("schema/20.sql"),
    include_str!("schema/21.sql"),
    include_str!("schema/22.sql"),
    include_str!("schema/23.sql"),
    include_str!("schema/24.sql"),
    include_str!("schema/25.sql"),
    include_str!("schema/26.sql"),
    include_str!("schema/27.sql"),
    include_str!("schema/28.sql"),
    include_str!("schema/29.sql"),
    include_str!("schema/30.sql"),
    include_str!("schema/31.sql"),
];

/// What a new ledger is created with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Birth {
    /// Random; distinguishes this ledger from every other one.
    pub(super) ledger: [u8; 16],
    /// Now.
    pub(super) at: Timestamp,
}

/// The content of a database file.
pub(super) enum FileContent {
    Empty,
    /// Another program's.
    Foreign,
    /// A ledger with this version of the schema.
    Ledger(i64),
}

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

/// Creates the schema in an empty file, or migrates it to [`VERSION`], and returns the version that it found: another process may already
/// have done so.
pub(super) fn migrate(conn: &Connection, birth: &Birth) -> Result<i64> {
    take(conn, birth, &STEPS)
}

fn take(conn: &Connection, birth: &Birth, steps: &[&str]) -> Result<i64> {
    let transaction = Transaction::new_unchecked(conn, TransactionBehavior::Exclusive)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let mut version = found;
    if version == 0 {
        transaction.execute_batch(include_str!("schema/17.sql"))?;
        transaction.execute(
            "INSERT INTO identity VALUES (1, ?1, 1, ?2)",
            params![birth.ledger, birth.at],
        )?;
        version = BASE;
    }
    let taken = usize::try_from(version.saturating_sub(BASE)).unwrap_or(usize::MAX);
    for step in steps.iter().skip(taken) {
        transaction.execute_batch(step)?;
        version = version.saturating_add(1);
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As two later versions would bring them: each step once, after the base, and all of them or none.
    #[test]
    fn every_ledger_takes_the_steps_that_it_has_not_taken() {
        const WIDER: &str = "ALTER TABLE lessons ADD COLUMN weight INTEGER NOT NULL DEFAULT 1";
        const NOTES: &str = "CREATE TABLE notes (text TEXT NOT NULL) STRICT";
        let all = |later: &[&'static str]| [STEPS.as_slice(), later].concat();
        let birth = Birth {
            ledger: [7; 16],
            at: Timestamp::default(),
        };
        let objects = |conn: &Connection| -> (i64, Vec<String>) {
            let version = conn.query_row("PRAGMA user_version", [], |row| row.get(0));
            let mut found = conn
                .prepare("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name")
                .unwrap();
            let found = found.query_map([], |row| row.get(0)).unwrap();
            (version.unwrap(), found.collect::<Result<_>>().unwrap())
        };
        let (new, old) = (
            Connection::open_in_memory().unwrap(),
            Connection::open_in_memory().unwrap(),
        );
        migrate(&old, &birth).unwrap();
        let before = objects(&old);
        assert_eq!(before.0, VERSION);
        let failed = take(&old, &birth, &all(&[WIDER, "CREATE TABLE lessons (x)"]));
        assert!(failed.is_err() && objects(&old) == before);
        take(&old, &birth, &all(&[WIDER])).unwrap();
        for _ in 0..2 {
            take(&old, &birth, &all(&[WIDER, NOTES])).unwrap();
        }
        take(&new, &birth, &all(&[WIDER, NOTES])).unwrap();
        assert_eq!(objects(&old).0, VERSION + 2);
        assert_eq!(objects(&old), objects(&new));
        let identities = "SELECT count(*) FROM identity";
        let identities: i64 = old.query_row(identities, [], |row| row.get(0)).unwrap();
        assert_eq!(identities, 1);
    }
}

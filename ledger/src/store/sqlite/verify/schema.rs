//! Everything without a key: the tables, indexes and triggers themselves, the ledger's identity, epochs, and rows that refer to
//! nothing.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Result};

use super::FileReader;
use crate::book::chain;
use crate::book::head::Hash;
use crate::store::sqlite::migrations::{Birth, migrate};
use crate::{SecretHash, Timestamp};

/// The value with which the chains of format 2 begin.
pub(super) fn genesis(conn: &Connection) -> Result<Option<Hash>> {
    let read = conn
        .query_row("SELECT ledger FROM identity WHERE id = 1", [], |row| {
            row.get::<_, Vec<u8>>(0)
        })
        .optional()?;
    Ok(read
        .and_then(|ledger| ledger.try_into().ok())
        .map(|ledger| chain::genesis(&ledger)))
}

impl FileReader<'_> {
    /// Compares tables, indexes and triggers with those of a new ledger, and looks for rows without an owner.
    pub(super) fn schema(&mut self) -> Result<()> {
        let fresh = Connection::open_in_memory()?;
        migrate(
            &fresh,
            &Birth {
                ledger: [0; 16],
                at: Timestamp::default(),
            },
        )?;
        let (expected, found) = (objects(&fresh)?, objects(self.conn)?);
        for (name, sql) in &expected {
            match found.get(name) {
                None => self.fault(format!("the {name} is missing")),
                Some(other) if other != sql => self.fault(format!(
                    "the {name} differs from the one that this program creates"
                )),
                Some(_) => {}
            }
        }
        for name in found.keys().filter(|name| !expected.contains_key(*name)) {
            self.fault(format!("the {name} does not belong to a ledger"));
        }
        for (what, sql) in [
            (
                "hold",
                "SELECT count(*) FROM holds WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "session",
                "SELECT count(*) FROM sessions WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "sign-in link",
                "SELECT count(*) FROM links WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "key",
                "SELECT count(*) FROM keys WHERE customer NOT IN (SELECT id FROM accounts)",
            ),
            (
                "row of personal data",
                "SELECT count(*) FROM personal_data WHERE customer NOT IN (SELECT id FROM accounts)",
            ),
            (
                "payment's addressee",
                "SELECT count(*) FROM addressees WHERE folded NOT IN (SELECT folded FROM refs) AND folded NOT IN (SELECT folded FROM payments)",
            ),
            (
                "redeemed voucher",
                "SELECT count(*) FROM vouchers v WHERE operation IS NOT NULL AND NOT EXISTS (SELECT 1 FROM entries e JOIN lots l ON l.id = v.lot \
                 WHERE e.operation = v.operation AND e.customer = v.customer AND e.amount = l.amount)",
            ),
            (
                "reference",
                "SELECT count(*) FROM refs WHERE operation NOT IN (SELECT operation FROM entries)",
            ),
        ] {
            let count: i64 = self.conn.query_row(sql, [], |row| row.get(0))?;
            if count > 0 {
                self.fault(format!("{count} × a {what} that belongs to nothing"));
            }
        }
        self.tokens()
    }

    /// A token of another length would never be found, and so never expire.
    fn tokens(&mut self) -> Result<()> {
        let mut statement = self
            .conn
            .prepare("SELECT token FROM sessions UNION ALL SELECT token FROM links")?;
        let tokens = statement
            .query_map([], |row| row.get(0))?
            .collect::<Result<Vec<SecretHash>>>();
        self.readable("a session or link", tokens)?;
        Ok(())
    }
}

/// Every table, index and trigger with its text.
fn objects(conn: &Connection) -> Result<BTreeMap<String, Option<String>>> {
    let mut statement = conn.prepare(
        "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*'",
    )?;
    statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

//! Everything without a key: the tables, indexes and triggers themselves, the ledger's identity, epochs, and rows that refer to
//! nothing.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rusqlite::{Connection, OptionalExtension, Result};

use super::FileReader;
use crate::book::chain;
use crate::book::head::Hash;
use crate::store::sqlite::migrations::{Birth, migrate};
use crate::store::strays::{self, STRAYS};
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
        let (expected, found) = (expected()?, objects(self.conn)?);
        for (name, sql) in expected {
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
        let keys = "SELECT count(*) FROM keys WHERE customer NOT IN (SELECT id FROM accounts)";
        let own = [("a key of no customer", keys)];
        for (what, sql) in STRAYS.into_iter().chain(own) {
            let count = self.conn.query_row(sql, [], |row| row.get(0))?;
            self.faults.extend(strays::fault(what, count));
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
type SchemaTexts = BTreeMap<String, Option<String>>;

/// Those that this program creates: always the same.
fn expected() -> Result<&'static SchemaTexts> {
    static EXPECTED: OnceLock<SchemaTexts> = OnceLock::new();
    if let Some(known) = EXPECTED.get() {
        return Ok(known);
    }
    let fresh = Connection::open_in_memory()?;
    migrate(
        &fresh,
        &Birth {
            ledger: [0; 16],
            at: Timestamp::default(),
        },
    )?;
    let objects = objects(&fresh)?;
    Ok(EXPECTED.get_or_init(|| objects))
}

fn objects(conn: &Connection) -> Result<SchemaTexts> {
    let mut statement = conn.prepare(
        "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*'",
    )?;
    statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a million customers that would take hours.
    #[test]
    fn no_question_reads_a_table_for_each_row_of_another() {
        let conn = Connection::open_in_memory().unwrap();
        let birth = Birth {
            ledger: [0; 16],
            at: Timestamp::default(),
        };
        migrate(&conn, &birth).unwrap();
        for (what, sql) in STRAYS {
            let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = plan.query_map([], |row| {
                Ok((row.get("id")?, row.get("parent")?, row.get("detail")?))
            });
            let steps: Vec<(i64, i64, String)> = steps.unwrap().collect::<Result<_>>().unwrap();
            let mut repeated = Vec::new();
            for (id, parent, detail) in &steps {
                let is_repeated = repeated.contains(parent);
                assert!(
                    !(is_repeated && detail.starts_with("SCAN")),
                    "{what}: {steps:?}"
                );
                if is_repeated || detail.starts_with("CORRELATED") {
                    repeated.push(*id);
                }
            }
        }
    }
}

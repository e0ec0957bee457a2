//! Whether the database still has the triggers and constraints that repeat the rules of the books.

use super::Check;
use crate::store::postgres::link::Link;
use crate::store::postgres::rows::Columns;
use crate::store::postgres::trouble::Trouble;

/// What the files under schema/ create.
const TRIGGERS: i64 = 8;
const CHECKS: i64 = 53;

impl Check {
    /// The triggers and constraints that repeat the rules.
    pub(super) async fn guards(&mut self, link: &Link) -> Result<(), Trouble> {
        let sql = "SELECT (SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
             WHERE c.relnamespace = l.relnamespace AND NOT t.tgisinternal AND t.tgenabled = 'O'), \
             (SELECT count(*) FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid \
             WHERE c.relnamespace = l.relnamespace AND n.contype = 'c' AND n.convalidated) \
             FROM pg_class l WHERE l.oid = to_regclass('identity')";
        let rows = link.query(sql, &[]).await?;
        let Some(row) = rows.first() else {
            return Ok(());
        };
        let mut columns = Columns::of(row);
        let (triggers, checks): (i64, i64) = (columns.take()?, columns.take()?);
        if triggers < TRIGGERS {
            self.fault(
                "a trigger that keeps the books append-only is missing or switched off".to_owned(),
            );
        }
        if checks < CHECKS {
            self.fault("a constraint of the books is missing".to_owned());
        }
        Ok(())
    }
}

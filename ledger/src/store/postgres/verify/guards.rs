//! Whether the database still has the triggers and constraints that repeat the rules of the books.

use crate::store::postgres::link::Link;
use crate::store::postgres::rows::Columns;
use crate::store::postgres::trouble::TransactionTrouble;
use crate::store::rows::RowColumns as _;

/// What the files under schema/ create.
const TRIGGERS: i64 = 12;
const CHECKS: i64 = 119;

/// What is missing of them.
pub(super) async fn faults(link: &Link) -> Result<Vec<String>, TransactionTrouble> {
    let sql = "SELECT (SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
         WHERE c.relnamespace = l.relnamespace AND NOT t.tgisinternal AND t.tgenabled = 'O'), \
         (SELECT count(*) FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid \
         WHERE c.relnamespace = l.relnamespace AND n.contype = 'c' AND n.convalidated) \
         FROM pg_class l WHERE l.oid = to_regclass('identity')";
    let rows = link.query(sql, &[]).await?;
    let Some(row) = rows.first() else {
        return Ok(Vec::new());
    };
    let mut columns = Columns::of(row);
    let (triggers, checks) = (columns.number()?, columns.number()?);
    let mut faults = Vec::new();
    if triggers < TRIGGERS {
        faults.push(
            "a trigger that keeps the books append-only is missing or switched off".to_owned(),
        );
    }
    if checks < CHECKS {
        faults.push("a constraint of the books is missing".to_owned());
    }
    Ok(faults)
}

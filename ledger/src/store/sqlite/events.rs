//! Events in a file: what a batch writes of them, and what is read of them.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::batch::BatchTables;
use super::rows::Columns;
use super::statements::Sql;
use crate::batch::rows::Rows;
use crate::store::event_rows::{self, OLD_AT_ONCE, event_columns, kept_since};
use crate::store::rows::rows_at_most;
use crate::{Event, OperationId};

pub(super) fn event(row: &Row<'_>) -> Result<Event> {
    Ok(event_rows::event(&mut Columns::of(row))?)
}

impl BatchTables<'_> {
    /// Writes what is told, and removes some of what is older than is kept: more than comes in, so that it never piles up.
    pub(super) fn events(&mut self, rows: &Rows) -> Result<()> {
        let events = &rows.changes.events;
        if events.is_empty() {
            return Ok(());
        }
        for event in events {
            self.statements.get(Sql::InsertEvent)?.execute(params![
                event.id,
                event.kind.as_str(),
                event.at,
                event.customer,
                event.seq,
                event.data,
            ])?;
        }
        let old = params![kept_since(rows.now()), OLD_AT_ONCE];
        self.statements.get(Sql::ForgetDeliveries)?.execute(old)?;
        self.statements.get(Sql::ForgetEvents)?.execute(old)?;
        Ok(())
    }
}

/// Events after this one, oldest first; `None` if there is no such event.
pub(super) fn after(
    conn: &Connection,
    after: Option<OperationId>,
    limit: usize,
) -> Result<Option<Vec<Event>>> {
    let from: i64 = match after {
        None => i64::MIN,
        Some(id) => {
            let place = conn
                .prepare_cached("SELECT position FROM events WHERE id = ?1")?
                .query_row([id], |row| row.get(0))
                .optional()?;
            let Some(place) = place else { return Ok(None) };
            place
        }
    };
    let sql = concat!(
        "SELECT ",
        event_columns!(),
        " FROM events e WHERE e.position > ?1 ORDER BY e.position LIMIT ?2"
    );
    let mut statement = conn.prepare_cached(sql)?;
    let found = statement.query_map(params![from, rows_at_most(limit)], event)?;
    found.collect::<Result<_>>().map(Some)
}

//! Sums over all keys: compares the hourly rollups and the totals with the entries.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result, params};

use super::FileReader;
use crate::store::rows::{RowColumns as _, rollup_columns, served_columns};
use crate::store::sqlite::rows::{self, Columns, SELECT_ENTRY};
use crate::store::sqlite::totals::{self, EntrySums};
use crate::{JournalEntry, Served, Timestamp, Totals, UsageRow};

/// The sums of the entries up to a position.
#[derive(Default)]
pub(super) struct Journal {
    pub(super) covered: i64,
    sums: EntrySums,
    hours: BTreeMap<i64, Hour>,
}

/// One hour by slug, target and what it served, over all keys.
type Hour = BTreeMap<(String, String, Served), HourSum>;

#[derive(Default, PartialEq)]
struct HourSum {
    row: UsageRow,
    /// Σ key × (requests + charge + exposure + cost): detects usage that was moved to another key.
    weighed: i128,
}

impl HourSum {
    fn add(&mut self, key: i64, row: &UsageRow) {
        self.row.merge(row);
        let money = [row.charge, row.exposure, row.cost].map(|amount| i128::from(amount.picos()));
        let weight = money
            .into_iter()
            .fold(i128::from(row.requests), i128::saturating_add);
        self.weighed = self
            .weighed
            .wrapping_add(i128::from(key).wrapping_mul(weight));
    }
}

impl Journal {
    pub(super) fn up_to(covered: i64) -> Self {
        Self {
            covered,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, entry: &JournalEntry) {
        self.sums.add(entry);
        if let (Some(bill), Some(key)) = (&entry.bill, entry.key) {
            let hour = self.hours.entry(entry.at.hour()).or_default();
            for (target, served, row) in UsageRow::of(entry, bill) {
                hour.entry((bill.slug.clone(), target.to_owned(), served.clone()))
                    .or_default()
                    .add(key.to_i64(), &row);
            }
        }
    }
}

impl FileReader<'_> {
    /// Adds the entries that were appended since, inside the caller's instant.
    fn catch_up(&mut self) -> Result<()> {
        let mut statement = self.conn.prepare_cached(&format!(
            "{SELECT_ENTRY} WHERE e.position > ?1 ORDER BY e.position"
        ))?;
        let fresh = statement
            .query_map([self.journal.covered], rows::stored_entry)?
            .collect::<Result<Vec<_>>>();
        for stored in self
            .readable("an entry appended meanwhile", fresh)?
            .unwrap_or_default()
        {
            self.journal.covered = stored.entry.position;
            self.journal.add(&stored.entry);
        }
        Ok(())
    }

    pub(super) fn rollups(&mut self) -> Result<()> {
        let mut statement = self.conn.prepare("SELECT DISTINCT hour FROM usage")?;
        let mut hours = statement
            .query_map([], |row| row.get(0))?
            .collect::<Result<Vec<i64>>>()?;
        hours.extend(self.journal.hours.keys());
        hours.sort_unstable();
        hours.dedup();
        for hour in hours {
            let instant = self.conn.unchecked_transaction()?;
            self.catch_up()?;
            let read = rollup_of(self.conn, hour);
            instant.finish()?;
            let place = format!(
                "usage of the hour {}",
                Timestamp::from_millis(hour.saturating_mul(3_600_000))
            );
            let Some(stored) = self.readable(&place, read)? else {
                continue;
            };
            if self.journal.hours.get(&hour).unwrap_or(&Hour::new()) != &stored {
                self.fault(format!("{place}: does not follow from the entries"));
            }
        }
        Ok(())
    }

    pub(super) fn totals(&mut self) -> Result<()> {
        let instant = self.conn.unchecked_transaction()?;
        self.catch_up()?;
        let read =
            totals::count(self.conn).and_then(|stored| Ok((stored, Counters::read(self.conn)?)));
        instant.finish()?;
        let Some((stored, counters)) = self.readable("the totals", read)? else {
            return Ok(());
        };
        let expected = Totals {
            keys: counters.keys.unsigned_abs(),
            entries: counters.newest_entry.unsigned_abs(),
            ..self.journal.sums.totals
        };
        let numbers = (counters.id, stored.acts, stored.sums.charges);
        if stored.sums.totals != expected
            || numbers != (1, counters.newest_act, self.journal.sums.charges)
        {
            self.fault(
                "the totals over all keys do not follow from the entries, acts and holds"
                    .to_owned(),
            );
        }
        if counters.ended_twice > 0 {
            self.fault("a hold is open although its request has an entry".to_owned());
        }
        if counters.epochs != (counters.epoch, counters.epoch) || counters.stray_holds > 0 {
            self.fault("the epochs do not count up to the current one".to_owned());
        }
        Ok(())
    }
}

/// What the totals say, and what there is.
struct Counters {
    id: i64,
    epoch: i64,
    keys: i64,
    newest_entry: i64,
    newest_act: i64,
    /// How many epochs there are, and the newest.
    epochs: (i64, i64),
    /// Holds of epochs that never existed.
    stray_holds: i64,
    /// Open holds whose request has an entry.
    ended_twice: i64,
}

impl Counters {
    fn read(conn: &Connection) -> Result<Self> {
        let sql = "SELECT id, epoch, (SELECT count(*) FROM keys),
            (SELECT coalesce(max(position), 0) FROM entries), (SELECT coalesce(max(position), 0) FROM audit),
            (SELECT count(*) FROM epochs WHERE epoch > 0), (SELECT coalesce(max(epoch), 0) FROM epochs),
            (SELECT count(*) FROM holds WHERE epoch NOT BETWEEN 0 AND totals.epoch),
            (SELECT count(*) FROM holds h JOIN entries e ON e.operation = h.request) FROM totals";
        conn.query_row(sql, [], |row| {
            let mut columns = Columns::of(row);
            Ok(Self {
                id: columns.number()?,
                epoch: columns.number()?,
                keys: columns.number()?,
                newest_entry: columns.number()?,
                newest_act: columns.number()?,
                epochs: (columns.number()?, columns.number()?),
                stray_holds: columns.number()?,
                ended_twice: columns.number()?,
            })
        })
    }
}

/// One hour as it is stored.
fn rollup_of(conn: &Connection, hour: i64) -> Result<Hour> {
    let mut statement = conn.prepare_cached(
        concat!("SELECT s.slug, t.target, ", served_columns!(), ", u.key, ", rollup_columns!(),
         " FROM usage u LEFT JOIN slugs s ON s.id = u.slug LEFT JOIN targets t ON t.id = u.target WHERE u.hour = ?1"),
    )?;
    let mut found = Hour::new();
    let mut rows = statement.query(params![hour])?;
    while let Some(row) = rows.next()? {
        let mut columns = Columns::of(row);
        let place = (columns.read()?, columns.read()?, columns.served()?);
        let key = columns.number()?;
        found.entry(place).or_default().add(key, &columns.rollup()?);
    }
    Ok(found)
}

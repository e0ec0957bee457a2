//! How the verifier reads a file, and what only a file has.
//!
//! A customer and its keys are read at one instant; the entries behind them never change, so the walk along them needs no transaction
//! and blocks nothing. Sums over all keys are also compared at one instant, after catching up with what was appended during the
//! walk.
//!
//! `sums` compares rollups and totals, `schema` checks tables, triggers and rows without an owner, `digests` compares anchors of
//! earlier versions.

mod digests;
mod schema;
mod sums;

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rusqlite::{Connection, Error, OptionalExtension, Result};

use super::reads::{act_at, entry_at};
use super::rows::{self, SELECT_KEY_RECORD};
use super::tables;
use crate::book::anchor::Anchor;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::StoredCustomer;
use crate::book::house_act::HouseBook;
use crate::book::verify::{self, CustomerRows, LedgerIdentity, LedgerReader, ReadRow};
use crate::store::select::SELECT_CUSTOMER;
use crate::value::reference;
use crate::{CustomerId, VerifyReport};
use sums::Journal;

/// Customers whose numbers are read at a time.
const CUSTOMERS: i64 = 500;
/// Entries or acts that are read before they are checked.
const PAGE: usize = 500;

/// Recomputes everything and compares it with what was recorded elsewhere. It ends early when `wanted` turns false.
pub(super) fn verify(
    conn: &Connection,
    anchors: &[Anchor],
    wanted: &dyn Fn() -> bool,
) -> Result<VerifyReport> {
    // Positions count from 1 without a gap, so this many rows must be reached.
    let entries: i64 = conn.query_row("SELECT count(*) FROM entries", [], |row| row.get(0))?;
    let audits: i64 = conn.query_row("SELECT count(*) FROM audit", [], |row| row.get(0))?;
    let mut reader = FileReader {
        conn,
        wanted,
        entries: ReachedPositions::up_to(entries),
        audits: ReachedPositions::up_to(audits),
        journal: Journal::up_to(entries),
        faults: Vec::new(),
    };
    // A file never makes anybody wait, so one poll is the whole of it.
    let checked = pin!(verify::verify(&mut reader, anchors));
    match checked.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(report) => report,
        Poll::Pending => Err(Error::InvalidQuery),
    }
}

/// Which positions of an append-only table were reached.
struct ReachedPositions(Vec<bool>);

impl ReachedPositions {
    fn up_to(newest: i64) -> Self {
        Self(vec![false; usize::try_from(newest).unwrap_or_default()])
    }

    fn mark(&mut self, position: i64) {
        let index = position
            .checked_sub(1)
            .and_then(|index| usize::try_from(index).ok());
        if let Some(seen) = index.and_then(|index| self.0.get_mut(index)) {
            *seen = true;
        }
    }

    fn missing(&self) -> Vec<usize> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, seen)| !**seen)
            .map(|(index, _)| index.saturating_add(1))
            .take(1_000)
            .collect()
    }
}

struct FileReader<'a> {
    conn: &'a Connection,
    wanted: &'a dyn Fn() -> bool,
    entries: ReachedPositions,
    audits: ReachedPositions,
    journal: Journal,
    faults: Vec<String>,
}

/// A row that does not decode is a fault; a file that cannot be read ends the check.
fn found<T>(what: &str, read: Result<T>) -> Result<ReadRow<T>> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(error @ Error::SqliteFailure(..)) => Err(error),
        Err(error) => Ok(Err(format!("{what} cannot be read ({error})"))),
    }
}

impl FileReader<'_> {
    fn fault(&mut self, text: String) {
        self.faults.push(text);
    }

    fn readable<T>(&mut self, what: &str, read: Result<T>) -> Result<Option<T>> {
        found(what, read).map(|found| found.map_err(|why| self.fault(why)).ok())
    }

    /// Walks from a row to those before it, as far as one page.
    fn walk<T>(
        &mut self,
        what: &str,
        start: i64,
        at: fn(&Connection, i64) -> Result<Option<T>>,
        prev: fn(&T) -> i64,
        mut seen: impl FnMut(&mut Self, i64, &T),
    ) -> Result<Vec<ReadRow<T>>> {
        let (mut page, mut position) = (Vec::new(), start);
        while position > 0 && page.len() < PAGE {
            let place = format!("{what} {position}");
            let row = match found(&place, at(self.conn, position))? {
                Ok(Some(row)) => row,
                Ok(None) => {
                    page.push(Err(format!("{place} is missing")));
                    break;
                }
                Err(why) => {
                    page.push(Err(why));
                    break;
                }
            };
            seen(self, position, &row);
            let before = prev(&row);
            page.push(Ok(row));
            if before >= position {
                page.push(Err(format!("{place} points forward")));
                break;
            }
            position = before;
        }
        Ok(page)
    }
}

/// A customer's keys, and their holds, sessions and links.
fn around(conn: &Connection, stored: StoredCustomer) -> Result<CustomerRows> {
    fn all<T>(
        conn: &Connection,
        sql: &str,
        of: CustomerId,
        decode: fn(&rusqlite::Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = conn.prepare_cached(sql)?;
        statement.query_map([of], decode)?.collect()
    }
    const OF_KEYS: &str = " WHERE key IN (SELECT id FROM keys WHERE customer = ?1)";
    let of = stored.customer.id;
    let keys = all(
        conn,
        &format!("{SELECT_KEY_RECORD} WHERE k.customer = ?1"),
        of,
        rows::row,
    )?;
    let holds = format!("{}{OF_KEYS}", rows::select_hold!());
    Ok(CustomerRows {
        keys: keys.into_iter().map(|key| (key, None)).collect(),
        holds: all(conn, &holds, of, rows::stored_hold)?,
        sessions: tables::read(conn, OF_KEYS, [of])?,
        links: tables::read(conn, OF_KEYS, [of])?,
        personal: super::reads::personal_data(conn, of)?,
        payments: tables::read(conn, "WHERE customer = ?1 ORDER BY folded", [of])?,
        grants: tables::read(conn, "WHERE customer = ?1 ORDER BY id", [of])?,
        subscriptions: tables::read(conn, "WHERE customer = ?1 ORDER BY id", [of])?,
        windows: tables::read(conn, "WHERE customer = ?1 ORDER BY id", [of])?,
        runs: all(
            conn,
            "SELECT month, '', sum(requests), sum(charge) FROM runs WHERE customer = ?1 GROUP BY month",
            of,
            rows::row,
        )?,
        next_grant_at: conn.query_row(
            "SELECT next_grant_at FROM accounts WHERE id = ?1",
            [of],
            rows::row,
        )?,
        stored,
        // A file is one gateway's, and keeps the hours over all keys.
        traffic: None,
        usage: None,
    })
}

impl LedgerReader for FileReader<'_> {
    type Error = Error;

    fn is_wanted(&self) -> bool {
        (self.wanted)()
    }

    async fn identity(&mut self) -> Result<Option<LedgerIdentity>> {
        let genesis = schema::genesis(self.conn)?;
        Ok(genesis.map(|genesis| LedgerIdentity {
            genesis,
            generation: None,
        }))
    }

    async fn customers(&mut self, after: i64) -> Result<Vec<i64>> {
        self.conn
            .prepare_cached("SELECT id FROM accounts WHERE id > ?1 ORDER BY id LIMIT ?2")?
            .query_map([after, CUSTOMERS], |row| row.get(0))?
            .collect()
    }

    async fn customer(&mut self, number: i64) -> Result<ReadRow<CustomerRows>> {
        let instant = self.conn.unchecked_transaction()?;
        let stored = instant
            .prepare_cached(&format!("{SELECT_CUSTOMER} WHERE a.id = ?1"))?
            .query_row([number], rows::row)
            .optional();
        let rows = match found("it", stored)? {
            Ok(Some(stored)) => found("a key, hold, session or link", around(&instant, stored))?,
            Ok(None) => Err("has no account".to_owned()),
            Err(why) => Err(why),
        };
        instant.finish()?;
        Ok(rows)
    }

    async fn entries(
        &mut self,
        customer: &StoredCustomer,
        before: Option<&ChainedEntry>,
    ) -> Result<Vec<ReadRow<ChainedEntry>>> {
        let start = before.map_or(customer.head.last, |entry| entry.prev);
        self.walk(
            "entry",
            start,
            entry_at,
            |entry| entry.prev,
            |reader, at, found| {
                reader.entries.mark(at);
                if at <= reader.journal.covered {
                    reader.journal.add(&found.entry);
                }
            },
        )
    }

    async fn acts(
        &mut self,
        customer: &StoredCustomer,
        before: Option<&ChainedAct>,
    ) -> Result<Vec<ReadRow<ChainedAct>>> {
        let start = before.map_or(customer.audit.last, |act| act.prev);
        self.walk(
            "audit record",
            start,
            act_at,
            |act| act.prev,
            |reader, at, _| {
                reader.audits.mark(at);
            },
        )
    }

    async fn taken(&mut self, folded: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT e.reference FROM refs r JOIN entries e ON e.operation = r.operation WHERE r.folded = ?1",
        )?;
        let mut taken = BTreeSet::new();
        for name in folded {
            let owner = statement
                .query_row([name], |row| row.get::<_, Option<String>>(0))
                .optional();
            let owner = found("its reference", owner)?.ok().flatten().flatten();
            if owner.as_deref().map(reference::folded).as_ref() == Some(name) {
                taken.insert(name.clone());
            }
        }
        Ok(taken)
    }

    async fn house(&mut self) -> Result<ReadRow<HouseBook>> {
        let instant = self.conn.unchecked_transaction()?;
        let read = found("a token or voucher", HouseBook::read(&mut &*instant).await);
        instant.finish()?;
        read
    }

    async fn end_customer(&mut self) -> Result<()> {
        Ok(())
    }

    async fn rest(&mut self, anchors: &[Anchor]) -> Result<Vec<String>> {
        for position in self.entries.missing() {
            self.fault(format!(
                "entry {position}: missing, or in no customer's history"
            ));
        }
        for position in self.audits.missing() {
            self.fault(format!(
                "audit record {position}: missing, or in no customer's history"
            ));
        }
        self.rollups()?;
        self.totals()?;
        self.schema()?;
        let mut faults = std::mem::take(&mut self.faults);
        faults.extend(digests::check_digests(self.conn, anchors)?);
        Ok(faults)
    }
}

//! How the verifier reads a file, and what only a file has.
//!
//! A key and its account are read at one instant; the entries behind them never change, so the walk along them needs no transaction
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
use super::rows;
use crate::book::anchor::Anchor;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::StoredKey;
use crate::book::verify::{self, KeyRows, LedgerIdentity, LedgerReader, ReadRow};
use crate::value::reference;
use crate::{SecretHash, Timestamp, VerifyReport};
use sums::Journal;

/// Keys whose numbers are read at a time.
const KEYS: i64 = 500;
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

/// A key's holds, sessions and links.
fn around(conn: &Connection, stored: StoredKey) -> Result<KeyRows> {
    let key = stored.key.id;
    let mut holds = conn.prepare_cached(concat!(rows::select_hold!(), " WHERE key = ?1"))?;
    let mut sessions = conn.prepare_cached(concat!(rows::select_session!(), " WHERE key = ?1"))?;
    let mut links = conn.prepare_cached("SELECT token, key, expires FROM links WHERE key = ?1")?;
    let link = |row: &rusqlite::Row<'_>| -> Result<(SecretHash, Timestamp)> {
        rows::link(row).map(|(token, _, expires)| (token, expires))
    };
    Ok(KeyRows {
        stored,
        holds: holds
            .query_map([key], rows::stored_hold)?
            .collect::<Result<_>>()?,
        sessions: sessions
            .query_map([key], rows::session)?
            .collect::<Result<_>>()?,
        links: links.query_map([key], link)?.collect::<Result<_>>()?,
        // A file counts holds and keeps the hours over all keys.
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

    async fn keys(&mut self, after: i64) -> Result<Vec<i64>> {
        self.conn
            .prepare_cached("SELECT id FROM keys WHERE id > ?1 ORDER BY id LIMIT ?2")?
            .query_map([after, KEYS], |row| row.get(0))?
            .collect()
    }

    async fn key(&mut self, number: i64) -> Result<ReadRow<KeyRows>> {
        let instant = self.conn.unchecked_transaction()?;
        let stored = instant
            .prepare_cached(rows::KEY_BY_ID)?
            .query_row([number], rows::stored_key)
            .optional();
        let rows = match found("it", stored)? {
            Ok(Some(stored)) => found("a hold, session or link", around(&instant, stored))?,
            Ok(None) => Err("has no account".to_owned()),
            Err(why) => Err(why),
        };
        instant.finish()?;
        Ok(rows)
    }

    async fn entries(
        &mut self,
        key: &StoredKey,
        before: Option<&ChainedEntry>,
    ) -> Result<Vec<ReadRow<ChainedEntry>>> {
        let start = before.map_or(key.head.last, |entry| entry.prev);
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
        key: &StoredKey,
        before: Option<&ChainedAct>,
    ) -> Result<Vec<ReadRow<ChainedAct>>> {
        let start = before.map_or(key.audit.last, |act| act.prev);
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

    async fn end_key(&mut self) -> Result<()> {
        Ok(())
    }

    async fn rest(&mut self, anchors: &[Anchor]) -> Result<Vec<String>> {
        for position in self.entries.missing() {
            self.fault(format!("entry {position}: missing, or in no key's history"));
        }
        for position in self.audits.missing() {
            self.fault(format!(
                "audit record {position}: missing, or in no key's history"
            ));
        }
        self.rollups()?;
        self.totals(anchors)?;
        self.schema()?;
        let mut faults = std::mem::take(&mut self.faults);
        faults.extend(digests::check_digests(self.conn, anchors)?);
        Ok(faults)
    }
}

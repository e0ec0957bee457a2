//! Verify: recomputes every balance, charge, hold, rollup and hash chain, while a gateway may be running.
//!
//! It only reads. A key and its account are read at one instant; the entries behind them never change, so the walk along them needs
//! no transaction and blocks nothing. Sums over all keys are also compared at one instant, after catching up with what was appended
//! during the walk. It reports faults and never repairs them.
//!
//! `history` walks the chains, `sums` compares rollups and totals, `schema` checks tables, triggers and rows without an owner,
//! `digests` compares anchors of earlier versions.

mod digests;
mod history;
mod schema;
mod sums;

use rusqlite::{Connection, Error, OptionalExtension, Result};

use super::rows;
use crate::book::anchor::{Anchor, Covered};
use crate::book::head::{Hash, StoredKey};
use crate::rule::hold::StoredHold;
use crate::{Account, Amount, KeyId, SecretHash, Session, Timestamp, VerifyReport};
use history::History;
use sums::Journal;

const PAGE: i64 = 500;

/// Recomputes everything and compares it with what was recorded elsewhere. It ends early when `wanted` turns false.
pub(super) fn verify(
    conn: &Connection,
    anchors: &[Anchor],
    wanted: &dyn Fn() -> bool,
) -> Result<VerifyReport> {
    // Positions count from 1 without a gap, so this many rows must be reached.
    let entries: i64 = conn.query_row("SELECT count(*) FROM entries", [], |row| row.get(0))?;
    let audits: i64 = conn.query_row("SELECT count(*) FROM audit", [], |row| row.get(0))?;
    let mut check = Check {
        conn,
        report: VerifyReport::default(),
        genesis: schema::genesis(conn)?,
        entries: Seen::up_to(entries),
        audits: Seen::up_to(audits),
        journal: Journal::up_to(entries),
        covered: Covered::by(anchors),
    };
    check.report.anchors = u64::try_from(anchors.len()).unwrap_or(u64::MAX);
    let mut after = -1_i64;
    loop {
        let mut page =
            conn.prepare_cached("SELECT id FROM keys WHERE id > ?1 ORDER BY id LIMIT ?2")?;
        let ids = page
            .query_map([after, PAGE], |row| row.get(0))?
            .collect::<Result<Vec<i64>>>()?;
        let Some(last) = ids.last() else { break };
        after = *last;
        for id in ids {
            check.key(id)?;
        }
        if !wanted() {
            return Ok(check.report);
        }
    }
    for position in check.entries.missing() {
        check.fault(format!("entry {position}: missing, or in no key's history"));
    }
    for position in check.audits.missing() {
        check.fault(format!(
            "audit record {position}: missing, or in no key's history"
        ));
    }
    check.rollups()?;
    check.totals(anchors)?;
    check.schema()?;
    let uncovered = check.covered.faults();
    check.report.faults.extend(uncovered);
    check
        .report
        .faults
        .extend(digests::check_digests(conn, anchors)?);
    Ok(check.report)
}

/// Which positions of an append-only table were reached.
struct Seen(Vec<bool>);

impl Seen {
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

struct Check<'a> {
    conn: &'a Connection,
    report: VerifyReport,
    /// The value with which the chains of format 2 begin; `None` when the ledger has lost its identity.
    genesis: Option<Hash>,
    entries: Seen,
    audits: Seen,
    journal: Journal,
    covered: Covered,
}

/// A key's rows besides its history.
struct Around {
    holds: Vec<StoredHold>,
    sessions: Vec<Session>,
    links: Vec<(SecretHash, Timestamp)>,
}

impl Check<'_> {
    fn fault(&mut self, text: String) {
        self.report.faults.push(text);
    }

    /// A row that does not decode is a fault; a file that cannot be read ends the check.
    fn readable<T>(&mut self, what: &str, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error @ Error::SqliteFailure(..)) => Err(error),
            Err(error) => {
                self.fault(format!("{what}: cannot be read ({error})"));
                Ok(None)
            }
        }
    }

    fn key(&mut self, number: i64) -> Result<()> {
        self.report.keys = self.report.keys.saturating_add(1);
        let name = KeyId::from_i64(number)
            .map_or_else(|| format!("key number {number}"), |id| format!("key {id}"));
        let instant = self.conn.unchecked_transaction()?;
        let stored = instant
            .prepare_cached(rows::KEY_BY_ID)?
            .query_row([number], rows::stored_key)
            .optional();
        let around = around(&instant, number);
        instant.finish()?;
        let Some(stored) = self.readable(&name, stored)? else {
            return Ok(());
        };
        let Some(stored) = stored else {
            self.fault(format!("{name}: has no account"));
            return Ok(());
        };
        let Some(around) = self.readable(&format!("{name}: a hold, session or link"), around)?
        else {
            return Ok(());
        };
        self.report.holds = self
            .report
            .holds
            .saturating_add(u64::try_from(around.holds.len()).unwrap_or(u64::MAX));
        self.holds(&name, &stored.key.account, &around.holds);
        self.sessions(&name, &stored, &around.sessions);
        let history = self.walk(&name, &stored)?;
        self.account(&name, &stored.key.account, &history);
        self.walk_audit(&name, &stored, around.links)
    }

    fn holds(&mut self, name: &str, account: &Account, holds: &[StoredHold]) {
        if Amount::checked_sum(holds.iter().map(|hold| hold.open.amount)) != Some(account.held) {
            self.fault(format!(
                "{name}: its holds do not add up to {} held",
                account.held
            ));
        }
        for StoredHold {
            open,
            opened,
            checkpoint,
        } in holds
        {
            let place = format!("{name}: hold {}", open.request);
            let cost = checkpoint
                .as_ref()
                .map_or(Ok(Amount::ZERO), crate::Bill::total);
            if cost != Ok(open.used)
                || open.amount < *opened
                || (checkpoint.is_none() && open.amount != *opened)
            {
                self.fault(format!("{place}: does not follow from its checkpoint"));
            }
        }
    }

    fn sessions(&mut self, name: &str, stored: &StoredKey, sessions: &[Session]) {
        if !sessions.is_empty() && stored.key.check_not_stopped().is_err() {
            self.fault(format!("{name}: has sessions although it is stopped"));
        }
        if sessions.iter().any(|session| session.expires <= session.at) {
            self.fault(format!("{name}: a session ends before it began"));
        }
    }

    fn account(&mut self, name: &str, account: &Account, history: &History) {
        if !account.is_sound() {
            self.fault(format!("{name}: spent and held are more than its credit"));
        }
        if history.credit != i128::from(account.credit.picos()) {
            self.fault(format!(
                "{name}: credit {} does not follow from its entries",
                account.credit
            ));
        }
        if history.spent != i128::from(account.spent.picos()) {
            self.fault(format!(
                "{name}: spent {} does not follow from its entries",
                account.spent
            ));
        }
        for request in history.refunds.keys() {
            self.fault(format!(
                "{name}: request {request} was refunded without a charge"
            ));
        }
    }
}

fn around(conn: &Connection, key: i64) -> Result<Around> {
    let mut holds = conn.prepare_cached(concat!(rows::select_hold!(), " WHERE key = ?1"))?;
    let mut sessions = conn.prepare_cached(concat!(rows::select_session!(), " WHERE key = ?1"))?;
    let mut links = conn.prepare_cached("SELECT token, key, expires FROM links WHERE key = ?1")?;
    Ok(Around {
        holds: holds
            .query_map([key], rows::stored_hold)?
            .collect::<Result<_>>()?,
        sessions: sessions
            .query_map([key], rows::session)?
            .collect::<Result<_>>()?,
        links: links
            .query_map([key], rows::link)?
            .map(|link| link.map(|(token, _, expires)| (token, expires)))
            .collect::<Result<_>>()?,
    })
}

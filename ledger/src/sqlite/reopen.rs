//! A ledger whose path leads elsewhere: nothing is written until the right file is back, and then that file is opened anew.
//!
//! Commands and consoles look before each operation and reopen by themselves. The gateway looks twice a second and before each
//! batch; it reopens only under its lock, and sells again only after recovery. The right file has the identity of the one that
//! was opened: the file itself, or a backup of this ledger that was put in its place.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rusqlite::Connection;
use tokio::sync::watch;

use super::location::{Displaced, FileId, Location};
use super::readers::Readers;
use super::writer::Writer;
use super::{Durability, OpenMode, Opened, SqliteLedger, files};
use crate::LedgerError;

/// A log that is missing for so many looks was not just moved together with its ledger.
const LOOKS_FOR_LOG: u32 = 4;

/// What the gateway's look at the ledger's files found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// They are the files that were opened.
    Here,
    /// They are not, and nothing is written; [`WriterStats::displaced`](super::WriterStats::displaced) says why.
    Away,
    /// They were not, and a copy of this ledger is there now. It is open; call [`Ledger::recover`](crate::Ledger::recover) and
    /// then [`SqliteLedger::resume`].
    Returned,
}

impl SqliteLedger {
    /// The gateway's look: call it at least every second. `locked` says whether the serve lock is beside the ledger now.
    #[must_use]
    pub fn look(&self, locked: bool) -> Look {
        let opened = self.opened();
        let Some(writer) = &opened.writer else { return Look::Here };
        let Err(displaced) = opened.location.check() else {
            self.log_missing.store(0, Ordering::Relaxed);
            writer.note_displaced(None);
            return Look::Here;
        };
        if matches!(displaced, Displaced::LogGone(_)) {
            if self.log_missing.fetch_add(1, Ordering::Relaxed) == LOOKS_FOR_LOG {
                writer.fail(format!("{displaced}; what was committed is copied into the ledger's file, start the gateway again"));
            }
            writer.note_displaced(Some(displaced.to_string()));
            return Look::Away;
        }
        let returned = if locked { self.reopen(&opened, &displaced) } else { Err(displaced.to_string()) };
        match returned {
            Ok(_) => Look::Returned,
            Err(why) => {
                writer.note_displaced(Some(why));
                Look::Away
            }
        }
    }

    /// Takes holds again, after a file that returned was recovered.
    pub fn resume(&self) {
        self.recovering.store(false, Ordering::Release);
        tracing::info!("the ledger's file is back and recovered; selling goes on");
    }

    /// Ends all writing for good, as an error would.
    pub fn fail(&self, reason: String) {
        if let Some(writer) = &self.opened().writer {
            writer.fail(reason);
        }
    }

    /// What is open. The gateway takes it as it is: its writer looks once for each batch, which costs less.
    pub(super) fn current(&self) -> Result<Arc<Opened>, LedgerError> {
        let opened = self.opened();
        if self.mode == OpenMode::Serve {
            return Ok(opened);
        }
        match opened.location.check() {
            Ok(()) => Ok(opened),
            Err(displaced) => self.reopen(&opened, &displaced).map_err(LedgerError::Unavailable),
        }
    }

    pub(super) fn opened(&self) -> Arc<Opened> {
        Arc::clone(&self.opened.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the path anew when it leads to this ledger again.
    fn reopen(&self, stale: &Arc<Opened>, displaced: &Displaced) -> Result<Arc<Opened>, String> {
        let mut other = self.other.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.opened();
        if !Arc::ptr_eq(&opened, stale) {
            return Ok(opened);
        }
        stale.location.may_be_back(displaced)?;
        let found = FileId::of(&stale.location.given).ok();
        if other.is_some() && *other == found {
            return Err(format!("{displaced}; another ledger is in its place"));
        }
        let mode = if self.mode == OpenMode::ReadOnly { OpenMode::ReadOnly } else { OpenMode::Write };
        let whole = files::open_ledger(&stale.location.given, mode).map_err(|error| format!("{displaced}; {error}"))?;
        if whole.1.ledger != stale.location.ledger {
            *other = found;
            return Err(format!("{displaced}; another ledger is in its place"));
        }
        if self.mode == OpenMode::Serve && whole.1.real != stale.location.real {
            return Err(format!("{displaced}; the path leads to another folder now, start the gateway again"));
        }
        // Before anybody can reach it: its open holds may be those of an earlier run.
        self.recovering.store(self.mode == OpenMode::Serve, Ordering::Release);
        let fresh = Opened::start(whole, self.mode, self.durability, &self.fatal);
        let fresh = Arc::new(fresh.map_err(|error| format!("{displaced}; {error}"))?);
        *self.opened.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
        tracing::warn!("{displaced}; a copy of the same ledger is there now and was opened");
        if let Some(writer) = &stale.writer {
            writer.close();
        }
        Ok(fresh)
    }
}

impl Opened {
    /// Readers and, unless it is only read, the writer.
    pub(super) fn start(
        (conn, location): (Connection, Location),
        mode: OpenMode,
        durability: Durability,
        fatal: &watch::Sender<Option<String>>,
    ) -> Result<Self, LedgerError> {
        let location = Arc::new(location);
        let readers = Readers::open(&location, mode)?;
        let writer = match mode {
            OpenMode::ReadOnly => None,
            _ => Some(Writer::start(conn, &location, mode, durability, fatal.clone())?),
        };
        Ok(Self { location, readers, writer })
    }
}

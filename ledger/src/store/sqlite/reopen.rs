//! What happens when the ledger's path no longer leads to the file that was opened: nothing is written until the right file is
//! back, and then that file is opened.
//!
//! Commands and consoles check before each operation and reopen by themselves. The gateway checks twice a second and before each
//! batch; it reopens only under its lock, and sells again only after recovery. The right file carries the same ledger identity:
//! it is the file itself, or a backup of it that an operator restored to the path.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use rusqlite::Connection;
use tokio::sync::watch;

use super::ends::EndedKeys;
use super::file_id::FileId;
use super::key_cache::KeyCache;
use super::location::{Displaced, Location};
use super::migrations::VERSION;
use super::readers::Readers;
use super::writer::WriterHandle;
use super::{Opened, SqliteLedger, files, reads};
use crate::store::trouble_record::{LedgerWork, TroubleRecord};
use crate::{Durability, Fault, LedgerError, OpenMode, TroubleKind, lock};

/// The gateway stops after the log or its index has been missing in this many checks in a row (2 s). Fewer can mean that an operator is
/// moving the files one after the other.
const LOOKS_FOR_LOG: u32 = 4;

/// Result of the gateway's check of the ledger's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesCheck {
    /// The path leads to the files that were opened.
    Here,
    /// It does not, so nothing is written; [`Store::troubles`](crate::store::Store::troubles) has the reason.
    Away,
    /// It did not, and now leads to a copy of this ledger, which has been opened. Call
    /// [`Ledger::recover`](crate::Ledger::recover) and then [`SqliteLedger::resume`].
    Returned,
}

impl Opened {
    /// Whether another version of this program has changed the schema, or moved the ledger elsewhere. No commit may tell so for hours.
    fn check_schema(&self) -> Result<(), Displaced> {
        match self.readers.point(reads::schema) {
            Ok(version) if version != VERSION => {
                Err(Displaced::Changed(self.location.given.clone(), version))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl SqliteLedger {
    /// The gateway's check: call it at least once a second. `locked`: the serve lock is next to the ledger that is there now.
    pub fn look(&self, locked: bool) -> FilesCheck {
        let opened = self.opened();
        let Some(writer) = &opened.writer else {
            return FilesCheck::Here;
        };
        let checked = opened.location.check().and_then(|()| opened.check_schema());
        let Err(displaced) = checked else {
            self.log_missing.store(0, Ordering::Relaxed);
            writer.note_displaced(None);
            if let Some(unsettled) = &self.unsettled
                && let Ok(totals) = opened.readers.point(reads::totals)
            {
                unsettled.grow(totals.holds);
            }
            return FilesCheck::Here;
        };
        let ends = match displaced {
            // A deleted log still exists through our open descriptor, and every commit since the last checkpoint is only in it. So
            // the writer ends, which copies the log into the ledger's file first, instead of reopening, which would lose it.
            Displaced::BesideGone(_) | Displaced::BesideReplaced(_) => {
                Some(self.log_missing.fetch_add(1, Ordering::Relaxed) == LOOKS_FOR_LOG)
            }
            // What SQLite has cached and what is in the log belong to another content. Nothing written now would be right.
            Displaced::Overwritten(_) | Displaced::LogCut(..) | Displaced::IndexCut(_) => {
                Some(true)
            }
            Displaced::Gone(_)
            | Displaced::Replaced(_)
            | Displaced::NotServed(..)
            | Displaced::Changed(..)
            | Displaced::Unreadable(..) => None,
        };
        if let Some(now) = ends {
            writer.note_displaced(Some(displaced.to_string()));
            if now {
                writer.fail(displaced.to_string());
            }
            return FilesCheck::Away;
        }
        // Without the lock another gateway may be serving that file.
        let returned = if locked {
            self.reopen(&opened, &displaced)
        } else {
            Err(displaced.to_string())
        };
        match returned {
            Ok(_) => FilesCheck::Returned,
            Err(why) => {
                writer.note_displaced(Some(why));
                FilesCheck::Away
            }
        }
    }

    /// Allows new holds again, after a restored file was recovered.
    pub fn resume(&self) {
        self.record.end(LedgerWork::Recovery);
        tracing::info!("the ledger's file is back and recovered; selling resumes");
    }

    /// Ends all writing for good, as an error would.
    pub fn fail(&self, reason: String) {
        if let Some(writer) = &self.opened().writer {
            writer.fail(reason);
        }
    }

    /// Reads one row of what is open now.
    pub(super) fn point<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        self.current()?.readers.point(read)
    }

    /// The same of a read of any length, on a reader's thread.
    pub(super) async fn scan<T, F>(&self, read: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &dyn Fn() -> bool) -> rusqlite::Result<T> + Send + 'static,
    {
        self.current()?.readers.scan(read).await
    }

    /// The files that are open now. The gateway takes them without a check: its writer checks once per batch, which costs less
    /// than once per call.
    pub(super) fn current(&self) -> Result<Arc<Opened>, LedgerError> {
        let opened = self.opened();
        if self.mode == OpenMode::Serve {
            return Ok(opened);
        }
        match opened.location.check() {
            Ok(()) => Ok(opened),
            Err(displaced) => self
                .reopen(&opened, &displaced)
                .map_err(LedgerError::unavailable),
        }
    }

    pub(super) fn opened(&self) -> Arc<Opened> {
        Arc::clone(&self.opened.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reopens the path if it leads to this ledger again.
    fn reopen(&self, stale: &Arc<Opened>, displaced: &Displaced) -> Result<Arc<Opened>, String> {
        let mut other = lock(&self.other);
        let opened = self.opened();
        // Another thread reopened while this one waited for the mutex.
        if !Arc::ptr_eq(&opened, stale) {
            return Ok(opened);
        }
        let serves = self.mode == OpenMode::Serve;
        stale.location.may_be_back(displaced)?;
        // A file that turned out to be another ledger is remembered by device and inode, and not opened again on every check.
        let found = FileId::of(&stale.location.given).ok();
        if other.is_some() && *other == found {
            return Err(format!("{displaced}; another ledger is in its place"));
        }
        let whole = files::open_ledger(&stale.location.given, self.mode)
            .map_err(|error| format!("{displaced}; {error}"))?;
        if whole.1.ledger != stale.location.ledger {
            *other = found;
            return Err(format!("{displaced}; another ledger is in its place"));
        }
        if serves && whole.1.real != stale.location.real {
            return Err(format!(
                "{displaced}; the path now leads to another folder: start the gateway again"
            ));
        }
        // Set before the new file becomes visible: it may contain open holds of an earlier run, and new holds must not mix with
        // them before recovery has ended them.
        if serves {
            let cause = "the ledger's file is back; ending its open holds";
            let fault = Fault::new(TroubleKind::Displaced, cause, "it ends by itself");
            self.record.set(LedgerWork::Recovery, fault);
            self.record.end(LedgerWork::Files);
        }
        let fresh = Opened::start(
            whole,
            self.mode,
            self.durability,
            &self.log_limit,
            (&self.fatal, &self.record),
        );
        let fresh = Arc::new(fresh.map_err(|error| format!("{displaced}; {error}"))?);
        *self.opened.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
        tracing::warn!("{displaced}; opened a copy of the same ledger that is there now");
        if let Some(writer) = &stale.writer {
            writer.close();
            // What the old writer could not book any more is booked in the file that is there now.
            for bill in writer.take_due() {
                fresh
                    .writer
                    .iter()
                    .for_each(|fresh| fresh.resolve(Arc::clone(&bill)));
            }
        }
        Ok(fresh)
    }
}

impl Opened {
    /// Starts the readers and, unless the ledger is read-only, the writer.
    pub(super) fn start(
        (conn, location): (Connection, Location),
        mode: OpenMode,
        durability: Durability,
        log_limit: &Arc<AtomicU64>,
        (fatal, record): (&watch::Sender<Option<String>>, &Arc<TroubleRecord>),
    ) -> Result<Self, LedgerError> {
        let location = Arc::new(location);
        let readers = Readers::open(&location, mode)?;
        // Only the gateway reads a key so often that it pays.
        let remembered = (location.written.as_ref())
            .filter(|_| mode == OpenMode::Serve)
            .map(|written| Arc::new(KeyCache::new(written.index.clone())));
        let writer = match mode {
            OpenMode::ReadOnly => None,
            OpenMode::Serve | OpenMode::Write => Some(WriterHandle::start(
                conn,
                &location,
                remembered.clone(),
                (mode, durability),
                Arc::clone(log_limit),
                (fatal.clone(), Arc::clone(record)),
            )?),
        };
        Ok(Self {
            location,
            readers,
            remembered,
            ended: EndedKeys::default(),
            writer,
        })
    }
}

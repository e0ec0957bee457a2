//! The texts of the statements that the other stores run, once a test has asked for them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

/// What one kind of store has run.
#[derive(Debug, Default)]
pub struct SeenStatements {
    wanted: AtomicBool,
    texts: Mutex<BTreeSet<String>>,
}

/// What ran on files.
pub static OF_FILES: SeenStatements = SeenStatements::new();
/// What ran on databases.
pub static OF_DATABASES: SeenStatements = SeenStatements::new();

impl SeenStatements {
    const fn new() -> Self {
        Self {
            wanted: AtomicBool::new(false),
            texts: Mutex::new(BTreeSet::new()),
        }
    }

    /// From now on, texts are noted.
    pub fn begin(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }

    pub(crate) fn note(&self, text: &str) {
        if self.is_wanted() {
            let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
            if !texts.contains(text) {
                texts.insert(text.to_owned());
            }
        }
    }

    /// Everything that was noted.
    pub fn texts(&self) -> BTreeSet<String> {
        self.texts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Notes what a connection to a file runs.
pub(crate) fn listen(conn: &mut Connection) -> rusqlite::Result<()> {
    if !OF_FILES.is_wanted() {
        return Ok(());
    }
    let note = |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(_, text) = event {
            OF_FILES.note(text);
        }
    };
    conn.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note))
}

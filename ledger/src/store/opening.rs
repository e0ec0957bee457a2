//! How a ledger is opened: for what purpose, how durable a change must be, and where a gateway keeps its state. Only the settings;
//! `open` uses them.

use std::fmt::Display;
use std::path::PathBuf;

/// What a program opens a ledger for. None of them makes one: [`crate::LedgerAddress::create`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The gateway: reads and writes, and brings an older schema up to date. Take the [`crate::store::sqlite::ServeLock`] first.
    Serve,
    /// A command: reads and writes.
    Write,
    /// Only reads.
    ReadOnly,
}

/// How durable a change must be before it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Payments and key changes are on disk before they are confirmed; holds and charges are on disk at most 50 ms later, or, in a
    /// database, in its standby's memory.
    #[default]
    Prompt,
    /// Everything is on disk before it is confirmed; in a database, on its standby's disk too.
    Strict,
}

/// How a ledger is opened.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The purpose.
    pub mode: OpenMode,
    /// The durability of changes.
    pub durability: Durability,
    /// Whether a database may confirm commits without a standby, for trials.
    pub allow_single: bool,
    /// Whether to read a standby of the database, as it is, instead of the primary.
    pub standby: bool,
    /// The file in which a gateway records what a database has confirmed to it.
    pub state: Option<PathBuf>,
    /// The anchor file of a ledger in a database, whose newest anchor must be covered.
    pub anchors: Option<PathBuf>,
}

impl Opening {
    /// With prompt durability; a ledger in a database needs standbys.
    #[must_use]
    pub const fn new(mode: OpenMode) -> Self {
        Self {
            mode,
            durability: Durability::Prompt,
            allow_single: false,
            standby: false,
            state: None,
            anchors: None,
        }
    }
}

/// What a ledger has whose schema is older than the one with which ledgers begin.
pub(crate) fn too_old(schema: impl Display) -> String {
    format!(
        "the old schema {schema}; start a gateway of commit 8e66c1e9 on it once (`farebox --version` says the commit), then this one"
    )
}

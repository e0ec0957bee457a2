//! How a ledger is opened: what for, how safe a change must be, and where a gateway remembers. Only the settings; `open` opens.

use std::path::PathBuf;

/// What a program opens a ledger for, and whether it may create one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The gateway: reads and writes, creates a missing file. Take the [`crate::sqlite::ServeLock`] first.
    Serve,
    /// A command that may begin a ledger: reads and writes, creates a missing file.
    Create,
    /// Reads and writes an existing ledger; a missing file is an error and stays missing.
    Write,
    /// Only reads an existing ledger.
    ReadOnly,
}

impl OpenMode {
    pub(crate) const fn creates(self) -> bool {
        matches!(self, Self::Serve | Self::Create)
    }
}

/// When a change counts as safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Money in and key changes are on disk before they are confirmed; holds and charges at most 50 ms later, or in a database in
    /// its standby's memory.
    #[default]
    Prompt,
    /// Everything is on disk before it is confirmed, in a database also on its standby's.
    Strict,
}

/// How a ledger is opened.
#[derive(Debug, Clone)]
pub struct Opening {
    /// What for.
    pub mode: OpenMode,
    /// When a change counts as safe.
    pub durability: Durability,
    /// Whether a database may confirm commits that no standby has: for trials.
    pub allow_single: bool,
    /// The file in which a gateway remembers what a database has confirmed to it.
    pub state: Option<PathBuf>,
    /// The file with the anchors of a ledger in a database: the newest must be covered.
    pub anchors: Option<PathBuf>,
}

impl Opening {
    /// With prompt durability, and with standbys where the ledger is in a database.
    #[must_use]
    pub const fn new(mode: OpenMode) -> Self {
        Self { mode, durability: Durability::Prompt, allow_single: false, state: None, anchors: None }
    }
}

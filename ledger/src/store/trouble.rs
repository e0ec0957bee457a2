//! What is wrong with a ledger, as everybody is told: the cause, since when, who is in the way, and what ends it. Values only; the record
//! of them is in `trouble_record`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Timestamp;

/// What kind of trouble it is, by which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TroubleKind {
    /// The writer has stopped for good.
    Stopped,
    /// A path no longer leads to the file that was opened.
    Displaced,
    /// What is confirmed could be lost, or has been.
    Uncertain,
    /// This machine's clock differs from the database's.
    ClockWrong,
    /// The disk is full.
    DiskFull,
    /// The log has reached its limit.
    LogLimit,
    /// The database cannot be reached.
    Unreachable,
    /// Somebody else has locked what has to be written.
    Blocked,
    /// The database is reached and refuses to be written.
    Refused,
    /// What was begun takes long, and nobody is in the way: a disk, most likely.
    Slow,
    /// A reader keeps the log from being copied.
    LogHeld,
    /// This machine's clock jumped.
    ClockJumped,
}

impl TroubleKind {
    /// One word for documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Displaced => "displaced",
            Self::Uncertain => "uncertain",
            Self::ClockWrong => "clock_wrong",
            Self::DiskFull => "disk_full",
            Self::LogLimit => "log_limit",
            Self::Unreachable => "unreachable",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
            Self::Slow => "slow",
            Self::LogHeld => "log_held",
            Self::ClockJumped => "clock_jumped",
        }
    }
}

/// What is in the way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blocker {
    /// A process: of the database's server, or of this machine. `None` for one of another container.
    pub pid: Option<u32>,
    /// The name of its program or user.
    pub name: Option<String>,
    /// The table that is waited for.
    pub table: Option<String>,
    /// What it last ran, shortened.
    pub query: Option<String>,
    /// The file.
    pub file: Option<PathBuf>,
}

/// What went wrong, and what ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// By which it is told.
    pub kind: TroubleKind,
    /// What is wrong, in words that stay the same for as long as it is.
    pub cause: String,
    /// Who is in the way.
    pub blockers: Vec<Blocker>,
    /// What ends it.
    pub remedy: String,
    /// What the database answered.
    pub sqlstate: Option<String>,
    /// It says only that there was no answer, or a lock. A fault that names who is in the way is kept instead.
    pub(crate) vague: bool,
}

impl Fault {
    pub(crate) fn new(
        kind: TroubleKind,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            cause: cause.into(),
            blockers: Vec::new(),
            remedy: remedy.into(),
            sqlstate: None,
            vague: false,
        }
    }

    pub(crate) fn by(self, blockers: Vec<Blocker>) -> Self {
        Self { blockers, ..self }
    }

    pub(crate) fn answered(self, sqlstate: Option<&str>) -> Self {
        Self {
            sqlstate: sqlstate.map(str::to_owned),
            ..self
        }
    }

    pub(crate) fn vaguely(self) -> Self {
        Self {
            vague: true,
            ..self
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}; {}", self.cause, self.remedy)
    }
}

/// A fault that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerTrouble {
    /// What it is.
    pub fault: Fault,
    /// When it began, by this machine's clock.
    pub since: Timestamp,
    /// How long it has lasted, by a clock that is never set.
    pub lasts: Duration,
    /// Whether nothing can be sold meanwhile.
    pub stops: bool,
}

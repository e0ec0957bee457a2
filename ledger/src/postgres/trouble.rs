//! What went wrong in a transaction, sorted by what the store may do next.
//!
//! The one question is whether something may have happened. Everything up to the moment when COMMIT is sent is undone by the
//! server, whatever becomes of the connection; from then on only the server's answer counts.

use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

use crate::LedgerError;

/// Why a transaction did not go through.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Undone, because others were in the way: try the same again.
    Retry(String),
    /// Undone, because another has kept a key locked for too long: the same may be tried again.
    Busy(String),
    /// Undone, because a statement failed: one of the operations cannot be stored.
    Failed(String),
    /// Undone, and the connection is of no use any more.
    Lost(String),
    /// COMMIT was sent and not answered.
    Unknown(String),
    /// Others have declared this node dead.
    Fenced,
}

impl Trouble {
    /// What went wrong.
    pub(super) fn words(self) -> String {
        match self {
            Self::Retry(why) | Self::Busy(why) | Self::Failed(why) | Self::Lost(why) | Self::Unknown(why) => why,
            Self::Fenced => "this gateway was fenced off".to_owned(),
        }
    }

    /// The same for a program that cannot begin.
    pub(super) fn unusable(self) -> LedgerError {
        LedgerError::Unusable(self.words())
    }

    /// The same for a failure after COMMIT was sent: only an error that the server reports itself means that nothing happened.
    pub(super) fn of_commit(error: &Error) -> Self {
        match Self::from(error) {
            Self::Lost(why) => Self::Unknown(why),
            other => other,
        }
    }
}

impl From<&Error> for Trouble {
    fn from(error: &Error) -> Self {
        let Some(db) = error.as_db_error() else {
            let why = words(error);
            let spoken =
                error.is_closed() || std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>());
            return if spoken { Self::Lost(why) } else { Self::Failed(why) };
        };
        let why = db.message().to_owned();
        if !matches!(db.parsed_severity(), Some(Severity::Error)) {
            return Self::Lost(why);
        }
        let code = db.code();
        if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::UNIQUE_VIOLATION].contains(code) {
            return Self::Retry(why);
        }
        if *code == SqlState::LOCK_NOT_AVAILABLE {
            return Self::Busy(why);
        }
        // Read-only: the address leads to a server that has become a standby. Resources (class 53), operator (57): later.
        if *code == SqlState::READ_ONLY_SQL_TRANSACTION || ["53", "57"].iter().any(|class| code.code().starts_with(class)) {
            return Self::Lost(why);
        }
        Self::Failed(why)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// An error of the client in words; what the server said, where it said something. Never a value of a row.
pub(super) fn words(error: &Error) -> String {
    match error.as_db_error() {
        Some(db) => db.message().to_owned(),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

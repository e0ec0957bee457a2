//! Failures of a transaction, classified by what the store may do next.
//!
//! The only question is whether something may have happened. The server undoes everything sent before COMMIT, whatever happens to
//! the connection; from then on only the server's answer counts.

use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

use crate::{Cause, LedgerError};

/// Why a transaction did not go through.
#[derive(Debug)]
pub(super) enum TransactionTrouble {
    /// Undone, because others were in the way: try the same again.
    Retry(Cause),
    /// Undone, because another transaction kept a key locked for too long: the same may be tried again.
    Busy(Cause),
    /// Undone, because a statement failed: one of the operations cannot be stored.
    Failed(Cause),
    /// Undone, because the server rejected a statement: for what it wrote, or for a right that was taken away.
    Rejected { sqlstate: String, why: Cause },
    /// Undone, and the connection is no longer usable.
    Lost(Cause),
    /// COMMIT was sent and got no answer.
    Unknown(Cause),
    /// Others have declared this node dead.
    Fenced,
}

impl TransactionTrouble {
    /// The failure in words.
    pub(super) fn words(self) -> String {
        self.cause().to_string()
    }

    /// The failure, with the error that it came from.
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::Retry(why)
            | Self::Busy(why)
            | Self::Failed(why)
            | Self::Lost(why)
            | Self::Unknown(why)
            | Self::Rejected { why, .. } => why,
            Self::Fenced => "this gateway was fenced off".into(),
        }
    }

    /// The server's code for what it rejected.
    pub(super) fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Rejected { sqlstate, .. } => Some(sqlstate),
            Self::Retry(_)
            | Self::Busy(_)
            | Self::Failed(_)
            | Self::Lost(_)
            | Self::Unknown(_)
            | Self::Fenced => None,
        }
    }

    /// The error for a program that cannot start.
    pub(super) fn unusable(self) -> LedgerError {
        LedgerError::Unusable(self.cause())
    }

    /// Classifies a failure after COMMIT was sent: only an error reported by the server itself means that nothing happened.
    pub(super) fn of_commit(error: Error) -> Self {
        match Self::from(error) {
            Self::Lost(why) => Self::Unknown(why),
            other => other,
        }
    }
}

impl From<Error> for TransactionTrouble {
    fn from(error: Error) -> Self {
        let Some(db) = error.as_db_error() else {
            let spoken = error.is_closed()
                || std::error::Error::source(&error)
                    .is_some_and(|source| source.is::<std::io::Error>());
            let why = cause(error);
            return if spoken {
                Self::Lost(why)
            } else {
                Self::Failed(why)
            };
        };
        let words = format!("{} (SQLSTATE {})", db.message(), db.code().code());
        let (severity, code) = (db.parsed_severity(), db.code().clone());
        let why = Cause::in_words(words, error);
        // What is worse than an error ends the session.
        if !matches!(severity, Some(Severity::Error)) {
            return Self::Lost(why);
        }
        if [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            // Others wrote such a row first: the next try finds it.
            SqlState::UNIQUE_VIOLATION,
        ]
        .contains(&code)
        {
            return Self::Retry(why);
        }
        if code == SqlState::LOCK_NOT_AVAILABLE {
            return Self::Busy(why);
        }
        // Read-only: the address leads to a server that has become a standby. Resources (class 53), operator (57): try later.
        if code == SqlState::READ_ONLY_SQL_TRANSACTION
            || ["53", "57"]
                .iter()
                .any(|class| code.code().starts_with(class))
        {
            return Self::Lost(why);
        }
        Self::Rejected {
            sqlstate: code.code().to_owned(),
            why,
        }
    }
}

impl From<serde_json::Error> for TransactionTrouble {
    fn from(error: serde_json::Error) -> Self {
        Self::Failed(Cause::in_words(error.to_string(), error))
    }
}

/// A client error, in [`words`].
pub(super) fn cause(error: Error) -> Cause {
    Cause::in_words(words(&error), error)
}

/// A client error in words, with the server's message if there is one. Never a value from a row.
pub(super) fn words(error: &Error) -> String {
    match error.as_db_error() {
        Some(db) => db.message().to_owned(),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

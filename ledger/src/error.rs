//! Why a ledger call did not succeed: a refusal by the rules, or a fault with its cause.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::Refusal;

/// A fault in words, and the error that it came from. Equal to every other one with the same words.
#[derive(Clone)]
pub struct Cause {
    words: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Cause {
    /// What could not be done, and why.
    pub fn of(what: &str, error: impl Error + Send + Sync + 'static) -> Self {
        Self::in_words(format!("{what}: {error}"), error)
    }

    /// An error in words that say more, or less, than its own.
    pub fn in_words(words: String, error: impl Error + Send + Sync + 'static) -> Self {
        Self {
            words,
            source: Some(Arc::new(error)),
        }
    }

    /// The same error in other words.
    #[must_use]
    pub(crate) fn reworded(self, words: String) -> Self {
        Self { words, ..self }
    }

    /// In words.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// The error that it came from, if it is of this type.
    pub(crate) fn came_from<E: Error + 'static>(&self) -> Option<&E> {
        self.source().and_then(|source| source.downcast_ref())
    }

    /// The error that it came from.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}

impl From<String> for Cause {
    fn from(words: String) -> Self {
        Self {
            words,
            source: None,
        }
    }
}

impl From<&str> for Cause {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words.fmt(out)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words.fmt(out)
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for Cause {}

/// Why a ledger call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerError {
    /// The rules refuse it, and nothing changed.
    Refused(Refusal),
    /// The store cannot write now (disk full, busy, stopped). Nothing changed.
    Unavailable(Cause),
    /// The commit failed half-way: it may or may not have happened. Repeat with the same id, or read that id.
    Unknown(Cause),
    /// The file is not a ledger we can use; nothing was created or changed.
    Unusable(Cause),
    /// There is no ledger at the address, or, where a new one was to be made, something is there already. Trying again does not
    /// help; nothing was created or changed.
    Misplaced(Cause),
}

impl LedgerError {
    /// The store cannot do it now.
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::Unavailable(cause.into())
    }

    /// Nobody can tell whether it happened.
    pub fn unknown(cause: impl Into<Cause>) -> Self {
        Self::Unknown(cause.into())
    }

    /// What was opened cannot be used.
    pub fn unusable(cause: impl Into<Cause>) -> Self {
        Self::Unusable(cause.into())
    }

    /// The address is not the one that was meant.
    pub(crate) fn misplaced(cause: impl Into<Cause>) -> Self {
        Self::Misplaced(cause.into())
    }

    /// The same fault, of the ledger at `place`.
    pub(crate) fn at(self, place: &str) -> Self {
        let named = |why: Cause| {
            let words = format!("{place}: {why}");
            why.reworded(words)
        };
        match self {
            Self::Unusable(why) => Self::Unusable(named(why)),
            Self::Misplaced(why) => Self::Misplaced(named(why)),
            Self::Refused(_) | Self::Unavailable(_) | Self::Unknown(_) => self,
        }
    }
}

impl From<Refusal> for LedgerError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for LedgerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(out),
            Self::Unavailable(cause) => write!(out, "the ledger cannot be written: {cause}"),
            Self::Unknown(why) => write!(out, "the outcome is unknown: {why}"),
            Self::Unusable(why) | Self::Misplaced(why) => why.fmt(out),
        }
    }
}

impl Error for LedgerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(cause)
            | Self::Unknown(cause)
            | Self::Unusable(cause)
            | Self::Misplaced(cause) => cause.source(),
            Self::Refused(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_what_it_came_from() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = LedgerError::unavailable(Cause::of("no thread for reading", full));
        assert_eq!(
            error.to_string(),
            "the ledger cannot be written: no thread for reading: no storage space"
        );
        let source = error
            .source()
            .and_then(|source| source.downcast_ref::<std::io::Error>());
        assert_eq!(
            source.map(std::io::Error::kind),
            Some(std::io::ErrorKind::StorageFull)
        );
        assert_eq!(
            error,
            LedgerError::unavailable("no thread for reading: no storage space")
        );
    }
}

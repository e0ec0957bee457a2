//! The address of a ledger: parses the value of `--ledger`, in this one place.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The address of a ledger: the path of a SQLite file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerAddress(PathBuf);

impl LedgerAddress {
    /// The SQLite file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl FromStr for LedgerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.split_once("://") {
            None if text.is_empty() => Err(AddressError::Empty),
            None => Ok(Self(PathBuf::from(text))),
            // What follows may hold a password, and is never repeated.
            Some(("postgres" | "postgresql", _)) => Err(AddressError::Postgres),
            Some((scheme, _)) if scheme.contains('/') => Ok(Self(PathBuf::from(text))),
            Some(_) => Err(AddressError::Unknown),
        }
    }
}

impl fmt::Display for LedgerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(out)
    }
}

/// Why a text is no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing was given.
    #[error("give the path of a SQLite file")]
    Empty,
    /// For fleets, which this version does not serve.
    #[error("postgres:// is reserved for fleets; this version keeps its ledger in one SQLite file: give its path")]
    Postgres,
    /// A URL of another kind.
    #[error("this is neither the path of a SQLite file nor a URL of PostgreSQL")]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_or_refused_without_being_repeated() {
        for path in ["farebox.db", "/var/lib/a:b.db", "./odd/x://y.db"] {
            let address: LedgerAddress = path.parse().unwrap();
            assert_eq!((address.path(), address.to_string()), (Path::new(path), path.to_owned()));
        }
        for (text, error) in [
            ("postgres://u:secret@h/db", AddressError::Postgres),
            ("postgresql://h", AddressError::Postgres),
            ("mysql://u:secret@h", AddressError::Unknown),
            ("", AddressError::Empty),
        ] {
            let found = text.parse::<LedgerAddress>().unwrap_err();
            assert!(found == error && !found.to_string().contains("secret"));
        }
    }
}

//! The address of a ledger: the only parser of `--ledger`.
//!
//! An address may contain a password: it is displayed without it, and no error repeats what was typed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The address of a ledger.
#[derive(Clone, PartialEq, Eq)]
pub enum LedgerAddress {
    /// The path of a SQLite file.
    File(PathBuf),
    /// A PostgreSQL database, which several gateways can share.
    Postgres(Box<Config>),
}

impl LedgerAddress {
    /// The path, if it is a SQLite file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }
}

impl From<PathBuf> for LedgerAddress {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl FromStr for LedgerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (scheme, _) = text.split_once(':').unwrap_or_default();
        match text.split_once("://") {
            None if text.is_empty() => Err(AddressError::Empty),
            // PostgreSQL's other spelling, and a URL without its slashes: no file has such a name.
            None if text.contains("dbname=") || matches!(scheme, "postgres" | "postgresql") => {
                Err(AddressError::Postgres)
            }
            None if scheme == "sqlite" => Err(AddressError::File),
            Some(("sqlite" | "sqlite3" | "file", _)) => Err(AddressError::File),
            None => Ok(Self::File(PathBuf::from(text))),
            Some(("postgres" | "postgresql", _)) => {
                let config: Config = text.parse().map_err(|_| AddressError::Postgres)?;
                if config.get_hosts().is_empty()
                    || config.get_dbname().is_none()
                    || config.get_user().is_none()
                {
                    return Err(AddressError::Postgres);
                }
                Ok(Self::Postgres(Box::new(config)))
            }
            Some((scheme, _)) if scheme.contains('/') => Ok(Self::File(PathBuf::from(text))),
            Some(_) => Err(AddressError::Unknown),
        }
    }
}

/// Without the password.
impl fmt::Display for LedgerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = match self {
            Self::File(path) => return path.display().fmt(out),
            Self::Postgres(config) => config,
        };
        let host = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
        let (user, database) = (
            config.get_user().unwrap_or_default(),
            config.get_dbname().unwrap_or_default(),
        );
        out.pad(&format!("postgres://{user}@{}/{database}", hosts.join(",")))
    }
}

impl fmt::Debug for LedgerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Why a text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing was given.
    #[error("give the path of a SQLite file, or a database as postgres://user@host/database")]
    Empty,
    /// A PostgreSQL address that cannot be parsed.
    #[error(
        "write the whole address, as in postgres://user:password@host:5432/database, with special characters percent-encoded, as in %40"
    )]
    Postgres,
    /// A URL of a file.
    #[error("give a SQLite file by its path alone, as in /var/lib/farebox/farebox.db")]
    File,
    /// A URL of another kind.
    #[error("this is neither the path of a SQLite file nor a PostgreSQL URL")]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_a_database_or_refused_without_being_repeated() {
        for path in ["farebox.db", "/var/lib/a:b.db", "./odd/x://y.db"] {
            let address: LedgerAddress = path.parse().unwrap();
            assert_eq!(
                (address.path(), address.to_string()),
                (Some(Path::new(path)), path.to_owned())
            );
        }
        let database: LedgerAddress =
            "postgres://ada:s%40cret@a:5433,b:5433/ledger?sslmode=require"
                .parse()
                .unwrap();
        assert_eq!(
            (database.path(), database.to_string()),
            (None, "postgres://ada@a,b/ledger".to_owned())
        );
        assert!(!format!("{database:?}").contains("cret"));
        for (text, error) in [
            ("postgres://u:secret@h:x/db", AddressError::Postgres),
            ("postgres://u:secret@h", AddressError::Postgres),
            ("postgresql://h", AddressError::Postgres),
            ("postgres:u:secret@h/db", AddressError::Postgres),
            ("host=h dbname=db password=secret", AddressError::Postgres),
            ("sqlite:///var/lib/secret.db", AddressError::File),
            ("sqlite:secret.db", AddressError::File),
            ("file:///var/lib/secret.db", AddressError::File),
            ("mysql://u:secret@h", AddressError::Unknown),
            ("", AddressError::Empty),
        ] {
            let found = text.parse::<LedgerAddress>().unwrap_err();
            assert!(found == error && !found.to_string().contains("secret"));
        }
    }
}

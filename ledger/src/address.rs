//! Where a ledger is: a file, or a database.
//!
//! Read in one place, so that a path that looks like an address, or the reverse, is found before anything is made. An address
//! may carry a password: it is shown without.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What `--ledger` names.
#[derive(Clone, PartialEq, Eq)]
pub enum LedgerAddress {
    /// One SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgres(Box<tokio_postgres::Config>),
}

impl LedgerAddress {
    /// The file, where it is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }
}

impl FromStr for LedgerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            None if text.is_empty() => Err("name a file, or a database as postgres://user@host/database".to_owned()),
            None => Ok(Self::File(text.into())),
            Some("postgres" | "postgresql") => {
                let rest = text.split_once("://").map_or("", |(_, rest)| rest);
                // The parser's message names the part that is wrong and never repeats the password.
                let config: tokio_postgres::Config = format!("postgresql://{rest}")
                    .parse()
                    .map_err(|error: tokio_postgres::Error| super::postgres::why_no_address(&error))?;
                if config.get_hosts().is_empty() || config.get_dbname().is_none() || config.get_user().is_none() {
                    return Err("write the whole address: postgres://user@host/database".to_owned());
                }
                Ok(Self::Postgres(Box::new(config)))
            }
            Some("sqlite" | "file") => Err("name the SQLite file by its path, without a scheme".to_owned()),
            Some(other) => Err(format!("{other}:// is no ledger; name a file, or a database as postgres://user@host/database")),
        }
    }
}

/// Without the password.
impl fmt::Display for LedgerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => out.pad(&path.display().to_string()),
            Self::Postgres(config) => {
                use tokio_postgres::config::Host;
                let hosts: Vec<String> = config
                    .get_hosts()
                    .iter()
                    .map(|host| match host {
                        Host::Tcp(name) => name.clone(),
                        Host::Unix(path) => path.display().to_string(),
                    })
                    .collect();
                let (user, database) = (config.get_user().unwrap_or_default(), config.get_dbname().unwrap_or_default());
                out.pad(&format!("postgres://{user}@{}/{database}", hosts.join(",")))
            }
        }
    }
}

impl fmt::Debug for LedgerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_databases_are_told_apart() {
        let file: LedgerAddress = "farebox.db".parse().unwrap();
        assert_eq!(file.file(), Some(Path::new("farebox.db")));
        let database: LedgerAddress = "postgres://ada:s%40cret@db.example.com:5433/ledger?sslmode=require".parse().unwrap();
        assert_eq!(database.to_string(), "postgres://ada@db.example.com/ledger");
        assert!(!format!("{database:?}").contains("cret") && database.file().is_none());
        for wrong in ["", "mysql://a/b", "sqlite://farebox.db", "postgres://", "postgres://host", "postgres://u:secret@h:x/db"] {
            let error = wrong.parse::<LedgerAddress>().unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}

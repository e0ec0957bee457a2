//! The address of a ledger: the only parser of `--ledger`.
//!
//! An address may contain a password: it is displayed without it, and no error repeats what was typed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// A PostgreSQL database: its servers, and how to log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Database {
    pub(crate) config: Config,
    /// The file of `sslrootcert`: certificates that a server's is checked against, instead of the system's.
    pub(crate) roots: Option<PathBuf>,
}

/// The address of a ledger.
#[derive(Clone, PartialEq, Eq)]
pub enum LedgerAddress {
    /// The path of a SQLite file.
    File(PathBuf),
    /// A PostgreSQL database, which several gateways can share.
    Postgres(Box<Database>),
}

impl LedgerAddress {
    /// The path, if it is a SQLite file.
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
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(Box::new(text.parse()?))),
            Some((scheme, _)) if scheme.contains('/') => Ok(Self::File(PathBuf::from(text))),
            Some(_) => Err(AddressError::Unknown),
        }
    }
}

/// Without the password.
impl fmt::Display for LedgerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(out),
            Self::Postgres(database) => database.fmt(out),
        }
    }
}

/// Without the password.
impl fmt::Display for Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        let host = |(at, host): (usize, &Host)| match host {
            Host::Tcp(name) => match config.get_ports().get(at).or(config.get_ports().first()) {
                Some(port) if *port != 5432 => format!("{name}:{port}"),
                _ => name.clone(),
            },
            Host::Unix(path) => path.display().to_string(),
        };
        let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
        let (user, database) = (
            config.get_user().unwrap_or_default(),
            config.get_dbname().unwrap_or_default(),
        );
        out.pad(&format!("postgres://{user}@{}/{database}", hosts.join(",")))
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for Database {
    type Err = AddressError;

    /// Of libpq's options the driver knows all but `sslrootcert`, and no mode that checks less or more than this program does.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (place, options) = text.split_once('?').unwrap_or((text, ""));
        let (mut roots, mut known) = (None, Vec::new());
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sslrootcert", file)) if !file.is_empty() => {
                    roots = Some(PathBuf::from(file.replace("%2F", "/").replace("%20", " ")));
                }
                Some(("sslmode", "verify-ca" | "verify-full")) => {
                    known.push("sslmode=require".to_owned());
                }
                _ => known.push(option.to_owned()),
            }
        }
        let plain = format!("{place}?{}", known.join("&"));
        let Ok(config) = plain.parse::<Config>() else {
            // An option alone is wrong if the address is right without it. Only its name is repeated.
            let wrong = known.iter().find(|option| {
                let alone = format!("{place}?{option}").parse::<Config>().is_err();
                alone && place.parse::<Config>().is_ok()
            });
            return Err(wrong.map_or(AddressError::Postgres, |option| {
                let name = option.split('=').next().unwrap_or_default();
                AddressError::Option(name.to_owned())
            }));
        };
        if config.get_hosts().is_empty()
            || config.get_dbname().is_none()
            || config.get_user().is_none()
        {
            return Err(AddressError::Postgres);
        }
        Ok(Self { config, roots })
    }
}

impl fmt::Debug for LedgerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Why a text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing was given.
    #[error("give the path of a SQLite file, or a database as postgres://user@host/database")]
    Empty,
    /// A PostgreSQL address that cannot be parsed.
    #[error(
        "write the whole address, as in postgres://user:password@host:5432/database, with special characters percent-encoded, as in %40"
    )]
    Postgres,
    /// An option of a PostgreSQL address that does not exist, or has a value that it cannot have.
    #[error("the option {0} of the address is unknown, or its value is not one of its values")]
    Option(String),
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
            (None, "postgres://ada@a:5433,b:5433/ledger".to_owned())
        );
        assert!(!format!("{database:?}").contains("cret"));
        let LedgerAddress::Postgres(checked) =
            "postgres://u@h/db?sslmode=verify-full&sslrootcert=/etc/ca.crt"
                .parse()
                .unwrap()
        else {
            unreachable!()
        };
        assert_eq!(checked.roots.as_deref(), Some(Path::new("/etc/ca.crt")));
        for (text, error) in [
            ("postgres://u:secret@h:x/db", AddressError::Postgres),
            ("postgres://u:secret@h", AddressError::Postgres),
            (
                "postgres://u@h/db?sslcret=secret&sslmode=require",
                AddressError::Option("sslcret".to_owned()),
            ),
            (
                "postgres://u@h/db?sslmode=secret",
                AddressError::Option("sslmode".to_owned()),
            ),
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

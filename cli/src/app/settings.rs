//! The settings of a gateway, and the reasons for not starting.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use farebox_ledger::{Durability, LedgerAddress, LedgerError};
use ipnet::IpNet;

use farebox::config::{Config, Diagnostics, Secrets};
use farebox::server::TlsFiles;
use farebox::server::admin::TokenError;

/// The settings of a gateway.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file or database that holds keys and journal.
    pub ledger: LedgerAddress,
    /// Whether to make the ledger, which must not exist yet.
    pub new_ledger: bool,
    /// When changes are on disk.
    pub durability: Durability,
    /// Whether a database without a standby is accepted, for trials.
    pub allow_single: bool,
    /// From which size of a file's log on new holds are refused, if it is set.
    pub wal_limit: Option<u64>,
    /// The file that records what a database has confirmed, if any.
    pub state: Option<PathBuf>,
    /// The customers' address.
    pub listen: SocketAddr,
    /// The operator's address, if an admin listener is wanted.
    pub admin_listen: Option<SocketAddr>,
    /// The token for `/status` and `/live` there.
    pub admin_token_file: Option<PathBuf>,
    /// Host names, in addition to `localhost`, that the admin listener answers to.
    pub admin_hosts: Vec<String>,
    /// The only base of printed URLs; the scheme and the address when `None`.
    pub public_url: Option<String>,
    /// The customers' certificate, for HTTPS without a proxy.
    pub tls: Option<TlsFiles>,
    /// The operator's own certificate: with it the admin listener is HTTPS.
    pub admin_tls: Option<TlsFiles>,
    /// Forwarded headers count only from these addresses.
    pub trusted_proxies: Vec<IpNet>,
    /// Web pages from these origins may use customers' paths.
    pub cors_origins: Vec<String>,
    /// How long to wait for another gateway to release the ledger.
    pub wait_lock: Duration,
    /// The anchor file, if any.
    pub anchors: Option<PathBuf>,
    /// Who runs it, for the audit of the files.
    pub operator: String,
}

impl Settings {
    /// A gateway for one ledger on one address, without an admin listener.
    #[must_use]
    pub fn new(ledger: impl Into<LedgerAddress>, listen: SocketAddr) -> Self {
        Self {
            ledger: ledger.into(),
            new_ledger: false,
            durability: Durability::Prompt,
            allow_single: false,
            wal_limit: None,
            state: None,
            listen,
            admin_listen: None,
            admin_token_file: None,
            admin_hosts: Vec::new(),
            public_url: None,
            tls: None,
            admin_tls: None,
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            wait_lock: Duration::ZERO,
            anchors: None,
            operator: farebox_ledger::owner::user_name(),
        }
    }
}

/// Where the snapshot comes from.
pub enum Files {
    /// It never changes.
    Fixed(Box<Config>),
    /// It follows these files.
    Watched {
        /// What is sold.
        catalog: PathBuf,
        /// Where requests go.
        routes: PathBuf,
        /// The source of the routes' secrets.
        secrets: Box<dyn Secrets + Send + Sync>,
    },
}

impl From<Config> for Files {
    fn from(config: Config) -> Self {
        Self::Fixed(Box::new(config))
    }
}

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The files have mistakes.
    #[error("{}", .0.summary())]
    Configuration(Diagnostics),
    /// The ledger is in use, unusable or unwritable.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The address cannot be bound.
    #[error("cannot listen on {0}: {1}{advice}", advice = advice(.1))]
    Listen(SocketAddr, std::io::Error),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] farebox::server::TlsError),
    /// The admin token is not usable.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The HTTP client cannot be built.
    #[error("{0}")]
    Upstreams(String),
}

/// What to do about an address that cannot be bound.
fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "; stop the program that does, or choose another address with --listen or --admin-listen"
        }
        _ => "",
    }
}

//! One connection: opened with the session's settings, driven in the background, watching for warnings.
//!
//! No cancel request is ever sent: PostgreSQL answers a cancelled wait for a standby as if the commit had gone through, with only a
//! warning. A connection that takes too long is dropped, and the outcome of what it did is unknown.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Error, Row, SimpleQueryMessage, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::trouble::words;
use crate::LedgerError;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// The settings of every session. With them the server itself releases the locks of a gateway that has stalled.
const SESSION: &str = "SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '3s'; SET synchronous_commit = on; \
     SET client_min_messages = warning; SET default_transaction_isolation = 'read committed'; SET TimeZone = 'UTC'; \
     SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// A batch names every row it reads or writes, so an index leads to each. The planner must not conclude otherwise from a table that
/// was nearly empty when a statement was planned: it would scan all of it, once for every named row.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; \
     SET plan_cache_mode = force_generic_plan";

/// The server process behind a connection. Its start time distinguishes it from a later process with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Backend {
    pub(super) pid: String,
    pub(super) started: String,
}

/// How to reach the database.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration contains the password.
        out.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// Prepares connections. Connections to other machines are encrypted and the server's certificate is checked, unless the
    /// address says `sslmode=disable`.
    /// says `sslmode=disable`.
    pub(super) fn new(mut config: Config, writes: bool) -> Result<Self, LedgerError> {
        let local = config.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => {
                name == "localhost"
                    || name
                        .parse::<IpAddr>()
                        .is_ok_and(|address| address.is_loopback())
            }
            Host::Unix(_) => true,
        });
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(if local {
                SslMode::Disable
            } else {
                SslMode::Require
            });
        }
        if writes {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config
            .connect_timeout(CONNECT)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2));
        config
            .keepalives_retries(2)
            .tcp_user_timeout(Duration::from_secs(10));
        if config.get_application_name().is_none() {
            config.application_name("farebox");
        }
        let mut roots = RootCertStore::empty();
        if config.get_ssl_mode() != SslMode::Disable {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| LedgerError::Unusable(error.to_string()))?;
        let tls =
            MakeRustlsConnect::new(versions.with_root_certificates(roots).with_no_client_auth());
        Ok(Self { config, tls })
    }

    /// Opens a connection for a writer of batches.
    pub(super) async fn connect_for_batches(&self) -> Result<Link, String> {
        let link = self.connect().await?;
        let set = tokio::time::timeout(CONNECT, link.client.batch_execute(BY_INDEX));
        set.await
            .map_err(|_| "no answer".to_owned())?
            .map_err(|error| words(&error))?;
        Ok(link)
    }

    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<Link, String> {
        let connecting = tokio::time::timeout(
            CONNECT.saturating_mul(2),
            self.config.connect(self.tls.clone()),
        );
        let connected = connecting
            .await
            .map_err(|_| "no answer".to_owned())
            .and_then(|made| made.map_err(|error| words(&error)));
        let (client, mut connection) = connected.map_err(|why| self.unreached(&why))?;
        let warned = Arc::new(AtomicBool::new(false));
        let for_driver = Arc::clone(&warned);
        let driver = tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message
                    && notice.parsed_severity() == Some(Severity::Warning)
                {
                    for_driver.store(true, Ordering::SeqCst);
                }
            }
        });
        let mut link = Link {
            client,
            backend: Backend::default(),
            warned,
            driver,
            statements: Mutex::default(),
        };
        let session = tokio::time::timeout(CONNECT, link.client.simple_query(SESSION));
        for message in session
            .await
            .map_err(|_| "no answer".to_owned())?
            .map_err(|error| words(&error))?
        {
            if let SimpleQueryMessage::Row(row) = message {
                let column = |at| row.get(at).unwrap_or_default().to_owned();
                link.backend = Backend {
                    pid: column(0),
                    started: column(1),
                };
            }
        }
        Ok(link)
    }

    /// The servers that were tried, and remedies for the commonest mistakes.
    fn unreached(&self, why: &str) -> String {
        let ports = self.config.get_ports();
        let servers: Vec<String> = (self.config.get_hosts().iter().enumerate())
            .map(|(at, host)| match host {
                Host::Tcp(name) => format!(
                    "{name}:{}",
                    ports.get(at).or(ports.first()).copied().unwrap_or(5432)
                ),
                Host::Unix(folder) => folder.display().to_string(),
            })
            .collect();
        let hint = if why.contains("UnknownIssuer") {
            "; make the certificate's authority known to this machine (update-ca-certificates), or name it in SSL_CERT_FILE"
        } else if why.contains("does not allow writes") {
            "; give the address of the primary, or one address with all servers"
        } else {
            ""
        };
        format!("{}: {why}{hint}", servers.join(", "))
    }
}

/// A connection that closes when dropped.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) backend: Backend,
    warned: Arc<AtomicBool>,
    driver: tokio::task::JoinHandle<()>,
    statements: Mutex<HashMap<String, Statement>>,
}

impl Link {
    /// A statement that this connection keeps prepared.
    pub(super) async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        let known = self
            .statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(sql)
            .cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// The rows of a statement that stays prepared.
    pub(super) async fn query(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, values).await
    }

    /// Whether the server has sent a warning since the last call.
    pub(super) fn take_warning(&self) -> bool {
        self.warned.swap(false, Ordering::SeqCst)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Link")
            .field("closed", &self.client.is_closed())
            .finish_non_exhaustive()
    }
}

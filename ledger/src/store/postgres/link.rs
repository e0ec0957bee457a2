//! One connection: opened with the session's settings, driven in the background, watching for warnings.
//!
//! No cancel request is ever sent: PostgreSQL answers a cancelled wait for a standby as if the commit had gone through, with only a
//! warning. A connection that takes too long is dropped, and the outcome of what it did is unknown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Error, Row, SimpleQueryMessage, Statement,
};

use super::facts::{INTRODUCE, LOOK, ServerFacts};
use super::trouble::cause;
use crate::batch::rows::ById;
use crate::{Cause, lock};

/// How long a session's settings may take.
const SETTINGS: Duration = Duration::from_secs(5);

/// The settings of every session. With them the server itself releases the locks of a gateway that has stalled, and ends the session
/// of one that it no longer reaches: by PostgreSQL's own settings only after two hours.
const SESSION: &str = "SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '3s'; SET synchronous_commit = on; \
     SET client_min_messages = warning; SET default_transaction_isolation = 'read committed'; SET TimeZone = 'UTC'; \
     SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 2; SET tcp_user_timeout = 10000; ";
/// What the server must have taken of these.
const KEEPALIVES: &str = "5 2 2 10000";

/// A connection that closes when dropped.
pub(super) struct Link {
    pub(super) client: Client,
    /// What the server said when it was opened.
    pub(super) facts: ServerFacts,
    /// The number of the connections among which it was opened; see [`super::servers::Servers::number`].
    pub(super) number: u64,
    /// Its settings, to open another one beside it.
    pub(super) config: Config,
    warned: Arc<AtomicBool>,
    driver: tokio::task::JoinHandle<()>,
    statements: Mutex<ById<String, Statement>>,
}

impl Link {
    /// Drives a fresh connection, and sets and checks its session.
    pub(super) async fn begin<S, T>(
        client: Client,
        mut connection: Connection<S, T>,
        config: Config,
    ) -> Result<Self, Cause>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
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
        let mut link = Self {
            client,
            facts: ServerFacts::default(),
            number: 0,
            config,
            warned,
            driver,
            statements: Mutex::default(),
        };
        let introduce = format!("{SESSION}{INTRODUCE}({LOOK}) s WHERE a.pid = pg_backend_pid()");
        let session = tokio::time::timeout(SETTINGS, link.client.simple_query(&introduce));
        for message in session.await.map_err(|_| "no answer")?.map_err(cause)? {
            if let SimpleQueryMessage::Row(row) = message {
                link.facts = ServerFacts::of(&row);
            }
        }
        if link.facts.tcp && link.facts.keepalives != KEEPALIVES {
            return Err(format!(
                "the server did not take tcp_keepalives_* and tcp_user_timeout ({} instead of {KEEPALIVES}): it would keep the \
                 sessions of a gateway that is gone",
                link.facts.keepalives
            )
            .into());
        }
        Ok(link)
    }

    /// The server process that answered at first, as a number.
    pub(super) fn process(&self) -> Option<i32> {
        self.facts.backend.pid.parse().ok()
    }

    /// The server process that answers now; another one than at first behind a pooler that shares sessions.
    pub(super) async fn session(&self) -> String {
        let messages = self.client.simple_query("SELECT pg_backend_pid()").await;
        let pid = messages.ok().and_then(|messages| {
            messages.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            })
        });
        pid.unwrap_or_default()
    }

    /// A statement that this connection keeps prepared.
    pub(super) async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        let known = lock(&self.statements).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        #[cfg(feature = "reference")]
        crate::memory::statements::OF_DATABASES.note(sql);
        let statement = self.client.prepare(sql).await?;
        lock(&self.statements).insert(sql.to_owned(), statement.clone());
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

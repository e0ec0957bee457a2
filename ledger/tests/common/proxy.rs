//! A proxy between a ledger and its database that a test can cut, hold at a COMMIT, or remove altogether.
//!
//! It passes bytes on and only recognises the form of a COMMIT.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// What happens to the next COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtCommit {
    /// It goes through.
    Pass,
    /// The connection ends before the server has it.
    CutBefore,
    /// The server has it, and the connection ends before its answer.
    CutAfter,
    /// It is sent that much later.
    Hold(Duration),
}

/// A wire with any number of connections.
pub(crate) struct Proxy {
    folder: tempfile::TempDir,
    at_commit: Arc<watch::Sender<AtCommit>>,
    up: watch::Sender<bool>,
}

impl Proxy {
    /// Leads to the server whose socket is in this folder.
    pub(crate) fn start(server: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let (at_commit, up) = (
            Arc::new(watch::Sender::new(AtCommit::Pass)),
            watch::Sender::new(true),
        );
        let (server, commits, watching) = (
            server.join(".s.PGSQL.5432"),
            Arc::clone(&at_commit),
            up.subscribe(),
        );
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *watching.borrow() {
                    tokio::spawn(connection(
                        client,
                        server.clone(),
                        Arc::clone(&commits),
                        watching.clone(),
                    ));
                }
            }
        });
        Self {
            folder,
            at_commit,
            up,
        }
    }

    /// Where a database is behind the wire.
    pub(crate) fn url(&self, database: &str) -> String {
        format!(
            "postgres://farebox@{}/{database}",
            self.folder.path().display().to_string().replace('/', "%2F")
        )
    }

    /// Arms a fault for the next COMMIT.
    pub(crate) fn arm(&self, fault: AtCommit) {
        self.at_commit.send_replace(fault);
    }

    /// Whether the fault has hit.
    pub(crate) fn has_hit(&self) -> bool {
        *self.at_commit.borrow() == AtCommit::Pass
    }

    /// Cuts every connection and takes no new one, or takes them again.
    pub(crate) fn set_up(&self, up: bool) {
        self.up.send_replace(up);
    }
}

async fn connection(
    client: UnixStream,
    server: PathBuf,
    commits: Arc<watch::Sender<AtCommit>>,
    mut up: watch::Receiver<bool>,
) {
    let Ok(server) = UnixStream::connect(server).await else {
        return;
    };
    let ((from_client, mut to_client), (mut from_server, to_server)) =
        (client.into_split(), server.into_split());
    tokio::select! {
        () = to_the_server(from_client, to_server, &commits) => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
        _ = up.wait_for(|up| !up) => {}
    }
}

async fn to_the_server(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    commits: &watch::Sender<AtCommit>,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(length) = from.read(&mut buffer).await {
        let bytes = &buffer[..length];
        // The batch and its COMMIT are one write; BEGIN and what is read come before.
        let commit = bytes
            .windows(7)
            .position(|window| window == b"COMMIT\0")
            .map(|at| at - 5);
        let fault = if commit.is_some() {
            commits.send_replace(AtCommit::Pass)
        } else {
            AtCommit::Pass
        };
        let before = commit.unwrap_or(length);
        let sent = match fault {
            AtCommit::CutBefore => return,
            AtCommit::Pass | AtCommit::CutAfter => to.write_all(bytes).await,
            AtCommit::Hold(wait) => {
                to.write_all(&bytes[..before]).await.unwrap();
                tokio::time::sleep(wait).await;
                to.write_all(&bytes[before..]).await
            }
        };
        if fault == AtCommit::CutAfter {
            // Answers are copied beside this; nothing reads them any more.
            return;
        }
        if length == 0 || sent.is_err() {
            return;
        }
    }
}

//! Proxies between a gateway and its database servers: they pass everything on until a fault is armed, which then strikes in the
//! middle of a COMMIT. Whoever arms one learns that it has struck: a fault that met no COMMIT proves nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{oneshot, watch};

/// A COMMIT as it is sent: a simple query.
const COMMIT: &[u8] = b"COMMIT\0";
/// How long a fault waits for a COMMIT.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens to a connection at its next COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The COMMIT is kept back until the release.
    KeepCommit,
    /// The COMMIT goes through, and its answer is kept back until the release.
    KeepAnswer,
    /// The COMMIT goes through, and the connection ends before its answer.
    Cut,
    /// The COMMIT goes through, and nothing comes back until the release, when the connection ends.
    HalfOpen,
}

#[derive(Debug)]
struct State {
    armed: Mutex<Option<(Fault, oneshot::Sender<()>)>>,
    releases: watch::Sender<u64>,
}

/// The wires of one gateway.
#[derive(Debug)]
pub(crate) struct Wires {
    folders: Vec<tempfile::TempDir>,
    state: Arc<State>,
}

impl Wires {
    /// Lays them to the sockets in these folders.
    pub(crate) fn lay<'a>(servers: impl Iterator<Item = &'a Path>) -> Self {
        let state = Arc::new(State {
            armed: Mutex::default(),
            releases: watch::Sender::new(0),
        });
        let lay = |server: &Path| {
            let folder = tempfile::tempdir().unwrap();
            let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
            tokio::spawn(accept(
                listener,
                server.join(".s.PGSQL.5432"),
                Arc::clone(&state),
            ));
            folder
        };
        Self {
            folders: servers.map(lay).collect(),
            state,
        }
    }

    /// Where the gateway finds its ends.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(tempfile::TempDir::path)
    }

    /// Waits until this fault has hit a COMMIT.
    pub(crate) async fn hit(&self, fault: Fault) {
        let (tell, told) = oneshot::channel();
        *self.state.armed.lock().unwrap() = Some((fault, tell));
        tokio::time::timeout(PATIENCE, told)
            .await
            .expect("a COMMIT to hit")
            .expect("it was hit");
    }

    /// Ends every fault.
    pub(crate) fn release(&self) {
        self.state.releases.send_modify(|releases| *releases += 1);
    }
}

/// A fault that has hit a connection, and how many releases there had been.
#[derive(Debug, Clone, Copy)]
struct Hit {
    fault: Fault,
    releases: u64,
}

impl Hit {
    /// Waits for the next release.
    async fn released(self, state: &State) {
        let _ = state
            .releases
            .subscribe()
            .wait_for(|releases| *releases > self.releases)
            .await;
    }
}

async fn accept(listener: UnixListener, server: PathBuf, state: Arc<State>) {
    while let Ok((gateway, _)) = listener.accept().await {
        let (server, state) = (server.clone(), Arc::clone(&state));
        tokio::spawn(async move {
            // A server that is dead refuses, and so does this end.
            let Ok(server) = UnixStream::connect(server).await else {
                return;
            };
            let (from_gateway, to_gateway) = gateway.into_split();
            let (from_server, to_server) = server.into_split();
            let (keep, kept) = watch::channel(None);
            tokio::select! {
                () = questions(from_gateway, to_server, &state, keep) => {}
                () = answers(from_server, to_gateway, &state, kept) => {}
            }
        });
    }
}

async fn questions(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    keep: watch::Sender<Option<Hit>>,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let chunk = &buffer[..read];
        let armed = if chunk.windows(COMMIT.len()).any(|part| part == COMMIT) {
            state.armed.lock().unwrap().take()
        } else {
            None
        };
        let Some((fault, tell)) = armed else {
            if to.write_all(chunk).await.is_err() {
                return;
            }
            continue;
        };
        let hit = Hit {
            fault,
            releases: *state.releases.borrow(),
        };
        if fault != Fault::KeepCommit {
            keep.send_replace(Some(hit));
            if to.write_all(chunk).await.is_err() {
                return;
            }
        }
        let _ = tell.send(());
        match fault {
            Fault::KeepCommit => {
                hit.released(state).await;
                if to.write_all(chunk).await.is_err() {
                    return;
                }
            }
            Fault::KeepAnswer => {}
            Fault::Cut => return,
            Fault::HalfOpen => {
                hit.released(state).await;
                return;
            }
        }
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    kept: watch::Receiver<Option<Hit>>,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let hit = *kept.borrow();
        match hit {
            None => {}
            Some(hit) if hit.fault == Fault::KeepAnswer => hit.released(state).await,
            Some(_) => std::future::pending().await,
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    if kept
        .borrow()
        .is_some_and(|hit| hit.fault != Fault::KeepAnswer)
    {
        std::future::pending::<()>().await;
    }
}

//! The gateway put together: one snapshot, one ledger, the upstreams, the spine and the front door; started, announced, drained.
//!
//! Wiring only. What stops last is the ledger: every running request is given time to settle before its file is closed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::sqlite::{Durability, OpenMode, ServeLock, SqliteLedger};
use farebox_ledger::{Ledger, LedgerError, SharedLedger};
use salvo::server::ServerHandle;
use tokio_util::task::TaskTracker;

use crate::anchoring::Anchoring;
use crate::clock;
use crate::config::{Config, ConfigHandle};
use crate::customer::Watch;
use crate::proxy::record::FanOut;
use crate::proxy::{Observer, Proxy};
use crate::server::{self, Front, Listening};
use crate::upstream::Upstreams;

/// How long a stopping gateway waits for running requests.
pub const DRAIN: Duration = Duration::from_secs(30);

/// What a gateway is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The ledger's file.
    pub ledger: PathBuf,
    /// When changes count as safe.
    pub durability: Durability,
    /// The customers' address.
    pub listen: SocketAddr,
    /// The only base of printed URLs; `http://` and the address when `None`.
    pub public_url: Option<String>,
    /// How long to wait for another gateway to give up the ledger.
    pub wait_lock: Duration,
    /// Where anchors are written.
    pub anchors: Option<PathBuf>,
}

/// A gateway that is ready to serve.
#[derive(Debug)]
pub struct App {
    /// The front door; also the way to everything behind it.
    pub front: Arc<Front>,
    /// The ledger, as what it is.
    pub ledger: Arc<SqliteLedger>,
    listening: Listening,
    anchoring: Option<Anchoring>,
    lock: ServeLock,
}

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The ledger is in use, unusable or unwritable.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The address cannot be bound.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// No HTTP client can be made.
    #[error("{0}")]
    Upstreams(String),
}

impl App {
    /// Takes the ledger, recovers it, remembers the published slugs and binds the address.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running.
    pub async fn start(settings: &Settings, config: Config, observer: Arc<dyn Observer>) -> Result<Self, StartError> {
        let lock = ServeLock::acquire(&settings.ledger, settings.wait_lock)?;
        let ledger = Arc::new(SqliteLedger::open(&settings.ledger, OpenMode::Serve, settings.durability)?);
        let anchoring = match &settings.anchors {
            Some(path) => Some(Anchoring::open(path, Arc::clone(&ledger)).await?),
            None => None,
        };
        let recovered = ledger.recover(clock::now()).await?;
        if recovered.settled + recovered.released > 0 {
            tracing::warn!(settled = recovered.settled, released = recovered.released, "ended the holds of an earlier run");
        }
        ledger.publish(config.catalog.models.iter().map(|model| model.slug.clone()).collect(), clock::now()).await?;
        let listening = server::listen(settings.listen).map_err(|error| StartError::Listen(settings.listen, error))?;
        let public_url = settings.public_url.clone().unwrap_or_else(|| format!("http://{}", listening.address));
        let shared: SharedLedger = Arc::<SqliteLedger>::clone(&ledger);
        let watch = Arc::new(Watch::default());
        let proxy = Arc::new(Proxy {
            upstreams: Upstreams::new(&config).map_err(StartError::Upstreams)?,
            config: Arc::new(ConfigHandle::new(config)),
            ledger: shared,
            tasks: TaskTracker::new(),
            observer: Arc::new(FanOut(vec![observer, Arc::<Watch>::clone(&watch)])),
        });
        let front = Front::new(proxy, watch, public_url, listening.address);
        Ok(Self { front, ledger, listening, anchoring, lock })
    }

    /// Where customers reach it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Serves until `stop` ends or the ledger fails; then drains.
    ///
    /// # Errors
    /// What stopped it, when it was not asked to.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), String> {
        let Self { front, ledger, listening, mut anchoring, lock } = self;
        let (started, starting) = tokio::sync::oneshot::channel::<ServerHandle>();
        let serving = server::serve(listening, server::service(&front), |handle| {
            let _ = started.send(handle);
        });
        let ending = async {
            let handle = starting.await.ok();
            let outcome = tokio::select! {
                () = stop => Ok(()),
                why = ledger.fatal() => Err(format!("the ledger has stopped: {why}")),
            };
            front.desk.close();
            if let Some(handle) = handle {
                handle.stop_graceful(Some(DRAIN));
            }
            outcome
        };
        let anchored = async {
            match &mut anchoring {
                Some(anchoring) => anchoring.run().await,
                None => std::future::pending().await,
            }
        };
        let (served, outcome) = tokio::select! {
            done = async { tokio::join!(serving, ending) } => done,
            never = anchored => match never {},
        };
        // Connections are closed; what customers left behind still has to settle.
        front.proxy.tasks.close();
        if tokio::time::timeout(DRAIN, front.proxy.tasks.wait()).await.is_err() {
            tracing::warn!(
                running = front.proxy.tasks.len(),
                "stopping with requests that did not end; the next start recovers their holds"
            );
        }
        ledger.close();
        if let Some(anchoring) = anchoring {
            anchoring.finish().await;
        }
        drop(lock);
        outcome.and(served.map_err(|error| error.to_string()))
    }
}

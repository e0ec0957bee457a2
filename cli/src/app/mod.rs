//! Puts the gateway together: one snapshot, one ledger, the upstreams, the spine and both listeners; starts, follows and drains
//! them.
//!
//! Wiring only. The ledger stops last: every running request gets time to settle before its file is closed, and the
//! admin listener keeps answering until then. What the ledger cannot take until then, it keeps in a file for the next start.

mod admin_token;
mod alerting;
mod anchoring;
mod asking;
pub mod certificates;
mod files_audit;
mod grants;
mod lessons;
mod notify;
mod presence;
pub mod process;
mod reload;
mod settings;
mod top_ups;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arc_swap::ArcSwap;
use farebox_ledger::sqlite::{ServeLock, SqliteLedger};
use farebox_ledger::store::{self, SharedStore};
use farebox_ledger::{AdminToken, LedgerAddress, LedgerError, OpenMode, Opening, SharedLedger};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use anchoring::Anchoring;
use farebox::clock;
use farebox::config::{self, ConfigHandle, Reloader};
use farebox::customer::Activity;
use farebox::events;
use farebox::proxy::record::FanOut;
use farebox::proxy::{Calibrations, Observer, Pins, Proxy, UnderWay, WaitingRoom};
use farebox::server::admin::{self, Admin};
use farebox::server::{self, Connections, Front, Listening, Tls, Workers};
use farebox::telemetry::Telemetry;
use farebox::turns::Turns;
use farebox::upstream::Upstreams;
pub use settings::{Files, Settings, StartError};

/// How long a stopping gateway waits for running requests.
// It is waited twice at most, for connections and for tasks. With the 20 s of a database's closing that stays below the 90 s after which
// a service manager kills.
pub const DRAIN: Duration = Duration::from_secs(30);

/// The same after its ledger has failed: no request that ends now can be charged before the next start.
const DRAIN_UNBOOKED: Duration = Duration::from_secs(2);

/// How often a stopping gateway looks whether the last settlements are written.
const LOOK: Duration = Duration::from_millis(50);

/// A gateway that is ready to serve.
#[derive(Debug)]
pub struct App {
    /// The front door, through which everything else is reached.
    pub front: Arc<Front>,
    /// The ledger, with its lifecycle.
    pub ledger: SharedStore,
    /// What the operator sees.
    pub admin: Arc<Admin>,
    listening: Listening,
    admin_listening: Option<Listening>,
    /// The customers' certificate, and the operator's.
    tls: [Option<Arc<Tls>>; 2],
    /// The operator's wish to read files again.
    hangup: Option<Signal>,
    anchoring: Option<Anchoring>,
    /// What opens the admin listener on loopback.
    admin_token: Option<AdminToken>,
    /// The ledger's file and its lock. A database has neither; its gateways have epochs.
    file: Option<LockedFile>,
}

/// A ledger's file that no other process serves.
type LockedFile = (Arc<SqliteLedger>, ServeLock);

impl App {
    /// Reads the files, takes the ledger, recovers it, records the published slugs and binds the addresses.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running, and a new ledger is made only if the files have no errors.
    pub async fn start(
        settings: &Settings,
        files: impl Into<Files>,
        log: Arc<dyn Observer>,
    ) -> Result<Self, StartError> {
        let tls = certificates::load(settings)?;
        let guard = admin_token::guard(settings)?;
        let (config, reloader) = snapshot(files.into(), &settings.ledger).await?;
        let (ledger, file) = take(settings).await?;
        let anchoring = match &settings.anchors {
            Some(path) => {
                Some(Anchoring::open(path, Arc::clone(&ledger), settings.ledger.path()).await?)
            }
            None => None,
        };
        if let Some(reloader) = &reloader {
            ledger.announce(reloader.status().files());
        }
        recover(&ledger, &config).await?;
        // Before anybody is told that it serves: without a handler the signal ends a process.
        let hangup = signal(SignalKind::hangup()).ok();
        let listening = listen(settings.listen)?;
        let admin_listening = settings.admin_listen.map(listen).transpose()?;
        let (guard, admin_token) = admin_token::write(settings, guard);
        let telemetry = Arc::new(Telemetry::default());
        let activity = Arc::new(Activity::default());
        let proxy = spine(config, &ledger, (&telemetry, &activity, log))?;
        let trusted = settings.trusted_proxies.clone();
        let connections = Connections::with_descriptors(process::descriptors(), trusted.clone());
        let front = Front::new(
            proxy,
            activity,
            public_url(settings, listening.address),
            listening.address,
            trusted,
            settings.cors_origins.clone(),
            connections,
        );
        let admin = Arc::new(Admin {
            front: Arc::clone(&front),
            ledger: Arc::clone(&ledger),
            telemetry,
            reloader,
            guard,
            hosts: settings.admin_hosts.clone(),
            operator: settings.operator.clone(),
            started_at: clock::now(),
            connections: Connections::of_operator(),
            certificates: certificates::shown(&tls),
            last_changes: ArcSwap::default(),
            differ: AtomicBool::new(false),
            books: ArcSwap::default(),
            sums: ArcSwap::default(),
            draining: AtomicBool::new(false),
        });
        Ok(Self {
            front,
            ledger,
            admin,
            listening,
            admin_listening,
            tls,
            hangup,
            anchoring,
            admin_token,
            file,
        })
    }

    /// Where customers reach it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Where the operator reaches it.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_listening
            .as_ref()
            .map(|listening| listening.address)
    }

    /// Serves until `stop` ends or the ledger fails; then drains.
    ///
    /// # Errors
    /// What stopped it, if nobody asked it to stop.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), String> {
        let Self {
            front,
            ledger,
            admin,
            listening,
            admin_listening,
            tls,
            hangup,
            mut anchoring,
            admin_token,
            mut file,
        } = self;
        let mut workers = Workers::start(&listening, tls[0].as_ref(), &front)
            .await
            .map_err(|error| format!("cannot start the threads that serve customers: {error}"))?;
        let aside = Aside::start(&admin, admin_listening, (tls, hangup));
        let serving = async {
            notify::send(config::notify_socket(), notify::READY);
            let outcome = tokio::select! {
                () = stop => Ok(()),
                failed = workers.serve(listening) => Err(failed.to_string()),
                why = ledger.fatal() => {
                    // Its last words have the alert, however soon it ends.
                    admin.look();
                    Err(format!("the ledger stopped: {why}"))
                }
            };
            notify::send(config::notify_socket(), notify::STOPPING);
            admin.drain();
            // Whoever waits for money could wait through the whole drain; told now, it is served elsewhere.
            front.proxy.waiting.stop();
            front.context.close();
            workers.stop(patience(&outcome), &front.connections).await;
            outcome
        };
        let outcome = tokio::select! {
            outcome = serving => outcome,
            never = anchored(&mut anchoring) => match never {},
            never = watched(&mut file, &front.proxy.config) => match never {},
        };
        let by = Instant::now() + patience(&outcome);
        let running = drained(&front.proxy.tasks, by).await;
        settled(&ledger, by).await;
        if outcome.is_ok() {
            lessons::last(&front.proxy).await;
        }
        let mut left = ledger.close();
        left.holds = left.holds.saturating_add(running);
        // Not earlier: the tasks of running requests live on these threads, and so does what they settle.
        drop(workers);
        if let Some(anchoring) = anchoring {
            anchoring.finish().await;
        }
        aside.stop();
        // The lock last: whoever gets it opens a file that nobody writes any more.
        drop((admin_token, file));
        if left.is_nothing() {
            tracing::info!("stopped; {left}");
        } else {
            tracing::warn!("stopped; {left}");
        }
        outcome
    }
}

/// Takes the ledger. A file is locked first, so that no other process serves it.
async fn take(settings: &Settings) -> Result<(SharedStore, Option<LockedFile>), LedgerError> {
    let (mode, durability) = (OpenMode::Serve, settings.durability);
    let Some(path) = settings.ledger.path() else {
        if settings.wal_limit.is_some() {
            return Err(LedgerError::unusable(
                "--wal-limit bounds the log of a SQLite file; PostgreSQL has settings of its own (max_slot_wal_keep_size): leave it out"
                    .to_owned(),
            ));
        }
        let (state, anchors) = (settings.state.clone(), settings.anchors.clone());
        let opening = Opening {
            durability,
            allow_single: settings.allow_single,
            state,
            anchors,
            ..Opening::new(mode)
        };
        let ledger = if settings.new_ledger {
            settings.ledger.create(&opening).await?
        } else {
            settings.ledger.open(&opening).await?
        };
        return Ok((ledger, None));
    };
    // Before the lock's file is made beside it.
    SqliteLedger::check_place(path, settings.new_ledger)?;
    let mut lock = ServeLock::acquire(path, settings.wait_lock)?;
    let ledger = Arc::new(if settings.new_ledger {
        SqliteLedger::create(path, mode, durability)?
    } else {
        SqliteLedger::open(path, mode, durability)?
    });
    lock.record(&ledger)?;
    if let Some(bytes) = settings.wal_limit {
        ledger.limit_log(bytes);
    }
    Ok((Arc::<SqliteLedger>::clone(&ledger), Some((ledger, lock))))
}

/// Books the bills that an earlier run left behind, ends its other holds, and records the published slugs.
// It is done before anybody can connect, so that the first request finds the money that a dead run held.
async fn recover(ledger: &SharedStore, config: &ConfigHandle) -> Result<(), LedgerError> {
    let recovered = ledger.begin(clock::now()).await?;
    if recovered.settled + recovered.released > 0 {
        tracing::warn!(
            settled = recovered.settled,
            released = recovered.released,
            "ended the holds of an earlier run"
        );
    }
    reload::publish(&**ledger, &config.current()).await
}

/// Where customers are told to send their requests.
fn public_url(settings: &Settings, address: SocketAddr) -> String {
    let scheme = settings.tls.as_ref().map_or("http", |_| "https");
    (settings.public_url.clone()).unwrap_or_else(|| format!("{scheme}://{address}"))
}

/// The spine, with its upstreams.
fn spine(
    config: Arc<ConfigHandle>,
    ledger: &SharedStore,
    (telemetry, activity, log): (&Arc<Telemetry>, &Arc<Activity>, Arc<dyn Observer>),
) -> Result<Arc<Proxy>, StartError> {
    let observers: Vec<Arc<dyn Observer>> = vec![
        Arc::<Telemetry>::clone(telemetry),
        Arc::<Activity>::clone(activity),
        log,
    ];
    let shared: SharedLedger = Arc::<dyn store::Store>::clone(ledger);
    Ok(Arc::new(Proxy {
        upstreams: Upstreams::new(&config.current()).map_err(StartError::Upstreams)?,
        config,
        ledger: shared,
        tasks: TaskTracker::new(),
        observer: Arc::new(FanOut(observers)),
        calibrations: Calibrations::default(),
        turns: Turns::start(),
        pins: Pins::default(),
        items: Arc::default(),
        under_way: UnderWay::default(),
        waiting: WaitingRoom::default(),
    }))
}

/// Keeps the anchors, if there are any.
async fn anchored(anchoring: &mut Option<Anchoring>) -> Infallible {
    match anchoring {
        Some(anchoring) => anchoring.run().await,
        None => std::future::pending().await,
    }
}

/// Watches the ledger's file, if it is one.
async fn watched(file: &mut Option<LockedFile>, config: &ConfigHandle) -> Infallible {
    match file {
        Some((ledger, lock)) => presence::watch(ledger, lock, config).await,
        None => std::future::pending().await,
    }
}

/// Connections are closed; requests that customers abandoned still have to settle. Returns how many still run.
async fn drained(tasks: &TaskTracker, by: Instant) -> usize {
    tasks.close();
    match tokio::time::timeout_at(by, tasks.wait()).await {
        Ok(()) => 0,
        Err(_) => tasks.len(),
    }
}

/// Settlements that the ledger could not take are tried until then: space may be freed, a database may come back.
async fn settled(ledger: &SharedStore, by: Instant) {
    let due = ledger.stats().unresolved;
    if due > 0 {
        tracing::warn!("stopping: settlements that wait for the ledger: {due}");
    }
    while ledger.stats().unresolved > 0 && !ledger.stopped() && Instant::now() < by {
        tokio::time::sleep(LOOK).await;
    }
}

/// How long to wait for running requests.
fn patience(outcome: &Result<(), String>) -> Duration {
    if outcome.is_ok() {
        DRAIN
    } else {
        DRAIN_UNBOOKED
    }
}

/// The first snapshot, and the task that follows the files.
async fn snapshot(
    files: Files,
    ledger: &LedgerAddress,
) -> Result<(Arc<ConfigHandle>, Option<Arc<Reloader>>), StartError> {
    match files {
        Files::Fixed(config) => Ok((Arc::new(ConfigHandle::new(*config)), None)),
        Files::Watched {
            catalog,
            routes,
            secrets,
        } => {
            let published = ledger.published().await?;
            let reloader = Reloader::start(&catalog, &routes, secrets, published, || {
                clock::now().millis()
            })
            .map_err(StartError::Configuration)?;
            reload::log_findings(&reloader.status().diagnostics);
            Ok((reloader.handle(), Some(Arc::new(reloader))))
        }
    }
}

fn listen(address: SocketAddr) -> Result<Listening, StartError> {
    server::listen(address).map_err(|error| StartError::Listen(address, error))
}

/// Background tasks that run as long as the gateway does.
struct Aside(Vec<tokio::task::JoinHandle<()>>);

impl Aside {
    /// `tls`: the customers' certificate, and the operator's.
    fn start(
        admin: &Arc<Admin>,
        listening: Option<Listening>,
        (tls, hangup): ([Option<Arc<Tls>>; 2], Option<Signal>),
    ) -> Self {
        let (ask, asked) = mpsc::channel(1);
        let own = tls[1].clone();
        let mut tasks = vec![tokio::spawn(hangups(hangup, ask, tls))];
        if let Some(listening) = listening {
            let (service, connections) = (admin::service(admin), Arc::clone(&admin.connections));
            tasks.push(tokio::spawn(async move {
                if let Err(error) = server::serve(listening, own, connections, service).await {
                    tracing::error!(%error, "the admin listener stopped");
                }
            }));
        }
        tasks.push(tokio::spawn(lessons::exchange(Arc::clone(
            &admin.front.proxy,
        ))));
        let proxy = Arc::clone(&admin.front.proxy);
        tasks.push(tokio::spawn(async move {
            let asking = asking::Asking::new(Arc::clone(&proxy.ledger));
            match proxy.upstreams.probe(asking).await {}
        }));
        let proxy = Arc::clone(&admin.front.proxy);
        tasks.push(tokio::spawn(async move {
            match proxy.waiting.watch(&proxy.ledger).await {}
        }));
        let proxy = Arc::clone(&admin.front.proxy);
        tasks.push(tokio::spawn(async move {
            match proxy.under_way.watch(&proxy.ledger).await {}
        }));
        let front = Arc::clone(&admin.front);
        tasks.push(tokio::spawn(async move {
            match front.proxy.excuse_outages(&front.rate_limits).await {}
        }));
        tasks.extend(webhooks(admin));
        let ledger = Arc::clone(&admin.front.proxy.ledger);
        tasks.push(tokio::spawn(async move {
            match top_ups::watch(ledger).await {}
        }));
        let ledger = Arc::clone(&admin.front.proxy.ledger);
        tasks.push(tokio::spawn(
            async move { match grants::watch(ledger).await {} },
        ));
        tasks.push(tokio::spawn(alerting::watch(Arc::clone(admin))));
        if let Some(reloader) = &admin.reloader {
            let (noted, files) = (Arc::clone(admin), Arc::clone(reloader));
            tasks.push(tokio::spawn(async move {
                if let Err(error) = files_audit::started(&noted, &files).await {
                    tracing::error!(%error, "the audit does not have the files of this start");
                }
            }));
            let following = Arc::new(reload::Following::new(Arc::clone(admin)));
            tasks.push(tokio::spawn(config::watch(
                Arc::clone(reloader),
                asked,
                following,
            )));
        }
        Self(tasks)
    }

    fn stop(self) {
        self.0.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Tells webhooks what happens: events of the ledger, and alerts of this gateway.
fn webhooks(admin: &Arc<Admin>) -> [tokio::task::JoinHandle<()>; 2] {
    let (proxy, telemetry) = (&admin.front.proxy, Arc::clone(&admin.telemetry));
    let news = telemetry.alerts.listen();
    let (ledger, config) = (Arc::clone(&proxy.ledger), Arc::clone(&proxy.config));
    let delivering = async move { match events::deliver(ledger, config, telemetry).await {} };
    let gateway = proxy.ledger.node().map(str::to_owned);
    let config = Arc::clone(&proxy.config);
    let telling = events::tell_alerts(config, gateway, proxy.tasks.clone(), news);
    [tokio::spawn(delivering), tokio::spawn(telling)]
}

/// At each SIGHUP: checks the files and reads the certificates again. A disk that does not answer keeps neither requests nor the files nor
/// the other certificate waiting.
async fn hangups(hangup: Option<Signal>, ask: mpsc::Sender<()>, tls: [Option<Arc<Tls>>; 2]) {
    let Some(mut hangup) = hangup else {
        return;
    };
    // They end with this task.
    let mut readers = tokio::task::JoinSet::new();
    let wake = |tls: Arc<Tls>| {
        let again = Arc::new(Notify::new());
        readers.spawn(certificates::read_again(tls, Arc::clone(&again)));
        again
    };
    let again: Vec<Arc<Notify>> = tls.into_iter().flatten().map(wake).collect();
    while hangup.recv().await.is_some() {
        // A reload that is already waiting covers this one too.
        let _ = ask.try_send(());
        again.iter().for_each(|reader| reader.notify_one());
    }
}

//! The admin listener: on loopback unless the operator says otherwise, over TLS with a certificate of its own.
//!
//! It only reads, except for `/api/v1` (`api`), which has tokens. `/healthz` and `/readyz` are open to everyone who can reach the listener;
//! `/metrics`, which tells what is sold and earned, `/status`, `/live` and `/requests/{id}` are behind the [`Guard`].

mod alerts;
mod api;
mod guard;
mod health;
mod host;
mod live;
mod metrics;
mod requests;
mod sight;
mod status;
mod sums;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use farebox_door::{
    BodyRule, Door, DoorPath, LARGEST_TREE, Method, PathCaller, TurnAway, TurnedAway,
};
use farebox_ledger::Timestamp;
use farebox_ledger::store::SharedStore;
use salvo::catcher::Catcher;
use salvo::http::{HeaderValue, StatusCode};
use salvo::prelude::{CatchPanic, Depot, FlowCtrl, Request, Response, Service, handler};

use super::{Connections, Front, Tls};
use crate::config::{DiffRow, Reloader};
use crate::telemetry::Telemetry;
pub use alerts::BooksSeen;
pub use guard::{Guard, TokenError};
use sight::Sight;
pub use sums::SumsSeen;

/// What the admin listener shows.
#[derive(Debug)]
pub struct Admin {
    /// The gateway.
    pub front: Arc<Front>,
    /// Its ledger, with its lifecycle.
    pub ledger: SharedStore,
    /// What was counted.
    pub telemetry: Arc<Telemetry>,
    /// The state of the watched files; `None` if they are not watched.
    pub reloader: Option<Arc<Reloader>>,
    /// Decides which requests may see more than health.
    pub guard: Guard,
    /// Host names, in addition to `localhost`, that this listener answers to.
    pub hosts: Vec<String>,
    /// This listener's connections.
    pub connections: Arc<Connections>,
    /// The certificates of the listeners, each with the listener's name.
    pub certificates: Vec<(&'static str, Arc<Tls>)>,
    /// Who runs it, for the audit of the files.
    pub operator: String,
    /// When this process began to serve.
    pub started_at: Timestamp,
    /// What the last reload of the files changed, for `/status`.
    pub last_changes: ArcSwap<Vec<DiffRow>>,
    /// The gateways that share the ledger run different files.
    pub differ: AtomicBool,
    /// What of the books has to be told, as it was read last.
    pub books: ArcSwap<BooksSeen>,
    /// The ledger's sums and gateways, as they were read last.
    pub sums: ArcSwap<SumsSeen>,
    /// The gateway is stopping.
    pub draining: AtomicBool,
}

impl Admin {
    /// Marks the gateway as not ready for new requests.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }
}

impl TurnAway for Admin {
    fn turn_away(&self, why: TurnedAway, req: &Request, _: &Depot, res: &mut Response) {
        if req.uri().path().starts_with("/api/") {
            return api::turn_away(why, res);
        }
        let status = StatusCode::from_u16(why.status()).unwrap_or_default();
        text(res, status, format!("{}\n", why.message()));
        if let Some(seconds) = why.retry_after() {
            res.headers_mut().insert("retry-after", seconds.into());
        }
    }
}

/// What answers on a path of the admin listener.
#[derive(Debug, Clone, Copy)]
enum AdminTask {
    Health,
    Ready,
    Metrics,
    Status,
    Live,
    Request,
    OpenApi,
    Api,
}

/// Every path of the admin listener; those of the API are in a table of their own below the last one.
const PATHS: [(DoorPath, AdminTask); 8] = [
    (
        DoorPath::read("/healthz", PathCaller::Monitor),
        AdminTask::Health,
    ),
    (
        DoorPath::read("/readyz", PathCaller::Monitor),
        AdminTask::Ready,
    ),
    (
        DoorPath::read("/metrics", PathCaller::Known),
        AdminTask::Metrics,
    ),
    (
        DoorPath::read("/status", PathCaller::Known),
        AdminTask::Status,
    ),
    (DoorPath::read("/live", PathCaller::Known), AdminTask::Live),
    (
        DoorPath::read("/requests/{id}", PathCaller::Known),
        AdminTask::Request,
    ),
    (
        DoorPath::read("/api/v1/openapi.json", PathCaller::Anybody),
        AdminTask::OpenApi,
    ),
    (
        DoorPath::new(
            Method::Any,
            "/api/v1/{**rest}",
            BodyRule::document(LARGEST_TREE),
            PathCaller::Known,
        ),
        AdminTask::Api,
    ),
];

/// Every path of the admin listener, with what it takes.
pub fn paths() -> Vec<DoorPath> {
    PATHS.iter().map(|(path, _)| *path).collect()
}

fn door(admin: &Arc<Admin>) -> Door {
    let own = || Arc::clone(admin);
    let check = || guard::TokenCheck::new(own(), Sight::Shortened);
    let token = || guard::TokenCheck::new(own(), Sight::Whole);
    let trusted = admin.front.trusted_proxies.clone();
    let door = Door::new(own(), trusted, Arc::default());
    PATHS
        .into_iter()
        .fold(door, |door, (path, task)| match task {
            AdminTask::Health => door.path(path, health::healthz),
            AdminTask::Ready => door.path(path, health::Ready::new(own())),
            AdminTask::Metrics => {
                door.path_behind(path, check(), metrics::MetricsHandler::new(own()))
            }
            AdminTask::Status => door.path_behind(path, check(), status::StatusHandler::new(own())),
            AdminTask::Live => door.path_behind(path, check(), live::LiveHandler::new(own())),
            AdminTask::Request => {
                door.path_behind(path, token(), requests::OneRequestHandler::new(own()))
            }
            AdminTask::OpenApi => door.path(path, api::serve_openapi),
            AdminTask::Api => door.path(path, api::ApiHandler::new(own())),
        })
}

/// The service of all of them.
pub fn service(admin: &Arc<Admin>) -> Service {
    door(admin)
        .service()
        .hoop(host::Arrive::new(Arc::clone(admin)))
        .hoop(CatchPanic::new())
        .catcher(Catcher::default().hoop(AdminNotFound))
}

/// Answers everything that no path matched.
struct AdminNotFound;

#[handler]
impl AdminNotFound {
    async fn handle(&self, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.skip_rest();
        let status = res.status_code.unwrap_or(StatusCode::NOT_FOUND);
        let words = if status == StatusCode::METHOD_NOT_ALLOWED {
            "only GET and HEAD are served here\n"
        } else {
            "served here: /healthz /readyz /metrics /status /live /requests/{id} /api/v1\n"
        };
        text(res, status, words);
    }
}

/// Answers with plain text.
fn text(res: &mut Response, status: StatusCode, words: impl Into<String>) {
    res.status_code(status);
    res.headers_mut().insert(
        "content-type",
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    res.headers_mut()
        .insert("cache-control", HeaderValue::from_static("no-store"));
    res.body(words.into());
}

//! The admin listener: on loopback unless the operator says otherwise, over TLS with a certificate of its own.
//!
//! It only reads, except for `/api/v1` (`api`), which has tokens. `/healthz` and `/readyz` are open to everyone who can reach the listener; `/metrics`, which tells what is sold and
//! earned, `/status`, `/live` and `/requests/{id}` are behind the [`Guard`].

mod alerts;
mod api;
mod guard;
mod health;
mod host;
mod live;
mod metrics;
mod requests;
mod status;
mod sums;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use farebox_ledger::Timestamp;
use farebox_ledger::store::SharedStore;
use salvo::catcher::Catcher;
use salvo::http::{HeaderValue, StatusCode};
use salvo::prelude::{CatchPanic, FlowCtrl, Response, Router, Service, handler};

use super::routes::reading;
use super::{Connections, Front, Tls};
use crate::config::{DiffRow, Reloader};
use crate::telemetry::Telemetry;
pub use alerts::BooksSeen;
pub use guard::{Guard, TokenError};
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
    /// What the last swap changed.
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

/// Every path of the admin listener.
#[must_use]
pub fn service(admin: &Arc<Admin>) -> Service {
    let guarded = |path| Router::with_path(path).hoop(guard::TokenCheck::new(Arc::clone(admin)));
    let router = Router::new()
        .push(Router::with_path("healthz").push(reading().goal(health::healthz)))
        .push(
            Router::with_path("readyz").push(reading().goal(health::Ready::new(Arc::clone(admin)))),
        )
        .push(
            guarded("metrics")
                .push(reading().goal(metrics::MetricsHandler::new(Arc::clone(admin)))),
        )
        .push(guarded("status").push(reading().goal(status::StatusHandler::new(Arc::clone(admin)))))
        .push(guarded("live").push(reading().goal(live::LiveHandler::new(Arc::clone(admin)))))
        .push(
            guarded("requests/{id}")
                .push(reading().goal(requests::OneRequestHandler::new(Arc::clone(admin)))),
        )
        .push(Router::with_path("api/v1/{**rest}").goal(api::ApiHandler::new(Arc::clone(admin))));
    Service::new(router)
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

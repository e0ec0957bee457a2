//! Whether the process is alive, and whether it should get requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use farebox_ledger::Standby;
use salvo::http::StatusCode;
use salvo::prelude::{Response, handler};

use super::{Admin, text};

/// 200 as long as the process answers at all.
#[handler]
pub(super) async fn healthz(res: &mut Response) {
    text(res, StatusCode::OK, "ok\n");
}

/// 200 while requests are served: the ledger accepts writes and the gateway is not stopping.
pub(super) struct Ready {
    admin: Arc<Admin>,
}

#[handler]
impl Ready {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        Self { admin }
    }

    async fn handle(&self, res: &mut Response) {
        match self.admin.obstacle() {
            None if self.admin.ledger.stats().standby == Standby::Single => {
                text(
                    res,
                    StatusCode::OK,
                    "ready, for trials only: no standby has what is confirmed (--allow-single)\n",
                );
            }
            None => text(res, StatusCode::OK, "ready\n"),
            Some(obstacle) => text(
                res,
                StatusCode::SERVICE_UNAVAILABLE,
                format!("not ready: {obstacle}\n"),
            ),
        }
    }
}

impl Admin {
    /// Why requests should go elsewhere. A snapshot is always loaded: without one the gateway does not start.
    pub(super) fn obstacle(&self) -> Option<String> {
        if self.draining.load(Ordering::Relaxed) {
            return Some("the gateway is stopping".to_owned());
        }
        self.ledger
            .obstacle()
            .map(|trouble| trouble.fault.to_string())
    }
}

//! Gives every request its id and arrival time, and every answer the id headers. A client's own id is never used as one.

use std::sync::Arc;

use farebox_ledger::{OperationId, Timestamp};
use salvo::http::HeaderValue;
use salvo::prelude::{Depot, FlowCtrl, Request, Response, handler};
use tokio::time::Instant;

use super::Front;
use super::forwarded;
use crate::clock;
use crate::proxy::{Origin, record};

/// When a request arrived and how it is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) id: OperationId,
    pub(super) at: Timestamp,
    pub(super) instant: Instant,
    pub(super) origin: Origin,
}

impl Arrival {
    fn now(origin: Origin) -> Self {
        Self { id: clock::operation_id(), at: clock::now(), instant: Instant::now(), origin }
    }

    /// The arrival that the stamp noted.
    pub(super) fn of(depot: &Depot) -> Self {
        depot.get_typed::<Self>().copied().unwrap_or_else(|_| Self::now(Origin::default()))
    }

    /// The id as customers see it.
    pub(super) fn shown(&self) -> String {
        record::request_id(self.id)
    }
}

/// The hoop around every path, matched or not.
pub(super) struct Stamp {
    front: Arc<Front>,
}

#[handler]
impl Stamp {
    pub(super) fn new(front: Arc<Front>) -> Self {
        Self { front }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let secure = req.scheme() == &salvo::http::uri::Scheme::HTTPS;
        let origin = forwarded::origin(req.remote_addr().ip(), secure, req.headers(), &self.front.trusted_proxies);
        let arrival = Arrival::now(origin);
        depot.insert_typed(arrival);
        if let Ok(id) = HeaderValue::from_str(&arrival.shown()) {
            res.headers_mut().insert("x-request-id", id.clone());
            res.headers_mut().insert("request-id", id);
        }
        ctrl.call_next(req, depot, res).await;
    }
}

//! Gives every request its id and arrival time, and every answer the id headers. A client's own id is never used as one.

use farebox_ledger::{OperationId, Timestamp};
use salvo::http::HeaderValue;
use salvo::prelude::{Depot, FlowCtrl, Request, Response, handler};
use tokio::time::Instant;

use crate::clock;
use crate::proxy::record;

/// When a request arrived and how it is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) id: OperationId,
    pub(super) at: Timestamp,
    pub(super) instant: Instant,
}

impl Arrival {
    fn now() -> Self {
        Self { id: clock::operation_id(), at: clock::now(), instant: Instant::now() }
    }

    /// The arrival that the stamp noted.
    pub(super) fn of(depot: &Depot) -> Self {
        depot.get_typed::<Self>().copied().unwrap_or_else(|_| Self::now())
    }

    /// The id as customers see it.
    pub(super) fn shown(&self) -> String {
        record::request_id(self.id)
    }
}

/// The hoop around every path, matched or not.
pub(super) struct Stamp;

#[handler]
impl Stamp {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let arrival = Arrival::now();
        depot.insert_typed(arrival);
        if let Ok(id) = HeaderValue::from_str(&arrival.shown()) {
            res.headers_mut().insert("x-request-id", id.clone());
            res.headers_mut().insert("request-id", id);
        }
        ctrl.call_next(req, depot, res).await;
    }
}

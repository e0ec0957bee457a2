//! Paths that do not exist: a 404 whose text names the base URL that the caller should have used. A client that opens a WebSocket for
//! responses gets the status on which current ones go on over HTTP at once.

use std::sync::Arc;

use farebox_protocol::paths;
use salvo::http::StatusCode;
use salvo::http::header::UPGRADE;
use salvo::prelude::{Depot, FlowCtrl, Request, Response, handler};

use super::request_id::Arrival;
use super::{Front, failure};
use crate::proxy::Failure;

/// Answers everything that no path matched.
pub(super) struct NotFound {
    front: Arc<Front>,
}

#[handler]
impl NotFound {
    pub(super) fn new(front: Arc<Front>) -> Self {
        Self { front }
    }

    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        ctrl: &mut FlowCtrl,
    ) {
        ctrl.skip_rest();
        let arrival = Arrival::of(depot);
        let path = req.uri().path().to_owned();
        let family = paths::family_of(&path);
        let base = &self.front.public_url;
        let failure = match res.status_code {
            _ if paths::has_websocket(&path) && wants_websocket(req) => Failure::NoWebSocket,
            Some(StatusCode::NOT_FOUND) | None => Failure::NoPath(paths::explain(&path, base)),
            Some(StatusCode::METHOD_NOT_ALLOWED) => {
                let (path, method) = (paths::shortened(&path), req.method());
                Failure::WrongMethod(format!(
                    "{path} does not take {method}; docs are on {base}/dashboard"
                ))
            }
            Some(_) => Failure::Internal,
        };
        failure::answer(res, &failure, family, &arrival);
    }
}

/// Whether the client opens a WebSocket.
fn wants_websocket(req: &Request) -> bool {
    let wanted = req.headers().get(UPGRADE);
    wanted.is_some_and(|wanted| wanted.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

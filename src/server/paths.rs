//! Paths that do not exist: a 404 whose text names the base URL that the caller should have used.

use std::sync::Arc;

use farebox_protocol::paths;
use salvo::http::StatusCode;
use salvo::prelude::{Depot, FlowCtrl, Request, Response, handler};

use super::request_id::Arrival;
use super::{Front, body, failure};
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

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.skip_rest();
        let arrival = Arrival::of(depot);
        let path = req.uri().path().to_owned();
        let family = paths::family_of(&path);
        body::discard(req, &self.front.proxy.tasks);
        match res.status_code {
            Some(StatusCode::NOT_FOUND) | None => {
                failure::answer(res, &Failure::NoPath(paths::explain(&path, &self.front.public_url)), family, &arrival);
            }
            Some(StatusCode::METHOD_NOT_ALLOWED) => {
                let text = format!(
                    "{} does not take {}; docs are on {}/dashboard",
                    paths::shortened(&path),
                    req.method(),
                    self.front.public_url
                );
                failure::answer(res, &Failure::NoPath(text), family, &arrival);
                res.status_code(StatusCode::METHOD_NOT_ALLOWED);
            }
            Some(_) => failure::answer(res, &Failure::Internal, family, &arrival),
        }
    }
}

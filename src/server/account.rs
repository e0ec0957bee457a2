//! Reading the key's own account: free, also at zero balance, in every response shape that tools expect.

use std::sync::Arc;

use farebox_protocol::Family;
use salvo::http::HeaderValue;
use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use salvo::prelude::{Depot, Request, Response, handler};
use tokio::time::Instant;

use super::request_id::Arrival;
use super::{Front, auth, failure};
use crate::customer::{ProgramAnswer, ProgramQuery};
use crate::proxy::{Failure, RefusedFacts};

/// The handler of one response shape.
pub(super) struct AccountHandler {
    front: Arc<Front>,
    read: ProgramQuery,
}

#[handler]
impl AccountHandler {
    pub(super) fn new(front: Arc<Front>, read: ProgramQuery) -> Self {
        Self { front, read }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let mut known = RefusedFacts::on_free_path();
        match self.answer(req, depot, &mut known).await {
            Ok(document) => {
                res.headers_mut().insert(
                    CONTENT_TYPE,
                    HeaderValue::from_static(document.content_type),
                );
                res.headers_mut()
                    .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                res.body(document.body);
            }
            Err(failure) => {
                let arrival = Arrival::of(depot);
                failure::answer(
                    res,
                    &self.front.refused(failure, Family::Chat, &arrival, known),
                    Family::Chat,
                    &arrival,
                );
            }
        }
    }

    async fn answer(
        &self,
        req: &Request,
        depot: &Depot,
        known: &mut RefusedFacts,
    ) -> Result<ProgramAnswer, Failure> {
        let key = auth::authenticate(&self.front, req, depot, Family::Chat, known).await?;
        let _pass = self.front.rate_limits.enter_free(&key, Instant::now())?;
        if let Some(taken) = self.read.parameters() {
            let unknown = req
                .queries()
                .keys()
                .find(|name| !taken.contains(&name.as_str()));
            if let Some(name) = unknown {
                let message = format!("unknown parameter; this path takes {}", taken.join(", "));
                return Err(Failure::bad_query(
                    &farebox_protocol::paths::shortened(name),
                    message,
                ));
            }
        }
        self.front
            .context
            .read(&key, self.read, &|name| req.query::<String>(name))
            .await
    }
}

//! Free paths: probes without a key, and token counts.

use std::sync::Arc;

use farebox_door::UnreadBody;
use farebox_ledger::Amount;
use farebox_protocol::Family;
use salvo::http::header::{ACCEPT, LOCATION};
use salvo::http::{HeaderValue, StatusCode};
use salvo::prelude::{Depot, Request, Response, handler};
use tokio::time::Instant;

use super::request_id::Arrival;
use super::{Front, auth, decompress, failure, generate};
use crate::proxy::{Failure, RefusedFacts, count, holder};
use crate::turns::Work;

/// Marks a count as the gateway's estimate.
const ESTIMATE_HEADER: &str = "x-farebox-estimate";

/// A cheap 200 for clients that probe whether the server is up.
#[handler]
pub(super) async fn probe(res: &mut Response) {
    res.status_code(StatusCode::OK);
}

/// The root: redirects browsers to the dashboard, and answers programs with the base URLs.
pub(super) struct Home {
    front: Arc<Front>,
}

#[handler]
impl Home {
    pub(super) fn new(front: Arc<Front>) -> Self {
        Self { front }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let accepted = req
            .headers()
            .get(ACCEPT)
            .and_then(|value| value.to_str().ok());
        if accepted.is_some_and(|accepted| accepted.contains("text/html")) {
            res.status_code(StatusCode::SEE_OTHER);
            res.headers_mut()
                .insert(LOCATION, HeaderValue::from_static("/dashboard"));
            return;
        }
        let text = farebox_protocol::paths::explain("/", &self.front.public_url);
        failure::answer(
            res,
            &Failure::NoPath(text),
            Family::Chat,
            &Arrival::of(depot),
        );
    }
}

/// Counts the input tokens of a native or a responses request: asks the upstream if the key has money, else estimates.
pub(super) struct CountTokens {
    front: Arc<Front>,
    family: Family,
}

#[handler]
impl CountTokens {
    pub(super) fn new(front: Arc<Front>, family: Family) -> Self {
        Self { front, family }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let arrival = Arrival::of(depot);
        let mut known = RefusedFacts::on_free_path();
        match self.count(req, depot, &mut known).await {
            Ok(count) => {
                if count.estimated {
                    res.headers_mut()
                        .insert(ESTIMATE_HEADER, HeaderValue::from_static("1"));
                }
                let counted = self.family.protocol().write_count(count.tokens);
                failure::json(res, counted.to_string());
            }
            Err(failure) => {
                let failure = self.front.refused(failure, self.family, &arrival, known);
                failure::answer(res, &failure, self.family, &arrival);
            }
        }
    }

    async fn count(
        &self,
        req: &Request,
        depot: &mut Depot,
        known: &mut RefusedFacts,
    ) -> Result<count::InputTokens, Failure> {
        let key = auth::authenticate(&self.front, req, depot, self.family, known).await?;
        let _pass = self.front.rate_limits.enter_free(&key, Instant::now())?;
        let mut work = Work::of(&self.front.proxy.turns, holder(key.customer.id));
        let (headers, body) = (req.headers(), UnreadBody::of(depot));
        let room = &self.front.body_room;
        let body = decompress::read(headers, body, room, &key, None, &mut work).await?;
        let session = generate::session(headers);
        let headers = generate::forwarded(headers, self.family);
        let account = key.customer.account;
        let ask_upstream = account.balance() > Amount::ZERO;
        count::tokens(
            &self.front.proxy,
            &key,
            (self.family, &body.bytes),
            (headers, session),
            ask_upstream,
            known,
        )
        .await
    }
}

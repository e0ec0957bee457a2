//! Redeems a voucher with a key: free, like reading its account.

use std::sync::Arc;

use farebox_door::{UnreadBody, Visit};
use farebox_ledger::Posted;
use farebox_protocol::{BadRequest, Family};
use salvo::http::HeaderValue;
use salvo::http::header::CACHE_CONTROL;
use salvo::prelude::{Depot, Request, Response, handler};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::request_id::Arrival;
use super::{Front, auth, body, failure};
use crate::proxy::{Failure, RefusedFacts};

/// What is sent.
#[derive(Deserialize)]
struct AskedVoucher {
    code: String,
}

pub(super) struct RedeemHandler {
    front: Arc<Front>,
}

#[handler]
impl RedeemHandler {
    pub(super) fn new(front: Arc<Front>) -> Self {
        Self { front }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let (mut known, arrival) = (RefusedFacts::on_free_path(), Arrival::of(depot));
        res.headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.redeem(req, depot, &mut known).await {
            Ok(posted) => {
                let entry = &posted.entry;
                let document = json!({
                    "amount": entry.amount,
                    "reference": entry.reference,
                    "redeemed_at": entry.at,
                    "repeated": posted.repeated,
                });
                failure::json(res, document.to_string());
            }
            Err(failed) => failure::answer(
                res,
                &self.front.refused(failed, Family::Chat, &arrival, known),
                Family::Chat,
                &arrival,
            ),
        }
    }

    async fn redeem(
        &self,
        req: &Request,
        depot: &mut Depot,
        known: &mut RefusedFacts,
    ) -> Result<Posted, Failure> {
        let front = &self.front;
        let key = auth::authenticate(front, req, depot, Family::Chat, known).await?;
        let _pass = front.rate_limits.enter_free(&key, Instant::now())?;
        let body = UnreadBody::of(depot);
        let read = body::read(body, &front.body_room, &key, None).await?;
        let asked: AskedVoucher = serde_json::from_slice(&read.bytes).map_err(|_| {
            let say = "send the code as JSON: {\"code\":\"FB-XXXX-XXXX-XXXX-XXXX-XXXX\"}";
            BadRequest::at("code", say)
        })?;
        let peer = Visit::of(depot).and_then(|visit| visit.sender.peer());
        Ok(front.context.redeem(&key, peer, &asked.code).await?)
    }
}

//! Redeems a voucher with a key: free, like reading its account. Whoever guesses codes is slowed down.

use std::sync::Arc;

use farebox_ledger::{Act, LedgerError, Posted, Redemption, Refusal, VoucherCode};
use farebox_protocol::{BadRequest, Family};
use salvo::http::HeaderValue;
use salvo::http::header::CACHE_CONTROL;
use salvo::prelude::{Depot, Request, Response, handler};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::request_id::Arrival;
use super::{Front, auth, body, failure};
use crate::clock;
use crate::proxy::{Failure, RefusedFacts};

/// The handler.
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
        match self.redeem(req, depot, &arrival, &mut known).await {
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
        req: &mut Request,
        depot: &Depot,
        arrival: &Arrival,
        known: &mut RefusedFacts,
    ) -> Result<Posted, Failure> {
        let front = &self.front;
        let key = auth::authenticate(front, req, depot, Family::Chat, known).await?;
        let now = Instant::now();
        let _pass = front.rate_limits.enter_free(&key, now)?;
        let (customer, peer) = (key.customer.id, arrival.origin.client);
        let too_many = |wait| {
            let text = "wrong voucher codes; look at the code again, and try it in a minute";
            Failure::RateLimited(text.to_owned(), wait)
        };
        let read = body::read(req, &front.body_room, &key, None).await?;
        let asked: Value = serde_json::from_slice(&read.bytes).unwrap_or_default();
        let typed = asked.get("code").and_then(Value::as_str).ok_or_else(|| {
            refused("send the code as JSON: {\"code\":\"FB-XXXX-XXXX-XXXX-XXXX-XXXX\"}")
        })?;
        front
            .wrong_guesses
            .check(customer, peer, now)
            .map_err(too_many)?;
        let wrong = || {
            front.wrong_guesses.note(customer, peer, now);
            refused(&Refusal::NoSuchVoucher.to_string())
        };
        let code = VoucherCode::parse(typed).ok_or_else(wrong)?;
        let new = Redemption {
            code: code.hash(),
            key: key.id,
            act: Act {
                operation: clock::operation_id(),
                actor: format!("key {}", key.id),
                at: clock::now(),
            },
        };
        match front.ledger().redeem(new).await {
            Err(LedgerError::Refused(Refusal::NoSuchVoucher)) => Err(wrong()),
            Err(LedgerError::Refused(why @ (Refusal::NotApplicable(_) | Refusal::Limit(_)))) => {
                Err(refused(&why.to_string()))
            }
            done => Ok(done?),
        }
    }
}

fn refused(why: &str) -> Failure {
    Failure::BadRequest(BadRequest::at("code", why.to_owned()))
}

//! Admission: the one place where money is held.
//!
//! A refusal is decided from a fresh read of the account and costs no write; only what can be admitted enters the ledger's
//! writer, which checks again in its own transaction. When another request took the money in between, the terms are decided
//! anew from what is left.

use std::sync::Arc;

use farebox_ledger::{Hold, LedgerError, NewHold, Refusal, SharedLedger};
use farebox_protocol::Inspection;

use super::{Failure, Request};
use crate::clock;
use crate::config::Model;
use crate::metering::{Shortfall, Terms, estimate, terms};

/// Tries before a key whose balance keeps changing under us is told to come back.
const TRIES: usize = 4;

/// Holds the money for a request.
///
/// # Errors
/// 403 for a key that is no longer active, 429 without enough money, 503 without a ledger.
pub(super) async fn admit(
    ledger: &SharedLedger,
    request: &Request,
    model: &Model,
    seen: &Inspection,
) -> Result<(Hold, Terms), Failure> {
    let ask = terms::Ask {
        stream: seen.stream,
        declared: seen.limit,
        choices: seen.choices,
        thinking_budget: seen.thinking_budget,
        images: seen.content.pictures.len() as u64,
        one_hour_cache: seen.one_hour_cache,
        estimate: estimate::input(&seen.content, model.limits.context),
    };
    let mut refusal = Failure::Ledger;
    for _ in 0..TRIES {
        // The body may have taken its time to arrive: the key is read again, so that this decision is as fresh as can be.
        let Some(key) = ledger.find_key(request.key.id).await? else {
            return Err(Failure::Unauthenticated("this key is not known"));
        };
        let available = key.account.available();
        let terms = terms::decide(&ask, &model.price, &model.limits, available)
            .map_err(|short| Failure::balance(&model.slug, &short, available, key.account.held))?;
        let new = NewHold {
            request: request.id,
            key: key.id,
            amount: terms.hold,
            slug: model.slug.clone(),
            family: request.family.name().to_owned(),
            // Not the arrival: the body may have come slowly, and the key may have expired meanwhile.
            at: clock::now(),
        };
        match Hold::open(Arc::clone(ledger), new).await {
            Ok(hold) => return Ok((hold, terms)),
            Err(LedgerError::Refused(Refusal::Insufficient { available, held, .. })) => {
                let short = terms::decide(&ask, &model.price, &model.limits, available).err();
                let short = short.unwrap_or(Shortfall { needed: terms.hold, affordable_output: 0 });
                refusal = Failure::balance(&model.slug, &short, available, held);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(refusal)
}

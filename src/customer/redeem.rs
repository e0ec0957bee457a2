//! Redeems a voucher, for programs and for the dashboard. Unknown, void, expired and used by another are one and the same refusal, and
//! whoever guesses codes is slowed down.

use std::net::IpAddr;
use std::time::Duration;

use farebox_ledger::{Key, LedgerError, Posted, Refusal, VoucherCode};
use farebox_protocol::BadRequest;
use tokio::time::Instant;

use super::actor::Actor;
use super::context::Context;
use crate::proxy::Failure;

/// Why a voucher was not redeemed.
#[derive(Debug)]
pub enum NotRedeemed {
    /// What was typed is worth nothing to this customer; the text says why.
    Refused(String),
    /// Too many were wrong; how long to wait.
    TooMany(Duration),
    /// As for any request.
    Failed(Box<Failure>),
}

impl NotRedeemed {
    /// The text for whoever typed the code on a page.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Refused(why) => why.clone(),
            Self::TooMany(_) => {
                "too many codes were wrong; look at this one again, and try it in a minute"
                    .to_owned()
            }
            Self::Failed(failure) => failure.message(),
        }
    }
}

impl From<NotRedeemed> for Failure {
    fn from(not: NotRedeemed) -> Self {
        match not {
            NotRedeemed::Refused(why) => Self::BadRequest(BadRequest::at("code", why)),
            NotRedeemed::TooMany(wait) => {
                let text = "wrong voucher codes; look at the code again, and try it in a minute";
                Self::RateLimited(text.to_owned(), wait)
            }
            NotRedeemed::Failed(failure) => *failure,
        }
    }
}

impl Context {
    /// Credits what a voucher is worth to the customer of a key, once; the same customer gets the same entry again. `peer` is the
    /// network address that the code came from, `typed` is the code in any spelling.
    ///
    /// # Errors
    /// [`NotRedeemed`].
    pub async fn redeem(
        &self,
        key: &Key,
        peer: Option<IpAddr>,
        typed: &str,
    ) -> Result<Posted, NotRedeemed> {
        let now = Instant::now();
        let actor = Actor::of(key, self.ledger.as_ref())
            .map_err(|failure| NotRedeemed::Failed(Box::new(failure)))?;
        let guess = self
            .wrong_guesses
            .begin(key.customer.id, peer, now)
            .map_err(NotRedeemed::TooMany)?;
        let Some(code) = VoucherCode::parse(typed) else {
            guess.was_wrong(now);
            return refused(&Refusal::NoSuchVoucher);
        };
        match actor.redeem(code.hash()).await {
            Ok(posted) => Ok(posted),
            Err(LedgerError::Refused(why @ Refusal::NoSuchVoucher)) => {
                guess.was_wrong(now);
                refused(&why)
            }
            Err(LedgerError::Refused(why @ (Refusal::NotApplicable(_) | Refusal::Limit(_)))) => {
                refused(&why)
            }
            Err(error) => Err(NotRedeemed::Failed(Box::new(error.into()))),
        }
    }
}

fn refused<T>(why: &Refusal) -> Result<T, NotRedeemed> {
    Err(NotRedeemed::Refused(why.to_string()))
}

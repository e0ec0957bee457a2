//! Reservations: credit that is kept free of a token's daily bound while a buyer pays; and their document.

use farebox_ledger::{EndReservation, NewReservation, Reservation, ReservationId, clock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::{CustomerName, Instant, OneLine, ReservationName, Usd};
use super::{Deed, Doer, SellerAct, Unfit};

/// Keep credit free of your daily bound while a buyer pays; its top-up names the reservation and ends it. The same with an id prolongs one
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Reservation")]
pub struct Reserve {
    /// How much, in USD
    pub credit: Usd,
    /// Who is to get it; none if the payment makes a customer
    pub customer: Option<CustomerName>,
    /// The plan that the payment begins, to be renewed by a processor
    pub plan: Option<OneLine>,
    /// When it ends by itself: at most 30 minutes after it was made; 14 days with an id
    pub until: Instant,
    /// The reservation of a checkout that was completed without its payment, to keep it until that comes
    pub id: Option<ReservationName>,
}

impl SellerAct for Reserve {
    type Of = ();
    const EXAMPLE: &'static str = r#"{"credit":"10","until":"2099-01-31T12:00:00Z"}"#;

    async fn deed(self, (): (), doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let new = || ReservationId::from_random(u64::from_be_bytes(clock::random()));
        Ok(NewReservation {
            prolongs: self.id.is_some(),
            id: self.id.map_or_else(new, Into::into),
            customer: self.customer.map(Into::into),
            plan: self.plan.map(Into::into),
            credit: self.credit.0,
            until: self.until.0,
            act: doer.act(),
        }
        .into())
    }
}

/// Give a reservation up; it may be gone
#[derive(Debug, Deserialize, JsonSchema)]
pub struct EndReserved {}

impl SellerAct for EndReserved {
    type Of = ReservationId;

    async fn deed(self, id: ReservationId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let act = doer.act();
        Ok(EndReservation { id, act }.into())
    }
}

/// Credit that is kept for a payment
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reserved")]
pub struct ReservationDocument {
    /// Its id
    pub id: ReservationName,
    /// How much
    pub credit: Usd,
    /// Who is to get it; null if the payment makes a customer
    pub customer: Option<CustomerName>,
    /// When it ends by itself
    pub until: Instant,
}

impl From<&Reservation> for ReservationDocument {
    fn from(kept: &Reservation) -> Self {
        Self {
            id: ReservationName(kept.id),
            credit: Usd(kept.credit),
            customer: kept.customer.map(CustomerName),
            until: Instant(kept.until),
        }
    }
}

//! What a callback does to the books. Every step can be repeated: the payment's own name is its reference in the ledger, for ever.

use farebox_ledger::CustomerId;
use serde_json::json;

use crate::gateway::{ApiFailure, GatewayApi};
use crate::processor::{MoneyBack, PaidCheckout};

/// What became of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Booking {
    /// It stands in the books, or is stored as unapplied: the processor may forget it.
    Done(String),
    /// Not now; the processor is to tell again.
    Later(String),
    /// Never as it is: somebody has to look at it.
    Wrong(String),
}

impl From<ApiFailure> for Booking {
    fn from(failure: ApiFailure) -> Self {
        match failure {
            ApiFailure::Away(why) => Self::Later(why),
            ApiFailure::Refused(status, code, message) => {
                Self::Wrong(format!("the gateway refuses: {status} {code} {message}"))
            }
        }
    }
}

/// Books a paid checkout.
pub(crate) async fn book(api: &GatewayApi, shop: &str, paid: &PaidCheckout) -> Booking {
    let (checkout, reference) = (&paid.checkout, &paid.reference);
    if checkout.shop != shop {
        return Booking::Done("a checkout of another shop".to_owned());
    }
    let asked = (&checkout.currency, checkout.offer.price);
    if asked != (&paid.currency, paid.gross) {
        return Booking::Wrong(format!(
            "{reference}: {} {} was paid where {} {} was asked; nothing was booked",
            paid.gross, paid.currency, asked.1, asked.0
        ));
    }
    match book_on(api, paid).await {
        Ok((customer, status)) => Booking::Done(format!("{reference}: {status} on {customer}")),
        // Another delivery is under way, or the reference is another payment's: the books say which at the next one.
        Err(ApiFailure::Refused(409, code, message)) => {
            Booking::Later(format!("{reference}: {code} {message}"))
        }
        Err(failure) => failure.into(),
    }
}

async fn book_on(
    api: &GatewayApi,
    paid: &PaidCheckout,
) -> Result<(CustomerId, String), ApiFailure> {
    let named = paid.checkout.customer;
    if let Some(customer) = named {
        match top_up(api, customer, paid).await {
            // Nobody has this id. The money came all the same: whoever paid it gets a purse of their own.
            Err(ApiFailure::Refused(404, ..)) => {}
            other => return other.map(|status| (customer, status)),
        }
    }
    let customer = first_customer(api, paid).await?;
    let status = top_up(api, customer, paid).await;
    status.map(|status| (customer, status))
}

/// Books the payment. A name that the books do not take must not keep the money out of them.
async fn top_up(
    api: &GatewayApi,
    customer: CustomerId,
    paid: &PaidCheckout,
) -> Result<String, ApiFailure> {
    let book = |is_named| api.top_up(customer, &paid.reference, &paid.checkout, is_named);
    match book(true).await {
        Err(ApiFailure::Refused(400 | 422, ..)) => book(false).await,
        other => other,
    }
}

/// The customer that a first purchase makes. Its external id is the payment's name, so that it is made once.
async fn first_customer(api: &GatewayApi, paid: &PaidCheckout) -> Result<CustomerId, ApiFailure> {
    let external = &paid.reference;
    if let Some(known) = api.customer_of(external).await? {
        return Ok(known);
    }
    match api.make_customer(external, Some(&paid.checkout)).await {
        Err(ApiFailure::Refused(400 | 409 | 422, ..)) => {}
        other => return other,
    }
    // Made by a delivery at the same time; or a name that the books do not take, which must not keep the money out of them.
    match api.customer_of(external).await? {
        Some(known) => Ok(known),
        None => api.make_customer(external, None).await,
    }
}

/// Tells the books what went back of a payment.
pub(crate) async fn take_back(api: &GatewayApi, back: &MoneyBack) -> Booking {
    let payment = match api.payment(&back.payment).await {
        Ok(Some(payment)) => payment,
        // Events come in any order: this one counts when its payment is booked.
        Ok(None) => {
            return Booking::Later(format!("{}: this payment is not booked yet", back.payment));
        }
        Err(failure) => return failure.into(),
    };
    let body = json!({
        "payment": back.payment,
        "kind": back.kind,
        "cumulative": back.cumulative,
        "reference": back.event,
    });
    match api.reverse(payment.customer, &body, &back.event).await {
        Ok(()) => Booking::Done(format!(
            "{}: {} of {} so far",
            back.payment, back.kind, back.cumulative
        )),
        Err(ApiFailure::Refused(404 | 409, code, message)) => {
            Booking::Later(format!("{}: {code} {message}", back.payment))
        }
        Err(failure) => failure.into(),
    }
}

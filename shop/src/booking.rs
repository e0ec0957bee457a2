//! What a callback does to the books. Every step can be repeated: the payment's own name is its reference in the ledger, for ever.

pub(crate) mod plans;

use farebox_ledger::{Amount, CustomerId, Timestamp, clock};
use serde_json::json;

use crate::checkout::{CardAgreement, Checkout};
use crate::gateway::wishes::Rule;
use crate::gateway::{ApiFailure, GatewayApi, ReservedFor};
use crate::processor::{MoneyBack, PaidCheckout, PaidPeriod};
use crate::settings::CreditOffer;

/// How long a payment that comes later may take, in milliseconds: 14 days.
const LONGEST_WAIT: i64 = 14 * 86_400_000;

/// What became of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Booking {
    /// It stands in the books, or is stored as unapplied: the processor may forget it.
    Done(String),
    /// Not now; the processor is to tell again.
    Later(String),
    /// Nothing to book, and nothing to tell again: somebody has to know of it.
    Odd(String),
    /// Never as it is: somebody has to look at it.
    Wrong(String),
}

impl From<ApiFailure> for Booking {
    fn from(failure: ApiFailure) -> Self {
        match failure {
            ApiFailure::Away(why) => Self::Later(why),
            ApiFailure::Refused(status, code, message, _) => {
                Self::Wrong(format!("the gateway refuses: {status} {code} {message}"))
            }
        }
    }
}

/// Keeps the credit of a checkout whose money comes later, as from a bank.
pub(crate) async fn wait_for(api: &GatewayApi, checkout: &Checkout) -> Booking {
    let Some(reservation) = &checkout.reservation else {
        return Booking::Done("a checkout without a reservation".to_owned());
    };
    let of = ReservedFor {
        credit: checkout.offer.credit,
        customer: checkout.customer,
        plan: None,
        goes_on: Some(reservation),
    };
    let until = Timestamp::from_millis(clock::now().millis().saturating_add(LONGEST_WAIT));
    let once = hex::encode(clock::random::<16>());
    match api.reserve(of, until, &once).await {
        Ok(kept) => Booking::Done(format!("{reservation}: kept until {}", kept.until)),
        // The payment is booked if there is room then, and stored as unapplied if there is none.
        Err(ApiFailure::Refused(_, code, message, _)) => {
            Booking::Done(format!("{reservation}: not kept: {code} {message}"))
        }
        Err(failure) => failure.into(),
    }
}

/// Ends the reservation of a checkout that nobody will pay.
pub(crate) async fn give_up(api: &GatewayApi, checkout: &Checkout) -> Booking {
    let Some(reservation) = &checkout.reservation else {
        return Booking::Done("a checkout without a reservation".to_owned());
    };
    match api.release(reservation).await {
        Ok(()) => Booking::Done(format!("{reservation}: not needed any more")),
        Err(failure) => failure.into(),
    }
}

/// Books a paid checkout.
pub(crate) async fn book(api: &GatewayApi, shop: &str, paid: &PaidCheckout) -> Booking {
    let (checkout, reference) = (&paid.checkout, &paid.reference);
    if checkout.shop != shop {
        return Booking::Done("a checkout of another shop".to_owned());
    }
    match book_on(api, reference, Sale::Credit(paid)).await {
        Ok((customer, status)) => match agree(api, customer, paid).await {
            Ok(()) => Booking::Done(format!("{reference}: {status} on {customer}")),
            Err(failure) => failure.into(),
        },
        // Another delivery is under way, or the reference is another payment's: the books say which at the next one.
        Err(ApiFailure::Refused(409, code, message, _)) => {
            Booking::Later(format!("{reference}: {code} {message}"))
        }
        Err(failure) => failure.into(),
    }
}

/// Books what a stored card paid for a wish, unless that was done when it was charged.
pub(crate) async fn book_again(api: &GatewayApi, shop: &str, paid: &PaidCheckout) -> Booking {
    match api.payment(&paid.reference).await {
        Ok(Some(known)) => Booking::Done(format!("{}: {} before", paid.reference, known.status)),
        Ok(None) => book(api, shop, paid).await,
        Err(failure) => failure.into(),
    }
}

/// Sets the rule to which the buyer agreed on the way to the card. A refusal is told: the payment is booked all the same.
async fn agree(
    api: &GatewayApi,
    customer: CustomerId,
    paid: &PaidCheckout,
) -> Result<(), ApiFailure> {
    let (checkout, reference) = (&paid.checkout, &paid.reference);
    let (Some(per_month), Some(owner)) = (checkout.again, &paid.owner) else {
        return Ok(());
    };
    let CreditOffer {
        plan: _,
        credit,
        price,
        tax,
    } = checkout.offer;
    let agreed = CardAgreement {
        owner: owner.clone(),
        price,
        tax,
        currency: checkout.currency.clone(),
    };
    let rule = Rule {
        threshold: threshold(credit),
        amount: credit,
        per_month,
        agreed: &agreed.kept(),
    };
    let once = format!("again:{reference}");
    match api.set_rule(customer, rule, &once).await {
        Err(ApiFailure::Refused(_, code, message, _)) => {
            tracing::warn!(code, message, %customer, "no automatic top-up was agreed");
            Ok(())
        }
        other => other,
    }
}

/// When the same credit is bought again: a fifth of it is left.
pub(crate) fn threshold(credit: Amount) -> Amount {
    Amount::from_picos(credit.picos() / 5)
}

/// Books on whom a checkout names, or on the customer that its first payment makes.
async fn book_on(
    api: &GatewayApi,
    external: &str,
    sale: Sale<'_>,
) -> Result<(CustomerId, String), ApiFailure> {
    let checkout = &sale.paid().checkout;
    if let Some(customer) = checkout.customer {
        match sale.book(api, customer).await {
            // Nobody has this id. The money came all the same: whoever paid it gets a purse of their own.
            Err(ApiFailure::Refused(404, ..)) => {}
            other => return other.map(|status| (customer, status)),
        }
    }
    let customer = first_customer(api, external, checkout).await?;
    let status = sale.book(api, customer).await;
    status.map(|status| (customer, status))
}

/// What a payment is for.
#[derive(Debug, Clone, Copy)]
enum Sale<'a> {
    Credit(&'a PaidCheckout),
    Period(&'a PaidPeriod),
}

impl Sale<'_> {
    const fn paid(&self) -> &PaidCheckout {
        match self {
            Self::Credit(paid) => paid,
            Self::Period(period) => &period.paid,
        }
    }

    /// Books it. A name that the books do not take must not keep the money out of them.
    async fn book(self, api: &GatewayApi, customer: CustomerId) -> Result<String, ApiFailure> {
        match self.book_as(api, customer, true).await {
            Err(ApiFailure::Refused(400 | 422, ..)) => self.book_as(api, customer, false).await,
            other => other,
        }
    }

    async fn book_as(
        self,
        api: &GatewayApi,
        customer: CustomerId,
        is_named: bool,
    ) -> Result<String, ApiFailure> {
        match self {
            Self::Credit(paid) => api.top_up(customer, paid, is_named).await,
            Self::Period(period) => api.sell_period(customer, period, is_named).await,
        }
    }
}

/// The customer that a first purchase makes. Its external id is the payment's name, or the subscription's, so that it is made once.
async fn first_customer(
    api: &GatewayApi,
    external: &str,
    checkout: &Checkout,
) -> Result<CustomerId, ApiFailure> {
    if let Some(known) = api.customer_of(external).await? {
        return Ok(known);
    }
    match api.make_customer(external, Some(checkout)).await {
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
        "whole": back.whole,
        "reference": back.event,
    });
    match api.reverse(payment.customer, &body, &back.event).await {
        Ok(()) => Booking::Done(format!(
            "{}: {} of {} in {} so far",
            back.payment, back.kind, back.cumulative, back.whole
        )),
        Err(ApiFailure::Refused(404 | 409, code, message, _)) => {
            Booking::Later(format!("{}: {code} {message}", back.payment))
        }
        Err(failure) => failure.into(),
    }
}

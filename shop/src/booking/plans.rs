//! What is told of subscriptions: a period that was paid, another plan, an end. In any order, and however often.

use farebox_ledger::CustomerId;

use super::{Booking, Sale, book_on};
use crate::gateway::{ApiFailure, GatewayApi};
use crate::processor::{PaidPeriod, SubscriptionNews};

/// Books a paid period.
pub(crate) async fn renew(api: &GatewayApi, shop: &str, period: &PaidPeriod) -> Booking {
    let invoice = &period.paid.id;
    if period.paid.checkout.shop != shop {
        return Booking::Done("a subscription of another shop".to_owned());
    }
    match book_on(api, &period.subscription, Sale::Period(period)).await {
        Ok((customer, status)) => Booking::Done(format!("{invoice}: {status} on {customer}")),
        Err(ApiFailure::Refused(409, code, message, _)) => {
            Booking::Later(format!("{invoice}: {code} {message}"))
        }
        Err(failure) => failure.into(),
    }
}

/// Tells the books what became of a subscription.
pub(crate) async fn follow(api: &GatewayApi, shop: &str, news: &SubscriptionNews) -> Booking {
    if news.checkout.shop != shop {
        return Booking::Done("a subscription of another shop".to_owned());
    }
    let name = &news.subscription;
    match follow_on(api, news).await {
        Ok(done) => Booking::Done(format!("{name}: {done}")),
        Err(ApiFailure::Refused(404, ..)) => {
            Booking::Later(format!("{name}: no period of it is booked yet"))
        }
        // As it is, nothing can be done with it any more.
        Err(ApiFailure::Refused(409, code, message, _)) if code == "not_applicable" => {
            Booking::Done(format!("{name}: {message}"))
        }
        Err(ApiFailure::Refused(409, code, message, _)) => {
            Booking::Later(format!("{name}: {code} {message}"))
        }
        Err(ApiFailure::Refused(_, code, message, _)) => {
            Booking::Odd(format!("{name}: {code} {message}"))
        }
        Err(failure @ ApiFailure::Away(_)) => failure.into(),
    }
}

async fn follow_on(api: &GatewayApi, news: &SubscriptionNews) -> Result<String, ApiFailure> {
    let name = &news.subscription;
    let customer = whose(api, news).await?;
    let (id, known) = api.subscription_of(customer, name).await?;
    let known = known.as_ref();
    if news.is_over {
        if known.is_some_and(|of| of.has_ended()) {
            return Ok("ended before".to_owned());
        }
        api.end_plan(&id, &news.event).await?;
        return Ok(format!("{id} is ended"));
    }
    let Some(plan) = &news.checkout.offer.plan else {
        return Ok("it is of no plan".to_owned());
    };
    if known.is_some_and(|of| of.plan == *plan) {
        return Ok(format!("{id} is {plan} already"));
    }
    api.change_plan(&id, plan, &news.event).await?;
    Ok(format!("{id} is {plan} from the next period on"))
}

/// The customer that its first period made, or else whom it was bought for.
async fn whose(api: &GatewayApi, news: &SubscriptionNews) -> Result<CustomerId, ApiFailure> {
    let made = api.customer_of(&news.subscription).await?;
    made.or(news.checkout.customer).ok_or_else(|| {
        let code = "customer_not_found".to_owned();
        ApiFailure::Refused(404, code, String::new(), serde_json::Value::Null)
    })
}

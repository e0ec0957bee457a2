//! Subscriptions: what their invoices paid, what became of them, and the pages on which their owners change a card or cancel.
//!
//! A subscription carries what was asked at its checkout, and each invoice a copy of that. Its payment intents carry nothing, so an intent
//! is known by its invoice.

use std::collections::BTreeMap;

use farebox_ledger::{PlanPeriod, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::{Stripe, StripeList, answered, money, name, nothing};
use crate::checkout::Checkout;
use crate::processor::{
    BadMessage, PaidCheckout, PaidPeriod, ProcessorMessage, SubscriptionNews, Unavailable,
};

/// What a subscription's metadata calls the wish for which it was cancelled.
const END: &str = "farebox_end";

type Metadata = Option<BTreeMap<String, String>>;

#[derive(Deserialize)]
pub(super) struct Invoice {
    id: String,
    /// In seconds since 1970.
    created: i64,
    billing_reason: Option<String>,
    amount_paid: i64,
    currency: String,
    parent: Option<InvoiceParent>,
    lines: StripeList<InvoiceLine>,
}

#[derive(Deserialize)]
struct InvoiceParent {
    subscription_details: Option<InvoiceOfSubscription>,
}

#[derive(Deserialize)]
struct InvoiceOfSubscription {
    subscription: Value,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct InvoiceLine {
    quantity: Option<i64>,
    parent: Option<LineParent>,
}

#[derive(Deserialize)]
struct LineParent {
    subscription_item_details: Option<LineOfItem>,
}

#[derive(Deserialize)]
struct LineOfItem {
    #[serde(default)]
    proration: bool,
}

#[derive(Deserialize)]
struct InvoicePayment {
    /// An object where it was asked for.
    invoice: Value,
    status: String,
    payment: PaidBy,
}

#[derive(Deserialize)]
struct PaidBy {
    payment_intent: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct StripeSubscription {
    id: String,
    status: String,
    customer: Value,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct PortalSession {
    url: String,
}

impl Invoice {
    fn of(&self) -> Option<&InvoiceOfSubscription> {
        self.parent.as_ref()?.subscription_details.as_ref()
    }

    /// Why it is no whole period of one subscription.
    fn oddity(&self) -> Option<String> {
        let reason = self.billing_reason.as_deref().unwrap_or("nothing");
        if !["subscription_create", "subscription_cycle"].contains(&reason) {
            return Some(format!("it is of {reason}, and not of a period"));
        }
        if self.amount_paid == 0 {
            return Some("nothing was paid, as in a trial".to_owned());
        }
        let [line] = &*self.lines.data else {
            return Some(format!("it has {} lines, not 1", self.lines.data.len()));
        };
        let item = line.parent.as_ref();
        let item = item.and_then(|parent| parent.subscription_item_details.as_ref());
        match (line.quantity, item) {
            (Some(1), Some(item)) if !item.proration => None,
            (Some(1), _) => Some("it is of a part of a period".to_owned()),
            (quantity, _) => Some(format!("its quantity is {}", quantity.unwrap_or_default())),
        }
    }
}

/// How often a price is asked for again.
pub(super) fn recurring(period: PlanPeriod) -> (&'static str, u16) {
    match period {
        PlanPeriod::Month => ("month", 1),
        PlanPeriod::Days(days) => ("day", days),
    }
}

/// An invoice that was paid.
pub(super) async fn paid(
    stripe: &Stripe,
    invoice: Invoice,
) -> Result<ProcessorMessage, BadMessage> {
    let Some(of) = invoice
        .of()
        .filter(|of| stripe.is_ours(of.metadata.as_ref()))
    else {
        return nothing("an invoice of no subscription of this shop");
    };
    let id = &invoice.id;
    let odd = |what: &str| Ok(ProcessorMessage::Odd(format!("{id} was paid: {what}")));
    if let Some(what) = invoice.oddity() {
        return odd(&what);
    }
    let checkout = asked(id, of.metadata.as_ref())?;
    let money = money(Some(&invoice.currency), Some(invoice.amount_paid));
    let (Some(subscription), Some((currency, gross))) = (name(Some(&of.subscription)), money)
    else {
        return odd("it names no subscription or no amount");
    };
    let Some(reference) = intent_of(stripe, id).await? else {
        return odd("not by one card payment, whose name could be booked");
    };
    let is_first = invoice.billing_reason.as_deref() == Some("subscription_create");
    Ok(ProcessorMessage::Period(PaidPeriod {
        paid: PaidCheckout {
            id: invoice.id,
            reference,
            checkout,
            currency,
            gross,
            owner: None,
        },
        subscription,
        invoiced_at: Timestamp::from_millis(invoice.created.saturating_mul(1_000)),
        is_first,
    }))
}

/// An invoice whose card was refused: the processor tries again, and the period that runs has its grace.
pub(super) fn failed(stripe: &Stripe, invoice: &Invoice) -> Result<ProcessorMessage, BadMessage> {
    let of = invoice.of();
    let Some(of) = of.filter(|of| stripe.is_ours(of.metadata.as_ref())) else {
        return nothing("an invoice of no subscription of this shop");
    };
    let subscription = name(Some(&of.subscription)).unwrap_or_default();
    let what = format!("{} of {subscription} was not paid", invoice.id);
    Ok(ProcessorMessage::Odd(what))
}

/// A subscription that is another one, or over. It is read as it is now: messages overtake each other.
pub(super) async fn changed(
    stripe: &Stripe,
    event: String,
    told: StripeSubscription,
    before: &Value,
) -> Result<ProcessorMessage, BadMessage> {
    if !stripe.is_ours(told.metadata.as_ref()) {
        return nothing("a subscription of another shop");
    }
    let is_over = told.status == "canceled";
    if !is_over && before.get("metadata").is_none() {
        return nothing("a subscription that is the same plan as before");
    }
    let now = match is_over {
        true => told,
        false => match find(stripe, &told.id).await? {
            Some(now) if now.status != "canceled" => now,
            Some(_) | None => return nothing("a subscription whose end is told"),
        },
    };
    Ok(ProcessorMessage::Subscription(SubscriptionNews {
        checkout: asked(&now.id, now.metadata.as_ref())?,
        event,
        subscription: now.id,
        is_over,
    }))
}

/// What this shop asked.
fn asked(of: &str, metadata: Option<&BTreeMap<String, String>>) -> Result<Checkout, BadMessage> {
    let checkout = metadata.and_then(Checkout::from_pairs);
    let checkout = checkout.filter(|checkout| checkout.offer.plan.is_some());
    checkout.ok_or_else(|| {
        BadMessage::Unreadable(format!("{of}: its metadata is not what this shop wrote"))
    })
}

async fn find(stripe: &Stripe, id: &str) -> Result<Option<StripeSubscription>, Unavailable> {
    let url = stripe.url(&["v1", "subscriptions", id])?;
    let found: Option<StripeSubscription> = answered(stripe.signed(stripe.client.get(url))).await?;
    Ok(found.filter(|found| stripe.is_ours(found.metadata.as_ref())))
}

/// Payments of invoices that a query names.
async fn payments(
    stripe: &Stripe,
    query: &[(&str, &str)],
) -> Result<Vec<InvoicePayment>, Unavailable> {
    let mut url = stripe.url(&["v1", "invoice_payments"])?;
    url.query_pairs_mut().extend_pairs(query);
    let found: Option<StripeList<InvoicePayment>> =
        answered(stripe.signed(stripe.client.get(url))).await?;
    Ok(found.map_or_else(Vec::new, |found| found.data))
}

/// The payment intent of an invoice that was paid with one.
pub(super) async fn intent_of(
    stripe: &Stripe,
    invoice: &str,
) -> Result<Option<String>, Unavailable> {
    let mut found = payments(stripe, &[("invoice", invoice)]).await?;
    found.retain(|of| of.status == "paid");
    Ok(match &*found {
        [only] => name(only.payment.payment_intent.as_ref()),
        _ => None,
    })
}

/// Whether a payment intent without metadata paid for a subscription of this shop.
pub(super) async fn is_of_ours(stripe: &Stripe, intent: &str) -> Result<bool, Unavailable> {
    let query = [
        ("payment[type]", "payment_intent"),
        ("payment[payment_intent]", intent),
        ("expand[]", "data.invoice"),
    ];
    let found = match payments(stripe, &query).await {
        // A key that may not read them has sold no plan.
        Err(Unavailable(why)) if why.starts_with("it answered 403") => return Ok(false),
        found => found?,
    };
    let ours = |payment: InvoicePayment| {
        let invoice = Invoice::deserialize(payment.invoice).ok();
        let of = invoice.as_ref().and_then(Invoice::of);
        of.is_some_and(|of| stripe.is_ours(of.metadata.as_ref()))
    };
    Ok(found.into_iter().any(ours))
}

/// Cancels a subscription at the end of its period. It keeps for which wish: its owner may take that back on the processor's pages, and the
/// shop reads the wish again after each start.
pub(super) async fn end(
    stripe: &Stripe,
    subscription: &str,
    wish: &str,
) -> Result<bool, Unavailable> {
    let Some(found) = find(stripe, subscription).await? else {
        return Ok(false);
    };
    let done = found.metadata.as_ref().and_then(|kept| kept.get(END));
    if found.status == "canceled" || done.is_some_and(|done| done == wish) {
        return Ok(true);
    }
    let kept = format!("metadata[{END}]");
    let pairs = [("cancel_at_period_end", "true"), (&kept, wish)];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let url = stripe.url(&["v1", "subscriptions", subscription])?;
    let once = format!("farebox-end-{wish}");
    let ends: Option<StripeSubscription> = answered(stripe.post(url, &pairs, &once)).await?;
    Ok(ends.is_some())
}

/// Begins a visit of the processor's pages, where the owner of a subscription changes its card or cancels it.
pub(super) async fn portal(
    stripe: &Stripe,
    subscription: &str,
    back: &str,
) -> Result<Option<String>, Unavailable> {
    let Some(found) = find(stripe, subscription).await? else {
        return Ok(None);
    };
    let Some(customer) = name(Some(&found.customer)) else {
        return Ok(None);
    };
    let pairs = [("customer", customer.as_str()), ("return_url", back)];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let url = stripe.url(&["v1", "billing_portal", "sessions"])?;
    let once = hex::encode(farebox_ledger::clock::random::<16>());
    let session: Option<PortalSession> = answered(stripe.post(url, &pairs, &once)).await?;
    Ok(session.map(|session| session.url))
}

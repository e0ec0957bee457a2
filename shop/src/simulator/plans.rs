//! Simulated subscriptions: the page on which a card is charged again at once, fails, or is cancelled, and its money goes back.

use std::sync::Arc;

use farebox_door::FormFields;
use farebox_ledger::Timestamp;
use maud::{Markup, html};

use super::{Callback, SimulatedEvent, SimulatedProcessor};
use crate::checkout::Checkout;
use crate::pages;
use crate::processor::{PaidCheckout, PaidPeriod};

/// What the page does, as its form says it.
const DOES: [(&str, &str, SimulatedEvent); 5] = [
    ("renew", "Pay the next period now", SimulatedEvent::Paid),
    ("fail", "The card is refused", SimulatedEvent::Failed),
    ("cancel", "Cancel", SimulatedEvent::Canceled),
    ("refund", "Pay this payment back", SimulatedEvent::Refunded),
    ("dispute", "Dispute this payment", SimulatedEvent::Disputed),
];

/// A period that was paid now.
pub(super) fn period(
    subscription: String,
    reference: String,
    number: u32,
    checkout: Checkout,
    now: i64,
) -> PaidPeriod {
    PaidPeriod {
        paid: PaidCheckout {
            id: format!("invoice_{reference}"),
            reference,
            currency: checkout.currency.clone(),
            gross: checkout.offer.price,
            owner: None,
            checkout,
        },
        subscription,
        invoiced_at: Timestamp::from_millis(now.saturating_mul(1_000)),
        is_first: number == 0,
    }
}

/// Does what the page's form asks for; `None` if the form is another one.
pub(super) fn posted(
    processor: &Arc<SimulatedProcessor>,
    id: &str,
    form: &FormFields,
) -> Option<Markup> {
    let asked = form.get("does")?;
    let (checkout, _) = processor.open(id)?;
    let (_, title, kind) = DOES.into_iter().find(|(name, ..)| *name == asked)?;
    let mut number: u32 = form.text("payment").parse().unwrap_or_default();
    if kind == SimulatedEvent::Paid {
        number = number.saturating_add(1);
    }
    let callback = Callback::new(kind, id, number);
    processor.send(callback);
    Some(page(id, &checkout, number, Some(title)))
}

/// The page; `number` is the last payment.
pub(super) fn page(id: &str, checkout: &Checkout, number: u32, told: Option<&str>) -> Markup {
    let plan = checkout.offer.plan.as_deref().unwrap_or_default();
    let content = html! {
        h1 { "A simulated subscription" }
        p.lead { (plan) ", " (checkout.offer.price) " " (checkout.currency) " each period. No card is charged." }
        @if let Some(told) = told { p.success role="status" { "Told to the shop: " (told) } }
        form.card method="post" action="/test-cards" {
            input type="hidden" name="checkout" value=(id);
            label for="payment" { "Payment (0 is the first)" }
            input #payment name="payment" type="number" min="0" value=(number);
            label for="does" { "What happens" }
            select #does name="does" {
                @for (name, title, _) in DOES { option value=(name) { (title) } }
            }
            button.primary { "Do it" }
        }
        p { a href="/" { "Back to the shop" } }
    };
    pages::narrow("Test cards", &content)
}

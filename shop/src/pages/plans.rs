//! What an owner is shown of plans, and what an offer of one says.

use farebox_ledger::CustomerId;
use maud::{Markup, html};

use crate::gateway::plans::OwnPlan;
use crate::plan_row::PlanRow;
use crate::receipts;

/// What each period of a plan gives.
pub(super) fn terms(plan: &PlanRow) -> Markup {
    html! {
        span.hint {
            (plan.terms.allowance) " USD to use"
            @for window in &plan.terms.windows { ", " (window.usd) " per " (window.per) }
        }
    }
}

/// What is left of plans, with the way to card and cancelling.
pub(super) fn left(has: &[OwnPlan], customer: CustomerId, proof: &str) -> Markup {
    html! {
        @if !has.is_empty() {
            section.card aria-labelledby="plans" {
                h2 #plans { "What you have left" }
                @for of in has {
                    p {
                        strong { (of.title) } ": "
                        @match &of.period {
                            // With what was carried there is more than one period gives.
                            Some(period) if period.remaining > period.allowance => { (period.remaining) " USD" },
                            Some(period) => { (period.remaining) " of " (period.allowance) " USD" },
                            None => { (of.status) },
                        }
                        @if of.status == "paused" { ", paused" }
                        @else if let Some(until) = of.paid_until {
                            @let until = receipts::to_the_minute(&until.to_string());
                            @if of.is_renewed() { ", next payment at " (until) }
                            @else { ", paid until " (until) }
                        }
                    }
                    @if of.is_renewed() {
                        form method="post" action="/portal" {
                            input type="hidden" name="proof" value=(proof);
                            input type="hidden" name="customer" value=(customer);
                            input type="hidden" name="subscription" value=(of.id);
                            button { "Change the card or cancel" }
                        }
                    }
                }
            }
        }
    }
}

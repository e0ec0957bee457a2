//! Caps on the dashboard: bars of what is used, whose they are, and the forms with which an owner sets and clears them.

use farebox_ledger::{Amount, CapInterval, CapMaker, Caps, CountedCap, Scope, UtcDay};
use maud::{Markup, html};

use super::display;

pub(super) fn bars(scope: Scope, caps: &Caps, today: UtcDay) -> Markup {
    html! { @if !caps.is_empty() { ul.caps {
        @for counted in caps.iter() { li { (bar(scope, counted, today)) } }
    } } }
}

/// The bars with whose they are; each that an owner has set with a form that removes it, at this path and of this name, for whoever may.
pub(super) fn list(
    scope: Scope,
    caps: &Caps,
    today: UtcDay,
    clear: Option<(&String, &str)>,
) -> Markup {
    html! {
        @if caps.is_empty() { p.empty { "None." } } @else { ul.caps { @for counted in caps.iter() { li {
            (bar(scope, counted, today))
            span.hint { (whose(counted)) }
            @if let (Some((path, once)), Some(_)) = (clear, counted.limits().owner) {
                form method="post" action=(path) {
                    input type="hidden" name="once" value=(once);
                    input type="hidden" name="interval" value=(counted.cap.interval.as_str());
                    input type="hidden" name="model" value=(counted.cap.model.as_deref().unwrap_or_default());
                    button.quiet { "Remove" span.hidden { " the cap of " (counted.cap) } }
                }
            }
        } } } }
    }
}

/// Who set a cap, and what the other one set.
fn whose(counted: &CountedCap) -> Markup {
    html! { @match (counted.made_by, counted.beside) {
        (CapMaker::Seller, None) => "Set by the seller.",
        (CapMaker::Seller, Some(owner)) => { "Set by the seller; " (display::money(owner)) " USD are set here." }
        (CapMaker::Owner, None) => "Set here.",
        (CapMaker::Owner, Some(seller)) => { "Set here; the seller's limit is " (display::money(seller)) " USD." }
    } }
}

fn bar(scope: Scope, counted: &CountedCap, today: UtcDay) -> Markup {
    let state = counted.reached(scope, today, Amount::ZERO);
    let used = state.cap.limit.picos().saturating_sub(state.room.picos());
    html! {
        span {
            @if matches!(scope, Scope::Customer(_)) { "All keys: at most " } @else { "At most " } (state.cap) ": " (display::money(state.room)) " USD left"
            @if let Some(at) = state.resets_at { ", starts again " (display::time(at)) " UTC" }
        }
        meter aria-label={ "Used of the cap of " (state.cap) } min="0" max=(state.cap.limit.picos()) value=(used) {}
    }
}

/// The fields of a cap. `id` makes their ids unique on a page.
pub(super) fn fields(id: &str, models: &[String], is_required: bool) -> Markup {
    let of = |name: &str| format!("{id}-{name}");
    html! {
        div { label for=(of("limit")) { "At most (USD)" }
            input id=(of("limit")) name="limit" inputmode="decimal" autocomplete="off" placeholder="5.00" required[is_required]; }
        div { label for=(of("interval")) { "By" } select id=(of("interval")) name="interval" {
            @for interval in CapInterval::ALL { option value=(interval.as_str()) selected[interval == CapInterval::Month] {
                (match interval { CapInterval::Total => "in all", other => other.as_str() })
            } }
        } }
        div { label for=(of("model")) { "Model" } select id=(of("model")) name="model" {
            option value="" { "All" }
            @for slug in models { option value=(slug) { (slug) } }
        } }
    }
}

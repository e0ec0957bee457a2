//! Caps on the dashboard: bars of what is used, and the forms with which an owner sets and clears them.

use farebox_ledger::{Amount, CapInterval, Caps, CountedCap, Scope, UtcDay};
use maud::{Markup, html};

use super::shown;

/// The bars.
pub(super) fn bars(scope: Scope, caps: &Caps, today: UtcDay) -> Markup {
    html! { @if !caps.is_empty() { ul.caps {
        @for counted in caps.iter() { li { (bar(scope, counted, today)) } }
    } } }
}

/// The bars, each with a form that removes its cap.
pub(super) fn editable(
    scope: Scope,
    caps: &Caps,
    today: UtcDay,
    (clear, once): (&str, &str),
) -> Markup {
    html! {
        @if caps.is_empty() { p.empty { "None." } } @else { ul.caps { @for counted in caps.iter() { li {
            (bar(scope, counted, today))
            form method="post" action=(clear) {
                input type="hidden" name="once" value=(once);
                input type="hidden" name="interval" value=(counted.cap.interval.as_str());
                input type="hidden" name="model" value=(counted.cap.model.as_deref().unwrap_or_default());
                button.quiet { "Remove" span.hidden { " the cap of " (counted.cap) } }
            }
        } } } }
    }
}

fn bar(scope: Scope, counted: &CountedCap, today: UtcDay) -> Markup {
    let state = counted.reached(scope, today, Amount::ZERO);
    let used = state.cap.limit.picos().saturating_sub(state.room.picos());
    html! {
        span {
            @if matches!(scope, Scope::Customer(_)) { "All keys: at most " } @else { "At most " } (state.cap) ": " (shown::money(state.room)) " USD left"
            @if let Some(at) = state.resets_at { ", starts again " (shown::time(at)) " UTC" }
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

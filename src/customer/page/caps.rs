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
        (CapMaker::Seller, None) if counted.is_default() => "The seller's default.",
        (CapMaker::Seller, None) => "Set by the seller.",
        (CapMaker::Seller, Some(owner)) => { "Set by the seller; " (display::money(owner)) " USD are set here." }
        (CapMaker::Owner, None) => "Set here.",
        (CapMaker::Owner, Some(seller)) => { "Set here; the seller's limit is " (display::money(seller)) " USD." }
    } }
}

fn bar(scope: Scope, counted: &CountedCap, today: UtcDay) -> Markup {
    let state = counted.reached(scope, today, Amount::ZERO);
    let gauge = Gauge::of(state.spent, state.held, state.cap.limit);
    html! {
        span {
            @if matches!(scope, Scope::Customer(_)) { "All keys: at most " } @else { "At most " } (state.cap) ": " (display::money(state.room)) " USD left"
            @if let Some(at) = state.resets_at { ", starts again " (display::time(at)) " UTC" }
        }
        (gauge.draw(&format!("Used of the cap of {}", state.cap)))
    }
}

/// How much of a limit is used, and held by running requests, in thousandths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gauge {
    spent: Amount,
    held: Amount,
    limit: Amount,
}

impl Gauge {
    /// From so much on, the bar has the colour of what is low.
    const NEARLY: i64 = 800;
    const ALL: i64 = 1_000;

    pub(super) const fn of(spent: Amount, held: Amount, limit: Amount) -> Self {
        Self { spent, held, limit }
    }

    /// Thousandths of the limit; of one of nothing, all is used.
    fn part(self, amount: Amount) -> i64 {
        let whole = i128::from(self.limit.picos()).max(1);
        let least = i128::from(amount.is_positive() && self.limit.is_positive());
        let part = i128::from(amount.picos()) * i128::from(Self::ALL) / whole;
        let part = if self.limit.is_positive() {
            part.max(least)
        } else {
            i128::from(Self::ALL)
        };
        i64::try_from(part.clamp(0, i128::from(Self::ALL))).unwrap_or(Self::ALL)
    }

    /// The bar, and beside it the same in figures.
    pub(super) fn draw(self, name: &str) -> Markup {
        let spent = self.part(self.spent);
        let used = self.spent.checked_add(self.held).unwrap_or(self.limit);
        let used = self.part(used).max(spent);
        let level = match used {
            Self::ALL.. => "full",
            Self::NEARLY.. => "nearly",
            _ => "some",
        };
        let said = format!(
            "{} of {} USD used, {} held by running requests",
            self.spent, self.limit, self.held
        );
        html! { span.gauge {
            span.bar role="meter" aria-label=(name) aria-valuemin="0" aria-valuemax=(Self::ALL) aria-valuenow=(used) aria-valuetext=(said) {
                svg class=(level) aria-hidden="true" viewBox=(format!("0 0 {} 1", Self::ALL)) preserveAspectRatio="none" {
                    rect.used width=(spent) height="1" {}
                    rect.held x=(spent) width=(used - spent) height="1" {}
                }
            }
            span.figures {
                (display::money(self.spent)) " of " (display::money(self.limit)) " USD"
                @if self.held.is_positive() { ", " (display::money(self.held)) " held" }
                " · " strong { (used / 10) "%" }
            }
        } }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(spent: &str, held: &str, limit: &str) -> String {
        let [spent, held, limit] =
            [spent, held, limit].map(|usd| Amount::from_usd_str(usd).unwrap());
        Gauge::of(spent, held, limit).draw("a cap").into_string()
    }

    #[test]
    fn a_bar_is_as_long_as_its_figures_say() {
        for (spent, held, limit, level, widths, percent) in [
            ("0", "0", "5.00", "some", (0, 0), "0%"),
            ("3.20", "0", "5.00", "some", (640, 0), "64%"),
            ("3.20", "0.80", "5.00", "nearly", (640, 160), "80%"),
            ("3.20", "1.80", "5.00", "full", (640, 360), "100%"),
            ("5.01", "0", "5.00", "full", (1_000, 0), "100%"),
            ("0.0001", "0", "5.00", "some", (1, 0), "0%"),
            ("0", "0", "0", "full", (1_000, 0), "100%"),
        ] {
            let bar = drawn(spent, held, limit);
            let (used, waits) = widths;
            for part in [
                format!(r#"<svg class="{level}""#),
                format!(r#"<rect class="used" width="{used}""#),
                format!(r#"<rect class="held" x="{used}" width="{waits}""#),
                format!("<strong>{percent}</strong>"),
            ] {
                assert!(
                    bar.contains(&part),
                    "{spent}, {held}, {limit}: {part}: {bar}"
                );
            }
            assert_eq!(bar.contains(" held · "), held != "0", "{bar}");
        }
    }
}

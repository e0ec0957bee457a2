//! Plans on the dashboard: what of the available money they give and what binds them, their bars, and a card for each. For owners alone:
//! a member sees nothing of its customer's money.

use farebox_ledger::{Amount, Key, OverPeriod, PlanAfter, SubscriptionStatus, Timestamp};
use farebox_selling::dates;
use farebox_selling::subscription::{PlanPeriodDocument, PlanWindowDocument, SubscriptionDocument};
use maud::{Markup, html};

use super::caps::Gauge;
use super::keys::{OwnerPage, looks_only, once, problem};
use super::table::{column, head, table};
use super::{display, grants};

/// The subscriptions that an owner sees, each with the period that can be used.
fn running(key: &Key, now: Timestamp) -> Vec<(SubscriptionDocument, PlanPeriodDocument)> {
    let seen = key.customer.grants.plans.iter().filter(|_| key.is_owner);
    let with_period = |of| {
        let mut of = SubscriptionDocument::of(of, &key.customer, now);
        let period = of.period.take()?;
        Some((of, period))
    };
    seen.filter_map(with_period).collect()
}

/// What of the available money is of plans: `4.00 of it from Coder, monthly until 1 December`.
pub(super) fn available(key: &Key, now: Timestamp) -> Markup {
    html! { @for (of, period) in running(key, now) { @if period.available.0.is_positive() {
        dd.beside {
            (display::money(period.available.0)) " of it from " (of.title) (until(&period, now))
            (grants::models(of.terms.models.as_ref()))
        }
    } } }
}

/// ` until 1 December`; nothing while a seller has stopped its time.
fn until(period: &PlanPeriodDocument, now: Timestamp) -> String {
    match period.usable_until {
        Some(_) => format!(" until {}", dates::in_words(period.ends_at.0, now)),
        None => String::new(),
    }
}

/// What is used up of plans, when it opens again, and what pays until then.
pub(super) fn used_up(key: &Key, now: Timestamp) -> Vec<String> {
    let words = |(of, period): (SubscriptionDocument, PlanPeriodDocument)| {
        let opens = opens(&of, &period)?;
        let until = dates::in_words(opens, now);
        let pays = match of.terms.after.0 {
            PlanAfter::Stop => "its models are refused until then",
            PlanAfter::Balance => "your balance pays until then",
        };
        Some(format!("{} is used up until {until}; {pays}.", of.title))
    };
    running(key, now).into_iter().filter_map(words).collect()
}

/// When there is more of a period of which nothing can be taken now; `None` of one that is paused, or of which something can.
fn opens(of: &SubscriptionDocument, period: &PlanPeriodDocument) -> Option<Timestamp> {
    period.usable_until?;
    if period.available.0.is_positive() {
        return None;
    }
    let free = period.remaining.0 > period.held.0;
    let next_period = (!free).then_some(period.ends_at.0);
    let closed = of
        .windows
        .iter()
        .filter(|window| !window.available.0.is_positive());
    let windows = closed.filter_map(|window| window.opens_at);
    windows.map(|at| at.0).chain(next_period).max()
}

/// The bars of what runs.
pub(super) fn bars(key: &Key, now: Timestamp) -> Markup {
    html! { @for (of, period) in running(key, now) { (gauges(&of, &period, now)) } }
}

/// How much of a period and of each window is used.
fn gauges(of: &SubscriptionDocument, period: &PlanPeriodDocument, now: Timestamp) -> Markup {
    let (all, left) = (period.allowance.0, period.remaining.0);
    let used = all.checked_sub(left).unwrap_or_default();
    // What was carried is used first, and is no part of the allowance.
    let used = used.max(Amount::ZERO);
    html! { ul.caps {
        li {
            span { (of.title) ": " (display::money(left)) " USD left" (until(period, now)) }
            (Gauge::of(used, period.held.0, all).draw(&format!("Used of {}", of.title)))
        }
        @for window in &of.windows { li { (gauge(of, window, now)) } }
    } }
}

fn gauge(of: &SubscriptionDocument, window: &PlanWindowDocument, now: Timestamp) -> Markup {
    let per = per(&window.per);
    let bar = Gauge::of(window.used.0, window.held.0, window.bound.0);
    html! {
        span {
            "At most " (display::money(window.bound.0)) " USD per " (per) ": " (display::money(window.available.0)) " USD left"
            @match window.opens_at {
                Some(at) => { ", starts again " (dates::in_words(at.0, now)) }
                None => ", begins with the next request",
            }
        }
        (bar.draw(&format!("Used of {} per {per}", of.title)))
    }
}

/// `5 hours`, `day`.
fn per(word: &str) -> String {
    match word.strip_suffix('h') {
        Some("1") => "hour".to_owned(),
        Some(hours) => format!("{hours} hours"),
        None => word.to_owned(),
    }
}

// --- the view ---

/// What a card shows.
#[derive(Debug)]
pub(in crate::customer) struct PlanCard {
    pub(in crate::customer) of: SubscriptionDocument,
    /// Its periods that are over, newest first.
    pub(in crate::customer) over: Vec<OverPeriod>,
    /// Nothing is offered any more that its running period is for.
    pub(in crate::customer) is_dead: bool,
}

/// A card for each subscription.
pub(in crate::customer) fn page(page: OwnerPage<'_>, all: &[PlanCard]) -> Markup {
    html! {
        h1 { "Plans" }
        (problem(page.problem))
        (looks_only(page))
        @if all.is_empty() { p.empty { "This account has no plan." } }
        @for one in all { (card(page, one)) }
    }
}

fn card(page: OwnerPage<'_>, PlanCard { of, over, is_dead }: &PlanCard) -> Markup {
    let status = of.status.0;
    let class = match status {
        SubscriptionStatus::Active => "pill good",
        SubscriptionStatus::Lapsed => "pill bad",
        SubscriptionStatus::Paused | SubscriptionStatus::Ended => "pill warn",
    };
    html! { section.card aria-labelledby=(of.id) {
        h2 id=(of.id) { (of.title) " " span class=(class) { (status.as_str()) } }
        p { (state(of, page.now)) }
        p.hint { (gives(of)) }
        @if *is_dead {
            p.problem { "None of the models that this period pays for is offered any more. Ask the seller for another plan." }
        }
        @if let Some(period) = &of.period { (gauges(of, period, page.now)) }
        @if !over.is_empty() { h3 { "Past periods" } (past(over)) }
        (end(page, of))
    } }
}

/// Where it is, in words: what is paid, and what comes next.
fn state(of: &SubscriptionDocument, now: Timestamp) -> String {
    let day = |at| dates::in_words(at, now);
    let until = of.paid_until.map(|at| day(at.0)).unwrap_or_default();
    let ahead = match of.paid_ahead {
        0 => String::new(),
        1 => ", with the next period".to_owned(),
        ahead => format!(", with {ahead} more periods"),
    };
    let Some(period) = &of.period else {
        return match of.status.0 {
            SubscriptionStatus::Ended => "It has ended, and nothing of it is left.".to_owned(),
            SubscriptionStatus::Active
            | SubscriptionStatus::Lapsed
            | SubscriptionStatus::Paused => {
                "Its last period is over, and the next one is not paid.".to_owned()
            }
        };
    };
    match (of.status.0, period.usable_until) {
        (SubscriptionStatus::Ended, _) => {
            format!("It is renewed no more. What is paid runs until {until}{ahead}.")
        }
        (SubscriptionStatus::Paused, _) => format!(
            "The seller has stopped its time. What is left of period {} stays as it is until it goes on.",
            period.number
        ),
        (SubscriptionStatus::Active | SubscriptionStatus::Lapsed, Some(end))
            if period.ends_at.0 <= now =>
        {
            format!(
                "Period {} ended on {until}. It can be used until {} while the next payment is on its way.",
                period.number,
                day(end.0)
            )
        }
        (SubscriptionStatus::Active | SubscriptionStatus::Lapsed, _) if of.paid_ahead > 0 => {
            format!("Paid until {until}{ahead}.")
        }
        (SubscriptionStatus::Active | SubscriptionStatus::Lapsed, _) => {
            format!("Paid until {until}. The next period begins then, once it is paid.")
        }
    }
}

/// What it costs and gives.
fn gives(of: &SubscriptionDocument) -> Markup {
    let terms = &of.terms;
    let then = match terms.after.0 {
        PlanAfter::Balance => "your balance pays",
        PlanAfter::Stop => "requests are refused until the next window or period",
    };
    let per = match terms.period.strip_suffix('d') {
        Some(days) => format!("{days} days"),
        None => terms.period.clone(),
    };
    html! {
        (display::money(terms.allowance.0)) " USD of use per " (per)
        (grants::models(terms.models.as_ref()))
        @if terms.price.0.is_positive() { ", for " (display::money(terms.price.0)) " USD without tax" }
        ". When it is used up, " (then) "."
        @if terms.carry.0.is_positive() { " At most " (display::money(terms.carry.0)) " USD of what is left move into the next period." }
    }
}

fn past(over: &[OverPeriod]) -> Markup {
    let columns = [
        head("Period"),
        column("From (UTC)", "time"),
        column("To (UTC)", "time"),
        column("Given", "number"),
        column("Used", "number cost"),
        column("Carried on", "number"),
    ];
    let places = |of: fn(&OverPeriod) -> Amount| display::places(over.iter().map(of));
    let given = places(|over| over.given);
    let used = places(|over| over.used.unwrap_or_default());
    let carried = places(|over| over.carried);
    let at = |at: Timestamp| html! { time datetime=(at) { (display::format(at, "%b %d, %Y")) } };
    let rows = over.iter().map(|over| {
        vec![
            html! { (over.period.number) },
            at(over.period.begins),
            at(over.ended),
            html! { (display::aligned(over.given, given)) },
            html! { @match over.used { Some(sum) => (display::aligned(sum, used)), None => "paid back" } },
            html! { (display::aligned(over.carried, carried)) },
        ]
    });
    html! {
        (table("stacked", "Past periods, newest first", &columns, rows))
        p.hint { "What requests that ran at a period's end gave back later counts as used." }
    }
}

/// How it is ended, for whoever may.
fn end(page: OwnerPage<'_>, of: &SubscriptionDocument) -> Markup {
    let is_ended = of.status.0 == SubscriptionStatus::Ended;
    let at_shop = of.processor.is_some() && page.has_shop;
    html! {
        @if of.end_wanted && !is_ended {
            p { "You asked for its end, and the seller was told. What is paid still runs." }
        }
        @if at_shop && !is_ended {
            p.hint { "It is renewed with a card at the seller's shop, and ended there." }
        }
        @if page.may_act && !is_ended { div.screen {
            @if !of.end_wanted {
                form.inline method="post" action="/dashboard/plans/end" {
                    (once(page))
                    input type="hidden" name="plan" value=(of.id);
                    button { "End this plan" span.hidden { ": " (of.title) } }
                }
            }
            @if at_shop { form.inline method="post" action="/dashboard/shop" { (once(page)) button { "To the shop" } } }
        } }
    }
}

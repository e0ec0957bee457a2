//! Credit that may end: what of the available money comes from it, and all of it as a list. For owners alone: a member sees nothing of
//! its customer's money.

use farebox_ledger::{Grant, GrantKind, GrantRecord, Key, Timestamp};
use farebox_selling::dates;
use maud::{Markup, html};

use super::display;
use super::table::{column, table};

/// Grants that the first view names.
const NAMED: usize = 3;

/// What is available until when, in the order of use, beside plans: `3.00 of it until 1 December`.
pub(super) fn available(key: &Key, now: Timestamp) -> Markup {
    let usable = if key.is_owner {
        key.customer.grants.usable()
    } else {
        Vec::new()
    };
    let bound: Vec<&Grant> = (usable.into_iter())
        .filter(|grant| grant.free().is_positive() && grant.kind != GrantKind::Plan)
        .filter(|grant| grant.expires_at.is_some() || grant.models.is_some())
        .collect();
    let more = bound.len().saturating_sub(NAMED);
    html! {
        @for grant in bound.iter().take(NAMED) {
            dd.beside { (display::money(grant.free())) " of it" (until(grant, now)) (models(grant.models.as_ref())) }
        }
        @if more > 0 { dd.beside { "and " (more) " more" } }
    }
}

fn until(grant: &Grant, now: Timestamp) -> String {
    let end = grant
        .expires_at
        .map(|end| format!(" until {}", dates::in_words(end, now)));
    end.unwrap_or_default()
}

/// The slugs that credit is for, if it is not for all.
pub(super) fn models(slugs: Option<&Vec<String>>) -> Markup {
    html! { @if let Some(slugs) = slugs { " for " (slugs.join(", ")) } }
}

/// Every grant, newest first.
pub(super) fn list(grants: &[GrantRecord], now: Timestamp) -> Markup {
    let columns = [
        column("Given (UTC)", "time"),
        column("What", "name"),
        column("USD", "number cost"),
        column("Left", "number"),
        column("Until", ""),
        column("State", ""),
    ];
    let amounts = display::places(grants.iter().map(|record| record.grant.amount));
    let left = display::places(grants.iter().map(|record| record.grant.remaining_at(now)));
    let rows = grants.iter().map(|record| {
        let grant = &record.grant;
        vec![
            html! { time datetime=(record.created_at) { (display::format(record.created_at, "%b %d, %Y")) } },
            html! { (what(grant.kind)) (models(grant.models.as_ref())) },
            html! { (display::aligned(grant.amount, amounts)) },
            html! { (display::aligned(grant.remaining_at(now), left)) },
            html! { @match grant.expires_at { Some(end) => (dates::in_words(end, now)), None => "–" } },
            html! { (grant.status_at(now).as_str()) },
        ]
    });
    html! { @if !grants.is_empty() {
        section.card aria-labelledby="grants" {
            h2 #grants { "Given credit" }
            (table("stacked", "Given credit, newest first", &columns, rows))
        }
    } }
}

/// Of a plan's period with the way to the plans: when the last one has ended, no other page names them.
fn what(kind: GrantKind) -> Markup {
    match kind {
        GrantKind::Promotional => html! { "Given" },
        GrantKind::Paid => html! { "Paid" },
        GrantKind::Plan => html! { a href="/dashboard/plans" { "Period of a plan" } },
    }
}

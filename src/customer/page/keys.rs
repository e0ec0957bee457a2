//! The owner's views: the customer's keys and caps, one key, and a secret that is shown once.

use farebox_ledger::{Amount, Caps, Key, KeyStatus, Scope, Secret, Timestamp, UtcDay, text};
use maud::{Markup, html};

use super::table::{column, head, table};
use super::{caps, display, status};

/// What both views need.
#[derive(Debug, Clone, Copy)]
pub(in crate::customer) struct OwnerPage<'a> {
    /// The owner's own key.
    pub(in crate::customer) own: &'a Key,
    /// Whether it may change anything now.
    pub(in crate::customer) may_act: bool,
    /// Names this page's forms.
    pub(in crate::customer) once: &'a str,
    /// Slugs to choose from.
    pub(in crate::customer) models: &'a [String],
    pub(in crate::customer) now: Timestamp,
    /// Whether the seller has a shop.
    pub(in crate::customer) has_shop: bool,
    /// Why a form was refused.
    pub(in crate::customer) problem: Option<&'a str>,
}

/// All keys with what they spent this month, newest first.
pub(in crate::customer) fn list(page: OwnerPage<'_>, keys: &[(Key, Amount)]) -> Markup {
    let places = display::places(keys.iter().map(|(_, spent)| *spent));
    let columns = [
        head("Label"),
        column("Id", "id"),
        column("Role", ""),
        column("Status", ""),
        column("Caps", ""),
        column("Spent this month", "number cost"),
    ];
    let rows = keys.iter().map(|(key, spent)| {
        vec![
            html! { a href=(format!("/dashboard/keys/{}", key.id)) { (name(key)) } },
            html! { code { (key.id) } },
            html! { (role(key)) @if key.id == page.own.id { ", this one" } },
            html! { (status(key.status(page.now))) },
            html! { @if key.caps.is_empty() { "–" } @else {
                @for (at, counted) in key.caps.iter().enumerate() { @if at > 0 { "; " } (counted.cap) }
            } },
            html! { (display::aligned(*spent, places)) },
        ]
    });
    html! {
        h1 { "Keys" }
        (problem(page.problem))
        (looks_only(page))
        section.card aria-labelledby="all-keys" {
            h2 #all-keys { "Keys of this account" }
            (table("stacked", "Keys, newest first", &columns, rows))
        }
        @if page.may_act { section.card.screen aria-labelledby="new-key" {
            h2 #new-key { "New key" }
            form.inline method="post" action="/dashboard/keys" {
                (once(page))
                div { label for="label" { "Label" } input #label name="label" required maxlength="200" autocomplete="off"; }
                (caps::fields("new", page.models, false))
                button.primary { "Make a key" }
            }
            p.hint { "It spends this customer's money, at most as its cap says; without a cap, all of it. It may use the models that this key may use." }
        } }
        section.card.screen aria-labelledby="caps" {
            h2 #caps { "Caps of all keys together" }
            (caps(page, page.own.customer.id.into(), &page.own.customer.caps, "/dashboard/caps", "all"))
        }
        section.card.screen aria-labelledby="low" {
            h2 #low { "Low balance" }
            @if page.may_act { form.inline method="post" action="/dashboard/low-balance" {
                (once(page))
                div { label for="low-limit" { "Low below (USD)" }
                    input #low-limit name="limit" inputmode="decimal" autocomplete="off" placeholder=(usual_low(page))
                        value=[page.own.customer.settings.low_balance]; }
                button { "Save" }
            } }
            p.hint { "Below it, this page and whoever the seller tells say that the balance is low." }
        }
        (auto_top_up(page))
    }
}

/// The balance below which it is low unless something is set.
fn usual_low(page: OwnerPage<'_>) -> String {
    match page.own.customer.defaults.low_balance {
        Some(usd) => format!("{usd} (default)"),
        None => "a tenth of the last top-up".to_owned(),
    }
}

/// The rule of auto top-up, what came of it, and the forms that end it and lead to where it is set.
fn auto_top_up(page: OwnerPage<'_>) -> Markup {
    let auto = page.own.customer.auto_top_up.as_ref();
    let rule = auto.and_then(|auto| auto.rule);
    let failed = auto.and_then(|auto| auto.failed_wish(page.now));
    html! {
        @if rule.is_some() || page.has_shop { section.card.screen aria-labelledby="auto" {
            h2 #auto { "Auto top-up" }
            @match rule {
                Some(rule) => p { "The seller is asked for " (rule) "." },
                None => p { "None. A shop can offer it with a card that is kept at its payment processor." },
            }
            @if let (Some(_), Some((wish, why))) = (rule, failed) {
                p.problem { "The last one, " (wish.amount) " USD, failed: " (why) ". Top up by hand." }
            }
            @if page.may_act {
                @if rule.is_some() { form.inline method="post" action="/dashboard/auto-top-up/end" { (once(page)) button { "Switch it off" } } }
                @if page.has_shop { form.inline method="post" action="/dashboard/shop" { (once(page)) button { "To the shop" } } }
            }
        } }
    }
}

pub(in crate::customer) fn one(page: OwnerPage<'_>, key: &Key, spent: Amount) -> Markup {
    let path = |deed: &str| format!("/dashboard/keys/{}/{deed}", key.id);
    let state = key.status(page.now);
    html! {
        h1 { (name(key)) }
        (problem(page.problem))
        (looks_only(page))
        section.card aria-labelledby="facts" {
            h2 #facts { "Key" }
            dl.prices {
                dt { "Id" } dd { code { (key.id) } }
                dt { "Role" } dd { (role(key)) }
                dt { "Status" } dd { (status(state)) }
                dt { "Made" } dd { (display::time(key.created_at)) " UTC" @if let Some(by) = key.made_by { ", by " code { (by) } } }
                dt { "Spent this month" } dd { (display::money(spent)) " USD" }
            }
            p.hint { a href=(format!("/dashboard/requests?key={}", key.id)) { "Its requests" } " · " a href="/dashboard/keys" { "All keys" } }
        }
        section.card aria-labelledby="caps" {
            h2 #caps { "Caps" }
            (caps(page, key.id.into(), &key.caps, &path("caps"), "key"))
        }
        @if page.may_act && state != KeyStatus::Revoked {
            section.card.screen aria-labelledby="secret" {
                h2 #secret { "Secret" }
                form.inline method="post" action=(path("rotate")) {
                    (once(page))
                    div { label for="overlap" { "The old secret works" } select #overlap name="overlap" {
                        option value="" { "no longer" } option value="day" { "for another 24 hours" }
                    } }
                    button { "Make a new secret" }
                }
                @if key.id == page.own.id { p.hint { "This is the key of this page: you will have to sign in again, with the new secret." } }
            }
            section.card.screen aria-labelledby="serve" {
                h2 #serve { "Requests" }
                @if key.id == page.own.id {
                    p.hint { "This is the key of this page. Another owner key can block it." }
                } @else if state == KeyStatus::Blocked {
                    form method="post" action=(path("unblock")) { (once(page)) button { "Serve this key again" } }
                } @else {
                    form method="post" action=(path("block")) { (once(page)) button { "Block this key" } }
                    p.hint { "Its requests are refused and its sessions end until an owner unblocks it. What is running goes on to its end." }
                }
            }
        }
    }
}

/// A secret, once.
pub(in crate::customer) fn secret(key: &Key, secret: &Secret) -> Markup {
    html! {
        h1 { (name(key)) }
        section.card aria-labelledby="secret" {
            h2 #secret { "The key's secret" }
            p { "Copy it now: it is shown only once, and nobody can read it again." }
            figure {
                figcaption { code { (key.id) } }
                pre.secret tabindex="0" role="region" aria-label="The secret" { code #new-secret { (secret.reveal()) } }
            }
            p.hint { a href=(format!("/dashboard/keys/{}", key.id)) { "This key" } " · " a href="/dashboard/keys" { "All keys" } }
        }
    }
}

/// Caps, with the forms that set and remove them for whoever may act. `id` makes the ids of fields unique.
fn caps(page: OwnerPage<'_>, scope: Scope, caps: &Caps, action: &str, id: &str) -> Markup {
    let today = UtcDay::of(page.now);
    let clear = format!("{action}/clear");
    html! {
        (caps::list(scope, caps, today, page.may_act.then_some((&clear, page.once))))
        @if page.may_act {
            form.inline method="post" action=(action) {
                (once(page)) (caps::fields(id, page.models, true)) button { "Set the cap" }
            }
            p.hint { "Decided before each request, in UTC; weeks begin on Monday. A cap of the same interval and model gets the new limit; what the seller set can only be lowered, and comes back when yours is removed." }
        }
    }
}

/// Why there are no forms.
pub(super) fn looks_only(page: OwnerPage<'_>) -> Markup {
    html! { @if !page.may_act {
        p.problem { "With this key you can look, and change nothing: it has expired, or the account is not active." }
    } }
}

pub(super) fn once(page: OwnerPage<'_>) -> Markup {
    html! { input type="hidden" name="once" value=(page.once); }
}

pub(super) fn problem(problem: Option<&str>) -> Markup {
    html! { @if let Some(problem) = problem { p.problem role="alert" { (problem) } } }
}

fn name(key: &Key) -> String {
    match key.settings.label.as_str() {
        "" => key.id.to_string(),
        label => text::visible(label),
    }
}

fn role(key: &Key) -> &'static str {
    if key.is_owner { "owner" } else { "member" }
}

//! The dashboard as HTML: one layout, one file per view. The templates escape everything, and nothing is inline that the content
//! security policy would have to allow.

mod caps;
pub(super) mod chart;
pub(super) mod display;
mod grants;
pub(super) mod keys;
pub(super) mod models;
pub(super) mod overview;
pub(super) mod pay;
pub(super) mod payments;
pub(super) mod plans;
pub(super) mod prices;
pub(super) mod receipt;
pub(super) mod requests;
pub(super) mod runs;
mod runway;
pub(super) mod setup;
mod table;
pub(super) mod voucher;

use farebox_ledger::{Key, KeyStatus, text};
use maud::{DOCTYPE, Markup, html};

use super::assets;
use crate::clock;
use crate::config::Shop;

/// The views for a signed-in customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DashboardView {
    /// Balance, spending, newest requests.
    Overview,
    /// Every request, and the refused ones.
    Requests,
    /// Top-ups, refunds, corrections.
    Payments,
    /// The customer's plans.
    Plans,
    /// The customer's keys and caps.
    Keys,
    /// Settings for client programs.
    Setup,
    /// What is on sale, and its prices.
    Models,
}

impl DashboardView {
    const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::Overview, "/dashboard", "Overview"),
        (Self::Requests, "/dashboard/requests", "Requests"),
        (Self::Payments, "/dashboard/payments", "Payments"),
        (Self::Plans, "/dashboard/plans", "Plans"),
        (Self::Keys, "/dashboard/keys", "Keys"),
        (Self::Setup, "/dashboard/setup", "Set up"),
        (Self::Models, "/dashboard/models", "Models"),
    ];

    /// Whether the holder of a key sees it: payments, plans and keys are the owner's.
    pub(super) const fn is_for(self, key: &Key) -> bool {
        key.own.is_owner || !matches!(self, Self::Payments | Self::Plans | Self::Keys)
    }

    /// Whether it is named on the other views: most customers have no plans.
    fn is_named(self, key: &Key) -> bool {
        let has_plans = || key.customer.grants.plans.iter().next().is_some();
        self.is_for(key) && (self != Self::Plans || has_plans())
    }
}

/// A page for a signed-in customer. `live` is the source of its updates.
pub(super) fn signed_in(
    shop: &Shop,
    view: DashboardView,
    key: &Key,
    live: Option<&str>,
    content: &Markup,
) -> Markup {
    let state = key.status(clock::now());
    let title = DashboardView::ALL
        .iter()
        .find(|(other, _, _)| *other == view)
        .map_or("", |(_, _, title)| title);
    let body = html! {
        header.top {
            div.wide {
                a.brand href="/dashboard" { (shop.title()) }
                p.who { span.label { (text::visible(&key.settings.label)) } " " code { (key.id) } " " (status(state)) }
                form method="post" action="/dashboard/logout" { button.quiet { "Sign out" } }
                form method="post" action="/dashboard/logout-everywhere" { button.quiet { "Sign out everywhere" } }
            }
            nav.wide aria-label="Views" {
                ul { @for (other, path, name) in DashboardView::ALL.into_iter().filter(|(view, ..)| view.is_named(key)) {
                    li { a href=(path) aria-current=[(other == view).then_some("page")] { (name) } }
                } }
            }
        }
        main.wide #content data-live=[live] { (content) }
    };
    let title = format!("{title} · {} USD", key.remaining("", clock::now()));
    document(shop, &title, Listed::No, &body)
}

fn status(state: KeyStatus) -> Markup {
    let class = if state == KeyStatus::Active {
        "pill good"
    } else {
        "pill bad"
    };
    html! { span class=(class) { (state) } }
}

/// The sign-in page, with the last error.
pub(super) fn sign_in(shop: &Shop, problem: Option<&str>) -> Markup {
    document(
        shop,
        "Sign in",
        Listed::No,
        &html! {
            main.narrow #content {
                h1 { (shop.title()) }
                p.lead { "See your balance, every request and its cost, and settings that are ready to paste." }
                @if let Some(problem) = problem { p.problem role="alert" { (problem) } }
                form.card method="post" action="/dashboard/login" {
                    label for="key" { "Your key" }
                    input #key type="password" name="key" required autocomplete="current-password" spellcheck="false"
                        placeholder="sk-fb-…" aria-describedby="key-hint" aria-invalid=[problem.map(|_| "true")];
                    p.hint #key-hint { "The same key that your programs send. It is only checked, never stored or shown." }
                    button.primary { "Sign in" }
                }
                p.hint { "With a sign-in link, open the link instead; it works once." }
                p.hint {
                    "No key yet? See the " a href="/prices" { "prices" }
                    @if let Some(url) = &shop.pay_url { ", or " a href=(url) rel="noreferrer" { "buy one" } }
                    "."
                }
            }
        },
    )
}

/// The landing page of a one-time link. The token is in the fragment, which is not sent: the script copies it into the form.
pub(super) fn enter(shop: &Shop, problem: Option<&str>) -> Markup {
    document(
        shop,
        "One-time sign-in",
        Listed::No,
        &html! {
            main.narrow #content {
                h1 { (shop.title()) }
                @if let Some(problem) = problem { p.problem role="alert" { (problem) } }
                form.card #enter method="post" action="/dashboard/enter" {
                    p { "This link signs you in once. It is used up when you press the button." }
                    div #token-row {
                        label for="token" { "Sign-in code" }
                        input #token type="password" name="token" required autocomplete="off" spellcheck="false"
                            aria-describedby="token-hint";
                        p.hint #token-hint { "The part of the link behind the # sign." }
                    }
                    button.primary { "Sign in" }
                }
                p.hint { a href="/dashboard" { "Sign in with a key instead" } }
            }
        },
    )
}

/// A page with only a message.
pub(super) fn notice(shop: &Shop, title: &str, text: &str) -> Markup {
    document(
        shop,
        title,
        Listed::No,
        &html! {
            main.narrow #content {
                h1 { (title) }
                p.problem role="alert" { (text) }
                p { a href="/dashboard" { "To the dashboard" } }
            }
        },
    )
}

/// A page that needs no key.
pub(super) fn public(shop: &Shop, title: &str, content: &Markup) -> Markup {
    let body = html! {
        header.top {
            div.wide {
                a.brand href="/prices" { (shop.title()) }
                p.who { a href="/dashboard" { "Sign in with a key" } }
            }
        }
        main.wide #content { (content) }
    };
    document(shop, title, Listed::Yes, &body)
}

/// Whether search engines may list a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    Yes,
    No,
}

fn document(shop: &Shop, title: &str, listed: Listed, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if listed == Listed::No { meta name="robots" content="noindex"; }
                title { (title) " · " (shop.title()) }
                link rel="icon" href=(assets::ICON);
                link rel="stylesheet" href=(assets::STYLE.url());
                script src=(assets::SCRIPT.url()) defer {}
            }
            body {
                a.skip href="#content" { "Skip to content" }
                (body)
                footer.wide {
                    p.seller {
                        (shop.title())
                        @if let Some(contact) = &shop.contact { " · " (contact) }
                        span.screen { " · " a href="/prices" { "Prices" } }
                        span.paper { " · as of " (display::format(clock::now(), "%b %d, %Y %H:%M UTC")) }
                    }
                    p.screen { "Prompts and answers are never stored, only counts, times and prices. Times are UTC, money is US dollars." }
                }
            }
        }
    }
}

//! What is on sale and what it costs: the page that needs no key, and the tables that it shares with the view of models.

use std::sync::Arc;

use farebox_ledger::{Amount, grouped};
use maud::{Markup, html};

use super::table::{self, column, head};
use crate::config::{ListedRate, Model, Price, Rates, Shop, show_price};

/// The first columns of [`Rates::columns`], which the first table shows of every model.
const USUAL: usize = 4;

/// The page for everybody: the seller, the tables, and where a new customer goes from here.
pub(in crate::customer) fn page(shop: &Shop, public_url: &str, models: &[Arc<Model>]) -> Markup {
    let base = public_url.trim_end_matches('/');
    html! {
        h1 { "Prices" }
        @if shop.pay_url.is_some() || shop.contact.is_some() || shop.note.is_some() {
            section.card aria-label="How to buy" {
                @if let Some(note) = &shop.note { p { (note) } }
                @if let Some(url) = &shop.pay_url {
                    p { a.button href=(url) rel="noreferrer" { "Buy a key or top up" } }
                }
                @if let Some(contact) = &shop.contact { p { "Questions: " (shop.title()) ", " (contact) } }
            }
        }
        section.card aria-label="Models" {
            @if models.is_empty() { p.empty { "Nothing is on sale at the moment." } } @else { (table(models)) }
            (how_prices_work())
        }
        (in_full(models))
        section.card aria-labelledby="bases" {
            h2 #bases { "Where to send requests" }
            dl.prices {
                dt { "Chat and responses clients" } dd { code { (base) "/v1" } }
                dt { "Native clients" } dd { code { (base) "/native" } }
            }
            p.hint { "With a key, the " a href="/dashboard/setup" { "set-up page" } " has settings ready to paste." }
        }
    }
}

/// The canonical table, with the service price in columns.
pub(super) fn table(models: &[Arc<Model>]) -> Markup {
    let prices = ["Input", "Output", "Cache read", "Cache write"];
    let mut columns = vec![
        head("Model"),
        column("Customer slug", "slug"),
        column("Provider", ""),
        column("Best path", ""),
        column("Best environments", ""),
        column("Can do", ""),
    ];
    columns.extend(prices.map(|title| column(title, "number")));
    let rows = models.iter().map(|model| row(model));
    table::table("stacked", "Models and prices", &columns, rows)
}

/// What the figures of the tables are, below the first of them.
pub(super) fn how_prices_work() -> Markup {
    html! {
        p.hint {
            "Prices are US dollars per 1,000,000 tokens. Exactly what a request used is charged, nothing is rounded up. "
            "Copy slugs exactly."
        }
    }
}

/// The tiers, classes and further rates of the models that have any.
pub(super) fn in_full(models: &[Arc<Model>]) -> Markup {
    let more: Vec<&Arc<Model>> = models
        .iter()
        .filter(|model| has_more(&model.price))
        .collect();
    html! { @if !more.is_empty() {
        section.card aria-labelledby="in-full" {
            h2 #in-full { "Long prompts, service classes and other prices" }
            p.hint.above {
                "Above a bound of input tokens the whole request costs that line's prices. A class is what a request asks for, as "
                code { "service_tier" } " or " code { "speed" } "; what served it is charged, at most the dearer of that class and the "
                "standard."
            }
            @for model in more {
                h3 { (model.name) " " code { (model.slug) } }
                (price_table(&model.name, &model.price))
            }
        }
    } }
}

fn has_more(price: &Price) -> bool {
    !price.tiers.is_empty() || !price.classes.is_empty() || columns(&[price.base]).len() > USUAL
}

/// The columns that say something about one of these rates: a price that is not sold, is zero, or is the output's is none.
fn columns(lines: &[Rates]) -> Vec<usize> {
    let says = |rates: &Rates, at: usize| match rates.columns()[at] {
        _ if at < USUAL => true,
        ListedRate {
            name: "reasoning",
            rate,
            ..
        } => rate != Some(rates.output),
        ListedRate { rate, .. } => rate.is_some_and(Amount::is_positive),
    };
    let all = 0..lines.first().map_or(0, |rates| rates.columns().len());
    all.filter(|at| lines.iter().any(|rates| says(rates, *at)))
        .collect()
}

/// Every line of a price: what it applies to, and its rates.
fn lines(price: &Price) -> Vec<(String, Rates)> {
    let mut lines = tiers("standard", price);
    for class in &price.classes {
        let mut name = class.classes.name().replace(',', ", ");
        if let Some(most) = class.context {
            name.push_str(&format!(" (to {} input tokens)", grouped(most)));
        }
        lines.extend(tiers(&name, &class.price));
    }
    lines
}

fn tiers(name: &str, price: &Price) -> Vec<(String, Rates)> {
    let above = price.tiers.iter().map(|(above, rates)| {
        let name = format!("{name}, above {} input tokens", grouped(*above));
        (name, *rates)
    });
    std::iter::once((name.to_owned(), price.base))
        .chain(above)
        .collect()
}

fn price_table(model: &str, price: &Price) -> Markup {
    let lines = lines(price);
    let rates: Vec<Rates> = lines.iter().map(|(_, rates)| *rates).collect();
    let shown = columns(&rates);
    let listed = price.base.columns();
    let headings = shown
        .iter()
        .map(|at| column(listed[*at].heading(), "number"));
    let columns: Vec<_> = std::iter::once(head("Applies to"))
        .chain(headings)
        .collect();
    let rows = lines.iter().map(|(name, rates)| {
        let prices = shown.iter().map(|at| cell(rates.columns()[*at]));
        std::iter::once(html! { (name) }).chain(prices).collect()
    });
    let caption = html! { "All prices of " (model) };
    table::table("stacked", caption, &columns, rows)
}

fn cell(column: ListedRate) -> Markup {
    html! { @match column.rate { Some(rate) => (show_price(rate, column.unit)), None => "–" } }
}

fn row(model: &Model) -> Vec<Markup> {
    let columns = model.row();
    let can: Vec<&str> = model
        .capabilities
        .iter()
        .map(|capability| capability.name())
        .collect();
    let mut cells = vec![
        html! { (columns.model) },
        html! { code { (columns.customer_slug) } },
        html! { (columns.provider) },
        html! { (columns.best_path) },
        html! { (columns.best_environments.join(", ")) },
        html! { (if can.is_empty() { "text".to_owned() } else { can.join(", ") }) },
    ];
    let sold = |column: ListedRate| match model.route.call {
        // A call has no output.
        Some(_) if column.name == "output" => html! { "–" },
        _ => cell(column),
    };
    cells.extend(model.price.base.columns().into_iter().take(USUAL).map(sold));
    cells
}

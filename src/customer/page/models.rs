//! The models that this key may use and their prices: the canonical table, with the price of each kind of token.

use std::sync::Arc;

use farebox_ledger::Amount;
use maud::{Markup, html};

use crate::config::{Model, PriceUnit, show_price};

/// The view.
pub(in crate::customer) fn page(models: &[Arc<Model>]) -> Markup {
    html! {
        h1 { "Models" }
        section.card aria-label="Models" {
            @if models.is_empty() { p.empty { "This key may not use any of the models sold here." } } @else {
                table.stacked role="table" {
                    caption.hidden { "Models and prices" }
                    thead role="rowgroup" { tr role="row" {
                        @for title in ["Model", "Customer slug", "Provider", "Best path", "Best environments", "Can do"] {
                            th scope="col" role="columnheader" { (title) }
                        }
                        @for title in ["Input", "Output", "Cache read", "Cache write"] {
                            th.number scope="col" role="columnheader" { (title) }
                        }
                    } }
                    tbody role="rowgroup" { @for model in models { (row(model)) } }
                }
            }
            p.hint { "Prices are US dollars per 1,000,000 tokens. Copy slugs exactly." }
        }
        section.card aria-labelledby="whole-prices" {
            h2 #whole-prices { "Service prices in full" }
            dl.prices { @for model in models { dt { code { (model.slug) } } dd { (model.price.shown()) } } }
        }
    }
}

fn row(model: &Model) -> Markup {
    let columns = model.row();
    let rates = &model.price.base;
    let price = |amount: Amount| show_price(amount, PriceUnit::MillionTokens);
    let can: Vec<&str> = model
        .capabilities
        .iter()
        .map(|capability| capability.name())
        .collect();
    html! {
        tr role="row" {
            th.name scope="row" role="rowheader" { (columns.model) }
            td.slug role="cell" data-label="Customer slug" { code { (columns.customer_slug) } }
            td role="cell" data-label="Provider" { (columns.provider) }
            td role="cell" data-label="Best path" { (columns.best_path) }
            td role="cell" data-label="Best environments" { (columns.best_environments.join(", ")) }
            td role="cell" data-label="Can do" { (if can.is_empty() { "text".to_owned() } else { can.join(", ") }) }
            td.number role="cell" data-label="Input" { (price(rates.input)) }
            td.number role="cell" data-label="Output" { (price(rates.output)) }
            td.number role="cell" data-label="Cache read" { (price(rates.cache_read)) }
            td.number role="cell" data-label="Cache write" { (price(rates.cache_write)) }
        }
    }
}

//! The models that this key may use and their prices.

use std::sync::Arc;

use maud::{Markup, html};

use super::prices;
use crate::config::Model;

/// The view.
pub(in crate::customer) fn page(models: &[Arc<Model>]) -> Markup {
    html! {
        h1 { "Models" }
        section.card aria-label="Models" {
            @if models.is_empty() { p.empty { "This key may not use any of the models sold here." } } @else {
                (prices::table(models))
            }
            (prices::how_prices_work())
        }
        (prices::in_full(models))
    }
}

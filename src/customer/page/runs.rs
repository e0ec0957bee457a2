//! The runs of a month, on the first view.

use farebox_ledger::RunSum;
use maud::{Markup, html};

use super::display;
use super::table::{column, head, table};
use crate::customer::runs::name;

/// The table of a page; nothing where no request named a run.
pub(in crate::customer) fn section(runs: &[RunSum]) -> Markup {
    let places = display::places(runs.iter().map(|sum| sum.charge));
    let columns = [
        head("Run"),
        column("Requests", "number"),
        column("USD", "number cost"),
    ];
    let rows = runs.iter().map(|sum: &RunSum| {
        vec![
            html! { (name(sum)) },
            html! { (display::count(sum.requests)) },
            html! { (display::aligned(sum.charge, places)) },
        ]
    });
    let caption = "The runs of this month that cost most";
    html! {
        @if !runs.is_empty() {
            h3 { "Runs of this month" }
            (table("stacked", caption, &columns, rows))
            p.hint { "Usage by run: " a href="/dashboard/usage.csv?by=run" { "CSV" } " · " a href="/dashboard/usage.json?by=run" { "JSON" } }
        }
    }
}

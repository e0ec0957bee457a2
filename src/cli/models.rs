//! `farebox models`: the canonical slug table.

use serde_json::json;

use super::args::{Args, Format};
use super::check;
use super::output::{self, Failed};
use crate::config::{self, TABLE_HEADINGS};
use farebox_ledger::csv;

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let rows = check::load(args)?.catalog.rows();
    let cells = || {
        rows.iter()
            .map(|row| row.cells().to_vec())
            .collect::<Vec<_>>()
    };
    match args.format() {
        Format::Json => output::print_json(&json!({ "models": rows })),
        Format::Csv => output::print(&csv::document(&TABLE_HEADINGS, &cells())),
        Format::Markdown => output::print(&config::table_markdown(&rows)),
        Format::Table => output::print(&output::table(&TABLE_HEADINGS, &cells())),
    }
    Ok(())
}

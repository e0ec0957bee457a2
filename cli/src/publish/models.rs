//! `farebox models`: the canonical slug table.

use serde_json::json;

use super::check;
use crate::args::library::ModelsOptions;
use crate::args::{Args, OutputFormat};
use crate::output::{self, CommandFailed};
use farebox::config::{self, TABLE_HEADINGS};
use farebox_ledger::csv;

pub(crate) fn run(args: &Args, options: &ModelsOptions) -> Result<(), CommandFailed> {
    let catalog = check::load(args)?.catalog;
    let rows = match &options.list {
        None => catalog.rows(),
        Some(name) => {
            let list = catalog.list(name);
            list.map_err(CommandFailed::refused)?.catalog.rows()
        }
    };
    let cells = || {
        rows.iter()
            .map(|row| row.cells().to_vec())
            .collect::<Vec<_>>()
    };
    match args.format() {
        OutputFormat::Json => output::print_json(&json!({ "models": rows })),
        OutputFormat::Csv => output::sheet(&csv::document(&TABLE_HEADINGS, &cells())),
        OutputFormat::Markdown => output::print(&config::table_markdown(&rows)),
        OutputFormat::Table | OutputFormat::Html => {
            output::print(&output::table(&TABLE_HEADINGS, &cells()))
        }
    }
    Ok(())
}

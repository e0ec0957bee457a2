//! `farebox customers receipts|statement`: paper for bookkeepers. Works while a gateway runs.

use farebox_ledger::{OpenMode, StatementMonth, csv};
use serde_json::json;

use crate::args::customers::{ReceiptsOptions, StatementOptions};
use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::publish::check::seller;
use farebox::clock;
use farebox::paper::{
    self, DOCUMENT_COLUMNS, PaperReader, STATEMENT_COLUMNS, document_json, document_row,
};
use farebox_selling::reads;

pub(crate) async fn receipts(args: &Args, options: &ReceiptsOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let customer = reads::customer(&*ledger, options.id).await?;
    let mut found = paper::documents(&*ledger, customer.id, PaperReader::Others).await?;
    if let Some(number) = &options.number {
        found.retain(|document| document.number == *number);
        if found.is_empty() {
            return Err(CommandFailed::refused(format!(
                "customer {} has no document {number}; without --number all are listed",
                options.id
            )));
        }
    }
    let shop = seller(args);
    let rows = || -> Vec<Vec<String>> { found.iter().map(document_row).collect() };
    match args.format() {
        OutputFormat::Json => {
            let document = |document| document_json(document, &shop);
            let documents: Vec<_> = found.iter().map(document).collect();
            output::print_json(&json!({ "receipts": documents }));
        }
        OutputFormat::Csv => output::sheet(&csv::document(&DOCUMENT_COLUMNS, &rows())),
        OutputFormat::Html => {
            output::print(&paper::documents_page(&found, &shop));
        }
        _ if found.is_empty() => output::note("Nothing was paid yet."),
        _ => output::print(&output::table(&DOCUMENT_COLUMNS, &rows())),
    }
    Ok(())
}

pub(crate) async fn statement(
    args: &Args,
    options: &StatementOptions,
) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let customer = reads::customer(&*ledger, options.id).await?;
    let now = clock::now();
    let month = options.month.unwrap_or(StatementMonth::of(now));
    let found = paper::statement(&*ledger, customer, month, now).await?;
    let rows = || paper::statement_rows(&found);
    match args.format() {
        OutputFormat::Json => output::print_json(&paper::statement_json(&found, &seller(args))),
        OutputFormat::Csv => output::sheet(&csv::document(&STATEMENT_COLUMNS, &rows())),
        OutputFormat::Html => output::print(&paper::statement_page(&found, &seller(args))),
        _ => output::print(&output::table(&STATEMENT_COLUMNS, &rows())),
    }
    Ok(())
}

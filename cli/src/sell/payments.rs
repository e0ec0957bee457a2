//! `farebox customers reverse|unapplied`: money that goes back, and payments that could not be booked. Works while a gateway runs.

use farebox_ledger::{OpenMode, Payment};
use serde_json::json;

use super::acts;
use crate::args::payments::{UnappliedCommand, UnappliedOptions};
use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::tables;
use farebox_selling::payment::PaymentDocument;

pub(crate) async fn unapplied(
    args: &Args,
    options: &UnappliedOptions,
) -> Result<(), CommandFailed> {
    match &options.end {
        None => list(args).await,
        Some(UnappliedCommand::Assign(on)) => {
            acts::act(args, on.act.clone(), on.payment.clone()).await
        }
        Some(UnappliedCommand::Return(on)) => {
            acts::act(args, on.act.clone(), on.payment.clone()).await
        }
    }
}

pub(crate) fn print(args: &Args, found: &Payment) {
    if args.format() == OutputFormat::Json {
        return output::print_json(&PaymentDocument::from(found));
    }
    tables::print(
        args.format(),
        &tables::PAYMENT,
        &tables::payments(std::slice::from_ref(found)),
    );
}

async fn list(args: &Args) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let found = ledger.unapplied().await?;
    match args.format() {
        OutputFormat::Json => {
            let payments: Vec<_> = found.iter().map(PaymentDocument::from).collect();
            output::print_json(&json!({ "payments": payments }));
        }
        OutputFormat::Table | OutputFormat::Markdown if found.is_empty() => {
            output::note("Every payment was booked or sent back, and what went back is booked.")
        }
        format => {
            tables::print(format, &tables::PAYMENT, &tables::payments(&found));
            if format != OutputFormat::Csv && found.iter().any(|known| !known.waiting.is_empty()) {
                output::note(
                    "What went back and is not booked: farebox customers reverse PAYMENT CUMULATIVE --kind KIND --reference REFERENCE",
                );
            }
        }
    }
    Ok(())
}

//! `farebox customers reverse|unapplied`: money that goes back, and payments that could not be booked. Works while a gateway runs.

use farebox_ledger::{OpenMode, Payment, UnappliedEnd};
use serde_json::json;

use super::args::{Args, OutputFormat};
use super::books::{act, open};
use super::done::perform;
use super::output::{self, CommandFailed};
use super::payments_args::{ReverseOptions, UnappliedCommand, UnappliedOptions};
use super::{tables, view};
use farebox::selling::money;

pub(super) async fn reverse(args: &Args, options: &ReverseOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let deed = money::reverse(
        options.payment.clone(),
        options.kind.into(),
        options.cumulative,
        options.reference.clone(),
        act(args),
    );
    perform(args, &ledger, deed).await.map(drop)
}

pub(super) async fn unapplied(
    args: &Args,
    options: &UnappliedOptions,
) -> Result<(), CommandFailed> {
    let Some(end) = &options.end else {
        return list(args).await;
    };
    let (payment, end) = match end {
        UnappliedCommand::Assign(options) => (&options.payment, UnappliedEnd::Assign(options.to)),
        UnappliedCommand::Return(options) => {
            let reason = options.reason.clone();
            (&options.payment, UnappliedEnd::Return { reason })
        }
    };
    let ledger = open(args, OpenMode::Write).await?;
    let deed = money::end_unapplied(payment.clone(), end, act(args));
    perform(args, &ledger, deed).await.map(drop)
}

/// Prints one payment.
pub(super) fn print(args: &Args, found: &Payment) {
    if args.format() == OutputFormat::Json {
        return output::print_json(&view::payment(found));
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
            let payments: Vec<_> = found.iter().map(view::payment).collect();
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

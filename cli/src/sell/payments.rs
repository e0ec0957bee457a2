//! `farebox customers reverse|unapplied`: money that goes back, and payments that could not be booked. Works while a gateway runs.

use farebox_ledger::{LedgerError, OpenMode, Payment, Scope};
use serde_json::json;

use super::acts::{self, print_done};
use crate::args::payments::{UnappliedCommand, UnappliedOptions};
use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::tables;
use farebox_selling::payment::{PaymentDocument, TopUp};
use farebox_selling::reads;

/// Books a payment. A key's is its customer's, unless nobody can use the key any more.
pub(crate) async fn top_up(args: &Args, pay: TopUp, of: Scope) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let customer = match of {
        Scope::Customer(customer) => customer,
        Scope::Key(key) => {
            let key = reads::key(&*ledger, key).await?;
            key.check_payable().map_err(LedgerError::from)?;
            key.belongs_to
        }
    };
    print_done(args, &acts::ask(args, &ledger, pay, customer).await?);
    Ok(())
}

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

//! `farebox customers reverse|unapplied`: money that goes back, and payments that could not be booked. Works while a gateway runs.

use farebox_ledger::{OpenMode, Payment, PaymentMoved, UnappliedEnd, csv};
use serde_json::json;

use super::args::{Args, OutputFormat};
use super::books::{act, open, perform};
use super::output::{self, CommandFailed};
use super::payments_args::{ReverseOptions, UnappliedCommand, UnappliedOptions};
use super::view::{self, payment_status};
use crate::selling::money;

/// The columns of a payment.
const HEADER: [&str; 8] = [
    "payment", "customer", "status", "currency", "gross", "amount", "reversed", "why",
];

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

async fn list(args: &Args) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let found = ledger.unapplied().await?;
    match args.format() {
        OutputFormat::Json => {
            let payments: Vec<_> = found.iter().map(view::payment).collect();
            output::print_json(&json!({ "payments": payments }));
        }
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows(&found))),
        _ if found.is_empty() => output::note("Every payment was booked or sent back."),
        _ => output::print(&output::table(&HEADER, &rows(&found))),
    }
    Ok(())
}

/// Prints where a payment is now.
pub(super) fn print(args: &Args, moved: &PaymentMoved) {
    let shown = std::slice::from_ref(&moved.payment);
    if args.format() == OutputFormat::Csv {
        return output::print(&csv::document(&HEADER, &rows(shown)));
    }
    output::print(&output::table(&HEADER, &rows(shown)));
    let customer = &moved.customer;
    if customer.claim.is_positive() {
        output::note(&format!(
            "{} owes {} USD, which what it pays next goes to first; until then its requests are refused.",
            customer.id, customer.claim
        ));
    }
}

fn rows(payments: &[Payment]) -> Vec<Vec<String>> {
    let row = |payment: &Payment| {
        let (status, why) = payment_status(payment);
        vec![
            output::plain(&payment.reference),
            payment.customer.to_string(),
            status.to_owned(),
            payment.paid.currency.clone(),
            payment.paid.gross.to_string(),
            payment.credit.to_string(),
            payment.due().to_string(),
            output::plain(why.unwrap_or_default()),
        ]
    };
    payments.iter().map(row).collect()
}

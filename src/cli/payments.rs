//! `farebox customers reverse|unapplied`: money that goes back, and payments that could not be booked. Works while a gateway runs.

use farebox_ledger::{
    NewReversal, OpenMode, Payment, PaymentMoved, PaymentStatus, UnappliedAct, UnappliedEnd, csv,
    document,
};
use serde_json::{Value, json};

use super::args::{Args, OutputFormat};
use super::books::{act, open};
use super::output::{self, CommandFailed};
use super::payments_args::{ReverseOptions, UnappliedCommand, UnappliedOptions};
use super::view;

/// The columns of a payment.
const HEADER: [&str; 8] = [
    "payment", "customer", "status", "currency", "gross", "amount", "reversed", "why",
];

pub(super) async fn reverse(args: &Args, options: &ReverseOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let moved = ledger
        .reverse(NewReversal {
            payment: options.payment.clone(),
            kind: options.kind.into(),
            cumulative: options.cumulative,
            reference: options.reference.clone(),
            act: act(args),
        })
        .await?;
    if moved.repeated {
        output::note("The ledger knew this, or more: nothing changed.");
    }
    print_moved(args, &moved);
    Ok(())
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
    let moved = ledger
        .end_unapplied(UnappliedAct {
            payment: payment.clone(),
            end,
            act: act(args),
        })
        .await?;
    print_moved(args, &moved);
    Ok(())
}

/// Prints one payment.
pub(super) fn print(args: &Args, found: &Payment) {
    let shown = std::slice::from_ref(found);
    match args.format() {
        OutputFormat::Json => output::print_json(&payment(found)),
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows(shown))),
        _ => output::print(&output::table(&HEADER, &rows(shown))),
    }
}

async fn list(args: &Args) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let found = ledger.unapplied().await?;
    match args.format() {
        OutputFormat::Json => {
            let payments: Vec<_> = found.iter().map(payment).collect();
            output::print_json(&json!({ "payments": payments }));
        }
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows(&found))),
        _ if found.is_empty() => output::note("Every payment was booked or sent back."),
        _ => output::print(&output::table(&HEADER, &rows(&found))),
    }
    Ok(())
}

fn print_moved(args: &Args, moved: &PaymentMoved) {
    let shown = std::slice::from_ref(&moved.payment);
    match args.format() {
        OutputFormat::Json => {
            output::print_json(&json!({
                "payment": payment(&moved.payment),
                "entry": moved.entry.as_ref().map(document::json),
                "customer": view::customer(&moved.customer),
            }));
        }
        OutputFormat::Csv => output::print(&csv::document(&HEADER, &rows(shown))),
        _ => {
            output::print(&output::table(&HEADER, &rows(shown)));
            let customer = &moved.customer;
            if customer.claim.is_positive() {
                output::note(&format!(
                    "{} owes {} USD, which what it pays next goes to first; until then its requests are refused.",
                    customer.id, customer.claim
                ));
            }
        }
    }
}

/// A payment, and what of it went back.
fn payment(payment: &Payment) -> Value {
    let (status, why) = status(payment);
    json!({
        "reference": payment.reference,
        "customer": payment.customer,
        "status": status,
        "why": why,
        "currency": payment.paid.currency,
        "gross": payment.paid.gross,
        "tax": payment.paid.tax,
        "amount": payment.credit,
        "refunded": payment.registers.refunded,
        "withdrawn": payment.registers.withdrawn,
        "reinstated": payment.registers.reinstated,
        "reversed": payment.due(),
        "actor": payment.actor,
        "at": payment.at,
    })
}

/// The word for where a payment is, and why it is not booked.
fn status(payment: &Payment) -> (&'static str, Option<&str>) {
    match &payment.status {
        PaymentStatus::Booked => ("booked", None),
        PaymentStatus::Unapplied { why } => ("unapplied", Some(why)),
        PaymentStatus::Returned => ("returned", None),
    }
}

fn rows(payments: &[Payment]) -> Vec<Vec<String>> {
    let row = |payment: &Payment| {
        let (status, why) = status(payment);
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

//! Money in: top-ups, refunds and corrections, what is owed for payments that went back, and payments that could not be booked.

use farebox_ledger::{
    Amount, EntryKind, GrantRecord, JournalEntry, Payment, StatementMonth, Timestamp,
};
use maud::{Markup, html};

use super::table::{column, table};
use super::{display, grants};
use crate::paper::PaperDocument;

/// The view; entries, documents and months newest first.
pub(in crate::customer) fn page(
    entries: &[JournalEntry],
    documents: &[PaperDocument],
    months: &[StatementMonth],
    open: &OpenMoney,
    now: Timestamp,
) -> Markup {
    let moved = display::places(entries.iter().map(|entry| entry.amount));
    let after = display::places(entries.iter().map(|entry| entry.balance_after));
    let columns = [
        column("Time (UTC)", "time"),
        column("What", "name"),
        column("Reference", "id"),
        column("USD", "number cost"),
        column("Balance after", "number"),
    ];
    let rows = entries.iter().map(|entry| {
        vec![
            at(entry.at, "%b %d, %Y %H:%M:%S"),
            html! { (what(entry.kind)) @if let Some(reason) = &entry.reason { span.hint { ": " (reason) } } },
            html! { (entry.reference.as_deref().unwrap_or("–")) },
            html! { (display::aligned(entry.amount, moved)) },
            html! { (display::aligned(entry.balance_after, after)) },
        ]
    });
    html! {
        h1 { "Payments" }
        (owed(open.claim))
        (unapplied(&open.unapplied))
        (grants::list(&open.grants, now))
        section.card aria-label="Payments" {
            @if entries.is_empty() { p.empty { "Nothing has been paid yet." } } @else {
                (table("stacked", "Payments, newest first", &columns, rows))
            }
            p.hint { "The newest 100 payments and corrections, of all keys." }
        }
        section.card aria-labelledby="paper" {
            h2 #paper { "Receipts" }
            @if documents.is_empty() { p.empty { "There is no receipt yet." } } @else {
                (receipts(documents))
                p.hint {
                    "Printed, a page is a receipt. All of them: " a href="/dashboard/paper/all.csv" { "CSV" } ", "
                    a href="/dashboard/paper/all.json" { "JSON" }
                }
            }
        }
        section.card aria-labelledby="statements" {
            h2 #statements { "Monthly statements" }
            ul.statements { @for month in months {
                li {
                    a href={ "/dashboard/statements/" (month) } { (month) } " ("
                    a href={ "/dashboard/statements/" (month) ".csv" } aria-label={ "CSV of " (month) } { "CSV" } ", "
                    a href={ "/dashboard/statements/" (month) ".json" } aria-label={ "JSON of " (month) } { "JSON" } ")"
                }
            } }
        }
    }
}

/// What a customer owes, payments of it that are in no balance, and what it was given.
#[derive(Debug, Default)]
pub(in crate::customer) struct OpenMoney {
    /// Owed for payments that went back.
    pub(in crate::customer) claim: Amount,
    /// Payments that could not be booked, oldest first.
    pub(in crate::customer) unapplied: Vec<Payment>,
    /// Credit that may end, newest first.
    pub(in crate::customer) grants: Vec<GrantRecord>,
}

/// What is owed, if anything is.
pub(in crate::customer) fn owed(claim: Amount) -> Markup {
    html! { @if claim.is_positive() {
        p.problem #claim {
            "A payment went back after its credit was spent: " strong { (display::money(claim)) " USD" }
            " are owed. What is paid next goes there first; until then requests are refused."
        }
    } }
}

fn unapplied(payments: &[Payment]) -> Markup {
    let columns = [
        column("Time (UTC)", "time"),
        column("Reference", "id"),
        column("Paid", ""),
        column("USD", "number cost"),
    ];
    let rows = payments.iter().map(|payment| {
        vec![
            at(payment.at, "%b %d, %Y %H:%M:%S"),
            html! { (payment.reference) },
            html! { (payment.paid.gross) " " (payment.paid.currency) },
            html! { (display::money(payment.credit)) },
        ]
    });
    html! { @if !payments.is_empty() {
        section.card aria-labelledby="unapplied" {
            h2 #unapplied { "Not booked yet" }
            (table("stacked", "Payments that could not be booked, oldest first", &columns, rows))
            p.hint { "These payments arrived and are in no balance: the seller books them, or sends the money back." }
        }
    } }
}

fn receipts(documents: &[PaperDocument]) -> Markup {
    let columns = [
        column("Number", "name"),
        column("Date", "time"),
        column("What", ""),
        column("Total", "number cost"),
    ];
    let rows = documents.iter().map(|document| {
        vec![
            html! { a href={ "/dashboard/paper/" (document.number) } { (document.number) } },
            at(document.at, "%b %d, %Y"),
            html! { (document.kind.as_str()) },
            html! { (document.total()) },
        ]
    });
    table(
        "stacked",
        "Receipts and corrections, newest first",
        &columns,
        rows,
    )
}

fn at(at: Timestamp, format: &str) -> Markup {
    html! { time datetime=(at) { (display::format(at, format)) } }
}

fn what(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::TopUp => "Top-up",
        EntryKind::Refund => "Refund",
        EntryKind::Adjust | EntryKind::WriteOff => "Correction",
        EntryKind::Carry => "Carried into the next period",
        EntryKind::Grant => "Credit",
        EntryKind::Expired => "Expired",
        EntryKind::Void => "Taken back",
        EntryKind::Reversal => "Reversal",
        EntryKind::Move => "Moved",
        EntryKind::Charge => "Charge",
    }
}

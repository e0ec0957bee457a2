//! Money in: top-ups, refunds and corrections, what is owed for payments that went back, and payments that could not be booked.

use farebox_ledger::{Amount, EntryKind, JournalEntry, Payment, StatementMonth};
use maud::{Markup, html};

use super::shown;
use crate::paper::PaperDocument;

/// The view; entries, documents and months newest first.
pub(in crate::customer) fn page(
    entries: &[JournalEntry],
    documents: &[PaperDocument],
    months: &[StatementMonth],
    open: &OpenMoney,
) -> Markup {
    let moved = shown::places(entries.iter().map(|entry| entry.amount));
    let after = shown::places(entries.iter().map(|entry| entry.balance_after));
    html! {
        h1 { "Payments" }
        (owed(open.claim))
        (unapplied(&open.unapplied))
        section.card aria-label="Payments" {
            @if entries.is_empty() { p.empty { "Nothing has been paid yet." } } @else {
                table.stacked role="table" {
                    caption.hidden { "Payments, newest first" }
                    thead role="rowgroup" { tr role="row" {
                        th scope="col" role="columnheader" { "Time (UTC)" }
                        th scope="col" role="columnheader" { "What" }
                        th scope="col" role="columnheader" { "Reference" }
                        th.number scope="col" role="columnheader" { "USD" }
                        th.number scope="col" role="columnheader" { "Balance after" }
                    } }
                    tbody role="rowgroup" { @for entry in entries { (row(entry, (moved, after))) } }
                }
            }
            p.hint { "The newest 100 payments and corrections, of all keys." }
        }
        section.card aria-labelledby="paper" {
            h2 #paper { "Receipts" }
            @if documents.is_empty() { p.empty { "There is no receipt yet." } } @else {
                table.stacked role="table" {
                    caption.hidden { "Receipts and corrections, newest first" }
                    thead role="rowgroup" { tr role="row" {
                        th scope="col" role="columnheader" { "Number" }
                        th scope="col" role="columnheader" { "Date" }
                        th scope="col" role="columnheader" { "What" }
                        th.number scope="col" role="columnheader" { "Total" }
                    } }
                    tbody role="rowgroup" { @for document in documents { (receipt(document)) } }
                }
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

/// What a customer owes, and payments of it that are in no balance.
#[derive(Debug, Default)]
pub(in crate::customer) struct OpenMoney {
    /// Owed for payments that went back.
    pub(in crate::customer) claim: Amount,
    /// Payments that could not be booked, oldest first.
    pub(in crate::customer) unapplied: Vec<Payment>,
}

/// What is owed, if anything is.
pub(in crate::customer) fn owed(claim: Amount) -> Markup {
    html! { @if claim.is_positive() {
        p.problem #claim {
            "A payment went back after its credit was spent: " strong { (shown::money(claim)) " USD" }
            " are owed. What is paid next goes there first; until then requests are refused."
        }
    } }
}

fn unapplied(payments: &[Payment]) -> Markup {
    html! { @if !payments.is_empty() {
        section.card aria-labelledby="unapplied" {
            h2 #unapplied { "Not booked yet" }
            table.stacked role="table" {
                caption.hidden { "Payments that could not be booked, oldest first" }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "Time (UTC)" }
                    th scope="col" role="columnheader" { "Reference" }
                    th scope="col" role="columnheader" { "Paid" }
                    th.number scope="col" role="columnheader" { "USD" }
                } }
                tbody role="rowgroup" { @for payment in payments {
                    tr role="row" {
                        td.time role="cell" data-label="Time" { time datetime=(payment.at) { (shown::format(payment.at, "%b %d, %Y %H:%M:%S")) } }
                        td.id role="cell" data-label="Reference" { (payment.reference) }
                        td role="cell" data-label="Paid" { (payment.paid.gross) " " (payment.paid.currency) }
                        td.number.cost role="cell" data-label="USD" { (shown::money(payment.credit)) }
                    }
                } }
            }
            p.hint { "These payments arrived and are in no balance: the seller books them, or sends the money back." }
        }
    } }
}

fn receipt(document: &PaperDocument) -> Markup {
    html! {
        tr role="row" {
            td.name role="cell" data-label="Number" { a href={ "/dashboard/paper/" (document.number) } { (document.number) } }
            td.time role="cell" data-label="Date" { time datetime=(document.at) { (shown::format(document.at, "%b %d, %Y")) } }
            td role="cell" data-label="What" { (document.kind.as_str()) }
            td.number.cost role="cell" data-label="Total" { (document.total()) }
        }
    }
}

fn row(entry: &JournalEntry, (moved, after): (usize, usize)) -> Markup {
    let what = match entry.kind {
        EntryKind::TopUp => "Top-up",
        EntryKind::Refund => "Refund",
        EntryKind::Adjust | EntryKind::WriteOff => "Correction",
        EntryKind::Grant => "Credit",
        EntryKind::Expired => "Expired",
        EntryKind::Void => "Taken back",
        EntryKind::Reversal => "Reversal",
        EntryKind::Move => "Moved",
        EntryKind::Charge => "Charge",
    };
    html! {
        tr role="row" {
            td.time role="cell" data-label="Time" { time datetime=(entry.at) { (shown::format(entry.at, "%b %d, %Y %H:%M:%S")) } }
            td.name role="cell" data-label="What" { (what) @if let Some(reason) = &entry.reason { span.hint { ": " (reason) } } }
            td.id role="cell" data-label="Reference" { (entry.reference.as_deref().unwrap_or("–")) }
            td.number.cost role="cell" data-label="USD" { (shown::aligned(entry.amount, moved)) }
            td.number role="cell" data-label="Balance after" { (shown::aligned(entry.balance_after, after)) }
        }
    }
}

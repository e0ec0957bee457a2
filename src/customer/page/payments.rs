//! Money in: top-ups, refunds and corrections.

use farebox_ledger::{EntryKind, JournalEntry, StatementMonth};
use maud::{Markup, html};

use super::shown;
use crate::paper::PaperDocument;

/// The view; entries, documents and months newest first.
pub(in crate::customer) fn page(
    entries: &[JournalEntry],
    documents: &[PaperDocument],
    months: &[StatementMonth],
) -> Markup {
    let moved = shown::places(entries.iter().map(|entry| entry.amount));
    let after = shown::places(entries.iter().map(|entry| entry.balance_after));
    html! {
        h1 { "Payments" }
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

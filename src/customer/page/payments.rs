//! Money in: top-ups, refunds and corrections.

use farebox_ledger::{EntryKind, JournalEntry};
use maud::{Markup, html};

use super::shown;

/// The view; entries newest first.
pub(in crate::customer) fn page(entries: &[JournalEntry]) -> Markup {
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

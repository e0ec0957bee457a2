//! `farebox ledger …`: read and check the books. Works beside a running gateway.

use farebox_ledger::sqlite::OpenMode;
use farebox_ledger::{Entry, EntryKind, EntryQuery, Ledger};
use serde_json::json;

use super::args::{Args, EntriesOptions, Format};
use super::output::{self, Failed};
use super::{keys, view};
use crate::csv;

pub(super) async fn entries(args: &Args, options: &EntriesOptions) -> Result<(), Failed> {
    let ledger = keys::open(args, OpenMode::ReadOnly)?;
    let query = EntryQuery { key: options.key, since: options.since, until: options.until, before: None, limit: options.limit };
    let entries = ledger.entries(query).await?;
    match args.format() {
        Format::Json => output::print_json(&json!({ "entries": entries.iter().map(view::entry).collect::<Vec<_>>() })),
        Format::Csv => output::print(&csv::document(&CSV_HEADER, &entries.iter().map(csv_row).collect::<Vec<_>>())),
        _ if entries.is_empty() => output::note("No entries."),
        _ => output::print(&output::table(&HEADER, &entries.iter().map(row).collect::<Vec<_>>())),
    }
    Ok(())
}

pub(super) async fn verify(args: &Args) -> Result<(), Failed> {
    let ledger = keys::open(args, OpenMode::ReadOnly)?;
    let report = ledger.verify().await?;
    let summary = format!("{} keys, {} entries, {} open holds", report.keys, report.entries, report.holds);
    match args.format() {
        Format::Json => output::print_json(&json!(report)),
        _ if report.faults.is_empty() => output::print(&format!("the books are sound: {summary}")),
        _ => output::print(&format!("{}\n{} faults in {summary}", report.faults.join("\n"), report.faults.len())),
    }
    if report.faults.is_empty() {
        Ok(())
    } else {
        Err(Failed::refused("the books do not add up; do not serve from this ledger before you know why"))
    }
}

const HEADER: [&str; 8] = ["at", "key", "seq", "kind", "amount", "balance", "what", "tokens"];

fn row(entry: &Entry) -> Vec<String> {
    let (what, tokens) = match &entry.bill {
        Some(bill) => {
            let usage = bill.usage;
            let input = usage.input + usage.cache_read + usage.cache_write + usage.cache_write_1h;
            (
                format!("{} {}", bill.slug, bill.end_reason),
                format!("{input} ({} cached) → {}", usage.cache_read, usage.output + usage.reasoning),
            )
        }
        None => (output::plain(&entry.reference.clone().unwrap_or_default()), String::new()),
    };
    vec![
        entry.at.to_string(),
        entry.key.to_string(),
        entry.seq.to_string(),
        kind(entry.kind).to_owned(),
        entry.amount.to_string(),
        entry.balance_after.to_string(),
        what,
        tokens,
    ]
}

const CSV_HEADER: [&str; 23] = [
    "at",
    "key",
    "seq",
    "kind",
    "amount",
    "balance_after",
    "request_id",
    "slug",
    "family",
    "target",
    "status",
    "end_reason",
    "input",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "output",
    "reasoning",
    "hold",
    "loss",
    "evidence",
    "reference",
    "actor",
];

fn csv_row(entry: &Entry) -> Vec<String> {
    let mut row = vec![
        entry.at.to_string(),
        entry.key.to_string(),
        entry.seq.to_string(),
        kind(entry.kind).to_owned(),
        entry.amount.to_string(),
        entry.balance_after.to_string(),
        entry.request().map(crate::proxy::record::request_id).unwrap_or_default(),
    ];
    match &entry.bill {
        None => row.extend(std::iter::repeat_n(String::new(), 14)),
        Some(bill) => {
            let usage = bill.usage;
            row.extend([
                bill.slug.clone(),
                bill.family.clone(),
                bill.target.clone(),
                bill.status.to_string(),
                bill.end_reason.clone(),
            ]);
            row.extend(
                [usage.input, usage.cache_read, usage.cache_write, usage.cache_write_1h, usage.output, usage.reasoning]
                    .map(|count| count.to_string()),
            );
            row.extend([bill.hold.to_string(), bill.loss.to_string(), format!("{:?}", bill.evidence).to_lowercase()]);
        }
    }
    row.extend([entry.reference.clone().unwrap_or_default(), entry.actor.clone()]);
    row
}

fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::TopUp => "top_up",
        EntryKind::Charge => "charge",
        EntryKind::Refund => "refund",
        EntryKind::Adjust => "adjust",
    }
}

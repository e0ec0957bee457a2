//! `farebox ledger …`: read and check the books. Works beside a running gateway.

use farebox_ledger::sqlite::OpenMode;
use farebox_ledger::{Entry, EntryKind, EntryQuery, Ledger, Line, VerifyReport, anchor};
use serde_json::json;

use super::args::{Args, BackupOptions, EntriesOptions, Format};
use super::output::{self, Failed};
use super::{books, view};
use crate::csv;

pub(super) async fn entries(args: &Args, options: &EntriesOptions) -> Result<(), Failed> {
    let ledger = books::open(args, OpenMode::ReadOnly)?;
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
    let ledger = books::open(args, OpenMode::ReadOnly)?;
    let anchors = match &args.anchors {
        Some(path) => anchor::read(path).map_err(|error| Failed::refused(format!("{}: {error}", path.display())))?,
        None => Vec::new(),
    };
    let report = ledger.verify_with(anchors).await?;
    let summary = summary(&report);
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

pub(super) async fn backup(args: &Args, options: &BackupOptions) -> Result<(), Failed> {
    let ledger = books::open(args, OpenMode::ReadOnly)?;
    let report = ledger.backup(&options.file).await?;
    match args.format() {
        Format::Json => output::print_json(&json!({ "file": options.file, "verified": report })),
        _ => output::print(&format!("{} is a verified copy: {}", options.file.display(), summary(&report))),
    }
    Ok(())
}

fn summary(report: &VerifyReport) -> String {
    let VerifyReport { keys, entries, holds, anchors, .. } = report;
    format!("{keys} keys, {entries} entries, {holds} open holds, {anchors} anchors")
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

/// New columns come last: scripts count them.
const CSV_HEADER: [&str; 28] = [
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
    "reason",
    "images",
    "lines",
    "first_byte_ms",
    "total_ms",
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
    row.extend([entry.reference.clone(), Some(entry.actor.clone()), entry.reason.clone()].map(Option::unwrap_or_default));
    row.extend(match &entry.bill {
        None => [const { String::new() }; 4],
        Some(bill) => {
            let first_byte = bill.first_byte_ms.map(|millis| millis.to_string()).unwrap_or_default();
            [bill.usage.images.to_string(), lines(&bill.lines), first_byte, bill.total_ms.to_string()]
        }
    });
    row
}

/// Count × rate of everything that was bought: what the charge can be recomputed from.
fn lines(lines: &[Line]) -> String {
    let line = |line: &Line| format!("{} {} x {}", line.what, line.count, line.rate);
    lines.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::TopUp => "top_up",
        EntryKind::Charge => "charge",
        EntryKind::Refund => "refund",
        EntryKind::Adjust => "adjust",
    }
}

//! Receipts: what one request used, what it cost and how it ended, as a document and as a row of a spreadsheet.
//!
//! Never shows the target: which provider served a request is the operator's business.

use farebox_ledger::{Amount, Bill, Entry, EntryKind, Key, Ledger, Timestamp};

use super::activity::Refused;
use super::decimal_json::DecimalJson;
use super::usage::{COUNTS, counts};
use crate::proxy::{Failure, LOST, REMOVED, record};
use farebox_ledger::csv;

/// The charge of this key that an id names: our request id, or the id in the answer.
///
/// # Errors
/// 404 for an id that is unknown or another key's.
pub(super) async fn find(ledger: &dyn Ledger, key: &Key, id: &str) -> Result<Entry, Failure> {
    let found = match record::operation(id) {
        Some(operation) => ledger.entry(operation).await?,
        None if id.is_empty() || id.len() > 200 => None,
        None => ledger.entry_by_answer(key.id, id).await?,
    };
    found
        .filter(|entry| entry.key == key.id && entry.kind == EntryKind::Charge)
        .ok_or_else(|| Failure::NoRequest(id.to_owned()))
}

/// The document of one charge.
pub(super) fn document(entry: &Entry) -> DecimalJson {
    let blank = Bill::default();
    let bill = entry.bill.as_ref().unwrap_or(&blank);
    let (usage, charge) = (bill.usage, charged(entry));
    let first_byte = bill.first_byte_ms;
    let prompt = usage.prompt();
    let began = Timestamp::from_millis(entry.at.millis().saturating_sub(i64::from(bill.total_ms)));
    DecimalJson::object([
        ("id", record::request_id(entry.operation).into()),
        ("answer_id", bill.answer_id.as_deref().into()),
        ("model", bill.slug.as_str().into()),
        ("family", bill.family.as_str().into()),
        ("status", u32::from(bill.status).into()),
        ("created_at", began.to_string().into()),
        ("ended_at", entry.at.to_string().into()),
        ("total_cost", charge.into()),
        ("charge", charge.into()),
        ("hold", bill.hold.into()),
        ("loss", bill.loss.into()),
        // What a provider may still bill us for it, at these prices.
        ("uncharged", bill.exposure.into()),
        ("balance_after", entry.balance_after.into()),
        ("usage", counts(&usage)),
        (
            "lines",
            DecimalJson::List(bill.lines.iter().map(line).collect()),
        ),
        ("evidence", evidence(bill).into()),
        ("end_reason", bill.end_reason.as_str().into()),
        ("removed", fact(bill, REMOVED).into()),
        ("lost", fact(bill, LOST).into()),
        ("first_byte_ms", first_byte.into()),
        ("total_ms", bill.total_ms.into()),
        // The fields that tools of other gateways read in this document.
        ("finish_reason", bill.end_reason.as_str().into()),
        ("latency", first_byte.into()),
        (
            "generation_time",
            bill.total_ms
                .saturating_sub(first_byte.unwrap_or_default())
                .into(),
        ),
        ("tokens_prompt", prompt.into()),
        ("tokens_completion", (usage.output + usage.reasoning).into()),
        ("native_tokens_prompt", prompt.into()),
        (
            "native_tokens_completion",
            (usage.output + usage.reasoning).into(),
        ),
        ("native_tokens_cached", usage.cache_read.into()),
        ("native_tokens_reasoning", usage.reasoning.into()),
    ])
}

/// The document of a request that was refused before any money was held: it cost nothing.
pub(super) fn refused_document(refused: &Refused) -> DecimalJson {
    let nothing = || DecimalJson::from(Amount::ZERO);
    DecimalJson::object([
        ("id", record::request_id(refused.request).into()),
        ("answer_id", DecimalJson::Null),
        ("model", refused.slug.as_str().into()),
        ("family", refused.family.into()),
        ("status", u32::from(refused.status).into()),
        ("ended_at", refused.at.to_string().into()),
        ("total_cost", nothing()),
        ("charge", nothing()),
        ("hold", nothing()),
        ("usage", counts(&farebox_ledger::Usage::default())),
        ("lines", DecimalJson::List(Vec::new())),
        ("end_reason", refused.reason.as_str().into()),
        ("message", refused.message.as_str().into()),
    ])
}

/// The amount charged to the key.
pub(super) fn charged(entry: &Entry) -> Amount {
    entry.amount.checked_neg().unwrap_or_default()
}

fn line(line: &farebox_ledger::Line) -> DecimalJson {
    DecimalJson::object([
        ("what", line.what.as_ref().into()),
        ("count", line.count.into()),
        ("rate", line.rate.into()),
        ("amount", Amount::times(line.rate, line.count).into()),
    ])
}

/// A fact of the bill, in the form of its header.
pub(super) fn fact<'b>(bill: &'b Bill, name: &str) -> Option<&'b str> {
    bill.facts.get(name).map(String::as_str)
}

fn evidence(bill: &Bill) -> Option<&'static str> {
    bill.counted_by().map(farebox_ledger::document::evidence)
}

/// The header of a spreadsheet of requests.
pub(super) fn spreadsheet_header() -> String {
    let before = [
        "at",
        "request_id",
        "model",
        "family",
        "status",
        "end_reason",
    ];
    let after = [
        "cost",
        "balance_after",
        "first_byte_ms",
        "total_ms",
        "evidence",
        "answer_id",
    ];
    csv::line(
        before
            .into_iter()
            .chain(COUNTS.map(|(name, _)| name))
            .chain(after),
    )
}

/// One charge as a row under that header.
pub(super) fn spreadsheet_row(entry: &Entry) -> String {
    let blank = Bill::default();
    let bill = entry.bill.as_ref().unwrap_or(&blank);
    let mut cells = vec![
        entry.at.to_string(),
        record::request_id(entry.operation),
        bill.slug.clone(),
        bill.family.clone(),
        bill.status.to_string(),
        bill.end_reason.to_string(),
    ];
    cells.extend(COUNTS.map(|(_, count)| count(&bill.usage).to_string()));
    cells.extend([
        charged(entry).to_string(),
        entry.balance_after.to_string(),
        bill.first_byte_ms
            .map(|ms| ms.to_string())
            .unwrap_or_default(),
        bill.total_ms.to_string(),
        evidence(bill).unwrap_or_default().to_owned(),
        bill.answer_id.clone().unwrap_or_default(),
    ]);
    csv::line(cells.iter().map(String::as_str))
}

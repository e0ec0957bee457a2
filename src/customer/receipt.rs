//! Receipts: what one request used, what it cost and how it ended, as a document and as a row of a spreadsheet.
//!
//! Never shows the target, the provider's account or what the provider says of its own price: they are the operator's business.

use farebox_ledger::{Amount, Bill, EntryKind, JournalEntry, Key, Ledger, Timestamp, UsageKind};

use super::activity::RefusedRequest;
use super::decimal_json::DecimalJson;
use super::sources::ChargeSources;
use super::usage::{LATER_COUNTS, counts};
use crate::proxy::{Failure, LIMIT, LOST, REMOVED, WAITED, record};
use farebox_ledger::csv;

/// The charge of this key that an id names: our request id, or the id in the answer.
///
/// # Errors
/// 404 for an id that is unknown or another key's.
pub(super) async fn find(
    ledger: &dyn Ledger,
    key: &Key,
    id: &str,
) -> Result<JournalEntry, Failure> {
    let found = match record::operation(id) {
        Some(operation) => ledger.entry(operation).await?,
        None if id.is_empty() || id.len() > 200 => None,
        None => ledger.entry_by_answer(key.id, id).await?,
    };
    found
        .filter(|entry| entry.key == Some(key.id) && entry.kind == EntryKind::Charge)
        .ok_or_else(|| Failure::NoRequest(id.to_owned()))
}

/// The charge that the holder of a key may see: an owner those of every key of its customer, by our request id.
///
/// # Errors
/// 404 for an id that is unknown, another customer's or, for a member, another key's.
pub(super) async fn find_seen(
    ledger: &dyn Ledger,
    key: &Key,
    id: &str,
) -> Result<JournalEntry, Failure> {
    if let Some(operation) = record::operation(id).filter(|_| key.is_owner) {
        let found = ledger.entry(operation).await?;
        return found
            .filter(|entry| entry.customer == key.customer.id && entry.kind == EntryKind::Charge)
            .ok_or_else(|| Failure::NoRequest(id.to_owned()));
    }
    find(ledger, key, id).await
}

/// Whether a request ended with a complete answer.
pub(super) fn is_good(bill: &Bill) -> bool {
    bill.status < 400 && bill.end_reason.is_own_end()
}

/// The document of one charge.
pub(super) fn document(
    entry: &JournalEntry,
    is_owner: bool,
    sources: &ChargeSources,
) -> DecimalJson {
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
        ("uncharged", bill.exposure.max(Amount::ZERO).into()),
        ("balance_after", balance_after(entry, is_owner).into()),
        ("usage", counts(&usage)),
        (
            "lines",
            DecimalJson::List(bill.lines.iter().map(line).collect()),
        ),
        // The class that served it; the lines say which of them were charged at its rates.
        ("class", bill.served.class().into()),
        ("evidence", evidence(bill).into()),
        ("end_reason", bill.end_reason.as_str().into()),
        ("removed", fact(bill, REMOVED).into()),
        ("lost", fact(bill, LOST).into()),
        ("limit", fact(bill, LIMIT).into()),
        ("waited_ms", fact(bill, WAITED).into()),
        ("run", bill.run().into()),
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
        ("tokens_completion", usage.all_output().into()),
        ("native_tokens_prompt", prompt.into()),
        ("native_tokens_completion", usage.all_output().into()),
        ("native_tokens_cached", usage.cache_read.into()),
        ("native_tokens_reasoning", usage.reasoning.into()),
        ("parts", sources.document(entry)),
    ])
}

/// The document of a request that was refused before any money was held: it cost nothing.
pub(super) fn refused_document(refused: &RefusedRequest) -> DecimalJson {
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

/// The customer's balance after a charge, which is not shown to a member.
fn balance_after(entry: &JournalEntry, is_owner: bool) -> Option<Amount> {
    is_owner.then_some(entry.balance_after)
}

/// The amount charged to the key.
pub(super) fn charged(entry: &JournalEntry) -> Amount {
    entry.amount.checked_neg().unwrap_or_default()
}

fn line(line: &farebox_ledger::BillLine) -> DecimalJson {
    let mut fields = vec![
        ("what", line.what.as_ref().into()),
        ("count", line.count.into()),
        ("rate", line.rate.into()),
        ("amount", Amount::times(line.rate, line.count).into()),
    ];
    if let Some(class) = line.class.as_deref() {
        fields.insert(1, ("class", class.into()));
    }
    DecimalJson::Object(fields)
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
        "class",
    ];
    csv::line(
        before
            .into_iter()
            .chain(UsageKind::FIRST.map(UsageKind::name))
            .chain(after)
            .chain(LATER_COUNTS.map(UsageKind::name))
            .chain(["key", "parts", "run"]),
    )
}

/// One charge as a row under that header.
pub(super) fn spreadsheet_row(
    entry: &JournalEntry,
    is_owner: bool,
    sources: &ChargeSources,
) -> String {
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
    cells.extend(UsageKind::FIRST.map(|kind| bill.usage[kind].to_string()));
    cells.extend([
        charged(entry).to_string(),
        balance_after(entry, is_owner)
            .map(|balance| balance.to_string())
            .unwrap_or_default(),
        bill.first_byte_ms
            .map(|ms| ms.to_string())
            .unwrap_or_default(),
        bill.total_ms.to_string(),
        evidence(bill).unwrap_or_default().to_owned(),
        bill.answer_id.clone().unwrap_or_default(),
        bill.served.class().unwrap_or_default().to_owned(),
    ]);
    cells.extend(LATER_COUNTS.map(|kind| bill.usage[kind].to_string()));
    cells.push(entry.key.map(|key| key.to_string()).unwrap_or_default());
    cells.push(sources.cell(entry));
    cells.push(bill.run().unwrap_or_default().to_owned());
    csv::line(cells.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{BillLine, KeyId, OperationId, Served, ServedRegion, ServedTier, Usage};

    use super::*;
    use crate::customer::page::receipt::page;

    fn charge() -> JournalEntry {
        let bill = Bill {
            slug: "small".to_owned(),
            target: "secret-provider/secret-model".to_owned(),
            provider_cost: Some(Amount::from_picos(123_456_789)),
            served: Served {
                tier: ServedTier::Fast,
                place: ServedRegion::Us,
                context_band: 1,
                account: "secret-account".to_owned(),
            },
            usage: Usage {
                cache_write_12h: 7,
                ..Usage::default()
            },
            lines: vec![
                BillLine {
                    what: "cache_write_12h".into(),
                    count: 7,
                    rate: Amount::from_picos(2_000_000),
                    class: Some("fast,us".into()),
                },
                BillLine {
                    what: "request".into(),
                    count: 1,
                    rate: Amount::from_picos(1_000_000),
                    class: None,
                },
            ],
            ..Bill::default()
        };
        JournalEntry {
            position: 1,
            seq: 1,
            customer: farebox_ledger::CustomerId::from_random(1),
            key: Some(KeyId::from_random(1)),
            operation: OperationId::from_bytes([1; 16]),
            kind: EntryKind::Charge,
            amount: Amount::from_picos(-15_000_000),
            balance_after: Amount::ZERO,
            at: Timestamp::default(),
            actor: "gateway".to_owned(),
            reference: None,
            reason: None,
            refunds: None,
            parts: Vec::new(),
            bill: Some(bill),
        }
    }

    #[test]
    fn a_receipt_names_the_class_and_nothing_of_the_provider() {
        let (entry, sources) = (charge(), ChargeSources::default());
        let text = document(&entry, true, &sources).document();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let lines = &json["lines"];
        assert_eq!(
            (&json["class"], &lines[0]["class"], lines[1].get("class")),
            (&"fast,us".into(), &"fast,us".into(), None)
        );
        assert_eq!(
            (&json["usage"]["cache_write_12h"], &json["tokens_prompt"]),
            (&7.into(), &7.into())
        );
        let row = spreadsheet_row(&entry, false, &sources);
        assert!(row.ends_with(",\"fast,us\",7,k_0000000001,,\r\n"), "{row}");
        assert_eq!(
            spreadsheet_header().split(',').count() + 1,
            row.split(',').count(),
            "one comma is the class's own"
        );
        let page = page(&entry, false, None).into_string();
        assert!(page.contains("cache write 12h, fast, us"), "{page}");
        for shown in [text, row, page] {
            assert!(
                !shown.contains("secret") && !shown.contains("123456789"),
                "{shown}"
            );
        }
        assert_eq!(json["balance_after"], 0.0);
        let entry = JournalEntry {
            bill: None,
            ..entry
        };
        let plain = document(&entry, false, &sources);
        assert!(plain.document().contains("\"balance_after\":null"));
        assert!(plain.document().contains("\"class\":null"));
    }
}

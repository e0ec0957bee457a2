//! How both databases store values other than numbers and texts: codes for this crate's enums, JSON for the lines of a bill.
//!
//! The meaning of a published code never changes.

use std::borrow::Cow;

use crate::book::chain::{evidence_code, kind_code};
use crate::{Amount, BillLine, CustomerId, EntryKind, Evidence, KeyId, MoneyPart};

/// The key of an entry or act that has none.
const NO_KEY: i64 = -1;

/// The key of an entry or act of a customer: `None` is the one with the customer's number, as in every row from before keys and
/// customers were two things.
pub(crate) fn key_number(customer: CustomerId, key: Option<KeyId>) -> Option<i64> {
    match key {
        None => Some(NO_KEY),
        Some(key) if key == customer.first_key() => None,
        Some(key) => Some(key.to_i64()),
    }
}

/// The inverse of [`key_number`]; nothing for a number that no key has.
pub(crate) fn key_of(customer: CustomerId, number: Option<i64>) -> Option<Option<KeyId>> {
    match number {
        None => Some(Some(customer.first_key())),
        Some(NO_KEY) => Some(None),
        // One way to write each, so that nothing can be rewritten unseen.
        Some(number) if number == customer.to_i64() => None,
        Some(number) => KeyId::from_i64(number).map(Some),
    }
}

pub(crate) fn evidence_of(code: i64) -> Option<Evidence> {
    let all = [
        Evidence::Provider,
        Evidence::Local,
        Evidence::Disputed,
        Evidence::Recovered,
        Evidence::Learned,
    ];
    all.into_iter()
        .find(|evidence| evidence_code(*evidence) == code)
}

pub(crate) fn kind_of(code: i64) -> Option<EntryKind> {
    let all = [
        EntryKind::TopUp,
        EntryKind::Charge,
        EntryKind::Refund,
        EntryKind::Adjust,
        EntryKind::Grant,
        EntryKind::Expired,
        EntryKind::Void,
        EntryKind::Reversal,
        EntryKind::Move,
        EntryKind::WriteOff,
        EntryKind::Carry,
    ];
    all.into_iter().find(|kind| kind_code(*kind) == code)
}

/// `[["input",100,3000000]]`: what, count, picodollars for one. Classes are among the bill's facts (`pairs.rs`).
pub(crate) fn lines_text(lines: &[BillLine]) -> serde_json::Result<String> {
    let rows: Vec<(&str, u64, i64)> = lines
        .iter()
        .map(|line| (&*line.what, line.count, line.rate.picos()))
        .collect();
    serde_json::to_string(&rows)
}

pub(crate) fn lines_of(text: &str) -> serde_json::Result<Vec<BillLine>> {
    let rows: Vec<(String, u64, i64)> = serde_json::from_str(text)?;
    let line = |(what, count, rate)| BillLine {
        what: Cow::Owned(what),
        count,
        rate: Amount::from_picos(rate),
        class: None,
    };
    Ok(rows.into_iter().map(line).collect())
}

/// The column of parts; NULL if there are none.
pub(crate) fn parts_text(parts: &[MoneyPart]) -> Option<String> {
    let text = || serde_json::to_string(parts).unwrap_or_default();
    (!parts.is_empty()).then(text)
}

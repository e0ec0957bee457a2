//! Money under `/api/v1`: what is told of payments that move.

use farebox_ledger::{Outcome, PaymentMoved, PaymentStatus};
use serde_json::Value;

use super::call::ToldTo;

/// What a payment came to: 202 if it, or what went back of it, could not be booked, 200 if it was known. Its customer and its balance are
/// shown to those who may read it.
pub(super) fn moved(outcome: &Outcome, told: &ToldTo) -> (u16, Value) {
    let mut document = farebox_selling::document(outcome);
    let Outcome::Payment(moved) = outcome else {
        return (told.status, document);
    };
    if !told.token.may_read(&moved.customer) {
        document["customer"] = Value::Null;
        if let Some(balance) = document.pointer_mut("/entry/balance_after") {
            *balance = Value::Null;
        }
    }
    (status(moved, told.status), document)
}

fn status(moved: &PaymentMoved, made: u16) -> u16 {
    match moved.payment.status {
        PaymentStatus::Unapplied { .. } => 202,
        _ if moved.entry.is_none() && !moved.payment.waiting.is_empty() => 202,
        _ if moved.repeated => 200,
        _ => made,
    }
}

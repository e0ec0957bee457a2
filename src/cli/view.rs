//! Keys and entries as the commands print them. The field names are stable: scripts read them.

use farebox_ledger::{Entry, Key, Timestamp};
use serde_json::{Map, Value, json};

use crate::proxy::record::request_id;

/// A key; its money first.
pub(super) fn key(key: &Key, now: Timestamp) -> Value {
    json!({
        "id": key.id,
        "label": key.settings.label,
        "status": key.status(now),
        "balance": key.account.balance(),
        "held": key.account.held,
        "available": key.account.available(),
        "models": key.settings.models,
        "expires_at": key.settings.expires_at,
        "rate": key.settings.rate,
        "concurrency": key.settings.concurrency,
        "created_at": key.created_at,
    })
}

/// A key with its secret, right after it was made: the only time it is shown.
pub(super) fn key_with_secret(made: &Key, secret: &str, now: Timestamp) -> Value {
    let mut with_secret = Map::new();
    if let Value::Object(fields) = key(made, now) {
        for (name, value) in fields {
            let after_id = name == "id";
            with_secret.insert(name, value);
            if after_id {
                with_secret.insert("secret".to_owned(), json!(secret));
            }
        }
    }
    Value::Object(with_secret)
}

/// One journal entry.
pub(super) fn entry(entry: &Entry) -> Value {
    let mut fields = json!({
        "seq": entry.seq,
        "key": entry.key,
        "kind": entry.kind,
        "amount": entry.amount,
        "balance_after": entry.balance_after,
        "request_id": entry.request().map(request_id),
        "slug": null, "usage": null, "lines": null, "hold": null, "loss": null, "evidence": null,
        "reference": entry.reference,
        "reason": entry.reason,
        "actor": entry.actor,
        "at": entry.at,
    });
    if let (Some(bill), Some(fields)) = (&entry.bill, fields.as_object_mut()) {
        let of_bill = json!({
            "slug": bill.slug,
            "usage": bill.usage,
            "lines": bill.lines,
            "hold": bill.hold,
            "loss": bill.loss,
            "evidence": bill.evidence,
            "family": bill.family,
            "target": bill.target,
            "status": bill.status,
            "end_reason": bill.end_reason,
            "first_byte_ms": bill.first_byte_ms,
            "total_ms": bill.total_ms,
        });
        if let Value::Object(of_bill) = of_bill {
            fields.extend(of_bill);
        }
    }
    fields
}

//! Keys as the commands print them. The field names are stable: scripts read them.

use farebox_ledger::{Key, Timestamp};
use serde_json::{Map, Value, json};

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

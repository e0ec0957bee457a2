//! Contents of the audit: the word and the details of each act, and the state an act leaves a key in.
//!
//! Pure. Details and states are JSON with fixed fields and never contain a secret: secrets appear as fingerprints, from which
//! neither the secret nor its stored hash can be found. States are hashed into the audit's chain, so their format is frozen per
//! version.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::book::head::AuditHead;
use crate::value::reference;
use crate::{
    Change, Credit, CreditKind, Key, KeyId, KeySettings, NewKey, OperationId, SecretHash, Timestamp,
};

/// One administrative act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Position in the audit, ascending.
    pub position: i64,
    /// The clock at the act, UTC.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What: `create`, `set`, `block`, `unblock`, `revoke`, `rotate`, `top_up`, `adjust`, `refund`, `link`,
    /// `set_cap`, `clear_cap`.
    pub act: String,
    /// The key it changed.
    pub key: KeyId,
    /// The operation's id.
    pub operation: OperationId,
    /// Details as one JSON object, without secrets.
    pub details: String,
}

/// An act before it has its place in the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) at: Timestamp,
    pub(crate) actor: String,
    pub(crate) act: &'static str,
    pub(crate) key: KeyId,
    pub(crate) operation: OperationId,
    pub(crate) details: String,
}

/// An act at its place, with the state in which it left the key.
#[derive(Debug, Clone)]
pub(crate) struct ActRecord {
    pub(crate) record: AuditRecord,
    /// Among the key's acts; 1 is the first.
    pub(crate) seq: i64,
    pub(crate) state: String,
}

impl Written {
    /// The record behind `head`; `key` is the key after the act.
    pub(crate) fn record(self, position: i64, head: &AuditHead, key: &Key) -> ActRecord {
        let record = AuditRecord {
            position,
            at: self.at,
            actor: self.actor,
            act: self.act.to_owned(),
            key: self.key,
            operation: self.operation,
            details: self.details,
        };
        ActRecord {
            record,
            seq: head.seq.saturating_add(1),
            state: state(key),
        }
    }

    /// Whether `record` is this act, performed before: same key, act and details. Actor and time may differ.
    pub(crate) fn repeats(&self, record: &AuditRecord) -> bool {
        self.key == record.key && self.act == record.act && self.details == record.details
    }
}

/// The creation of a key, with its first credit.
pub(crate) fn create(new: &NewKey) -> Written {
    let mut details = settings(&new.settings);
    if let (Some(object), Some((amount, reference))) = (details.as_object_mut(), &new.first_credit)
    {
        object.insert("credit".to_owned(), json!(amount));
        object.insert("reference".to_owned(), json!(reference::normal(reference)));
    }
    let act = new.act.clone();
    Written {
        at: act.at,
        actor: act.actor,
        act: "create",
        key: new.id,
        operation: act.operation,
        details: details.to_string(),
    }
}

/// A change of a key.
pub(crate) fn change(change: &crate::KeyChange) -> Written {
    let (word, details) = match &change.change {
        Change::Set(new) => ("set", settings(new)),
        Change::Block => ("block", json!({})),
        Change::Unblock => ("unblock", json!({})),
        Change::Revoke => ("revoke", json!({})),
        Change::Rotate { secret, old_until } => (
            "rotate",
            json!({ "secret": fingerprint(secret), "old_until": old_until }),
        ),
        Change::SetCap(cap) => ("set_cap", json!(cap)),
        Change::ClearCap { interval, model } => {
            ("clear_cap", json!({ "interval": interval, "model": model }))
        }
    };
    let act = change.act.clone();
    Written {
        at: act.at,
        actor: act.actor,
        act: word,
        key: change.key,
        operation: act.operation,
        details: details.to_string(),
    }
}

/// A credit.
pub(crate) fn credit(credit: &Credit) -> Written {
    let reference = reference::normal(&credit.reference);
    let (act, details) = match &credit.kind {
        CreditKind::TopUp => (
            "top_up",
            json!({ "amount": credit.amount, "reference": reference }),
        ),
        CreditKind::Adjust { reason } => (
            "adjust",
            json!({ "amount": credit.amount, "reference": reference, "reason": reason }),
        ),
        CreditKind::Refund { request, reason } => (
            "refund",
            json!({ "amount": credit.amount, "reference": reference, "request": request, "reason": reason }),
        ),
    };
    let (at, actor) = (credit.at, credit.actor.clone());
    Written {
        at,
        actor,
        act,
        key: credit.key,
        operation: credit.operation,
        details: details.to_string(),
    }
}

/// A sign-in link.
pub(crate) fn link(
    key: KeyId,
    token: &SecretHash,
    expires: Timestamp,
    act: &crate::Act,
) -> Written {
    let details = link_details(token, expires);
    Written {
        at: act.at,
        actor: act.actor.clone(),
        act: "link",
        key,
        operation: act.operation,
        details,
    }
}

/// The audit details of a sign-in link.
pub(crate) fn link_details(token: &SecretHash, expires: Timestamp) -> String {
    json!({ "link": fingerprint(token), "expires": expires }).to_string()
}

/// The part of a key that only an administrator changes.
pub(crate) fn state(key: &Key) -> String {
    let mut state = json!({
        "v": 1,
        "settings": settings(&key.settings),
        "status": key.stored_status.to_string(),
        "secret": fingerprint(&key.secret),
        "old_secret": key.old_secret.as_ref().map(|(hash, _)| fingerprint(hash)),
        "old_until": key.old_secret.map(|(_, until)| until),
        "created_at": key.created_at,
        "created_by": key.created_by,
    });
    // Keys without caps keep the state that every version wrote.
    if !key.caps.is_empty()
        && let Some(object) = state.as_object_mut()
    {
        object.insert("caps".to_owned(), json!(key.caps.settings()));
    }
    state.to_string()
}

fn settings(settings: &KeySettings) -> Value {
    json!({
        "label": settings.label,
        "models": settings.models,
        "expires_at": settings.expires_at,
        "rate": settings.rate,
        "concurrency": settings.concurrency,
    })
}

fn fingerprint(hash: &SecretHash) -> String {
    let digest: [u8; 32] = Sha256::new_with_prefix(b"farebox fingerprint")
        .chain_update(hash.0)
        .finalize()
        .into();
    hex::encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Account, Caps, KeyStatus};

    #[test]
    fn the_state_is_frozen_and_has_no_secret() {
        let key = Key {
            id: KeyId::from_random(1),
            settings: KeySettings {
                label: "a \"b\"".to_owned(),
                models: Some(vec!["m".to_owned()]),
                rate: Some(3),
                ..KeySettings::default()
            },
            stored_status: KeyStatus::Blocked,
            secret: SecretHash([0xab; 32]),
            old_secret: Some((SecretHash([0xcd; 32]), Timestamp::from_millis(9))),
            account: Account::default(),
            caps: Caps::default(),
            created_at: Timestamp::from_millis(7),
            created_by: "ada".to_owned(),
            last_entry_at: None,
        };
        let state = state(&key);
        let expected = concat!(
            r#"{"v":1,"settings":{"label":"a \"b\"","models":["m"],"expires_at":null,"rate":3,"concurrency":null},"status":"blocked""#,
            r#","secret":"b275f17ab5d11b6b95859d5430c8e0cc09e73f1919f06732d815a2dc1485c26a","old_secret":"379926cd25cb402172917dec219e4802c508ba7cf6540e105f34e47ecdb0513a""#,
            r#","old_until":"1970-01-01T00:00:00.009Z","created_at":"1970-01-01T00:00:00.007Z","created_by":"ada"}"#,
        );
        assert_eq!(state, expected);
        assert!(!state.contains("abab") && !state.contains("cdcd"));
    }
}

//! Acts that make grants, or take them back: the terms that they name are what the verifier holds a grant against.

use serde_json::{Value, json};

use super::audit::{AuditRecord, Written};
use crate::{Act, Amount, Grant, GrantId, GrantRecord, VoidGrant};

/// A grant that was given, or follows from a payment that came again.
pub(crate) fn grant(act: &Act, made: &GrantRecord) -> Written {
    Written::by(act, "grant", None, &json!({ "grants": [terms(made)] }))
}

/// What never changes of a grant. The format is frozen.
pub(crate) fn terms(made: &GrantRecord) -> Value {
    let Grant {
        id,
        customer,
        kind,
        amount,
        priority,
        effective_at,
        expires_at,
        models,
        remaining: _,
        held: _,
        status: _,
        told: _,
    } = &made.grant;
    json!({
        "id": id,
        "customer": customer,
        "kind": kind,
        "amount": amount,
        "priority": priority,
        "effective_at": effective_at,
        "expires_at": expires_at,
        "models": models,
        "reference": made.reference.0,
        "created_at": made.created_at,
        "created_by": made.created_by,
    })
}

/// The grants that an act made, with their terms.
pub(crate) fn made_grants(act: &AuditRecord) -> Vec<(GrantId, Value)> {
    let details: Value = serde_json::from_str(&act.details).unwrap_or_default();
    let all = details["grants"].as_array().into_iter().flatten();
    let named = all.filter_map(|terms| Some((terms["id"].as_str()?.parse().ok()?, terms.clone())));
    named.collect()
}

/// A grant that was taken back, and what this took from the customer's money.
pub(crate) fn void_grant(void: &VoidGrant, amount: Amount) -> Written {
    let details = json!({ "grant": void.grant, "amount": amount });
    Written::by(&void.act, "void_grant", None, &details)
}

impl Written {
    /// With the grants that it made.
    pub(crate) fn making(mut self, made: &[GrantRecord]) -> Self {
        if !made.is_empty() {
            let mut details: Value = serde_json::from_str(&self.details).unwrap_or_default();
            details["grants"] = made.iter().map(terms).collect();
            self.details = details.to_string();
        }
        self
    }
}

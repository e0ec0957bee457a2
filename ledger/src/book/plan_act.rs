//! Acts that change subscriptions, by people and by time: each names what it leaves, which is what the verifier holds a subscription against.

use serde_json::{Value, json};

use super::audit::{AuditRecord, Written};
use crate::{Act, GrantRecord, PlanAct, Subscription, SubscriptionId};

/// Periods were sold or given.
pub(crate) const SELLS: &str = "sell_plan";
/// A period began.
pub(crate) const BEGINS: &str = "begin_period";
/// The last period was over, and the next one not paid.
pub(crate) const LAPSES: &str = "lapse_plan";
/// A subscription got other terms.
pub(crate) const CHANGES: &str = "change_plan";
/// Something of a payment for periods went back, or came again.
pub(crate) const GOES_BACK: &str = "reverse_plan";

/// The word of a change.
pub(crate) const fn word(change: &PlanAct) -> &'static str {
    match change {
        PlanAct::Give(_) => SELLS,
        PlanAct::Change { .. } => CHANGES,
        PlanAct::Pause => "pause_plan",
        PlanAct::Resume => "resume_plan",
        PlanAct::End => "end_plan",
        PlanAct::WantEnd => "want_end_plan",
    }
}

/// An act that leaves a subscription like this, and made these grants.
pub(crate) fn leaves(
    act: &Act,
    word: &'static str,
    left: &Subscription,
    made: &[GrantRecord],
) -> Written {
    let details = json!({ "subscription": state(left) });
    Written::by(act, word, None, &details).making(made)
}

/// What acts say of a subscription. The format is frozen.
pub(crate) fn state(of: &Subscription) -> Value {
    let mut state = json!(of.state);
    state["id"] = json!(of.id);
    state
}

/// The subscription that an act left, and what it said of it.
pub(crate) fn left(act: &AuditRecord) -> Option<(SubscriptionId, Value)> {
    let details: Value = serde_json::from_str(&act.details).ok()?;
    let state = details.get("subscription")?;
    Some((state["id"].as_str()?.parse().ok()?, state.clone()))
}

/// The terms of a grant that is a period, beside what its subscription says: its end moves when that is paused.
pub(crate) fn without_end(mut terms: Value) -> Value {
    terms["expires_at"] = Value::Null;
    terms
}

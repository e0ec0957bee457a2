//! What operations tell: events in the outbox, in the transaction of their cause.

use serde_json::json;

use super::wishes;
use crate::batch::rows::Rows;
use crate::book::head::StoredCustomer;
use crate::rule::cap::CapNews;
use crate::{
    Act, Change, Credit, CustomerAct, CustomerId, CustomerStatus, EventKind, JournalEntry,
    KeyStatus, NewKey, NewPayment, NewReversal, OperationId, Scope, UtcDay,
};

/// Tells what has become of a customer's balance, if that is worth it, and asks for money by its rule.
pub(super) fn judge_balance(rows: &mut Rows, customer: CustomerId, cause: OperationId) {
    tell_balance(rows, customer, cause);
    wishes::judge(rows, customer, cause);
}

fn tell_balance(rows: &mut Rows, customer: CustomerId, cause: OperationId) {
    let Ok(StoredCustomer {
        customer: of,
        watch,
        ..
    }) = rows.customer(customer)
    else {
        return;
    };
    let (set, balance) = (of.warned_below(), of.account.balance());
    let (told, news) = watch.judge(set, balance);
    if told == watch.told {
        return;
    }
    let data = json!({ "balance": balance, "threshold": watch.threshold(set) });
    rows.set_watch(customer, |watch| watch.told = told);
    if let Some(kind) = news {
        rows.tell(customer, cause, kind, &data);
    }
}

/// Tells of caps of which a charge has used up much.
pub(super) fn caps(
    rows: &mut Rows,
    customer: CustomerId,
    cause: OperationId,
    reached: Vec<(Scope, CapNews)>,
) {
    for (scope, news) in reached {
        let CapNews { cap, window, level } = news;
        let data = json!({
            "scope": scope,
            "interval": cap.interval.to_string(),
            "model": cap.model,
            "limit": cap.limit,
            "charged": window.charged,
            "percent": level,
            "since": window.since.begin(),
            "resets_at": cap.interval.next(window.since).map(UtcDay::begin),
        });
        rows.tell(customer, cause, EventKind::CapReached, &data);
    }
}

/// Tells of a customer that was made. Its label may be a person's name, which stands in no event.
pub(super) fn customer_created(rows: &mut Rows, customer: CustomerId, act: &Act) {
    let external_id = match rows.customer(customer) {
        Ok(stored) => stored.customer.settings.external_id.clone(),
        Err(_) => None,
    };
    let data = json!({ "external_id": external_id, "actor": act.actor });
    rows.tell(customer, act.operation, EventKind::CustomerCreated, &data);
}

/// Tells of a change of a customer's status.
pub(super) fn customer_changed(
    rows: &mut Rows,
    customer: CustomerId,
    before: CustomerStatus,
    change: &CustomerAct,
    act: &Act,
) {
    let kind = match (change, before) {
        (CustomerAct::Suspend, CustomerStatus::Active) => EventKind::CustomerSuspended,
        (CustomerAct::Resume, CustomerStatus::Suspended) => EventKind::CustomerResumed,
        _ => return,
    };
    rows.tell(
        customer,
        act.operation,
        kind,
        &json!({ "actor": act.actor }),
    );
}

/// Tells of a key that was made.
pub(super) fn key_created(rows: &mut Rows, new: &NewKey) {
    let data = json!({ "key": new.id, "owner": new.within.is_owner, "actor": new.act.actor });
    let operation = new.act.operation;
    rows.tell(new.belongs_to(), operation, EventKind::KeyCreated, &data);
}

/// Tells of a change of a key that others have to know.
pub(super) fn key_changed(
    rows: &mut Rows,
    (customer, key): (CustomerId, crate::KeyId),
    before: KeyStatus,
    change: &Change,
    act: &Act,
) {
    let kind = match change {
        Change::Rotate { .. } | Change::Reissue { .. } => EventKind::KeyRotated,
        Change::Block if before != KeyStatus::Blocked => EventKind::KeyBlocked,
        Change::Revoke if before != KeyStatus::Revoked => EventKind::KeyRevoked,
        _ => return,
    };
    let data = json!({ "key": key, "actor": act.actor });
    rows.tell(customer, act.operation, kind, &data);
}

/// Tells of money that was paid in, which is what later is low compared with.
pub(super) fn topped_up(rows: &mut Rows, entry: &JournalEntry) {
    let customer = entry.customer;
    let data = json!({
        "amount": entry.amount,
        "reference": entry.reference,
        "balance": entry.balance_after,
        "key": entry.key,
        "actor": entry.actor,
    });
    rows.set_watch(customer, |watch| watch.last_top_up = entry.amount);
    wishes::booked(rows, entry);
    rows.tell(customer, entry.operation, EventKind::TopUpBooked, &data);
}

/// Tells of a credit, if it is a top-up.
pub(super) fn credited(rows: &mut Rows, credit: &Credit, entry: &JournalEntry) {
    if credit.kind == crate::CreditKind::TopUp {
        topped_up(rows, entry);
    }
}

/// Tells of money that came and could not be booked.
pub(super) fn unapplied(rows: &mut Rows, new: &NewPayment, why: &str) {
    let data = json!({
        "amount": new.credit,
        "reference": crate::value::reference::normal(&new.reference),
        "why": why,
        "actor": new.act.actor,
    });
    let operation = new.act.operation;
    rows.tell(new.customer, operation, EventKind::TopUpUnapplied, &data);
}

/// Tells of money that goes back and is not booked yet.
pub(super) fn reversal_waits(rows: &mut Rows, customer: CustomerId, new: &NewReversal, why: &str) {
    let data = json!({
        "payment": crate::value::reference::normal(&new.payment),
        "kind": new.kind.as_str(),
        "cumulative": new.cumulative,
        "reference": crate::value::reference::normal(&new.reference),
        "why": why,
        "actor": new.act.actor,
    });
    let operation = new.act.operation;
    rows.tell(customer, operation, EventKind::ReversalUnapplied, &data);
}

/// Tells what of a payment went back, or came again.
pub(super) fn reversed(
    rows: &mut Rows,
    payment: &str,
    told: Option<&NewReversal>,
    entry: &JournalEntry,
) {
    let claim = rows.customer(entry.customer).map(|of| of.customer.claim);
    let data = json!({
        "payment": payment,
        "kind": told.map(|told| told.kind.as_str()),
        "amount": entry.amount,
        "reference": entry.reference,
        "balance": entry.balance_after,
        "claim": claim.unwrap_or_default(),
        "actor": entry.actor,
    });
    rows.tell(
        entry.customer,
        entry.operation,
        EventKind::ReversalBooked,
        &data,
    );
}

/// Tells of a claim that begins or ends.
pub(super) fn claim_moved(
    rows: &mut Rows,
    customer: CustomerId,
    cause: OperationId,
    (before, after): (crate::Amount, crate::Amount),
) {
    let kind = match (before.is_positive(), after.is_positive()) {
        (false, true) => EventKind::ClaimOpened,
        (true, false) => EventKind::ClaimPaid,
        _ => return,
    };
    rows.tell(customer, cause, kind, &json!({ "claim": after }));
}

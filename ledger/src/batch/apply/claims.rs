//! Claims: what a customer owes for payments that went back, paid by whatever makes money available.

use super::{append, news};
use crate::batch::rows::Rows;
use crate::rule::payment::{Claimed, collection_of};
use crate::{
    Amount, CustomerId, EntryKind, JournalEntry, MoneyPart, OperationId, Refusal, Timestamp,
};

/// Who pays a claim: nobody in particular.
const COLLECTOR: &str = "gateway";

/// Pays a customer's claim with what an operation has made available.
pub(super) fn collect(rows: &mut Rows, customer: CustomerId, cause: OperationId, at: Timestamp) {
    let Ok(before) = claimed(rows, customer) else {
        return;
    };
    // It takes at most what is available, so no rule refuses it.
    if let Ok((after, moved)) = before.collect()
        && moved != Amount::ZERO
    {
        let name = (collection_of(cause), COLLECTOR.to_owned());
        let texts = (None, "pays a claim".to_owned());
        drop(book(rows, customer, (after, moved), name, texts, at));
    }
}

pub(super) fn claimed(rows: &Rows, customer: CustomerId) -> Result<Claimed, Refusal> {
    let customer = &rows.customer(customer)?.customer;
    Ok(Claimed {
        account: customer.account,
        claim: customer.claim,
        payable: customer.grants.paid_free(customer.account),
    })
}

/// Appends the entry of money that a payment's way back takes or gives.
pub(super) fn book(
    rows: &mut Rows,
    customer: CustomerId,
    (after, moved): (Claimed, Amount),
    (operation, actor): (OperationId, String),
    (reference, reason): (Option<String>, String),
    at: Timestamp,
) -> Result<JournalEntry, Refusal> {
    let what = (EntryKind::Reversal, moved, after.account.balance());
    let texts = (reference, Some(reason));
    let entry = entry(rows, (customer, operation), what, texts, (actor, at))?;
    let parts = taken(rows, customer, moved)?;
    let entry = JournalEntry { parts, ..entry };
    let head = rows.customer(customer)?.head;
    append(rows, entry.clone(), &head, after.account);
    let before = rows.customer(customer)?.customer.claim;
    rows.set_claim(customer, after.claim);
    news::claim_moved(rows, customer, operation, (before, after.claim));
    Ok(entry)
}

/// Takes from grants what the pool does not have of what goes back.
fn taken(rows: &mut Rows, customer: CustomerId, moved: Amount) -> Result<Vec<MoneyPart>, Refusal> {
    let of = &rows.customer(customer)?.customer;
    let less = moved.checked_neg().filter(|less| less.is_positive());
    let (Some(less), false) = (less, of.grants.is_empty()) else {
        return Ok(Vec::new());
    };
    let (mut grants, account) = (of.grants.clone(), of.account);
    let parts = grants.take_paid(account, less).into_iter();
    let parts = parts.map(MoneyPart::taken).collect();
    rows.set_grants(customer, grants);
    Ok(parts)
}

/// The next entry of a customer.
pub(super) fn entry(
    rows: &Rows,
    (customer, operation): (CustomerId, OperationId),
    (kind, amount, balance_after): (EntryKind, Amount, Amount),
    (reference, reason): (Option<String>, Option<String>),
    (actor, at): (String, Timestamp),
) -> Result<JournalEntry, Refusal> {
    let stored = rows.customer(customer)?;
    Ok(JournalEntry {
        position: rows.positions.next_entry(),
        seq: stored.head.seq.saturating_add(1),
        customer,
        key: None,
        operation,
        kind,
        amount,
        balance_after,
        at: stored.dated(at, rows.now()),
        actor,
        reference,
        reason,
        refunds: None,
        parts: Vec::new(),
        bill: None,
    })
}

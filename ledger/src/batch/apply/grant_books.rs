//! What is written of grants, whoever decides it: the rows, and the entries of what one gives or loses by itself.

use super::append;
use super::claims::entry;
use crate::batch::rows::Rows;
use crate::{
    Account, Amount, CustomerId, EntryKind, Grant, GrantId, GrantKind, GrantName, GrantRecord,
    GrantStatus, JournalEntry, MoneyPart, OperationId, Refusal, Timestamp,
};

/// Whose time it is that gives and takes.
pub(super) const CLOCK: &str = "gateway";
/// How long what is refunded can be used whose grant has ended, in milliseconds.
const REFUNDED_FOR: i64 = 30 * 86_400_000;

/// Stores a grant as it is now.
pub(super) fn put(rows: &mut Rows, grant: Grant) -> Result<(), Refusal> {
    let customer = grant.customer;
    let mut grants = rows.customer(customer)?.customer.grants.clone();
    grants.put(grant);
    rows.set_grants(customer, grants);
    Ok(())
}

/// The entry of what one grant gives or loses by itself.
pub(super) fn book_part(
    rows: &mut Rows,
    customer: CustomerId,
    operation: OperationId,
    part: (EntryKind, GrantId, Amount),
    after: Account,
) -> Result<JournalEntry, Refusal> {
    let by = (CLOCK.to_owned(), rows.now());
    let of = (customer, operation);
    book_part_by(rows, of, part, after, ((None, None), by))
}

/// The entry of what one grant gives or loses because somebody says so: its reference and reason, by whom and when.
pub(super) fn book_part_by(
    rows: &mut Rows,
    (customer, operation): (CustomerId, OperationId),
    (kind, grant, amount): (EntryKind, GrantId, Amount),
    after: Account,
    (texts, by): ((Option<String>, Option<String>), (String, Timestamp)),
) -> Result<JournalEntry, Refusal> {
    let what = (kind, amount, after.balance());
    let entry = entry(rows, (customer, operation), what, texts, by)?;
    let head = rows.customer(customer)?.head;
    let parts = vec![MoneyPart::of(Some(grant), amount)];
    let entry = JournalEntry { parts, ..entry };
    append(rows, entry.clone(), &head, after);
    Ok(entry)
}

/// Credit that nobody paid, of the usual place, that can be used at once.
pub(super) fn promotional(
    rows: &Rows,
    (id, customer): (GrantId, CustomerId),
    amount: Amount,
    models: Option<Vec<String>>,
) -> Grant {
    Grant {
        id,
        customer,
        kind: GrantKind::Promotional,
        amount,
        priority: Grant::PRIORITY,
        effective_at: rows.now(),
        expires_at: None,
        models,
        remaining: amount,
        held: Amount::ZERO,
        status: GrantStatus::Active,
        told: None,
    }
}

pub(super) fn insert(
    rows: &mut Rows,
    grant: Grant,
    reference: GrantName,
    actor: &str,
) -> Result<GrantRecord, Refusal> {
    let record = GrantRecord {
        grant: grant.clone(),
        reference,
        created_at: rows.now(),
        created_by: actor.to_owned(),
    };
    rows.tables.put(record.clone());
    put(rows, grant)?;
    Ok(record)
}

/// How long what comes back can be used whose grant has ended.
pub(super) fn refunded_until(rows: &Rows) -> Timestamp {
    Timestamp::from_millis(rows.now().millis().saturating_add(REFUNDED_FOR))
}

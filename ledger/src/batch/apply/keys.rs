//! Keys and money in: create, change, credit. Each leaves one audit record in the same transaction.

use super::{append, check_unused, previous};
use crate::batch::rows::Rows;
use crate::book::audit::{self, Written};
use crate::book::chain;
use crate::book::head::{AuditHead, KeyHead, StoredKey};
use crate::rule::cap::PastSpending;
use crate::{
    Amount, Credit, CreditKind, EntryKind, Key, KeyChange, KeyId, NewKey, OperationId, Posted,
    Refusal, UtcDay,
};

pub(super) fn create(rows: &mut Rows, new: &NewKey) -> Result<Key, Refusal> {
    let operation = new.act.operation;
    if let Some(record) = rows.act(operation).filter(|act| act.act == "create") {
        return Ok(rows.key(record.key)?.key.clone());
    }
    check_unused(rows, operation)?;
    new.settings.check()?;
    if rows.key(new.id).is_ok() {
        return Err(Refusal::NotApplicable(format!(
            "key id {} is taken",
            new.id
        )));
    }
    let mut key = new.key();
    let credit = Credit::first(new);
    let mut after = key.account;
    if let Some(credit) = &credit {
        credit.check()?;
        check_reference(rows, &credit.reference)?;
        after = key.account.top_up(credit.amount)?;
    }
    rows.insert_key(StoredKey {
        key: key.clone(),
        head: KeyHead::NONE,
        audit: AuditHead::NONE,
    });
    if let Some(credit) = &credit {
        let position = rows.positions.next_entry();
        let entry = credit.entry(position, &KeyHead::NONE, after.balance(), rows.now());
        (key.account, key.last_entry_at) = (after, Some(entry.at));
        append(rows, entry, &KeyHead::NONE, after);
    }
    write_act(rows, audit::create(new), &key, &AuditHead::NONE);
    Ok(key)
}

pub(super) fn change(rows: &mut Rows, change: &KeyChange) -> Result<Key, Refusal> {
    let act = audit::change(change);
    let known = rows.act(act.operation);
    if known.is_some_and(|record| act.repeats(record)) {
        return Ok(rows.key(change.key)?.key.clone());
    }
    check_unused(rows, act.operation)?;
    let StoredKey { mut key, audit, .. } = rows.key(change.key)?.clone();
    let (hours, holds) = (rows.spent_hours(key.id), rows.holds_of(key.id));
    let spending = PastSpending {
        hours: &hours,
        holds: &holds,
    };
    key.apply(&change.change, rows.today(), spending)?;
    rows.update_key(key.clone());
    if change.change.ends_sessions() {
        rows.end_access(key.id);
    }
    write_act(rows, act, &key, &audit);
    Ok(key)
}

pub(super) fn credit(rows: &mut Rows, credit: &Credit) -> Result<Posted, Refusal> {
    credit.check()?;
    if let Some(posted) = repeated(rows, credit, rows.entry(credit.operation))? {
        return Ok(posted);
    }
    check_unused(rows, credit.operation)?;
    if let Some(posted) = repeated(rows, credit, rows.entry_by_reference(&credit.reference))? {
        return Ok(posted);
    }
    check_reference(rows, &credit.reference)?;
    let StoredKey {
        mut key,
        head,
        audit,
    } = rows.key(credit.key)?.clone();
    let before = key.account;
    key.account = match &credit.kind {
        CreditKind::TopUp => {
            key.check_payable()?;
            before.top_up(credit.amount)?
        }
        CreditKind::Adjust { .. } => before.adjust(credit.amount)?,
        CreditKind::Refund { request, .. } => {
            let (charged, refunded) = refunded(rows, credit.key, *request)?;
            before.refund(credit.amount, *request, charged, refunded)?
        }
    };
    let position = rows.positions.next_entry();
    let entry = credit.entry(position, &head, key.account.balance(), rows.now());
    append(rows, entry.clone(), &head, key.account);
    if let Some((slug, day)) = refunded_window(rows, credit) {
        key.caps.refund(&slug, day, credit.amount);
        rows.set_caps(key.id, key.caps.clone());
    }
    key.last_entry_at = Some(entry.at);
    write_act(rows, audit::credit(credit), &key, &audit);
    Ok(Posted {
        entry,
        key,
        repeated: false,
    })
}

/// Chains an act to its key's audit; `key` is the key after it.
pub(super) fn write_act(rows: &mut Rows, act: Written, key: &Key, head: &AuditHead) {
    let before = previous(rows, head.seq, head.hash);
    let record = act.record(rows.positions.next_act(), head, key);
    let hash = chain::act_hash(&before, &record);
    rows.append_act(record, chain::FORMAT, hash);
}

/// The answer to a credit that `found` shows to have been posted before.
fn repeated(
    rows: &Rows,
    credit: &Credit,
    found: Option<&crate::JournalEntry>,
) -> Result<Option<Posted>, Refusal> {
    let Some(entry) = found.filter(|entry| credit.repeats(entry)) else {
        return Ok(None);
    };
    Ok(Some(Posted {
        key: rows.key(entry.key)?.key.clone(),
        entry: entry.clone(),
        repeated: true,
    }))
}

fn check_reference(rows: &Rows, reference: &str) -> Result<(), Refusal> {
    match rows.entry_by_reference(reference) {
        Some(entry) => Err(Refusal::ReferenceUsed {
            reference: entry.reference.clone().unwrap_or_default(),
            key: entry.key,
        }),
        None => Ok(()),
    }
}

/// The slug of the charge that a refund gives back, and the day of its request.
fn refunded_window(rows: &Rows, credit: &Credit) -> Option<(String, UtcDay)> {
    let CreditKind::Refund { request, .. } = &credit.kind else {
        return None;
    };
    let charge = rows.entry(*request)?;
    let bill = charge.bill.as_ref()?;
    Some((bill.slug.clone(), charge.day()))
}

/// The charge of a request and the sum of its refunds so far.
fn refunded(rows: &Rows, key: KeyId, request: OperationId) -> Result<(Amount, Amount), Refusal> {
    let nothing = || Refusal::NotRefundable {
        request,
        refundable: Amount::ZERO,
    };
    let charge = rows
        .entry(request)
        .filter(|entry| entry.kind == EntryKind::Charge && entry.key == key)
        .ok_or_else(nothing)?;
    let refunds = rows.refunds.get(&request);
    let refunded = Amount::checked_sum(refunds.into_iter().flatten().copied());
    charge
        .amount
        .checked_neg()
        .zip(refunded)
        .ok_or_else(nothing)
}

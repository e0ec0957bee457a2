//! Keys and money in: create, change, credit. Each leaves one audit record in the same transaction.

use super::{append, check_unused, known};
use crate::batch::tx::{Step, StoredKey, Tx};
use crate::book::audit::{self, Written};
use crate::book::chain;
use crate::book::head::{AuditHead, Head};
use crate::{
    Amount, Credit, CreditKind, Entry, EntryKind, Key, KeyChange, KeyId, NewKey, OperationId,
    Posted, Refusal,
};

pub(super) fn create<T: Tx>(tx: &mut T, new: &NewKey) -> Step<T, Key> {
    if let Some(record) = tx
        .act(new.act.operation)?
        .filter(|record| record.act == "create")
    {
        return Ok(find(tx, record.key)?.key);
    }
    check_unused(tx, new.act.operation)?;
    new.settings.check()?;
    if tx.key(new.id)?.is_some() {
        return Err(Refusal::NotApplicable(format!("key id {} is taken", new.id)).into());
    }
    let mut key = new.key();
    let credit = Credit::first(new);
    let mut after = key.account;
    if let Some(credit) = &credit {
        credit.check()?;
        check_reference(tx, &credit.reference)?;
        after = key.account.top_up(credit.amount)?;
    }
    tx.insert_key(&StoredKey {
        key: key.clone(),
        head: Head::NONE,
        audit: AuditHead::NONE,
    })?;
    if let Some(credit) = &credit {
        let entry = credit.entry(tx.next_position(), &Head::NONE, after.balance(), tx.now());
        append(tx, &entry, &Head::NONE, key.account, after)?;
        key.account = after;
        key.last_entry_at = Some(entry.at);
    }
    write_act(tx, audit::create(new), &key, &AuditHead::NONE)?;
    Ok(key)
}

pub(super) fn change<T: Tx>(tx: &mut T, change: &KeyChange) -> Step<T, Key> {
    let act = audit::change(change);
    if tx
        .act(act.operation)?
        .is_some_and(|record| act.repeats(&record))
    {
        return Ok(find(tx, change.key)?.key);
    }
    check_unused(tx, act.operation)?;
    let StoredKey { mut key, audit, .. } = find(tx, change.key)?;
    key.apply(&change.change)?;
    tx.update_key(&key)?;
    if change.change.ends_sessions() {
        tx.end_sessions(key.id)?;
    }
    write_act(tx, act, &key, &audit)?;
    Ok(key)
}

pub(super) fn credit<T: Tx>(tx: &mut T, credit: &Credit) -> Step<T, Posted> {
    credit.check()?;
    if let Some(entry) = tx
        .entry(credit.operation)?
        .filter(|entry| credit.repeats(entry))
    {
        return repeated(tx, entry);
    }
    check_unused(tx, credit.operation)?;
    if let Some(entry) = tx
        .entry_by_reference(&credit.reference)?
        .filter(|entry| credit.repeats(entry))
    {
        return repeated(tx, entry);
    }
    check_reference(tx, &credit.reference)?;
    let StoredKey {
        mut key,
        head,
        audit,
    } = find(tx, credit.key)?;
    let before = key.account;
    key.account = match &credit.kind {
        CreditKind::TopUp => {
            key.check_payable()?;
            before.top_up(credit.amount)?
        }
        CreditKind::Adjust { .. } => before.adjust(credit.amount)?,
        CreditKind::Refund { request, .. } => {
            let (charged, refunded) = refunded(tx, credit.key, *request)?;
            before.refund(credit.amount, *request, charged, refunded)?
        }
    };
    let entry = credit.entry(tx.next_position(), &head, key.account.balance(), tx.now());
    append(tx, &entry, &head, before, key.account)?;
    key.last_entry_at = Some(entry.at);
    write_act(tx, audit::credit(credit), &key, &audit)?;
    Ok(Posted {
        entry,
        key,
        repeated: false,
    })
}

/// Chains an act to its key's audit; `key` is the key after it.
pub(super) fn write_act<T: Tx>(
    tx: &mut T,
    act: Written,
    key: &Key,
    head: &AuditHead,
) -> Step<T, ()> {
    let before = if head.seq == 0 {
        chain::genesis(&tx.ledger()?)
    } else {
        head.hash
    };
    let record = act.record(tx.next_act(), head, key);
    let hash = chain::act_hash(&before, &record);
    tx.append_act(&record, &hash, head)
}

pub(super) fn find<T: Tx>(tx: &mut T, key: KeyId) -> Step<T, StoredKey> {
    Ok(known(tx.key(key)?, key)?)
}

fn repeated<T: Tx>(tx: &mut T, entry: Entry) -> Step<T, Posted> {
    Ok(Posted {
        key: find(tx, entry.key)?.key,
        entry,
        repeated: true,
    })
}

fn check_reference<T: Tx>(tx: &mut T, reference: &str) -> Step<T, ()> {
    match tx.entry_by_reference(reference)? {
        Some(entry) => Err(Refusal::ReferenceUsed {
            reference: entry.reference.unwrap_or_default(),
            key: entry.key,
        }
        .into()),
        None => Ok(()),
    }
}

/// The charge of a request and the sum of its refunds so far.
fn refunded<T: Tx>(tx: &mut T, key: KeyId, request: OperationId) -> Step<T, (Amount, Amount)> {
    let nothing = || Refusal::NotRefundable {
        request,
        refundable: Amount::ZERO,
    };
    let charge = tx
        .entry(request)?
        .filter(|entry| entry.kind == EntryKind::Charge && entry.key == key)
        .ok_or_else(nothing)?;
    let refunds = tx.refunds(request)?;
    Ok(charge
        .amount
        .checked_neg()
        .zip(Amount::checked_sum(refunds))
        .ok_or_else(nothing)?)
}

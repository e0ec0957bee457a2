//! What every operation does, written once for all stores: pure, on rows in memory.
//!
//! The rules of money are in `rule`; these procedures decide what to read and write for them. Every check comes before the first
//! write, so that a refusal leaves nothing behind. Each operation is implemented beside its procedure: how durable it is, who may ask
//! for it, what it reads.

mod access;
mod acting;
mod claims;
mod customers;
mod defaults;
mod delegation;
mod grant_books;
mod grants;
mod holds;
mod keys;
mod money_back;
mod news;
mod notes;
mod payments;
mod plan_money;
mod plan_periods;
mod plans;
mod references;
mod reservations;
mod tokens;
mod vouchers;
mod wishes;

use super::rows::Rows;
use crate::book::audit::Written;
use crate::book::chain;
use crate::book::head::{EntryHead, Hash, NOTHING, StoredCustomer};
use crate::value::reference;
use crate::{Account, CustomerId, JournalEntry, OperationId, Refusal};

/// Chains an entry to its customer's history, moves the account and takes the reference.
fn append(rows: &mut Rows, entry: JournalEntry, head: &EntryHead, after: Account) {
    if let Some(reference) = &entry.reference {
        rows.register(reference::folded(reference), entry.operation);
    }
    append_named(rows, entry, head, after);
}

/// As [`append`], of an entry whose reference was taken by its twin.
fn append_named(rows: &mut Rows, entry: JournalEntry, head: &EntryHead, after: Account) {
    let before = previous(rows, head.seq, head.hash);
    // Today's format is one that was ever written.
    let hash = chain::entry_hash(chain::FORMAT, &before, head.last, &entry).unwrap_or(NOTHING);
    rows.append(entry, chain::FORMAT, hash, after);
}

/// Chains an act to its customer's audit, with customer and key as they are now.
fn write_act(rows: &mut Rows, act: Written, customer: CustomerId) -> Result<(), Refusal> {
    let StoredCustomer {
        customer,
        audit: head,
        ..
    } = rows.customer(customer)?;
    let key = act.key.map(|key| rows.key(key)).transpose()?;
    let before = previous(rows, head.seq, head.hash);
    let record = act.record(rows.positions.next_act(), head, customer, key);
    let hash = chain::act_hash(chain::FORMAT, &before, head.last, &record).unwrap_or(NOTHING);
    rows.append_act(record, chain::FORMAT, hash);
    Ok(())
}

/// What the next row of a chain is hashed with: the hash of its newest row, or the value with which the ledger's chains begin.
fn previous(rows: &Rows, seq: i64, newest: Hash) -> Hash {
    if seq == 0 {
        chain::genesis(&rows.ledger)
    } else {
        newest
    }
}

/// Refuses an operation id that was used for something else.
fn check_unused(rows: &Rows, operation: OperationId) -> Result<(), Refusal> {
    if rows.is_used(operation) {
        Err(Refusal::OperationUsed(operation))
    } else {
        Ok(())
    }
}

//! What every operation does, written once for all stores: pure, on rows in memory.
//!
//! The rules of money are in `rule`; these procedures decide what to read and write for them. Every check comes before the first
//! write, so that a refusal leaves nothing behind.

mod access;
mod acting;
mod asked;
mod claims;
mod customers;
mod holds;
mod keys;
mod money_back;
mod news;
mod payments;
mod tokens;
mod vouchers;
mod wishes;

use super::changes::TaughtChange;
use super::operation::{Operation, Outcome};
use super::rows::Rows;
use crate::book::audit::Written;
use crate::book::chain;
use crate::book::head::{EntryHead, Hash, NOTHING, StoredCustomer};
use crate::value::reference;
use crate::{Account, CustomerId, JournalEntry, OperationId, Refusal};

/// Applies one operation. It may be applied again after a rollback; repeating it later has no second effect, but for what targets have
/// taught, which then counts twice.
pub(crate) fn apply(rows: &mut Rows, operation: &Operation) -> Result<Outcome, Refusal> {
    match operation {
        Operation::Open(new) => return holds::open(rows, new).map(Outcome::Held),
        Operation::MoveHold(moved) => return holds::move_to(rows, moved).map(Outcome::Held),
        Operation::Finish(finish) => return holds::finish(rows, finish).map(Outcome::Finished),
        Operation::Resolve(finish) => return holds::resolve(rows, finish).map(Outcome::Finished),
        Operation::BeginEpoch { now } => return Ok(Outcome::Epoch(holds::begin_epoch(rows, *now))),
        Operation::Recover { epoch, now } => {
            return holds::recover(rows, *epoch, *now).map(Outcome::Recovered);
        }
        Operation::Create(new) => return keys::create(rows, new).map(Outcome::from),
        Operation::Change(change) => return keys::change(rows, change).map(Outcome::from),
        Operation::Credit(credit) => {
            return payments::credit(rows, credit).map(|posted| Outcome::Posted(Box::new(posted)));
        }
        Operation::Move(moved) => {
            return payments::give(rows, moved).map(|moved| Outcome::Moved(Box::new(moved)));
        }
        Operation::Pay(_)
        | Operation::PayFirst(_)
        | Operation::Reverse(_)
        | Operation::EndUnapplied(_)
        | Operation::Enrol(_)
        | Operation::Asked(_)
        | Operation::CreateToken(_)
        | Operation::RevokeToken { .. }
        | Operation::CreateLot(_)
        | Operation::VoidLot { .. }
        | Operation::Redeem(_) => {
            return apply_of_api(rows, operation);
        }
        Operation::CreateCustomer(new) => {
            return customers::create(rows, new).map(|made| Outcome::Customer(Box::new(made)));
        }
        Operation::ChangeCustomer(change) => {
            return customers::change(rows, change).map(|made| Outcome::Customer(Box::new(made)));
        }
        Operation::Publish { slugs, now } => {
            slugs
                .iter()
                .for_each(|slug| rows.changes.publish(slug, *now));
        }
        Operation::Teach(taught) => rows.changes.teach(taught),
        Operation::ForgetTarget(target) => {
            let gone = TaughtChange::Forgotten(target.clone());
            rows.changes.taught.push(gone);
        }
        Operation::JudgeTopUp {
            customer,
            operation,
        } => wishes::judge(rows, *customer, *operation),
        Operation::Deliver(steps) => rows.changes.deliveries.extend_from_slice(steps),
        Operation::OwnCost(own) => rows.own_cost(own),
        Operation::Files(act, news) => news::of_files(rows, act, news),
        Operation::CreateLink {
            key,
            token,
            expires,
            act,
        } => access::create_link(rows, *key, *token, *expires, act)?,
        Operation::ConsumeLink { token, now } => {
            return Ok(Outcome::Owner(access::consume_link(rows, *token, *now)));
        }
        Operation::OpenSession(session) => access::open_session(rows, session)?,
        Operation::CloseSessions(key) => rows.close_sessions(*key),
        Operation::CloseSession(token) => rows.delete_session(*token),
        Operation::MarkUsed { key, now } => access::mark_used(rows, *key, *now)?,
    }
    Ok(Outcome::Done)
}

/// The operations on payments with particulars, and those of the admin API: on tokens, on behalf of one, and of more than one step.
fn apply_of_api(rows: &mut Rows, operation: &Operation) -> Result<Outcome, Refusal> {
    let token = match operation {
        Operation::Pay(new) => {
            return money_back::pay(rows, new).map(|moved| Outcome::Payment(Box::new(moved)));
        }
        Operation::Reverse(new) => {
            return money_back::reverse(rows, new).map(|moved| Outcome::Payment(Box::new(moved)));
        }
        Operation::EndUnapplied(act) => {
            return money_back::end_unapplied(rows, act)
                .map(|moved| Outcome::Payment(Box::new(moved)));
        }
        Operation::PayFirst(both) => {
            return money_back::pay_first(rows, &both.0, &both.1)
                .map(|moved| Outcome::Payment(Box::new(moved)));
        }
        Operation::Enrol(both) => {
            return keys::enrol(rows, &both.0, &both.1).map(Outcome::from);
        }
        Operation::Asked(wrapped) => {
            return asked::asked(rows, wrapped).map(|done| Outcome::Answered(Box::new(done)));
        }
        Operation::Redeem(new) => {
            return vouchers::redeem(rows, new).map(|posted| Outcome::Posted(Box::new(posted)));
        }
        Operation::CreateLot(new) => {
            return vouchers::create(rows, new).map(|lot| Outcome::Lot(Box::new(lot)));
        }
        Operation::VoidLot { lot, act } => {
            return vouchers::void(rows, *lot, act).map(|lot| Outcome::Lot(Box::new(lot)));
        }
        Operation::CreateToken(new) => tokens::create(rows, new)?,
        Operation::RevokeToken { token, act } => tokens::revoke(rows, *token, act)?,
        _ => return Ok(Outcome::Done),
    };
    Ok(Outcome::Token(Box::new(token)))
}

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

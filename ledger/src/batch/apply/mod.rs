//! What every operation does, written once for all stores.
//!
//! Synchronous and generic over the store's transaction, so that each store gets its own compiled copy at no cost. The rules of
//! money are in `account`; these procedures only decide what to read and write for them. Every check comes before the first write.

mod access;
mod holds;
mod keys;

use crate::batch::operation::{Operation, Outcome};
use crate::batch::tx::{Step, Tx};
use crate::book::chain;
use crate::book::head::Head;
use crate::{Account, Entry, KeyId, OperationId, Refusal};

/// Applies one operation inside a transaction. It may be applied again after a rollback; repeating it later has no second effect.
pub(crate) fn apply<T: Tx>(tx: &mut T, operation: &Operation) -> Step<T, Outcome> {
    match operation {
        Operation::Open(new) => holds::open(tx, new).map(|()| Outcome::Done),
        Operation::Extend(extension) => holds::extend(tx, extension).map(|()| Outcome::Done),
        Operation::Finish(finish) => holds::finish(tx, finish).map(Outcome::Finished),
        Operation::Resolve(finish) => holds::resolve(tx, finish).map(Outcome::Finished),
        Operation::BeginEpoch { now } => holds::begin_epoch(tx, *now).map(Outcome::Epoch),
        Operation::Recover { epoch, now } => {
            holds::recover(tx, *epoch, *now).map(Outcome::Recovered)
        }
        Operation::Create(new) => keys::create(tx, new).map(|key| Outcome::Key(Box::new(key))),
        Operation::Change(change) => {
            keys::change(tx, change).map(|key| Outcome::Key(Box::new(key)))
        }
        Operation::Credit(credit) => {
            keys::credit(tx, credit).map(|posted| Outcome::Posted(Box::new(posted)))
        }
        Operation::Publish { slugs, now } => slugs
            .iter()
            .try_for_each(|slug| tx.publish(slug, *now))
            .map(|()| Outcome::Done),
        Operation::Vote(votes) => votes
            .iter()
            .try_for_each(|vote| tx.vote(vote))
            .map(|()| Outcome::Done),
        Operation::ForgetVotes(target) => tx.forget_votes(target).map(|()| Outcome::Done),
        Operation::CreateLink {
            key,
            token,
            expires,
            act,
        } => access::create_link(tx, *key, *token, *expires, act).map(|()| Outcome::Done),
        Operation::ConsumeLink { token, now } => {
            access::consume_link(tx, *token, *now).map(Outcome::Owner)
        }
        Operation::OpenSession(session) => {
            access::open_session(tx, session).map(|()| Outcome::Done)
        }
        Operation::CloseSessions(key) => tx.close_sessions(*key).map(|()| Outcome::Done),
        Operation::CloseSession(token) => tx.delete_session(*token).map(|()| Outcome::Done),
    }
}

/// Chains an entry to its key's history and moves the account.
fn append<T: Tx>(
    tx: &mut T,
    entry: &Entry,
    head: &Head,
    before: Account,
    after: Account,
) -> Step<T, ()> {
    let hash_before = if head.seq == 0 {
        chain::genesis(&tx.ledger()?)
    } else {
        head.hash
    };
    let hash = chain::entry_hash(&hash_before, entry);
    tx.append(entry, &hash, head, before, after)
}

/// Refuses an operation id that was used for something else.
fn check_unused<T: Tx>(tx: &mut T, operation: OperationId) -> Step<T, ()> {
    if tx.is_used(operation)? {
        Err(Refusal::OperationUsed(operation).into())
    } else {
        Ok(())
    }
}

fn known<X>(found: Option<X>, key: KeyId) -> Result<X, Refusal> {
    found.ok_or(Refusal::NoSuchKey(key))
}

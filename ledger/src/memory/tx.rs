//! The reference store's transaction: maps and vectors, with nothing to undo.
//!
//! In builds with assertions, every read is checked against what the operation declared that it needs: a store that fetches
//! everything beforehand would have nothing else.

use std::convert::Infallible;

use super::{State, next};
use crate::batch::operation::Needs;
use crate::batch::tx::{Fault, Payer, StoredHold, StoredKey, Tx};
use crate::book::audit::Record;
use crate::book::head::{AuditHead, Hash, Head};
use crate::hold::Held;
use crate::value::reference;
use crate::{
    Account, Amount, AuditRecord, Bill, Entry, Key, KeyId, NewHold, OperationId, SecretHash,
    Session, Timestamp, VOTE_DAYS, Vote,
};

/// The state, and what the running operation may read of it.
pub(super) struct MemoryTx<'a> {
    pub(super) state: &'a mut State,
    pub(super) needs: Needs<'a>,
}

impl MemoryTx<'_> {
    /// Keys that were named, or that own something named.
    fn needs_key(&self, key: KeyId) -> bool {
        let (needs, state) = (&self.needs, &*self.state);
        let holds = state.holds.values().filter(|held| {
            needs.holds.contains(&held.open.request)
                || needs
                    .holds_before_epoch
                    .is_some_and(|epoch| held.open.epoch < epoch)
        });
        let entries = state.entries.iter().filter(|entry| {
            needs.operations.contains(&entry.operation)
                || entry.reference.as_deref().is_some_and(|carried| {
                    needs
                        .references
                        .iter()
                        .any(|named| reference::folded(named) == reference::folded(carried))
                })
        });
        let acts = state
            .audit
            .iter()
            .filter(|record| needs.operations.contains(&record.operation));
        let owners = holds
            .map(|held| held.open.key)
            .chain(entries.map(|entry| entry.key))
            .chain(acts.map(|act| act.key));
        needs.keys.contains(&key) || owners.into_iter().any(|owner| owner == key)
    }

    fn needs_hold(&self, request: OperationId) -> bool {
        let dead = self.state.holds.get(&request).map(|held| held.open.epoch);
        self.needs.holds.contains(&request)
            || dead.is_some_and(|dead| self.needs.holds_before_epoch > Some(dead))
    }

    fn needs_operation(&self, operation: OperationId) -> bool {
        self.needs.operations.contains(&operation)
    }

    fn stored(&self, key: KeyId) -> Option<&StoredKey> {
        debug_assert!(
            self.needs_key(key),
            "the operation reads key {key}, which it did not name"
        );
        self.state.keys.get(&key)
    }
}

type Answer<X> = Result<X, Fault<Infallible>>;

impl Tx for MemoryTx<'_> {
    type Error = Infallible;

    fn payer(&mut self, key: KeyId) -> Answer<Option<Payer>> {
        Ok(self.stored(key).map(|StoredKey { key, .. }| Payer {
            account: key.account,
            status: key.stored_status,
            expires_at: key.settings.expires_at,
        }))
    }

    fn account(&mut self, key: KeyId) -> Answer<Option<(Account, Head)>> {
        Ok(self
            .stored(key)
            .map(|stored| (stored.key.account, stored.head)))
    }

    fn has_entry(&mut self, operation: OperationId) -> Answer<bool> {
        self.entry(operation).map(|entry| entry.is_some())
    }

    fn held(&mut self, request: OperationId) -> Answer<Option<Held>> {
        debug_assert!(
            self.needs_hold(request),
            "the operation reads hold {request}, which it did not name"
        );
        Ok(self.state.holds.get(&request).map(|held| Held {
            key: held.open.key,
            amount: held.open.amount,
        }))
    }

    fn hold(&mut self, request: OperationId) -> Answer<Option<StoredHold>> {
        debug_assert!(
            self.needs_hold(request),
            "the operation reads hold {request}, which it did not name"
        );
        Ok(self.state.holds.get(&request).cloned())
    }

    fn holds_before(&mut self, epoch: i64, limit: usize) -> Answer<Vec<StoredHold>> {
        debug_assert_eq!(
            self.needs.holds_before_epoch,
            Some(epoch),
            "the operation reads holds of epochs that it did not name"
        );
        Ok(self
            .state
            .holds
            .values()
            .filter(|held| held.open.epoch < epoch)
            .take(limit)
            .cloned()
            .collect())
    }

    fn insert_hold(&mut self, new: &NewHold) -> Answer<bool> {
        if self.state.holds.contains_key(&new.request) {
            return Ok(false);
        }
        self.state
            .holds
            .insert(new.request, StoredHold::new(new, self.state.epoch));
        Ok(true)
    }

    fn update_hold(
        &mut self,
        request: OperationId,
        amount: Amount,
        used: Amount,
        checkpoint: &Bill,
    ) -> Answer<()> {
        if let Some(held) = self.state.holds.get_mut(&request) {
            held.open.amount = amount;
            held.open.used = used;
            held.checkpoint = Some(checkpoint.clone());
        }
        Ok(())
    }

    fn delete_hold(&mut self, request: OperationId) -> Answer<()> {
        self.state.holds.remove(&request);
        Ok(())
    }

    fn set_held(&mut self, key: KeyId, _before: Account, after: Account) -> Answer<()> {
        if let Some(stored) = self.state.keys.get_mut(&key) {
            stored.key.account = after;
        }
        Ok(())
    }

    fn epoch(&mut self) -> i64 {
        self.state.epoch
    }

    fn begin_epoch(&mut self, epoch: i64, _now: Timestamp) -> Answer<()> {
        self.state.epoch = epoch;
        Ok(())
    }

    fn ledger(&mut self) -> Answer<[u8; 16]> {
        // It lives only as long as its process, so its identity is never compared with another one.
        Ok([0; 16])
    }

    fn next_position(&mut self) -> i64 {
        next(self.state.entries.len())
    }

    fn entry(&mut self, operation: OperationId) -> Answer<Option<Entry>> {
        debug_assert!(
            self.needs_operation(operation),
            "the operation reads entry {operation}, which it did not name"
        );
        Ok(self.state.entry(operation).cloned())
    }

    fn entry_by_reference(&mut self, reference: &str) -> Answer<Option<Entry>> {
        debug_assert!(
            self.needs.references.contains(&reference),
            "the operation reads reference {reference:?} unnamed"
        );
        let folded = Some(reference::folded(reference));
        let carries = |entry: &&Entry| entry.reference.as_deref().map(reference::folded) == folded;
        Ok(self.state.entries.iter().find(carries).cloned())
    }

    fn refunds(&mut self, request: OperationId) -> Answer<Vec<Amount>> {
        debug_assert!(
            self.needs_operation(request),
            "the operation reads refunds of {request}, which it did not name"
        );
        let refunds = self
            .state
            .entries
            .iter()
            .filter(|entry| entry.refunds == Some(request));
        Ok(refunds.map(|entry| entry.amount).collect())
    }

    fn append(
        &mut self,
        entry: &Entry,
        hash: &Hash,
        _head: &Head,
        _before: Account,
        after: Account,
    ) -> Answer<()> {
        if let Some(stored) = self.state.keys.get_mut(&entry.key) {
            stored.key.account = after;
            stored.key.last_entry_at = Some(entry.at);
            stored.head = Head {
                seq: entry.seq,
                last: entry.position,
                hash: *hash,
                last_at: Some(entry.at),
            };
        }
        self.state.entries.push(entry.clone());
        Ok(())
    }

    fn act(&mut self, operation: OperationId) -> Answer<Option<AuditRecord>> {
        debug_assert!(
            self.needs_operation(operation),
            "the operation reads act {operation}, which it did not name"
        );
        Ok(self.state.audited(operation).cloned())
    }

    fn is_used(&mut self, operation: OperationId) -> Answer<bool> {
        debug_assert!(
            self.needs_operation(operation),
            "the operation asks for {operation}, which it did not name"
        );
        let state = &self.state;
        Ok(state.entry(operation).is_some()
            || state.audited(operation).is_some()
            || state.holds.contains_key(&operation))
    }

    fn next_act(&mut self) -> i64 {
        next(self.state.audit.len())
    }

    fn append_act(&mut self, record: &Record, hash: &Hash, _head: &AuditHead) -> Answer<()> {
        if let Some(stored) = self.state.keys.get_mut(&record.record.key) {
            stored.audit = AuditHead {
                seq: record.seq,
                last: record.record.position,
                hash: *hash,
            };
        }
        self.state.audit.push(record.record.clone());
        Ok(())
    }

    fn key(&mut self, key: KeyId) -> Answer<Option<StoredKey>> {
        Ok(self.stored(key).cloned())
    }

    fn insert_key(&mut self, stored: &StoredKey) -> Answer<()> {
        self.state.keys.insert(stored.key.id, stored.clone());
        Ok(())
    }

    fn update_key(&mut self, key: &Key) -> Answer<()> {
        if let Some(stored) = self.state.keys.get_mut(&key.id) {
            stored.key = key.clone();
        }
        Ok(())
    }

    fn end_sessions(&mut self, key: KeyId) -> Answer<()> {
        self.state.sessions.retain(|_, session| session.key != key);
        self.state.links.retain(|_, (owner, _)| *owner != key);
        Ok(())
    }

    fn has_link(&mut self, token: SecretHash) -> Answer<bool> {
        debug_assert!(
            self.needs.tokens.contains(&token),
            "the operation reads a link that it did not name"
        );
        Ok(self.state.links.contains_key(&token.0))
    }

    fn insert_link(
        &mut self,
        token: SecretHash,
        key: KeyId,
        expires: Timestamp,
        now: Timestamp,
    ) -> Answer<()> {
        self.state.links.retain(|_, (_, end)| now < *end);
        self.state.links.insert(token.0, (key, expires));
        Ok(())
    }

    fn take_link(&mut self, token: SecretHash) -> Answer<Option<(KeyId, Timestamp)>> {
        debug_assert!(
            self.needs.tokens.contains(&token),
            "the operation takes a link that it did not name"
        );
        Ok(self.state.links.remove(&token.0))
    }

    fn session(&mut self, token: SecretHash) -> Answer<Option<Session>> {
        debug_assert!(
            self.needs.tokens.contains(&token),
            "the operation reads a session that it did not name"
        );
        Ok(self.state.sessions.get(&token.0).cloned())
    }

    fn insert_session(&mut self, session: &Session) -> Answer<()> {
        self.state
            .sessions
            .retain(|_, open| session.at < open.expires);
        self.state.sessions.insert(session.token.0, session.clone());
        let own = self
            .state
            .sessions
            .values()
            .filter(|open| open.key == session.key);
        let mut own: Vec<_> = own.map(|open| (open.at, open.token.0)).collect();
        own.sort_by_key(|(at, token)| (std::cmp::Reverse(*at), *token));
        for (_, token) in own.iter().skip(usize::from(Session::MOST_OF_KEY)) {
            self.state.sessions.remove(token);
        }
        Ok(())
    }

    fn close_sessions(&mut self, key: KeyId) -> Answer<()> {
        self.state.sessions.retain(|_, open| open.key != key);
        Ok(())
    }

    fn delete_session(&mut self, token: SecretHash) -> Answer<()> {
        self.state.sessions.remove(&token.0);
        Ok(())
    }

    fn publish(&mut self, slug: &str, now: Timestamp) -> Answer<()> {
        self.state.published.entry(slug.to_owned()).or_insert(now);
        Ok(())
    }

    fn vote(&mut self, vote: &Vote) -> Answer<()> {
        let votes = &mut self.state.votes;
        let from = vote.day.saturating_sub(VOTE_DAYS);
        votes.retain(|other| {
            let same = (&other.target, other.question) == (&vote.target, vote.question);
            !same || (other.day > from && (other.day, other.key) != (vote.day, vote.key))
        });
        votes.push(vote.clone());
        votes.sort();
        Ok(())
    }

    fn forget_votes(&mut self, target: &str) -> Answer<()> {
        self.state.votes.retain(|vote| vote.target != target);
        Ok(())
    }
}

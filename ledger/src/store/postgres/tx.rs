//! The reads and writes of operations, on a batch in memory. It decides nothing and cannot fail.

use std::convert::Infallible;

use super::batch::{Answer, Batch, KeySlot, Slot};
use crate::batch::tx::{Payer, StoredHold, StoredKey, Tx};
use crate::book::audit::Record;
use crate::book::chain::{ChainedAct, ChainedEntry, FORMAT};
use crate::book::head::{AuditHead, Hash, Head};
use crate::hold::Held;
use crate::rule::limit::Traffic;
use crate::value::reference;
use crate::{
    Account, Amount, AuditRecord, Bill, Entry, Key, KeyId, NewHold, OperationId, SecretHash,
    Session, Timestamp, Vote,
};

impl Tx for Batch {
    type Error = Infallible;

    fn payer(&mut self, key: KeyId) -> Answer<Option<Payer>> {
        Ok(self.keys.get(&key).map(
            |KeySlot {
                 stored: StoredKey { key, .. },
                 ..
             }| Payer {
                account: key.account,
                status: key.stored_status,
                expires_at: key.settings.expires_at,
            },
        ))
    }

    fn account(&mut self, key: KeyId) -> Answer<Option<(Account, Head)>> {
        Ok(self
            .keys
            .get(&key)
            .map(|slot| (slot.stored.key.account, slot.stored.head)))
    }

    fn has_entry(&mut self, operation: OperationId) -> Answer<bool> {
        Ok(self.entries.contains_key(&operation))
    }

    fn held(&mut self, request: OperationId) -> Answer<Option<Held>> {
        let hold = self.holds.get(&request).and_then(|slot| slot.now.as_ref());
        Ok(hold.map(|hold| Held {
            key: hold.open.key,
            amount: hold.open.amount,
        }))
    }

    fn hold(&mut self, request: OperationId) -> Answer<Option<StoredHold>> {
        Ok(self.holds.get(&request).and_then(|slot| slot.now.clone()))
    }

    /// Only holds of dead epochs, whatever the number: an older epoch may belong to a live node.
    fn holds_before(&mut self, _epoch: i64, limit: usize) -> Answer<Vec<StoredHold>> {
        let dead = self
            .dead
            .iter()
            .filter_map(|request| self.holds.get(request)?.now.clone());
        Ok(dead.take(limit).collect())
    }

    fn check_limits(&mut self, key: KeyId) -> Answer<()> {
        match self.keys.get(&key) {
            Some(slot) => Ok(slot.traffic.check(&slot.stored.key.settings, self.now)?),
            None => Ok(()),
        }
    }

    fn insert_hold(&mut self, new: &NewHold) -> Answer<bool> {
        let known = self.holds.get(&new.request);
        if known.is_some_and(|slot| slot.now.is_some()) {
            return Ok(false);
        }
        let was_stored = known.is_some_and(|slot| slot.was_stored);
        let hold = StoredHold::new(new, self.epoch);
        self.holds.insert(
            new.request,
            Slot {
                was_stored,
                ..Slot::new(hold)
            },
        );
        let now = self.now;
        if let Some(slot) = self.slot(new.key) {
            slot.traffic = slot.traffic.begin(&slot.stored.key.settings, now);
            slot.account_changed = true;
        }
        Ok(true)
    }

    fn update_hold(
        &mut self,
        request: OperationId,
        amount: Amount,
        used: Amount,
        checkpoint: &Bill,
    ) -> Answer<()> {
        if let Some(slot) = self.holds.get_mut(&request)
            && let Some(hold) = &mut slot.now
        {
            (hold.open.amount, hold.open.used) = (amount, used);
            hold.checkpoint = Some(checkpoint.clone());
            slot.changed = true;
        }
        Ok(())
    }

    fn delete_hold(&mut self, request: OperationId) -> Answer<()> {
        if let Some(slot) = self.holds.get_mut(&request)
            && let Some(hold) = slot.now.take()
        {
            slot.changed = true;
            if let Some(slot) = self.slot(hold.open.key) {
                slot.traffic = slot.traffic.end();
                slot.account_changed = true;
            }
        }
        Ok(())
    }

    fn set_held(&mut self, key: KeyId, _before: Account, after: Account) -> Answer<()> {
        if let Some(slot) = self.slot(key) {
            slot.stored.key.account = after;
            slot.account_changed = true;
        }
        Ok(())
    }

    fn epoch(&mut self) -> i64 {
        self.epoch
    }

    /// Epochs are rows of `nodes`; `node` begins them.
    fn begin_epoch(&mut self, _epoch: i64, _now: Timestamp) -> Answer<()> {
        Ok(())
    }

    fn ledger(&mut self) -> Answer<[u8; 16]> {
        Ok(self.ledger)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now / 1_000)
    }

    fn next_position(&mut self) -> i64 {
        Self::next_position(self)
    }

    fn entry(&mut self, operation: OperationId) -> Answer<Option<Entry>> {
        Ok(self.entries.get(&operation).cloned())
    }

    fn entry_by_reference(&mut self, reference: &str) -> Answer<Option<Entry>> {
        let named = self.references.get(&reference::folded(reference));
        Ok(named
            .and_then(|operation| self.entries.get(operation))
            .cloned())
    }

    fn refunds(&mut self, request: OperationId) -> Answer<Vec<Amount>> {
        Ok(self.refunds.get(&request).cloned().unwrap_or_default())
    }

    fn append(
        &mut self,
        entry: &Entry,
        hash: &Hash,
        _head: &Head,
        _before: Account,
        after: Account,
    ) -> Answer<()> {
        if let Some(slot) = self.slot(entry.key) {
            slot.stored.key.account = after;
            slot.stored.key.last_entry_at = Some(entry.at);
            slot.stored.head = Head {
                seq: entry.seq,
                last: entry.position,
                hash: *hash,
                last_at: Some(entry.at),
            };
            slot.account_changed = true;
        }
        self.position = self.position.max(entry.position);
        if let Some(reference) = &entry.reference {
            self.references
                .insert(reference::folded(reference), entry.operation);
            self.new_names
                .push((reference::folded(reference), entry.operation));
        }
        if let Some(request) = entry.refunds {
            self.refunds.entry(request).or_default().push(entry.amount);
        }
        self.roll_up(entry);
        self.entries.insert(entry.operation, entry.clone());
        self.new_entries.push(ChainedEntry {
            entry: entry.clone(),
            format: FORMAT,
            hash: *hash,
        });
        Ok(())
    }

    fn act(&mut self, operation: OperationId) -> Answer<Option<AuditRecord>> {
        Ok(self.acts.get(&operation).cloned())
    }

    fn is_used(&mut self, operation: OperationId) -> Answer<bool> {
        let held = self
            .holds
            .get(&operation)
            .is_some_and(|slot| slot.now.is_some());
        Ok(held || self.entries.contains_key(&operation) || self.acts.contains_key(&operation))
    }

    fn next_act(&mut self) -> i64 {
        Self::next_position(self)
    }

    fn append_act(&mut self, record: &Record, hash: &Hash, _head: &AuditHead) -> Answer<()> {
        let act = &record.record;
        if let Some(slot) = self.slot(act.key) {
            slot.stored.audit = AuditHead {
                seq: record.seq,
                last: act.position,
                hash: *hash,
            };
            slot.settings_changed = true;
        }
        self.position = self.position.max(act.position);
        self.acts.insert(act.operation, act.clone());
        self.new_acts.push(ChainedAct {
            record: record.clone(),
            format: FORMAT,
            hash: *hash,
        });
        Ok(())
    }

    fn key(&mut self, key: KeyId) -> Answer<Option<StoredKey>> {
        Ok(self.keys.get(&key).map(|slot| slot.stored.clone()))
    }

    fn insert_key(&mut self, stored: &StoredKey) -> Answer<()> {
        let slot = KeySlot {
            stored: stored.clone(),
            traffic: Traffic::default(),
            is_new: true,
            account_changed: false,
            settings_changed: false,
        };
        self.keys.insert(stored.key.id, slot);
        Ok(())
    }

    fn update_key(&mut self, key: &Key) -> Answer<()> {
        if let Some(slot) = self.slot(key.id) {
            slot.stored.key = key.clone();
            slot.settings_changed = true;
        }
        Ok(())
    }

    fn close_sessions(&mut self, key: KeyId) -> Answer<()> {
        self.ended_sessions.insert(key.to_i64());
        for slot in self
            .sessions
            .values_mut()
            .filter(|slot| slot.now.as_ref().is_some_and(|session| session.key == key))
        {
            slot.now = None;
        }
        Ok(())
    }

    fn end_sessions(&mut self, key: KeyId) -> Answer<()> {
        self.close_sessions(key)?;
        self.ended_links.insert(key.to_i64());
        for slot in self
            .links
            .values_mut()
            .filter(|slot| slot.now.is_some_and(|(owner, _)| owner == key))
        {
            slot.now = None;
        }
        Ok(())
    }

    fn has_link(&mut self, token: SecretHash) -> Answer<bool> {
        Ok(self
            .links
            .get(&token.0)
            .is_some_and(|slot| slot.now.is_some()))
    }

    fn insert_link(
        &mut self,
        token: SecretHash,
        key: KeyId,
        expires: Timestamp,
        now: Timestamp,
    ) -> Answer<()> {
        for slot in self
            .links
            .values_mut()
            .filter(|slot| slot.now.is_some_and(|(_, end)| end <= now))
        {
            (slot.now, slot.changed) = (None, true);
        }
        self.forget_links = self.forget_links.max(Some(now));
        let was_stored = self.links.get(&token.0).is_some_and(|slot| slot.was_stored);
        self.links.insert(
            token.0,
            Slot {
                was_stored,
                ..Slot::new((key, expires))
            },
        );
        Ok(())
    }

    fn take_link(&mut self, token: SecretHash) -> Answer<Option<(KeyId, Timestamp)>> {
        Ok(self.links.get_mut(&token.0).and_then(|slot| {
            slot.changed |= slot.now.is_some();
            slot.now.take()
        }))
    }

    fn session(&mut self, token: SecretHash) -> Answer<Option<Session>> {
        Ok(self
            .sessions
            .get(&token.0)
            .and_then(|slot| slot.now.clone()))
    }

    fn insert_session(&mut self, session: &Session) -> Answer<()> {
        let expired = |slot: &&mut Slot<Session>| {
            slot.now
                .as_ref()
                .is_some_and(|open| open.expires <= session.at)
        };
        for slot in self.sessions.values_mut().filter(expired) {
            (slot.now, slot.changed) = (None, true);
        }
        self.forget_sessions = self.forget_sessions.max(Some(session.at));
        let was_stored = self
            .sessions
            .get(&session.token.0)
            .is_some_and(|slot| slot.was_stored);
        self.sessions.insert(
            session.token.0,
            Slot {
                was_stored,
                ..Slot::new(session.clone())
            },
        );
        Ok(())
    }

    fn delete_session(&mut self, token: SecretHash) -> Answer<()> {
        if let Some(slot) = self.sessions.get_mut(&token.0) {
            (slot.now, slot.changed) = (None, true);
        }
        Ok(())
    }

    fn publish(&mut self, slug: &str, now: Timestamp) -> Answer<()> {
        self.published.entry(slug.to_owned()).or_insert(now);
        Ok(())
    }

    fn vote(&mut self, vote: &Vote) -> Answer<()> {
        self.votes.cast(vote);
        Ok(())
    }

    fn forget_votes(&mut self, target: &str) -> Answer<()> {
        self.votes.forget(target);
        Ok(())
    }
}

//! The reads and writes of operations as SQLite statements: one short statement per step, no decisions.

use rusqlite::{OptionalExtension, Result, params};

use super::batch::{Batch, Fault};
use super::cache::Known;
use super::remembered::Moved;
use super::rows::{self, StoredEntry, number};
use super::statements::Sql;
use crate::batch::tx::{Payer, StoredHold, StoredKey, Tx};
use crate::book::audit::Record;
use crate::book::chain::FORMAT;
use crate::book::head::{AuditHead, Hash, Head};
use crate::hold::Held;
use crate::value::reference;
use crate::{
    Account, Amount, AuditRecord, Bill, Entry, Key, KeyId, NewHold, OperationId, SecretHash,
    Session, Timestamp, VOTE_DAYS, Vote,
};

type Answer<X> = std::result::Result<X, Fault>;

impl Tx for Batch<'_> {
    type Error = rusqlite::Error;

    fn payer(&mut self, key: KeyId) -> Answer<Option<Payer>> {
        Ok(self.known(key)?.map(|known| known.payer))
    }

    fn account(&mut self, key: KeyId) -> Answer<Option<(Account, Head)>> {
        Ok(self
            .known(key)?
            .map(|known| (known.payer.account, known.head)))
    }

    /// Ids begin with their time, so nearly every new one is greater than those of all entries and needs no lookup.
    fn has_entry(&mut self, operation: OperationId) -> Answer<bool> {
        if operation > self.newest()? {
            return Ok(false);
        }
        Ok(self.statements.get(Sql::HasEntry)?.exists([operation])?)
    }

    fn held(&mut self, request: OperationId) -> Answer<Option<Held>> {
        if let Some(held) = self.cache.hold(request) {
            return Ok(Some(held));
        }
        let read = self.statements.get(Sql::Held)?;
        Ok(read
            .query_row([request], |row| {
                Ok(Held {
                    key: row.get(0)?,
                    amount: row.get(1)?,
                })
            })
            .optional()?)
    }

    fn hold(&mut self, request: OperationId) -> Answer<Option<StoredHold>> {
        Ok(self
            .statements
            .get(Sql::Hold)?
            .query_row([request], rows::stored_hold)
            .optional()?)
    }

    fn holds_before(&mut self, epoch: i64, limit: usize) -> Answer<Vec<StoredHold>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let read = self.statements.get(Sql::HoldsBefore)?;
        Ok(read
            .query_map(params![epoch, limit], rows::stored_hold)?
            .collect::<Result<_>>()?)
    }

    fn insert_hold(&mut self, new: &NewHold) -> Answer<bool> {
        let epoch = self.epoch;
        let values = params![
            new.request,
            new.key,
            new.amount,
            new.slug,
            new.family,
            new.at,
            epoch
        ];
        let inserted = self.statements.get(Sql::InsertHold)?.execute(values)? > 0;
        if inserted {
            self.cache.opened(
                new.request,
                Held {
                    key: new.key,
                    amount: new.amount,
                },
            );
            self.count_hold(true);
        }
        Ok(inserted)
    }

    fn update_hold(
        &mut self,
        request: OperationId,
        amount: Amount,
        used: Amount,
        checkpoint: &Bill,
    ) -> Answer<()> {
        let checkpoint = json(checkpoint)?;
        one(self
            .statements
            .get(Sql::UpdateHold)?
            .execute(params![request, amount, used, checkpoint])?)?;
        self.cache.raised(request, amount);
        Ok(())
    }

    fn delete_hold(&mut self, request: OperationId) -> Answer<()> {
        one(self.statements.get(Sql::DeleteHold)?.execute([request])?)?;
        self.cache.ended(request);
        self.count_hold(false);
        Ok(())
    }

    fn set_held(&mut self, key: KeyId, before: Account, after: Account) -> Answer<()> {
        let values = params![key, after.held, before.credit, before.spent, before.held];
        one(self.statements.get(Sql::SetHeld)?.execute(values)?)?;
        self.cache.moved(key, after, None);
        self.note(key, Moved::Held(after));
        self.add_up(before, after, None);
        Ok(())
    }

    fn epoch(&mut self) -> i64 {
        self.epoch
    }

    fn begin_epoch(&mut self, epoch: i64, now: Timestamp) -> Answer<()> {
        self.statements
            .get(Sql::InsertEpoch)?
            .execute(params![epoch, now])?;
        self.set_epoch(epoch);
        Ok(())
    }

    fn ledger(&mut self) -> Answer<[u8; 16]> {
        Ok(self
            .statements
            .get(Sql::Identity)?
            .query_row([], |row| row.get(0))?)
    }

    fn next_position(&mut self) -> i64 {
        self.entries.saturating_add(1)
    }

    fn entry(&mut self, operation: OperationId) -> Answer<Option<Entry>> {
        let read = self
            .statements
            .get(Sql::Entry)?
            .query_row([operation], rows::stored_entry);
        Ok(entry_only(read.optional()?))
    }

    fn entry_by_reference(&mut self, reference: &str) -> Answer<Option<Entry>> {
        // The one with exactly this spelling, or else the one that owns the reference: ledgers from before references were folded
        // may have both.
        let exact = self
            .statements
            .get(Sql::EntryByReference)?
            .query_row([reference], rows::stored_entry)
            .optional()?;
        if exact.is_some() {
            return Ok(entry_only(exact));
        }
        let named = self
            .statements
            .get(Sql::Reference)?
            .query_row([reference::folded(reference)], |row| row.get(0));
        named
            .optional()?
            .map_or(Ok(None), |operation| self.entry(operation))
    }

    fn refunds(&mut self, request: OperationId) -> Answer<Vec<Amount>> {
        let read = self.statements.get(Sql::Refunds)?;
        Ok(read
            .query_map([request], |row| row.get(0))?
            .collect::<Result<_>>()?)
    }

    fn append(
        &mut self,
        entry: &Entry,
        hash: &Hash,
        head: &Head,
        before: Account,
        after: Account,
    ) -> Answer<()> {
        self.append_chained(entry, FORMAT, hash, head, before, after)?;
        if let Some(reference) = &entry.reference {
            self.register(&reference::folded(reference), entry.operation)?;
        }
        Ok(())
    }

    fn act(&mut self, operation: OperationId) -> Answer<Option<AuditRecord>> {
        Ok(self
            .statements
            .get(Sql::Act)?
            .query_row([operation], rows::audit_record)
            .optional()?)
    }

    fn is_used(&mut self, operation: OperationId) -> Answer<bool> {
        Ok(self
            .statements
            .get(Sql::IsUsed)?
            .query_row([operation], |row| row.get(0))?)
    }

    fn next_act(&mut self) -> i64 {
        self.audits.saturating_add(1)
    }

    fn append_act(&mut self, record: &Record, hash: &Hash, head: &AuditHead) -> Answer<()> {
        self.append_chained_act(record, FORMAT, hash, head)
    }

    fn key(&mut self, key: KeyId) -> Answer<Option<StoredKey>> {
        Ok(self
            .statements
            .get(Sql::Key)?
            .query_row([key], rows::stored_key)
            .optional()?)
    }

    fn insert_key(&mut self, StoredKey { key, head, audit }: &StoredKey) -> Answer<()> {
        let settings = &key.settings;
        let models = models_text(key)?;
        self.statements.get(Sql::InsertKey)?.execute(params![
            key.id,
            settings.label,
            models,
            settings.expires_at,
            settings.rate,
            settings.concurrency,
            key.stored_status,
            key.secret,
            key.created_at,
            key.created_by,
            audit.hash
        ])?;
        self.statements
            .get(Sql::InsertAccount)?
            .execute(params![key.id, head.hash])?;
        self.note(key.id, Moved::Changed);
        self.count_key();
        Ok(())
    }

    fn update_key(&mut self, key: &Key) -> Answer<()> {
        let settings = &key.settings;
        let models = models_text(key)?;
        self.statements.get(Sql::UpdateKey)?.execute(params![
            key.id,
            settings.label,
            models,
            settings.expires_at,
            settings.rate,
            settings.concurrency,
            key.stored_status,
            key.secret,
            key.old_secret.map(|(hash, _)| hash),
            key.old_secret.map(|(_, until)| until)
        ])?;
        self.cache.forget_key(key.id);
        self.note(key.id, Moved::Changed);
        Ok(())
    }

    fn end_sessions(&mut self, key: KeyId) -> Answer<()> {
        self.statements.get(Sql::EndSessions)?.execute([key])?;
        self.statements.get(Sql::EndLinks)?.execute([key])?;
        Ok(())
    }

    fn has_link(&mut self, token: SecretHash) -> Answer<bool> {
        Ok(self.statements.get(Sql::HasLink)?.exists([token])?)
    }

    fn insert_link(
        &mut self,
        token: SecretHash,
        key: KeyId,
        expires: Timestamp,
        now: Timestamp,
    ) -> Answer<()> {
        self.statements.get(Sql::ForgetLinks)?.execute([now])?;
        self.statements
            .get(Sql::InsertLink)?
            .execute(params![token, key, expires])?;
        Ok(())
    }

    fn take_link(&mut self, token: SecretHash) -> Answer<Option<(KeyId, Timestamp)>> {
        let read = self.statements.get(Sql::TakeLink)?;
        Ok(read
            .query_row([token], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?)
    }

    fn session(&mut self, token: SecretHash) -> Answer<Option<Session>> {
        let read = self
            .statements
            .get(Sql::Session)?
            .query_row([token], |row| {
                Ok(Session {
                    token,
                    key: row.get(0)?,
                    at: row.get(1)?,
                    expires: row.get(2)?,
                })
            });
        Ok(read.optional()?)
    }

    fn insert_session(&mut self, session: &Session) -> Answer<()> {
        self.statements
            .get(Sql::ForgetSessions)?
            .execute([session.at])?;
        let values = params![session.token, session.key, session.at, session.expires];
        self.statements.get(Sql::InsertSession)?.execute(values)?;
        self.statements
            .get(Sql::TrimSessions)?
            .execute(params![session.key, Session::MOST_OF_KEY])?;
        Ok(())
    }

    fn close_sessions(&mut self, key: KeyId) -> Answer<()> {
        self.statements.get(Sql::EndSessions)?.execute([key])?;
        Ok(())
    }

    fn delete_session(&mut self, token: SecretHash) -> Answer<()> {
        self.statements.get(Sql::DeleteSession)?.execute([token])?;
        Ok(())
    }

    fn publish(&mut self, slug: &str, now: Timestamp) -> Answer<()> {
        self.statements
            .get(Sql::Publish)?
            .execute(params![slug, now])?;
        Ok(())
    }

    fn vote(&mut self, vote: &Vote) -> Answer<()> {
        let (question, from) = (vote.question.code(), vote.day.saturating_sub(VOTE_DAYS));
        self.statements
            .get(Sql::OldVotes)?
            .execute(params![vote.target, question, from])?;
        let value = number(vote.value);
        self.statements.get(Sql::Vote)?.execute(params![
            vote.target,
            question,
            vote.day,
            vote.key,
            value
        ])?;
        Ok(())
    }

    fn forget_votes(&mut self, target: &str) -> Answer<()> {
        self.statements.get(Sql::ForgetVotes)?.execute([target])?;
        Ok(())
    }
}

impl Batch<'_> {
    /// What a request reads of its key.
    fn known(&mut self, key: KeyId) -> Result<Option<Known>> {
        if let Some(known) = self.cache.key(key) {
            return Ok(Some(known));
        }
        let read = self.statements.get(Sql::Account)?.query_row([key], |row| {
            let account = Account {
                credit: row.get(0)?,
                spent: row.get(1)?,
                held: row.get(2)?,
            };
            let payer = Payer {
                account,
                status: row.get(3)?,
                expires_at: row.get(4)?,
            };
            Ok(Known {
                payer,
                head: Head {
                    seq: row.get(5)?,
                    last: row.get(6)?,
                    hash: row.get(7)?,
                    last_at: row.get(8)?,
                },
            })
        });
        let read = read.optional()?;
        if let Some(known) = read {
            self.cache.read_key(key, known);
        }
        Ok(read)
    }

    fn newest(&mut self) -> Result<OperationId> {
        if let Some(newest) = self.cache.newest() {
            return Ok(newest);
        }
        let newest: Option<_> = self
            .statements
            .get(Sql::NewestOperation)?
            .query_row([], |row| row.get(0))?;
        let newest = newest.unwrap_or(OperationId::from_bytes([0; 16]));
        self.cache.read_newest(newest);
        Ok(newest)
    }

    /// Appends an entry of any format behind `head`; the caller, who knows whether its reference is free, registers it.
    pub(super) fn append_chained(
        &mut self,
        entry: &Entry,
        format: i64,
        hash: &Hash,
        head: &Head,
        before: Account,
        after: Account,
    ) -> Answer<()> {
        let Head { seq, last, .. } = *head;
        self.insert_entry(entry, format, last, hash)?;
        let head = Head {
            seq: entry.seq,
            last: entry.position,
            hash: *hash,
            last_at: Some(entry.at),
        };
        one(self.statements.get(Sql::MoveAccount)?.execute(params![
            entry.key,
            after.credit,
            after.spent,
            after.held,
            head.seq,
            head.last,
            head.last_at,
            head.hash,
            before.held,
            seq,
        ])?)?;
        self.cache.moved(entry.key, after, Some(head));
        self.cache.entered(entry.operation);
        self.entries = entry.position;
        self.note(entry.key, Moved::Entered(after, entry.at));
        self.add_up(before, after, entry.bill.as_ref());
        Ok(())
    }

    /// Appends an act of any format behind `head`.
    pub(super) fn append_chained_act(
        &mut self,
        record: &Record,
        format: i64,
        hash: &Hash,
        head: &AuditHead,
    ) -> Answer<()> {
        let Record { record, seq, state } = record;
        self.statements.get(Sql::InsertAct)?.execute(params![
            record.position,
            record.key,
            head.last,
            record.operation,
            record.act,
            record.actor,
            record.at,
            record.details,
            state,
            hash,
            format,
            seq
        ])?;
        self.statements.get(Sql::MoveAudit)?.execute(params![
            record.key,
            record.position,
            hash,
            seq
        ])?;
        self.count_act();
        Ok(())
    }

    /// Takes a reference for an operation's entry.
    pub(super) fn register(&mut self, folded: &str, operation: OperationId) -> Result<()> {
        self.statements
            .get(Sql::InsertReference)?
            .execute(params![folded, operation])?;
        Ok(())
    }
}

/// A write that must find its row with the values that were read.
fn one(rows: usize) -> Result<()> {
    if rows == 1 {
        Ok(())
    } else {
        Err(rusqlite::Error::StatementChangedRows(rows))
    }
}

fn entry_only(stored: Option<StoredEntry>) -> Option<Entry> {
    stored.map(|stored| stored.entry)
}

fn models_text(key: &Key) -> Result<Option<String>> {
    key.settings.models.as_ref().map(json).transpose()
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

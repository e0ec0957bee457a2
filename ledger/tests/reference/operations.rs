//! What operations do to the reference store: decided here once more, by plain arithmetic on 128 bits, and by nothing of `rule` or
//! `batch`. Texts of refusals are written out, because the model test compares whole outcomes.

use super::tokens::answered;
use std::collections::btree_map::Entry;

use serde::Serialize;
use serde_json::{Value, json};

use super::{State, next};
use crate::batch::operation::Operation;
use crate::batch::outcome::Outcome;
use crate::book::audit::{self, Written};
use crate::{
    Account, Amount, AuditRecord, CloseSession, CloseSessions, ConsumeLink, Customer, CustomerId,
    CustomerStatus, EntryKind, ForgetTarget, JournalEntry, JudgeTopUp, Key, KeyId, KeyRecord,
    KeyStatus, NewLink, NoteFiles, OperationId, Publish, Refusal, ResolveHold, Said, Scope,
    SecretHash, Session, Timestamp, clock,
};

pub(super) type Done<T> = Result<T, Refusal>;

pub(super) fn picos(amount: Amount) -> i128 {
    amount.picos().into()
}

pub(super) fn amount(picos: i128) -> Done<Amount> {
    let too_large = |_| limit("the amounts are too large");
    i64::try_from(picos)
        .map(Amount::from_picos)
        .map_err(too_large)
}

pub(super) fn limit(text: &str) -> Refusal {
    Refusal::Limit(text.to_owned())
}

pub(super) fn not_applicable(text: &str) -> Refusal {
    Refusal::NotApplicable(text.to_owned())
}

pub(super) fn status(key: &KeyRecord, now: Timestamp) -> KeyStatus {
    let expired = key.settings.expires_at.is_some_and(|end| end <= now);
    match key.stored_status {
        KeyStatus::Active if expired => KeyStatus::Expired,
        stored => stored,
    }
}

impl State {
    pub(super) fn apply(&mut self, operation: &Operation) -> Done<Outcome> {
        Ok(match operation {
            Operation::Open(new) => self.open(new)?.into(),
            Operation::MoveHold(moved) => self.move_to(moved)?.into(),
            Operation::Finish(finish) => self.finish(finish)?.into(),
            Operation::Resolve(ResolveHold(finish)) => self.resolve(finish)?.into(),
            Operation::BeginEpoch(_) => {
                self.epoch = self.epoch.saturating_add(1);
                Outcome::Epoch(self.epoch)
            }
            Operation::Recover(of) => self.recover(of.epoch, of.now)?.into(),
            Operation::Create(new) => self.create(new)?.into(),
            Operation::Change(change) => self.change(change)?.into(),
            Operation::Credit(credit) => self.credit(credit)?.into(),
            Operation::CreateCustomer(new) => self.create_customer(new)?.into(),
            Operation::ChangeCustomer(change) => self.change_customer(change)?.into(),
            Operation::Enrol(both) => self.enrol(&both.customer, &both.key)?.into(),
            Operation::PayFirst(both) => self
                .paid(&both.payment, |state| {
                    state.pay_first(&both.customer, &both.payment)
                })?
                .into(),
            Operation::Asked(asked) => answered(self.asked(asked)?),
            Operation::Visit(new) => self.visit(new)?.into(),
            Operation::CreateLot(new) => self.create_lot(new)?.into(),
            Operation::VoidLot(of) => self.void_lot(of.lot, &of.act)?.into(),
            Operation::Reserve(new) => self.reserve(new)?.into(),
            Operation::EndReservation(of) => {
                self.end_reservation(of.id);
                Outcome::Done
            }
            Operation::Redeem(new) => self.redeem(new)?.into(),
            Operation::Grant(new) => self.grant(new)?.into(),
            Operation::VoidGrant(of) => self.void_grant(of)?.into(),
            Operation::ChangePlan(change) => self.change_plan(change)?.into(),
            Operation::SettleGrants(of) => {
                self.settle_grants(of.customer)?;
                Outcome::Done
            }
            Operation::CreateToken(new) => self.create_token(new)?.into(),
            Operation::RevokeToken(of) => self.revoke_token(of.token, &of.act)?.into(),
            Operation::Pay(new) => self.paid(new, |state| state.pay(new))?.into(),
            Operation::Reverse(new) => self.reverse(new)?.into(),
            Operation::EndUnapplied(act) => self.end_unapplied(act)?.into(),
            Operation::Move(moved) => self.give(moved)?.into(),
            Operation::Publish(Publish { slugs, now }) => {
                for slug in slugs {
                    self.published.entry(slug.clone()).or_insert(*now);
                }
                Outcome::Done
            }
            Operation::Teach(taught) => {
                self.teach(taught);
                Outcome::Done
            }
            Operation::ForgetTarget(ForgetTarget(target)) => {
                self.forget_target(target);
                Outcome::Done
            }
            Operation::Files(NoteFiles { act, news }) => {
                if let Entry::Vacant(place) = self.files.entry(act.operation) {
                    place.insert(act.clone());
                    self.tell_of_files(act, news);
                }
                Outcome::Done
            }
            Operation::JudgeTopUp(JudgeTopUp {
                customer,
                operation,
            }) => {
                // Nobody can want anything of a customer that is not there.
                if self.customers.contains_key(customer) {
                    self.ask_for_money(*customer, *operation)?;
                }
                Outcome::Done
            }
            Operation::SetDefaults(new) => {
                self.set_defaults(new)?;
                Outcome::Done
            }
            Operation::Deliver(steps) => {
                steps.0.iter().for_each(|step| self.deliver(step));
                Outcome::Done
            }
            Operation::OwnCost(own) => {
                let place = (own.hour, own.target.clone(), self.epoch);
                self.own_costs.insert(place, own.cost);
                Outcome::Done
            }
            Operation::CreateLink(NewLink {
                key,
                token,
                expires,
                act,
            }) => {
                let act = audit::link(*key, token, *expires, act);
                self.create_link(*key, *token, *expires, act)?;
                Outcome::Done
            }
            Operation::ConsumeLink(ConsumeLink { token, now }) => {
                let link = self.links.remove(&token.0);
                let link = link.filter(|(_, end)| now < end).map(|(key, _)| key);
                Outcome::Owner(link.filter(|key| self.active(*key, clock::now()).is_ok()))
            }
            Operation::OpenSession(session) => {
                self.open_session(session).map(|()| Outcome::Done)?
            }
            Operation::CloseSessions(CloseSessions(key)) => {
                self.sessions.retain(|_, session| session.key != *key);
                Outcome::Done
            }
            Operation::CloseSession(CloseSession(token)) => {
                self.sessions.remove(&token.0);
                Outcome::Done
            }
            Operation::MarkUsed(of) => {
                self.mark_used(of.key, of.now)?;
                Outcome::Done
            }
        })
    }

    pub(super) fn key(&self, key: KeyId) -> Done<&KeyRecord> {
        self.keys.get(&key).ok_or(Refusal::NoSuchKey(key))
    }

    pub(super) fn whole_key(&self, key: KeyId) -> Done<Key> {
        self.whole(key).ok_or(Refusal::NoSuchKey(key))
    }

    pub(super) fn customer(&self, customer: CustomerId) -> Done<&Customer> {
        let found = self.customers.get(&customer);
        found.ok_or(Refusal::NoSuchCustomer(customer))
    }

    /// The customer of a key.
    pub(super) fn payer(&self, key: KeyId) -> Done<&Customer> {
        self.customer(self.key(key)?.belongs_to)
    }

    /// The customer of a key, of which both are served.
    pub(super) fn active(&self, key: KeyId, now: Timestamp) -> Done<&Customer> {
        let customer = self.payer(key)?;
        if customer.status != CustomerStatus::Active {
            return Err(Refusal::CustomerStopped(customer.status));
        }
        match status(self.key(key)?, now) {
            KeyStatus::Active => Ok(customer),
            stopped => Err(Refusal::NotActive(stopped)),
        }
    }

    pub(super) fn set(&mut self, customer: CustomerId, account: Account) {
        if let Some(found) = self.customers.get_mut(&customer) {
            found.account = account;
        }
    }

    /// The date of a customer's next entry.
    pub(super) fn dated(&self, customer: CustomerId, at: Timestamp) -> Timestamp {
        let latest = crate::clock::now().millis().saturating_add(10_000);
        let last = self.customers.get(&customer);
        let last = last.and_then(|customer| customer.last_entry_at);
        let last = last.filter(|last| last.millis() <= latest);
        let at = at.min(Timestamp::from_millis(latest));
        last.map_or(at, |last| at.max(last))
    }

    /// Appends an entry, at its place and date, and moves the account.
    pub(super) fn enter(
        &mut self,
        customer: CustomerId,
        after: Account,
        entry: JournalEntry,
    ) -> Done<JournalEntry> {
        let seq = next(self.of_customer(customer).count());
        let position = next(self.entries.len());
        let entry = JournalEntry {
            position,
            seq,
            balance_after: amount(picos(after.credit).saturating_sub(picos(after.spent)))?,
            at: self.dated(customer, entry.at),
            ..entry
        };
        if let Some(found) = self.customers.get_mut(&customer) {
            (found.account, found.last_entry_at) = (after, Some(entry.at));
        }
        self.entries.push(entry.clone());
        Ok(entry)
    }

    pub(super) fn write(&mut self, customer: CustomerId, act: Written) {
        let position = next(self.audit.len());
        self.audit.push(AuditRecord {
            position,
            at: act.at,
            actor: act.actor,
            act: act.act.to_owned(),
            customer,
            key: act.key,
            operation: act.operation,
            details: act.details,
        });
    }

    fn mark_used(&mut self, key: KeyId, now: Timestamp) -> Done<()> {
        self.key(key)?;
        if let Some(key) = self.keys.get_mut(&key)
            && (key.token.is_some() || key.counts_in.is_some())
        {
            key.used_at.get_or_insert(now);
        }
        Ok(())
    }

    pub(super) fn create_link(
        &mut self,
        key: KeyId,
        token: SecretHash,
        expires: Timestamp,
        act: Written,
    ) -> Done<()> {
        let operation = act.operation;
        if self
            .audited(operation)
            .is_some_and(|known| is_same(&act, known))
        {
            return Ok(());
        }
        self.check_unused(operation)?;
        self.active(key, clock::now())?;
        if self.links.contains_key(&token.0) {
            return Err(not_applicable("this link already exists"));
        }
        self.links.retain(|_, (_, end)| act.at < *end);
        self.links.insert(token.0, (key, expires));
        self.write(self.key(key)?.belongs_to, act);
        Ok(())
    }

    pub(super) fn open_session(&mut self, session: &Session) -> Done<()> {
        if let stopped @ (KeyStatus::Blocked | KeyStatus::Revoked) =
            self.key(session.key)?.stored_status
        {
            return Err(Refusal::NotActive(stopped));
        }
        if let Some(known) = self.sessions.get(&session.token.0) {
            return if known == session {
                Ok(())
            } else {
                Err(not_applicable("this session already exists"))
            };
        }
        self.sessions.retain(|_, open| session.at < open.expires);
        self.sessions.insert(session.token.0, session.clone());
        self.mark_used(session.key, session.at)?;
        let customer = self.key(session.key)?.belongs_to;
        self.trim_sessions(Scope::Key(session.key), Session::MOST_OF_KEY);
        self.trim_sessions(Scope::Customer(customer), Session::MOST_OF_CUSTOMER);
        Ok(())
    }

    fn trim_sessions(&mut self, of: Scope, most: u8) {
        let own = self.sessions.values();
        let mut own: Vec<_> = own
            .filter(|open| self.is_in(of, open.key))
            .map(|open| (std::cmp::Reverse(open.at), open.token.0))
            .collect();
        own.sort_unstable();
        for (_, token) in own.iter().skip(usize::from(most)) {
            self.sessions.remove(token);
        }
    }
}

/// An entry, before it is filled in.
pub(super) fn blank(customer: CustomerId, key: Option<KeyId>) -> JournalEntry {
    JournalEntry {
        position: 0,
        seq: 0,
        customer,
        key,
        operation: OperationId::from_bytes([0; 16]),
        kind: EntryKind::TopUp,
        amount: Amount::ZERO,
        balance_after: Amount::ZERO,
        at: Timestamp::default(),
        actor: String::new(),
        reference: None,
        reason: None,
        refunds: None,
        parts: Vec::new(),
        bill: None,
    }
}

/// What an edit says of a setting, as the details of its act would have it.
pub(super) fn said<T: Serialize>(said: &Said<T>) -> Option<Value> {
    match said {
        Said::Keep => None,
        Said::Clear => Some(Value::Null),
        Said::Set(value) => Some(json!(value)),
    }
}

/// Whether details have all that an edit says.
pub(super) fn says<const N: usize>(details: &str, said: [(&str, Option<Value>); N]) -> bool {
    let known: Value = serde_json::from_str(details).unwrap_or_default();
    let has = |(name, said): (&str, Option<Value>)| said.is_none_or(|said| known[name] == said);
    said.into_iter().all(has)
}

pub(super) fn set<T: Clone>(setting: &mut Option<T>, said: &Said<T>) {
    match said {
        Said::Keep => {}
        Said::Clear => *setting = None,
        Said::Set(value) => *setting = Some(value.clone()),
    }
}

pub(super) fn is_same(act: &Written, known: &AuditRecord) -> bool {
    (act.key, act.act, &act.details) == (known.key, known.act.as_str(), &known.details)
}

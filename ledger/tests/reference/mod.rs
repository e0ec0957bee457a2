//! The reference store: everything in memory under one lock, kept as simple as possible.
//!
//! It exists to be obviously right, and to be the oracle of the other stores: it decides every operation by itself (`operations`)
//! and shares with them only values, the contents of the audit and the shapes of pages. The conformance suite and the model test
//! compare them. It keeps nothing across a restart. The library includes it under the feature `reference`, which only tests have.

mod caps;
mod claims;
mod customers;
mod defaults;
mod deliveries;
mod events;
mod grants;
mod holds;
mod keys;
mod made;
mod operations;
mod pages;
mod plan_acts;
mod plan_money;
mod plans;
mod reservations;
mod sources;
pub mod statements;
mod sums;
mod taught;
mod tokens;
mod vouchers;
mod windows;
mod wishes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::batch::operation::Operation;
use crate::batch::outcome::Outcome;
use crate::rule::watch::CustomerWatch;
use crate::{
    Addressees, Amount, Asker, AuditRecord, Bill, Customer, CustomerBy, CustomerId, CustomerQuery,
    CustomerStatus, EntryQuery, Event, FilesAct, Finish, GrantId, GrantQuery, GrantRecord,
    HouseAct, JournalEntry, Key, KeyId, KeyQuery, KeyRecord, KnownWebhook, Ledger, LedgerError,
    ListedCustomer, Lot, LotId, MarginQuery, Margins, OpenHold, OperationId, OwnCost, Payment,
    PersonalData, PlanWindow, PublishedSlug, RunQuery, RunSum, Scope, SecretHash, Session,
    SlugHour, SlugUse, Subscription, SubscriptionId, Taught, Timestamp, Token, TokenDay, TokenId,
    Totals, UsageRow, UtcDay, VendorIds, VerifyReport, WebhookId, WholeRows, WholeTable, WindowId,
};

/// A ledger in memory.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    state: Mutex<State>,
}

impl MemoryLedger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open hold.
#[derive(Debug, Clone)]
struct Held {
    open: OpenHold,
    /// Its size at the beginning.
    opened: Amount,
    moves: u32,
    day: UtcDay,
    checkpoint: Option<Bill>,
    /// What of it is held of grants; the rest is the pool's.
    parts: sources::HeldParts,
}

#[derive(Debug, Clone, Default)]
struct State {
    customers: BTreeMap<CustomerId, Customer>,
    personal: BTreeMap<CustomerId, PersonalData>,
    /// Whose a payment is, and whom it is addressed to, by its folded reference.
    addressees: BTreeMap<String, (CustomerId, Option<PersonalData>)>,
    keys: BTreeMap<KeyId, KeyRecord>,
    /// By their folded references.
    payments: BTreeMap<String, Payment>,
    caps: BTreeMap<Scope, Vec<caps::Capped>>,
    house: defaults::House,
    /// All that were ever given.
    grants: BTreeMap<GrantId, GrantRecord>,
    /// All that were ever made.
    subscriptions: BTreeMap<SubscriptionId, Subscription>,
    windows: BTreeMap<WindowId, PlanWindow>,
    holds: BTreeMap<OperationId, Held>,
    entries: Vec<JournalEntry>,
    audit: Vec<AuditRecord>,
    published: BTreeMap<String, Timestamp>,
    lessons: BTreeMap<(String, String), [i128; 5]>,
    excesses: BTreeMap<(String, CustomerId), (u64, Timestamp)>,
    /// By hour, target and epoch.
    own_costs: BTreeMap<(i64, String, i64), Amount>,
    files: BTreeMap<OperationId, FilesAct>,
    watched: BTreeMap<CustomerId, CustomerWatch>,
    events: Vec<Event>,
    webhooks: BTreeMap<WebhookId, KnownWebhook>,
    deliveries: BTreeMap<(WebhookId, OperationId), deliveries::Delivered>,
    sessions: HashMap<[u8; 32], Session>,
    links: HashMap<[u8; 32], (KeyId, Timestamp)>,
    tokens: BTreeMap<TokenId, Token>,
    house_acts: Vec<HouseAct>,
    answers: BTreeMap<tokens::AnswerName, tokens::Kept>,
    asked_by: Asker,
    reserved: reservations::Reserved,
    token_days: BTreeMap<(TokenId, UtcDay), TokenDay>,
    lots: BTreeMap<LotId, (Lot, OperationId)>,
    vouchers: BTreeMap<[u8; 32], vouchers::Voucher>,
    epoch: i64,
}

impl State {
    fn entry(&self, operation: OperationId) -> Option<&JournalEntry> {
        self.entries
            .iter()
            .find(|entry| entry.operation == operation)
    }

    fn audited(&self, operation: OperationId) -> Option<&AuditRecord> {
        self.audit
            .iter()
            .find(|record| record.operation == operation)
    }

    fn of_key(&self, key: KeyId) -> impl Iterator<Item = &JournalEntry> {
        self.entries
            .iter()
            .filter(move |entry| entry.key == Some(key))
    }

    fn of_customer(&self, customer: CustomerId) -> impl Iterator<Item = &JournalEntry> {
        let entries = self.entries.iter();
        entries.filter(move |entry| entry.customer == customer)
    }

    /// Whether a key is, or belongs to, whom a scope names.
    fn is_in(&self, of: Scope, key: KeyId) -> bool {
        match of {
            Scope::Key(only) => only == key,
            Scope::Customer(customer) => self
                .keys
                .get(&key)
                .is_some_and(|key| key.belongs_to == customer),
        }
    }

    fn whole(&self, id: KeyId) -> Option<Key> {
        let own = self.keys.get(&id)?.clone();
        let customer = self.customers.get(&own.belongs_to)?.clone();
        let maker = own.counts_in.and_then(|maker| self.keys.get(&maker));
        let of_maker = maker.map(|maker| maker.caps.clone()).unwrap_or_default();
        Some(Key {
            own,
            customer,
            of_maker,
        })
    }

    /// A key as it is now, whatever of it is booked.
    fn shown(&self, id: KeyId) -> Option<Key> {
        let key = self.whole(id)?;
        let customer = self.reckoned(&key.customer);
        Some(Key { customer, ..key })
    }

    fn totals(&self) -> Totals {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let sum = |amounts: &mut dyn Iterator<Item = Amount>| {
            amounts.fold(0_i128, |sum, amount| {
                sum.saturating_add(amount.picos().into())
            })
        };
        let bills = || self.entries.iter().filter_map(|entry| entry.bill.as_ref());
        Totals {
            keys: count(self.keys.len()),
            entries: count(self.entries.len()),
            holds: count(self.holds.len()),
            credit: sum(&mut self.customers.values().map(|of| of.account.credit)),
            spent: sum(&mut self.customers.values().map(|of| of.account.spent)),
            held: sum(&mut self.customers.values().map(|of| of.account.held)),
            loss: sum(&mut bills().map(|bill| bill.loss)),
            exposure: sum(&mut bills().map(|bill| bill.exposure)),
            cost: sum(&mut bills().filter_map(|bill| bill.own_cost())),
        }
    }

    fn verify(&self) -> VerifyReport {
        let totals = self.totals();
        let mut report = VerifyReport {
            customers: u64::try_from(self.customers.len()).unwrap_or(u64::MAX),
            keys: totals.keys,
            entries: totals.entries,
            holds: totals.holds,
            ..VerifyReport::default()
        };
        for Customer { id, account, .. } in self.customers.values() {
            let entries = Amount::checked_sum(self.of_customer(*id).map(|entry| entry.amount));
            let holds = Amount::checked_sum(
                self.holds
                    .values()
                    .filter(|held| self.is_in(Scope::Customer(*id), held.open.key))
                    .map(|held| held.open.amount),
            );
            if entries != Some(account.balance())
                || holds != Some(account.held)
                || !account.is_sound()
            {
                report.faults.push(format!(
                    "customer {id}: its account does not follow from its entries and holds"
                ));
            }
            report.faults.extend(self.unsound_claim(*id));
            report.faults.extend(self.unsound_grants(*id));
            report.faults.extend(self.unsound_windows(*id));
        }
        report
    }
}

fn next(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX).saturating_add(1)
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn apply(&self, operation: Operation) -> Result<Outcome, LedgerError> {
        Ok(self.state().apply(&operation)?)
    }

    async fn find_key(&self, id: KeyId) -> Result<Option<Key>, LedgerError> {
        Ok(self.state().shown(id))
    }

    async fn find_keys(&self, ids: &[KeyId]) -> Result<Vec<Key>, LedgerError> {
        let state = self.state();
        Ok(ids.iter().filter_map(|id| state.shown(*id)).collect())
    }

    async fn ended(&self, keys: &[KeyId]) -> Result<Vec<KeyId>, LedgerError> {
        Ok(self.state().ended(keys))
    }

    async fn list_keys(&self, query: KeyQuery) -> Result<Vec<Key>, LedgerError> {
        Ok(self.state().list_keys(&query))
    }

    async fn customer(&self, by: CustomerBy<'_>) -> Result<Option<Customer>, LedgerError> {
        let state = self.state();
        let mut customers = state.customers.values();
        let is_it = |of: &&Customer| match by {
            CustomerBy::Id(id) => of.id == id,
            CustomerBy::ExternalId(id) => of.settings.external_id.as_deref() == Some(id),
        };
        Ok(customers.find(is_it).map(|found| state.reckoned(found)))
    }

    async fn list_customers(&self, query: CustomerQuery) -> Result<Vec<Customer>, LedgerError> {
        Ok(self.state().list_customers(&query))
    }

    async fn personal_data(&self, id: CustomerId) -> Result<Option<PersonalData>, LedgerError> {
        Ok(self.state().personal.get(&id).cloned())
    }

    async fn addressees(&self, id: CustomerId) -> Result<Addressees, LedgerError> {
        let state = self.state();
        let of_it = state.addressees.iter().filter(|(_, (of, _))| *of == id);
        Ok(Addressees::new(
            of_it
                .map(|(name, (of, to))| (name.clone(), *of, to.clone()))
                .collect(),
        ))
    }

    async fn payment(&self, reference: &str) -> Result<Option<Payment>, LedgerError> {
        Ok(self.state().payment(reference).cloned())
    }

    async fn unapplied(&self) -> Result<Vec<Payment>, LedgerError> {
        Ok(self.state().unapplied())
    }

    async fn grants(&self, query: GrantQuery) -> Result<Vec<GrantRecord>, LedgerError> {
        Ok(self.state().grants_page(&query))
    }

    async fn due_grants(&self, now: Timestamp) -> Result<Vec<CustomerId>, LedgerError> {
        Ok(self.state().due_grants(now))
    }

    async fn whole(&self, table: WholeTable) -> Result<WholeRows, LedgerError> {
        let state = self.state();
        Ok(match table {
            WholeTable::Token => WholeRows::Token(state.tokens_by_age()),
            WholeTable::Lot => WholeRows::Lot(state.lots_by_age()),
            WholeTable::GrantRecord => WholeRows::GrantRecord(state.grants_by_age()),
            WholeTable::Subscription => {
                WholeRows::Subscription(state.subscriptions.values().cloned().collect())
            }
            WholeTable::Reservation => {
                WholeRows::Reservation(state.reserved.all.values().cloned().collect())
            }
            WholeTable::ListedCustomer => {
                let open = (state.customers.values())
                    .filter(|customer| customer.status != CustomerStatus::Closed);
                let listed = open.filter_map(|customer| {
                    let price_list = customer.settings.price_list.clone()?;
                    let customer = customer.id;
                    Some(ListedCustomer {
                        customer,
                        price_list,
                    })
                });
                WholeRows::ListedCustomer(listed.collect())
            }
        })
    }

    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>, LedgerError> {
        Ok(self.state().subscriptions.get(&id).cloned())
    }

    async fn find_token(&self, secret: SecretHash) -> Result<Option<Token>, LedgerError> {
        let state = self.state();
        let mut tokens = state.tokens.values();
        Ok(tokens.find(|token| token.secret == secret).cloned())
    }

    async fn token_days(&self, since: UtcDay) -> Result<Vec<TokenDay>, LedgerError> {
        let state = self.state();
        let days = state.token_days.values().filter(|day| day.day >= since);
        Ok(days.copied().collect())
    }

    async fn house_acts(&self) -> Result<Vec<HouseAct>, LedgerError> {
        Ok(self.state().house_acts.clone())
    }

    fn abandon_hold(&self, finish: Arc<Finish>) {
        // A hold that is not there has ended, as wanted.
        let _ = self
            .state()
            .apply(&Operation::Resolve(crate::ResolveHold(finish)));
    }

    fn vendor_ids(&self) -> VendorIds {
        VendorIds::of_ledger([0; 16])
    }

    async fn open_holds(
        &self,
        of: Option<Scope>,
        limit: usize,
    ) -> Result<Vec<OpenHold>, LedgerError> {
        let state = self.state();
        let mut holds: Vec<OpenHold> = state.holds.values().map(|held| held.open.clone()).collect();
        holds.retain(|hold| of.is_none_or(|of| state.is_in(of, hold.key)));
        holds.sort_by_key(|hold| (hold.at, hold.request));
        holds.truncate(limit);
        Ok(holds)
    }

    async fn entries(&self, query: EntryQuery) -> Result<Vec<JournalEntry>, LedgerError> {
        Ok(self.state().entries(&query))
    }

    async fn entry(&self, operation: OperationId) -> Result<Option<JournalEntry>, LedgerError> {
        Ok(self.state().entry(operation).cloned())
    }

    async fn last_act(&self, of: Scope) -> Result<i64, LedgerError> {
        Ok(self.state().last_act(of))
    }

    async fn entry_by_reference(
        &self,
        reference: &str,
    ) -> Result<Option<JournalEntry>, LedgerError> {
        Ok(self.state().named(reference).cloned())
    }

    async fn entry_by_answer(
        &self,
        key: KeyId,
        answer_id: &str,
    ) -> Result<Option<JournalEntry>, LedgerError> {
        let state = self.state();
        let carries = |entry: &&JournalEntry| {
            entry
                .bill
                .as_ref()
                .is_some_and(|bill| bill.answer_id.as_deref() == Some(answer_id))
        };
        let newest = state
            .entries
            .iter()
            .rev()
            .filter(|entry| entry.key == Some(key))
            .take(100_000)
            .find(carries);
        Ok(newest.cloned())
    }

    async fn usage(
        &self,
        key: KeyId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<UsageRow>, LedgerError> {
        Ok(self.state().usage(key, from, to))
    }

    async fn usage_by_run(&self, query: RunQuery) -> Result<Vec<RunSum>, LedgerError> {
        let mut found = self.state().usage_by_run(&query);
        found.truncate(usize::try_from(query.limit).unwrap_or(usize::MAX));
        Ok(found)
    }

    async fn usage_by_key(
        &self,
        customer: CustomerId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<BTreeMap<KeyId, Vec<UsageRow>>, LedgerError> {
        let state = self.state();
        let keys: BTreeSet<KeyId> = state
            .of_customer(customer)
            .filter_map(|entry| entry.bill.as_ref().and(entry.key))
            .collect();
        let used = |key| (key, state.usage(key, from, to));
        let rows = keys.into_iter().map(used);
        Ok(rows.filter(|(_, rows)| !rows.is_empty()).collect())
    }

    async fn given(&self, customer: CustomerId) -> Result<Amount, LedgerError> {
        Ok(self.state().given(customer))
    }

    async fn spent_since(
        &self,
        ids: &[KeyId],
        since: Timestamp,
    ) -> Result<Vec<Amount>, LedgerError> {
        let state = self.state();
        let spent = |id: &KeyId| {
            let charges = state
                .of_key(*id)
                .filter(|entry| entry.bill.is_some() && entry.at.hour() >= since.hour());
            Amount::checked_sum(charges.map(|entry| entry.amount))
                .and_then(Amount::checked_neg)
                .unwrap_or_default()
        };
        Ok(ids.iter().map(spent).collect())
    }

    async fn margins(&self, query: MarginQuery) -> Result<Margins, LedgerError> {
        Ok(self.state().margins(query))
    }

    async fn slug_hours(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<SlugHour>, LedgerError> {
        Ok(self.state().slug_hours(from, to))
    }

    async fn slug_use(&self, since: Timestamp) -> Result<Vec<SlugUse>, LedgerError> {
        Ok(self.state().slug_use(since))
    }

    async fn totals(&self) -> Result<Totals, LedgerError> {
        Ok(self.state().totals())
    }

    async fn audit(
        &self,
        of: Option<Scope>,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditRecord>, LedgerError> {
        let state = self.state();
        let wanted = |record: &&AuditRecord| {
            let is_of = match of {
                None => true,
                Some(Scope::Key(key)) => record.key == Some(key),
                Some(Scope::Customer(customer)) => record.customer == customer,
            };
            is_of && before.is_none_or(|before| record.position < before)
        };
        Ok(state
            .audit
            .iter()
            .rev()
            .filter(wanted)
            .take(limit)
            .cloned()
            .collect())
    }

    async fn act(&self, operation: OperationId) -> Result<Option<AuditRecord>, LedgerError> {
        Ok(self.state().audited(operation).cloned())
    }

    async fn verify(&self) -> Result<VerifyReport, LedgerError> {
        Ok(self.state().verify())
    }

    async fn published(&self) -> Result<Vec<PublishedSlug>, LedgerError> {
        let state = self.state();
        Ok(state
            .published
            .iter()
            .map(|(slug, since)| PublishedSlug {
                slug: slug.clone(),
                since: *since,
            })
            .collect())
    }

    async fn taught(&self) -> Result<Taught, LedgerError> {
        Ok(self.state().taught())
    }

    async fn files_acts(
        &self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<FilesAct>, LedgerError> {
        let state = self.state();
        let acts = state.files.values().rev();
        let older = acts.filter(|act| before.is_none_or(|before| act.operation < before));
        Ok(older.take(limit).cloned().collect())
    }

    async fn own_costs(&self, from: Timestamp, to: Timestamp) -> Result<Vec<OwnCost>, LedgerError> {
        let last = Timestamp::from_millis(to.millis().saturating_sub(1));
        Ok(self.state().own_costs(from.hour(), last.hour()))
    }

    async fn has_link(&self, token: SecretHash, now: Timestamp) -> Result<bool, LedgerError> {
        Ok(self
            .state()
            .links
            .get(&token.0)
            .is_some_and(|(_, expires)| now < *expires))
    }

    async fn find_session(
        &self,
        token: SecretHash,
        now: Timestamp,
    ) -> Result<Option<KeyId>, LedgerError> {
        let state = self.state();
        Ok(state
            .sessions
            .get(&token.0)
            .filter(|session| now < session.expires)
            .map(|session| session.key))
    }
}

//! Customers and keys among the rows of a batch: how operations change them, and what is counted for their limits.

use super::{CustomerRow, KeyRow, Positions, Rows};
use crate::book::head::StoredCustomer;
use crate::rule::auto_top_up::AutoTopUp;
use crate::rule::cap::PastSpending;
use crate::rule::defaults::StandingDefaults;
use crate::rule::key::KeyRecord;
use crate::rule::limit::{Traffic, TrafficLimits};
use crate::rule::payment::PaymentAddressee;
use crate::rule::purse::KeyPurse;
use crate::rule::watch::CustomerWatch;
use crate::table::description::DescribedRow as _;
use crate::table::owners::ExternalIdRow;
use crate::value::reference;
use crate::{
    Account, Amount, ByDefault, Caps, Customer, CustomerId, Event, EventKind, GrantRecord, Grants,
    KeyId, OperationId, PersonalData, PlanWindow, Plans, Scope, Timestamp,
};

impl Rows {
    pub(super) fn touch_customer(
        &mut self,
        customer: CustomerId,
        change: impl FnOnce(&mut CustomerRow),
    ) {
        if let Some(row) = self.customers.get_mut(&customer) {
            if !row.is_touched() {
                self.changes.customers.push(customer);
            }
            change(row);
        }
    }

    pub(super) fn touch_key(&mut self, key: KeyId, change: impl FnOnce(&mut KeyRow)) {
        if let Some(row) = self.keys.get_mut(&key) {
            if !row.settings_changed && !row.counts_changed {
                self.changes.keys.push(key);
            }
            change(row);
        }
    }

    /// Whether several gateways count together.
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.positions, Positions::Shared(_))
    }

    /// The default caps of a key or customer that is to be made.
    pub(crate) fn first_caps(&self, of: Scope) -> Caps {
        self.fitted(of, &Caps::default()).1
    }

    /// What one has by default that is new or was changed. Whoever removes the last cap of its own has the defaults again, from today on.
    fn fitted(&self, of: Scope, caps: &Caps) -> (ByDefault, Caps) {
        let (by_default, house) = StandingDefaults::of(self.defaults.as_deref(), of);
        let mut caps = caps.clone();
        if caps.behind(house).is_some() {
            let (hours, holds) = (self.spent_hours(of), self.holds_of(of));
            let spending = PastSpending {
                hours: &hours,
                holds: &holds,
            };
            caps.follow(house, Some(self.today()), spending);
        }
        (by_default, caps)
    }

    fn fit_key(&self, key: &mut KeyRecord) {
        (key.defaults, key.caps) = self.fitted(key.id.into(), &key.caps);
    }

    fn fit_customer(&self, customer: &mut Customer) {
        (customer.defaults, customer.caps) = self.fitted(customer.id.into(), &customer.caps);
    }

    /// Stores a new customer, without money or history.
    pub(crate) fn insert_customer(&mut self, mut stored: StoredCustomer) {
        self.fit_customer(&mut stored.customer);
        let id = stored.customer.id;
        let traffic = self.is_shared().then(Traffic::default);
        if let Some(external) = ExternalIdRow::of(&stored.customer) {
            self.tables.put(external);
        }
        self.customers.insert(id, CustomerRow::new(stored, traffic));
        self.changes.customers.push(id);
    }

    /// Stores a new key.
    pub(crate) fn insert_key(&mut self, mut key: KeyRecord) {
        self.fit_key(&mut key);
        let id = key.id;
        let limited = TrafficLimits::of_key(&key).is_some();
        let traffic = (self.is_shared() && limited).then(Traffic::default);
        self.count_made(None, &key);
        self.keys.insert(id, KeyRow::new(key, traffic));
        self.changes.keys.push(id);
    }

    /// Stores a customer's settings, state and caps.
    pub(crate) fn update_customer(&mut self, mut customer: Customer) {
        self.fit_customer(&mut customer);
        let known = self.customers.get(&customer.id);
        let before = known.and_then(|known| ExternalIdRow::of(&known.stored.customer));
        let external = ExternalIdRow::of(&customer);
        if before != external {
            if let Some(before) = before {
                self.tables.take::<ExternalIdRow>(&before.key());
            }
            if let Some(external) = external {
                self.tables.put(external);
            }
        }
        self.touch_customer(customer.id, |row| {
            row.stored.customer = customer;
            (row.settings_changed, row.caps_changed) = (true, true);
            row.auto_top_up_changed = true;
        });
    }

    /// Stores a key's settings, state, secrets and caps. A limit that is new counts the holds that are open.
    pub(crate) fn update_key(&mut self, mut key: KeyRecord) {
        self.fit_key(&mut key);
        let limited = self.is_shared() && TrafficLimits::of_key(&key).is_some();
        let open = self.holds.values().filter_map(|row| row.now.as_ref());
        let own = open.filter(|hold| hold.open.key == key.id);
        let running = i64::try_from(own.count()).unwrap_or(i64::MAX);
        let before = self.keys.get(&key.id).map(|row| row.key.clone());
        self.count_made(before.as_ref(), &key);
        self.touch_key(key.id, |row| {
            row.key = key;
            let counted = row.traffic.unwrap_or(Traffic {
                running,
                ..Traffic::default()
            });
            row.traffic = limited.then_some(counted);
            (row.settings_changed, row.counts_changed) = (true, true);
        });
    }

    /// Notes the first use of a key.
    pub(crate) fn mark_used(&mut self, key: KeyId, at: Timestamp) {
        self.touch_key(key, |row| {
            row.key.used_at = Some(at);
            row.settings_changed = true;
        });
    }

    /// Stores what a key's purse holds and its caps count. Most have no caps.
    pub(crate) fn set_purse(&mut self, key: KeyId, purse: KeyPurse) {
        let Some(customer) = self.keys.get(&key).map(|row| row.key.belongs_to) else {
            return;
        };
        let KeyPurse {
            account,
            grants,
            of_key,
            of_maker,
            of_customer,
            ..
        } = purse;
        // That the last of them is gone, as a window that is over, is stored, too.
        let mut has_grants = !grants.is_empty();
        self.touch_customer(customer, |row| {
            has_grants |= !row.stored.customer.grants.is_empty();
            row.stored.customer.account = account;
            row.account_changed = true;
            if !of_customer.is_empty() {
                row.stored.customer.caps = of_customer;
                row.caps_changed = true;
            }
        });
        if has_grants {
            self.set_grants(customer, grants);
        }
        let maker = self.keys.get(&key).and_then(|row| row.key.counts_in);
        for (key, caps) in [(Some(key), of_key), (maker, of_maker)] {
            if let Some(key) = key.filter(|_| !caps.is_empty()) {
                self.touch_key(key, |row| {
                    row.key.caps = caps;
                    row.counts_changed = true;
                });
            }
        }
    }

    /// Counts a key that an owner key made or changed, if those of its customer were asked for.
    fn count_made(&mut self, before: Option<&KeyRecord>, after: &KeyRecord) {
        let now = self.now();
        if let Some(made) = self.made.get_mut(&after.belongs_to) {
            made.count(before, after, now);
        }
    }

    /// Stores a customer's grants as they are; those of which nothing can come any more are forgotten.
    pub(crate) fn set_grants(&mut self, customer: CustomerId, grants: Grants) {
        let Some(row) = self.customers.get(&customer) else {
            return;
        };
        let known = &row.stored.customer.grants;
        let changed = grants
            .iter()
            .filter(|grant| known.get(grant.id) != Some(*grant));
        for grant in changed.cloned() {
            match self.tables.get::<GrantRecord>(&grant.id).cloned() {
                Some(record) => self.tables.put(GrantRecord { grant, ..record }),
                None => drop(self.changes.grants.insert(grant.id, grant)),
            }
        }
        self.set_plans(&known.plans.clone(), &grants.plans);
        let open = grants.open();
        self.touch_customer(customer, |row| {
            let next = row.stored.customer.grants.next_at();
            row.next_grant_changed |= next != open.next_at();
            row.account_changed = true;
            row.stored.customer.grants = open;
        });
    }

    /// Stores what has changed of a customer's subscriptions, and of their windows.
    fn set_plans(&mut self, known: &Plans, now: &Plans) {
        for subscription in now.iter().filter(|of| known.get(of.id) != Some(*of)) {
            self.tables.put(subscription.clone());
        }
        for window in now.windows() {
            if known.windows().all(|known| known != window) {
                self.tables.put(window.clone());
            }
        }
        for window in known.windows() {
            if now.windows().all(|now| now.id != window.id) {
                self.tables.fetched(window.clone());
                self.tables.take::<PlanWindow>(&window.id);
            }
        }
    }

    /// Changes what a customer has, without an entry of its own.
    pub(crate) fn set_account(&mut self, customer: CustomerId, account: Account) {
        self.touch_customer(customer, |row| {
            row.stored.customer.account = account;
            row.account_changed = true;
        });
    }

    /// Changes what a customer owes, along with its account.
    pub(crate) fn set_claim(&mut self, customer: CustomerId, claim: Amount) {
        self.touch_customer(customer, |row| {
            row.claim_changed |= row.stored.customer.claim != claim;
            row.account_changed = true;
            row.stored.customer.claim = claim;
        });
    }

    /// Stores what a customer's rule of auto top-up has come to.
    pub(crate) fn set_auto_top_up(&mut self, customer: CustomerId, auto: AutoTopUp) {
        self.touch_customer(customer, |row| {
            row.stored.customer.auto_top_up = Some(Box::new(auto));
            row.auto_top_up_changed = true;
        });
    }

    /// Changes what is watched of a customer.
    pub(crate) fn set_watch(
        &mut self,
        customer: CustomerId,
        change: impl FnOnce(&mut CustomerWatch),
    ) {
        self.touch_customer(customer, |row| {
            change(&mut row.stored.watch);
            row.watch_changed = true;
        });
    }

    /// Tells something about a customer. Its id follows from the cause, so that it is told once however often that is repeated.
    pub(crate) fn tell(
        &mut self,
        customer: CustomerId,
        cause: OperationId,
        kind: EventKind,
        data: &serde_json::Value,
    ) {
        let mut seq = 0_i64;
        self.set_watch(customer, |watch| {
            seq = watch.seq.saturating_add(1);
            watch.seq = seq;
        });
        self.changes.events.put(Event {
            id: cause.derived(format!("farebox event {customer} {seq}").as_bytes()),
            kind,
            at: self.now(),
            customer: Some(customer),
            seq: Some(seq),
            data: data.to_string(),
        });
    }

    /// Tells something that concerns all; `number` is its place among what this cause tells.
    pub(crate) fn tell_all(
        &mut self,
        cause: OperationId,
        number: u32,
        kind: EventKind,
        data: String,
    ) {
        self.changes.events.put(Event {
            id: cause.derived(format!("farebox event {number}").as_bytes()),
            kind,
            at: self.now(),
            customer: None,
            seq: None,
            data,
        });
    }

    /// Stores a customer's personal data, or removes what is stored, with that of its payments.
    pub(crate) fn set_personal(&mut self, customer: CustomerId, data: Option<PersonalData>) {
        if data.is_none() {
            // So are those of payments that the same batch books.
            let of_it = self.changes.addressees.values_mut();
            for (_, to) in of_it.filter(|(of, _)| *of == customer) {
                *to = PaymentAddressee::Nobody;
            }
        }
        match data.clone() {
            Some(data) => drop(self.personal.insert(customer, data)),
            None => drop(self.personal.remove(&customer)),
        }
        self.changes.personal.insert(customer, data);
    }

    /// Notes whom a payment of a customer is addressed to.
    pub(crate) fn address(&mut self, payment: &str, customer: CustomerId, to: PaymentAddressee) {
        let folded = reference::folded(payment);
        self.changes.addressees.insert(folded, (customer, to));
    }

    /// Counts a hold that is or was open.
    pub(crate) fn count_opened(&mut self, customer: CustomerId) {
        self.touch_customer(customer, |row| {
            row.stored.opened = row.stored.opened.saturating_add(1);
            row.account_changed = true;
        });
    }

    /// Counts a hold that begins or ends towards the limits of its key and customer.
    pub(super) fn count_traffic(
        &mut self,
        key: KeyId,
        of_key: impl FnOnce(Traffic, TrafficLimits) -> Traffic,
        of_customer: impl FnOnce(Traffic, TrafficLimits) -> Traffic,
    ) {
        let Some(row) = self.keys.get(&key) else {
            return;
        };
        let (customer, own) = (row.key.belongs_to, TrafficLimits::of_key(&row.key));
        let of_both = self.customers.get(&customer);
        let limits = of_both.map(|of| TrafficLimits::of_customer(&of.stored.customer, &row.key));
        if let (Some(traffic), Some(own)) = (row.traffic, own) {
            let traffic = of_key(traffic, own);
            self.touch_key(key, |row| {
                row.traffic = Some(traffic);
                row.counts_changed = true;
            });
        }
        if let Some(limits) = limits {
            self.touch_customer(customer, |row| {
                row.traffic = row.traffic.map(|traffic| of_customer(traffic, limits));
                row.account_changed = true;
            });
        }
    }
}

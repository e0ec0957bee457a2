//! Customers in the reference store: create, change, move.

use super::State;
use super::keys::paid_in;
use super::operations::{
    Done, amount, blank, is_same, limit, not_applicable, picos, said, says, set,
};
use serde_json::json;

use crate::book::audit;
use crate::value::reference::{self, folded, normal};
use crate::{
    Account, Act, Amount, AuditRecord, Caps, Customer, CustomerAct, CustomerChange, CustomerId,
    CustomerSettings, CustomerStatus, DailyBound, EntryKind, EventKind, JournalEntry, Moved,
    NewCustomer, NewMove, PersonalData, Refusal, Said, UtcDay, clock,
};

pub(super) fn settings_of(label: &str) -> CustomerSettings {
    CustomerSettings {
        label: label.to_owned(),
        ..CustomerSettings::default()
    }
}

pub(super) fn blank_customer(id: CustomerId, settings: CustomerSettings, act: &Act) -> Customer {
    Customer {
        id,
        settings,
        status: CustomerStatus::Active,
        account: Account::default(),
        claim: crate::Amount::ZERO,
        caps: Caps::default(),
        defaults: crate::ByDefault::default(),
        auto_top_up: None,
        grants: crate::Grants::default(),
        personal: None,
        created_at: act.at,
        created_by: act.actor.as_str().into(),
        token: None,
        last_entry_at: None,
    }
}

pub(super) fn not_closed(customer: &Customer) -> Done<()> {
    if customer.status == CustomerStatus::Closed {
        let text = format!("customer {} is closed, which cannot be undone", customer.id);
        return Err(not_applicable(&text));
    }
    Ok(())
}

impl State {
    pub(super) fn create_customer(&mut self, new: &NewCustomer) -> Done<Customer> {
        let operation = new.act.operation;
        let known = self.audited(operation);
        if let Some(made) = known.filter(|act| act.act == "create_customer") {
            return self.customer(made.customer).cloned();
        }
        self.check_new_customer(new)?;
        self.one_more(DailyBound::Customers)?;
        let mut customer = blank_customer(new.id, new.settings.clone(), &new.act);
        if let Some(data) = &new.personal {
            customer.personal = Some(data.hash());
            self.personal.insert(new.id, data.clone());
        }
        customer.token = self.asked_by.token();
        self.customers.insert(new.id, customer);
        self.fit_house(new.id.into())?;
        let customer = self.customer(new.id)?.clone();
        self.tell_of_customer(&customer, &new.act);
        self.write(new.id, audit::create_customer(new));
        Ok(customer)
    }

    pub(super) fn check_new_customer(&self, new: &NewCustomer) -> Done<()> {
        self.check_unused(new.act.operation)?;
        new.settings.check()?;
        PersonalData::check_new(new.personal.as_ref())?;
        if let Some(external_id) = &new.settings.external_id {
            self.check_external(new.id, external_id)?;
        }
        if self.customers.contains_key(&new.id) {
            return Err(not_applicable(&format!("customer id {} is taken", new.id)));
        }
        Ok(())
    }

    fn check_external(&self, id: CustomerId, external_id: &String) -> Done<()> {
        let mut others = self.customers.values();
        let same = |other: &&Customer| {
            other.id != id && other.settings.external_id.as_ref() == Some(external_id)
        };
        match others.find(same) {
            Some(other) => Err(Refusal::ExternalIdUsed {
                external_id: external_id.clone(),
                customer: other.id,
            }),
            None => Ok(()),
        }
    }

    pub(super) fn change_customer(&mut self, change: &CustomerChange) -> Done<Customer> {
        let (id, operation) = (change.customer, change.act.operation);
        let repeats = |known: &AuditRecord| match &change.change {
            CustomerAct::Edit(edit) => {
                known.act == "set_customer"
                    && says(
                        &known.details,
                        [
                            ("label", edit.label.as_ref().map(|label| json!(label))),
                            ("external_id", said(&edit.external_id)),
                            ("price_list", said(&edit.price_list)),
                            ("low_balance", said(&edit.low_balance)),
                            ("rate", said(&edit.rate)),
                            ("concurrency", said(&edit.concurrency)),
                        ],
                    )
            }
            CustomerAct::Describe(_) => known.act == "describe",
            _ => is_same(
                &audit::change_customer(change, &CustomerSettings::default()),
                known,
            ),
        };
        if (self.audited(operation)).is_some_and(|known| known.customer == id && repeats(known)) {
            return self.customer(id).cloned();
        }
        self.check_unused(operation)?;
        if change.change == CustomerAct::Close {
            self.customer(id)?;
            self.settle_grants(id)?;
        }
        let mut customer = self.customer(id)?.clone();
        let mut change = change.clone();
        if let CustomerAct::Edit(edit) = &change.change
            && let Said::Set(external_id) = &edit.external_id
        {
            self.check_external(id, external_id)?;
        }
        if !matches!(change.change, CustomerAct::Close | CustomerAct::Erase) {
            not_closed(&customer)?;
        }
        match &mut change.change {
            CustomerAct::Edit(edit) => {
                let mut settings = customer.settings.clone();
                settings.label = edit.label.clone().unwrap_or(settings.label);
                set(&mut settings.external_id, &edit.external_id);
                set(&mut settings.price_list, &edit.price_list);
                set(&mut settings.low_balance, &edit.low_balance);
                set(&mut settings.rate, &edit.rate);
                set(&mut settings.concurrency, &edit.concurrency);
                settings.check()?;
                customer.settings = settings;
            }
            CustomerAct::Suspend => customer.status = CustomerStatus::Suspended,
            CustomerAct::Resume => customer.status = CustomerStatus::Active,
            CustomerAct::Close => {
                is_empty(&customer)?;
                customer.status = CustomerStatus::Closed;
            }
            CustomerAct::Describe(data) => {
                let known = self.personal.get(&id).cloned().unwrap_or_default();
                data.name = data.name.take().or(known.name);
                data.address = data.address.take().or(known.address);
                let said = std::mem::replace(&mut data.metadata, known.metadata);
                data.metadata.extend(said);
                PersonalData::check_new(Some(data))?;
                customer.personal = Some(data.hash());
                self.personal.insert(id, data.clone());
            }
            CustomerAct::Erase => {
                customer.personal = None;
                self.personal.remove(&id);
                let of_it = self.addressees.values_mut();
                of_it
                    .filter(|(of, _)| *of == id)
                    .for_each(|(_, to)| *to = None);
                let known = customer.auto_top_up.take().map(|auto| *auto);
                let auto = Self::changed_auto(known, &change.change, None)?;
                customer.auto_top_up = auto.map(Box::new);
            }
            CustomerAct::SetCap(cap) => {
                self.set_cap(id.into(), cap, UtcDay::of(clock::now()))?;
                customer.caps = self.customer(id)?.caps.clone();
            }
            CustomerAct::ClearCap { interval, model } => {
                self.clear_cap(id.into(), *interval, model.as_deref())?;
                customer.caps = self.customer(id)?.caps.clone();
            }
            CustomerAct::SetAutoTopUp(..)
            | CustomerAct::ClearAutoTopUp
            | CustomerAct::FailTopUp { .. } => {
                let (known, by) = (customer.auto_top_up.take(), self.asked_by.token());
                let known = known.map(|auto| *auto);
                let auto = Self::changed_auto(known, &change.change, by)?;
                customer.auto_top_up = auto.map(Box::new);
            }
        }
        let before = self.customer(id)?.status;
        let news = match (before, customer.status) {
            (CustomerStatus::Active, CustomerStatus::Suspended) => {
                Some(EventKind::CustomerSuspended)
            }
            (CustomerStatus::Suspended, CustomerStatus::Active) => Some(EventKind::CustomerResumed),
            _ => None,
        };
        let act = audit::change_customer(&change, &customer.settings);
        self.customers.insert(id, customer.clone());
        self.write(id, act);
        if let Some(news) = news {
            self.tell_of_act(id, None, news, &change.act);
        }
        self.ask_for_money(id, change.act.operation)?;
        self.customer(id).cloned()
    }

    pub(super) fn tell_of_customer(&mut self, customer: &Customer, act: &Act) {
        let external_id = &customer.settings.external_id;
        let data = json!({ "external_id": external_id, "actor": act.actor });
        self.tell(
            customer.id,
            act.operation,
            EventKind::CustomerCreated,
            &data,
        );
    }

    pub(super) fn give(&mut self, moved: &NewMove) -> Done<Moved> {
        reference::check(&moved.reference)?;
        let operation = moved.act.operation;
        let known = self
            .entry(operation)
            .or_else(|| self.named(&moved.reference));
        if known.is_some_and(|entry| is_giving(moved, entry)) {
            return self.moved(moved, true);
        }
        self.check_unused(operation)?;
        self.check_unused(moved.arrival())?;
        Self::check_no_wish(&moved.reference)?;
        self.check_reference(&moved.reference)?;
        if moved.from == moved.into {
            return Err(not_applicable(
                "money can only be moved to another customer",
            ));
        }
        not_closed(self.customer(moved.from)?)?;
        not_closed(self.customer(moved.into)?)?;
        self.settle_grants(moved.from)?;
        self.settle_grants(moved.into)?;
        let (from, into) = (self.customer(moved.from)?, self.customer(moved.into)?);
        let (from, into) = (from.account, into.account);
        if !moved.amount.is_positive() {
            return Err(limit("a move must be more than zero"));
        }
        self.check_pool(moved.from, moved.amount)?;
        let left = picos(from.credit).saturating_sub(picos(moved.amount));
        let given = Account {
            credit: amount(left)?,
            ..from
        };
        let got = paid_in(into, moved.amount)?;
        let taken = amount(picos(moved.amount).saturating_neg())?;
        let entry = |customer, operation, amount, reason| JournalEntry {
            operation,
            kind: EntryKind::Move,
            amount,
            at: moved.act.at,
            actor: moved.act.actor.clone(),
            reference: Some(normal(&moved.reference)),
            reason: Some(reason),
            ..blank(customer, None)
        };
        let to = format!("to {}", moved.into);
        self.enter(moved.from, given, entry(moved.from, operation, taken, to))?;
        let (from, arrival) = (format!("from {}", moved.from), moved.arrival());
        let came = entry(moved.into, arrival, moved.amount, from);
        self.enter(moved.into, got, came)?;
        let side = audit::side_of_move(moved, operation, taken, moved.into);
        self.write(moved.from, side);
        let side = audit::side_of_move(moved, arrival, moved.amount, moved.from);
        self.write(moved.into, side);
        self.collect(moved.into, arrival, moved.act.at)?;
        self.tell_of_balance(moved.from, operation)?;
        self.tell_of_balance(moved.into, arrival)?;
        self.moved(moved, false)
    }

    fn moved(&self, moved: &NewMove, repeated: bool) -> Done<Moved> {
        Ok(Moved {
            from: self.customer(moved.from)?.clone(),
            into: self.customer(moved.into)?.clone(),
            repeated,
        })
    }
}

/// Whether an entry is the giving side of the same move.
fn is_giving(moved: &NewMove, entry: &JournalEntry) -> bool {
    let named = entry.reference.as_deref().map(folded);
    entry.kind == EntryKind::Move
        && entry.customer == moved.from
        && entry.reason.as_deref() == Some(&*format!("to {}", moved.into))
        && picos(entry.amount) == picos(moved.amount).saturating_neg()
        && named == Some(folded(&moved.reference))
}

fn is_empty(customer: &Customer) -> Done<()> {
    let Account {
        credit,
        spent,
        held,
    } = customer.account;
    let id = customer.id;
    if held > Amount::ZERO {
        return Err(not_applicable(&format!(
            "customer {id} has {held} USD held by running requests; suspend it, and close it when they have ended"
        )));
    }
    let mut plans = customer.grants.plans.iter();
    if let Some(of) = plans.find(|of| of.state.running.is_some() || !of.state.sold.is_empty()) {
        return Err(not_applicable(&format!(
            "customer {id} has subscription {} to {}, of which something is paid; pay it back first, or wait until it is over",
            of.id, of.state.terms.name
        )));
    }
    if let Some(grant) = customer.grants.iter().min_by_key(|grant| grant.id) {
        return Err(not_applicable(&format!(
            "customer {id} has grant {}, of which {} USD are left; void its grants first",
            grant.id, grant.remaining
        )));
    }
    let left = amount(picos(credit).saturating_sub(picos(spent)))?;
    if left > Amount::ZERO {
        return Err(not_applicable(&format!(
            "customer {id} has {left} USD left; pay it back and adjust its balance, move it to another customer, or write it off"
        )));
    }
    Ok(())
}

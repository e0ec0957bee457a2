//! Keys: create and change. Each leaves one audit record in the same transaction.

use super::acting::{check_acts, refused};
use super::payments::take_over;
use super::references::check_first_reference;
use super::{append, check_unused, claims, customers, delegation, grants, news, write_act};
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::audit;
use crate::rule::cap::PastSpending;
use crate::rule::customer::made;
use crate::rule::made::check_room;
use crate::rule::payment::PaymentAddressee;
use crate::rule::token_day::TokenDeed;
use crate::value::text::clean;
use crate::{
    Amount, Caps, Change, Credit, Customer, CustomerId, CustomerSettings, Enrolment, Key,
    KeyChange, KeyId, KeyStatus, NewKey, OperationId, Refusal, TokenId,
};

fn create(rows: &mut Rows, new: &NewKey) -> Result<Key, Refusal> {
    let operation = new.act.operation;
    if let Some(record) = rows.act(operation).filter(|act| act.act == "create") {
        return rows.whole_key(record.key.unwrap_or(new.id));
    }
    check_new(rows, new)?;
    let customer = match new.within.customer {
        Some(existing) => {
            rows.customer(existing)?;
            // What the key that makes it has room for is judged by what there is now.
            if new.first_credit.is_some() || new.purse.is_some() {
                grants::settle(rows, existing)?;
            }
            rows.customer(existing)?.customer.clone()
        }
        None => made(
            new.belongs_to(),
            CustomerSettings::labelled(&new.settings.label),
            &new.act,
        ),
    };
    check_within(rows, new, &customer)?;
    if new.within.customer.is_none() {
        customers::insert(rows, customer)?;
        news::customer_created(rows, new.belongs_to(), &new.act);
    }
    make(rows, new)
}

/// Makes a customer and its first key, or neither.
fn enrol(rows: &mut Rows, both: &Enrolment) -> Result<Key, Refusal> {
    let (owner, new) = (&both.customer, &both.key);
    let known = rows.act(new.act.operation);
    if let Some(record) = known.filter(|act| act.act == "create") {
        return rows.whole_key(record.key.unwrap_or(new.id));
    }
    if new.within.customer != Some(owner.id)
        || new.within.made_by.is_some()
        || owner.act.operation == new.act.operation
    {
        let text = "a first key belongs to the customer that is made with it";
        return Err(Refusal::NotApplicable(text.to_owned()));
    }
    customers::check_new(rows, owner)?;
    check_new(rows, new)?;
    check_within(rows, new, &owner.customer())?;
    // Both are asked before anything is made, since nothing takes back what has been written.
    delegation::counted(rows, TokenDeed::Customer)?;
    delegation::counted(rows, TokenDeed::Key)?;
    customers::make(rows, owner)?;
    make(rows, new)
}

/// Refuses a key that nobody can have.
fn check_new(rows: &Rows, new: &NewKey) -> Result<(), Refusal> {
    check_unused(rows, new.act.operation)?;
    new.settings.check()?;
    if rows.key(new.id).is_ok() {
        return Err(taken(new.id));
    }
    Ok(())
}

/// Refuses a key that this customer cannot have.
fn check_within(rows: &Rows, new: &NewKey, customer: &Customer) -> Result<(), Refusal> {
    customer.check_open()?;
    check_maker(rows, new)?;
    first_caps(rows, new)?;
    if let Some(credit) = Credit::first(new) {
        credit.check()?;
        check_first_reference(rows, &credit.reference)?;
        customer.account.top_up(credit.amount)?;
        delegation::booked(rows, credit.amount, true)?;
    }
    Ok(())
}

/// Makes a key that was checked, of a customer that is there.
fn make(rows: &mut Rows, new: &NewKey) -> Result<Key, Refusal> {
    let (operation, belongs_to) = (new.act.operation, new.belongs_to());
    let counted = delegation::counted(rows, TokenDeed::Key)?;
    delegation::count(rows, counted);
    let mut key = new.key();
    key.token = rows.asked_by.token();
    key.caps = first_caps(rows, new)?;
    if key.counts_in.is_some() {
        // How many were made in a minute is counted by it, and the clocks of gateways differ.
        key.created_at = rows.now();
    }
    rows.insert_key(key);
    news::key_created(rows, new);
    let credit = Credit::first(new);
    if let Some(credit) = &credit {
        let after = rows.customer(belongs_to)?.customer.account;
        let after = after.top_up(credit.amount)?;
        let booked = delegation::booked(rows, credit.amount, true)?;
        delegation::count(rows, booked);
        let (stored, position) = (rows.customer(belongs_to)?, rows.positions.next_entry());
        let head = stored.head;
        let entry = credit.entry(stored, position, after.balance(), rows.now());
        append(rows, entry.clone(), &head, after);
        take_over(rows, &entry);
        rows.address(&credit.reference, belongs_to, PaymentAddressee::Customer);
        news::topped_up(rows, &entry);
    }
    write_act(rows, audit::create(new), belongs_to)?;
    claims::collect(rows, belongs_to, operation, new.act.at);
    // Who has had no money yet has not used it up.
    if credit.is_some() {
        news::judge_balance(rows, belongs_to, operation);
    }
    rows.whole_key(new.id)
}

fn taken(key: KeyId) -> Refusal {
    Refusal::NotApplicable(format!("key id {key} is taken"))
}

/// Refuses a key that is made by one that is no owner of the same customer.
fn check_maker(rows: &Rows, new: &NewKey) -> Result<(), Refusal> {
    let Some(maker) = new.within.made_by else {
        return Ok(());
    };
    let key = rows.key(maker)?;
    if !key.is_owner || Some(key.belongs_to) != new.within.customer {
        return Err(Refusal::NotApplicable(format!(
            "key {maker} is no owner key of this customer"
        )));
    }
    key.check_active(rows.now())?;
    if new.within.is_owner {
        return Ok(());
    }
    let made = rows.made.get(&key.belongs_to).copied();
    made.unwrap_or_default().check()
}

/// The caps that a key begins with.
fn first_caps(rows: &Rows, new: &NewKey) -> Result<Caps, Refusal> {
    let mut caps = rows.first_caps(new.id.into());
    let Some(cap) = &new.purse else {
        return Ok(caps);
    };
    let Some(maker) = new.within.made_by else {
        let text = "only a key that an owner key makes begins with a limit";
        return Err(Refusal::NotApplicable(text.to_owned()));
    };
    let (by, today) = (rows.asked_by.caps_as(), rows.today());
    caps.set(cap, by, today, PastSpending::NONE)?;
    let room = room_of(rows, maker)?;
    check_room((&Caps::default(), &caps), cap, room, today)?;
    Ok(caps)
}

/// What a key may spend now on a model that has no cap of its own.
fn room_of(rows: &Rows, key: KeyId) -> Result<Amount, Refusal> {
    Ok(rows.whole_key(key)?.room("", rows.now()))
}

fn change(rows: &mut Rows, change: &KeyChange) -> Result<Key, Refusal> {
    let known = rows.act(change.act.operation);
    if known.is_some_and(|record| audit::repeats_change(change, record)) {
        return rows.whole_key(change.key);
    }
    check_unused(rows, change.act.operation)?;
    let mut key = rows.key(change.key)?.clone();
    if matches!(change.change, Change::SetPurse(_)) && key.stored_status != KeyStatus::Revoked {
        grants::settle(rows, key.belongs_to)?;
    }
    let before = key.caps.clone();
    let (hours, holds) = (
        rows.spent_hours(key.id.into()),
        rows.holds_of(key.id.into()),
    );
    let spending = PastSpending {
        hours: &hours,
        holds: &holds,
    };
    key.apply(
        &change.change,
        rows.asked_by.caps_as(),
        rows.today(),
        spending,
    )?;
    if let Change::SetPurse(cap) = &change.change {
        let Some(maker) = key.counts_in else {
            let text = format!("no owner key made key {}", key.id);
            return Err(Refusal::NotApplicable(text));
        };
        let room = room_of(rows, maker)?;
        check_room((&before, &key.caps), cap, room, rows.today())?;
    }
    let reissued = match change.change {
        Change::Reissue { .. } => delegation::counted(rows, TokenDeed::Reissue)?,
        _ => None,
    };
    delegation::count(rows, reissued);
    let (id, belongs_to) = (key.id, key.belongs_to);
    let before = rows.key(id)?.stored_status;
    let act = audit::change(change, &key.settings);
    rows.update_key(key);
    news::key_changed(rows, (belongs_to, id), before, &change.change, &change.act);
    if change.change.ends_sessions() {
        rows.end_access(id);
    }
    write_act(rows, act, belongs_to)?;
    rows.whole_key(id)
}

impl LedgerOperation for NewKey {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            references: [self.first_credit.as_ref().map(|(_, name)| &**name), None],
            keys: [Some(self.id), self.within.made_by],
            made: self
                .within
                .customer
                .filter(|_| self.within.made_by.is_some()),
            customers: [Some(self.belongs_to()), None],
            ..Needs::administrative(self.id.into(), [Some(self.act.operation), None])
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        create(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.settings.label);
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for NewKey {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, rows: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        match by {
            BoundedAsker::Seller(token) => {
                check_bare(self)?;
                check_first_key(rows, token, self)
            }
            BoundedAsker::Owner(owner) => check_member(rows, owner, self),
        }
    }
}

impl LedgerOperation for Enrolment {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        let of_new = self.customer.needs();
        Needs {
            references: [
                self.key.first_credit.as_ref().map(|(_, name)| &**name),
                None,
            ],
            keys: [Some(self.key.id), None],
            ..of_new.and_used(self.key.act.operation)
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        enrol(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        self.customer.clean();
        self.key.clean();
    }
}

impl AskableOperation for Enrolment {
    fn id(&self) -> OperationId {
        self.key.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        match by {
            BoundedAsker::Seller(_) => {
                check_bare(&self.key)?;
                self.customer.settings.check_sold()
            }
            BoundedAsker::Owner(_) => by.refused(),
        }
    }
}

impl LedgerOperation for KeyChange {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        // A limit that is new counts what runs, and a default that takes the place of a cap that goes.
        let counts = match self.change {
            Change::SetCap(_)
            | Change::SetPurse(_)
            | Change::ClearCap { .. }
            | Change::Edit(_)
            | Change::Reissue { .. } => true,
            Change::Block | Change::Unblock | Change::Revoke | Change::Rotate { .. } => false,
        };
        Needs {
            spending: counts.then_some(self.key.into()),
            ..Needs::administrative(self.key.into(), [Some(self.act.operation), None])
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        change(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        if let Change::Edit(edit) = &mut self.change {
            edit.label.iter_mut().for_each(clean);
        }
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for KeyChange {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, rows: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        match by {
            BoundedAsker::Seller(token) => check_reissue(rows, token, self),
            BoundedAsker::Owner(owner) => check_owned(rows, owner, self),
        }
    }
}

fn check_bare(new: &NewKey) -> Result<(), Refusal> {
    if new.first_credit.is_some() {
        return refused("a token that sells books payments, not credit with a key");
    }
    Ok(())
}

/// The first key of a customer that the token made has the customer's own ten symbols: so there cannot be a second one.
fn check_first_key(rows: &Rows, token: TokenId, new: &NewKey) -> Result<(), Refusal> {
    let Some(id) = new.within.customer else {
        return refused("a token that sells creates a key for a customer that it made");
    };
    check_made(rows, token, id)?;
    rows.customer(id)?.customer.check_active()?;
    if new.id != id.first_key() || new.within.made_by.is_some() {
        return refused("a token that sells creates a customer's first key, and no further ones");
    }
    Ok(())
}

fn check_reissue(rows: &Rows, token: TokenId, change: &KeyChange) -> Result<(), Refusal> {
    let is_reissue = matches!(change.change, Change::Reissue { .. });
    if is_reissue && rows.key(change.key)?.token == Some(token) {
        return check_acts(rows, change.key);
    }
    refused(
        "a token that sells reissues unused keys that it made, and changes nothing else of keys",
    )
}

fn check_made(rows: &Rows, token: TokenId, customer: CustomerId) -> Result<(), Refusal> {
    if rows.customer(customer)?.customer.token == Some(token) {
        return Ok(());
    }
    refused("this token did not make this customer")
}

fn check_member(rows: &Rows, owner: KeyId, new: &NewKey) -> Result<(), Refusal> {
    let within = new.within;
    let is_of = within.customer == Some(rows.key(owner)?.belongs_to);
    if is_of && within.made_by == Some(owner) && !within.is_owner && new.first_credit.is_none() {
        return Ok(());
    }
    refused("an owner key makes members of its own customer, without credit")
}

fn check_owned(rows: &Rows, owner: KeyId, change: &KeyChange) -> Result<(), Refusal> {
    let (key, owners) = (rows.key(change.key)?, rows.key(owner)?.belongs_to);
    if key.belongs_to != owners {
        return Err(Refusal::NoSuchKey(change.key));
    }
    let is_made = key.counts_in == Some(owner);
    match &change.change {
        Change::Block if change.key == owner => refused(
            "an owner key does not block itself; rotate it instead, or block it with another owner key",
        ),
        Change::Rotate { .. }
        | Change::Block
        | Change::Unblock
        | Change::SetCap(_)
        | Change::ClearCap { .. } => Ok(()),
        Change::Edit(edit) if is_made && edit.names_only() => Ok(()),
        Change::SetPurse(_) | Change::Revoke | Change::Reissue { .. } if is_made => Ok(()),
        Change::Edit(_) | Change::SetPurse(_) | Change::Revoke | Change::Reissue { .. } => refused(
            "an owner key rotates, blocks, unblocks and bounds keys, names, reissues and revokes those that it made, and changes nothing \
             else of them",
        ),
    }
}

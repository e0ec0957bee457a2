//! Keys: create and change. Each leaves one audit record in the same transaction.

use super::payments::{check_first_reference, take_over};
use super::{append, asked, check_unused, claims, customers, news, write_act};
use crate::batch::rows::Rows;
use crate::book::audit;
use crate::rule::cap::PastSpending;
use crate::rule::customer::{made, settings_for};
use crate::rule::payment::PaymentAddressee;
use crate::rule::token_day::TokenDeed;
use crate::{Change, Credit, Customer, Key, KeyChange, KeyId, NewCustomer, NewKey, Refusal};

pub(super) fn create(rows: &mut Rows, new: &NewKey) -> Result<Key, Refusal> {
    let operation = new.act.operation;
    if let Some(record) = rows.act(operation).filter(|act| act.act == "create") {
        return rows.whole_key(record.key.unwrap_or(new.id));
    }
    check_new(rows, new)?;
    let customer = match new.within.customer {
        Some(existing) => rows.customer(existing)?.customer.clone(),
        None => made(
            new.belongs_to(),
            settings_for(&new.settings.label),
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
pub(super) fn enrol(rows: &mut Rows, owner: &NewCustomer, new: &NewKey) -> Result<Key, Refusal> {
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
    asked::counted(rows, TokenDeed::Customer)?;
    asked::counted(rows, TokenDeed::Key)?;
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
    if let Some(credit) = Credit::first(new) {
        credit.check()?;
        check_first_reference(rows, &credit.reference)?;
        customer.account.top_up(credit.amount)?;
        asked::booked(rows, credit.amount, true)?;
    }
    Ok(())
}

/// Makes a key that was checked, of a customer that is there.
fn make(rows: &mut Rows, new: &NewKey) -> Result<Key, Refusal> {
    let (operation, belongs_to) = (new.act.operation, new.belongs_to());
    let counted = asked::counted(rows, TokenDeed::Key)?;
    asked::count(rows, counted);
    let mut key = new.key();
    key.token = rows.asked_by.token();
    rows.insert_key(key);
    news::key_created(rows, new);
    let credit = Credit::first(new);
    if let Some(credit) = &credit {
        let after = rows.customer(belongs_to)?.customer.account;
        let after = after.top_up(credit.amount)?;
        let booked = asked::booked(rows, credit.amount, true)?;
        asked::count(rows, booked);
        let head = rows.customer(belongs_to)?.head;
        let position = rows.positions.next_entry();
        let balance = after.balance();
        let entry = credit.entry(belongs_to, position, &head, balance, rows.now());
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
    if key.is_owner && Some(key.belongs_to) == new.within.customer {
        return key.check_active(rows.now());
    }
    Err(Refusal::NotApplicable(format!(
        "key {maker} is no owner key of this customer"
    )))
}

pub(super) fn change(rows: &mut Rows, change: &KeyChange) -> Result<Key, Refusal> {
    let act = audit::change(change);
    let known = rows.act(act.operation);
    if known.is_some_and(|record| act.repeats(record)) {
        return rows.whole_key(change.key);
    }
    check_unused(rows, act.operation)?;
    let mut key = rows.key(change.key)?.clone();
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
    let reissued = match change.change {
        Change::Reissue { .. } => asked::counted(rows, TokenDeed::Reissue)?,
        _ => None,
    };
    asked::count(rows, reissued);
    let (id, belongs_to) = (key.id, key.belongs_to);
    let before = rows.key(id)?.stored_status;
    rows.update_key(key);
    news::key_changed(rows, (belongs_to, id), before, &change.change, &change.act);
    if change.change.ends_sessions() {
        rows.end_access(id);
    }
    write_act(rows, act, belongs_to)?;
    rows.whole_key(id)
}

//! Who acts with a customer's key, and what an owner key may do. Whatever a customer does is judged here, in the transaction of its
//! effect: a page that was shown earlier gives no right.

use crate::batch::operation::Operation;
use crate::batch::rows::Rows;
use crate::{
    Change, CustomerAct, CustomerChange, CustomerSettings, KeyChange, KeyId, NewKey, Refusal,
};

/// Refuses a key with which nobody may act now: an inactive one, and every one of a customer that is not served.
pub(super) fn check_acts(rows: &Rows, key: KeyId) -> Result<(), Refusal> {
    let (key, stored) = rows.key_and_customer(key)?;
    key.check_acts_of(&stored.customer, rows.now())
}

/// Refuses what an owner key may not do: all but making members of its own customer, and managing its keys and caps.
pub(super) fn check_owner(rows: &Rows, owner: KeyId, operation: &Operation) -> Result<(), Refusal> {
    check_acts(rows, owner)?;
    if !rows.key(owner)?.is_owner {
        return refused("only an owner key manages keys and caps");
    }
    match operation {
        Operation::Create(new) => check_member(rows, owner, new),
        Operation::Change(change) => check_change(rows, owner, change),
        Operation::ChangeCustomer(change) => check_own(rows, owner, change),
        _ => refused("an owner key may not do this"),
    }
}

fn check_member(rows: &Rows, owner: KeyId, new: &NewKey) -> Result<(), Refusal> {
    let within = new.within;
    let is_of = within.customer == Some(rows.key(owner)?.belongs_to);
    if is_of && within.made_by == Some(owner) && !within.is_owner && new.first_credit.is_none() {
        return Ok(());
    }
    refused("an owner key makes members of its own customer, without credit")
}

fn check_change(rows: &Rows, owner: KeyId, change: &KeyChange) -> Result<(), Refusal> {
    let is_own = rows.key(change.key)?.belongs_to == rows.key(owner)?.belongs_to;
    if !is_own {
        return Err(Refusal::NoSuchKey(change.key));
    }
    match change.change {
        Change::Block if change.key == owner => refused(
            "an owner key does not block itself; rotate it instead, or block it with another owner key",
        ),
        Change::Rotate { .. }
        | Change::Block
        | Change::Unblock
        | Change::SetCap(_)
        | Change::ClearCap { .. } => Ok(()),
        Change::Set(_) | Change::Revoke | Change::Reissue { .. } => refused(
            "an owner key rotates, blocks and unblocks keys and bounds them, and changes nothing else of them",
        ),
    }
}

fn check_own(rows: &Rows, owner: KeyId, change: &CustomerChange) -> Result<(), Refusal> {
    let own = rows.key(owner)?.belongs_to;
    if change.customer != own {
        return Err(Refusal::NoSuchCustomer(change.customer));
    }
    let known = &rows.customer(own)?.customer.settings;
    match &change.change {
        CustomerAct::SetCap(_) | CustomerAct::ClearCap { .. } => Ok(()),
        CustomerAct::Set(settings)
            if *settings
                == (CustomerSettings {
                    low_balance: settings.low_balance,
                    ..known.clone()
                }) =>
        {
            Ok(())
        }
        CustomerAct::Set(_)
        | CustomerAct::Suspend
        | CustomerAct::Resume
        | CustomerAct::Close
        | CustomerAct::Describe(_)
        | CustomerAct::Erase
        | CustomerAct::SetAutoTopUp(_)
        | CustomerAct::ClearAutoTopUp
        | CustomerAct::FailTopUp { .. } => {
            refused("an owner key sets caps and the low balance of its customer, and nothing else")
        }
    }
}

pub(super) fn refused(why: &str) -> Result<(), Refusal> {
    Err(Refusal::NotAllowed(why.to_owned()))
}

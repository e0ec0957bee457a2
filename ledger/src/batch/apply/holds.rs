//! Holds: open, extend, finish, recover. A hold's row ends with exactly one charge entry, in the same transaction.

use super::{append, known};
use crate::batch::tx::{Fault, Step, Tx};
use crate::hold::Held;
use crate::hold::{charge_entry, recovered};
use crate::{Extension, Finish, Finished, NewHold, OperationId, Recovered, Refusal, Timestamp};

/// Holds that one recovery operation ends. With more, other operations would wait behind one long transaction.
const RECOVERED_AT_ONCE: usize = 500;

pub(super) fn open<T: Tx>(tx: &mut T, new: &NewHold) -> Step<T, ()> {
    match open_new(tx, new) {
        // Repetitions are rare, so the new hold is tried first, without an extra read.
        Err(Fault::Refused(refusal)) => open_again(tx, new, refusal),
        outcome => outcome,
    }
}

fn open_new<T: Tx>(tx: &mut T, new: &NewHold) -> Step<T, ()> {
    if tx.has_entry(new.request)? {
        return Err(Refusal::OperationUsed(new.request).into());
    }
    let payer = known(tx.payer(new.key)?, new.key)?;
    payer.check_active(new.at)?;
    tx.check_limits(new.key)?;
    let account = payer.account.hold(new.amount)?;
    if !tx.insert_hold(new)? {
        return Err(Refusal::OperationUsed(new.request).into());
    }
    tx.set_held(new.key, payer.account, account)
}

/// A repeated open gets the same answer as the first one if the hold exists and is the same. The key's present state does not
/// matter: it may have been blocked since, but the first open was granted.
fn open_again<T: Tx>(tx: &mut T, new: &NewHold, refusal: Refusal) -> Step<T, ()> {
    let Some(hold) = tx.hold(new.request)? else {
        return Err(refusal.into());
    };
    let open = &hold.open;
    let same = (open.key, hold.opened, &open.slug, &open.family, open.at)
        == (new.key, new.amount, &new.slug, &new.family, new.at);
    if same {
        Ok(())
    } else {
        Err(Refusal::OperationUsed(new.request).into())
    }
}

pub(super) fn extend<T: Tx>(tx: &mut T, extension: &Extension) -> Step<T, ()> {
    let hold = tx
        .held(extension.request)?
        .ok_or(Refusal::NoSuchHold(extension.request))?;
    let payer = known(tx.payer(hold.key)?, hold.key)?;
    payer.check_active(extension.at)?;
    let used = extension.checkpoint.total()?;
    let (account, amount) = payer.account.extend(hold.amount, extension.total)?;
    tx.update_hold(extension.request, amount, used, &extension.checkpoint)?;
    tx.set_held(hold.key, payer.account, account)
}

pub(super) fn finish<T: Tx>(tx: &mut T, finish: &Finish) -> Step<T, Finished> {
    match tx.held(finish.request)? {
        Some(hold) => end(tx, hold, finish.clone()),
        None => ended(tx, finish.request),
    }
}

/// A finish that must succeed, because no caller is left to correct it: a bill over the limits is replaced by that of the last
/// checkpoint.
pub(super) fn resolve<T: Tx>(tx: &mut T, wanted: &Finish) -> Step<T, Finished> {
    match finish(tx, wanted) {
        Err(Fault::Refused(Refusal::Limit(_))) => {
            // A checkpoint passed the same limits when it was stored, so this second attempt cannot be refused for them.
            let checkpoint = tx.hold(wanted.request)?.and_then(|hold| hold.checkpoint);
            finish(tx, &wanted.clone().disputed(checkpoint))
        }
        outcome => outcome,
    }
}

fn end<T: Tx>(tx: &mut T, hold: Held, finish: Finish) -> Step<T, Finished> {
    let (account, head) = known(tx.account(hold.key)?, hold.key)?;
    let ending = account.finish(hold.amount, finish.bill.total()?)?;
    let (position, request) = (tx.next_position(), finish.request);
    let entry = charge_entry(hold, finish, &ending, position, &head, tx.now())
        .ok_or(Refusal::NoSuchHold(request))?;
    append(tx, &entry, &head, account, ending.account)?;
    tx.delete_hold(request)?;
    Ok(Finished {
        charge: ending.charge,
        loss: ending.loss,
        available: ending.account.available(),
    })
}

/// The outcome of a hold that has already ended, for a repeated finish: read from its charge entry.
fn ended<T: Tx>(tx: &mut T, request: OperationId) -> Step<T, Finished> {
    let entry = tx.entry(request)?.ok_or(Refusal::NoSuchHold(request))?;
    let bill = entry.bill.ok_or(Refusal::NoSuchHold(request))?;
    let available = known(tx.account(entry.key)?, entry.key)?.0.available();
    Ok(Finished {
        charge: entry.amount.checked_neg().unwrap_or_default(),
        loss: bill.loss,
        available,
    })
}

pub(super) fn begin_epoch<T: Tx>(tx: &mut T, now: Timestamp) -> Step<T, i64> {
    let epoch = tx.epoch().saturating_add(1);
    tx.begin_epoch(epoch, now)?;
    Ok(epoch)
}

/// Ends up to 500 holds of epochs before `epoch`; `None` if none are left. Each start of a gateway begins a new epoch, so holds of
/// earlier epochs belong to requests of a dead process: they are charged their last checkpoint, or released if they have none.
pub(super) fn recover<T: Tx>(tx: &mut T, epoch: i64, now: Timestamp) -> Step<T, Option<Recovered>> {
    let dead = tx.holds_before(epoch, RECOVERED_AT_ONCE)?;
    let mut done = Recovered {
        epoch,
        ..Recovered::default()
    };
    for hold in &dead {
        let held = Held {
            key: hold.open.key,
            amount: hold.open.amount,
        };
        let finished = end(
            tx,
            held,
            recovered(&hold.open, hold.checkpoint.clone(), now),
        )?;
        let count = if finished.charge.is_positive() {
            &mut done.settled
        } else {
            &mut done.released
        };
        *count = count.saturating_add(1);
    }
    Ok((!dead.is_empty()).then_some(done))
}

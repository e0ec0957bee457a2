//! Operations on holds, each inside one batch: open, extend, finish, recover.
//!
//! The rules are in `account`; here is only what they read and what they write. A hold's row ends with exactly one charge
//! entry, in the same transaction.

use rusqlite::{OptionalExtension, params};

use super::batch::{Batch, Fault};
use super::rows::{self, Head, StoredHold};
use crate::account::Account;
use crate::hold::{charge_entry, recovered};
use crate::{Amount, Extension, Finish, Finished, KeyId, NewHold, OperationId, Recovered, Refusal, Status, Timestamp};

/// What a hold reads of a key.
struct Payer {
    account: Account,
    status: Status,
    expires_at: Option<Timestamp>,
}

impl Payer {
    fn check_active(&self, now: Timestamp) -> Result<(), Refusal> {
        match (self.status, self.expires_at) {
            (Status::Active, Some(end)) if now >= end => Err(Refusal::NotActive(Status::Expired)),
            (Status::Active, _) => Ok(()),
            (stopped, _) => Err(Refusal::NotActive(stopped)),
        }
    }
}

fn payer(batch: &mut Batch<'_>, key: KeyId) -> Result<Payer, Fault> {
    let statement = batch.statement(
        "SELECT a.credit, a.spent, a.held, k.status, k.expires_at FROM accounts a JOIN keys k ON k.id = a.id WHERE a.id = ?1",
    )?;
    let read =
        statement.query_row([key], |row| Ok(Payer { account: account_of(row)?, status: row.get(3)?, expires_at: row.get(4)? }));
    read.optional()?.ok_or(Fault::Refused(Refusal::NoSuchKey(key)))
}

/// A key's account, and the end of its chain. A settlement does not ask whether the key is still active.
fn account(batch: &mut Batch<'_>, key: KeyId) -> Result<(Account, Head), Fault> {
    let statement = batch.statement("SELECT credit, spent, held, seq, last, hash FROM accounts WHERE id = ?1")?;
    let read =
        statement.query_row([key], |row| Ok((account_of(row)?, Head { seq: row.get(3)?, last: row.get(4)?, hash: row.get(5)? })));
    read.optional()?.ok_or(Fault::Refused(Refusal::NoSuchKey(key)))
}

fn account_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Account> {
    Ok(Account { credit: row.get(0)?, spent: row.get(1)?, held: row.get(2)? })
}

fn find(batch: &mut Batch<'_>, request: OperationId) -> Result<Option<StoredHold>, Fault> {
    let statement = batch.statement("SELECT * FROM holds WHERE request = ?1")?;
    Ok(statement.query_row([request], rows::stored_hold).optional()?)
}

/// What extending or ending a hold reads of it.
struct Held {
    key: KeyId,
    amount: Amount,
}

fn held(batch: &mut Batch<'_>, request: OperationId) -> Result<Option<Held>, Fault> {
    let statement = batch.statement("SELECT key, amount FROM holds WHERE request = ?1")?;
    Ok(statement.query_row([request], |row| Ok(Held { key: row.get(0)?, amount: row.get(1)? })).optional()?)
}

pub(super) fn open(batch: &mut Batch<'_>, new: &NewHold) -> Result<(), Fault> {
    match open_new(batch, new) {
        Err(Fault::Refused(refusal)) => open_again(batch, new, refusal),
        outcome => outcome,
    }
}

fn open_new(batch: &mut Batch<'_>, new: &NewHold) -> Result<(), Fault> {
    let used = || Fault::Refused(Refusal::OperationUsed(new.request));
    let statement = batch.statement("SELECT 1 FROM entries WHERE operation = ?1")?;
    if statement.exists([new.request])? {
        return Err(used());
    }
    let payer = payer(batch, new.key)?;
    payer.check_active(new.at)?;
    let account = payer.account.hold(new.amount)?;
    let epoch = batch.epoch();
    let statement =
        batch.statement("INSERT INTO holds VALUES (?1, ?2, ?3, ?3, 0, ?4, ?5, ?6, ?7, NULL) ON CONFLICT DO NOTHING")?;
    if statement.execute(params![new.request, new.key, new.amount, new.slug, new.family, new.at, epoch])? == 0 {
        return Err(used());
    }
    batch.set_held(new.key, payer.account, account)?;
    batch.count_hold(true);
    Ok(())
}

/// A hold that is asked for again is there already, whatever became of its key since.
fn open_again(batch: &mut Batch<'_>, new: &NewHold, refusal: Refusal) -> Result<(), Fault> {
    let Some(hold) = find(batch, new.request)? else { return Err(refusal.into()) };
    let open = &hold.open;
    let same =
        (open.key, hold.opened, &open.slug, &open.family, open.at) == (new.key, new.amount, &new.slug, &new.family, new.at);
    if same { Ok(()) } else { Err(Refusal::OperationUsed(new.request).into()) }
}

pub(super) fn extend(batch: &mut Batch<'_>, extension: &Extension) -> Result<(), Fault> {
    let hold = held(batch, extension.request)?.ok_or(Refusal::NoSuchHold(extension.request))?;
    let payer = payer(batch, hold.key)?;
    payer.check_active(extension.at)?;
    let used = extension.checkpoint.cost()?;
    let (account, amount) = payer.account.extend(hold.amount, extension.total)?;
    let checkpoint =
        serde_json::to_string(&extension.checkpoint).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let statement = batch.statement("UPDATE holds SET amount = ?2, used = ?3, checkpoint = ?4 WHERE request = ?1")?;
    statement.execute(params![extension.request, amount, used, checkpoint])?;
    batch.set_held(hold.key, payer.account, account)?;
    Ok(())
}

pub(super) fn finish(batch: &mut Batch<'_>, finish: &Finish) -> Result<Finished, Fault> {
    match held(batch, finish.request)? {
        Some(hold) => end(batch, &hold, finish.clone()),
        None => ended(batch, finish.request),
    }
}

/// A finish that must have an effect: an absurd bill is replaced by the last checkpoint's.
pub(super) fn resolve(batch: &mut Batch<'_>, wanted: &Finish) -> Result<Finished, Fault> {
    match finish(batch, wanted) {
        Err(Fault::Refused(Refusal::Limit(_))) => {
            let checkpoint = find(batch, wanted.request)?.and_then(|hold| hold.checkpoint);
            finish(batch, &wanted.clone().disputed(checkpoint))
        }
        outcome => outcome,
    }
}

fn end(batch: &mut Batch<'_>, hold: &Held, finish: Finish) -> Result<Finished, Fault> {
    let (account, head) = account(batch, hold.key)?;
    let ending = account.finish(hold.amount, finish.bill.cost()?)?;
    let (position, seq) = (batch.next_entry(), head.seq.saturating_add(1));
    let request = finish.request;
    let entry = charge_entry(hold.key, hold.amount, finish, &ending, position, seq).ok_or(Refusal::NoSuchHold(request))?;
    batch.append(&entry, &head, account, ending.account)?;
    batch.statement("DELETE FROM holds WHERE request = ?1")?.execute([request])?;
    batch.count_hold(false);
    Ok(Finished { charge: ending.charge, loss: ending.loss, available: ending.account.available() })
}

/// The outcome of a hold that has ended before.
fn ended(batch: &mut Batch<'_>, request: OperationId) -> Result<Finished, Fault> {
    let entry = batch.entry(request)?.ok_or(Refusal::NoSuchHold(request))?;
    let bill = entry.bill.ok_or(Refusal::NoSuchHold(request))?;
    let available = account(batch, entry.key)?.0.available();
    Ok(Finished { charge: entry.amount.checked_neg().unwrap_or_default(), loss: bill.loss, available })
}

/// Begins a new epoch.
pub(super) fn begin_epoch(batch: &mut Batch<'_>, now: Timestamp) -> Result<i64, Fault> {
    let epoch = batch.epoch().saturating_add(1);
    batch.conn.execute("INSERT INTO epochs VALUES (?1, ?2)", params![epoch, now])?;
    batch.set_epoch(epoch);
    Ok(epoch)
}

/// Ends some holds of epochs before `epoch`; `None` when there are none left.
pub(super) fn recover_some(batch: &mut Batch<'_>, epoch: i64, now: Timestamp) -> Result<Option<Recovered>, Fault> {
    const AT_ONCE: i64 = 500;
    let statement = batch.statement("SELECT * FROM holds WHERE epoch < ?1 LIMIT ?2")?;
    let dead = statement.query_map(params![epoch, AT_ONCE], rows::stored_hold)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut done = Recovered { epoch, ..Recovered::default() };
    for hold in &dead {
        let StoredHold { open, checkpoint, .. } = hold;
        let held = Held { key: open.key, amount: open.amount };
        let finished = end(batch, &held, recovered(open, checkpoint.clone(), now))?;
        let count = if finished.charge.is_positive() { &mut done.settled } else { &mut done.released };
        *count = count.saturating_add(1);
    }
    Ok((!dead.is_empty()).then_some(done))
}

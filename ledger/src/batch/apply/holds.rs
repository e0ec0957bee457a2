//! Holds: open, move, finish, recover. A hold's row ends with exactly one charge entry, in the same transaction.

use std::sync::Arc;

use super::{append, claims, grants, news, plan_periods};
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::head::StoredCustomer;
use crate::rule::account::HoldEffect;
use crate::rule::hold::{StoredHold, recovered};
use crate::value::text::clean;
use crate::{
    Amount, BeginEpoch, Bill, EndedHold, EntryKind, Finish, Held, HoldMove, HoldWay, JournalEntry,
    MoneyPart, NewHold, NewSize, OpenHold, Recover, Recovered, Refusal, ResolveHold, Timestamp,
};

fn open(rows: &mut Rows, new: &NewHold) -> Result<Held, Refusal> {
    // A repeated open gets the same answer as the first one. The key's present state does not matter: it may have been blocked
    // since, but the first open was granted.
    if let Some(hold) = rows.hold(new.request) {
        if !hold.is_of(new) {
            return Err(Refusal::OperationUsed(new.request));
        }
        let (day, opened) = (hold.day, hold.opened);
        let purse = rows.purse(new.key)?;
        return Ok(Held {
            granted: HoldWay::of(&new.ways, opened),
            ..purse.held((&new.slug, day), (opened, &hold.parts))
        });
    }
    if rows.entry(new.request).is_some() {
        return Err(Refusal::OperationUsed(new.request));
    }
    let (key, stored) = rows.key_and_customer(new.key)?;
    if key.belongs_to != new.customer {
        return Err(Refusal::NoSuchKey(new.key));
    }
    key.check_acts_of(&stored.customer, new.at)?;
    let is_due = grants::is_due(rows, &stored.customer);
    rows.check_limits(new.key)?;
    if is_due {
        grants::settle(rows, new.customer)?;
    }
    let mut purse = rows.purse(new.key)?;
    let mut parts = purse.begin(&new.slug, rows.now());
    let none = (Amount::ZERO, &mut parts);
    let held = purse.hold((&new.slug, rows.today()), none, &new.ways)?;
    rows.insert_hold(new, held.amount, parts);
    rows.set_purse(new.key, purse);
    Ok(held)
}

fn move_to(rows: &mut Rows, moved: &HoldMove) -> Result<Held, Refusal> {
    let StoredHold {
        open,
        day,
        moves,
        parts,
        ..
    } = rows
        .hold(moved.request)
        .ok_or(Refusal::NoSuchHold(moved.request))?;
    let (key, stored) = rows.key_and_customer(open.key)?;
    let customer = stored.customer.id;
    if grants::is_due(rows, &stored.customer) {
        grants::settle(rows, customer)?;
        return move_to(rows, moved);
    }
    let mut parts = parts.clone();
    let (active, now) = (key.check_acts_of(&stored.customer, moved.at), open.amount);
    let (key, slug) = (key.id, (&*open.slug, *day));
    let used = moved.checkpoint.as_ref().map(Bill::total).transpose()?;
    let mut purse = rows.purse(key)?;
    let held = match &moved.to {
        // It was overtaken, or is repeated.
        NewSize::Ways(ways) if moved.number <= *moves => {
            return Ok(Held {
                granted: HoldWay::of(ways, now),
                ..purse.held(slug, (now, &parts))
            });
        }
        _ if moved.number <= *moves => return Ok(purse.held(slug, (now, &parts))),
        NewSize::Same => purse.held(slug, (now, &parts)),
        NewSize::Ways(ways) => {
            active?;
            purse.hold(slug, (now, &mut parts), ways)?
        }
        NewSize::Amount(to) => {
            // Whoever ended the key wants it to spend no more, and needs what it gives back.
            if *to > now {
                active?;
            }
            purse.move_to(slug, (now, &mut parts), *to)?
        }
    };
    rows.move_hold(moved, (held.amount, parts), used);
    let losses = std::mem::take(&mut purse.losses);
    rows.set_purse(key, purse);
    if !losses.is_empty() {
        let cause = (moved.request).derived(format!("farebox move {}", moved.number).as_bytes());
        grants::lose(rows, customer, cause, losses)?;
        news::judge_balance(rows, customer, cause);
    }
    Ok(held)
}

fn finish(rows: &mut Rows, finish: &Finish) -> Result<EndedHold, Refusal> {
    match rows.hold(finish.request) {
        Some(_) => end(rows, finish.clone()),
        None => ended(rows, finish),
    }
}

/// A finish that must succeed, because no caller is left to correct it: a bill over the limits is replaced by that of the last
/// checkpoint.
fn resolve(rows: &mut Rows, wanted: &Finish) -> Result<EndedHold, Refusal> {
    match finish(rows, wanted) {
        Err(Refusal::Limit(_)) => {
            // A checkpoint passed the same limits when it was stored, so this second attempt cannot be refused for them.
            let checkpoint = rows
                .hold(wanted.request)
                .and_then(|hold| hold.checkpoint.as_deref().cloned());
            finish(rows, &wanted.clone().disputed(checkpoint))
        }
        outcome => outcome,
    }
}

fn end(rows: &mut Rows, finish: Finish) -> Result<EndedHold, Refusal> {
    let request = finish.request;
    let StoredHold {
        open: hold,
        day,
        parts,
        ..
    } = rows.hold(request).ok_or(Refusal::NoSuchHold(request))?;
    let (key, stored) = rows.key_and_customer(hold.key)?;
    let (key, customer, head) = (key.id, stored.customer.id, stored.head);
    if grants::is_due(rows, &stored.customer) {
        grants::settle(rows, customer)?;
        return end(rows, finish);
    }
    let mut purse = rows.purse(key)?;
    let room = purse.room(&hold.slug, *day, parts);
    let ending = purse
        .account
        .finish(hold.amount, finish.bill.total()?, room)?;
    let of_hold = (hold.amount, parts.as_slice());
    let (paid, reached) = purse.pay((&hold.slug, *day), of_hold, &ending);
    // Read while the purse is at hand: only a claim that is collected below takes some of it again.
    let remaining = purse.remaining(&hold.slug, rows.today(), parts);
    let owing = stored.customer.claim.is_positive();
    let owing = owing.then(|| (hold.slug.clone(), parts.clone()));
    // Mostly nothing is: known from the rows that are read anyway.
    let low = stored.customer.warned_below();
    let balance = ending.account.balance();
    let (told, _) = stored.watch.judge(low, balance);
    let auto = stored.customer.auto_top_up.as_ref();
    let is_news = told != stored.watch.told
        || auto.is_some_and(|auto| auto.wanted(balance, rows.now()).is_some());
    let position = rows.positions.next_entry();
    let mut entry = charge_entry(hold, finish, &ending, (stored, position), rows.now())
        .ok_or(Refusal::NoSuchHold(request))?;
    if purse.has_caps() {
        entry.set_day(*day);
    }
    entry.parts = paid.into_iter().map(MoneyPart::taken).collect();
    let at = entry.at;
    append(rows, entry, &head, ending.account);
    let losses = std::mem::take(&mut purse.losses);
    let low = std::mem::take(&mut purse.news);
    let is_news = is_news || !losses.is_empty();
    // The account is written with the entry; most keys have no caps and no grants, and then nothing else of the purse has changed.
    if purse.counts_more() {
        rows.set_purse(key, purse);
    }
    rows.delete_hold(request);
    grants::lose(rows, customer, request, losses)?;
    news::caps(rows, customer, request, reached);
    plan_periods::low(rows, customer, request, low);
    // What the end gave back pays a claim first; only then is the balance told.
    if owing.is_some() {
        claims::collect(rows, customer, request, at);
    }
    if owing.is_some() || is_news {
        news::judge_balance(rows, customer, request);
    }
    let remaining = match owing {
        Some((slug, parts)) => rows.purse(key)?.remaining(&slug, rows.today(), &parts),
        None => remaining,
    };
    Ok(EndedHold {
        charge: ending.charge,
        loss: ending.loss,
        remaining,
    })
}

/// The entry that ends a hold.
fn charge_entry(
    hold: &OpenHold,
    finish: Finish,
    ending: &HoldEffect,
    (stored, position): (&StoredCustomer, i64),
    now: Timestamp,
) -> Option<JournalEntry> {
    Some(JournalEntry {
        position,
        seq: stored.head.seq.saturating_add(1),
        customer: stored.customer.id,
        key: Some(hold.key),
        operation: finish.request,
        kind: EntryKind::Charge,
        amount: ending.charge.checked_neg()?,
        balance_after: ending.account.balance(),
        at: stored.dated(finish.at, now),
        actor: "gateway".to_owned(),
        reference: None,
        reason: None,
        refunds: None,
        parts: Vec::new(),
        bill: Some(Bill {
            hold: hold.amount,
            loss: ending.loss,
            ..finish.bill
        }),
    })
}

/// The outcome of a hold that has already ended, for a repeated finish: read from its charge entry.
fn ended(rows: &Rows, finish: &Finish) -> Result<EndedHold, Refusal> {
    let never = || Refusal::NoSuchHold(finish.request);
    let entry = rows.entry(finish.request).ok_or_else(never)?;
    let bill = entry.bill.as_ref().ok_or_else(never)?;
    Ok(EndedHold {
        charge: entry.amount.checked_neg().unwrap_or_default(),
        loss: bill.loss,
        remaining: rows.purse(entry.key.ok_or_else(never)?)?.remaining(
            &bill.slug,
            rows.today(),
            &entry.parts,
        ),
    })
}

fn begin_epoch(rows: &mut Rows, now: Timestamp) -> i64 {
    rows.epoch = rows.epoch.saturating_add(1);
    rows.changes.epoch = Some((rows.epoch, now));
    rows.epoch
}

/// Ends some holds of dead processes, as many as were fetched; `None` if none are left. They are charged their last checkpoint, or
/// released if they have none.
fn recover(
    rows: &mut Rows,
    Recover { epoch, now }: &Recover,
) -> Result<Option<Recovered>, Refusal> {
    let mut done = None;
    for request in std::mem::take(&mut rows.dead) {
        let Some(hold) = rows.hold(request) else {
            continue;
        };
        let finished = end(
            rows,
            recovered(&hold.open, hold.checkpoint.as_deref().cloned(), *now),
        )?;
        let done = done.get_or_insert(Recovered {
            epoch: *epoch,
            ..Recovered::default()
        });
        let count = if finished.charge.is_positive() {
            &mut done.settled
        } else {
            &mut done.released
        };
        *count = count.saturating_add(1);
    }
    Ok(done)
}

impl LedgerOperation for NewHold {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        let one = [Some(self.request), None];
        Needs {
            keys: [Some(self.key), None],
            customers: [Some(self.customer), None],
            holds: one,
            entries: one,
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        open(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        [&mut self.slug, &mut self.family]
            .into_iter()
            .for_each(clean);
    }
}

impl LedgerOperation for HoldMove {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            holds: [Some(self.request), None],
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        move_to(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        self.checkpoint.iter_mut().for_each(clean_bill);
    }
}

impl LedgerOperation for Arc<Finish> {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        let one = [Some(self.request), None];
        Needs {
            holds: one,
            entries: one,
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        finish(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        // Shared with its hold, so it is copied only if something has to be replaced.
        if !is_clean(&self.bill) {
            clean_bill(&mut Arc::make_mut(self).bill);
        }
    }
}

impl LedgerOperation for ResolveHold {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        self.0.needs()
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        resolve(rows, &self.0).map(Outcome::from)
    }

    fn clean(&mut self) {
        self.0.clean();
    }
}

impl LedgerOperation for BeginEpoch {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs::default()
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        Ok(begin_epoch(rows, self.now).into())
    }

    fn clean(&mut self) {}
}

impl LedgerOperation for Recover {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            dead: Some(self.epoch),
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        recover(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {}
}

fn is_clean(bill: &Bill) -> bool {
    let texts = [
        bill.slug.as_str(),
        &bill.family,
        &bill.target,
        &bill.served.account,
        bill.end_reason.as_str(),
    ];
    !texts
        .into_iter()
        .chain(bill.answer_id.as_deref())
        .any(|text| text.contains('\0'))
}

fn clean_bill(bill: &mut Bill) {
    [
        &mut bill.slug,
        &mut bill.family,
        &mut bill.target,
        &mut bill.served.account,
    ]
    .into_iter()
    .for_each(clean);
    bill.answer_id.iter_mut().for_each(clean);
    if bill.end_reason.as_str().contains('\0') {
        bill.end_reason = bill
            .end_reason
            .as_str()
            .replace('\0', "\u{fffd}")
            .as_str()
            .into();
    }
    // Facts and lines are stored as JSON, which writes the character as an escape of six.
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperationId;

    #[test]
    fn the_one_character_that_cannot_be_stored_is_replaced() {
        let mut bill = Bill {
            target: "a\0b".to_owned(),
            answer_id: Some("\0".to_owned()),
            ..Bill::default()
        };
        bill.end_reason = "x\0".into();
        let finish = Finish {
            request: OperationId::from_bytes([1; 16]),
            bill,
            at: Timestamp::from_millis(0),
        };
        let mut cleaned = Arc::new(finish);
        cleaned.clean();
        let texts = (
            cleaned.bill.target.as_str(),
            cleaned.bill.answer_id.as_deref(),
            cleaned.bill.end_reason.as_str(),
        );
        assert_eq!(texts, ("a\u{fffd}b", Some("\u{fffd}"), "x\u{fffd}"));
    }
}

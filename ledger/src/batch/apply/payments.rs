//! Money that no request moves: credits, and moves between customers. Each leaves one audit record for each customer, in the same
//! transaction.

use super::{
    append, append_named, check_unused, claims, delegation, grants, news, references, write_act,
};
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::audit::{self, Written};
use crate::rule::auto_top_up::TopUpWish;
use crate::table::needs::RowName;
use crate::value::reference;
use crate::value::text::clean;
use crate::{
    Amount, Credit, CreditKind, CustomerId, EntryKind, GrantRecord, JournalEntry, MoneyPart, Moved,
    NewMove, OperationId, PaidSum, Payment, PaymentStatus, Posted, Refusal, Registers, Scope,
    UtcDay,
};

fn credit(rows: &mut Rows, credit: &Credit) -> Result<Posted, Refusal> {
    let posted = book(rows, credit, audit::credit(credit))?;
    take_over(rows, &posted.entry);
    Ok(posted)
}

/// As [`credit`], with the act that is written about it.
pub(super) fn book(rows: &mut Rows, credit: &Credit, act: Written) -> Result<Posted, Refusal> {
    credit.check()?;
    // Looked for twice: by the id of an attempt whose answer was lost, and below by the reference, under which a caller that has
    // restarted tells the same payment with a new id.
    if let Some(posted) = repeated(rows, credit, rows.entry(credit.operation))? {
        return Ok(posted);
    }
    check_unused(rows, credit.operation)?;
    if let Some(posted) = repeated(rows, credit, rows.entry_by_reference(&credit.reference))? {
        return Ok(posted);
    }
    check_name(rows, credit)?;
    let owner = owner(rows, credit.to)?;
    rows.customer(owner)?.customer.check_open()?;
    grants::settle(rows, owner)?;
    let stored = rows.customer(owner)?.clone();
    let before = stored.customer.account;
    let given = &stored.customer.grants;
    if credit.takes() {
        let taken = credit.amount.checked_neg().unwrap_or_default();
        grants::check_pool(given, before, taken)?;
    }
    if credit.gives().is_some() {
        given.check_room()?;
    }
    let after = match &credit.kind {
        CreditKind::TopUp => {
            if let Scope::Key(key) = credit.to {
                rows.key(key)?.check_payable()?;
            }
            before.top_up(credit.amount)?
        }
        CreditKind::Adjust { .. } => before.adjust(credit.amount)?,
        CreditKind::WriteOff { .. } => before.write_off(credit.amount)?,
        CreditKind::Refund { request, .. } => {
            let (charged, refunded) = refunded(rows, credit.to, *request)?;
            before.refund(credit.amount, *request, charged, refunded)?
        }
    };
    let booked = match &credit.kind {
        CreditKind::TopUp => delegation::booked(rows, credit.amount, true)?,
        CreditKind::Adjust { .. } => delegation::booked(rows, credit.amount, false)?,
        CreditKind::WriteOff { .. } | CreditKind::Refund { .. } => None,
    };
    delegation::count(rows, booked);
    let (parts, made) = parts(rows, credit, owner)?;
    let position = rows.positions.next_entry();
    let entry = credit.entry(&stored, position, after.balance(), rows.now());
    let entry = JournalEntry { parts, ..entry };
    append(rows, entry.clone(), &stored.head, after);
    give_room_back(rows, credit)?;
    write_act(rows, act.making(&made), owner)?;
    if credit.kind == CreditKind::TopUp {
        let to = delegation::addressee(rows, credit)?;
        rows.address(&credit.reference, owner, to);
    }
    news::credited(rows, credit, &entry);
    // A claim takes its part before the balance is judged, so that nobody is told of money that is not there.
    claims::collect(rows, owner, credit.operation, credit.at);
    news::judge_balance(rows, owner, credit.operation);
    posted(rows, entry, false)
}

/// Refuses a credit under a name that it cannot have.
fn check_name(rows: &Rows, credit: &Credit) -> Result<(), Refusal> {
    match credit.kind {
        CreditKind::TopUp if TopUpWish::is_reference(&credit.reference) => {
            references::check_payment(rows, owner(rows, credit.to)?, &credit.reference)
        }
        CreditKind::TopUp => references::check_payable_name(rows, &credit.reference),
        CreditKind::Adjust { .. } | CreditKind::WriteOff { .. } | CreditKind::Refund { .. } => {
            references::check_reference(rows, &credit.reference)
        }
    }
}

/// What a credit's entry names, and the grants that it makes.
fn parts(
    rows: &mut Rows,
    credit: &Credit,
    owner: CustomerId,
) -> Result<(Vec<MoneyPart>, Vec<GrantRecord>), Refusal> {
    let (_, _, Some(request)) = credit.facts() else {
        return grants::corrected(rows, credit, owner);
    };
    let (_, refunded) = refunded(rows, credit.to, request)?;
    match rows.entry(request).cloned() {
        Some(charge) => grants::give_back(rows, credit, &charge, refunded),
        None => Ok((Vec::new(), Vec::new())),
    }
}

/// The customer that a scope names.
fn owner(rows: &Rows, of: Scope) -> Result<CustomerId, Refusal> {
    match of {
        Scope::Key(key) => Ok(rows.key(key)?.belongs_to),
        Scope::Customer(customer) => Ok(customer),
    }
}

/// The answer with the customer and key as they are now.
fn posted(rows: &Rows, entry: JournalEntry, repeated: bool) -> Result<Posted, Refusal> {
    Ok(Posted {
        customer: rows.customer(entry.customer)?.customer.clone(),
        key: entry.key.map(|key| rows.whole_key(key)).transpose()?,
        entry,
        repeated,
    })
}

/// The answer to a credit that `found` shows to have been posted before.
fn repeated(
    rows: &Rows,
    credit: &Credit,
    found: Option<&JournalEntry>,
) -> Result<Option<Posted>, Refusal> {
    let Some(entry) = found else { return Ok(None) };
    let owner = owner(rows, credit.to);
    if owner.is_ok_and(|owner| credit.repeats(entry, owner)) {
        return posted(rows, entry.clone(), true).map(Some);
    }
    Ok(None)
}

/// The payment of an entry has the name from now on that an unapplied one has kept.
pub(super) fn take_over(rows: &mut Rows, entry: &JournalEntry) {
    let name = entry
        .reference
        .as_deref()
        .filter(|_| entry.kind == EntryKind::TopUp);
    let known = name.and_then(|name| rows.payment(name));
    if known.is_some_and(Payment::is_unapplied) {
        rows.tables.put(payment_of(entry));
    }
}

/// The payment of a top-up without particulars: it was paid in US dollars.
pub(super) fn payment_of(entry: &JournalEntry) -> Payment {
    Payment {
        reference: entry.reference.clone().unwrap_or_default(),
        customer: entry.customer,
        paid: PaidSum::in_usd(entry.amount),
        credit: entry.amount,
        plan: None,
        registers: Registers::default(),
        waiting: Vec::new(),
        status: PaymentStatus::Booked,
        actor: entry.actor.clone(),
        token: None,
        at: entry.at,
    }
}

/// A refund gives room back in the windows that its charge counts in, of whoever's caps bound the key that was charged.
fn give_room_back(rows: &mut Rows, credit: &Credit) -> Result<(), Refusal> {
    let CreditKind::Refund { request, .. } = &credit.kind else {
        return Ok(());
    };
    let Some((key, slug, day)) = charged(rows, *request) else {
        return Ok(());
    };
    let mut purse = rows.purse(key)?;
    purse.refund(&slug, day, credit.amount);
    rows.set_purse(key, purse);
    Ok(())
}

/// Key and slug of a charge, and the day of its request.
fn charged(rows: &Rows, request: OperationId) -> Option<(crate::KeyId, String, UtcDay)> {
    let charge = rows.entry(request)?;
    let bill = charge.bill.as_ref()?;
    Some((charge.key?, bill.slug.clone(), charge.day()))
}

/// The charge of a request and the sum of its refunds so far.
fn refunded(rows: &Rows, to: Scope, request: OperationId) -> Result<(Amount, Amount), Refusal> {
    let nothing = || Refusal::NotRefundable {
        request,
        refundable: Amount::ZERO,
    };
    let is_of = |entry: &&JournalEntry| match to {
        Scope::Key(key) => entry.key == Some(key),
        Scope::Customer(customer) => entry.customer == customer,
    };
    let charge = rows
        .entry(request)
        .filter(|entry| entry.kind == EntryKind::Charge)
        .filter(is_of)
        .ok_or_else(nothing)?;
    let refunds = rows.refunds.get(&request);
    let refunded = Amount::checked_sum(refunds.into_iter().flatten().copied());
    charge
        .amount
        .checked_neg()
        .zip(refunded)
        .ok_or_else(nothing)
}

/// Moves money between customers. The entry of who gives has the operation's id and takes the reference; that of who gets has a
/// derived id and the same reference.
fn give(rows: &mut Rows, moved: &NewMove) -> Result<Moved, Refusal> {
    reference::check(&moved.reference)?;
    let found = rows.entry(moved.act.operation);
    let found = found.or_else(|| rows.entry_by_reference(&moved.reference));
    if found.is_some_and(|entry| is_of_move(moved, entry)) {
        return answer(rows, moved, true);
    }
    check_unused(rows, moved.act.operation)?;
    check_unused(rows, moved.arrival())?;
    references::check_reference(rows, &moved.reference)?;
    if moved.from == moved.into {
        let text = "money can only be moved to another customer";
        return Err(Refusal::NotApplicable(text.to_owned()));
    }
    rows.customer(moved.from)?.customer.check_open()?;
    rows.customer(moved.into)?.customer.check_open()?;
    grants::settle(rows, moved.from)?;
    grants::settle(rows, moved.into)?;
    let (from, into) = (rows.customer(moved.from)?, rows.customer(moved.into)?);
    grants::check_pool(&from.customer.grants, from.customer.account, moved.amount)?;
    let (given, got) = (from.customer.account).give(into.customer.account, moved.amount)?;
    let taken = moved.amount.checked_neg().unwrap_or_default();
    let heads = (from.head, into.head);
    let (operation, arrival) = (moved.act.operation, moved.arrival());
    let left = JournalEntry {
        operation,
        amount: taken,
        balance_after: given.balance(),
        reason: Some(to(moved)),
        ..side(rows, moved, moved.from)?
    };
    append(rows, left, &heads.0, given);
    let came = JournalEntry {
        operation: arrival,
        amount: moved.amount,
        balance_after: got.balance(),
        reason: Some(format!("from {}", moved.from)),
        ..side(rows, moved, moved.into)?
    };
    append_named(rows, came, &heads.1, got);
    let side = audit::side_of_move(moved, operation, taken, moved.into);
    write_act(rows, side, moved.from)?;
    let side = audit::side_of_move(moved, arrival, moved.amount, moved.from);
    write_act(rows, side, moved.into)?;
    claims::collect(rows, moved.into, moved.arrival(), moved.act.at);
    news::judge_balance(rows, moved.from, moved.act.operation);
    news::judge_balance(rows, moved.into, moved.arrival());
    answer(rows, moved, false)
}

/// What both entries of a move have in common.
fn side(rows: &Rows, moved: &NewMove, customer: CustomerId) -> Result<JournalEntry, Refusal> {
    let stored = rows.customer(customer)?;
    Ok(JournalEntry {
        position: rows.positions.next_entry(),
        seq: stored.head.seq.saturating_add(1),
        customer,
        key: None,
        operation: moved.act.operation,
        kind: EntryKind::Move,
        amount: moved.amount,
        balance_after: Amount::ZERO,
        at: stored.dated(moved.act.at, rows.now()),
        actor: moved.act.actor.clone(),
        reference: Some(reference::normal(&moved.reference)),
        reason: None,
        refunds: None,
        parts: Vec::new(),
        bill: None,
    })
}

/// The reason of the giving entry: who got it.
fn to(moved: &NewMove) -> String {
    format!("to {}", moved.into)
}

/// Whether an entry is the giving side of a move that was made before.
fn is_of_move(moved: &NewMove, entry: &JournalEntry) -> bool {
    entry.kind == EntryKind::Move
        && entry.customer == moved.from
        && entry.reason == Some(to(moved))
        && Some(entry.amount) == moved.amount.checked_neg()
        && entry.reference.as_deref().map(reference::folded)
            == Some(reference::folded(&moved.reference))
}

fn answer(rows: &Rows, moved: &NewMove, repeated: bool) -> Result<Moved, Refusal> {
    Ok(Moved {
        from: rows.customer(moved.from)?.customer.clone(),
        into: rows.customer(moved.into)?.customer.clone(),
        repeated,
    })
}

impl LedgerOperation for Credit {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        let (_, _, refunded) = self.facts();
        Needs {
            references: [Some(&self.reference), None],
            ..Needs::administrative(self.to, [Some(self.operation), refunded])
        }
        .with(refunded.map(RowName::GrantsOfCharge))
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        credit(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.actor);
        match &mut self.kind {
            CreditKind::Adjust { reason, is_paid: _ }
            | CreditKind::WriteOff { reason }
            | CreditKind::Refund { reason, .. } => clean(reason),
            CreditKind::TopUp => {}
        }
    }
}

impl AskableOperation for Credit {
    fn id(&self) -> OperationId {
        self.operation
    }

    fn check_asked(&self, rows: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        match (by, &self.kind) {
            (BoundedAsker::Seller(_), CreditKind::TopUp) => {
                let owner = owner(rows, self.to)?;
                rows.customer(owner)?.customer.check_active()
            }
            (
                BoundedAsker::Seller(_),
                CreditKind::Adjust { .. } | CreditKind::WriteOff { .. } | CreditKind::Refund { .. },
            )
            | (BoundedAsker::Owner(_), _) => by.refused(),
        }
    }
}

impl LedgerOperation for NewMove {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            references: [Some(&self.reference), None],
            customers: [Some(self.from), Some(self.into)],
            ..Needs::administrative(
                self.from.into(),
                [Some(self.act.operation), Some(self.arrival())],
            )
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        give(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for NewMove {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.refused()
    }
}

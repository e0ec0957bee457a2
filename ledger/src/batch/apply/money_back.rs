//! Payments with particulars, and what of them goes back.

use super::acting::refused;
use super::claims::{book, claimed, collect, entry};
use super::plan_money::{self, DueMove};
use super::{
    append, check_unused, customers, delegation, grants, news, payments, plans, references,
    reservations, wishes, write_act,
};
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::audit;
use crate::rule::payment::{PaymentAddressee, assigned};
use crate::rule::token_day::TokenDeed;
use crate::table::needs::RowName;
use crate::value::reference;
use crate::value::text::clean;
use crate::{
    Amount, Credit, CreditKind, CustomerId, EntryKind, FirstPayment, JournalEntry, NewPayment,
    NewReversal, OperationId, Payment, PaymentMoved, PaymentStatus, Refusal, Registers,
    ReversalKind, Scope, TokenDay, UnappliedAct, UnappliedEnd,
};

/// Books a payment. One whose credit a rule refuses is stored under its reference all the same: its money is there.
fn pay(rows: &mut Rows, new: &NewPayment) -> Result<PaymentMoved, Refusal> {
    new.check()?;
    // A top-up of which no more is known than its amount may be the same.
    if let Ok(known) = find(rows, &new.reference) {
        let entry = rows.entry_by_reference(&new.reference);
        let reason = entry.and_then(|entry| entry.reason.as_deref());
        let repeats = new.repeats(&known, reason);
        if repeats || !references::may_take_over(rows, &known)? {
            return known_payment(rows, &new.reference, repeats);
        }
    }
    check_new(rows, new)?;
    rows.customer(new.customer)?;
    take_in(rows, new)
}

/// Makes a customer and books its first payment. Whoever tells of the payment again cannot know the customer that was made.
fn pay_first(rows: &mut Rows, both: &FirstPayment) -> Result<PaymentMoved, Refusal> {
    let (payer, new) = (&both.customer, &both.payment);
    new.check()?;
    if let Some(known) = rows.payment(&new.reference) {
        let repeats = new.is_same_sum(known);
        if repeats || !references::may_take_over(rows, known)? {
            return known_payment(rows, &new.reference, repeats);
        }
    }
    if new.customer != payer.id || new.act.operation == payer.act.operation {
        let text = "a first payment is of the customer that is made with it";
        return Err(Refusal::NotApplicable(text.to_owned()));
    }
    customers::check_new(rows, payer)?;
    check_new(rows, new)?;
    if new.check_sum().is_err() || delegation::booked(rows, new.credit, true).is_err() {
        // Then it is kept as unapplied, or nobody is made.
        kept(rows, &new.reference)?;
    }
    customers::make(rows, payer)?;
    take_in(rows, new)
}

/// Takes in a payment, and ends what was reserved for it.
fn paid(
    rows: &mut Rows,
    new: &NewPayment,
    pay: impl FnOnce(&mut Rows) -> Result<PaymentMoved, Refusal>,
) -> Result<Outcome, Refusal> {
    rows.paid_for = new.reservation;
    let moved = pay(rows);
    rows.paid_for = None;
    let moved = moved?;
    if let Some(id) = new.reservation {
        reservations::end(rows, id);
    }
    Ok(moved.into())
}

/// The answer to a payment that was told before, if it is the same.
fn known_payment(rows: &Rows, reference: &str, repeats: bool) -> Result<PaymentMoved, Refusal> {
    let known = find(rows, reference)?;
    if repeats {
        let entry = rows.entry_by_reference(reference).cloned();
        return answer(rows, known, entry, true);
    }
    Err(Refusal::ReferenceUsed {
        reference: known.reference,
        customer: known.customer,
    })
}

/// Refuses a payment that nobody can have made.
fn check_new(rows: &Rows, new: &NewPayment) -> Result<(), Refusal> {
    // What could be booked nowhere is a mistake.
    crate::Account::default().top_up(new.credit)?;
    check_unused(rows, new.act.operation)?;
    references::check_payable_name(rows, &new.reference)
}

/// The day of the token that asks, with one more payment that is kept as unapplied. Only what is booked takes over the name of what could
/// not be.
fn kept(rows: &Rows, reference: &str) -> Result<Option<TokenDay>, Refusal> {
    references::check_free(rows, reference)?;
    delegation::counted(rows, TokenDeed::Unapplied)
}

/// Takes in a payment that was checked: books it, or keeps it as unapplied. So is one under the reference of a wish that no rule has made: its
/// money came, perhaps for a wish that a restored ledger has lost.
fn take_in(rows: &mut Rows, new: &NewPayment) -> Result<PaymentMoved, Refusal> {
    let credit = credit_of(new);
    let in_time = new
        .reservation
        .map(|id| (id, reservations::is_live(rows, id)));
    let booked = (new.check_sum())
        .and_then(|()| new.check_sold())
        .and_then(|()| delegation::check_payable(rows, new.customer))
        .and_then(|()| match &new.plan {
            Some(periods) => plans::pay(rows, new, periods),
            None => payments::book(rows, &credit, audit::payment(new)).map(|posted| posted.entry),
        });
    let (status, entry) = match booked {
        Ok(entry) => (PaymentStatus::Booked, Some(entry)),
        Err(
            why @ (Refusal::Limit(_)
            | Refusal::NotApplicable(_)
            | Refusal::CustomerStopped(_)
            | Refusal::DailyReached(_)),
        ) => {
            let kept = kept(rows, &new.reference)?;
            delegation::count(rows, kept);
            let why = match in_time {
                Some((id, false)) => format!("{why}; reservation {id} had ended before"),
                Some((_, true)) | None => why.to_string(),
            };
            write_act(rows, audit::unapplied(new, &why), new.customer)?;
            news::unapplied(rows, new, &why);
            (PaymentStatus::Unapplied { why }, None)
        }
        Err(other) => return Err(other),
    };
    let payment = Payment {
        token: rows.asked_by.token(),
        ..new.payment(status)
    };
    rows.tables.put(payment.clone());
    let to = match &new.addressee {
        Some(buyer) => PaymentAddressee::Buyer(buyer.clone()),
        None => delegation::addressee(rows, &credit)?,
    };
    rows.address(&new.reference, new.customer, to);
    answer(rows, payment, entry, false)
}

/// The top-up that a payment is.
fn credit_of(new: &NewPayment) -> Credit {
    Credit {
        operation: new.act.operation,
        to: Scope::Customer(new.customer),
        kind: CreditKind::TopUp,
        amount: new.credit,
        reference: new.reference.clone(),
        actor: new.act.actor.clone(),
        at: new.act.at,
    }
}

/// Takes in what was told about a payment, and books what this changes of what is due.
fn reverse(rows: &mut Rows, new: &NewReversal) -> Result<PaymentMoved, Refusal> {
    new.check()?;
    let known = find(rows, &new.payment)?;
    let new = &new.in_currency_of(&known.paid);
    let mut payment = known.clone();
    payment.tell(new.kind, new.cumulative);
    let named = rows.entry_by_reference(&new.reference).cloned();
    let reason = new.reason(&payment.reference);
    if let Some(entry) = &named
        && (entry.kind, entry.reason.as_deref()) != (EntryKind::Reversal, Some(&*reason))
    {
        return Err(Refusal::ReferenceUsed {
            reference: entry.reference.clone().unwrap_or_default(),
            customer: entry.customer,
        });
    }
    if payment.registers == known.registers {
        return answer(rows, payment, named, true);
    }
    check_unused(rows, new.act.operation)?;
    references::check_reference(rows, &new.reference)?;
    let (before, after) = (known.due(), payment.due());
    let counted = match counted(rows, new.kind, &known, after) {
        Err(why @ Refusal::DailyReached(_)) => return wait(rows, known, new, &why),
        counted => counted?,
    };
    grants::settle(rows, payment.customer)?;
    let name = Some(reference::normal(&new.reference));
    let entry = if before == after {
        None
    } else if payment.plan.is_some() {
        let told = DueMove {
            act: &new.act,
            reference: name,
            reason,
            is_whole: payment.registers.reversed(payment.paid.gross) >= payment.paid.gross,
        };
        plan_money::move_due(rows, &mut payment, (before, after), told)?
    } else {
        let claimed = claimed(rows, payment.customer)?.move_due(before, after)?;
        let by = (new.act.operation, new.act.actor.clone());
        let entry = book(
            rows,
            payment.customer,
            claimed,
            by,
            (name, reason),
            new.act.at,
        );
        Some(entry?)
    };
    delegation::count(rows, counted);
    rows.tables.put(payment.clone());
    let moved = entry.as_ref().map_or(Amount::ZERO, |entry| entry.amount);
    write_act(rows, audit::reversal(new, moved), payment.customer)?;
    // What is paid of another payment begins where nothing runs any more.
    grants::settle(rows, payment.customer)?;
    if new.kind == ReversalKind::Dispute {
        wishes::disputed(rows, payment.customer);
    }
    if let Some(entry) = &entry {
        news::reversed(rows, &payment.reference, Some(new), entry);
        news::judge_balance(rows, payment.customer, new.act.operation);
    }
    answer(rows, payment, entry, false)
}

/// The day of the token that asks with what a message changes of what is due of a payment.
fn counted(
    rows: &Rows,
    kind: ReversalKind,
    known: &Payment,
    after: Amount,
) -> Result<Option<TokenDay>, Refusal> {
    let more = after.checked_sub(known.due()).unwrap_or_default();
    match kind {
        // What a dispute gives back is credited once more.
        ReversalKind::DisputeWon => {
            delegation::booked(rows, more.checked_neg().unwrap_or_default(), false)
        }
        ReversalKind::Refund | ReversalKind::Dispute => {
            let is_booked = known.status == PaymentStatus::Booked;
            let is_first = is_booked && known.registers == Registers::default();
            let amount = more.max(Amount::ZERO);
            delegation::counted(rows, TokenDeed::Reverses { amount, is_first })
        }
    }
}

/// Keeps what the token's bound refuses until somebody else tells it, or the token on another day. It is noted and told once for each kind:
/// later messages only raise it.
fn wait(
    rows: &mut Rows,
    mut payment: Payment,
    new: &NewReversal,
    why: &Refusal,
) -> Result<PaymentMoved, Refusal> {
    let is_known = payment.waits_for(new.kind).is_some();
    payment.wait(new);
    rows.tables.put(payment.clone());
    if !is_known {
        let why = why.to_string();
        write_act(rows, audit::waiting_reversal(new, &why), payment.customer)?;
        news::reversal_waits(rows, payment.customer, new, &why);
    }
    answer(rows, payment, None, is_known)
}

/// Assigns a payment that could not be booked, or notes that its money was sent back.
fn end_unapplied(rows: &mut Rows, act: &UnappliedAct) -> Result<PaymentMoved, Refusal> {
    act.end.check()?;
    reference::check(&act.payment)?;
    let mut payment = find(rows, &act.payment)?;
    let written = audit::end_unapplied(act);
    if rows
        .act(written.operation)
        .is_some_and(|known| written.repeats(known))
    {
        let entry = rows.entry(written.operation).cloned();
        return answer(rows, payment, entry, true);
    }
    check_unused(rows, written.operation)?;
    if !payment.is_unapplied() {
        return Err(Refusal::NotApplicable(format!(
            "payment {:?} is not unapplied",
            payment.reference
        )));
    }
    match act.end {
        UnappliedEnd::Assign(customer) => assign(rows, act, payment, customer),
        UnappliedEnd::Return { .. } => {
            payment.status = PaymentStatus::Returned;
            rows.tables.put(payment.clone());
            write_act(rows, written, payment.customer)?;
            answer(rows, payment, None, false)
        }
    }
}

/// Books the credit of a payment on another customer, and what went back of it meanwhile.
fn assign(
    rows: &mut Rows,
    act: &UnappliedAct,
    mut payment: Payment,
    customer: CustomerId,
) -> Result<PaymentMoved, Refusal> {
    rows.customer(customer)?.customer.check_open()?;
    grants::settle(rows, customer)?;
    // Periods of a plan that could not be sold are money again: their price, whatever they would have given.
    let credit = (payment.plan.as_ref()).map_or(payment.credit, |plan| plan.price());
    let account = rows.customer(customer)?.customer.account.top_up(credit)?;
    // From now on it counts, and with it what went back meanwhile.
    let due = Payment {
        status: PaymentStatus::Booked,
        ..payment.clone()
    }
    .due();
    let due = match &mut payment.plan {
        Some(plan) => {
            plan.is_money = true;
            plan.take("", None, Amount::ZERO, due).money
        }
        None => due,
    };
    // All that can refuse is asked before the first entry is written: nothing takes back what an operation has changed.
    let later = act.act.operation.derived(b"farebox due");
    check_unused(rows, later)?;
    let claim = rows.customer(customer)?.customer.claim;
    if claim.checked_add(due).is_none() {
        return Err(Refusal::Limit("the amounts are too large".to_owned()));
    }
    let booked = delegation::booked(rows, credit, true)?;
    delegation::count(rows, booked);
    let credited = entry(
        rows,
        (customer, act.act.operation),
        (EntryKind::TopUp, credit, account.balance()),
        (
            Some(payment.reference.clone()),
            Some(assigned(payment.customer)),
        ),
        (act.act.actor.clone(), act.act.at),
    )?;
    let head = rows.customer(customer)?.head;
    append(rows, credited.clone(), &head, account);
    (payment.customer, payment.status) = (customer, PaymentStatus::Booked);
    rows.tables.put(payment.clone());
    rows.address(&payment.reference, customer, PaymentAddressee::Unchanged);
    write_act(rows, audit::end_unapplied(act), customer)?;
    news::topped_up(rows, &credited);
    collect(rows, customer, act.act.operation, act.act.at);
    if due.is_positive() {
        // After the claims that were there, which the credit pays as any credit does: only what it leaves can pay for this payment's own
        // way back.
        let claimed = claimed(rows, customer)?.move_due(Amount::ZERO, due)?;
        let name = (later, act.act.actor.clone());
        let reason = format!(
            "what went back of payment {} before it was assigned",
            payment.reference
        );
        let entry = book(rows, customer, claimed, name, (None, reason), act.act.at)?;
        news::reversed(rows, &payment.reference, None, &entry);
    }
    news::judge_balance(rows, customer, act.act.operation);
    answer(rows, payment, Some(credited), false)
}

/// A payment by its reference, or the top-up of this name.
fn find(rows: &Rows, spelled: &str) -> Result<Payment, Refusal> {
    if let Some(known) = rows.payment(spelled) {
        return Ok(known.clone());
    }
    let entry = rows.entry_by_reference(spelled);
    let entry = entry.filter(|entry| entry.kind == EntryKind::TopUp);
    let entry = entry.ok_or_else(|| Refusal::NoSuchPayment(reference::normal(spelled)))?;
    Ok(payments::payment_of(entry))
}

fn answer(
    rows: &Rows,
    payment: Payment,
    entry: Option<JournalEntry>,
    repeated: bool,
) -> Result<PaymentMoved, Refusal> {
    Ok(PaymentMoved {
        customer: rows.customer(payment.customer)?.customer.clone(),
        payment,
        entry,
        repeated,
    })
}

impl LedgerOperation for NewPayment {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            references: [Some(&self.reference), None],
            ..Needs::administrative(self.customer.into(), [Some(self.act.operation), None])
        }
        .with(
            self.plan
                .iter()
                .map(|plan| RowName::Subscription(plan.subscription)),
        )
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        paid(rows, self, |rows| pay(rows, self))
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

/// Of a token that sells: whose money cannot be booked is kept as unapplied.
impl AskableOperation for NewPayment {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.check_sells()
    }
}

impl LedgerOperation for FirstPayment {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        let of_new = self.customer.needs();
        Needs {
            references: [Some(&self.payment.reference), None],
            ..of_new.and_used(self.payment.act.operation)
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        paid(rows, &self.payment, |rows| pay_first(rows, self))
    }

    fn clean(&mut self) {
        self.customer.clean();
        self.payment.clean();
    }
}

impl AskableOperation for FirstPayment {
    fn id(&self) -> OperationId {
        self.payment.act.operation
    }

    fn check_asked(&self, rows: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        self.payment.check_asked(rows, by)
    }
}

impl LedgerOperation for NewReversal {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            references: [Some(&self.payment), Some(&self.reference)],
            ..Needs::used([Some(self.act.operation), None])
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        reverse(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for NewReversal {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, rows: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        let BoundedAsker::Seller(token) = by else {
            return by.refused();
        };
        match rows.payment(&self.payment) {
            Some(payment) if payment.token == Some(token) => Ok(()),
            // Said as to everybody, so that it is told again when the payment has come.
            None if rows.entry_by_reference(&self.payment).is_none() => Ok(()),
            Some(_) | None => refused("this token reverses only payments that it booked itself"),
        }
    }
}

impl LedgerOperation for UnappliedAct {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        let operation = self.act.operation;
        let assigned = match self.end {
            UnappliedEnd::Assign(customer) => Some(customer),
            UnappliedEnd::Return { .. } => None,
        };
        Needs {
            references: [Some(&self.payment), None],
            customers: [assigned, None],
            ..Needs::used([Some(operation), Some(operation.derived(b"farebox due"))])
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        end_unapplied(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        // A reason with this character is refused.
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for UnappliedAct {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.refused()
    }
}

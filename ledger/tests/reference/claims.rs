//! What operations on payments and claims do to the reference store, decided here once more.

use super::State;
use super::customers::not_closed;
use super::keys::{credited, topped_up};
use super::operations::{Done, amount, blank, is_same, not_applicable, picos};
use super::plans::worth;
use crate::book::audit::{self, Written};
use crate::value::reference::{self, folded, normal};
use crate::{
    Account, Amount, Credit, CreditKind, CustomerId, DailyBound, EntryKind, Gross, JournalEntry,
    NewCustomer, NewPayment, NewReversal, OperationId, PaidSum, Payment, PaymentMoved,
    PaymentStatus, PersonalData, Refusal, Registers, ReversalKind, Scope, Timestamp, UnappliedAct,
    UnappliedEnd, WaitingReversal,
};

/// What of a payment's credit is due: its share of what went back.
fn due(payment: &Payment) -> i128 {
    if payment.status != PaymentStatus::Booked {
        return 0;
    }
    let Registers {
        refunded,
        withdrawn,
        reinstated,
    } = payment.registers;
    let [refunded, withdrawn, reinstated, gross] =
        [refunded, withdrawn, reinstated, payment.paid.gross].map(|part| i128::from(part.parts()));
    let back = refunded.saturating_add(withdrawn.saturating_sub(reinstated).max(0));
    let share = picos(payment.credit).saturating_mul(back.min(gross));
    share.checked_div(gross).unwrap_or_default()
}

/// What was taken for what is due: of periods what ran, and what was used at its price.
fn taken(payment: &Payment) -> i128 {
    match &payment.plan {
        None => due(payment),
        Some(plan) => {
            picos(plan.of_running).saturating_add(worth(&plan.terms, picos(plan.of_used)))
        }
    }
}

/// Another sum than was asked for is not booked.
fn asked_for(new: &NewPayment) -> Done<()> {
    let Some(asked) = &new.expected else {
        return Ok(());
    };
    if asked.currency == new.paid.currency && asked.gross == new.paid.gross {
        return Ok(());
    }
    Err(not_applicable(&format!(
        "{} {} was paid where {} {} was asked",
        new.paid.gross, new.paid.currency, asked.gross, asked.currency
    )))
}

/// What the catalog does not sell is not booked.
fn is_sold(new: &NewPayment) -> Done<()> {
    new.unsold
        .as_ref()
        .map_or(Ok(()), |why| Err(not_applicable(why)))
}

impl State {
    pub(super) fn payment(&self, spelled: &str) -> Option<&Payment> {
        self.payments.get(&folded(spelled))
    }

    pub(super) fn find_payment(&self, spelled: &str) -> Done<Payment> {
        if let Some(known) = self.payment(spelled) {
            return Ok(known.clone());
        }
        let entry = self.named(spelled);
        let entry = entry.filter(|entry| entry.kind == EntryKind::TopUp);
        let entry = entry.ok_or_else(|| Refusal::NoSuchPayment(normal(spelled)))?;
        Ok(Payment {
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
        })
    }

    pub(super) fn keep(&mut self, payment: &Payment) {
        let name = folded(&payment.reference);
        self.payments.insert(name, payment.clone());
    }

    fn answered(
        &self,
        payment: Payment,
        entry: Option<JournalEntry>,
        repeated: bool,
    ) -> Done<PaymentMoved> {
        Ok(PaymentMoved {
            customer: self.customer(payment.customer)?.clone(),
            payment,
            entry,
            repeated,
        })
    }

    /// A customer with its first payment, or neither: tried on a copy of everything.
    pub(super) fn pay_first(
        &mut self,
        payer: &NewCustomer,
        new: &NewPayment,
    ) -> Done<PaymentMoved> {
        new.check()?;
        if let Some(known) = self.payment(&new.reference) {
            let bought = known.plan.as_ref().map(|plan| plan.subscription);
            let is_same = (&known.paid, known.credit) == (&new.paid, new.credit)
                && bought == new.plan.as_ref().map(|plan| plan.subscription);
            if is_same || !self.may_take_over(known) {
                let told = NewPayment {
                    customer: known.customer,
                    ..new.clone()
                };
                return self.pay(&told);
            }
        }
        if new.customer != payer.id || new.act.operation == payer.act.operation {
            return Err(not_applicable(
                "a first payment is of the customer that is made with it",
            ));
        }
        self.check_new_customer(payer)?;
        let before = self.clone();
        let paid = self.create_customer(payer).and_then(|_| self.pay(new));
        if paid.is_err() {
            *self = before;
        }
        paid
    }

    pub(super) fn pay(&mut self, new: &NewPayment) -> Done<PaymentMoved> {
        new.check()?;
        if let Ok(known) = self.find_payment(&new.reference) {
            let entry = self.named(&new.reference).cloned();
            let told_for = entry.as_ref().and_then(|entry| entry.reason.clone());
            let is_of = known.customer == new.customer
                || told_for == Some(format!("paid for {}", new.customer));
            let bought = known.plan.as_ref().map(|plan| plan.subscription);
            let repeats = is_of
                && (&known.paid, known.credit) == (&new.paid, new.credit)
                && bought == new.plan.as_ref().map(|plan| plan.subscription);
            if !repeats && !self.may_take_over(&known) {
                return Err(Refusal::ReferenceUsed {
                    reference: known.reference,
                    customer: known.customer,
                });
            }
            if repeats {
                return self.answered(known, entry, true);
            }
        }
        topped_up(Account::default(), new.credit)?;
        self.check_unused(new.act.operation)?;
        self.check_name(&new.reference)?;
        let customer = self.customer(new.customer)?.clone();
        if let Some(of) = &new.plan {
            let entry = asked_for(new)
                .and_then(|()| is_sold(new))
                .and_then(|()| self.check_payable(new.customer))
                .and_then(|()| self.pay_for_plan(new, of));
            return self.taken_in(new, entry);
        }
        let after = asked_for(new)
            .and_then(|()| is_sold(new))
            .and_then(|()| self.check_payable(new.customer))
            .and_then(|()| self.check_wish(new.customer, &new.reference))
            .and_then(|()| not_closed(&customer))
            .and_then(|()| self.settle_grants(new.customer))
            .and_then(|()| topped_up(self.customer(new.customer)?.account, new.credit))
            .and_then(|after| self.check_booked(new.credit).map(|()| after));
        let entry = after.and_then(|after| self.book_top_up(new, after));
        self.taken_in(new, entry)
    }

    fn book_top_up(&mut self, new: &NewPayment, after: Account) -> Done<JournalEntry> {
        let credit = Credit {
            operation: new.act.operation,
            to: Scope::Customer(new.customer),
            kind: CreditKind::TopUp,
            amount: new.credit,
            reference: new.reference.clone(),
            actor: new.act.actor.clone(),
            at: new.act.at,
        };
        self.count_booked(new.credit, true);
        let entry = self.enter(new.customer, after, credited(&credit, new.customer))?;
        self.write(new.customer, audit::payment(new));
        self.tell_of_top_up(&entry);
        self.collect(new.customer, new.act.operation, new.act.at)?;
        self.tell_of_balance(new.customer, new.act.operation)?;
        Ok(entry)
    }

    /// Keeps a payment that was booked, or why it was not.
    fn taken_in(&mut self, new: &NewPayment, booked: Done<JournalEntry>) -> Done<PaymentMoved> {
        let mut payment = new.payment(PaymentStatus::Booked);
        payment.token = self.asked_by.token();
        let entry = match booked {
            Ok(entry) => Some(entry),
            Err(why) => {
                if let Some(known) = self.payment(&new.reference) {
                    return Err(Refusal::ReferenceUsed {
                        reference: known.reference.clone(),
                        customer: known.customer,
                    });
                }
                self.one_more(DailyBound::Unapplied)?;
                let why = format!("{why}{}", self.too_late(new));
                self.write(new.customer, audit::unapplied(new, &why));
                self.tell_unapplied(new, &why);
                payment.status = PaymentStatus::Unapplied { why };
                None
            }
        };
        self.keep(&payment);
        self.address(&new.reference, new.customer, new.addressee.as_ref())?;
        self.answered(payment, entry, false)
    }

    /// Addresses a payment to whoever said so, or to the customer as it is described now; to nobody if it was sold to whoever came.
    pub(super) fn address(
        &mut self,
        reference: &str,
        customer: CustomerId,
        buyer: Option<&PersonalData>,
    ) -> Done<()> {
        let is_own = !self.is_sold() || folded(reference).starts_with("auto-top-up:");
        let own = self.personal.get(&customer).filter(|_| is_own);
        let to = buyer.or(own).cloned();
        if to.is_some() || !is_own {
            self.addressees.insert(folded(reference), (customer, to));
        }
        Ok(())
    }

    pub(super) fn reverse(&mut self, new: &NewReversal) -> Done<PaymentMoved> {
        new.check()?;
        let before = self.find_payment(&new.payment)?;
        let mut new = new.clone();
        if let Some(whole) = new.whole.take() {
            let [told, whole, gross] =
                [new.cumulative, whole, before.paid.gross].map(|part| i128::from(part.parts()));
            let part = gross.saturating_mul(told.min(whole)).div_euclid(whole);
            new.cumulative = i64::try_from(part)
                .ok()
                .and_then(Gross::from_parts)
                .unwrap_or_default();
        }
        let new = &new;
        let mut payment = before.clone();
        let register = match new.kind {
            ReversalKind::Refund => &mut payment.registers.refunded,
            ReversalKind::Dispute => &mut payment.registers.withdrawn,
            ReversalKind::DisputeWon => &mut payment.registers.reinstated,
        };
        *register = (*register).max(new.cumulative);
        let booked = *register;
        (payment.waiting).retain(|known| known.kind != new.kind || known.cumulative > booked);
        let named = self.named(&new.reference).cloned();
        let reason = new.reason(&payment.reference);
        let is_own = |entry: &JournalEntry| {
            entry.kind == EntryKind::Reversal && entry.reason.as_ref() == Some(&reason)
        };
        if let Some(other) = named.as_ref().filter(|entry| !is_own(entry)) {
            return Err(Refusal::ReferenceUsed {
                reference: other.reference.clone().unwrap_or_default(),
                customer: other.customer,
            });
        }
        if payment.registers == before.registers {
            return self.answered(payment, named, true);
        }
        self.check_unused(new.act.operation)?;
        Self::check_no_wish(&new.reference)?;
        self.check_reference(&new.reference)?;
        let more = due(&payment).saturating_sub(due(&before));
        let given_back = match new.kind {
            ReversalKind::DisputeWon => amount(more.saturating_neg())?,
            ReversalKind::Refund | ReversalKind::Dispute => Amount::ZERO,
        };
        let is_booked = before.status == PaymentStatus::Booked;
        let is_first = is_booked && before.registers == Registers::default();
        let within = self.check_booked(given_back).and_then(|()| {
            if new.kind == ReversalKind::DisputeWon {
                return Ok(());
            }
            self.check_daily(DailyBound::Reversed, more.max(0))?;
            self.check_daily(DailyBound::ReversedPayments, i128::from(is_first))
        });
        match within {
            Ok(()) => {}
            Err(why @ Refusal::DailyReached(_)) => return self.wait(before, new, &why),
            Err(other) => return Err(other),
        }
        self.settle_grants(payment.customer)?;
        self.count_booked(given_back, false);
        if new.kind != ReversalKind::DisputeWon {
            self.count_daily(DailyBound::Reversed, more.max(0));
            self.count_daily(DailyBound::ReversedPayments, i128::from(is_first));
        }
        let (mut entry, mut moved) = (None, Amount::ZERO);
        if more != 0 && payment.plan.is_some() {
            entry = self.move_due_of_plan(&mut payment, new, (more, &reason))?;
            moved = entry.as_ref().map_or(Amount::ZERO, |entry| entry.amount);
        } else if more != 0 {
            let made = JournalEntry {
                operation: new.act.operation,
                at: new.act.at,
                actor: new.act.actor.clone(),
                reference: Some(normal(&new.reference)),
                reason: Some(reason),
                ..blank(payment.customer, None)
            };
            let made = self.claim(payment.customer, more, made)?;
            moved = made.amount;
            entry = Some(made);
        }
        self.keep(&payment);
        self.write(payment.customer, audit::reversal(new, moved));
        self.settle_grants(payment.customer)?;
        if new.kind == ReversalKind::Dispute {
            self.distrust(payment.customer);
        }
        if let Some(entry) = &entry {
            let kind = match new.kind {
                ReversalKind::Refund => "refund",
                ReversalKind::Dispute => "dispute",
                ReversalKind::DisputeWon => "dispute_won",
            };
            self.tell_of_reversal(&payment.reference, Some(kind), entry)?;
            self.tell_of_balance(payment.customer, new.act.operation)?;
        }
        self.answered(payment, entry, false)
    }

    /// Keeps what a token may not book today.
    fn wait(
        &mut self,
        mut payment: Payment,
        new: &NewReversal,
        why: &Refusal,
    ) -> Done<PaymentMoved> {
        let told = WaitingReversal {
            kind: new.kind,
            cumulative: new.cumulative,
            reference: normal(&new.reference),
            at: new.act.at.millis(),
        };
        let known = payment
            .waiting
            .iter_mut()
            .find(|known| known.kind == new.kind);
        let is_known = known.is_some();
        match known {
            Some(known) if known.cumulative < told.cumulative => *known = told,
            Some(_) => {}
            None => payment.waiting.push(told),
        }
        self.keep(&payment);
        if !is_known {
            let why = why.to_string();
            self.write(payment.customer, audit::waiting_reversal(new, &why));
            self.tell_of_waiting(payment.customer, new, &why);
        }
        self.answered(payment, None, is_known)
    }

    /// Owes so much more, or less, and takes or gives what that makes possible.
    pub(super) fn claim(
        &mut self,
        customer: CustomerId,
        more: i128,
        blank: JournalEntry,
    ) -> Done<JournalEntry> {
        let found = self.customer(customer)?;
        let owed = picos(found.claim).saturating_add(more);
        let account = found.account;
        let moved = if owed < 0 {
            owed.saturating_neg()
        } else {
            owed.min(self.paid_free(customer)).saturating_neg()
        };
        let after = Account {
            credit: amount(picos(account.credit).saturating_add(moved))?,
            ..account
        };
        let (before, left) = (found.claim, amount(owed.saturating_add(moved))?);
        let parts = if moved < 0 {
            self.take_paid(customer, moved.saturating_neg())?
        } else {
            Vec::new()
        };
        let entry = JournalEntry {
            kind: EntryKind::Reversal,
            amount: amount(moved)?,
            parts,
            ..blank
        };
        if let Some(found) = self.customers.get_mut(&customer) {
            found.claim = left;
        }
        let entry = self.enter(customer, after, entry)?;
        self.tell_of_claim(customer, entry.operation, before, left);
        Ok(entry)
    }

    /// Pays a claim with what is available.
    pub(super) fn collect(
        &mut self,
        customer: CustomerId,
        cause: OperationId,
        at: Timestamp,
    ) -> Done<()> {
        let found = self.customer(customer)?;
        if found.claim.is_positive() && self.paid_free(customer) > 0 {
            let blank = JournalEntry {
                operation: crate::rule::payment::collection_of(cause),
                at,
                actor: "gateway".to_owned(),
                reason: Some("pays a claim".to_owned()),
                ..blank(customer, None)
            };
            self.claim(customer, 0, blank)?;
        }
        Ok(())
    }

    pub(super) fn end_unapplied(&mut self, ending: &UnappliedAct) -> Done<PaymentMoved> {
        ending.end.check()?;
        reference::check(&ending.payment)?;
        let mut payment = self.find_payment(&ending.payment)?;
        let act: Written = audit::end_unapplied(ending);
        let operation = ending.act.operation;
        if self
            .audited(operation)
            .is_some_and(|known| is_same(&act, known))
        {
            let entry = self.entry(operation).cloned();
            return self.answered(payment, entry, true);
        }
        self.check_unused(operation)?;
        if !matches!(payment.status, PaymentStatus::Unapplied { .. }) {
            let text = format!("payment {:?} is not unapplied", payment.reference);
            return Err(not_applicable(&text));
        }
        let UnappliedEnd::Assign(customer) = ending.end else {
            payment.status = PaymentStatus::Returned;
            self.keep(&payment);
            self.write(payment.customer, act);
            return self.answered(payment, None, false);
        };
        not_closed(self.customer(customer)?)?;
        self.settle_grants(customer)?;
        let worth_of = payment
            .plan
            .as_ref()
            .map(|plan| picos(plan.terms.price).saturating_mul(plan.periods.into()));
        let credit = worth_of.map_or(Ok(payment.credit), amount)?;
        let after = topped_up(self.customer(customer)?.account, credit)?;
        let later = operation.derived(b"farebox due");
        self.check_unused(later)?;
        self.check_booked(credit)?;
        self.count_booked(credit, true);
        let entry = JournalEntry {
            operation,
            kind: EntryKind::TopUp,
            amount: credit,
            at: ending.act.at,
            actor: ending.act.actor.clone(),
            reference: Some(payment.reference.clone()),
            reason: Some(format!("paid for {}", payment.customer)),
            ..blank(customer, None)
        };
        let entry = self.enter(customer, after, entry)?;
        (payment.customer, payment.status) = (customer, PaymentStatus::Booked);
        let back = due(&payment);
        if let Some(plan) = &mut payment.plan {
            (plan.is_money, plan.of_used) = (true, amount(back)?);
        }
        let back = taken(&payment);
        self.keep(&payment);
        if let Some((of, _)) = self.addressees.get_mut(&folded(&payment.reference)) {
            *of = customer;
        }
        self.write(customer, act);
        self.tell_of_top_up(&entry);
        self.collect(customer, operation, ending.act.at)?;
        if back > 0 {
            let name = &payment.reference;
            let blank = JournalEntry {
                operation: later,
                at: ending.act.at,
                actor: ending.act.actor.clone(),
                reason: Some(format!(
                    "what went back of payment {name} before it was assigned"
                )),
                ..blank(customer, None)
            };
            let back = self.claim(customer, back, blank)?;
            self.tell_of_reversal(&payment.reference, None, &back)?;
        }
        self.tell_of_balance(customer, operation)?;
        self.answered(payment, Some(entry), false)
    }

    /// What is wrong with a customer's payments and claim.
    pub(super) fn unsound_claim(&self, id: CustomerId) -> Option<String> {
        let customer = self.customers.get(&id)?;
        let of = self.payments.values();
        let due: i128 = of.filter(|payment| payment.customer == id).map(taken).sum();
        let taken = self.of_customer(id);
        let taken = taken.filter(|entry| entry.kind == EntryKind::Reversal);
        let taken: i128 = taken.map(|entry| picos(entry.amount)).sum();
        let follows = due.saturating_add(taken) == picos(customer.claim);
        let payable = customer.claim.is_positive() && self.paid_free(id) > 0;
        (!follows || payable).then(|| format!("customer {id}: its claim does not follow"))
    }

    pub(super) fn unapplied(&self) -> Vec<Payment> {
        let of = self.payments.values();
        let of = of.filter(|payment| {
            matches!(payment.status, PaymentStatus::Unapplied { .. }) || !payment.waiting.is_empty()
        });
        let mut found: Vec<_> = of.cloned().collect();
        found.sort_by_key(|payment| (payment.at, folded(&payment.reference)));
        found
    }
}

//! What goes back of payments for periods of plans, and what of it comes again.

use super::claims::{book, claimed};
use super::grant_books::{self, book_part_by};
use super::plan_periods::{beside, keep, lose};
use crate::batch::rows::Rows;
use crate::book::plan_act;
use crate::rule::account::less;
use crate::rule::grant::ended;
use crate::{
    Account, Act, Amount, CustomerId, EntryKind, Grant, GrantId, GrantName, GrantStatus,
    JournalEntry, PaidPeriods, Payment, Refusal, Subscription,
};

/// What moves a payment's due, and how its entry is named.
pub(super) struct DueMove<'told> {
    pub(super) act: &'told Act,
    pub(super) reference: Option<String>,
    pub(super) reason: String,
    /// Whether all of the payment is back.
    pub(super) is_whole: bool,
}

/// Books that another part of what a payment for periods bought is due, and returns the entry with the name.
pub(super) fn move_due(
    rows: &mut Rows,
    payment: &mut Payment,
    (before, after): (Amount, Amount),
    told: DueMove<'_>,
) -> Result<Option<JournalEntry>, Refusal> {
    let Some(mut plan) = payment.plan.as_deref().cloned() else {
        return Ok(None);
    };
    let plans = &rows.customer(payment.customer)?.customer.grants.plans;
    let known = plans.get(plan.subscription).cloned();
    let mut back = PlanMoney {
        customer: payment.customer,
        name: payment.reference.clone(),
        told,
        subscription: known.clone(),
        first: None,
    };
    if after >= before {
        back.take(rows, &mut plan, less(after, before))?;
    } else {
        back.give_again(rows, &mut plan, less(before, after))?;
    }
    if back.first.is_none() {
        // What had not begun was in no account, and the message's name is taken all the same.
        let nothing = claimed(rows, back.customer)?.move_due(Amount::ZERO, Amount::ZERO)?;
        back.book_money(rows, nothing)?;
    }
    if let Some(subscription) = back.subscription.filter(|of| known.as_ref() != Some(of)) {
        keep(
            rows,
            subscription,
            &beside(back.told.act),
            plan_act::GOES_BACK,
        )?;
    }
    payment.plan = Some(Box::new(plan));
    Ok(back.first)
}

/// One payment's way back.
struct PlanMoney<'told> {
    customer: CustomerId,
    /// The payment's name.
    name: String,
    told: DueMove<'told>,
    subscription: Option<Subscription>,
    /// The entry with the message's name and operation.
    first: Option<JournalEntry>,
}

impl PlanMoney<'_> {
    fn take(
        &mut self,
        rows: &mut Rows,
        plan: &mut PaidPeriods,
        more: Amount,
    ) -> Result<(), Refusal> {
        let running = self.running(rows)?;
        let free = running.as_ref().map_or(Amount::ZERO, Grant::free);
        let back = plan.take(&self.name, self.subscription.as_mut(), free, more);
        if let Some(mut grant) = running {
            if back.of_running.is_positive() {
                let taken = back.of_running.checked_neg().unwrap_or_default();
                let after = rows
                    .customer(self.customer)?
                    .customer
                    .account
                    .adjust(taken)?;
                grant.remaining = less(grant.remaining, back.of_running);
                grant_books::put(rows, grant.clone())?;
                self.book_part(rows, grant.id, taken, after)?;
            }
            if self.told.is_whole {
                self.void(rows, &grant)?;
            }
        }
        if back.money.is_positive() {
            let claimed = claimed(rows, self.customer)?.move_due(Amount::ZERO, back.money)?;
            self.book_money(rows, claimed)?;
        }
        Ok(())
    }

    fn give_again(
        &mut self,
        rows: &mut Rows,
        plan: &mut PaidPeriods,
        again: Amount,
    ) -> Result<(), Refusal> {
        let open = self.subscription.as_mut();
        let back = plan.give_again(&self.name, open, again);
        if back.money.is_positive() {
            let claimed = claimed(rows, self.customer)?.move_due(back.money, Amount::ZERO)?;
            self.book_money(rows, claimed)?;
        }
        if back.of_running.is_positive() {
            let id = GrantId::derived(self.told.act.operation, 0);
            let ends = self
                .subscription
                .as_ref()
                .and_then(Subscription::lives_until);
            let models = plan.terms.models.clone();
            let of = (id, self.customer);
            let grant = grant_books::promotional(rows, of, back.of_running, models);
            let expires_at = Some(ends.unwrap_or_else(|| grant_books::refunded_until(rows)));
            let grant = Grant {
                expires_at,
                ..grant
            };
            let account = rows.customer(self.customer)?.customer.account;
            let after = account.give_back(back.of_running)?;
            let made = grant_books::insert(rows, grant, GrantName(None), &self.told.act.actor)?;
            self.book_part(rows, id, back.of_running, after)?;
            let act = Act {
                operation: self.told.act.operation.derived(b"farebox again"),
                ..self.told.act.clone()
            };
            super::write_act(
                rows,
                crate::book::grant_act::grant(&act, &made),
                self.customer,
            )?;
        }
        Ok(())
    }

    /// The grant of the period that this payment bought, if it runs.
    fn running(&self, rows: &Rows) -> Result<Option<Grant>, Refusal> {
        let running = (self.subscription.as_ref()).and_then(|of| of.state.running.as_ref());
        let own = running.filter(|running| running.payment.as_deref() == Some(&*self.name));
        let all = &rows.customer(self.customer)?.customer.grants;
        Ok(own.and_then(|running| all.get(running.grant)).cloned())
    }

    /// Nothing of a period is left whose payment is back whole.
    fn void(&mut self, rows: &mut Rows, grant: &Grant) -> Result<(), Refusal> {
        let cause = (self.told.act.operation, EntryKind::Void);
        lose(rows, cause, ended(grant, GrantStatus::Voided), grant.free())?;
        if let Some(of) = &mut self.subscription {
            of.lose_period();
        }
        Ok(())
    }

    fn book_part(
        &mut self,
        rows: &mut Rows,
        grant: GrantId,
        amount: Amount,
        after: Account,
    ) -> Result<(), Refusal> {
        let (act, of) = (self.told.act, (self.customer, self.operation()));
        let part = (EntryKind::Reversal, grant, amount);
        let texts = (self.told.reference.take(), Some(self.told.reason.clone()));
        let told = (texts, (act.actor.clone(), act.at));
        let made = book_part_by(rows, of, part, after, told)?;
        self.first.get_or_insert(made);
        Ok(())
    }

    fn book_money(
        &mut self,
        rows: &mut Rows,
        claimed: (crate::rule::payment::Claimed, Amount),
    ) -> Result<(), Refusal> {
        let act = self.told.act;
        let name = (self.operation(), act.actor.clone());
        let texts = (self.told.reference.take(), self.told.reason.clone());
        let made = book(rows, self.customer, claimed, name, texts, act.at)?;
        self.first.get_or_insert(made);
        Ok(())
    }

    /// The operation of the next entry: the first has the message's own.
    fn operation(&self) -> crate::OperationId {
        match self.first {
            None => self.told.act.operation,
            Some(_) => self.told.act.operation.derived(b"farebox due"),
        }
    }
}

//! What goes back of payments for periods of a plan. Pure.
//!
//! A payment bought so much allowance, and what is due of it is counted in allowance: first what has not begun, then what runs, and what was
//! used at its price.

use serde::{Deserialize, Serialize};

use super::PlanTerms;
use super::subscription::{SoldPeriods, Subscription};
use crate::rule::account::{less, sum};
use crate::{Amount, SubscriptionId};

/// What a payment bought of a plan, and from where what went back was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaidPeriods {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// What each period gives.
    pub terms: PlanTerms,
    /// How many.
    pub periods: u32,
    /// They could not be sold, and their price was booked as money.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_money: bool,
    /// What was taken of periods that had not begun.
    #[serde(default)]
    pub of_sold: Amount,
    /// What was taken of the period that ran.
    #[serde(default)]
    pub of_running: Amount,
    /// What had been used, and was taken at its price.
    #[serde(default)]
    pub of_used: Amount,
}

/// Where what goes back, or comes again, is taken from or goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PlanBack {
    /// Of the running period's grant; what comes again is a grant of its own.
    pub(crate) of_running: Amount,
    /// At its price.
    pub(crate) money: Amount,
}

impl PaidPeriods {
    /// What its payment bought.
    pub(crate) fn allowance(&self) -> Amount {
        let each = self.terms.allowance.picos();
        Amount::from_picos(each.saturating_mul(self.periods.into()))
    }

    /// What of it is back.
    pub(crate) fn reversed(&self) -> Amount {
        sum(sum(self.of_sold, self.of_running), self.of_used)
    }

    /// What its payment counts among what was paid, beside the entries of what went back of it.
    pub(crate) fn paid_in(&self) -> Amount {
        if self.is_money {
            return Amount::ZERO;
        }
        let kept = self.terms.worth(less(self.allowance(), self.reversed()));
        sum(kept, self.taken())
    }

    /// What entries have taken of its customer: what had not begun was in no account.
    pub(crate) fn taken(&self) -> Amount {
        sum(self.of_running, self.terms.worth(self.of_used))
    }

    /// What its payment is worth.
    pub(crate) fn price(&self) -> Amount {
        let each = self.terms.price.picos();
        Amount::from_picos(each.saturating_mul(self.periods.into()))
    }

    /// Takes so much more of the allowance that it bought, under its payment's name. `free` is what is free of the running period.
    pub(crate) fn take(
        &mut self,
        payment: &str,
        subscription: Option<&mut Subscription>,
        free: Amount,
        more: Amount,
    ) -> PlanBack {
        let (mut left, mut back) = (more, PlanBack::default());
        if let Some(subscription) = subscription {
            let is_own = |sold: &&mut SoldPeriods| sold.payment.as_deref() == Some(payment);
            for sold in subscription.state.sold.iter_mut().rev().filter(is_own) {
                let taken = sold.left().min(left);
                sold.take(taken);
                left = less(left, taken);
                self.of_sold = sum(self.of_sold, taken);
            }
            subscription.state.sold.retain(|sold| sold.count > 0);
            let running = subscription.state.running.as_ref();
            if running.is_some_and(|running| running.payment.as_deref() == Some(payment)) {
                back.of_running = free.min(left).min(self.terms.allowance);
                left = less(left, back.of_running);
                self.of_running = sum(self.of_running, back.of_running);
            }
        }
        let before = self.terms.worth(self.of_used);
        self.of_used = sum(self.of_used, left);
        back.money = less(self.terms.worth(self.of_used), before);
        back
    }

    /// Gives so much of what was taken again: first what was taken last.
    pub(crate) fn give_again(
        &mut self,
        payment: &str,
        subscription: Option<&mut Subscription>,
        again: Amount,
    ) -> PlanBack {
        let (mut left, mut back) = (again, PlanBack::default());
        let before = self.terms.worth(self.of_used);
        let of_used = self.of_used.min(left);
        self.of_used = less(self.of_used, of_used);
        left = less(left, of_used);
        back.money = less(before, self.terms.worth(self.of_used));
        back.of_running = self.of_running.min(left);
        self.of_running = less(self.of_running, back.of_running);
        left = less(left, back.of_running);
        let of_sold = self.of_sold.min(left);
        self.of_sold = less(self.of_sold, of_sold);
        match subscription {
            Some(subscription) if of_sold.is_positive() => {
                let sold = SoldPeriods::giving(&self.terms, payment, of_sold);
                subscription.state.sold.push(sold);
            }
            Some(_) => {}
            // Nothing is left that could begin.
            None => back.of_running = sum(back.of_running, of_sold),
        }
        back
    }
}

impl SoldPeriods {
    /// Periods that give so much together.
    fn giving(terms: &PlanTerms, payment: &str, amount: Amount) -> Self {
        let (all, each) = (amount.picos(), terms.allowance.picos().max(1));
        let count = all.saturating_add(each.saturating_sub(1)).div_euclid(each);
        let whole = Amount::from_picos(each.saturating_mul(count));
        Self {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            terms: terms.clone(),
            payment: Some(payment.to_owned()),
            taken: less(whole, amount),
        }
    }

    /// Takes of the last of them first; those of which nothing is left are gone.
    fn take(&mut self, amount: Amount) {
        let each = self.terms.allowance.picos().max(1);
        let taken = sum(self.taken, amount).picos();
        let whole = taken.div_euclid(each);
        self.count = self
            .count
            .saturating_sub(u32::try_from(whole).unwrap_or(u32::MAX));
        self.taken = Amount::from_picos(taken.rem_euclid(each));
    }
}

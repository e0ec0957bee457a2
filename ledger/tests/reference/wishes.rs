//! Auto top-up in the reference store: when money is asked for, decided here once more. How wishes end and count is a law of the value.

use serde_json::json;

use super::State;
use super::operations::{Done, amount, not_applicable, picos};
use crate::value::reference::{folded, normal};
use crate::{
    AutoTopUp, AutoTopUpState, Credit, CreditKind, CustomerAct, CustomerId, CustomerStatus,
    EventKind, JournalEntry, OperationId, Refill, Scope, Timestamp, TopUpWish, clock,
};

/// How long a wish is open, in milliseconds.
const OPEN: i64 = 24 * 60 * 60 * 1_000;

impl State {
    fn auto(&self, customer: CustomerId) -> Option<AutoTopUp> {
        let found = self.customers.get(&customer)?;
        found.auto_top_up.as_deref().copied()
    }

    fn set_auto(&mut self, customer: CustomerId, auto: AutoTopUp) {
        if let Some(found) = self.customers.get_mut(&customer) {
            found.auto_top_up = Some(Box::new(auto));
        }
    }

    /// A change of a rule, or of a wish.
    pub(super) fn changed_auto(
        known: Option<AutoTopUp>,
        change: &CustomerAct,
    ) -> Done<Option<AutoTopUp>> {
        let now = clock::now();
        let auto = known.unwrap_or_default();
        match change {
            CustomerAct::SetAutoTopUp(rule) => auto.set(*rule, now).map(Some),
            CustomerAct::ClearAutoTopUp => Ok(known.map(AutoTopUp::cleared)),
            CustomerAct::FailTopUp { number, .. } => auto.failed(*number, now).map(Some),
            _ => Ok(known),
        }
    }

    /// Whether money is wanted now, and how much.
    pub(super) fn wants(&self, customer: CustomerId, now: Timestamp) -> Done<Option<i128>> {
        let found = self.customer(customer)?;
        let Some((auto, rule)) = self
            .auto(customer)
            .and_then(|auto| Some((auto, auto.rule?)))
        else {
            return Ok(None);
        };
        let balance = picos(found.account.credit).saturating_sub(picos(found.account.spent));
        let is_served = found.status == CustomerStatus::Active && picos(found.claim) == 0;
        let is_low = balance < picos(rule.threshold);
        let is_ready = auto.state(now) == Some(AutoTopUpState::Ready);
        let missing = match rule.refill {
            Refill::Amount(always) => picos(always),
            Refill::Target(target) => picos(target).saturating_sub(balance),
        };
        Ok((is_served && is_low && is_ready).then_some(missing))
    }

    /// Asks for money if it is wanted.
    pub(super) fn ask_for_money(&mut self, customer: CustomerId, cause: OperationId) -> Done<()> {
        let now = clock::now();
        let Some(wanted) = self.wants(customer, now)? else {
            return Ok(());
        };
        let auto = self.auto(customer).unwrap_or_default();
        let account = self.customer(customer)?.account;
        let known = self.watched.get(&customer).copied().unwrap_or_default();
        let number = known.seq.saturating_add(1);
        let until = Timestamp::from_millis(now.millis().saturating_add(OPEN));
        let data = json!({
            "reference": format!("auto-top-up:{customer}-{number}"),
            "amount": amount(wanted)?,
            "balance": amount(picos(account.credit).saturating_sub(picos(account.spent)))?,
            "threshold": auto.rule.map(|rule| rule.threshold),
            "until": until,
        });
        self.set_auto(customer, auto.ask(number, amount(wanted)?, now));
        self.tell(customer, cause, EventKind::TopUpWanted, &data);
        Ok(())
    }

    /// A payment came.
    pub(super) fn end_wish(&mut self, entry: &JournalEntry) {
        let named = entry.reference.as_deref().and_then(TopUpWish::named);
        if let (Some((customer, number)), Some(auto)) = (named, self.auto(entry.customer))
            && customer == entry.customer
        {
            self.set_auto(customer, auto.booked(number, clock::now()));
        }
    }

    /// A payment was disputed.
    pub(super) fn distrust(&mut self, customer: CustomerId) {
        if let Some(auto) = self.auto(customer) {
            self.set_auto(customer, auto.disputed());
        }
    }

    /// Refuses the reference of a wish for anything but its payment.
    pub(super) fn check_no_wish(reference: &str) -> Done<()> {
        if folded(reference).starts_with("auto-top-up:") {
            return Err(not_applicable(
                "references that begin with auto-top-up: are those of payments that auto top-ups asked for; choose another",
            ));
        }
        Ok(())
    }

    /// Refuses the reference of a wish for any credit but its payment.
    pub(super) fn check_wish_of(&self, credit: &Credit) -> Done<()> {
        let owner = match credit.to {
            Scope::Key(key) => self.keys.get(&key).map(|key| key.belongs_to),
            Scope::Customer(customer) => Some(customer),
        };
        match (&credit.kind, owner) {
            (CreditKind::TopUp, Some(owner)) => self.check_wish(owner, &credit.reference),
            (CreditKind::TopUp, None) => Ok(()),
            _ => Self::check_no_wish(&credit.reference),
        }
    }

    /// Refuses a payment for a wish that this customer's rule has not made.
    pub(super) fn check_wish(&self, customer: CustomerId, reference: &str) -> Done<()> {
        if !folded(reference).starts_with("auto-top-up:") {
            return Ok(());
        }
        self.customer(customer)?;
        let newest = self.watched.get(&customer).map_or(0, |watch| watch.seq);
        match TopUpWish::named(reference) {
            Some((of, number)) if of == customer && number <= newest => Ok(()),
            _ => Err(not_applicable(&format!(
                "no auto top-up of customer {customer} asked for a payment {:?}",
                normal(reference)
            ))),
        }
    }
}

//! Auto top-up in the reference store: when money is asked for, decided here once more. How wishes end and count is a law of the value.

use serde_json::json;

use super::State;
use super::operations::{Done, amount, not_applicable, picos};
use crate::book::audit;
use crate::value::reference::{folded, normal};
use crate::{
    AutoTopUp, AutoTopUpState, Credit, CreditKind, CustomerAct, CustomerId, CustomerStatus,
    EventKind, JournalEntry, Key, NewVisit, OperationId, Refill, Refusal, Scope, Timestamp,
    TokenId, TopUpWish, clock,
};

/// How long a wish is open, in milliseconds.
const OPEN: i64 = 24 * 60 * 60 * 1_000;

impl State {
    fn auto(&self, customer: CustomerId) -> Option<AutoTopUp> {
        let found = self.customers.get(&customer)?;
        found.auto_top_up.as_deref().cloned()
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
        by: Option<TokenId>,
    ) -> Done<Option<AutoTopUp>> {
        let now = clock::now();
        let auto = known.clone().unwrap_or_default();
        match change {
            CustomerAct::SetAutoTopUp(rule, card) => {
                auto.set(*rule, (by, card.clone()), now).map(Some)
            }
            CustomerAct::ClearAutoTopUp => Ok(known.map(|auto| auto.cleared())),
            CustomerAct::Erase => Ok(known.map(|auto| auto.erased())),
            CustomerAct::FailTopUp { number, reason } => {
                auto.failed(*number, reason.as_deref(), now).map(Some)
            }
            _ => Ok(known),
        }
    }

    /// Whether a token that sells may set or remove the rule of a customer.
    pub(super) fn check_agreed(&self, customer: CustomerId, token: TokenId) -> Done<()> {
        let found = self.customer(customer)?;
        let auto = found.auto_top_up.as_deref().cloned().unwrap_or_default();
        let text = match (auto.rule, auto.by == Some(token)) {
            (Some(_), false) => {
                "this token did not set this customer's auto top-up, and leaves it alone"
            }
            _ if found.token == Some(token) || auto.is_agreed_with(token, clock::now()) => {
                return Ok(());
            }
            _ => "no owner of this customer has agreed at this token's checkout",
        };
        Err(Refusal::NotAllowed(text.to_owned()))
    }

    /// An owner comes to the shop of the token that asks.
    pub(super) fn visit(&mut self, new: &NewVisit) -> Done<Key> {
        let known = self.audited(new.act.operation);
        if let Some(key) = known
            .filter(|act| act.act == "visit")
            .and_then(|act| act.key)
        {
            return self.whole_key(key);
        }
        self.check_unused(new.act.operation)?;
        let token = self.asked_by.token().ok_or(Refusal::NoSuchLink)?;
        let now = clock::now();
        let link = self.links.get(&new.link.0).filter(|(_, end)| now < *end);
        let key = link.ok_or(Refusal::NoSuchLink)?.0;
        let customer = self.active(key, now)?.id;
        if !self.key(key)?.is_owner {
            return Err(Refusal::NoSuchLink);
        }
        let auto = self.auto(customer).unwrap_or_default();
        self.set_auto(customer, auto.visited(token, now));
        self.links.remove(&new.link.0);
        self.write(customer, audit::visit(key, new));
        self.whole_key(key)
    }

    /// Whether money is wanted now, and how much.
    pub(super) fn wants(&self, customer: CustomerId, now: Timestamp) -> Done<Option<i128>> {
        let found = self.customer(customer)?;
        let Some((auto, rule)) = self
            .auto(customer)
            .and_then(|auto| Some((auto.clone(), auto.rule?)))
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

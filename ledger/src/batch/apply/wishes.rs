//! Auto top-up: what operations ask for by a customer's rule, and what ends it. In the transaction of the cause.

use serde_json::json;

use super::acting::{check_acts, refused};
use super::{check_unused, write_act};
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::audit;
use crate::rule::auto_top_up::{AutoTopUp, TopUpWish};
use crate::rule::link::SignInLink;
use crate::table::needs::RowName;
use crate::value::text::clean;
use crate::{
    CustomerId, EventKind, JournalEntry, JudgeTopUp, Key, NewVisit, OperationId, Refusal, TokenId,
};

/// The word of the act with which an owner came to a shop.
const VISIT: &str = "visit";

/// Asks for money if the customer's rule wants some now.
pub(super) fn judge(rows: &mut Rows, customer: CustomerId, cause: OperationId) {
    let now = rows.now();
    let Ok(stored) = rows.customer(customer) else {
        return;
    };
    let of = &stored.customer;
    let (Some(auto), Some(amount)) = (of.auto_top_up.as_deref().cloned(), of.wanted_top_up(now))
    else {
        return;
    };
    // The event that tells of it is the customer's next one.
    let number = stored.watch.seq.saturating_add(1);
    let threshold = auto.rule.map(|rule| rule.threshold);
    let asked = auto.ask(number, amount, now);
    let data = json!({
        "reference": TopUpWish::reference(customer, number),
        "amount": amount,
        "balance": of.account.balance(),
        "threshold": threshold,
        "until": asked.newest().map(|wish| wish.until()),
    });
    rows.set_auto_top_up(customer, asked);
    rows.tell(customer, cause, EventKind::TopUpWanted, &data);
}

/// A payment came: if it is the one that was asked for, nothing is asked for any more.
pub(super) fn booked(rows: &mut Rows, entry: &JournalEntry) {
    let Some((customer, number)) = entry.reference.as_deref().and_then(TopUpWish::named) else {
        return;
    };
    // One that could not be booked may be another customer's now.
    let auto = known(rows, customer).filter(|_| customer == entry.customer);
    if let Some(auto) = auto {
        rows.set_auto_top_up(customer, auto.booked(number, rows.now()));
    }
}

/// A payment of the customer was disputed.
pub(super) fn disputed(rows: &mut Rows, customer: CustomerId) {
    if let Some(auto) = known(rows, customer) {
        rows.set_auto_top_up(customer, auto.disputed());
    }
}

/// Refuses a rule of a customer that has not agreed at this token's checkout, and to replace or remove one that somebody else has set.
pub(super) fn check_agreed(
    rows: &Rows,
    customer: CustomerId,
    token: TokenId,
) -> Result<(), Refusal> {
    let of = &rows.customer(customer)?.customer;
    let auto = of.auto_top_up.as_deref();
    if auto.is_some_and(|auto| auto.rule.is_some() && auto.by != Some(token)) {
        return refused("this token did not set this customer's auto top-up, and leaves it alone");
    }
    if of.token == Some(token) || auto.is_some_and(|auto| auto.is_agreed_with(token, rows.now())) {
        return Ok(());
    }
    refused("no owner of this customer has agreed at this token's checkout")
}

/// Consumes the link with which an owner came to the shop of the token that asks.
fn visit(rows: &mut Rows, new: &NewVisit) -> Result<Key, Refusal> {
    let operation = new.act.operation;
    if let Some(known) = rows.act(operation).filter(|known| known.act == VISIT) {
        return rows.whole_key(known.key.ok_or(Refusal::NoSuchLink)?);
    }
    check_unused(rows, operation)?;
    let token = rows.asked_by.token().ok_or(Refusal::NoSuchLink)?;
    let link = rows.tables.get::<SignInLink>(&new.link.0);
    let link = link.filter(|link| rows.now() < link.expires);
    let key = link.ok_or(Refusal::NoSuchLink)?.key;
    check_acts(rows, key)?;
    let (of_key, stored) = rows.key_and_customer(key)?;
    if !of_key.is_owner {
        return Err(Refusal::NoSuchLink);
    }
    let customer = stored.customer.id;
    let auto = known(rows, customer).unwrap_or_default();
    rows.set_auto_top_up(customer, auto.visited(token, rows.now()));
    rows.tables.take::<SignInLink>(&new.link.0);
    write_act(rows, audit::visit(key, new), customer)?;
    rows.whole_key(key)
}

fn known(rows: &Rows, customer: CustomerId) -> Option<AutoTopUp> {
    let stored = rows.customer(customer).ok()?;
    stored.customer.auto_top_up.as_deref().cloned()
}

impl LedgerOperation for NewVisit {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs::used([Some(self.act.operation), None]).with([RowName::Access(self.link.0)])
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        visit(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for NewVisit {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.check_sells()
    }
}

impl LedgerOperation for JudgeTopUp {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            customers: [Some(self.customer), None],
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        judge(rows, self.customer, self.operation);
        Ok(Outcome::Done)
    }

    fn clean(&mut self) {}
}

//! Auto top-up: what operations ask for by a customer's rule, and what ends it. In the transaction of the cause.

use serde_json::json;

use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::rule::auto_top_up::{AutoTopUp, TopUpWish};
use crate::{CustomerId, EventKind, JournalEntry, JudgeTopUp, OperationId, Refusal};

/// Asks for money if the customer's rule wants some now.
pub(super) fn judge(rows: &mut Rows, customer: CustomerId, cause: OperationId) {
    let now = rows.now();
    let Ok(stored) = rows.customer(customer) else {
        return;
    };
    let of = &stored.customer;
    let (Some(auto), Some(amount)) = (of.auto_top_up.as_deref().copied(), of.wanted_top_up(now))
    else {
        return;
    };
    // The event that tells of it is the customer's next one.
    let number = stored.watch.seq.saturating_add(1);
    let asked = auto.ask(number, amount, now);
    let data = json!({
        "reference": TopUpWish::reference(customer, number),
        "amount": amount,
        "balance": of.account.balance(),
        "threshold": auto.rule.map(|rule| rule.threshold),
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

fn known(rows: &Rows, customer: CustomerId) -> Option<AutoTopUp> {
    let stored = rows.customer(customer).ok()?;
    stored.customer.auto_top_up.as_deref().copied()
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

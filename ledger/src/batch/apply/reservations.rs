//! Reservations: made, prolonged, and ended by their payment or by whoever made them.

use super::delegation;
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::value::text::clean;
use crate::{
    Account, EndReservation, NewReservation, OperationId, Refusal, Reservation, ReservationId,
    TokenId, TokenToday,
};

fn reserve(rows: &mut Rows, new: &NewReservation) -> Result<Reservation, Refusal> {
    let (token, now) = (asker(rows)?, rows.now());
    let known = own(rows, token, new.id).cloned();
    if new.prolongs && known.is_none() {
        return Err(Refusal::NoSuchReservation(new.id));
    }
    let made = new.made(known.as_ref(), token, now)?;
    // What could be booked nowhere is a mistake, and nobody pays for whom it cannot be booked now.
    Account::default().top_up(new.credit)?;
    if let Some(customer) = new.customer {
        delegation::check_payable(rows, customer)?;
        let customer = &rows.customer(customer)?.customer;
        customer.check_open()?;
        if let Some(plan) = &new.plan {
            customer.grants.plans.check_unrenewed(plan)?;
        }
        customer.account.top_up(new.credit)?;
    }
    if !known.is_some_and(|known| known.is_live(now)) {
        let day = rows.token_today(token).day;
        let others = rows.tables.iter::<Reservation>();
        let others = others.filter(|other| other.token == token && other.id != new.id);
        let others: Vec<_> = others.collect();
        TokenToday::check_room(rows.api_token(token)?, &day, &others, new.credit, now)?;
    }
    rows.tables
        .remove(|old: &Reservation| old.token == token && old.is_forgotten(now));
    rows.tables.put(made.clone());
    Ok(made)
}

/// Ends one of the token that asks. It may be gone.
pub(super) fn end(rows: &mut Rows, id: ReservationId) {
    let token = rows.asked_by.token();
    if token.is_some_and(|token| own(rows, token, id).is_some()) {
        rows.tables.take::<Reservation>(&id);
    }
}

/// Whether the token that asks has one, and it still counts.
pub(super) fn is_live(rows: &Rows, id: ReservationId) -> bool {
    let token = rows.asked_by.token();
    let known = token.and_then(|token| own(rows, token, id));
    known.is_some_and(|known| known.is_live(rows.now()))
}

fn own(rows: &Rows, token: TokenId, id: ReservationId) -> Option<&Reservation> {
    let found = rows.tables.get::<Reservation>(&id);
    found.filter(|known| known.token == token)
}

fn asker(rows: &Rows) -> Result<TokenId, Refusal> {
    rows.asked_by
        .token()
        .ok_or_else(|| Refusal::NotAllowed("only a token reserves credit".to_owned()))
}

impl LedgerOperation for NewReservation {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            customers: [self.customer, None],
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        reserve(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for NewReservation {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.check_sells()
    }
}

impl LedgerOperation for EndReservation {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs::default()
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        end(rows, self.id);
        Ok(Outcome::Done)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for EndReservation {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.check_sells()
    }
}

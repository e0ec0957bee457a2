//! Reservations in the reference store, decided here once more.

use std::collections::BTreeMap;

use super::State;
use super::customers::not_closed;
use super::keys::topped_up;
use super::operations::{Done, amount, limit, not_applicable, picos};
use crate::{
    Account, NewPayment, NewReservation, PaymentMoved, Refusal, Reservation, ReservationId,
    SoldOut, Timestamp, TokenId, UtcDay, clock,
};

const MINUTE: i64 = 60_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Reserved {
    pub(super) all: BTreeMap<ReservationId, Reservation>,
    /// The one of the payment that is taken in now.
    paid_for: Option<ReservationId>,
}

impl State {
    fn own_reservation(&self, id: ReservationId) -> Option<&Reservation> {
        let known = self.reserved.all.get(&id)?;
        (Some(known.token) == self.asked_by.token()).then_some(known)
    }

    /// What a token has reserved that counts at an instant, without this one.
    fn live(&self, token: TokenId, at: Timestamp, but: Option<ReservationId>) -> Vec<i128> {
        let all = self.reserved.all.values();
        let others = all.filter(|one| one.token == token && Some(one.id) != but);
        let live = others.filter(|one| at < one.until);
        live.map(|one| picos(one.credit)).collect()
    }

    /// What counts against the daily bound of the token that asks beside what it booked.
    pub(super) fn reserved_by(&self, token: TokenId) -> i128 {
        self.live(token, clock::now(), self.reserved.paid_for)
            .iter()
            .sum()
    }

    pub(super) fn reserve(&mut self, new: &NewReservation) -> Done<Reservation> {
        let Some(token) = self.asked_by.token() else {
            let text = "only a token reserves credit";
            return Err(Refusal::NotAllowed(text.to_owned()));
        };
        let now = clock::now();
        let known = self.own_reservation(new.id).cloned();
        if new.prolongs && known.is_none() {
            return Err(Refusal::NoSuchReservation(new.id));
        }
        if new.until <= now {
            let text = format!("a reservation ends in the future; it is {now} now");
            return Err(limit(&text));
        }
        if let Some(known) = &known
            && (known.credit != new.credit || known.customer != new.customer)
        {
            return Err(not_applicable(&format!(
                "reservation {} is of other credit, or for another customer",
                new.id
            )));
        }
        let made_at = known.as_ref().map_or(now, |known| known.at);
        let minutes: i64 = if new.prolongs { 14 * 24 * 60 } else { 30 };
        let latest = made_at
            .millis()
            .saturating_add(minutes.saturating_mul(MINUTE));
        let until = new.until.millis().min(latest);
        if until <= now.millis() {
            return Err(Refusal::NoSuchReservation(new.id));
        }
        topped_up(Account::default(), new.credit)?;
        if let Some(customer) = new.customer {
            self.check_payable(customer)?;
            not_closed(self.customer(customer)?)?;
            topped_up(self.customer(customer)?.account, new.credit)?;
        }
        if known.is_none_or(|known| known.until <= now) {
            self.check_room(token, new, now)?;
        }
        let forgotten = now.millis().saturating_sub(60 * MINUTE);
        self.reserved
            .all
            .retain(|_, old| old.token != token || old.until.millis() > forgotten);
        let made = Reservation {
            id: new.id,
            token,
            customer: new.customer,
            credit: new.credit,
            until: Timestamp::from_millis(until),
            at: made_at,
        };
        self.reserved.all.insert(new.id, made.clone());
        Ok(made)
    }

    fn check_room(&self, token: TokenId, new: &NewReservation, now: Timestamp) -> Done<()> {
        let today = UtcDay::of(now);
        let booked = self.token_days.get(&(token, today));
        let booked = booked.map_or(0, |day| picos(day.booked));
        let daily = self.token(token)?.daily;
        // What is left for one more at an instant; without bound it is whatever is wanted.
        let left = |at: Timestamp| {
            let all = self.live(token, at, Some(new.id));
            if all.len() >= 1_000 {
                return 0;
            }
            let booked = if UtcDay::of(at) > today { 0 } else { booked };
            daily.map_or(picos(new.credit), |daily| {
                let half = picos(daily).saturating_sub(booked).max(0).div_euclid(2);
                half.saturating_sub(all.iter().sum()).max(0)
            })
        };
        if picos(new.credit) <= left(now) {
            return Ok(());
        }
        let ends = self.reserved.all.values().map(|one| one.until);
        let mut ends: Vec<_> = ends.chain([today.next().begin()]).collect();
        ends.retain(|end| *end > now && picos(new.credit) <= left(*end));
        Err(Refusal::SoldOut(Box::new(SoldOut {
            token,
            credit: new.credit,
            most: amount(left(now))?,
            free_at: ends.into_iter().min(),
        })))
    }

    pub(super) fn end_reservation(&mut self, id: ReservationId) {
        if self.own_reservation(id).is_some() {
            self.reserved.all.remove(&id);
        }
    }

    /// Takes in a payment, and ends what was reserved for it.
    pub(super) fn paid(
        &mut self,
        new: &NewPayment,
        pay: impl FnOnce(&mut Self) -> Done<PaymentMoved>,
    ) -> Done<PaymentMoved> {
        self.reserved.paid_for = new.reservation;
        let moved = pay(self);
        self.reserved.paid_for = None;
        let moved = moved?;
        if let Some(id) = new.reservation {
            self.end_reservation(id);
        }
        Ok(moved)
    }

    /// What is added to the reason of a payment that could not be booked.
    pub(super) fn too_late(&self, new: &NewPayment) -> String {
        let Some(id) = new.reservation else {
            return String::new();
        };
        let is_live = |known: &Reservation| clock::now() < known.until;
        match self.own_reservation(id).filter(|known| is_live(known)) {
            Some(_) => String::new(),
            None => format!("; reservation {id} had ended before"),
        }
    }
}

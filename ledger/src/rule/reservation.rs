//! Reservations: credit that a token keeps free of its daily bound while a buyer pays. Pure.
//!
//! They move no money. One ends by its payment, by whoever made it, or by time; one whose time is over is remembered for an hour, so that
//! a checkout which was completed at the last moment can still keep its place, if there is room.

use std::fmt;

use crate::{
    Act, Amount, CustomerId, Refusal, ReservationId, Timestamp, Token, TokenDay, TokenId,
    TokenToday,
};

/// Live ones of a token; one more is refused.
const MOST: usize = 1_000;
/// How long one lives at most, in milliseconds, from when it is made.
const CHECKOUT: i64 = 30 * 60 * 1_000;
/// The same for a checkout that was completed without its payment.
const UNPAID: i64 = 14 * 24 * 60 * 60 * 1_000;
/// How long one is remembered whose time is over.
const REMEMBERED: i64 = 60 * 60 * 1_000;

/// Credit that is kept for a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Its id.
    pub id: ReservationId,
    /// Whose daily bound it counts against.
    pub token: TokenId,
    /// Who is to get the credit; `None` is a customer that its payment makes.
    pub customer: Option<CustomerId>,
    /// How much.
    pub credit: Amount,
    /// When it ends by itself.
    pub until: Timestamp,
    /// When it was made.
    pub at: Timestamp,
}

impl Reservation {
    /// Whether it still counts.
    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        now < self.until
    }

    /// Whether it can be forgotten.
    pub(crate) fn is_forgotten(&self, now: Timestamp) -> bool {
        self.until.millis().saturating_add(REMEMBERED) <= now.millis()
    }
}

/// A reservation to make, or to prolong because its checkout was completed without its payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReservation {
    /// Its id.
    pub id: ReservationId,
    /// Whether it must be known.
    pub prolongs: bool,
    /// Who is to get the credit; `None` is a customer that its payment makes.
    pub customer: Option<CustomerId>,
    /// The plan that the payment renews from then on, by a card; `None` is plain credit.
    pub plan: Option<String>,
    /// How much.
    pub credit: Amount,
    /// When it is to end; later than it may live means as late as it may.
    pub until: Timestamp,
    /// By whom and when.
    pub act: Act,
}

impl NewReservation {
    /// The reservation that it makes, or makes of one that is known.
    pub(crate) fn made(
        &self,
        known: Option<&Reservation>,
        token: TokenId,
        now: Timestamp,
    ) -> Result<Reservation, Refusal> {
        if self.until <= now {
            let text = format!("a reservation ends in the future; it is {now} now");
            return Err(Refusal::Limit(text));
        }
        if let Some(known) = known
            && (known.credit, known.customer) != (self.credit, self.customer)
        {
            return Err(Refusal::NotApplicable(format!(
                "reservation {} is of other credit, or for another customer",
                self.id
            )));
        }
        let at = known.map_or(now, |known| known.at);
        let life = if self.prolongs { UNPAID } else { CHECKOUT };
        let latest = Timestamp::from_millis(at.millis().saturating_add(life));
        let until = self.until.min(latest);
        if until <= now {
            return Err(Refusal::NoSuchReservation(self.id));
        }
        Ok(Reservation {
            id: self.id,
            token,
            customer: self.customer,
            credit: self.credit,
            until,
            at,
        })
    }
}

/// A reservation to end before its time. It may be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndReservation {
    /// Which.
    pub id: ReservationId,
    /// By whom and when.
    pub act: Act,
}

/// A token cannot reserve so much now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoldOut {
    /// The token.
    pub token: TokenId,
    /// What was wanted.
    pub credit: Amount,
    /// What it can reserve at once now.
    pub most: Amount,
    /// When so much will be free at the latest; `None` if it never is.
    pub free_at: Option<Timestamp>,
}

impl fmt::Display for SoldOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            token,
            credit,
            most,
            free_at,
        } = self;
        write!(
            out,
            "token {token} can reserve {most} USD now, and this is {credit}; "
        )?;
        match free_at {
            Some(at) => write!(out, "so much is free at {at}"),
            None => write!(out, "more than half of its daily bound never is"),
        }
    }
}

impl TokenToday {
    /// What the token can reserve in all: half of what it may still book today. `None` is without bound.
    fn reservable(token: &Token, booked: Amount) -> Option<Amount> {
        let left = token.daily?.picos().saturating_sub(booked.picos());
        Some(Amount::from_picos(left.max(0).div_euclid(2)))
    }

    /// What the token can reserve at once now, beside what it has. `None` is without bound.
    pub fn can_reserve(&self, token: &Token) -> Option<Amount> {
        let all = Self::reservable(token, self.day.booked)?;
        let left = all.picos().saturating_sub(self.reserved.picos());
        Some(Amount::from_picos(left.max(0)))
    }

    /// The largest credit that the token can ever reserve. `None` is without bound.
    pub fn largest_reservation(token: &Token) -> Option<Amount> {
        Self::reservable(token, Amount::ZERO)
    }

    /// Refuses credit that the token has no room for beside these others.
    pub(crate) fn check_room(
        token: &Token,
        day: &TokenDay,
        others: &[&Reservation],
        credit: Amount,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let others: Vec<_> = others.iter().filter(|other| other.is_live(now)).collect();
        let ends = day.day.next().begin();
        let is_room = |at: Timestamp| {
            let left = others.iter().filter(|other| other.is_live(at));
            let (count, reserved) = left.fold((0_usize, 0_i128), |(count, sum), other| {
                let sum = sum.saturating_add(other.credit.picos().into());
                (count.saturating_add(1), sum)
            });
            let booked = if at < ends { day.booked } else { Amount::ZERO };
            let all = Self::reservable(token, booked);
            let wanted = reserved.saturating_add(credit.picos().into());
            count < MOST && all.is_none_or(|all| wanted <= all.picos().into())
        };
        if is_room(now) {
            return Ok(());
        }
        let mut changes: Vec<Timestamp> = others.iter().map(|other| other.until).collect();
        changes.push(ends);
        changes.sort_unstable();
        let reserved = Amount::checked_sum(others.iter().map(|other| other.credit));
        let today = Self::of(token.id, day.day, [day]).reserving(reserved.unwrap_or_default());
        let most = today.can_reserve(token).filter(|_| others.len() < MOST);
        Err(Refusal::SoldOut(Box::new(SoldOut {
            token: token.id,
            credit,
            most: most.unwrap_or_default(),
            free_at: changes.into_iter().find(|at| is_room(*at)),
        })))
    }
}

#[cfg(test)]
#[path = "reservation/tests.rs"]
mod tests;

//! What a token does on one UTC day, and the most that it may. So much, and no more, does a stolen one. Pure.

use std::fmt;

use serde::Serialize;

use crate::value::amount::PICOS_PER_USD;
use crate::{Amount, Refusal, Timestamp, Token, TokenId, TokenRole, UtcDay};

/// What is bounded of a token in a UTC day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DailyBound {
    /// Credit that it books.
    Credit,
    /// Customers that it makes.
    Customers,
    /// Keys that it makes.
    Keys,
    /// Secrets that it replaces.
    Reissues,
    /// Credit that it takes back.
    Reversed,
    /// Payments of which it takes something back for the first time.
    ReversedPayments,
    /// Payments that it has stored as unapplied.
    Unapplied,
}

impl DailyBound {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Credit,
        Self::Customers,
        Self::Keys,
        Self::Reissues,
        Self::Reversed,
        Self::ReversedPayments,
        Self::Unapplied,
    ];
    /// The fewest customers, keys and secrets that a token that sells may make in a day, however little it sells.
    // Otherwise it is one for each dollar of its bound, and a token with a small bound could hardly sell to anybody.
    pub const FEWEST: i64 = 20;
    /// Unapplied payments that a token may have stored in a day.
    // Such a payment moves no money, so no bound of money limits them; each is a row, and an alert that somebody has to look at.
    pub const UNAPPLIED: i64 = 200;
    /// As many payments are taken back in a day as were booked in so many, the day included.
    pub const DAYS: i64 = 60;

    /// Whether it is counted in US dollars.
    const fn is_money(self) -> bool {
        matches!(self, Self::Credit | Self::Reversed)
    }

    /// So much of it, in words.
    #[must_use]
    pub fn words(self, number: i64) -> String {
        match self {
            Self::Credit => format!("credit {} USD", Amount::from_picos(number)),
            Self::Customers => format!("make {number} customers"),
            Self::Keys => format!("make {number} keys"),
            Self::Reissues => format!("reissue {number} keys"),
            Self::Reversed => format!("take back {} USD", Amount::from_picos(number)),
            Self::ReversedPayments => format!("take back of {number} payments"),
            Self::Unapplied => format!("have {number} payments stored as unapplied"),
        }
    }

    /// A number of it as programs read it.
    #[must_use]
    pub fn shown(self, number: i64) -> String {
        if self.is_money() {
            Amount::from_picos(number).to_string()
        } else {
            number.to_string()
        }
    }
}

/// A token would do more in a day than it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyReached {
    /// The token.
    pub token: TokenId,
    /// Of what.
    pub what: DailyBound,
    /// How much it may do, in picodollars or pieces.
    pub most: i64,
    /// How much it has done.
    pub done: i64,
    /// How much it has reserved beside that.
    pub reserved: i64,
    /// How much it would do now.
    pub more: i64,
    /// When the day ends.
    pub ends_at: Timestamp,
}

impl fmt::Display for DailyReached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            token,
            what,
            most,
            done,
            reserved,
            more,
            ends_at,
        } = self;
        let (most, done, more) = (what.words(*most), what.shown(*done), what.shown(*more));
        write!(
            out,
            "token {token} may {most} a day (UTC); {done} are done today, "
        )?;
        if *reserved > 0 {
            write!(out, "{} are reserved, ", what.shown(*reserved))?;
        }
        write!(out, "and this is {more} more; the day ends at {ends_at}")
    }
}

/// What a token does that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenDeed {
    /// Credits this, for a payment or not.
    Books { amount: Amount, is_payment: bool },
    /// Makes a customer.
    Customer,
    /// Makes a key.
    Key,
    /// Replaces a secret.
    Reissue,
    /// Takes this much back, of a payment of which nothing had been taken back before or of one of which something had.
    Reverses { amount: Amount, is_first: bool },
    /// Stores a payment as unapplied.
    Unapplied,
}

/// What a token did on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenDay {
    /// The token.
    pub token: TokenId,
    /// The day, by the ledger's clock.
    pub day: UtcDay,
    /// Credit that it booked.
    pub booked: Amount,
    /// Payments that it booked.
    pub payments: i64,
    /// Customers that it made.
    pub customers: i64,
    /// Keys that it made.
    pub keys: i64,
    /// Secrets that it replaced.
    pub reissues: i64,
    /// Credit that it took back.
    pub reversed: Amount,
    /// Payments of which it took something back for the first time.
    pub reversed_payments: i64,
    /// Payments that it had stored as unapplied.
    pub unapplied: i64,
}

impl TokenDay {
    /// A day on which nothing happened yet.
    #[must_use]
    pub const fn empty(token: TokenId, day: UtcDay) -> Self {
        Self {
            token,
            day,
            booked: Amount::ZERO,
            payments: 0,
            customers: 0,
            keys: 0,
            reissues: 0,
            reversed: Amount::ZERO,
            reversed_payments: 0,
            unapplied: 0,
        }
    }

    /// How much of something was done.
    pub const fn done(&self, what: DailyBound) -> i64 {
        match what {
            DailyBound::Credit => self.booked.picos(),
            DailyBound::Customers => self.customers,
            DailyBound::Keys => self.keys,
            DailyBound::Reissues => self.reissues,
            DailyBound::Reversed => self.reversed.picos(),
            DailyBound::ReversedPayments => self.reversed_payments,
            DailyBound::Unapplied => self.unapplied,
        }
    }
}

/// A day of a token, and what its bounds are reckoned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenToday {
    /// What it did.
    pub day: TokenDay,
    /// Payments that it booked in [`DailyBound::DAYS`] days, this one included.
    lately: i64,
    /// Credit that it has reserved beside what it booked.
    pub reserved: Amount,
}

impl TokenToday {
    /// The first of the days that a day's bounds are reckoned from.
    pub const fn since(today: UtcDay) -> UtcDay {
        UtcDay(
            today
                .number()
                .saturating_sub(DailyBound::DAYS)
                .saturating_add(1),
        )
    }

    /// A token's day, out of the days of any tokens since [`TokenToday::since`].
    pub fn of<'days>(
        token: TokenId,
        today: UtcDay,
        days: impl IntoIterator<Item = &'days TokenDay>,
    ) -> Self {
        let (mut day, mut lately) = (TokenDay::empty(token, today), 0_i64);
        for known in days.into_iter().filter(|known| known.token == token) {
            if known.day == today {
                day = *known;
            }
            if (Self::since(today)..=today).contains(&known.day) {
                lately = lately.saturating_add(known.payments);
            }
        }
        Self {
            day,
            lately,
            reserved: Amount::ZERO,
        }
    }

    /// The same with so much reserved.
    #[must_use]
    pub const fn reserving(self, reserved: Amount) -> Self {
        Self { reserved, ..self }
    }

    /// The most of something that a token may do on this day; `None` if it is not bounded.
    pub fn most(&self, token: &Token, what: DailyBound) -> Option<i64> {
        let daily = token.daily?;
        let dollars = daily.picos().div_euclid(PICOS_PER_USD.cast_signed());
        match (what, token.role) {
            (DailyBound::Credit, _) => Some(daily.picos()),
            (_, TokenRole::Read | TokenRole::Manage) => None,
            (DailyBound::Customers | DailyBound::Keys | DailyBound::Reissues, TokenRole::Sell) => {
                Some(dollars.max(DailyBound::FEWEST))
            }
            (DailyBound::Reversed, TokenRole::Sell) => Some(daily.picos()),
            (DailyBound::ReversedPayments, TokenRole::Sell) => Some(self.lately),
            (DailyBound::Unapplied, TokenRole::Sell) => Some(DailyBound::UNAPPLIED),
        }
    }

    /// The first bound of which a token has reached four fifths, or more.
    pub fn nearly_reached(&self, token: &Token) -> Option<DailyBound> {
        DailyBound::ALL.into_iter().find(|what| {
            let (done, most) = (self.day.done(*what), self.most(token, *what));
            most.is_some_and(|most| {
                done > 0 && i128::from(done).saturating_mul(5) >= i128::from(most).saturating_mul(4)
            })
        })
    }

    /// The day with one more deed.
    ///
    /// # Errors
    /// [`Refusal::DailyReached`] when this is more than a bound leaves.
    pub(crate) fn with(mut self, token: &Token, deed: TokenDeed) -> Result<TokenDay, Refusal> {
        match deed {
            TokenDeed::Books { amount, is_payment } => {
                self.add(token, DailyBound::Credit, amount.picos())?;
                self.day.payments = self.day.payments.saturating_add(i64::from(is_payment));
            }
            TokenDeed::Customer => self.add(token, DailyBound::Customers, 1)?,
            TokenDeed::Key => self.add(token, DailyBound::Keys, 1)?,
            TokenDeed::Reissue => self.add(token, DailyBound::Reissues, 1)?,
            TokenDeed::Reverses { amount, is_first } => {
                self.add(token, DailyBound::Reversed, amount.picos())?;
                if is_first {
                    self.add(token, DailyBound::ReversedPayments, 1)?;
                }
            }
            TokenDeed::Unapplied => self.add(token, DailyBound::Unapplied, 1)?,
        }
        Ok(self.day)
    }

    fn add(&mut self, token: &Token, what: DailyBound, more: i64) -> Result<(), Refusal> {
        let (done, most) = (self.day.done(what), self.most(token, what));
        let sum = done.saturating_add(more);
        let reserved = match what {
            DailyBound::Credit => self.reserved.picos(),
            DailyBound::Customers
            | DailyBound::Keys
            | DailyBound::Reissues
            | DailyBound::Reversed
            | DailyBound::ReversedPayments
            | DailyBound::Unapplied => 0,
        };
        if let Some(most) = most.filter(|most| sum.saturating_add(reserved) > *most) {
            return Err(Refusal::DailyReached(Box::new(DailyReached {
                token: token.id,
                what,
                most,
                done,
                reserved,
                more,
                ends_at: self.day.day.next().begin(),
            })));
        }
        let day = &mut self.day;
        match what {
            DailyBound::Credit => day.booked = Amount::from_picos(sum),
            DailyBound::Customers => day.customers = sum,
            DailyBound::Keys => day.keys = sum,
            DailyBound::Reissues => day.reissues = sum,
            DailyBound::Reversed => day.reversed = Amount::from_picos(sum),
            DailyBound::ReversedPayments => day.reversed_payments = sum,
            DailyBound::Unapplied => day.unapplied = sum,
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "token_day/tests.rs"]
mod tests;

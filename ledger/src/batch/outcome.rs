//! The result of an operation, and what somebody who asked for it is answered.

use std::fmt;
use std::sync::Arc;

use crate::rule::answer::ApiAnswer;
use crate::{
    Customer, EndedHold, GrantAnswer, Held, Key, KeyId, LedgerError, Lot, Moved, PaymentMoved,
    PlanAnswer, Posted, Recovered, Reservation, Token,
};

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done, without a result.
    Done,
    /// The key as it is now.
    Key(Box<Key>),
    /// The customer as it is now.
    Customer(Box<Customer>),
    /// A credit was posted.
    Posted(Box<Posted>),
    /// Money was moved.
    Moved(Box<Moved>),
    /// A payment came, or went back.
    Payment(Box<PaymentMoved>),
    /// The token as it is now.
    Token(Box<Token>),
    /// The lot as it is now.
    Lot(Box<Lot>),
    /// A grant was made or taken back.
    GrantAnswer(Box<GrantAnswer>),
    /// A subscription was changed.
    PlanAnswer(Box<PlanAnswer>),
    /// The reservation as it is now.
    Reservation(Box<Reservation>),
    /// What a token asked for was done, now or before.
    Answered(Box<Answered>),
    /// So much is held.
    Held(Held),
    /// A hold has ended.
    Finished(EndedHold),
    /// The epoch that began.
    Epoch(i64),
    /// The number of recovered holds; `None` if none were left.
    Recovered(Option<Recovered>),
    /// The key that a link belonged to.
    Owner(Option<KeyId>),
}

macro_rules! convert {
    ($($name:ident($of:ty) $(=> $unboxed:tt)?,)+) => {$(
        impl From<$of> for Outcome {
            fn from(of: $of) -> Self {
                Self::$name(of.into())
            }
        }

        impl TryFrom<Outcome> for $of {
            type Error = LedgerError;

            fn try_from(outcome: Outcome) -> Result<Self, LedgerError> {
                match outcome {
                    Outcome::$name(of) => Ok($($unboxed)? of),
                    other => Err(other.unexpected()),
                }
            }
        }
    )+};
}

convert! {
    Key(Key) => *,
    Customer(Customer) => *,
    Posted(Posted) => *,
    Moved(Moved) => *,
    Payment(PaymentMoved) => *,
    Token(Token) => *,
    Lot(Lot) => *,
    GrantAnswer(GrantAnswer) => *,
    PlanAnswer(PlanAnswer) => *,
    Reservation(Reservation) => *,
    Answered(Answered) => *,
    Held(Held),
    Finished(EndedHold),
    Epoch(i64),
    Recovered(Option<Recovered>),
    Owner(Option<KeyId>),
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Done
    }
}

impl TryFrom<Outcome> for () {
    type Error = LedgerError;

    fn try_from(outcome: Outcome) -> Result<(), LedgerError> {
        match outcome {
            Outcome::Done => Ok(()),
            other => Err(other.unexpected()),
        }
    }
}

impl Outcome {
    /// The store applied something other than the requested operation.
    fn unexpected(&self) -> LedgerError {
        LedgerError::unknown(format!(
            "the store answered with {self:?}, which does not belong to the operation"
        ))
    }
}

/// What makes an answer of an outcome, inside the transaction, without secrets.
#[derive(Clone)]
pub struct AnswerOf(Arc<dyn Fn(&Outcome) -> ApiAnswer + Send + Sync>);

impl AnswerOf {
    /// From a function that must give the same answer for the same outcome.
    #[must_use]
    pub fn new(of: impl Fn(&Outcome) -> ApiAnswer + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// The answer to an outcome.
    #[must_use]
    pub fn of(&self, outcome: &Outcome) -> ApiAnswer {
        (self.0)(outcome)
    }
}

impl PartialEq for AnswerOf {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AnswerOf {}

impl fmt::Debug for AnswerOf {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("AnswerOf(…)")
    }
}

/// The result of an [`Asked`](crate::Asked).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// What the operation did; `None` if it was done by an earlier request, whose answer this is.
    pub outcome: Option<Outcome>,
    /// The stored answer; `None` without [`Asked::once`](crate::Asked::once).
    pub answer: Option<ApiAnswer>,
}

impl Answered {
    /// Whether an earlier request did it.
    #[must_use]
    pub const fn is_replay(&self) -> bool {
        self.outcome.is_none()
    }
}

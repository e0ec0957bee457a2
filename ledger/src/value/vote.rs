//! Votes: what a customer's requests of one day have shown about a target.
//!
//! A customer has one vote on each question, target and day; a later one of the same day replaces it, and nobody can replace
//! another's. Votes move no money by themselves and are in no chain. The gateway decides what they mean.

use serde::Serialize;

use crate::CustomerId;

/// Days for which a vote counts: providers change their models, and with them what was learned.
pub const VOTE_DAYS: i64 = 30;

/// What is voted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// How fast the target makes output that its streams do not show, in thousandths of a token a second.
    Pace,
    /// What it counts for a prompt, in thousandths of what we count.
    Count,
    /// Whether it reasoned although a request turned that off: 0 or 1.
    Obeys,
}

impl Question {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pace, Self::Count, Self::Obeys];

    /// The number under which it is stored; a published one never changes.
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::Pace => 1,
            Self::Count => 2,
            Self::Obeys => 3,
        }
    }

    pub(crate) fn of(code: i64) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|question| question.code() == code)
    }
}

/// One customer's vote of one day.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vote {
    /// `provider/model`.
    pub target: String,
    /// What is voted on.
    pub question: Question,
    /// Days since 1970, UTC.
    pub day: i64,
    /// The customer who cast it.
    pub customer: CustomerId,
    /// The median of what its requests have shown that day.
    pub value: u64,
}

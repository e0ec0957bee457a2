//! Whose limits a cap has, and which of them stands. Pure.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Amount;

/// Who set a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapMaker {
    /// Whoever sells, with a command, the console or a token.
    #[default]
    Seller,
    /// The customer, with an owner key.
    Owner,
}

impl CapMaker {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Seller => "seller",
            Self::Owner => "owner",
        }
    }

    /// Who sets the other limit.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Seller => Self::Owner,
            Self::Owner => Self::Seller,
        }
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "what a skipped field is asked with"
    )]
    pub(super) const fn is_seller(&self) -> bool {
        matches!(self, Self::Seller)
    }
}

impl fmt::Display for CapMaker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The limits that seller and owner set in one cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CapLimits {
    /// What the seller allows; `None`: the seller has set nothing.
    pub seller: Option<Amount>,
    /// What the owner allows; the lesser of both stands.
    pub owner: Option<Amount>,
}

impl CapLimits {
    /// That of one of both.
    #[must_use]
    pub const fn of(self, maker: CapMaker) -> Option<Amount> {
        match maker {
            CapMaker::Seller => self.seller,
            CapMaker::Owner => self.owner,
        }
    }

    pub(super) const fn with(self, maker: CapMaker, limit: Option<Amount>) -> Self {
        match maker {
            CapMaker::Seller => Self {
                seller: limit,
                ..self
            },
            CapMaker::Owner => Self {
                owner: limit,
                ..self
            },
        }
    }

    /// Whose limit stands, this limit, and the other one. Of two that are the same it is the seller's.
    pub(super) fn standing(self) -> Option<(CapMaker, Amount, Option<Amount>)> {
        match (self.seller, self.owner) {
            (None, None) => None,
            (Some(seller), None) => Some((CapMaker::Seller, seller, None)),
            (None, Some(owner)) => Some((CapMaker::Owner, owner, None)),
            (Some(seller), Some(owner)) if seller <= owner => {
                Some((CapMaker::Seller, seller, Some(owner)))
            }
            (Some(seller), Some(owner)) => Some((CapMaker::Owner, owner, Some(seller))),
        }
    }
}

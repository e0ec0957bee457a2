//! Who asks for an operation.

use crate::{CapMaker, KeyId, Refusal, TokenId};

/// Who asks for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asker {
    /// Whoever has the ledger itself, with a command or the console.
    #[default]
    House,
    /// A program of the seller's, with this token.
    Token(TokenId),
    /// A customer, with this owner key.
    Owner(KeyId),
}

impl Asker {
    /// The seller's token, if a program of the seller's asks.
    #[must_use]
    pub const fn token(self) -> Option<TokenId> {
        match self {
            Self::Token(token) => Some(token),
            Self::House | Self::Owner(_) => None,
        }
    }

    pub(crate) const fn key(self) -> Option<KeyId> {
        match self {
            Self::Owner(key) => Some(key),
            Self::House | Self::Token(_) => None,
        }
    }

    /// Whose limit a cap of it is.
    pub(crate) const fn caps_as(self) -> CapMaker {
        match self {
            Self::House | Self::Token(_) => CapMaker::Seller,
            Self::Owner(_) => CapMaker::Owner,
        }
    }
}

/// Whoever asks and may do only some of what administrators do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundedAsker {
    /// A token that sells.
    Seller(TokenId),
    /// An owner key: it may make members of its own customer, and manage its keys and caps.
    Owner(KeyId),
}

impl BoundedAsker {
    /// Refuses what is not for it.
    pub(crate) fn refused(self) -> Result<(), Refusal> {
        let why = match self {
            Self::Seller(_) => "a token that sells may not do this",
            Self::Owner(_) => "an owner key may not do this",
        };
        Err(Refusal::NotAllowed(why.to_owned()))
    }

    /// Refuses everybody but sellers.
    pub(crate) fn check_sells(self) -> Result<(), Refusal> {
        match self {
            Self::Seller(_) => Ok(()),
            Self::Owner(_) => self.refused(),
        }
    }
}

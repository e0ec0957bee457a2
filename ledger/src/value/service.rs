//! What an answer was served as, in its provider's own words: it decides which of the provider's prices applies.

use serde::{Deserialize, Serialize};

/// How fast an answer was made, and how dearly.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ServedTier {
    /// At the list price.
    #[default]
    Standard,
    /// Later, for less.
    Flex,
    /// Sooner, for more.
    Fast,
}

impl ServedTier {
    const ALL: [Self; 3] = [Self::Standard, Self::Flex, Self::Fast];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Flex => "flex",
            Self::Fast => "fast",
        }
    }

    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == word)
    }
}

/// Where an answer was made.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ServedRegion {
    /// Wherever the provider has room.
    #[default]
    Global,
    /// In the United States.
    Us,
}

impl ServedRegion {
    const ALL: [Self; 2] = [Self::Global, Self::Us];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Us => "us",
        }
    }

    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.as_str() == word)
    }
}

/// What an answer was billed as. The default is an ordinary answer, which needs no word anywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Served {
    /// The tier or speed.
    pub tier: ServedTier,
    /// In which region it was made.
    pub place: ServedRegion,
    /// Which of the price's tiers of input size applied; 0 is the base price.
    pub context_band: u32,
    /// Which of the provider's accounts (its keys) answered, in the operator's words; empty if it has only one.
    pub account: String,
}

/// The default, for what served nothing.
pub(crate) static ORDINARY: Served = Served {
    tier: ServedTier::Standard,
    place: ServedRegion::Global,
    context_band: 0,
    account: String::new(),
};

impl Served {
    /// The most bytes of an account's name.
    pub(crate) const MOST_OF_ACCOUNT: usize = 256;

    /// Whether there is nothing to say about it.
    pub fn is_ordinary(&self) -> bool {
        self.tier == ServedTier::Standard
            && self.place == ServedRegion::Global
            && self.context_band == 0
            && self.account.is_empty()
    }

    /// The class that its lines name: `fast`, `us`, `fast,us`; `None` is standard.
    pub const fn class(&self) -> Option<&'static str> {
        match (self.tier, self.place) {
            (ServedTier::Standard, ServedRegion::Global) => None,
            (ServedTier::Standard, ServedRegion::Us) => Some("us"),
            (ServedTier::Flex, ServedRegion::Global) => Some("flex"),
            (ServedTier::Flex, ServedRegion::Us) => Some("flex,us"),
            (ServedTier::Fast, ServedRegion::Global) => Some("fast"),
            (ServedTier::Fast, ServedRegion::Us) => Some("fast,us"),
        }
    }
}

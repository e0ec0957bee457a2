//! What an answer was served as, in its provider's own words: it decides which of the provider's prices applies.

use serde::{Deserialize, Serialize};

/// How fast an answer was made, and how dearly.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// At the list price.
    #[default]
    Standard,
    /// Later, for less.
    Flex,
    /// Sooner, for more.
    Fast,
}

impl Tier {
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
pub enum Place {
    /// Wherever the provider has room.
    #[default]
    Global,
    /// In the United States.
    Us,
}

impl Place {
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
    pub tier: Tier,
    /// In which region it was made.
    pub place: Place,
    /// Which of the price's tiers of input size applied; 0 is the base price.
    pub context_band: u32,
    /// Which of the provider's accounts (its keys) answered, in the operator's words; empty if it has only one.
    pub account: String,
}

/// The default, for what served nothing.
pub(crate) static ORDINARY: Served = Served {
    tier: Tier::Standard,
    place: Place::Global,
    context_band: 0,
    account: String::new(),
};

impl Served {
    /// The most bytes of an account's name.
    pub(crate) const MOST_OF_ACCOUNT: usize = 256;

    /// Whether there is nothing to say about it.
    #[must_use]
    pub fn is_ordinary(&self) -> bool {
        self.tier == Tier::Standard
            && self.place == Place::Global
            && self.context_band == 0
            && self.account.is_empty()
    }

    /// The class that its lines name: `fast`, `us`, `fast,us`; `None` is standard.
    #[must_use]
    pub const fn class(&self) -> Option<&'static str> {
        match (self.tier, self.place) {
            (Tier::Standard, Place::Global) => None,
            (Tier::Standard, Place::Us) => Some("us"),
            (Tier::Flex, Place::Global) => Some("flex"),
            (Tier::Flex, Place::Us) => Some("flex,us"),
            (Tier::Fast, Place::Global) => Some("fast"),
            (Tier::Fast, Place::Us) => Some("fast,us"),
        }
    }
}

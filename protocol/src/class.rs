//! Classes: what changes the price of a request besides its tokens. Its tier and speed (`flex`, `fast`), and where it runs (`us`).
//!
//! One table per family: which request field asks for which class, and which member of the answer names the class that was served.
//! Only the answer decides what is billed. The readers apply the tables; what a word costs is in the catalog.

use std::ops::Range;

use serde_json::Value;

use crate::Family;
use crate::json::{Cursor, JsonError, Kind};

/// How a request is queued and how fast it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum ServiceTier {
    /// As everybody's.
    #[default]
    Standard,
    /// Cheaper: it may wait, or be refused.
    Flex,
    /// Dearer: before others, or at a higher speed.
    Fast,
}

/// Where a request runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum RequestRegion {
    /// Anywhere.
    #[default]
    Global,
    /// In the United States.
    Us,
}

/// The classes of one request, asked for or served: at most one tier and one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Classes {
    /// How fast.
    pub tier: ServiceTier,
    /// Where.
    pub place: RequestRegion,
}

impl Classes {
    /// No class.
    pub const STANDARD: Self = Self {
        tier: ServiceTier::Standard,
        place: RequestRegion::Global,
    };

    /// Every combination that has a name.
    pub const NAMED: [Self; 5] = [
        Self::of(ServiceTier::Flex, RequestRegion::Global),
        Self::of(ServiceTier::Fast, RequestRegion::Global),
        Self::of(ServiceTier::Standard, RequestRegion::Us),
        Self::of(ServiceTier::Flex, RequestRegion::Us),
        Self::of(ServiceTier::Fast, RequestRegion::Us),
    ];

    /// These two.
    #[must_use]
    pub const fn of(tier: ServiceTier, place: RequestRegion) -> Self {
        Self { tier, place }
    }

    /// Whether it is no class.
    #[must_use]
    pub const fn is_standard(self) -> bool {
        matches!(self, Self::STANDARD)
    }

    /// Its words, as lines, headers and lists write them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match (self.tier, self.place) {
            (ServiceTier::Standard, RequestRegion::Global) => "standard",
            (ServiceTier::Flex, RequestRegion::Global) => "flex",
            (ServiceTier::Fast, RequestRegion::Global) => "fast",
            (ServiceTier::Standard, RequestRegion::Us) => "us",
            (ServiceTier::Flex, RequestRegion::Us) => "flex,us",
            (ServiceTier::Fast, RequestRegion::Us) => "fast,us",
        }
    }
}

/// What the answer says about the class that was served.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SaidClasses {
    /// The tier, if it is named.
    pub tier: Option<ServiceTier>,
    /// The place, if it is named.
    pub place: Option<RequestRegion>,
    /// The first word that no table knows, shortened.
    pub unknown: Option<Box<str>>,
    /// Some member names a class, in whatever words.
    pub named: bool,
}

impl SaidClasses {
    /// What was served: what is not said was served as asked.
    pub fn served(&self, asked: Classes) -> Classes {
        Classes {
            tier: self.tier.unwrap_or(asked.tier),
            place: self.place.unwrap_or(asked.place),
        }
    }

    /// Adds what an earlier frame did not say.
    pub(crate) fn fill(&mut self, later: &Self) {
        if !later.named {
            return;
        }
        self.tier = self.tier.or(later.tier);
        self.place = self.place.or(later.place);
        if self.unknown.is_none() {
            self.unknown.clone_from(&later.unknown);
        }
        self.named = true;
    }
}

/// What a word asks for, or says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// The provider's account decides; in an answer: nothing.
    Nothing,
    /// No class.
    Standard,
    Tier(ServiceTier),
    Place(RequestRegion),
}

/// One field of a family: what its words ask for in a request, and what they say in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClassField {
    pub(crate) name: &'static str,
    /// The first one that means the standard is what pins write.
    pub(crate) asks: &'static [(&'static str, Means)],
    says: &'static [(&'static str, Means)],
}

const FAST: Means = Means::Tier(ServiceTier::Fast);
const FLEX: Means = Means::Tier(ServiceTier::Flex);

/// Chat and responses: the body, the last chunk that has it, or the event that ends a stream names the tier.
#[rustfmt::skip]
pub(crate) const CHAT: &[ClassField] = &[ClassField {
    name: "service_tier",
    asks: &[
        ("default", Means::Standard), ("scale", Means::Standard), ("auto", Means::Nothing),
        ("flex", FLEX), ("priority", FAST), ("fast", FAST),
    ],
    says: &[
        ("default", Means::Tier(ServiceTier::Standard)), ("standard", Means::Tier(ServiceTier::Standard)), ("on_demand", Means::Tier(ServiceTier::Standard)),
        ("scale", Means::Tier(ServiceTier::Standard)), ("flex", FLEX), ("priority", FAST), ("fast", FAST), ("auto", Means::Nothing),
    ],
}];

/// As in chat.
pub(crate) const RESPONSES: &[ClassField] = CHAT;

/// Messages: members of the usage, which `message_start` names and which stand. Its `priority` is capacity that was paid for before.
#[rustfmt::skip]
pub(crate) const MESSAGES: &[ClassField] = &[
    ClassField {
        name: "service_tier",
        asks: &[("standard_only", Means::Standard), ("auto", Means::Nothing)],
        says: &[("standard", Means::Standard), ("priority", Means::Standard)],
    },
    ClassField {
        name: "speed",
        asks: &[("standard", Means::Standard), ("fast", FAST)],
        says: &[("standard", Means::Tier(ServiceTier::Standard)), ("fast", FAST)],
    },
    ClassField {
        name: "inference_geo",
        asks: &[("global", Means::Standard), ("us", Means::Place(RequestRegion::Us))],
        says: &[
            ("global", Means::Place(RequestRegion::Global)), ("us", Means::Place(RequestRegion::Us)), ("not_available", Means::Nothing),
        ],
    },
];

/// A family's table.
pub(crate) fn fields(family: Family) -> &'static [ClassField] {
    match family {
        Family::Chat => CHAT,
        Family::Responses => RESPONSES,
        Family::Messages => MESSAGES,
    }
}

/// A class field that a request has, `null` excepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassPlace {
    /// Its name.
    pub name: &'static str,
    /// Where its value is, quotes included.
    pub at: Range<usize>,
    /// It asks for nothing, so that the provider's account would decide.
    pub idle: bool,
}

pub(crate) fn find(fields: &[ClassField], name: &str) -> Option<ClassField> {
    fields.iter().find(|field| field.name == name).copied()
}

pub(crate) fn meaning(words: &[(&str, Means)], word: &str) -> Option<Means> {
    let known = words.iter().find(|(known, _)| *known == word);
    known.map(|(_, means)| *means)
}

/// Longest unknown word that is kept.
const LONGEST_WORD: usize = 40;

/// Reads a member of an answer if it names a class. Returns whether it does.
pub(crate) fn say(
    fields: &[ClassField],
    name: &str,
    cursor: &mut Cursor<'_>,
    said: &mut SaidClasses,
) -> Result<bool, JsonError> {
    let Some(field) = find(fields, name) else {
        return Ok(false);
    };
    let value = cursor.skip()?;
    if value.kind == Kind::Null {
        return Ok(true);
    }
    let word = cursor.text_of(&value);
    match word.as_deref().and_then(|word| meaning(field.says, word)) {
        Some(Means::Nothing) => return Ok(true),
        Some(Means::Standard) => {}
        Some(Means::Tier(tier)) => said.tier = Some(tier),
        Some(Means::Place(place)) => said.place = Some(place),
        None => {
            let word = word.as_deref().unwrap_or("(not a word)");
            said.unknown = Some(word.chars().take(LONGEST_WORD).collect());
        }
    }
    said.named = true;
    Ok(true)
}

/// The words with which a family asks for a tier: the field and the value. `None` if it has none.
pub(crate) fn tier_words(
    fields: &[ClassField],
    tier: ServiceTier,
) -> Option<(&'static str, &'static str)> {
    asking(fields, Means::Tier(tier))
}

fn asking(fields: &[ClassField], wanted: Means) -> Option<(&'static str, &'static str)> {
    fields.iter().find_map(|field| {
        let (word, _) = field.asks.iter().find(|(_, means)| *means == wanted)?;
        Some((field.name, *word))
    })
}

/// The field with which a family asks for these classes; that of the tier if there are two.
pub(crate) fn field_for(fields: &[ClassField], classes: Classes) -> Option<&'static str> {
    let wanted = match (classes.tier, classes.place) {
        (ServiceTier::Standard, place) => Means::Place(place),
        (tier, _) => Means::Tier(tier),
    };
    asking(fields, wanted).map(|(field, _)| field)
}

/// The classes that a parsed request asks for; words that are not known ask for nothing.
pub(crate) fn read(fields: &[ClassField], request: &Value) -> Classes {
    let mut classes = Classes::STANDARD;
    for field in fields {
        let word = request[field.name].as_str();
        match word.and_then(|word| meaning(field.asks, word)) {
            Some(Means::Tier(tier)) => classes.tier = tier,
            Some(Means::Place(place)) => classes.place = place,
            Some(Means::Nothing | Means::Standard) | None => {}
        }
    }
    classes
}

/// The word with which an answer of chat or responses names a tier.
pub(crate) const fn tier_said(tier: ServiceTier) -> &'static str {
    match tier {
        ServiceTier::Standard => "default",
        ServiceTier::Flex => "flex",
        ServiceTier::Fast => "priority",
    }
}

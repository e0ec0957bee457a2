//! What can be said of the service behind a target: what an output limit bounds there, whether it stops when its stream is closed, and
//! how fast it is.

use farebox_protocol::{Classes, ServiceTier};
use serde::Deserialize;

/// What an output limit bounds at a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitBinds {
    /// Everything that is billed as output.
    All,
    /// Text and calls: reasoning comes beside it.
    Text,
    /// Nothing: the field is refused, or ignored.
    None,
}

impl LimitBinds {
    /// All of them.
    pub const EVERY: [Self; 3] = [Self::All, Self::Text, Self::None];

    /// The word in the files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Text => "text",
            Self::None => "none",
        }
    }
}

/// Tokens a second by class, as far as somebody names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "SpeedFact")]
pub struct Speeds {
    /// Without a class.
    pub standard: Option<u32>,
    /// Of `flex`; the standard one if unset.
    pub flex: Option<u32>,
    /// Of `fast`; the standard one if unset.
    pub fast: Option<u32>,
}

/// A number for every class, or a table by class.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum SpeedFact {
    Number(u32),
    Table {
        standard: Option<u32>,
        flex: Option<u32>,
        fast: Option<u32>,
    },
}

impl From<SpeedFact> for Speeds {
    fn from(fact: SpeedFact) -> Self {
        match fact {
            SpeedFact::Number(all) => Self::all(all),
            SpeedFact::Table {
                standard,
                flex,
                fast,
            } => Self {
                standard,
                flex,
                fast,
            },
        }
    }
}

impl Speeds {
    /// The same in every class.
    #[must_use]
    pub const fn all(speed: u32) -> Self {
        Self {
            standard: Some(speed),
            flex: None,
            fast: None,
        }
    }

    /// In a class. A place changes nothing.
    pub fn of(&self, class: Classes) -> Option<u32> {
        let own = match class.tier {
            ServiceTier::Standard => None,
            ServiceTier::Flex => self.flex,
            ServiceTier::Fast => self.fast,
        };
        own.or(self.standard)
    }

    /// These, and the others' for classes of which these say nothing.
    pub(super) fn or(self, others: Self) -> Self {
        let [flex, fast] = [ServiceTier::Flex, ServiceTier::Fast].map(|tier| {
            let class = Classes {
                tier,
                ..Classes::STANDARD
            };
            self.of(class).or(others.of(class))
        });
        Self {
            standard: self.standard.or(others.standard),
            flex,
            fast,
        }
    }

    /// `150 tokens/s, fast 400`; empty if nobody names one.
    pub fn shown(&self) -> String {
        let class = |name: &str, own: Option<u32>| {
            let own = own.filter(|own| Some(*own) != self.standard);
            own.map(|speed| format!("{name}{speed} tokens/s"))
        };
        let standard = self.standard.map(|speed| format!("{speed} tokens/s"));
        let parts = [
            standard,
            class("flex ", self.flex),
            class("fast ", self.fast),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// What a provider's table, or a target, says of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServiceWords {
    /// What of an answer the output limit binds, where somebody says so.
    pub limit: Option<LimitBinds>,
    /// `stops`; only a provider says it.
    pub stops: Option<bool>,
    /// Tokens a second, by class.
    pub speed: Speeds,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Classes = Classes {
        tier: ServiceTier::Fast,
        ..Classes::STANDARD
    };

    #[test]
    fn a_class_without_a_speed_has_the_standard_one() {
        let table = Speeds {
            standard: Some(150),
            flex: None,
            fast: Some(400),
        };
        let flex = Classes {
            tier: ServiceTier::Flex,
            ..Classes::STANDARD
        };
        assert_eq!(
            [Classes::STANDARD, flex, FAST].map(|class| table.of(class)),
            [Some(150), Some(150), Some(400)]
        );
        assert_eq!(table.shown(), "150 tokens/s, fast 400 tokens/s");
        assert_eq!(Speeds::default().shown(), "");
    }

    #[test]
    fn the_nearest_that_names_a_speed_wins_for_each_class() {
        let [own, listed] = [Speeds::all(80), Speeds::all(3_000)];
        assert_eq!(own.or(listed).of(FAST), Some(80), "a number is for all");
        let fast_only = Speeds {
            fast: Some(400),
            ..Speeds::default()
        };
        let both = fast_only.or(listed);
        assert_eq!((both.of(FAST), both.standard), (Some(400), Some(3_000)));
        assert_eq!(Speeds::default().or(listed).of(FAST), Some(3_000));
    }

    #[test]
    fn the_librarys_speed_is_a_number_or_a_table() {
        #[derive(Deserialize)]
        struct Row {
            speed: Speeds,
        }
        let read = |text: &str| toml::from_str::<Row>(text).unwrap().speed;
        assert_eq!(read("speed = 500"), Speeds::all(500));
        assert_eq!(
            read("speed = { standard = 150, fast = 400 }").of(FAST),
            Some(400)
        );
    }
}

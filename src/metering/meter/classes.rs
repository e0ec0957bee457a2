//! At which class's price an answer is charged: the one that was served, but never more than the dearest of what was asked for and the
//! standard. What a dearer one costs beyond that is the operator's loss.

use farebox_ledger::{Amount, Usage};
use farebox_protocol::{Classes, SaidClasses};

use super::{Meter, price};
use crate::config::Price;

/// What was served, and where the answer leaves that open or says something else than was sold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClassTrouble {
    /// A dearer class than was asked for.
    Dearer(Classes),
    /// A word that no table knows.
    Unknown(Box<str>),
    /// No word, where the target has named one before.
    Missing,
}

impl Meter {
    /// Takes what the answer says about its class; the last word stands.
    pub fn hear(&mut self, said: &SaidClasses) {
        if said.named {
            self.said.clone_from(said);
        }
    }

    /// What the answer says about its class.
    pub fn said(&self) -> &SaidClasses {
        &self.said
    }

    /// The class that was served, as far as it is known.
    pub fn served(&self) -> Classes {
        self.said.served(self.start.classes)
    }

    /// The prices by which money is held.
    pub(super) fn held(&self) -> &Price {
        self.model.price.held(self.start.classes)
    }

    /// The price at which a usage is charged, and its class.
    pub(super) fn sold_at(&self, first: &Usage, further: &[Usage]) -> (&Price, Classes) {
        let (price, served) = (&self.model.price, self.served());
        if served.is_standard() && self.start.classes.is_standard() {
            return (price, served);
        }
        let costs = |classes: Classes| {
            let of = price.of(classes)?;
            Some((price::picos(of, first, further), of, classes))
        };
        let standard = (
            price::picos(price, first, further),
            price,
            Classes::STANDARD,
        );
        let asked = costs(self.start.classes).unwrap_or(standard);
        let (dearest, cheapest) = if asked.0 > standard.0 {
            (asked, standard)
        } else {
            (standard, asked)
        };
        let (_, price, class) = match costs(served) {
            Some(served) if served.0 <= dearest.0 => served,
            // Cheaper at the provider, by how much nobody knows.
            None if served < self.start.classes => cheapest,
            Some(_) | None => dearest,
        };
        (price, class)
    }

    /// The price at which a usage is charged.
    pub fn price_of(&self, usage: &Usage) -> &Price {
        let (first, further) = self.steps(usage);
        self.sold_at(&first, further).0
    }

    /// What a dearer class than was asked for costs beyond the charge; `None` where it was not dearer. Zero if it has no price.
    pub fn dearer(&self, usage: &Usage) -> Option<Amount> {
        let served = self.served();
        if served.is_standard() || served == self.start.classes {
            return None;
        }
        let (first, further) = self.steps(usage);
        let (price, class) = self.sold_at(&first, further);
        if class == served {
            return None;
        }
        let Some(own) = self.model.price.of(served) else {
            return (!is_cheaper(served)).then_some(Amount::ZERO);
        };
        let charged = price::picos(price, &first, further);
        let beyond = price::picos(own, &first, further).saturating_sub(charged);
        Some(price::to_amount(beyond.max(0)))
    }

    /// What the operator should know about the class of this answer. `names`: its target has named one before.
    pub fn class_trouble(&self, usage: &Usage, names: bool) -> Option<ClassTrouble> {
        if self.dearer(usage).is_some() {
            return Some(ClassTrouble::Dearer(self.served()));
        }
        match &self.said.unknown {
            Some(word) => Some(ClassTrouble::Unknown(word.clone())),
            None => (names && !self.said.named).then_some(ClassTrouble::Missing),
        }
    }
}

/// Whether a class that has no price here is the cheap one.
fn is_cheaper(classes: Classes) -> bool {
    classes
        == Classes::of(
            farebox_protocol::ServiceTier::Flex,
            farebox_protocol::RequestRegion::Global,
        )
}

//! Prices of models and targets: exact rates for each kind of tokens, and for each class. `read/price.rs` and `read/classes.rs` parse
//! them, `read/price.rs` prints them.

use std::collections::BTreeSet;

use farebox_ledger::Amount;
use farebox_protocol::Classes;

/// Prices of a model: picodollars per token, size tiers that reprice the whole request, and classes that reprice all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// Rates below every tier.
    pub base: Rates,
    /// Tiers by rising `above_input`: the last one whose bound the request's input exceeds applies.
    pub tiers: Vec<(u64, Rates)>,
    /// The prices of classes, each combination that is sold.
    pub classes: Vec<ClassPrice>,
}

/// The price of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassPrice {
    /// The class.
    pub classes: Classes,
    /// The factor in thousandths, if it is one.
    pub times: Option<u32>,
    /// Its rates and tiers; without further classes.
    pub price: Price,
    /// The dearer of each rate and the standard one, for holds.
    pub held: Price,
    /// The most input that it is sold for.
    pub context: Option<u64>,
}

/// Picodollars per unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Fresh input token.
    pub input: Amount,
    /// For each output token.
    pub output: Amount,
    /// Input token read from a cache; the input rate when unset.
    pub cache_read: Amount,
    /// Input token written to a cache; the input rate when unset.
    pub cache_write: Amount,
    /// Input token written for one hour; requests that ask for it are refused when unset.
    pub cache_write_1h: Option<Amount>,
    /// The same for twelve hours.
    pub cache_write_12h: Option<Amount>,
    /// Reasoning token; the output rate when unset.
    pub reasoning: Amount,
    /// One picture; zero when unset.
    pub per_image: Amount,
    /// One request; zero when unset.
    pub per_request: Amount,
}

impl Price {
    /// The price of a class; `None` if it is not sold. Nearly every request is standard, which costs one comparison.
    #[must_use]
    pub fn of(&self, classes: Classes) -> Option<&Self> {
        if classes.is_standard() {
            return Some(self);
        }
        self.class(classes).map(|class| &class.price)
    }

    /// What a class is sold for; `None` for the standard and for what is not sold.
    pub fn class(&self, classes: Classes) -> Option<&ClassPrice> {
        self.classes.iter().find(|class| class.classes == classes)
    }

    /// The dearest of the standard and a class, by which money is held.
    #[must_use]
    pub fn held(&self, classes: Classes) -> &Self {
        if classes.is_standard() {
            return self;
        }
        self.class(classes).map_or(self, |class| &class.held)
    }

    /// The smallest input of each size that this price or another one distinguishes: 0, and what is just above each bound.
    pub(super) fn sizes_with(&self, other: &Self) -> BTreeSet<u64> {
        let bounds = self.tiers.iter().chain(&other.tiers);
        let above = bounds.map(|(above, _)| above + 1);
        std::iter::once(0).chain(above).collect()
    }

    /// The dearer of each rate; both have the same tiers.
    pub(super) fn dearer(&self, other: &Self) -> Self {
        let tiers = self.tiers.iter().zip(&other.tiers);
        Self {
            base: self.base.dearer(&other.base),
            tiers: tiers
                .map(|((above, one), (_, other))| (*above, one.dearer(other)))
                .collect(),
            classes: Vec::new(),
        }
    }
}

impl Rates {
    /// Those of what has an input and no output.
    pub(super) fn of_input(input: Amount, per_request: Amount) -> Self {
        Self {
            input,
            output: Amount::ZERO,
            cache_read: input,
            cache_write: input,
            cache_write_1h: None,
            cache_write_12h: None,
            reasoning: Amount::ZERO,
            per_image: Amount::ZERO,
            per_request,
        }
    }

    /// The same with each rate of a token changed; `None` if one cannot be.
    pub(super) fn each_token(mut self, change: impl Fn(Amount) -> Option<Amount>) -> Option<Self> {
        let Self {
            input,
            output,
            cache_read,
            cache_write,
            cache_write_1h,
            cache_write_12h,
            reasoning,
            per_image: _,
            per_request: _,
        } = &mut self;
        let always = [input, output, cache_read, cache_write, reasoning];
        let sold = [cache_write_1h, cache_write_12h].into_iter().flatten();
        for rate in always.into_iter().chain(sold) {
            *rate = change(*rate)?;
        }
        Some(self)
    }

    pub(super) fn dearer(&self, other: &Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: self.cache_read.max(other.cache_read),
            cache_write: self.cache_write.max(other.cache_write),
            cache_write_1h: self.cache_write_1h.max(other.cache_write_1h),
            cache_write_12h: self.cache_write_12h.max(other.cache_write_12h),
            reasoning: self.reasoning.max(other.reasoning),
            per_image: self.per_image.max(other.per_image),
            per_request: self.per_request.max(other.per_request),
        }
    }
}

//! What an answer costs whose customer left, and how much of that is a guess.
//!
//! Chat and responses streams are counted only at their end. Until then nobody knows whether the prompt was read from a cache,
//! written to one, or neither, and whether the silence was reasoning. The guess has to be right on average; where it could be far
//! off, reading on until the provider counts is cheaper than guessing.

use farebox_ledger::{Amount, Evidence, Usage};

use super::{Local, Meter, estimate, price};

impl Meter {
    /// Sets whether the prompt is marked for a cache at a provider that reports cache writes only at the end.
    pub fn mark_cache(&mut self, marked: bool) {
        self.cache_marked = marked;
    }

    /// Sets how many tokens of the prompt the provider has probably cached.
    pub fn know_cached(&mut self, tokens: u64) {
        self.cached = tokens;
    }

    /// The provider's count, if it has said what the prompt was.
    pub fn prompt(&self) -> Option<&Usage> {
        self.report.prompt()
    }

    fn knows_prompt(&self) -> bool {
        self.prompt().is_some()
    }

    /// Tokens of the prompt, as they are likely.
    pub fn likely_input(&self) -> u64 {
        self.near(None).input
    }

    /// What a token of the prompt costs at most above one that was cached.
    pub fn fresh_above_cached(&self) -> Amount {
        let rates = self.rates();
        let dearest = price::dearest_input(rates, self.start.lifetimes);
        price::to_amount(
            dearest
                .saturating_sub(rates.cache_read.picos().into())
                .max(0),
        )
    }

    /// What a cut answer used: of a prompt that the provider has not counted, what is probably cached was read from the cache, and
    /// the rest was written to it if it was marked. A write that costs less than input is charged as input, because nobody knows
    /// whether it happened.
    pub(super) fn left(&self, local: Local) -> Usage {
        let mut usage = self.running(local);
        if self.knows_prompt() {
            return usage;
        }
        usage.cache_read = self.cached.min(usage.input);
        usage.input = usage.input.saturating_sub(usage.cache_read);
        let rates = self.rates();
        let (rate, lifetime) = self.start.lifetimes.dearest(rates);
        if self.cache_marked && rate >= rates.input {
            usage[lifetime] = std::mem::take(&mut usage.input);
        }
        usage
    }

    /// Who counted a cut answer: we did, with or without what its customer's last request has taught.
    pub(super) fn evidence_of_left(&self) -> Evidence {
        if self.cached > 0 && !self.knows_prompt() {
            Evidence::Learned
        } else {
            Evidence::Local
        }
    }

    /// How far our guess may be off, in picodollars: between the dearest and the cheapest that the prompt may have been, and all output
    /// that is not shown. Nothing if the provider has counted.
    pub fn uncertain(&self) -> i128 {
        if self.knows_prompt() || self.report.complete {
            return 0;
        }
        let rates = self.rates();
        let written = if self.cache_marked {
            price::dearest_input(rates, self.start.lifetimes)
        } else {
            i128::from(rates.input.picos())
        };
        let read = i128::from(rates.cache_read.min(rates.input).picos());
        let prompt = price::times(written.saturating_sub(read), self.near(None).input);
        let unshown = self.unshown(estimate::upper(self.shown));
        prompt.saturating_add(self.cost_of_output(unshown))
    }

    /// What so many tokens of output cost at most, in picodollars.
    pub fn cost_of_output(&self, tokens: u64) -> i128 {
        price::times(price::dearest_output(self.rates()), tokens)
    }
}

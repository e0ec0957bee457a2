//! What a running answer may cost: what its hold has to cover, and when it has to end.
//!
//! Two bounds. The hold grows by the higher one, at the highest rates. The stream ends by the lower one: what it may really cost, and
//! never more than at the limit that its target was sent.

use farebox_ledger::{Amount, Usage};

use super::{COUNTED_UP, Meter, USUAL, local, price};

impl Meter {
    /// An upper bound of the cost so far, which the hold must cover: what the provider has not counted yet is priced at the highest
    /// rates, because it may turn out to be of the most expensive class. This is never charged; see [`Meter::charge_if_cut`].
    #[must_use]
    pub fn cost_at_most(&self) -> Amount {
        self.cost_with(
            self.uncounted_output()
                .saturating_add(self.hidden_at_most()),
        )
    }

    /// What a stream may never run beyond unpaid. Hidden output, which is only assumed, is no part of it where the whole limit is
    /// held, unless the provider's limit does not include reasoning.
    #[must_use]
    pub fn cost_due(&self) -> Amount {
        self.due_with(0)
    }

    /// The same if every byte that nobody has counted yet is a token: no text is denser.
    #[must_use]
    pub fn cost_if_dense(&self) -> Amount {
        self.due_with(self.unweighed())
    }

    /// What the answer costs at its limit; `None` where the limit does not bound it.
    #[must_use]
    pub fn cost_at_limit(&self) -> Option<Amount> {
        self.room().map(|room| self.due_of(room))
    }

    /// Whether the target may have shown more than its limit, as far as a tokenizer has read the text.
    #[must_use]
    pub fn may_exceed_limit(&self) -> bool {
        let at_worst = self.shown_at_most().saturating_add(self.unweighed());
        at_worst > self.output_limit && !self.is_read()
    }

    fn due_with(&self, dense: u64) -> Amount {
        let hidden = if self.reasoning_outside || self.hiding.ends {
            self.hidden_at_most()
        } else {
            0
        };
        let produced = self.uncounted_output().saturating_add(hidden);
        self.due_of(
            produced
                .saturating_add(dense)
                .min(self.room().unwrap_or(u64::MAX)),
        )
    }

    fn due_of(&self, output: u64) -> Amount {
        let picos = self.counted_due.saturating_add(self.compaction);
        price::to_amount(picos.saturating_add(self.cost_of_output(output)))
    }

    /// Output that the limit sent leaves to the target beside what [`Self::counted_due`] includes. `None` where reasoning comes on
    /// top of the limit, or where the target has shown clearly more: our count is near once a tokenizer has read the text, and may
    /// be twice the truth before.
    fn room(&self) -> Option<u64> {
        let doubt = if self.is_read() {
            self.output_limit / 8
        } else {
            self.output_limit
        };
        let ignored = self.shown_at_most() > self.output_limit.saturating_add(doubt);
        let left = self.output_limit.saturating_sub(self.priced_output());
        (!self.reasoning_outside && !ignored).then_some(left)
    }

    /// Whether a tokenizer or the provider has counted nearly all that was shown.
    fn is_read(&self) -> bool {
        self.unweighed() <= self.shown.bytes() / 8
    }

    fn shown_at_most(&self) -> u64 {
        self.counted_output()
            .saturating_add(self.uncounted_output())
    }

    fn cost_with(&self, uncounted: u64) -> Amount {
        let output = self.cost_of_output(uncounted);
        price::to_amount(
            self.counted_cost
                .saturating_add(self.compaction)
                .saturating_add(output),
        )
    }

    /// The provider's count, if it has counted the prompt.
    fn counted_prompt(&self) -> Option<&Usage> {
        // Some providers report zeros until the end.
        let counted = |usage: &&Usage| self.complete || usage.prompt() > 0;
        self.reported.as_ref().filter(counted)
    }

    /// The output that [`Self::counted_cost`] includes.
    fn priced_output(&self) -> u64 {
        let counted = self.counted_output();
        if self.counted_prompt().is_some() {
            counted
        } else {
            counted.max(self.predicted)
        }
    }

    /// Computes [`Self::counted_cost`] and [`Self::counted_due`], which are valid until the next report.
    pub(super) fn price_counted(&mut self) {
        let (rates, lifetimes) = (self.rates(), self.lifetimes);
        (self.counted_cost, self.counted_due) = match self.counted_prompt() {
            Some(usage) => {
                let (first, further) = self.steps(usage);
                let counted = price::picos(self.held(), &first, further);
                (counted, counted)
            }
            None => (
                self.price_estimated(price::dearest_input(rates, lifetimes)),
                self.price_estimated(price::likely_input(rates, self.may_write, lifetimes)),
            ),
        };
    }

    /// The price of what was asked, whose input costs so much a token, and of the output that is known of.
    fn price_estimated(&self, rate: i128) -> i128 {
        let rates = self.rates();
        let images = price::times(i128::from(rates.per_image.picos()), self.images);
        let counted = (self.input_known)
            .map(|tokens| local::unrounded(tokens).saturating_mul(USUAL + COUNTED_UP) / USUAL);
        let input = counted.unwrap_or(self.estimated_input);
        price::times(rate, input)
            .saturating_add(images)
            .saturating_add(self.cost_of_output(self.priced_output()))
            .saturating_add(i128::from(rates.per_request.picos()))
    }
}

//! What the provider may bill for an answer, whatever the customer is charged: our best estimate, without the rounding in the
//! customer's favour, and with output that nobody received.
//!
//! The difference between the two, at the catalog's prices, is the operator's exposure. It is an estimate of a bill, not a worst
//! case, because it can slow a key down. Must not change what is charged.

use std::time::Duration;

use farebox_ledger::{Evidence, Usage};

use super::{Counted, Ending, Local, Meter};

/// A claim above this many times the highest possible charge is not expected to be billed.
// A provider that counts otherwise (reasoning beyond the limit, dearer pictures) is a few times above it. One whose counter is broken
// is above it by any factor, and its claim would stop a key over a bill that never comes.
const CREDIBLE: u64 = 10;

/// Why the provider's own count was not charged as reported. Each reason has its own remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Miscount {
    /// It sent no count, or zero although text was shown.
    Missing,
    /// More input than the model's context.
    AboveContext,
    /// More input than the request can be.
    AboveRequest,
    /// More output than twice the limit sent.
    AboveLimit,
    /// Numbers that contradict each other or are not valid.
    Malformed,
}

impl Miscount {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Missing,
        Self::AboveContext,
        Self::AboveRequest,
        Self::AboveLimit,
        Self::Malformed,
    ];

    /// The word in metrics and `/status`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::AboveContext => "above_context",
            Self::AboveRequest => "above_request",
            Self::AboveLimit => "above_limit",
            Self::Malformed => "malformed",
        }
    }
}

impl Meter {
    /// What the provider may count for an answer that ended like this; `None` if it produced nothing that it could bill.
    pub(super) fn owed(
        &self,
        ending: Ending,
        charged: &Counted,
        local: Option<Local>,
    ) -> Option<Usage> {
        let near = self.near(local);
        let usage = match (ending, charged.evidence) {
            (Ending::Nothing, _) => return None,
            (_, Some(Evidence::Provider)) => charged.usage,
            (Ending::Complete, _) => match &self.report.claimed {
                Some((claimed, _)) => self.credible(claimed, &charged.usage),
                // It ended well and did not count: what was shown, and what it has probably hidden.
                None => self.running(near),
            },
            (Ending::Broken | Ending::Lost, _) => self.running(near),
            (Ending::Cut, _) => self.left(near),
        };
        Some(Usage {
            images: self.start.images,
            ..usage
        })
    }

    /// What a target may count for a try without an answer. `worked`: how long it may have produced output; `None` if it cannot have.
    pub fn tried(&self, worked: Option<Duration>, local: Option<Local>) -> Usage {
        let counted = self.report.prompt().map(Usage::prompt);
        let output = worked.map_or(0, |time| self.made_in(time).min(self.start.output_limit));
        Usage {
            input: counted.unwrap_or_else(|| self.near(local).input),
            output,
            images: self.start.images,
            ..Usage::default()
        }
    }

    /// Why the provider's own count is not charged for an answer that reached its end.
    pub fn miscount(&self, ending: Ending, charged: &Counted) -> Option<Miscount> {
        match (ending, charged.evidence) {
            (Ending::Complete, Some(Evidence::Disputed)) => self.report.claimed.map(|(_, why)| why),
            (Ending::Complete, Some(Evidence::Local)) => Some(Miscount::Missing),
            _ => None,
        }
    }

    /// A provider's rejected claim, as far as it may really be billed; never less than what is charged.
    fn credible(&self, claimed: &Usage, charged: &Usage) -> Usage {
        let (inputs, outputs) = (
            self.model.limits.context,
            self.start.output_limit.saturating_mul(2),
        );
        let sane = claimed.prompt() <= inputs.saturating_mul(CREDIBLE)
            && claimed.all_output() <= outputs.saturating_mul(CREDIBLE);
        if !sane {
            // Nobody bills this, so the charge is the better estimate.
            return *charged;
        }
        Usage {
            images: charged.images,
            calls: charged.calls,
            ..claimed.zip(*charged, u64::max)
        }
    }
}

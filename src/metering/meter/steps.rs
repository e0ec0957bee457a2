//! Answers that the provider produced and prices in several steps: it compacted the conversation first, or ran tools of its own.
//!
//! Each step reads a prompt of its own, within the context, and its input alone selects its tier. The steps together are the usage
//! that is charged. Only divides and doubts counts; must not change them.

use farebox_ledger::Usage;
use farebox_protocol::WireUsage;

use super::{Meter, Miscount, price};
use crate::metering::counts;

impl Meter {
    /// A usage as it is priced: its first step, and the further ones. A usage that does not contain the provider's further steps is
    /// one step.
    pub fn steps(&self, usage: &Usage) -> (Usage, &[Usage]) {
        divided(usage, &self.report.further)
    }

    /// Why a count is impossible.
    pub(super) fn doubt(&self, usage: &Usage, further: &[Usage]) -> Option<Miscount> {
        let (first, further) = divided(usage, further);
        if std::iter::once(&first)
            .chain(further)
            .any(|step| step.prompt() > self.model.limits.context)
        {
            return Some(Miscount::AboveContext);
        }
        // Each step reads what the others wrote.
        let written = if further.is_empty() {
            0
        } else {
            usage.all_output()
        };
        let most = self.start.most_input.saturating_add(written);
        if std::iter::once(&first)
            .chain(further)
            .any(|step| step.prompt() > most)
        {
            return Some(Miscount::AboveRequest);
        }
        // The limit that was sent does not bound a compaction's summary; what the model can produce does.
        let summaries =
            u64::from(self.model.limits.max_output).saturating_mul(further.len() as u64);
        if usage.all_output()
            > self
                .start
                .output_limit
                .saturating_add(summaries)
                .saturating_mul(2)
        {
            return Some(Miscount::AboveLimit);
        }
        i64::try_from(price::picos(self.held(), &first, further))
            .is_err()
            .then_some(Miscount::Malformed)
    }
}

/// The further steps of a usage with these counts.
pub(super) fn of(wire: &WireUsage, counted: &farebox_protocol::ReportedUsage) -> Vec<Usage> {
    wire.further_steps(counted)
        .into_iter()
        .map(counts::usage)
        .collect()
}

fn divided<'a>(usage: &Usage, further: &'a [Usage]) -> (Usage, &'a [Usage]) {
    // Steps count tokens alone: pictures stay with the first.
    let first = further
        .iter()
        .try_fold(*usage, |rest, step| rest.try_zip(*step, u64::checked_sub));
    first.map_or((*usage, &[]), |first| (first, further))
}

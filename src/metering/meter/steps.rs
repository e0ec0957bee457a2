//! Answers that the provider produced and prices in several steps: it compacted the conversation first, or ran tools of its own.
//!
//! Each step reads a prompt of its own, within the context, and its input alone selects its tier. The steps together are the usage
//! that is charged. Only divides and doubts counts; must not change them.

use farebox_ledger::Usage;
use farebox_protocol::WireUsage;

use super::{Meter, Miscount, output_total, price};

impl Meter {
    /// A usage as it is priced: its first step, and the further ones. A usage that does not contain the provider's further steps is
    /// one step.
    pub fn steps(&self, usage: &Usage) -> (Usage, &[Usage]) {
        divided(usage, &self.further)
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
            output_total(usage)
        };
        let most = self.most_input.saturating_add(written);
        if std::iter::once(&first)
            .chain(further)
            .any(|step| step.prompt() > most)
        {
            return Some(Miscount::AboveRequest);
        }
        // The limit that was sent does not bound a compaction's summary; what the model can produce does.
        let summaries =
            u64::from(self.model.limits.max_output).saturating_mul(further.len() as u64);
        if output_total(usage)
            > self
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
        .map(of_tokens)
        .collect()
}

/// Counts of tokens, without pictures.
pub(super) fn of_tokens(counted: farebox_protocol::ReportedUsage) -> Usage {
    Usage {
        input: counted.input,
        cache_read: counted.cache_read,
        cache_write: counted.cache_write,
        cache_write_1h: counted.cache_write_1h,
        cache_write_12h: counted.cache_write_12h,
        output: counted.output,
        reasoning: counted.reasoning,
        ..Usage::default()
    }
}

fn divided<'a>(usage: &Usage, further: &'a [Usage]) -> (Usage, &'a [Usage]) {
    let first = further
        .iter()
        .try_fold(*usage, |rest, step| minus(&rest, step));
    first.map_or((*usage, &[]), |first| (first, further))
}

fn minus(usage: &Usage, step: &Usage) -> Option<Usage> {
    Some(Usage {
        input: usage.input.checked_sub(step.input)?,
        cache_read: usage.cache_read.checked_sub(step.cache_read)?,
        cache_write: usage.cache_write.checked_sub(step.cache_write)?,
        cache_write_1h: usage.cache_write_1h.checked_sub(step.cache_write_1h)?,
        cache_write_12h: usage.cache_write_12h.checked_sub(step.cache_write_12h)?,
        output: usage.output.checked_sub(step.output)?,
        reasoning: usage.reasoning.checked_sub(step.reasoning)?,
        images: usage.images,
        calls: usage.calls,
    })
}

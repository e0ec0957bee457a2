//! What a bill may be: the bounds of its counts and facts, within which it is charged.

use super::bill::cost;
use crate::{Amount, Bill, CostSource, Refusal, UsageKind};

impl Bill {
    const MAX_FACTS: usize = 32;

    /// What the request cost.
    ///
    /// # Errors
    /// [`Refusal::Limit`] when lines or counts are absurd; the caller then treats them as disputed.
    pub fn total(&self) -> Result<Amount, Refusal> {
        self.check_facts()?;
        let mut kinds = UsageKind::ALL.into_iter();
        if kinds.any(|kind| self.usage[kind] > Self::MAX_COUNT) {
            return Err(Refusal::Limit(
                "the usage of this bill is implausible".to_owned(),
            ));
        }
        cost(&self.lines)
    }

    /// Facts are few, short and not named like a field; money is not negative.
    pub(crate) fn check_facts(&self) -> Result<(), Refusal> {
        let too_many = !self.pairs_are_sound()
            || self.facts.len() > Self::MAX_FACTS
            || self.facts_bytes() > Self::MAX_FACT_BYTES;
        if too_many
            || self
                .facts
                .keys()
                .any(|name| Self::FIELDS.contains(&name.as_str()))
        {
            return Err(Refusal::Limit(
                "this bill has too many facts, or one that is too long or named like a field"
                    .to_owned(),
            ));
        }
        let costs = [self.cost, self.provider_cost];
        if costs.into_iter().flatten().any(Amount::is_negative) {
            return Err(Refusal::Limit("costs must not be negative".to_owned()));
        }
        if self.cost_source == CostSource::Told && self.provider_cost.is_none() {
            return Err(Refusal::Limit("no cost was told".to_owned()));
        }
        self.check_failed()
    }
}

//! What a bill may be: the bounds of its counts and facts, within which it is charged.

use super::bill::cost;
use crate::{Amount, Bill, Refusal};

impl Bill {
    const MAX_FACTS: usize = 32;
    /// Facts with a field of their own.
    const FIELDS: [&str; 2] = ["exposure", "cost"];

    /// What the request cost.
    ///
    /// # Errors
    /// [`Refusal::Limit`] when lines or counts are absurd; the caller then treats them as disputed.
    pub fn total(&self) -> Result<Amount, Refusal> {
        self.check_facts()?;
        if self
            .usage
            .counts()
            .iter()
            .any(|count| *count > Self::MAX_COUNT)
        {
            return Err(Refusal::Limit(
                "the usage of this bill is implausible".to_owned(),
            ));
        }
        cost(&self.lines)
    }

    /// Facts are few, short and not named like a field; money is not negative.
    pub(crate) fn check_facts(&self) -> Result<(), Refusal> {
        let too_many =
            self.facts.len() > Self::MAX_FACTS || self.facts_bytes() > Self::MAX_FACT_BYTES;
        if too_many
            || Self::FIELDS
                .iter()
                .any(|field| self.facts.contains_key(*field))
        {
            return Err(Refusal::Limit(
                "this bill has too many facts, or one that is too long or named like a field"
                    .to_owned(),
            ));
        }
        if self.exposure.is_negative() || self.cost.is_some_and(Amount::is_negative) {
            return Err(Refusal::Limit(
                "exposure and cost must not be negative".to_owned(),
            ));
        }
        self.check_failed()
    }
}

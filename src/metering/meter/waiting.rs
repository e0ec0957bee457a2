//! Reasoning before a stream's first frame: chat providers often send nothing until the model has reasoned.
//!
//! A single stream does not show whether a wait was reasoning or a queue. The target's counts for finished streams do: each gives a
//! pace, and a wait at this target counts at the median of all keys' paces. Without any, a wait counts as nothing.

use std::time::Duration;

use farebox_ledger::Usage;

use super::{Meter, estimate, output_total};

impl Meter {
    /// Counts the wait before the first frame. `pace` is the rate at which the target's finished streams reasoned during such
    /// waits, in thousandths of a token per second.
    pub fn wait(&mut self, wait: Duration, pace: u64) {
        self.wait = wait;
        let share = wait.as_micros().saturating_mul(u128::from(pace)) / self.speed().max(1);
        self.hidden = self.hidden.saturating_add(Duration::from_micros(
            u64::try_from(share).unwrap_or(u64::MAX),
        ));
    }

    /// The pace at which a finished stream reasoned before its first frame, in thousandths of a token a second; `took` is how long
    /// the whole stream ran. `None` if there was no wait, or too little reasoning to tell.
    #[must_use]
    pub fn pace_of_wait(&self, usage: &Usage, took: Duration) -> Option<u64> {
        if self.wait.is_zero() {
            return None;
        }
        let hidden = self.never_shown(usage)? / self.choices.max(1);
        if self.unseen >= self.wait {
            return Some(0);
        }
        let later = self.by_time(self.unseen);
        let pace = |tokens: u64, time: Duration| {
            u128::from(tokens).saturating_mul(1_000_000_000) / time.as_micros().max(1)
        };
        // No part of an answer is produced much faster than the whole, and nothing faster than the metered rate.
        let of_all = pace(
            output_total(usage) / self.choices.max(1),
            took.max(self.wait),
        );
        let of_wait = pace(hidden.saturating_sub(later), self.wait)
            .min(of_all)
            .min(self.speed());
        u64::try_from(of_wait).ok()
    }

    /// Thousandths of a token that one second of hidden output counts as.
    fn speed(&self) -> u128 {
        u128::from(self.model.limits.speed).saturating_mul(1_000)
    }

    /// Reasoning that no frame has shown; `None` if it is within the error of the text's count.
    fn never_shown(&self, usage: &Usage) -> Option<u64> {
        let shown = self.near(None).output;
        match (usage.reasoning, output_total(usage)) {
            (0, output) => (!self.shows_all(output))
                .then(|| output.saturating_sub(estimate::upper(self.shown))),
            (reasoning, _) if reasoning < usage.output / 2 => None,
            (reasoning, _) if shown <= usage.output.saturating_add(reasoning / 2) => {
                Some(reasoning)
            }
            _ => Some(0),
        }
    }
}

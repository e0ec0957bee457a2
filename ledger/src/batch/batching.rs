//! How many operations the writer waits for before it commits, and how long.

use std::time::Duration;

/// Most operations of one commit, so that no caller waits behind a huge batch.
// By then hundreds share one commit, and a larger batch would only make its first caller wait for its last.
pub(crate) const MAX_BATCH: usize = 512;
/// How long the writer waits for each expected operation.
// A shorter wait splits a batch whose callers are on their way, and each part pays for a commit of its own; a longer one delays
// everybody for callers who do not come.
const GATHER: Duration = Duration::from_micros(80);
/// The longest it waits in all.
// Every request waits for its hold, so this is what a wrong guess may cost it; beside an upstream's answer it is not felt.
const GATHER_ALL: Duration = Duration::from_millis(4);

/// Adapts the batch size to the load. A commit costs about the same for 1 operation as for 100, so the writer waits for as many as
/// arrived last time, and now and then for a few more, to find out whether the load has grown. It never waits for batches of one or
/// two.
///
/// Waiting in vain for more costs 4 ms, the time of six batches of 64, so each failed attempt doubles the pause before the next
/// one.
#[derive(Debug, Default)]
pub(crate) struct Batching {
    /// How many operations the next batch waits for.
    pub(crate) expected: usize,
    /// Whether that is more than came last time.
    attempt: bool,
    /// Batches until the next attempt.
    steady: u32,
    /// Batches between the last failed attempt and the next; 0 after one that gathered more.
    pause: u32,
}

impl Batching {
    // Two callers come and go independently, so the second is rarely there in time: a single customer would wait for nobody.
    const FEW: usize = 2;
    /// The pause after the first attempt in vain, in batches, and the longest: under a second at full load.
    const PAUSE: u32 = 32;
    const LONGEST_PAUSE: u32 = 1_024;

    /// How long the next batch waits. The more operations share it, the longer: a short scheduling delay must not split a large
    /// batch, because everyone would pay for the second commit.
    pub(crate) fn patience(&self) -> Duration {
        GATHER
            .saturating_mul(u32::try_from(self.expected).unwrap_or(u32::MAX))
            .min(GATHER_ALL)
    }

    /// Records how many operations the last batch had.
    pub(crate) fn note(&mut self, operations: usize) {
        let more = operations
            .saturating_add(operations / 4)
            .saturating_add(1)
            // Half of the most, so that those who come during the wait still fit.
            .min(MAX_BATCH / 2);
        if operations < self.expected {
            if self.attempt {
                self.pause = self
                    .pause
                    .saturating_mul(2)
                    .clamp(Self::PAUSE, Self::LONGEST_PAUSE);
            }
            self.steady = self.pause;
        } else if self.attempt {
            self.pause = 0;
        }
        let few = operations <= Self::FEW;
        self.attempt = !few && self.steady == 0;
        self.expected = if few {
            1
        } else if self.attempt {
            more
        } else {
            operations
        };
        self.steady = self.steady.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_waits_for_as_many_as_came_and_tries_for_more_only_now_and_then() {
        let mut batching = Batching::default();
        batching.note(2);
        assert_eq!(batching.expected, 1, "few are never made to wait");
        batching.note(8);
        assert_eq!(batching.expected, 11, "a few more may come");
        for pause in [32, 64, 128, 256, 512, 1_024, 1_024] {
            for _ in 0..pause {
                batching.note(8);
                assert_eq!(batching.expected, 8, "they did not");
            }
            batching.note(8);
            assert_eq!(batching.expected, 11, "they may by now");
        }
        batching.note(11);
        assert_eq!(batching.expected, 14, "they did: even more may come");
        for _ in 0..=Batching::PAUSE {
            batching.note(11);
        }
        assert_eq!(batching.expected, 14, "and the pauses are short again");
    }

    #[test]
    fn many_are_waited_for_longer_than_few_and_nobody_for_long() {
        let patience = |expected| {
            Batching {
                expected,
                ..Batching::default()
            }
            .patience()
        };
        assert_eq!(patience(5), 5 * GATHER);
        assert_eq!(patience(MAX_BATCH), GATHER_ALL);
    }
}

//! How many operations the writer waits for before it commits, and how long.

use std::time::Duration;

/// Most operations of one commit: nobody waits behind a huge batch.
pub(super) const MAX_BATCH: usize = 512;
/// How long the writer waits for each operation that is worth waiting for.
const GATHER: Duration = Duration::from_micros(80);
/// And for all of them together, at most.
const GATHER_ALL: Duration = Duration::from_millis(4);

/// How many operations are worth waiting for: a commit costs the same for one as for many. As many as came together last time,
/// and now and then a few more, to see whether they come. Few at a time are never made to wait.
#[derive(Debug, Default)]
pub(super) struct Batching {
    /// How many the next batch waits for.
    pub(super) expected: usize,
    /// Batches until more are tried for again.
    steady: u32,
}

impl Batching {
    const FEW: usize = 2;
    const STEADY: u32 = 32;

    /// How long the next batch waits. The more came together, the longer they are worth waiting for: a moment in which the machine was elsewhere must not break
    /// up what many share.
    pub(super) fn patience(&self) -> Duration {
        GATHER.saturating_mul(u32::try_from(self.expected).unwrap_or(u32::MAX)).min(GATHER_ALL)
    }

    /// Takes in how many operations the last batch had.
    pub(super) fn note(&mut self, operations: usize) {
        let more = operations.saturating_add(operations / 4).saturating_add(1).min(MAX_BATCH / 2);
        if operations < self.expected {
            self.steady = Self::STEADY;
        }
        self.expected = match self.steady {
            _ if operations <= Self::FEW => 1,
            0 => more,
            _ => operations,
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
        for _ in 0..Batching::STEADY {
            batching.note(8);
            assert_eq!(batching.expected, 8, "they did not");
        }
        batching.note(8);
        assert_eq!(batching.expected, 11, "they may by now");
    }

    #[test]
    fn many_are_waited_for_longer_than_few_and_nobody_for_long() {
        let patience = |expected| Batching { expected, ..Batching::default() }.patience();
        assert_eq!(patience(5), 5 * GATHER);
        assert_eq!(patience(MAX_BATCH), GATHER_ALL);
    }
}

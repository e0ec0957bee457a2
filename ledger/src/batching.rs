//! How many operations the writer waits for before it commits, and for how long.

use std::time::Duration;

/// Most operations of one commit, so that no caller waits behind a huge batch.
pub(crate) const MAX_BATCH: usize = 512;
/// How long the writer waits for each expected operation.
const GATHER: Duration = Duration::from_micros(80);
/// The longest it waits in all.
const GATHER_ALL: Duration = Duration::from_millis(4);

/// Adapts the batch size to the load. A commit costs about the same for 1 operation as for 100, so the writer waits for as many
/// as came last time, and every 32 batches or so for a few more, to find out whether the load has grown. One or two at a time
/// never wait.
#[derive(Debug, Default)]
pub(crate) struct Batching {
    /// How many the next batch waits for.
    pub(crate) expected: usize,
    /// Batches until the next attempt to gather more.
    steady: u32,
}

impl Batching {
    const FEW: usize = 2;
    const STEADY: u32 = 32;

    /// How long the next batch waits. The more operations share it, the longer: a short scheduling delay must not split a large
    /// batch, which would cost everyone a second commit.
    pub(crate) fn patience(&self) -> Duration {
        GATHER.saturating_mul(u32::try_from(self.expected).unwrap_or(u32::MAX)).min(GATHER_ALL)
    }

    /// Records how many operations the last batch had.
    pub(crate) fn note(&mut self, operations: usize) {
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

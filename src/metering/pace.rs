//! How fast a target produces output that its streams do not show, and how time without output counts.
//!
//! A model that reasons may produce thousands of tokens before its first word, and most providers count them only at the end. Until
//! then time stands for them. On a target whose pace is known, the pace of nearly all its streams decides what is held, and that of
//! the middle one what is charged where nobody counts. Pure.

use std::time::Duration;

use crate::config::ModelLimits;

/// A target is never believed to be slower than this many tenths of `limits.speed` …
const SLOWEST_TENTHS: u64 = 3;
/// … or faster than this many times it: providers that serve a model ten times as fast as usual exist.
const FASTEST: u64 = 10;
/// Thousandths in one.
const MILLI: u64 = 1_000;
/// Thousandths of tokens a second times milliseconds, in a token.
const MICRO: u128 = 1_000_000;

/// What customers have observed of a target, in thousandths of a token a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Half of its streams are slower.
    pub median: u64,
    /// One stream in twenty is faster.
    pub p95: u64,
}

impl Pace {
    /// A pace that the operator names, in tokens a second.
    #[must_use]
    pub fn named(speed: u32) -> Self {
        let pace = u64::from(speed).saturating_mul(MILLI);
        Self {
            median: pace,
            p95: pace,
        }
    }

    /// The pace, as far as it can be believed of a model that makes about `speed` tokens a second.
    #[must_use]
    pub fn within(self, speed: u32) -> Self {
        let usual = u64::from(speed).saturating_mul(MILLI);
        let (least, most) = (
            usual.saturating_mul(SLOWEST_TENTHS) / 10,
            usual.saturating_mul(FASTEST),
        );
        Self {
            median: self.median.clamp(least, most),
            p95: self.p95.clamp(least, most),
        }
    }
}

/// How a stream's time without output counts, in thousandths of a token a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hiding {
    /// What is charged where nobody has counted it.
    pub(super) charged: u64,
    /// What has to be held.
    pub(super) held: u64,
    /// Whether the pace is known, so that the wait for the first frame counts too: elsewhere that may have been a queue.
    pub(super) known: bool,
    /// Whether the stream ends when its hold does not cover what may be hidden.
    pub(super) ends: bool,
}

impl Hiding {
    /// Where nothing is expected to be hidden, and frames may say all the same that something is.
    #[must_use]
    pub(super) fn unexpected(limits: &ModelLimits) -> Self {
        let usual = Pace::named(limits.speed);
        Self {
            charged: usual.median,
            held: usual.p95,
            known: false,
            ends: false,
        }
    }

    /// At a target of this pace, if it is known. `whole`: the hold covers the whole limit sent, so that time ends nothing.
    #[must_use]
    pub fn new(pace: Option<Pace>, limits: &ModelLimits, whole: bool) -> Self {
        let usual = Pace::named(limits.speed);
        match pace {
            Some(pace) => Self {
                charged: pace.median,
                held: pace.p95,
                known: true,
                ends: !whole,
            },
            // Nobody has seen how fast it is, so it may be as fast as any.
            None => Self {
                charged: usual.median,
                held: usual.p95.saturating_mul(FASTEST),
                known: false,
                ends: !whole,
            },
        }
    }
}

/// Tokens produced in this much time.
#[must_use]
pub(super) fn tokens(pace: u64, time: Duration) -> u64 {
    let tokens = u128::from(pace).saturating_mul(time.as_millis()) / MICRO;
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

/// The pace at which this many tokens were produced.
#[must_use]
pub(super) fn observed(tokens: u64, time: Duration) -> u64 {
    let pace = u128::from(tokens)
        .saturating_mul(MICRO)
        .checked_div(time.as_millis().max(1))
        .unwrap_or_default();
    u64::try_from(pace).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_believed_from_three_tenths_to_ten_times_the_usual_speed() {
        let pace = Pace {
            median: 1,
            p95: 9_000_000,
        };
        let believed = Pace {
            median: 45_000,
            p95: 1_500_000,
        };
        assert_eq!(pace.within(150), believed);
        assert_eq!(Pace::named(200).within(150), Pace::named(200));
    }

    #[test]
    fn tokens_and_paces_are_each_others_opposite() {
        let time = Duration::from_millis(2_500);
        assert_eq!(tokens(150_000, time), 375);
        assert_eq!(observed(375, time), 150_000);
        assert_eq!(tokens(u64::MAX, Duration::MAX), u64::MAX);
        assert_eq!(observed(u64::MAX, Duration::ZERO), u64::MAX);
    }
}

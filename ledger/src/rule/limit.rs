//! Limits of a key across all gateways of a ledger: concurrent requests and requests per second.
//!
//! Pure: the running count and the clock are passed in. A store shared by several gateways checks before it opens a hold; a single
//! gateway counts in memory and stores nothing.

use std::time::Duration;

use crate::{KeySettings, Refusal};

/// A second in the unit of [`Traffic::paced_to`].
const SECOND: i64 = 1_000_000;

/// The traffic of a key at all gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Traffic {
    /// Holds ever opened.
    pub(crate) opened: i64,
    /// Holds open now.
    pub(crate) running: i64,
    /// The instant up to which the rate is used up, in microseconds since 1970 by the store's clock.
    pub(crate) paced_to: i64,
}

impl Traffic {
    /// Refuses a request beyond the key's limits. The requests of one second may arrive at once.
    pub(crate) fn check(self, settings: &KeySettings, now: i64) -> Result<(), Refusal> {
        let most = settings.concurrency.unwrap_or(KeySettings::CONCURRENCY);
        if self.running >= i64::from(most) {
            return Err(Refusal::TooManyAtOnce(most));
        }
        let Some(rate) = settings.rate else {
            return Ok(());
        };
        let ahead = self
            .paced_to
            .max(now)
            .saturating_add(interval(rate))
            .saturating_sub(now);
        match u64::try_from(ahead.saturating_sub(SECOND)) {
            Ok(wait) if wait > 0 => Err(Refusal::TooFast {
                rate,
                wait: Duration::from_micros(wait),
            }),
            _ => Ok(()),
        }
    }

    /// With one more request.
    pub(crate) fn begin(self, settings: &KeySettings, now: i64) -> Self {
        let paced_to = settings.rate.map_or(self.paced_to, |rate| {
            self.paced_to.max(now).saturating_add(interval(rate))
        });
        Self {
            opened: self.opened.saturating_add(1),
            running: self.running.saturating_add(1),
            paced_to,
        }
    }

    /// With one fewer.
    pub(crate) fn end(self) -> Self {
        Self {
            running: self.running.saturating_sub(1).max(0),
            ..self
        }
    }
}

/// The interval between two requests at this rate. At rate 0 it exceeds a second, so that no request fits.
fn interval(rate: u32) -> i64 {
    SECOND
        .checked_div(i64::from(rate))
        .unwrap_or(SECOND.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(concurrency: Option<u32>, rate: Option<u32>) -> KeySettings {
        KeySettings {
            concurrency,
            rate,
            ..KeySettings::default()
        }
    }

    #[test]
    fn so_many_run_at_once() {
        let (two, mut traffic) = (limited(Some(2), None), Traffic::default());
        for _ in 0..2 {
            assert_eq!(traffic.check(&two, 0), Ok(()));
            traffic = traffic.begin(&two, 0);
        }
        assert_eq!(traffic.check(&two, 0), Err(Refusal::TooManyAtOnce(2)));
        assert_eq!(traffic.end().check(&two, 0), Ok(()));
        assert_eq!(
            Traffic {
                running: 63,
                ..Traffic::default()
            }
            .check(&limited(None, None), 0),
            Ok(())
        );
        let full = Traffic {
            running: 64,
            ..Traffic::default()
        }
        .check(&limited(None, None), 0);
        assert_eq!(
            full,
            Err(Refusal::TooManyAtOnce(64)),
            "the limit of a key without one"
        );
        assert_eq!(Traffic::default().end(), Traffic::default());
    }

    #[test]
    fn a_seconds_requests_may_come_at_once_and_then_at_their_pace() {
        let (four, mut traffic) = (limited(None, Some(4)), Traffic::default());
        let mut now = 5_000_000;
        for _ in 0..4 {
            assert_eq!(traffic.check(&four, now), Ok(()));
            traffic = traffic.begin(&four, now);
        }
        let wait = Duration::from_millis(250);
        assert_eq!(
            traffic.check(&four, now),
            Err(Refusal::TooFast { rate: 4, wait })
        );
        now += 250_000;
        assert_eq!(traffic.check(&four, now), Ok(()));
        traffic = traffic.begin(&four, now);
        assert!(traffic.check(&four, now).is_err());
        assert_eq!(traffic.check(&four, now + 60_000_000), Ok(()));
        assert!(
            Traffic::default()
                .check(&limited(None, Some(0)), now)
                .is_err()
        );
    }
}

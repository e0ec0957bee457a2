//! Limits of a key or customer across all gateways of a ledger: concurrent requests and requests per second.
//!
//! Pure: the running count and the clock are passed in. A store shared by several gateways checks before it opens a hold; a single
//! gateway counts in memory and stores nothing.

use std::time::Duration;

use crate::rule::key::KeyRecord;
use crate::{Customer, Refusal};

/// A rate with bursts. The one rule for every limiter, in memory and in a store: requests are counted by how far they are ahead of
/// their rate, in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateRule {
    /// Requests in each second, for as long as one likes. At 0 no request fits.
    pub per_second: u32,
    /// Requests that may arrive at once after a pause.
    pub burst: u32,
}

impl RateRule {
    /// One more request of somebody who is this far ahead of the rate: how far ahead it leads.
    ///
    /// # Errors
    /// How long the request has to wait.
    pub fn take(self, ahead: Duration) -> Result<Duration, Duration> {
        let interval = Duration::from_secs(1).checked_div(self.per_second);
        // Longer than any burst, so that nothing fits.
        let interval = interval.unwrap_or(Duration::from_secs(2));
        let most = match self.per_second {
            0 => Duration::from_secs(1),
            _ => interval.saturating_mul(self.burst),
        };
        let ahead = ahead.saturating_add(interval);
        match ahead.checked_sub(most) {
            Some(wait) if wait > Duration::ZERO => Err(wait),
            _ => Ok(ahead),
        }
    }
}

/// What a key or customer may do at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrafficLimits {
    rate: Option<u32>,
    concurrency: Option<u32>,
}

impl TrafficLimits {
    /// A key's, its own or by default; `None` if it has none, and then nothing counts its traffic.
    pub(crate) fn of_key(key: &KeyRecord) -> Option<Self> {
        let (rate, concurrency) = (key.rate(), key.concurrency());
        (rate.is_some() || concurrency.is_some()).then_some(Self { rate, concurrency })
    }

    /// Those of a customer, for a request of one of its keys.
    pub(crate) fn of_customer(customer: &Customer, key: &KeyRecord) -> Self {
        Self {
            rate: customer.rate(),
            concurrency: Some(key.concurrency_within(customer)),
        }
    }
}

/// The traffic of a key or customer at all gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Traffic {
    /// Holds open now.
    pub(crate) running: i64,
    /// The instant up to which the rate is used up, in microseconds since 1970 by the store's clock.
    pub(crate) paced_to: i64,
}

impl Traffic {
    /// Refuses a request beyond the limits. The requests of one second may arrive at once.
    pub(crate) fn check(self, limits: TrafficLimits, now: i64) -> Result<(), Refusal> {
        if let Some(most) = limits.concurrency
            && self.running >= i64::from(most)
        {
            return Err(Refusal::TooManyAtOnce(most));
        }
        let Some(rate) = limits.rate else {
            return Ok(());
        };
        match of_second(rate).take(self.ahead(now)) {
            Ok(_) => Ok(()),
            Err(wait) => Err(Refusal::TooFast { rate, wait }),
        }
    }

    /// How far its requests are ahead of their rate.
    fn ahead(self, now: i64) -> Duration {
        let ahead = u64::try_from(self.paced_to.saturating_sub(now));
        Duration::from_micros(ahead.unwrap_or(0))
    }

    /// With one more request.
    pub(crate) fn begin(self, limits: TrafficLimits, now: i64) -> Self {
        let paced_to = limits.rate.map_or(self.paced_to, |rate| {
            let ahead = of_second(rate).take(self.ahead(now));
            let micros = ahead
                .ok()
                .and_then(|ahead| i64::try_from(ahead.as_micros()).ok());
            micros.map_or(self.paced_to, |ahead| now.saturating_add(ahead))
        });
        Self {
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

/// A key's own rate: the requests of one second may arrive at once.
fn of_second(rate: u32) -> RateRule {
    RateRule {
        per_second: rate,
        burst: rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(concurrency: Option<u32>, rate: Option<u32>) -> TrafficLimits {
        TrafficLimits { rate, concurrency }
    }

    #[test]
    fn so_many_run_at_once() {
        let (two, mut traffic) = (limited(Some(2), None), Traffic::default());
        for _ in 0..2 {
            assert_eq!(traffic.check(two, 0), Ok(()));
            traffic = traffic.begin(two, 0);
        }
        assert_eq!(traffic.check(two, 0), Err(Refusal::TooManyAtOnce(2)));
        assert_eq!(traffic.end().check(two, 0), Ok(()));
        assert_eq!(Traffic::default().end(), Traffic::default());
    }

    #[test]
    fn a_seconds_requests_may_come_at_once_and_then_at_their_pace() {
        let (four, mut traffic) = (limited(None, Some(4)), Traffic::default());
        let mut now = 5_000_000;
        for _ in 0..4 {
            assert_eq!(traffic.check(four, now), Ok(()));
            traffic = traffic.begin(four, now);
        }
        let wait = Duration::from_millis(250);
        assert_eq!(
            traffic.check(four, now),
            Err(Refusal::TooFast { rate: 4, wait })
        );
        now += 250_000;
        assert_eq!(traffic.check(four, now), Ok(()));
        traffic = traffic.begin(four, now);
        assert!(traffic.check(four, now).is_err());
        assert_eq!(traffic.check(four, now + 60_000_000), Ok(()));
        assert!(
            Traffic::default()
                .check(limited(None, Some(0)), now)
                .is_err()
        );
    }
}

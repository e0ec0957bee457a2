//! A timer that is moved at every event and rarely fires: a stream moves two of them at each of its chunks. Postponing it costs
//! nothing; the runtime's timer is updated only when it would have fired too early.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// A reusable timer.
#[derive(Debug)]
pub struct Deadline(Pin<Box<Sleep>>);

impl Deadline {
    /// Set to an instant.
    #[must_use]
    pub fn at(instant: Instant) -> Self {
        Self(Box::pin(sleep_until(instant)))
    }

    /// Waits until the instant. Dropping the future loses nothing.
    pub async fn wait_until(&mut self, instant: Instant) {
        loop {
            if self.0.is_elapsed() || instant < self.0.deadline() {
                self.0.as_mut().reset(instant);
            }
            self.0.as_mut().await;
            if instant <= Instant::now() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_fires_at_the_instant_set_last() {
        let begin = Instant::now();
        let second = Duration::from_secs(1);
        let mut alarm = Deadline::at(begin + second * 10);
        for (asked, patience) in [(5, 1), (20, 2), (7, 3)] {
            let given_up =
                tokio::time::timeout(second * patience, alarm.wait_until(begin + second * asked))
                    .await;
            assert!(given_up.is_err(), "asked for {asked} s");
        }
        alarm.wait_until(begin + second * 30).await;
        assert_eq!(begin.elapsed(), second * 30);
        alarm.wait_until(begin + second * 3).await;
        assert_eq!(
            begin.elapsed(),
            second * 30,
            "an instant in the past fires at once"
        );
        alarm.wait_until(begin + second * 31).await;
        assert_eq!(begin.elapsed(), second * 31);
    }
}

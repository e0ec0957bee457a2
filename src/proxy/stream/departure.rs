//! A stream whose customer has left: what of it is still read, and why.
//!
//! Where the provider counts only at the end, stopping at once means guessing. A guess about a long prompt that may have been cached
//! can be off by nine tenths of its price, while the rest of the answer often costs less: then the rest is read, and its usage is
//! charged whole. The hold and the customer's place stay taken meanwhile.

use std::time::Duration;

use tokio::time::Instant;

use super::super::end::End;
use super::StreamRelay;
use crate::metering::estimate;

/// The longest that is read on for a usage: the key's place and hold are taken meanwhile, for an answer that nobody reads.
const READING_ON: Duration = Duration::from_secs(30);
/// How often a silent stream is looked at while it is read on: what is not shown may cost more than a guess is worth.
const TICK: Duration = Duration::from_millis(250);
/// If the customer kept us from reading for this long and then leaves, what the provider has sent meanwhile is read and counted …
const UNREAD_LEFT: Duration = Duration::from_millis(100);
/// … until nothing arrives for this long …
// What lies in our buffers is there at once; a longer pause means that the provider is still making more, which is `read_on`'s to judge.
const NOTHING_WAITS: Duration = Duration::from_millis(20);
/// … and at most as long as the customer made us wait, or this long: many customers who leave at once share our processors.
const COUNTING_UNREAD: Duration = Duration::from_secs(2);

impl StreamRelay {
    /// Ends a stream without a customer, reading on where that is cheaper than a guess.
    pub(super) async fn client_gone(&mut self) -> End {
        self.watch.leave(Instant::now());
        if self.admitted.request.connection.is_closed() {
            // Nobody pays for it.
            return End::CLIENT_GONE;
        }
        if self.waited >= UNREAD_LEFT {
            self.count_unread().await;
        }
        self.read_on().await;
        if self.admitted.outcome.first_byte.is_some() {
            End::CLIENT_GONE
        } else {
            End::LEFT_EARLY
        }
    }

    /// Counts what the provider sent while the customer was not reading: it is billed, although nobody receives it.
    async fn count_unread(&mut self) {
        let until = Instant::now() + self.waited.min(COUNTING_UNREAD);
        while Instant::now() < until && self.stop.is_none() {
            let Ok(Ok(Some(frame))) = tokio::time::timeout(NOTHING_WAITS, self.frames.next()).await
            else {
                return;
            };
            if self.count(frame, Instant::now()).is_err() {
                return;
            }
        }
    }

    /// Reads until the provider has counted, or what it produced since costs half of what a guess may be off, or there is no more time.
    pub(super) async fn read_on(&mut self) {
        // A guess is off by half of its range on average: reading that costs more than this gains nothing for either side.
        let worth = self.admitted.count.meter.uncertain() / 2;
        let began = Instant::now();
        let shown = |relay: &Self| estimate::upper(relay.admitted.count.meter.shown());
        let (from, until) = (shown(self), began + READING_ON);
        loop {
            let now = Instant::now();
            let shown = shown(self).saturating_sub(from);
            let meter = &self.admitted.count.meter;
            let produced = shown.max(meter.made_in(now.duration_since(began)));
            let counted = self.phase.is_over() || meter.uncertain() == 0;
            if counted || now >= until || meter.cost_of_output(produced) >= worth {
                return;
            }
            let wake = until.min(self.wake()).min(now + TICK);
            tokio::select! {
                biased;
                frame = self.frames.next() => {
                    let Ok(Some(frame)) = frame else { return };
                    if self.count(frame, Instant::now()).is_err() {
                        return;
                    }
                }
                () = self.alarm.wait_until(wake) => {
                    if !self.phase.is_passing() {
                        // The terminal marker did not come in time.
                        return;
                    }
                }
            }
            let now = Instant::now();
            if self.watch.is_due(now) && self.look(now).await.is_some() {
                return;
            }
        }
    }
}

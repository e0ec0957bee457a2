//! Time in which a stream shows no output: before its first word, in frames that say that the model reasons, and in long pauses.

use std::time::Duration;

use farebox_protocol::{FrameFacts, TextSize};
use tokio::time::Instant;

use crate::metering::Meter;

/// How often hidden output is metered. The fastest targets hide a fifth of a slice in it, which is what a hold keeps in hand;
/// every stream that reasons wakes this often.
const TICK: Duration = Duration::from_millis(200);
/// A model that may reason is charged for doing so again when it has shown nothing for this long: shorter pauses are the network's.
const PAUSE: Duration = Duration::from_secs(2);

/// Watches one stream.
#[derive(Debug)]
pub(crate) struct Silence {
    /// Since when the model has been producing output that the stream does not show.
    hidden_since: Option<Instant>,
    /// When it last showed some; `None` where nothing is expected to be hidden.
    shown_at: Option<Instant>,
    /// When the time without output was last looked at.
    ticked: Instant,
}

impl Silence {
    /// A stream that begins now; `hides`: its model may reason.
    pub(crate) fn new(hides: bool, now: Instant) -> Self {
        let begun = hides.then_some(now);
        Self {
            hidden_since: begun,
            shown_at: begun,
            ticked: now,
        }
    }

    /// When to look again, if no frame comes.
    pub(crate) fn due(&self, stopped: bool) -> Option<Instant> {
        let shown_at = self.shown_at.filter(|_| !stopped);
        let since = self
            .hidden_since
            .or(shown_at.map(|shown_at| shown_at.max(self.ticked)));
        since.map(|since| since + TICK)
    }

    /// Meters the time until now, in which no frame came: a pause behind shown output is held for, and a long one is taken for
    /// reasoning from its beginning on.
    pub(crate) fn tick(&mut self, meter: &mut Meter, stopped: bool, now: Instant) {
        self.ticked = now;
        if let Some(shown_at) = self
            .shown_at
            .filter(|_| self.hidden_since.is_none() && !stopped)
        {
            let pause = now.duration_since(shown_at);
            if pause < PAUSE {
                // Held for, but not charged: it may still turn out to be the network.
                meter.pause(pause);
            } else {
                meter.pause(Duration::ZERO);
                self.hidden_since = Some(shown_at);
            }
        }
        if let Some(since) = &mut self.hidden_since {
            meter.hide(now.duration_since(*since));
            *since = now;
        }
    }

    /// Meters the time until a frame, which shows output, hides some, or says nothing about it.
    pub(crate) fn frame(&mut self, meter: &mut Meter, facts: &FrameFacts, now: Instant) {
        if let Some(since) = self.hidden_since {
            meter.hide(now.duration_since(since));
        }
        let shows = facts.shown != TextSize::default();
        if let Some(shown_at) = self.shown_at.as_mut().filter(|_| shows) {
            *shown_at = now;
            meter.pause(Duration::ZERO);
        }
        // A frame that says nothing either way (a sign of life) does not end the reasoning that it interrupts.
        let goes_on =
            facts.hidden || (self.hidden_since.is_some() && !shows && facts.stop.is_none());
        self.hidden_since = goes_on.then_some(now);
    }

    /// The customer kept us from reading for this long: whatever came meanwhile lies unread, so it was no silence.
    pub(crate) fn postpone(&mut self, waited: Duration) {
        for since in [&mut self.hidden_since, &mut self.shown_at] {
            *since = since.map(|since| since + waited);
        }
    }
}

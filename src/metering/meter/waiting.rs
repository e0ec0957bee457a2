//! Output that no frame shows: reasoning before a stream's first frame, before its first word, and behind it.
//!
//! A single stream does not show whether a silence was reasoning or a queue. The target's counts for finished streams do: each gives
//! a pace. At a target whose pace is known, all of a stream's silence counts at it; elsewhere only the silence behind the first
//! frame, at the usual speed, and the wait before it is the operator's exposure.

use std::time::Duration;

use farebox_ledger::Usage;

use super::{Meter, estimate, output_total, pace};
use crate::metering::pace::Hiding;

/// A shorter silence says little about a pace: the first word takes its time even where nothing is hidden.
// With a shorter one, the time to the first word would enter the target's pace as reasoning.
const TELLING: Duration = Duration::from_secs(2);

impl Meter {
    /// Sets how silence counts: the target may produce output that its streams do not show.
    pub fn may_hide(&mut self, hiding: Hiding) {
        self.hiding = hiding;
    }

    /// Sets how long the target has had the request without having sent a frame.
    pub fn wait(&mut self, wait: Duration) {
        self.wait = wait;
    }

    /// Adds time during which hidden output was produced.
    pub fn hide(&mut self, elapsed: Duration) {
        self.hidden = self.hidden.saturating_add(elapsed);
        self.unseen = self.unseen.saturating_add(elapsed);
    }

    /// Sets how long the stream has been silent behind what it showed last.
    pub fn pause(&mut self, pause: Duration) {
        self.pause = pause;
    }

    /// The stream ends because its hold does not cover the pause: then the pause counts as what it was held for.
    pub fn charge_pause(&mut self) {
        let pause = std::mem::take(&mut self.pause);
        // Only where silence ends a stream was money held for the pause; elsewhere the customer never agreed to pay for it.
        if self.hiding.ends {
            self.hide(pause);
        }
    }

    /// The provider has counted all output up to now.
    pub(super) fn count_hidden(&mut self) {
        self.unseen = self.unseen.saturating_add(self.wait);
        (self.hidden, self.wait) = (Duration::ZERO, Duration::ZERO);
    }

    /// Hidden output to charge where nobody counts it.
    pub(super) fn hidden_tokens(&self) -> u64 {
        // A wait may be a queue. It is charged only at a pace that finished streams have shown; until then it is the operator's
        // risk.
        let wait = if self.hiding.known {
            self.wait
        } else {
            Duration::ZERO
        };
        self.hidden_in(self.hiding.charged, self.hidden.saturating_add(wait))
    }

    /// The same with a wait that is not charged: what the provider may bill.
    pub(super) fn hidden_likely(&self) -> u64 {
        self.hidden_in(self.hiding.charged, self.hidden.saturating_add(self.wait))
    }

    /// The most that can be hidden by now, which is what has to be held.
    pub(super) fn hidden_at_most(&self) -> u64 {
        let silence = self.hidden.saturating_add(self.wait);
        self.hidden_in(self.hiding.held, silence.saturating_add(self.pause))
    }

    /// Hidden output by the time it took, in every choice; at most the limit sent, if that limit includes reasoning.
    fn hidden_in(&self, speed: u64, time: Duration) -> u64 {
        if time.is_zero() {
            return 0;
        }
        let tokens = pace::tokens(speed, time).saturating_mul(self.choices);
        // The limit bounds visible output only, so nothing but time bounds the rest.
        if self.reasoning_outside {
            return tokens;
        }
        tokens.min(
            self.output_limit.saturating_sub(
                self.counted_output()
                    .saturating_add(self.uncounted_output()),
            ),
        )
    }

    /// The pace at which a finished stream produced what it did not show, in thousandths of a token a second; `None` if it was silent
    /// too shortly, or its counts do not tell.
    #[must_use]
    pub fn observed_pace(&self, usage: &Usage) -> Option<u64> {
        let silence = self.unseen.saturating_add(self.wait);
        if silence <= TELLING {
            return None;
        }
        let hidden = self.never_shown(usage)?.checked_div(self.choices.max(1))?;
        Some(pace::observed(hidden, silence))
    }

    /// Reasoning that no frame has shown; `None` if it is within the error of the text's count.
    fn never_shown(&self, usage: &Usage) -> Option<u64> {
        let shown = self.near(None).output;
        match (usage.reasoning, output_total(usage)) {
            (0, output) => (!self.shows_all(output))
                .then(|| output.saturating_sub(estimate::upper(self.shown))),
            // Most of the output was text, whose own time cannot be told from that of the reasoning: the pace would come out
            // too slow.
            (reasoning, _) if reasoning < usage.output / 2 => None,
            (reasoning, _) if shown <= usage.output.saturating_add(reasoning / 2) => {
                Some(reasoning)
            }
            _ => Some(0),
        }
    }
}

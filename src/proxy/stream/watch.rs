//! What is looked at a few times a second while a stream runs: whether it may go on, what would be charged if it ended now, and what the
//! ledger has to know of that.

use std::time::Duration;

use farebox_ledger::{Amount, EndReason};
use farebox_protocol::FrameFacts;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::super::end::End;
use super::StreamRelay;
use crate::clock;
use crate::metering::meter::BEYOND;
use crate::metering::{Meter, estimate};

/// Between two looks at a stream that shows something.
// A look costs more than a frame does, so it is not made at each of the hundreds that may come in a second.
const EVERY: Duration = Duration::from_millis(250);
/// Between two looks at one that does not: its key may have been stopped.
const SILENT: Duration = Duration::from_secs(4);
/// A longer stream is stored this often, so that a crash charges what it showed.
// A write of the ledger for each: lower, and long streams write more than their hold and its end; higher, and a crash gives more away.
const STORED: Duration = Duration::from_secs(60);
/// So long before it a tokenizer begins to count the prompt.
// A tokenizer may have to wait for its turn; without its count a crash would charge the estimate.
const COUNTING: Duration = Duration::from_secs(10);
/// A counted prompt that costs more than this is stored at once: 0.05 USD.
// Without it a crash would make a large prompt free that its provider bills; below it most prompts are, and a write for each would be one
// more of two or three.
const DEAR: Amount = Amount::from_picos(50_000_000_000);
/// How long a stream waits for the ledger to take what it is told: it goes on without.
// Nothing depends on it but what a crash would charge, and meanwhile no frame is passed on.
const PATIENCE: Duration = Duration::from_millis(500);

/// Watches one stream.
pub(super) struct Watch {
    /// When its first frame came.
    began: Instant,
    /// When it last showed text.
    last_text: Instant,
    /// When its customer left: a silence behind that is ours.
    left: Option<Instant>,
    looked: Instant,
    stored: Instant,
    /// A count has come that nobody has looked at.
    is_counted: bool,
    /// The provider's count of the prompt was looked at.
    knows_prompt: bool,
    /// A tokenizer counts the prompt, or has done so.
    counts: bool,
    /// A tokenizer is reading what was shown.
    weighing: Option<JoinHandle<Option<u64>>>,
    /// Nothing is read again before so many bytes were shown.
    weighed: u64,
}

impl Watch {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            last_text: now,
            left: None,
            looked: now,
            stored: now,
            is_counted: false,
            knows_prompt: false,
            counts: false,
            weighing: None,
            weighed: 0,
        }
    }

    /// Notes a frame.
    pub(super) fn frame(&mut self, facts: &FrameFacts, now: Instant) {
        if facts.shown.bytes() > 0 {
            self.last_text = now;
        }
        self.is_counted |= facts.usage && !self.knows_prompt;
    }

    /// Whether to look now that a frame has come.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.is_counted || now >= self.looked + EVERY
    }

    /// The customer kept us from reading for this long: whatever came meanwhile lies unread, so it was no silence.
    pub(super) fn postpone(&mut self, waited: Duration) {
        self.last_text += waited;
    }

    /// Notes that nobody reads any more.
    pub(super) fn leave(&mut self, now: Instant) {
        self.left.get_or_insert(now);
    }

    /// When to look if no frame comes.
    pub(super) fn wakes(&self) -> Instant {
        self.looked + SILENT
    }

    /// Tells the meter how much time has passed; returns the time since the first frame.
    pub(super) fn pass(&self, meter: &mut Meter, now: Instant) -> Duration {
        let answered = now.duration_since(self.began);
        let heard = self.left.map_or(now, |left| left.min(now));
        meter.pass(answered, heard.saturating_duration_since(self.last_text));
        answered
    }
}

impl StreamRelay {
    /// Whether the stream has to end; else what would be charged now is noted, and stored where a crash must not lose it.
    pub(super) async fn look(&mut self, now: Instant) -> Option<End> {
        self.watch.looked = now;
        let ended = self.admitted.ends(now);
        if ended.is_some() {
            return ended;
        }
        if self.shows_too_much().await {
            return Some(End::cut(EndReason::Length));
        }
        let is_counted = std::mem::take(&mut self.watch.is_counted);
        let prompt = self.admitted.count.meter.counted_prompt();
        let is_new = is_counted && prompt.is_some() && !self.watch.knows_prompt;
        if is_new {
            self.watch.knows_prompt = true;
            self.admitted.at_risk.gap = None;
        }
        let size = is_new.then(|| self.admitted.counted_size()).flatten();
        let is_dear = is_new && prompt.is_some_and(|(cost, _)| cost > DEAR);
        let due = self.watch.stored + STORED;
        let is_late = now >= due;
        if prompt.is_none() && !self.watch.counts && now + COUNTING >= due {
            self.watch.counts = true;
            self.admitted.count.count_input();
        }
        self.watch.pass(&mut self.admitted.count.meter, now);
        let (bill, at) = (self.admitted.checkpoint(), clock::now());
        if size.is_none() && !is_dear && !is_late {
            self.admitted.hold.note(bill, at);
            return None;
        }
        self.watch.stored = now;
        // A move that comes too late may still be made: the ledger ignores one that is overtaken.
        let storing = self.admitted.hold.checkpoint(bill, size, at);
        if !matches!(timeout(PATIENCE, storing).await, Ok(Ok(_))) {
            tracing::debug!("a stream goes on although the ledger did not take its checkpoint");
        }
        None
    }

    /// Whether the target shows clearly more than it was allowed. A tokenizer decides, once even a low estimate says so.
    async fn shows_too_much(&mut self) -> bool {
        let bound = self.admitted.reckoned.terms.output_bound;
        let most = bound.saturating_add(bound / 8).saturating_add(BEYOND);
        let shown = self.admitted.count.meter.shown();
        let watch = &mut self.watch;
        if let Some(weighing) = watch.weighing.take_if(|weighing| weighing.is_finished()) {
            watch.weighed = shown.bytes().saturating_add(shown.bytes() / 8);
            return matches!(weighing.await, Ok(Some(tokens)) if tokens > most);
        }
        let may = estimate::lower(shown) > most && shown.bytes() >= watch.weighed;
        if may && watch.weighing.is_none() {
            let sample = self.reader.sample().clone();
            watch.weighing = Some(self.admitted.count.weigh_output(sample));
        }
        false
    }
}

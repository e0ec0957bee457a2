//! Credit control of a running stream: extends the hold before it runs low, and stops the stream before it costs more than is held.
//!
//! A stream holds its output slice by slice, so that many streams can run side by side on a small balance. When the balance runs
//! out, the last slices are smaller, and then the stream ends.
//!
//! Rows of docs/interface.md: `spending_ends_at_the_balance`.

use std::time::Duration;

use farebox_ledger::{Amount, Bill, EndReason, Hold, LedgerError, Refusal};
use farebox_protocol::{TextSample, TextSize};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::running::RunningCount;
use crate::clock;
use crate::metering::Meter;
use crate::metering::terms::{SLICE, slice_cost};

// A hold grows before it is used up, because the ledger takes a commit to answer and the provider does not wait for it. Earlier means
// that money lies held which another stream of the key could use; later, that a stream outruns its hold while it asks.

/// A hold is extended when less than this part of a slice is left …
///
/// A fifth of a slice is some 400 tokens, which a usual model takes seconds to write.
const LOW_PART: i64 = 5;
/// … or less than this much time at the observed rate: a fast model writes a fifth of a slice in less time than a busy disk takes to
/// commit.
const LOW_TIME: Duration = Duration::from_secs(2);
/// A tokenizer reads the answer when less than this part of a slice would be left if every byte were a token.
///
/// Dense text is rare, and a tokenizer costs processor time at each try, so it is asked late: with a larger part nearly every slice
/// of ordinary text would be read.
const UNREAD_PART: i64 = 20;
/// How long a stream without money waits for the tokenizer before it ends; its provider keeps producing, and billing, meanwhile.
const WEIGHING: Duration = Duration::from_millis(100);
/// Pause between attempts to extend while nothing is available. Without it, every frame of every stream of an empty key would be a
/// write; with a longer one a top-up would come too late for what is left of the hold.
const PAUSE: Duration = Duration::from_millis(250);
/// How long a stream whose hold still suffices waits for the ledger before it goes on and tries again …
const PATIENCE: Duration = Duration::from_millis(500);
/// … and how long one whose hold is used up, or may be, waits before it ends.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// A stream whose hold has to cover it.
pub(crate) trait CreditedStream {
    /// Its counts and its hold.
    fn parts(&mut self) -> (&mut RunningCount, &mut Hold);
    /// What is charged if the gateway dies now.
    fn bill_so_far(&mut self) -> Bill;
}

/// Keeps one stream within its hold.
#[derive(Debug)]
pub(crate) struct StreamCredit {
    choices: u32,
    /// Most output tokens the upstream may produce.
    output_limit: u64,
    output_rate: OutputRate,
    next_try: Instant,
    /// The text that a tokenizer is reading now, and its count.
    weighing: Option<(TextSize, JoinHandle<Option<u64>>)>,
}

/// Whether a stream may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CreditVerdict {
    /// The hold covers it.
    Covered,
    /// It does not, and cannot be extended; the reason for the journal.
    Spent(EndReason),
}

impl StreamCredit {
    pub(crate) fn new(choices: u32, output_limit: u64, now: Instant) -> Self {
        Self {
            choices,
            output_limit,
            output_rate: OutputRate::new(now),
            next_try: now,
            weighing: None,
        }
    }

    /// Compares the stream's cost with its hold, and extends the hold when it runs low. `sample` is a sample of the delivered text.
    ///
    /// Text that no tokenizer has read may be one token per byte, four times the usual estimate, and may arrive faster than a
    /// tokenizer can read it. It counts as one token per byte until then: the hold grows early, or the stream ends early.
    pub(crate) async fn check(
        &mut self,
        stream: &mut impl CreditedStream,
        sample: &TextSample,
        now: Instant,
    ) -> CreditVerdict {
        let (count, hold) = stream.parts();
        if hold.lapsed() {
            return CreditVerdict::Spent(EndReason::LedgerUnavailable);
        }
        let held = hold.amount();
        if self
            .weighing
            .as_ref()
            .is_some_and(|(_, counting)| counting.is_finished())
        {
            // Boxed, as whatever is rare: it would enlarge the task of every open stream.
            Box::pin(self.take_weight(&mut count.meter, WEIGHING)).await;
        }
        // Not the usual estimate: who writes in a script of one token a byte would be served four times the hold.
        let at_worst = count.meter.cost_if_dense();
        self.weigh(count, sample, held, at_worst);
        let Some(wanted) = self.plan(&count.meter, held, at_worst, now) else {
            return CreditVerdict::Covered;
        };
        // Making the bill may lower the cost: it tells the meter what is known by now.
        let checkpoint = stream.bill_so_far();
        let (count, hold) = stream.parts();
        let covered = count.meter.cost_if_dense() <= held;
        match Box::pin(self.grow(hold, wanted, checkpoint, covered)).await {
            Ok(()) => CreditVerdict::Covered,
            Err(ExtensionRefused::Later(reason)) => {
                // Where the ledger is silent, time is worth more than a second opinion: it may come back.
                let patience = if reason == EndReason::LedgerUnavailable {
                    LAST_PATIENCE
                } else {
                    WEIGHING
                };
                if Box::pin(self.weighs_less(count, sample, held, patience)).await {
                    CreditVerdict::Covered
                } else {
                    CreditVerdict::Spent(reason)
                }
            }
            Err(ExtensionRefused::Now(reason)) => CreditVerdict::Spent(reason),
        }
    }

    /// Whether the hold covers the text once a tokenizer has read it. What came while one was reading is read, too.
    async fn weighs_less(
        &mut self,
        count: &mut RunningCount,
        sample: &TextSample,
        held: Amount,
        patience: Duration,
    ) -> bool {
        let until = Instant::now() + patience;
        // Twice: once for what was being read, once for what was delivered since.
        for _ in 0..2 {
            if self.weighing.is_none() && count.meter.unweighed() > 0 {
                self.begin_weighing(count, sample);
            }
            let left = until.saturating_duration_since(Instant::now());
            self.take_weight(&mut count.meter, left).await;
            if count.meter.cost_if_dense() <= held {
                return true;
            }
        }
        false
    }

    /// As [`check`](Self::check), before the first frame: the target may have begun to produce what it does not show.
    pub(crate) async fn check_wait(
        &mut self,
        hold: &mut Hold,
        meter: &Meter,
        checkpoint: Bill,
        now: Instant,
    ) -> CreditVerdict {
        if hold.lapsed() {
            return CreditVerdict::Spent(EndReason::LedgerUnavailable);
        }
        let (held, due) = (hold.amount(), meter.cost_due());
        let Some(wanted) = self.plan(meter, held, due, now) else {
            return CreditVerdict::Covered;
        };
        match self.grow(hold, wanted, checkpoint, due <= held).await {
            Ok(()) => CreditVerdict::Covered,
            Err(ExtensionRefused::Later(reason) | ExtensionRefused::Now(reason)) => {
                CreditVerdict::Spent(reason)
            }
        }
    }

    /// Extends the hold. `covered`: it still suffices, so that a refusal for now is none.
    async fn grow(
        &mut self,
        hold: &mut Hold,
        wanted: Amount,
        checkpoint: Bill,
        covered: bool,
    ) -> Result<(), ExtensionRefused> {
        let patience = if covered { PATIENCE } else { LAST_PATIENCE };
        let extending = extend(hold, wanted, checkpoint);
        // An extension that timed out may still be committed: then the ledger holds more than we know, never less.
        let outcome = timeout(patience, extending)
            .await
            .unwrap_or(Err(ExtensionRefused::Later(EndReason::LedgerUnavailable)));
        match outcome {
            Ok(granted) if granted >= wanted => Ok(()),
            // A hold that does not cover the stream any more ends it; one that does may be tried again after the pause.
            Err(ExtensionRefused::Later(_)) if !covered => outcome.map(drop),
            Err(ExtensionRefused::Now(_)) => outcome.map(drop),
            // A part of what was wanted is the last of the balance: if it does not suffice, the next check ends the stream.
            Ok(_) | Err(ExtensionRefused::Later(_)) => {
                self.next_try = Instant::now() + PAUSE;
                Ok(())
            }
        }
    }

    /// Has a tokenizer read the delivered text shortly before it could have used up the hold.
    fn weigh(&mut self, count: &RunningCount, sample: &TextSample, held: Amount, at_worst: Amount) {
        let meter = &count.meter;
        let left = held.picos().saturating_sub(at_worst.picos());
        let low = slice_cost(meter.rates(), self.choices, SLICE).picos() / UNREAD_PART;
        // A hold of the whole limit never grows, so text is read only to see whether the provider keeps to the limit.
        let near = if covers_everything(meter, held) {
            meter.may_exceed_limit()
        } else {
            left <= low && meter.unweighed() > 0
        };
        if near && self.weighing.is_none() {
            self.begin_weighing(count, sample);
        }
    }

    fn begin_weighing(&mut self, count: &RunningCount, sample: &TextSample) {
        let counting = count.weigh_output(sample.clone());
        self.weighing = Some((count.meter.shown(), counting));
    }

    /// Applies the tokenizer's count, if it arrived in time.
    async fn take_weight(&mut self, meter: &mut Meter, patience: Duration) {
        let Some((shown, counting)) = &mut self.weighing else {
            return;
        };
        let Ok(counted) = timeout(patience, counting).await else {
            return;
        };
        if let Ok(Some(tokens)) = counted {
            meter.weigh(*shown, tokens);
        }
        self.weighing = None;
    }

    /// The new size of the hold, if it has to grow now.
    fn plan(
        &mut self,
        meter: &Meter,
        held: Amount,
        at_worst: Amount,
        now: Instant,
    ) -> Option<Amount> {
        let cost = meter.cost_at_most().picos();
        let left = held.picos().saturating_sub(cost);
        let at_worst = at_worst.picos();
        let slice = slice_cost(meter.rates(), self.choices, SLICE).picos();
        let coming = self
            .output_rate
            .tokens_in(LOW_TIME, meter.running_output(), now);
        let low = (slice / LOW_PART).max(slice_cost(meter.rates(), 1, coming).picos());
        let suffices = at_worst <= held.picos() && (left > low || now < self.next_try);
        if suffices || covers_everything(meter, held) {
            return None;
        }
        let to_come = slice_cost(meter.rates(), 1, self.to_come(meter)).picos();
        // Our count runs high, so near its end a stream seems to have used its whole limit; from then on it grows by the smallest
        // steps.
        let more = slice
            .max(low.saturating_mul(2))
            .min(to_come.max(slice / LOW_PART));
        Some(Amount::from_picos(cost.max(at_worst).saturating_add(more)))
    }

    /// Output tokens that the upstream may still produce.
    fn to_come(&self, meter: &Meter) -> u64 {
        self.output_limit.saturating_sub(meter.running_output())
    }
}

/// The upstream produces no more than its limit, so a hold that covers all of it is never extended and ends nothing.
fn covers_everything(meter: &Meter, held: Amount) -> bool {
    meter.cost_at_limit().is_some_and(|all| all <= held)
}

/// A stream's rate: over its whole life or the last window, whichever is higher.
#[derive(Debug)]
struct OutputRate {
    began: Instant,
    /// Output at the start of the previous window and of this one.
    marks: [(Instant, u64); 2],
}

impl OutputRate {
    /// The length of a window: as long as the time that a hold has to cover.
    const WINDOW: Duration = Duration::from_secs(2);
    /// Shorter bursts say nothing about a rate: a network delivers what has gathered at once.
    const SHORTEST: Duration = Duration::from_millis(500);

    fn new(now: Instant) -> Self {
        Self {
            began: now,
            marks: [(now, 0); 2],
        }
    }

    /// Tokens to expect within `time`, given `output` tokens so far.
    fn tokens_in(&mut self, time: Duration, output: u64, now: Instant) -> u64 {
        let [_, (latest, _)] = self.marks;
        if now.duration_since(latest) >= Self::WINDOW {
            self.marks = [self.marks[1], (now, output)];
        }
        let [(since, before), _] = self.marks;
        let rate = |tokens: u64, elapsed: Duration| {
            tokens.saturating_mul(millis(time)) / millis(elapsed.max(Self::SHORTEST))
        };
        // The higher of both: a burst after a pause is seen at once, and a pause does not hide what the model can do.
        let lately = rate(output.saturating_sub(before), now.duration_since(since));
        lately.max(rate(output, now.duration_since(self.began)))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Why a hold was not extended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ExtensionRefused {
    /// It may succeed later: the stream goes on as long as its hold suffices.
    Later(EndReason),
    /// It cannot succeed any more: the stream ends.
    Now(EndReason),
}

/// Extends to `wanted`, or by whatever is available. Returns the new size.
async fn extend(
    hold: &mut Hold,
    wanted: Amount,
    checkpoint: Bill,
) -> Result<Amount, ExtensionRefused> {
    // All or nothing first, which is one commit; what is left only if that is refused.
    match hold.extend(wanted, checkpoint.clone(), clock::now()).await {
        Ok(()) => Ok(wanted),
        Err(LedgerError::Refused(refusal))
            if refusal.holdable().is_some_and(Amount::is_positive) =>
        {
            let available = refusal.holdable().unwrap_or_default();
            let rest = Amount::from_picos(hold.amount().picos().saturating_add(available.picos()));
            hold.extend(rest, checkpoint, clock::now())
                .await
                .map(|()| rest)
                .map_err(refused)
        }
        Err(error) => Err(refused(error)),
    }
}

fn refused(error: LedgerError) -> ExtensionRefused {
    match error {
        LedgerError::Refused(Refusal::Insufficient { .. }) => {
            ExtensionRefused::Later(EndReason::Balance)
        }
        LedgerError::Refused(Refusal::CapReached(_)) => ExtensionRefused::Later(EndReason::Cap),
        // Whoever revoked or paused the key wants it to stop now.
        LedgerError::Refused(Refusal::NotActive(_) | Refusal::CustomerStopped(_)) => {
            ExtensionRefused::Now(EndReason::KeyState)
        }
        LedgerError::Refused(_) => ExtensionRefused::Now(EndReason::Internal),
        LedgerError::Unavailable(_)
        | LedgerError::Unknown(_)
        | LedgerError::Unusable(_)
        | LedgerError::Misplaced(_) => ExtensionRefused::Later(EndReason::LedgerUnavailable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_after_a_slow_beginning_is_seen_at_once() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut output_rate = OutputRate::new(begin);
        assert_eq!(output_rate.tokens_in(LOW_TIME, 100, begin + second), 200);
        for quiet in 2..60 {
            output_rate.tokens_in(LOW_TIME, 100, begin + second * quiet);
        }
        assert_eq!(
            output_rate.tokens_in(LOW_TIME, 100, begin + second * 60),
            3,
            "over its life"
        );
        output_rate.tokens_in(LOW_TIME, 100, begin + second * 61);
        assert!(
            output_rate.tokens_in(LOW_TIME, 4_100, begin + second * 62) >= 2_000,
            "lately"
        );
    }

    #[test]
    fn only_money_and_a_silent_ledger_are_worth_another_try() {
        let insufficient = Refusal::Insufficient {
            needed: Amount::ZERO,
            available: Amount::ZERO,
            held: Amount::ZERO,
        };
        assert_eq!(
            refused(insufficient.into()),
            ExtensionRefused::Later(EndReason::Balance)
        );
        assert_eq!(
            refused(LedgerError::unknown(String::new())),
            ExtensionRefused::Later(EndReason::LedgerUnavailable)
        );
        assert_eq!(
            refused(Refusal::NotActive(farebox_ledger::KeyStatus::Revoked).into()),
            ExtensionRefused::Now(EndReason::KeyState)
        );
    }
}

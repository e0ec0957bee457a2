//! Credit control of a running stream: the hold is extended before it runs low, and nothing is produced beyond it.
//!
//! A stream holds its output slice by slice, so that many can run side by side on a small balance. When nothing is left to
//! extend with, the last grants are smaller, and then the stream ends.

use std::time::Duration;

use farebox_ledger::{Amount, Bill, Hold, LedgerError, Refusal};
use tokio::time::Instant;

use super::job::Job;
use crate::clock;
use crate::metering::Meter;
use crate::metering::terms::{SLICE, slice_cost};

/// A hold is extended when less than this part of a slice is left …
const LOW_PART: i64 = 5;
/// … or less than this much time at the observed rate.
const LOW_TIME: Duration = Duration::from_secs(2);
/// Pause between attempts while the balance has nothing to give.
const PAUSE: Duration = Duration::from_millis(250);

/// Keeps one stream inside its money.
#[derive(Debug)]
pub(super) struct Credit {
    choices: u32,
    /// Most output tokens the upstream may produce.
    output_limit: u64,
    began: Instant,
    next_try: Instant,
}

/// Whether a stream may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The hold covers it.
    Covered,
    /// It does not, and cannot be made to; the reason for the journal.
    Spent(&'static str),
}

impl Credit {
    pub(super) fn new(choices: u32, output_limit: u64, now: Instant) -> Self {
        Self { choices, output_limit, began: now, next_try: now }
    }

    /// Compares what the stream has cost with what is held, and extends the hold when it runs low.
    pub(super) async fn check(&mut self, job: &mut Job) -> Verdict {
        let (now, meter) = (Instant::now(), &job.meter);
        let cost = meter.running_cost().picos();
        let left = job.hold.amount().picos().saturating_sub(cost);
        let slice = slice_cost(meter.rates(), self.choices, SLICE).picos();
        let low = (slice / LOW_PART).max(self.cost_of_time(meter, LOW_TIME, now));
        if left > low || self.covers_everything(meter, job.hold.amount()) || (left > 0 && now < self.next_try) {
            return Verdict::Covered;
        }
        let wanted = Amount::from_picos(cost.saturating_add(slice.max(low.saturating_mul(2))));
        let checkpoint = job.checkpoint();
        match extend(&mut job.hold, wanted, checkpoint).await {
            Ok(()) => Verdict::Covered,
            Err(_) if job.hold.amount().picos() > cost => {
                self.next_try = now + PAUSE;
                Verdict::Covered
            }
            Err(reason) => Verdict::Spent(reason),
        }
    }

    /// Cost of what is produced in `time` at the rate observed so far.
    fn cost_of_time(&self, meter: &Meter, time: Duration, now: Instant) -> i64 {
        let elapsed = now.duration_since(self.began).as_millis().max(500);
        let tokens = u128::from(meter.running_output()).saturating_mul(time.as_millis()) / elapsed;
        slice_cost(meter.rates(), 1, u64::try_from(tokens).unwrap_or(u64::MAX)).picos()
    }

    /// The upstream cannot produce more than its limit: a hold that covers all of it is never extended.
    fn covers_everything(&self, meter: &Meter, held: Amount) -> bool {
        let to_come = self.output_limit.saturating_sub(meter.running_output());
        let to_come = slice_cost(meter.rates(), 1, to_come).picos();
        meter.running_cost().picos().saturating_add(to_come) <= held.picos()
    }
}

/// Extends to `wanted`, or by whatever is available.
async fn extend(hold: &mut Hold, wanted: Amount, checkpoint: Bill) -> Result<(), &'static str> {
    match hold.extend(wanted, checkpoint.clone(), clock::now()).await {
        Ok(()) => Ok(()),
        Err(LedgerError::Refused(Refusal::Insufficient { available, .. })) if available > Amount::ZERO => {
            let rest = Amount::from_picos(hold.amount().picos().saturating_add(available.picos()));
            hold.extend(rest, checkpoint, clock::now()).await.map_err(reason)
        }
        Err(error) => Err(reason(error)),
    }
}

fn reason(error: LedgerError) -> &'static str {
    match error {
        LedgerError::Refused(Refusal::Insufficient { .. }) => "balance",
        LedgerError::Refused(Refusal::NotActive(_)) => "key_state",
        LedgerError::Refused(_) => "refused",
        LedgerError::Unavailable(_) | LedgerError::Unknown(_) | LedgerError::Unusable(_) => "ledger_unavailable",
    }
}

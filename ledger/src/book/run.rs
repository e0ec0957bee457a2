//! Sums of a customer's requests by the run that they name, month by month. Pure: each store keeps a row for each place, written with
//! the settlement.

use std::collections::BTreeMap;

use crate::{Amount, CustomerId, JournalEntry, KeyId, StatementMonth, UtcDay};

/// What the requests of a run cost in a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSum {
    /// The month in which they ended.
    pub month: StatementMonth,
    /// The name; empty for all those beyond [`RunSum::MOST_NAMES`].
    pub run: String,
    /// Ended requests, including free ones.
    pub requests: u64,
    /// The sum of the charges.
    pub charge: Amount,
}

impl RunSum {
    /// Names of a customer that are kept apart in one month.
    pub const MOST_NAMES: u32 = 10_000;
}

/// Which sums to read: month by month, what cost most first.
#[derive(Debug, Clone, Copy)]
pub struct RunQuery {
    /// Whose.
    pub customer: CustomerId,
    /// Of one of its keys, or of all.
    pub key: Option<KeyId>,
    /// The first and the last.
    pub months: (StatementMonth, StatementMonth),
    /// At most so many.
    pub limit: u32,
}

/// A row: a key's share of a run in a month.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunPlace {
    pub(crate) customer: CustomerId,
    /// The month's first day.
    pub(crate) month: UtcDay,
    pub(crate) run: String,
    pub(crate) key: KeyId,
}

/// What a batch adds, in requests and charges.
pub(crate) type RunSums = BTreeMap<RunPlace, (u64, Amount)>;

/// The runs of a customer's entries, month by month, for comparison with what is stored.
#[derive(Debug, Default)]
pub(crate) struct MonthsOfRuns(BTreeMap<StatementMonth, (u64, i128)>);

impl MonthsOfRuns {
    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        if entry.bill.as_ref().is_some_and(|bill| bill.run().is_some()) {
            let (requests, charge) = self.0.entry(StatementMonth::of(entry.at)).or_default();
            *requests = requests.saturating_add(1);
            *charge = charge.saturating_sub(entry.amount.picos().into());
        }
    }

    /// The first month of which these sums say something else.
    pub(crate) fn other_than(&self, stored: &[RunSum]) -> Option<StatementMonth> {
        let stored: BTreeMap<_, _> = (stored.iter())
            .map(|sum| (sum.month, (sum.requests, i128::from(sum.charge.picos()))))
            .collect();
        let mut months = self.0.keys().chain(stored.keys());
        months
            .find(|month| self.0.get(month) != stored.get(month))
            .copied()
    }
}

/// Adds an ended request to its run.
pub(crate) fn add(sums: &mut RunSums, entry: &JournalEntry) {
    let run = entry.bill.as_ref().and_then(|bill| bill.run());
    let (Some(run), Some(key)) = (run, entry.key) else {
        return;
    };
    let place = RunPlace {
        customer: entry.customer,
        month: StatementMonth::of(entry.at).first(),
        run: run.to_owned(),
        key,
    };
    let (requests, charge) = sums.entry(place).or_default();
    *requests = requests.saturating_add(1);
    // As hours do, it saturates: a month comes nowhere near.
    let sum = charge.picos().saturating_sub(entry.amount.picos());
    *charge = Amount::from_picos(sum);
}

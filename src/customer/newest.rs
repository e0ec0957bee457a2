//! The newest requests as the overview lists them: failures of one kind that cost nothing are one row between two answers, so that a
//! program that tries again and again leaves what was answered in sight.

use farebox_ledger::{
    Bill, EndReason, EntryKind, EntryQuery, JournalEntry, Key, KeyId, Ledger, LedgerError,
    Timestamp,
};

use super::receipt;
use super::share::seen;

/// Rows.
const ROWS: usize = 10;
/// How many entries each look reads: more only while failures fill less than the rows.
const LOOKS: [usize; 3] = [ROWS, 90, 400];

/// Further failures of the same kind as the newest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FailureRun {
    /// With the newest.
    pub(super) count: usize,
    /// When the first of them ended.
    pub(super) since: Timestamp,
    /// Whether there may be more that were not read.
    pub(super) has_more: bool,
}

/// A request, or the newest of several failures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NewestRequest {
    pub(super) entry: JournalEntry,
    pub(super) run: Option<FailureRun>,
}

/// The rows, newest first.
#[derive(Debug, Clone, Default)]
pub(super) struct NewestRequests {
    pub(super) rows: Vec<NewestRequest>,
    /// The row with which the failures since the last answer begin.
    failures: usize,
}

/// What makes failures alike.
#[derive(PartialEq)]
struct FailureKind<'a> {
    key: Option<KeyId>,
    slug: &'a str,
    status: u16,
    end_reason: &'a EndReason,
}

impl NewestRequests {
    /// Reads as much as the rows need, within a bound.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn read(ledger: &dyn Ledger, key: &Key) -> Result<Self, LedgerError> {
        let (mut newest, mut before) = (Self::default(), None);
        for limit in LOOKS {
            let query = EntryQuery {
                before,
                limit: Some(limit),
                ..seen(key)
            };
            let entries = ledger.entries(query).await?;
            before = entries.first().map(|oldest| oldest.position);
            let is_all = entries.len() < limit;
            let charges = entries.into_iter().rev();
            let mut charges = charges.filter(|entry| entry.kind == EntryKind::Charge);
            if !charges.all(|entry| newest.take(entry)) || is_all || newest.is_full() {
                return Ok(newest);
            }
        }
        newest.stop();
        Ok(newest)
    }

    /// Whether no older entry changes a row.
    fn is_full(&self) -> bool {
        self.rows.len() >= ROWS && self.failures == self.rows.len()
    }

    /// Takes the next older charge; false where it needs a row and there is none.
    fn take(&mut self, entry: JournalEntry) -> bool {
        let kind = failure(&entry);
        if let Some(kind) = &kind {
            let mut failures = self.rows.iter_mut().skip(self.failures);
            let same = failures.find(|row| failure(&row.entry).as_ref() == Some(kind));
            if let Some(row) = same {
                row.run = Some(FailureRun {
                    count: row.run.map_or(1, |run| run.count) + 1,
                    since: entry.at,
                    has_more: false,
                });
                return true;
            }
        }
        let is_failure = kind.is_some();
        if self.rows.len() >= ROWS {
            return false;
        }
        self.rows.push(NewestRequest { entry, run: None });
        if !is_failure {
            self.failures = self.rows.len();
        }
        true
    }

    /// Notes that what is older was not read.
    fn stop(&mut self) {
        for row in self.rows.iter_mut().skip(self.failures) {
            if let Some(run) = &mut row.run {
                run.has_more = true;
            }
        }
    }
}

/// The kind of a failure that cost nothing. One that was charged has a row of its own, like every charge.
fn failure(entry: &JournalEntry) -> Option<FailureKind<'_>> {
    let bill: &Bill = entry.bill.as_ref()?;
    let is_free = !receipt::charged(entry).is_positive();
    (is_free && !receipt::is_good(bill)).then_some(FailureKind {
        key: entry.key,
        slug: &bill.slug,
        status: bill.status,
        end_reason: &bill.end_reason,
    })
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{Amount, CustomerId, OperationId};

    use super::*;

    /// What an answer, a failure or a failure that cost something is, with the second in which it ended.
    fn ended(at: i64, status: u16, slug: &str, picos: i64) -> JournalEntry {
        let key = KeyId::from_random(7);
        let at = Timestamp::from_millis(at * 1_000);
        let end_reason = if status == 200 {
            EndReason::Stop
        } else {
            EndReason::UpstreamUnavailable
        };
        JournalEntry {
            position: at.millis(),
            seq: at.millis(),
            customer: CustomerId::made_for(key),
            key: Some(key),
            operation: OperationId::new(at, 7),
            kind: EntryKind::Charge,
            amount: Amount::from_picos(-picos),
            balance_after: Amount::ZERO,
            at,
            actor: "gateway".to_owned(),
            reference: None,
            reason: None,
            refunds: None,
            parts: Vec::new(),
            bill: Some(Bill {
                slug: slug.to_owned(),
                status,
                end_reason,
                ..Bill::default()
            }),
        }
    }

    /// The rows as their newest second, their number, and the second of the first.
    fn rows(newest: &NewestRequests) -> Vec<(i64, usize, i64)> {
        let second = |at: Timestamp| at.millis() / 1_000;
        let row = |row: &NewestRequest| {
            let at = second(row.entry.at);
            row.run
                .map_or((at, 1, at), |run| (at, run.count, second(run.since)))
        };
        newest.rows.iter().map(row).collect()
    }

    #[test]
    fn failures_of_one_kind_between_answers_are_one_row() {
        let mut newest = NewestRequests::default();
        for (at, status, slug, picos) in [
            (20, 503, "a", 0),
            (19, 503, "b", 0),
            (18, 503, "a", 0),
            (17, 503, "a", 0),
            (16, 200, "a", 5),
            (15, 503, "a", 0),
            (14, 502, "a", 0),
            (13, 503, "a", 7),
            (12, 503, "a", 0),
        ] {
            assert!(newest.take(ended(at, status, slug, picos)));
        }
        assert_eq!(
            rows(&newest),
            [
                (20, 3, 17),
                (19, 1, 19),
                (16, 1, 16),
                (15, 1, 15),
                (14, 1, 14),
                (13, 1, 13),
                (12, 1, 12)
            ],
            "an answer and a failure that cost something part the others"
        );
    }

    #[test]
    fn ten_rows_are_enough_and_a_run_at_their_end_is_counted_on() {
        let mut newest = NewestRequests::default();
        assert!((0..9).all(|at| newest.take(ended(100 - at, 200, "a", 5))));
        assert!(newest.take(ended(80, 503, "a", 0)) && !newest.is_full());
        assert!(newest.take(ended(79, 503, "a", 0)));
        assert!(
            !newest.take(ended(78, 200, "a", 5)),
            "there is no row for it"
        );
        assert_eq!(rows(&newest)[9], (80, 2, 79));
        newest.stop();
        assert!(newest.rows[9].run.is_some_and(|run| run.has_more));
        let mut answered = NewestRequests::default();
        assert!((0..10).all(|at| answered.take(ended(100 - at, 200, "a", 5))));
        assert!(answered.is_full());
    }
}

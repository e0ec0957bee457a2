//! Monthly statements: what happened to a customer's money in a month of UTC, as sums of its entries. Pure.
//!
//! Opening + paid + promotional + refunded ± adjusted ± moved − charged − expired − voided − reversed − written off = closing, and what
//! was used, by model and class, is what was charged. The verifier asserts it of every month.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::{Amount, CapInterval, EntryKind, JournalEntry, Timestamp, Usage, UtcDay};

/// A month of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementMonth(UtcDay);

impl StatementMonth {
    /// The month of an instant.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        Self(CapInterval::Month.window(UtcDay::of(at)))
    }

    /// Its first day.
    pub(crate) const fn first(self) -> UtcDay {
        self.0
    }

    /// Its first instant.
    #[must_use]
    pub const fn begin(self) -> Timestamp {
        self.0.begin()
    }

    /// The first instant after it.
    #[must_use]
    pub fn end(self) -> Timestamp {
        CapInterval::Month.next(self.0).unwrap_or(self.0).begin()
    }

    /// The month after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self::of(self.end())
    }
}

/// `2026-11`.
impl fmt::Display for StatementMonth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = self.0.to_string();
        out.write_str(day.get(..7).unwrap_or(&day))
    }
}

impl FromStr for StatementMonth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let day = (text.len() == 7).then(|| UtcDay::parse(&format!("{text}-01")));
        day.flatten()
            .map(Self)
            .ok_or_else(|| "write a month, as in 2026-11".to_owned())
    }
}

/// What was used of one model in one class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsedOfModel {
    /// Ended requests, including free ones.
    pub requests: u64,
    /// Disjoint token counts, summed.
    pub usage: Usage,
    /// What they cost.
    pub charged: Amount,
}

/// The sums of a month. What takes money is positive in its own figure, and subtracted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MonthlySums {
    /// The balance before its first entry.
    pub opening: Amount,
    /// Payments.
    pub paid: Amount,
    /// Credit that was given.
    pub promotional: Amount,
    /// Charges that were given back.
    pub refunded: Amount,
    /// Corrections, of either sign.
    pub adjusted: Amount,
    /// From and to other customers, of either sign.
    pub moved: Amount,
    /// For requests.
    pub charged: Amount,
    /// Credit that expired.
    pub expired: Amount,
    /// Credit that was taken back.
    pub voided: Amount,
    /// Taken for payments that went back; below zero if more was given back.
    pub reversed: Amount,
    /// Written off.
    pub written_off: Amount,
    /// The balance after its last entry.
    pub closing: Amount,
    /// What the charges bought, by slug and class; `standard` is the class of a request that asked for none.
    pub used: BTreeMap<(String, &'static str), UsedOfModel>,
    /// Entries that were added.
    pub entries: u64,
}

impl MonthlySums {
    /// A month in which nothing happened.
    #[must_use]
    pub fn quiet(balance: Amount) -> Self {
        Self {
            opening: balance,
            closing: balance,
            ..Self::default()
        }
    }

    /// Adds the entry before those that were added; the first is the month's last. `None` if a sum is too large.
    #[must_use]
    pub fn add_older(&mut self, entry: &JournalEntry) -> Option<()> {
        if self.entries == 0 {
            self.closing = entry.balance_after;
        }
        self.entries = self.entries.saturating_add(1);
        self.opening = entry.balance_after.checked_sub(entry.amount)?;
        let (figure, takes) = match entry.kind {
            EntryKind::TopUp => (&mut self.paid, false),
            EntryKind::Grant => (&mut self.promotional, false),
            EntryKind::Refund => (&mut self.refunded, false),
            EntryKind::Adjust => (&mut self.adjusted, false),
            EntryKind::Move => (&mut self.moved, false),
            EntryKind::Charge => (&mut self.charged, true),
            EntryKind::Expired => (&mut self.expired, true),
            EntryKind::Void => (&mut self.voided, true),
            EntryKind::Reversal => (&mut self.reversed, true),
            EntryKind::WriteOff => (&mut self.written_off, true),
            // Two entries of nothing together.
            EntryKind::Carry => (&mut self.promotional, false),
        };
        *figure = if takes {
            figure.checked_sub(entry.amount)?
        } else {
            figure.checked_add(entry.amount)?
        };
        let Some(bill) = &entry.bill else {
            return Some(());
        };
        let class = bill.served.class().unwrap_or("standard");
        let used = self.used.entry((bill.slug.clone(), class)).or_default();
        used.requests = used.requests.saturating_add(1);
        used.usage = used.usage.and(bill.usage);
        used.charged = used.charged.checked_sub(entry.amount)?;
        Some(())
    }

    /// Whether the equation holds.
    pub fn is_sound(&self) -> bool {
        let given = [
            self.opening,
            self.paid,
            self.promotional,
            self.refunded,
            self.adjusted,
            self.moved,
        ];
        let taken = [
            self.charged,
            self.expired,
            self.voided,
            self.reversed,
            self.written_off,
        ];
        let used = Amount::checked_sum(self.used.values().map(|used| used.charged));
        let closing = Amount::checked_sum(given)
            .zip(Amount::checked_sum(taken))
            .and_then(|(given, taken)| given.checked_sub(taken));
        closing == Some(self.closing) && used == Some(self.charged)
    }
}

/// A walk through a customer's entries, from the newest to the first, that adds up each month. Where a clock was set back in old
/// ledgers a month comes in parts, each of which adds up.
#[derive(Debug, Default)]
pub(crate) struct StatementWalk {
    month: Option<(StatementMonth, Option<MonthlySums>)>,
}

impl StatementWalk {
    /// Takes the next older entry; returns the month that ended before it and does not add up.
    pub(crate) fn older(&mut self, entry: &JournalEntry) -> Option<StatementMonth> {
        let month = StatementMonth::of(entry.at);
        let ended = match &self.month {
            Some((current, _)) if *current == month => None,
            _ => self.end(),
        };
        let (_, sums) = self
            .month
            .get_or_insert_with(|| (month, Some(MonthlySums::default())));
        let added = sums
            .take()
            .and_then(|mut sums| sums.add_older(entry).map(|()| sums));
        *sums = added;
        ended
    }

    /// Ends the walk; returns the month that it ended in, if that does not add up.
    pub(crate) fn end(&mut self) -> Option<StatementMonth> {
        let (month, sums) = self.month.take()?;
        let is_sound = sums.is_some_and(|sums| sums.is_sound());
        (!is_sound).then_some(month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bill, CustomerId, KeyId, OperationId};

    fn entry(kind: EntryKind, amount: i64, after: i64, at: &str) -> JournalEntry {
        let at: jiff::Timestamp = at.parse().unwrap();
        JournalEntry {
            position: 1,
            seq: 1,
            customer: CustomerId::from_random(1),
            key: Some(KeyId::from_random(1)),
            operation: OperationId::from_bytes([1; 16]),
            kind,
            amount: Amount::from_picos(amount),
            balance_after: Amount::from_picos(after),
            at: Timestamp::from_millis(at.as_millisecond()),
            actor: "gateway".to_owned(),
            reference: None,
            reason: None,
            refunds: None,
            parts: Vec::new(),
            bill: (kind == EntryKind::Charge).then(|| Bill {
                slug: "small".to_owned(),
                ..Bill::default()
            }),
        }
    }

    #[test]
    fn months_are_read_as_they_are_written() {
        let month: StatementMonth = "2026-12".parse().unwrap();
        assert_eq!(
            (month.to_string(), month.next().to_string()),
            ("2026-12".into(), "2027-01".into())
        );
        assert_eq!(StatementMonth::of(month.begin()), month);
        assert_eq!(StatementMonth::of(month.end()), month.next());
        for wrong in ["2026-13", "2026-1", "2026", "2026-11-01", "", "abcd-ef"] {
            assert!(wrong.parse::<StatementMonth>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_month_adds_up_and_a_changed_one_does_not() {
        let history = [
            entry(EntryKind::TopUp, 100, 100, "2026-10-31T23:59:59Z"),
            entry(EntryKind::Charge, -30, 70, "2026-11-01T00:00:00Z"),
            entry(EntryKind::Refund, 5, 75, "2026-11-02T00:00:00Z"),
            entry(EntryKind::Reversal, -15, 60, "2026-11-03T00:00:00Z"),
            entry(EntryKind::Adjust, -10, 50, "2026-11-30T23:59:59Z"),
        ];
        let mut sums = MonthlySums::default();
        for entry in history.iter().skip(1).rev() {
            sums.add_older(entry).unwrap();
        }
        let figures = [
            sums.opening,
            sums.charged,
            sums.reversed,
            sums.adjusted,
            sums.closing,
        ];
        assert_eq!(figures.map(Amount::picos), [100, 30, 15, -10, 50]);
        assert!(sums.is_sound());
        assert_eq!(sums.used[&("small".to_owned(), "standard")].requests, 1);

        let walk = |history: &[JournalEntry]| {
            let mut walk = StatementWalk::default();
            let mut faults: Vec<_> = history
                .iter()
                .rev()
                .filter_map(|entry| walk.older(entry))
                .collect();
            faults.extend(walk.end());
            faults.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(walk(&history), Vec::<String>::new());
        let mut changed = history.clone();
        changed[2].amount = Amount::from_picos(6);
        assert_eq!(walk(&changed), ["2026-11"]);
        let mut lost = history.to_vec();
        lost.remove(3);
        assert_eq!(walk(&lost), ["2026-11"]);
    }
}

//! The journal: what an entry is.
//!
//! Entries are only ever appended. Each points to its customer's previous entry (history is a walk along those pointers) and carries the
//! hash of its own content and of the previous entry. That hash freezes the field set: [`JournalEntry`] may only grow by a new hash
//! version.

use serde::{Deserialize, Serialize};

use crate::{Amount, Bill, CustomerId, KeyId, MoneyPart, OperationId, Timestamp, UtcDay};

/// The fact that names the day of a charge for caps where that is not the entry's own.
const DAY: &str = "day";

/// What kind of line an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Money paid in.
    TopUp,
    /// The end of one request; the amount is zero when it was free.
    Charge,
    /// Money given back for one charged request.
    Refund,
    /// A correction by an administrator, in either direction.
    Adjust,
    /// Credit with an expiry.
    Grant,
    /// What was left of a grant when it expired.
    Expired,
    /// What was left of a grant that was taken back.
    Void,
    /// Money that a payment's owner took back.
    Reversal,
    /// Money that came from another customer, or went to one.
    Move,
    /// What an operator took from a customer that is to be closed.
    WriteOff,
    /// What was left of a period of a plan and went on into the next: one entry of each.
    Carry,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Position in the whole journal, ascending; 1 is the first.
    pub position: i64,
    /// Position among this customer's entries; 1 is the first.
    pub seq: i64,
    /// The customer whose balance it changes.
    pub customer: CustomerId,
    /// The key that a charge is of, or that a payment or correction named; `None` if it named the customer alone.
    pub key: Option<KeyId>,
    /// The operation that made it; for a charge, the request's id.
    pub operation: OperationId,
    /// What it records: a top-up, an adjustment, a charge or a refund.
    pub kind: EntryKind,
    /// Signed: credits positive, charges negative.
    pub amount: Amount,
    /// Credit minus spent after this entry.
    pub balance_after: Amount,
    /// The ledger's clock when it was posted, UTC.
    pub at: Timestamp,
    /// Who did it: an operator's name, or `gateway`.
    pub actor: String,
    /// The payment's own name; charges have none. Unique in the ledger, except that the two entries of a move
    /// share one.
    pub reference: Option<String>,
    /// The reason; only adjustments and refunds have one.
    pub reason: Option<String>,
    /// The charged request that a refund gives back.
    pub refunds: Option<OperationId>,
    /// Where its money came from, or went to, if that was not the pool alone: all of it, in the order of use, with the entry's sign.
    pub parts: Vec<MoneyPart>,
    /// What was bought; only charges have it.
    pub bill: Option<Bill>,
}

impl EntryKind {
    /// Whether its amount changes the credit; all others change what was spent.
    pub(crate) const fn changes_credit(self) -> bool {
        !matches!(self, Self::Charge | Self::Refund)
    }
}

impl JournalEntry {
    /// The day on which the request of this entry began, as far as caps count: that of the entry, unless a fact names another one.
    pub(crate) fn day(&self) -> UtcDay {
        let named = self.bill.as_ref().and_then(|bill| bill.facts.get(DAY));
        named
            .and_then(|day| UtcDay::parse(day))
            .unwrap_or(UtcDay::of(self.at))
    }

    /// Records the day on which the request began, if the entry is of another one.
    pub(crate) fn set_day(&mut self, day: UtcDay) {
        if let Some(bill) = self.bill.as_mut()
            && day != UtcDay::of(self.at)
        {
            bill.facts.insert(DAY.to_owned(), day.to_string());
        }
    }

    /// The request this entry is about: a charge's own, or the one that a refund gives back.
    pub fn request(&self) -> Option<OperationId> {
        match self.kind {
            EntryKind::Charge => Some(self.operation),
            EntryKind::Refund => self.refunds,
            EntryKind::TopUp
            | EntryKind::Adjust
            | EntryKind::Grant
            | EntryKind::Expired
            | EntryKind::Void
            | EntryKind::Reversal
            | EntryKind::Move
            | EntryKind::WriteOff
            | EntryKind::Carry => None,
        }
    }
}

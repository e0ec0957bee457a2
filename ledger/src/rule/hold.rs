//! What a hold is: how it begins, grows, ends, and is recovered when its process has died. Pure; what it does to a customer's money is in
//! `account`.

use crate::value::owed::{Owed, UNMETERED};
use crate::{Amount, Bill, CustomerId, EndReason, Evidence, KeyId, OperationId, Timestamp, UtcDay};

/// A request for a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHold {
    /// The request's id.
    pub request: OperationId,
    /// Who pays.
    pub customer: CustomerId,
    /// The customer's key that asks.
    pub key: KeyId,
    /// How much at first.
    pub amount: Amount,
    /// The public slug.
    pub slug: String,
    /// The wire family.
    pub family: String,
    /// The caller's clock: it dates what is recorded.
    pub at: Timestamp,
}

/// A larger hold, and what was metered so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The request.
    pub request: OperationId,
    /// The new total to hold; a smaller one leaves the amount as it is.
    pub total: Amount,
    /// The charge so far, which recovery would take after a crash. `bill.lines` says how it was counted.
    pub checkpoint: Bill,
    /// The caller's clock: it dates what is recorded.
    pub at: Timestamp,
}

/// The end of a hold. `bill.lines` is the cost of the request; the store decides how much of it the customer can pay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The request.
    pub request: OperationId,
    /// How it ended. The store fills in `hold` and `loss`.
    pub bill: Bill,
    /// The caller's clock: it dates what is recorded.
    pub at: Timestamp,
}

impl Finish {
    /// A resolver's replacement for a finish with an absurd bill: the last checkpoint's counts, marked as disputed.
    pub(crate) fn disputed(self, checkpoint: Option<Bill>) -> Self {
        let counted = checkpoint.unwrap_or_default();
        let mut bill = Bill {
            usage: counted.usage,
            lines: counted.lines,
            evidence: Some(Evidence::Disputed),
            ..self.bill
        };
        if bill.check_facts().is_err() {
            (bill.exposure, bill.cost, bill.facts) =
                (counted.exposure, counted.cost, counted.facts);
        }
        Self { bill, ..self }
    }
}

/// The finish that recovery gives a hold whose process died.
pub(crate) fn recovered(hold: &OpenHold, checkpoint: Option<Bill>, now: Timestamp) -> Finish {
    let blank = || Bill {
        slug: hold.slug.clone(),
        family: hold.family.clone(),
        ..Bill::default()
    };
    let mut bill = checkpoint.unwrap_or_else(blank);
    bill.evidence = Some(Evidence::Recovered);
    bill.end_reason = EndReason::Recovered;
    // The provider went on until it noticed the disconnect. A hold is extended before it runs low, so the hold bounds the bill.
    let accounted = hold.used.picos().saturating_add(bill.exposure.picos());
    let exposure = Amount::from_picos(hold.amount.picos().saturating_sub(accounted).max(0));
    bill.owe(
        UNMETERED,
        Owed {
            exposure,
            cost: None,
        },
    );
    Finish {
        request: hold.request,
        bill,
        at: now,
    }
}

/// The result of ending a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedHold {
    /// Taken from the customer; not negative.
    pub charge: Amount,
    /// Cost that the customer could not pay.
    pub loss: Amount,
    /// Available to the key immediately afterwards.
    pub available: Amount,
}

/// A hold as the lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenHold {
    /// The request.
    pub request: OperationId,
    /// The key that asked; its customer pays.
    pub key: KeyId,
    /// Held now.
    pub amount: Amount,
    /// Charge so far at the last checkpoint.
    pub used: Amount,
    /// The public slug.
    pub slug: String,
    /// The wire family.
    pub family: String,
    /// When it was opened.
    pub at: Timestamp,
    /// The gateway run that opened it.
    pub epoch: i64,
}

/// What a recovery at startup did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The new epoch.
    pub epoch: i64,
    /// Holds ended with a charge from their checkpoint.
    pub settled: usize,
    /// Holds ended without a charge.
    pub released: usize,
}

/// An open hold, with the fields that lists do not show.
#[derive(Debug, Clone)]
pub(crate) struct StoredHold {
    pub(crate) open: OpenHold,
    /// Its size at the beginning.
    pub(crate) opened: Amount,
    /// The day by the ledger's clock on which it was opened: its caps count it there, and its charge.
    pub(crate) day: UtcDay,
    /// Boxed, because most holds end without one.
    pub(crate) checkpoint: Option<Box<Bill>>,
}

impl StoredHold {
    /// A hold as it is opened.
    pub(crate) fn new(new: &NewHold, epoch: i64, day: UtcDay) -> Self {
        let open = OpenHold {
            request: new.request,
            key: new.key,
            amount: new.amount,
            used: Amount::ZERO,
            slug: new.slug.clone(),
            family: new.family.clone(),
            at: new.at,
            epoch,
        };
        Self {
            open,
            opened: new.amount,
            day,
            checkpoint: None,
        }
    }

    /// Whether this is what opening `new` made. Its size may have grown since.
    pub(crate) fn is_of(&self, new: &NewHold) -> bool {
        let open = &self.open;
        (open.key, self.opened, &open.slug, &open.family, open.at)
            == (new.key, new.amount, &new.slug, &new.family, new.at)
    }
}

//! Holds: money reserved for one running request.
//!
//! [`Hold`] is the only way the gateway touches held money. It cannot be copied; [`Hold::settle`] and [`Hold::release`] consume it;
//! and one that is dropped instead (a panic, a forgotten path) hands its last noted bill to the store's resolver. So a hold may end
//! late, but is never lost.

use std::sync::Arc;

use crate::book::head::Head;
use crate::rule::account::Ending;
use crate::value::owed::UNMETERED;
use crate::{
    Amount, Bill, EndReason, Entry, EntryKind, Evidence, KeyId, Ledger, LedgerError, OperationId,
    Owed, Timestamp,
};

/// A request for a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHold {
    /// The request's id.
    pub request: OperationId,
    /// Who pays.
    pub key: KeyId,
    /// How much at first.
    pub amount: Amount,
    /// The public slug.
    pub slug: String,
    /// The wire family.
    pub family: String,
    /// When.
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
    /// When.
    pub at: Timestamp,
}

/// The end of a hold. `bill.lines` is the cost of the request; the store decides how much of it the key can pay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The request.
    pub request: OperationId,
    /// How it ended. The store fills in `hold` and `loss`.
    pub bill: Bill,
    /// When.
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

/// The entry that ends a hold, behind `head`.
pub(crate) fn charge_entry(
    hold: Held,
    finish: Finish,
    ending: &Ending,
    position: i64,
    head: &Head,
    now: Timestamp,
) -> Option<Entry> {
    Some(Entry {
        position,
        seq: head.seq.saturating_add(1),
        key: hold.key,
        operation: finish.request,
        kind: EntryKind::Charge,
        amount: ending.charge.checked_neg()?,
        balance_after: ending.account.balance(),
        at: head.dated(finish.at, now),
        actor: "gateway".to_owned(),
        reference: None,
        reason: None,
        refunds: None,
        bill: Some(Bill {
            hold: hold.amount,
            loss: ending.loss,
            ..finish.bill
        }),
    })
}

/// What extending or ending a hold reads of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) key: KeyId,
    pub(crate) amount: Amount,
}

/// The result of ending a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Taken from the key; not negative.
    pub charge: Amount,
    /// Cost that the key could not pay.
    pub loss: Amount,
    /// Available to the key immediately afterwards.
    pub available: Amount,
}

/// A hold as the lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenHold {
    /// The request.
    pub request: OperationId,
    /// Who pays.
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

/// Money held for one request; see the module's documentation.
#[derive(Debug)]
pub struct Hold {
    ledger: Arc<dyn Ledger>,
    request: OperationId,
    amount: Amount,
    noted: Option<Arc<Finish>>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The store was asked to open it and has not answered yet.
    Opening,
    Open,
    /// The store was asked to end it; whoever asked reports if there is no answer.
    Ending,
    /// Ended, or never opened.
    Ended,
}

impl Hold {
    /// Reserves money, or returns why not.
    ///
    /// # Errors
    /// Those of [`Ledger::open_hold`].
    pub async fn open(ledger: Arc<dyn Ledger>, new: NewHold) -> Result<Self, LedgerError> {
        let mut bill = Bill {
            slug: new.slug.clone(),
            family: new.family.clone(),
            ..Bill::default()
        };
        bill.end_reason = EndReason::Dropped;
        let noted = Finish {
            request: new.request,
            bill,
            at: new.at,
        };
        // The guard exists before the call, so a caller cancelled during the commit still releases the hold.
        let (request, amount, noted) = (new.request, new.amount, Some(Arc::new(noted)));
        let mut hold = Self {
            ledger: Arc::clone(&ledger),
            request,
            amount,
            noted,
            state: State::Opening,
        };
        let opened = ledger.open_hold(new).await;
        hold.state = match opened {
            Ok(()) => State::Open,
            Err(LedgerError::Unknown(_)) => State::Opening,
            Err(_) => State::Ended,
        };
        opened.map(|()| hold)
    }

    /// Held now.
    #[must_use]
    pub const fn amount(&self) -> Amount {
        self.amount
    }

    /// Whether other gateways may be about to end this hold, because this one has lost contact with the ledger.
    #[must_use]
    pub fn lapsed(&self) -> bool {
        self.ledger.lapsed()
    }

    /// The request this hold pays for.
    #[must_use]
    pub const fn request(&self) -> OperationId {
        self.request
    }

    /// Records the charge so far in memory: it is charged if this hold is dropped without being settled.
    pub fn note(&mut self, bill: Bill, at: Timestamp) {
        self.noted = Some(Arc::new(Finish {
            request: self.request,
            bill,
            at,
        }));
    }

    /// Raises the hold to `total` and stores `checkpoint` durably.
    ///
    /// # Errors
    /// Those of [`Ledger::extend_hold`]; the hold stays as it was.
    pub async fn extend(
        &mut self,
        total: Amount,
        checkpoint: Bill,
        at: Timestamp,
    ) -> Result<(), LedgerError> {
        self.note(checkpoint.clone(), at);
        self.ledger
            .extend_hold(Extension {
                request: self.request,
                total,
                checkpoint,
                at,
            })
            .await?;
        self.amount = self.amount.max(total);
        Ok(())
    }

    /// Ends the hold with what the request cost.
    ///
    /// # Errors
    /// Those of [`Ledger::finish_hold`]; the store's resolver then has the finish and will apply it later.
    pub async fn settle(mut self, bill: Bill, at: Timestamp) -> Result<Finished, LedgerError> {
        let finish = Arc::new(Finish {
            request: self.request,
            bill,
            at,
        });
        self.noted = Some(Arc::clone(&finish));
        self.state = State::Ending;
        let finished = self.ledger.finish_shared(finish).await?;
        self.state = State::Ended;
        Ok(finished)
    }

    /// Ends the hold without a charge. `bill` says how the request ended; its lines are dropped.
    ///
    /// # Errors
    /// As [`Hold::settle`].
    pub async fn release(self, mut bill: Bill, at: Timestamp) -> Result<Finished, LedgerError> {
        bill.lines.clear();
        self.settle(bill, at).await
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        match self.state {
            State::Ended => return,
            State::Ending => {}
            // Ordinary: the customer left before an upstream was asked, or the ledger could not be reached.
            State::Opening => {
                tracing::info!(request = %self.request, "a request was abandoned while its hold was being opened; the hold is released")
            }
            State::Open => {
                tracing::error!(request = %self.request, "a hold was dropped without being settled; its last noted bill goes to the resolver");
            }
        }
        if let Some(finish) = self.noted.take() {
            self.ledger.abandon_hold(finish);
        }
    }
}

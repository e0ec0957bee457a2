//! Holds: money reserved for one running request.
//!
//! [`Hold`] is the only way the gateway touches held money. It cannot be copied; [`Hold::settle`] and [`Hold::release`] consume it;
//! and one that is dropped instead (a panic, a forgotten path) hands its last noted bill to the store's resolver. So a hold may end
//! late, but is never lost.

use std::sync::Arc;

use crate::{
    Amount, Bill, EndReason, EndedHold, Extension, Finish, Ledger, LedgerError, NewHold,
    OperationId, Timestamp,
};

/// Money held for one request; see the module's documentation.
#[derive(Debug)]
pub struct Hold {
    ledger: Arc<dyn Ledger>,
    request: OperationId,
    amount: Amount,
    extensions: u32,
    noted: Option<Arc<Finish>>,
    state: HoldState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HoldState {
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
            extensions: 0,
            noted,
            state: HoldState::Opening,
        };
        let opened = ledger.open_hold(new).await;
        hold.state = match opened {
            Ok(()) => HoldState::Open,
            Err(LedgerError::Unknown(_)) => HoldState::Opening,
            Err(_) => HoldState::Ended,
        };
        opened.map(|()| hold)
    }

    /// Held now.
    #[must_use]
    pub const fn amount(&self) -> Amount {
        self.amount
    }

    /// How often it was raised.
    #[must_use]
    pub const fn extensions(&self) -> u32 {
        self.extensions
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
        self.extensions = self.extensions.saturating_add(1);
        Ok(())
    }

    /// Ends the hold with what the request cost.
    ///
    /// # Errors
    /// Those of [`Ledger::finish_hold`]; the store's resolver then has the finish and will apply it later.
    pub async fn settle(mut self, bill: Bill, at: Timestamp) -> Result<EndedHold, LedgerError> {
        let finish = Arc::new(Finish {
            request: self.request,
            bill,
            at,
        });
        self.noted = Some(Arc::clone(&finish));
        self.state = HoldState::Ending;
        let finished = self.ledger.finish_shared(finish).await?;
        self.state = HoldState::Ended;
        Ok(finished)
    }

    /// Ends the hold without a charge. `bill` says how the request ended; its lines are dropped.
    ///
    /// # Errors
    /// As [`Hold::settle`].
    pub async fn release(self, mut bill: Bill, at: Timestamp) -> Result<EndedHold, LedgerError> {
        bill.lines.clear();
        self.settle(bill, at).await
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        match self.state {
            HoldState::Ended => return,
            HoldState::Ending => {}
            // Ordinary: the customer left before an upstream was asked, or the ledger could not be reached.
            HoldState::Opening => {
                tracing::info!(request = %self.request, "a request was abandoned while its hold was being opened; the hold is released")
            }
            HoldState::Open => {
                tracing::error!(request = %self.request, "a hold was dropped without being settled; its last noted bill goes to the resolver");
            }
        }
        if let Some(finish) = self.noted.take() {
            self.ledger.abandon_hold(finish);
        }
    }
}

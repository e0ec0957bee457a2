//! Holds: money reserved for one running request.
//!
//! [`Hold`] is the only way the gateway touches held money. It cannot be copied; [`Hold::settle`] and [`Hold::release`] consume it;
//! and one that is dropped instead (a panic, a forgotten path) hands its last noted bill to the store's resolver. So a hold may end
//! late, but is never lost.

use std::sync::Arc;

use crate::{
    Amount, Bill, EndReason, EndedHold, Finish, Held, HoldMove, HoldWay, Ledger, LedgerError,
    NewHold, NewSize, OperationId, Perform, Timestamp,
};

/// What a request was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Granted {
    /// The place of the way that was taken among those of [`NewHold`].
    pub way: usize,
    /// The limit that this buys.
    pub limit: u64,
    /// What was left beside it.
    pub left: Amount,
    /// Whether a cap has less room than the balance.
    pub by_cap: bool,
}

/// Money held for one request; see the module's documentation.
#[derive(Debug)]
pub struct Hold {
    ledger: Arc<dyn Ledger>,
    request: OperationId,
    amount: Amount,
    granted: Granted,
    moves: u32,
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
    /// Reserves money in one of the ways that are named, or returns why not.
    ///
    /// # Errors
    /// Those of [`Operation::Open`](crate::Operation::Open).
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
        let mut hold = Self {
            ledger: Arc::clone(&ledger),
            request: new.request,
            amount: Amount::ZERO,
            granted: Granted::default(),
            moves: 0,
            noted: Some(Arc::new(noted)),
            state: HoldState::Opening,
        };
        let opened = ledger.perform(new).await;
        hold.state = match opened {
            Ok(_) => HoldState::Open,
            Err(LedgerError::Unknown(_)) => HoldState::Opening,
            Err(_) => HoldState::Ended,
        };
        hold.grant(opened?)?;
        Ok(hold)
    }

    /// Held now.
    pub const fn amount(&self) -> Amount {
        self.amount
    }

    /// Which way it was granted in, and the limit that this buys.
    pub const fn granted(&self) -> Granted {
        self.granted
    }

    /// How often it was given another size.
    pub const fn moves(&self) -> u32 {
        self.moves
    }

    /// Whether other gateways may be about to end this hold, because this one has lost contact with the ledger.
    pub fn lapsed(&self) -> bool {
        self.ledger.lapsed()
    }

    /// The request this hold pays for.
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

    /// Holds what one of these ways needs, in place of what is held, or returns why not.
    ///
    /// # Errors
    /// Those of [`Operation::MoveHold`](crate::Operation::MoveHold); the hold stays as it was.
    pub async fn reopen(&mut self, ways: Vec<HoldWay>, at: Timestamp) -> Result<(), LedgerError> {
        let held = self.move_to(NewSize::Ways(ways), None, at).await?;
        self.grant(held)
    }

    /// Gives the hold another size, as far as there is room, where one is named, and stores the charge so far durably.
    ///
    /// # Errors
    /// Those of [`Operation::MoveHold`](crate::Operation::MoveHold); the hold stays as it was.
    pub async fn checkpoint(
        &mut self,
        bill: Bill,
        to: Option<Amount>,
        at: Timestamp,
    ) -> Result<Held, LedgerError> {
        self.note(bill.clone(), at);
        let size = to.map_or(NewSize::Same, NewSize::Amount);
        let held = self.move_to(size, Some(bill), at).await?;
        self.amount = held.amount;
        Ok(held)
    }

    async fn move_to(
        &mut self,
        to: NewSize,
        checkpoint: Option<Bill>,
        at: Timestamp,
    ) -> Result<Held, LedgerError> {
        // Of two that overtake each other the newer one stands.
        self.moves = self.moves.saturating_add(1);
        let moved = HoldMove {
            request: self.request,
            number: self.moves,
            to,
            checkpoint,
            at,
        };
        self.ledger.perform(moved).await
    }

    fn grant(&mut self, held: Held) -> Result<(), LedgerError> {
        self.amount = held.amount;
        let (way, limit) = held.granted.ok_or_else(|| {
            let amount = held.amount;
            LedgerError::unknown(format!(
                "{amount} is held, which no way of the request makes"
            ))
        })?;
        self.granted = Granted {
            way,
            limit,
            left: held.left,
            by_cap: held.by_cap,
        };
        Ok(())
    }

    /// Ends the hold with what the request cost.
    ///
    /// # Errors
    /// Those of [`Operation::Finish`](crate::Operation::Finish); the store's resolver then has the finish and will apply it later.
    pub async fn settle(mut self, bill: Bill, at: Timestamp) -> Result<EndedHold, LedgerError> {
        let finish = Arc::new(Finish {
            request: self.request,
            bill,
            at,
        });
        self.noted = Some(Arc::clone(&finish));
        // Before the call: a caller who is cancelled in it leaves the bill to the resolver.
        self.state = HoldState::Ending;
        let finished = self.ledger.perform(finish).await?;
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

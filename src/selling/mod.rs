//! The acts of a seller: what the commands and `/api/v1` both call. A typed request becomes one operation of the ledger, and what it
//! came to a document.
//!
//! Nothing here decides about money: the ledger does, whoever asks.

pub mod auto_top_up;
pub mod caps;
pub mod customers;
pub mod dates;
pub mod documents;
pub mod erased;
pub mod keys;
pub mod money;
pub mod reads;
pub mod values;
pub mod vouchers;

use farebox_ledger::{
    Act, Customer, Key, Ledger, LedgerError, LinkToken, Operation, Outcome, Secret, VoucherCode,
};
use serde_json::Value;

use crate::clock;

/// An act that is about to be done.
#[derive(Debug)]
pub struct Deed {
    /// What the ledger is asked to do.
    pub operation: Operation,
    /// What its answer shows once.
    pub shown_once: Option<NewSecret>,
}

/// A secret that only the answer to its own request shows. `Debug` shows none.
#[derive(Debug)]
pub enum NewSecret {
    /// A key's new secret.
    Secret(Secret),
    /// A sign-in link.
    Link(LinkToken),
    /// The codes of a lot of vouchers, in the order of their numbers.
    Codes(Vec<VoucherCode>),
}

/// An act that was done.
#[derive(Debug)]
pub struct Deeded {
    /// What it came to.
    pub outcome: Outcome,
    /// What its answer shows once.
    pub shown_once: Option<NewSecret>,
}

impl<O: Into<Operation>> From<O> for Deed {
    fn from(operation: O) -> Self {
        Self {
            operation: operation.into(),
            shown_once: None,
        }
    }
}

impl Deed {
    /// Does it.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn perform(self, ledger: &dyn Ledger) -> Result<Deeded, LedgerError> {
        Ok(Deeded {
            outcome: ledger.apply(self.operation).await?,
            shown_once: self.shown_once,
        })
    }
}

impl Deeded {
    /// Its document, with what is shown once.
    pub fn document(&self) -> Value {
        match self.sold() {
            Some((key, secret)) => documents::key_with_secret(key, secret.reveal(), clock::now()),
            None => {
                let mut shown = documents::outcome(&self.outcome);
                if let Some(NewSecret::Codes(codes)) = &self.shown_once {
                    shown["codes"] = documents::codes(codes);
                }
                shown
            }
        }
    }

    /// A key with its new secret.
    pub fn sold(&self) -> Option<(&Key, &Secret)> {
        match (&self.outcome, &self.shown_once) {
            (Outcome::Key(key), Some(NewSecret::Secret(secret))) => Some((key, secret)),
            _ => None,
        }
    }

    /// The same, for keeps.
    ///
    /// # Errors
    /// When no key was sold, which a caller that sold one never sees.
    pub fn into_key(self) -> Result<(Key, Secret), LedgerError> {
        match (self.outcome, self.shown_once) {
            (Outcome::Key(key), Some(NewSecret::Secret(secret))) => Ok((*key, secret)),
            _ => Err(LedgerError::unknown("no key was made")),
        }
    }

    /// A customer that was made.
    ///
    /// # Errors
    /// When none was, which a caller that made one never sees.
    pub fn into_customer(self) -> Result<Customer, LedgerError> {
        match self.outcome {
            Outcome::Customer(customer) => Ok(*customer),
            _ => Err(LedgerError::unknown("no customer was made")),
        }
    }

    /// Whether the ledger knew it already, so that nothing changed.
    pub fn repeated(&self) -> bool {
        match &self.outcome {
            Outcome::Posted(posted) => posted.repeated,
            Outcome::Moved(moved) => moved.repeated,
            Outcome::Payment(moved) => moved.repeated,
            _ => false,
        }
    }
}

/// An administrative act, now, in somebody's name.
pub fn act(actor: String) -> Act {
    Act {
        operation: clock::operation_id(),
        actor,
        at: clock::now(),
    }
}

//! The rules of money: what each operation does to an account. Pure; every store calls these and nothing else.

use crate::{Amount, Refusal};

/// The three numbers of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// All that was ever paid in (adjustments included).
    pub credit: Amount,
    /// All that was ever charged, minus refunds.
    pub spent: Amount,
    /// Reserved by running requests.
    pub held: Amount,
}

impl Account {
    /// `credit − spent`.
    #[must_use]
    pub fn balance(&self) -> Amount {
        unimplemented!()
    }

    /// `balance − held`.
    #[must_use]
    pub fn available(&self) -> Amount {
        unimplemented!()
    }

    /// Reserve.
    ///
    /// # Errors
    /// [`Refusal::Insufficient`].
    pub fn hold(self, _amount: Amount) -> Result<Self, Refusal> {
        unimplemented!()
    }
}

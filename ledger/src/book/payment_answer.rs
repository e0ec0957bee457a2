//! What is answered to everything that moves a payment.

use crate::{Customer, JournalEntry, Payment};

/// The outcome of everything that moves a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentMoved {
    /// The payment as it is now.
    pub payment: Payment,
    /// Its customer as it is now.
    pub customer: Customer,
    /// The entry that was made: the credit, or what of it was taken or given back. A repetition finds the first one.
    pub entry: Option<JournalEntry>,
    /// Whether it changed nothing, because it was known.
    pub repeated: bool,
}

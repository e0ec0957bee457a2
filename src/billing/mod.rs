//! Money policy: what is counted, what a key may come to owe, what targets have taught.
//!
//! Below the spine, which asks and acts. Holds are opened, moved and settled above; nothing here sends a byte or knows a customer's
//! connection.

pub(crate) mod calibration;
pub(crate) mod exposure;
pub(crate) mod last_days;
pub(crate) mod outages;
pub(crate) mod reserve;
pub(crate) mod running;

use farebox_ledger::CustomerId;

pub use calibration::{Calibrations, ExceededTarget, Learned};
pub use exposure::StoppedPayer;
use farebox_door::byte_room::Holder;
pub use last_days::{ExposureSpan, ExposureStanding};

/// A number for the customer, for rooms that know none: memory budgets and the health of targets. All keys of a customer share it, so
/// that a thousand keys take no more than one.
pub fn holder(customer: CustomerId) -> Holder {
    Holder(customer.to_i64().cast_unsigned())
}

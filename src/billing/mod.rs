//! Money policy: what is counted, what a hold must cover next, what a key may come to owe, what targets have taught.
//!
//! Below the spine, which asks and acts. A hold may grow here, but is opened and settled above; nothing here sends a byte or knows a
//! customer's connection.

pub(crate) mod calibration;
pub(crate) mod credit;
pub(crate) mod exposure;
mod hidden;
pub(crate) mod last_hour;
pub(crate) mod outages;
pub(crate) mod running;
pub(crate) mod silence;

use farebox_ledger::CustomerId;

pub use calibration::{Calibrations, Learned};
pub use exposure::StoppedPayer;
use farebox_door::byte_room::Holder;
pub use last_hour::HourStanding;

/// A number for the customer, for rooms that know none: memory budgets and the health of targets. All keys of a customer share it, so
/// that a thousand keys take no more than one.
#[must_use]
pub fn holder(customer: CustomerId) -> Holder {
    Holder(customer.to_i64().cast_unsigned())
}

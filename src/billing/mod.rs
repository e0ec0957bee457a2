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

use farebox_ledger::KeyId;

use crate::byte_room::Holder;
pub use calibration::{Calibrations, Learned};
pub use last_hour::HourStanding;

/// A number for the key, for rooms that do not know keys: memory budgets and the health of targets.
#[must_use]
pub fn holder(key: KeyId) -> Holder {
    Holder(key.to_i64().cast_unsigned())
}

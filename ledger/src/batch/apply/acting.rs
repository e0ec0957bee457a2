//! Who acts with a customer's key. Whatever a customer does is judged in the transaction of its effect: a page that was shown earlier
//! gives no right.

use crate::batch::rows::Rows;
use crate::{KeyId, Refusal};

/// Refuses a key with which nobody may act now: an inactive one, and every one of a customer that is not served.
pub(super) fn check_acts(rows: &Rows, key: KeyId) -> Result<(), Refusal> {
    let (key, stored) = rows.key_and_customer(key)?;
    key.check_acts_of(&stored.customer, rows.now())
}

pub(super) fn refused(why: &str) -> Result<(), Refusal> {
    Err(Refusal::NotAllowed(why.to_owned()))
}

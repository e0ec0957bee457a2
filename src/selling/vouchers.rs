//! Vouchers: lots of codes to make, and to void.

use farebox_ledger::{Act, Amount, LotId, NewLot, Timestamp, VoidLot, VoucherCode};

use super::{Deed, NewSecret};
use crate::clock;

/// What the vouchers of a new lot are.
#[derive(Debug, Clone, Copy)]
pub struct LotTerms {
    /// How many.
    pub count: usize,
    /// What each is worth.
    pub amount: Amount,
    /// First instant at which they are worth nothing.
    pub expires: Option<Timestamp>,
    /// Whether a customer can redeem only one of them.
    pub once_per_customer: bool,
}

/// A new lot; its codes are shown once.
///
/// # Errors
/// Too many or none, or an expiry in the past, in words.
pub fn create(terms: LotTerms, act: Act) -> Result<Deed, String> {
    check_count(terms.count)?;
    if let Some(past) = terms.expires.filter(|end| *end <= clock::now()) {
        return Err(format!(
            "the vouchers would have expired at {past}, which is in the past; nothing was made"
        ));
    }
    let codes: Vec<VoucherCode> = (0..terms.count)
        .map(|_| VoucherCode::generate(clock::random()))
        .collect();
    let new = NewLot {
        id: LotId::from_random(u64::from_be_bytes(clock::random())),
        codes: codes.iter().map(VoucherCode::hash).collect(),
        amount: terms.amount,
        expires_at: terms.expires,
        once_per_customer: terms.once_per_customer,
        act,
    };
    Ok(Deed {
        operation: new.into(),
        shown_once: Some(NewSecret::Codes(codes)),
    })
}

/// Refuses a number of vouchers that no lot has.
///
/// # Errors
/// What a lot may have.
pub fn check_count(count: usize) -> Result<usize, String> {
    let most = NewLot::MOST;
    if (1..=most).contains(&count) {
        return Ok(count);
    }
    Err(format!("write a whole number between 1 and {most}"))
}

/// What is left of a lot is worth nothing from now on.
pub fn void(lot: LotId, act: Act) -> Deed {
    VoidLot { lot, act }.into()
}

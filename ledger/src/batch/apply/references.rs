//! Names that entries, payments and grants can have: each is taken for ever by the first of them.

use super::delegation;
use crate::batch::rows::Rows;
use crate::rule::auto_top_up::TopUpWish;
use crate::value::reference::{self, OF_WISHES};
use crate::{CustomerId, Payment, Refusal};

/// Refuses a reference that is taken, or only the payment of a wish may have.
pub(super) fn check_reference(rows: &Rows, reference: &str) -> Result<(), Refusal> {
    check_no_wish(reference)?;
    check_free(rows, reference)
}

/// The same of the payment that comes with a key, which may take over that of an unapplied one.
pub(super) fn check_first_reference(rows: &Rows, reference: &str) -> Result<(), Refusal> {
    check_no_wish(reference)?;
    check_payable_name(rows, reference)
}

fn check_no_wish(reference: &str) -> Result<(), Refusal> {
    if TopUpWish::is_reference(reference) {
        return Err(Refusal::NotApplicable(format!(
            "references that begin with {OF_WISHES} are those of payments that auto top-ups asked for; choose another"
        )));
    }
    Ok(())
}

/// Refuses a payment under a reference that is taken, or under that of a wish which this customer's rule has not made: its payment must
/// find it free.
pub(super) fn check_payment(
    rows: &Rows,
    customer: CustomerId,
    reference: &str,
) -> Result<(), Refusal> {
    if TopUpWish::is_reference(reference) {
        let newest = rows.customer(customer)?.watch.seq;
        let is_of = |(of, number): &(CustomerId, i64)| *of == customer && *number <= newest;
        if TopUpWish::named(reference).filter(is_of).is_none() {
            return Err(Refusal::NotApplicable(format!(
                "no auto top-up of customer {customer} asked for a payment {:?}",
                reference::normal(reference)
            )));
        }
    }
    check_payable_name(rows, reference)
}

/// Refuses a name that no new payment can have.
pub(super) fn check_payable_name(rows: &Rows, reference: &str) -> Result<(), Refusal> {
    match rows.payment(reference) {
        Some(known) if may_take_over(rows, known)? => Ok(()),
        _ => check_free(rows, reference),
    }
}

/// Whether the name of a payment can be taken over: nothing was booked under it, so whoever told it may have made it up.
pub(super) fn may_take_over(rows: &Rows, known: &Payment) -> Result<bool, Refusal> {
    Ok(known.is_unapplied() && !delegation::sells(rows)?)
}

pub(super) fn check_free(rows: &Rows, reference: &str) -> Result<(), Refusal> {
    let of_entry = rows.entry_by_reference(reference);
    let of_entry = of_entry.map(|entry| (entry.reference.clone(), entry.customer));
    // A payment that could not be booked has its name, and no entry.
    let of_payment = || {
        let payment = rows.payment(reference)?;
        Some((Some(payment.reference.clone()), payment.customer))
    };
    // So has a grant that begins later.
    let of_grant = || {
        let record = rows.grant_by_reference(reference)?;
        Some((record.reference.0.clone(), record.grant.customer))
    };
    match of_entry.or_else(of_payment).or_else(of_grant) {
        Some((reference, customer)) => Err(Refusal::ReferenceUsed {
            reference: reference.unwrap_or_default(),
            customer,
        }),
        None => Ok(()),
    }
}

//! The one decoder of payments, for both databases.

use super::rows::{Decoded, Malformed, RowColumns};
use crate::rule::payment::{PaidSum, Payment, PaymentStatus, Registers};
use crate::value::gross::Gross;

/// What [`payment`] takes, of `payments p`.
macro_rules! payment_columns {
    () => {
        "p.reference, p.customer, p.currency, p.gross, p.tax, p.credit, p.refunded, p.withdrawn, p.reinstated, p.status, p.why, \
         p.actor, p.token, p.at"
    };
}
pub(crate) use payment_columns;

pub(crate) fn payment(columns: &mut impl RowColumns) -> Decoded<Payment> {
    Ok(Payment {
        reference: columns.text()?,
        customer: columns.customer()?,
        paid: PaidSum {
            currency: columns.text()?,
            gross: gross(columns)?,
            tax: gross(columns)?,
        },
        credit: columns.amount()?,
        registers: Registers {
            refunded: gross(columns)?,
            withdrawn: gross(columns)?,
            reinstated: gross(columns)?,
        },
        status: match (columns.number()?, columns.maybe_text()?) {
            (1, None) => PaymentStatus::Booked,
            (2, Some(why)) => PaymentStatus::Unapplied { why },
            (3, None) => PaymentStatus::Returned,
            _ => return Err(Malformed::Value("status of a payment")),
        },
        actor: columns.text()?,
        token: columns.maybe_token()?,
        at: columns.at()?,
    })
}

fn gross(columns: &mut impl RowColumns) -> Decoded<Gross> {
    columns.code("amount of a payment", Gross::from_parts)
}

/// A status as both databases store it.
pub(crate) const fn status_code(status: &PaymentStatus) -> i64 {
    match status {
        PaymentStatus::Booked => 1,
        PaymentStatus::Unapplied { .. } => 2,
        PaymentStatus::Returned => 3,
    }
}

/// Why a payment is unapplied.
pub(crate) const fn why(status: &PaymentStatus) -> Option<&String> {
    match status {
        PaymentStatus::Unapplied { why } => Some(why),
        PaymentStatus::Booked | PaymentStatus::Returned => None,
    }
}

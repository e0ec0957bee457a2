//! The one decoder of payments, for both databases.

use super::rows::{Decoded, Malformed, RowColumns};
use crate::rule::payment::{PaidSum, Payment, PaymentStatus, Registers};
use crate::value::gross::Gross;
use crate::{CustomerId, PersonalData};

/// What [`payment`] takes, of `payments p`.
macro_rules! payment_columns {
    () => {
        "p.reference, p.customer, p.currency, p.gross, p.tax, p.credit, p.refunded, p.withdrawn, p.reinstated, p.waiting, p.status, \
         p.why, p.actor, p.token, p.at"
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
        waiting: columns
            .maybe_json("list of what went back")?
            .unwrap_or_default(),
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

/// What went back of a payment and is not booked, for its column.
pub(crate) fn waiting(payment: &Payment) -> Option<String> {
    let waiting = &payment.waiting;
    // A list of plain values can always be written.
    let text = || serde_json::to_string(waiting).unwrap_or_default();
    (!waiting.is_empty()).then(text)
}

/// Why a payment is unapplied.
pub(crate) const fn why(status: &PaymentStatus) -> Option<&String> {
    match status {
        PaymentStatus::Unapplied { why } => Some(why),
        PaymentStatus::Booked | PaymentStatus::Returned => None,
    }
}

/// A payment's folded reference, whose it is, and whom it is addressed to.
pub(crate) fn addressee(
    columns: &mut impl RowColumns,
) -> Decoded<(String, CustomerId, Option<PersonalData>)> {
    let (folded, customer) = (columns.text()?, columns.customer()?);
    Ok((folded, customer, columns.maybe_json("an addressee")?))
}

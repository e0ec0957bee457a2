//! The one decoder of vouchers and their lots, for both databases.

use super::rows::{Decoded, Malformed, RowColumns};
use crate::rule::voucher::Voucher;
use crate::{CustomerId, Lot, LotId, OperationId};

/// What [`lot`] takes, of `lots l`.
macro_rules! lot_columns {
    () => {
        "l.id, l.count, l.amount, l.expires_at, l.once, l.void, l.redeemed, l.created_at, l.created_by, l.operation"
    };
}
pub(crate) use lot_columns;

/// What [`voucher`] takes, of `vouchers v`.
macro_rules! voucher_columns {
    () => {
        "v.code, v.lot, v.number, v.customer, v.operation"
    };
}
pub(crate) use voucher_columns;

pub(crate) fn lot_id(columns: &mut impl RowColumns) -> Decoded<LotId> {
    LotId::from_i64(columns.number()?).ok_or(Malformed::Value("lot's id"))
}

/// A lot, and the operation that made it.
pub(crate) fn lot(columns: &mut impl RowColumns) -> Decoded<(Lot, OperationId)> {
    let lot = Lot {
        id: lot_id(columns)?,
        count: columns.small()?,
        amount: columns.amount()?,
        expires_at: columns.maybe_at()?,
        once_per_customer: columns.number()? != 0,
        is_void: columns.number()? != 0,
        redeemed: columns.small()?,
        created_at: columns.at()?,
        created_by: columns.text()?,
    };
    Ok((lot, columns.operation()?))
}

pub(crate) fn voucher(columns: &mut impl RowColumns) -> Decoded<Voucher> {
    Ok(Voucher {
        code: columns.secret()?,
        lot: lot_id(columns)?,
        number: columns.small()?,
        redeemed: match (columns.maybe_number()?, columns.maybe_operation()?) {
            (None, None) => None,
            (Some(customer), Some(operation)) => {
                let customer = CustomerId::from_i64(customer);
                Some((
                    customer.ok_or(Malformed::Value("customer's id"))?,
                    operation,
                ))
            }
            _ => return Err(Malformed::Value("voucher")),
        },
    })
}

/// A lot, and a customer who redeemed one of its vouchers.
pub(crate) fn redeemer(columns: &mut impl RowColumns) -> Decoded<(LotId, CustomerId)> {
    Ok((lot_id(columns)?, columns.customer()?))
}

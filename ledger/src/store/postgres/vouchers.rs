//! Vouchers in a database: what a batch writes of them, and what is read of them.

use tokio_postgres::Row;

use super::link::Link;
use super::rows::Columns;
use super::trouble::TransactionTrouble;
use super::writes::{TableWrite, Write};
use crate::batch::rows::Rows;
use crate::rule::voucher::Voucher;
use crate::store::rows::Decoded;
use crate::store::token_rows::millis;
use crate::store::voucher_rows::{self, lot_columns, voucher_columns};
use crate::{CustomerId, Lot, LotId, OperationId};

/// Selects what [`lot`] takes; a condition may follow.
pub(super) const SELECT_LOT: &str = concat!("SELECT ", lot_columns!(), " FROM lots l");
/// Selects what [`voucher`] takes; a condition may follow.
pub(super) const SELECT_VOUCHER: &str = concat!("SELECT ", voucher_columns!(), " FROM vouchers v");

pub(super) fn lot(row: &Row) -> Decoded<(Lot, OperationId)> {
    voucher_rows::lot(&mut Columns::of(row))
}

pub(super) fn voucher(row: &Row) -> Decoded<Voucher> {
    voucher_rows::voucher(&mut Columns::of(row))
}

pub(super) fn redeemer(row: &Row) -> Decoded<(LotId, CustomerId)> {
    voucher_rows::redeemer(&mut Columns::of(row))
}

/// What has changed of vouchers.
pub(super) fn of_vouchers(rows: &Rows, writes: &mut Vec<Write<'_>>) {
    for is_new in [true, false] {
        let of = rows.changed_lots();
        let lots: Vec<(&Lot, OperationId)> = of
            .filter(|(.., was_stored)| *was_stored != is_new)
            .map(|(lot, made_by, _)| (lot, made_by))
            .collect();
        if !lots.is_empty() {
            let table = TableWrite::of("lots", &lots)
                .number("id", |(lot, _)| lot.id.to_i64())
                .number("void", |(lot, _)| i64::from(lot.is_void))
                .number("redeemed", |(lot, _)| i64::from(lot.redeemed));
            writes.push(if is_new {
                table
                    .number("count", |(lot, _)| i64::from(lot.count))
                    .number("amount", |(lot, _)| lot.amount.picos())
                    .number("expires_at", |(lot, _)| millis(lot.expires_at))
                    .number("once", |(lot, _)| i64::from(lot.once_per_customer))
                    .number("created_at", |(lot, _)| lot.created_at.millis())
                    .text("created_by", |(lot, _)| lot.created_by.clone())
                    .bytes("operation", |(_, made_by)| made_by.to_bytes().to_vec())
                    .insert("")
            } else {
                table.update("id")
            });
        }
        let of = rows.changed_vouchers();
        let vouchers: Vec<&Voucher> = of
            .filter(|(_, was_stored)| *was_stored != is_new)
            .map(|(voucher, _)| voucher)
            .collect();
        if !vouchers.is_empty() {
            let table = TableWrite::of("vouchers", &vouchers)
                .bytes("code", |voucher| voucher.code.0.to_vec())
                .number("customer", |voucher| {
                    voucher.redeemed.map(|(customer, _)| customer.to_i64())
                })
                .bytes("operation", |voucher| {
                    voucher.redeemed.map(|(_, id)| id.to_bytes().to_vec())
                });
            writes.push(if is_new {
                table
                    .number("lot", |voucher| voucher.lot.to_i64())
                    .number("number", |voucher| i64::from(voucher.number))
                    .insert("")
            } else {
                table.update("code")
            });
        }
    }
}

pub(super) async fn lots(link: &Link) -> Result<Vec<(Lot, OperationId)>, TransactionTrouble> {
    let sql = format!("{SELECT_LOT} ORDER BY l.created_at, l.id");
    let rows = link.query(&sql, &[]).await?;
    rows.iter().map(|row| Ok(lot(row)?)).collect()
}

pub(super) async fn all(link: &Link) -> Result<Vec<Voucher>, TransactionTrouble> {
    let sql = format!("{SELECT_VOUCHER} ORDER BY v.lot, v.number");
    let rows = link.query(&sql, &[]).await?;
    rows.iter().map(|row| Ok(voucher(row)?)).collect()
}

//! Vouchers in a file: what a batch reads and writes of them, and what others read.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::batch::{Batch, BatchTables, Changed};
use super::rows::{Columns, select_lot, select_voucher};
use super::statements::Sql;
use crate::batch::needs::Needs;
use crate::batch::rows::{CachedRow, Rows};
use crate::rule::voucher::Voucher;
use crate::store::voucher_rows;
use crate::{CustomerId, Lot, LotId, OperationId};

fn lot(row: &Row<'_>) -> Result<(Lot, OperationId)> {
    Ok(voucher_rows::lot(&mut Columns::of(row))?)
}

fn voucher(row: &Row<'_>) -> Result<Voucher> {
    Ok(voucher_rows::voucher(&mut Columns::of(row))?)
}

fn redeemer(row: &Row<'_>) -> Result<(LotId, CustomerId)> {
    Ok(voucher_rows::redeemer(&mut Columns::of(row))?)
}

impl Batch<'_> {
    /// Reads what an operation needs of vouchers. Returns the operation of the entry by which one was redeemed, which it needs, too.
    pub(super) fn fetch_of_vouchers(&mut self, needs: &Needs<'_>) -> Result<Option<OperationId>> {
        if let Some(id) = needs.lot {
            self.fetch_lot(id)?;
        }
        let Some(code) = needs.voucher else {
            return Ok(None);
        };
        let read = self.tables.statements.get(Sql::Voucher)?;
        let Some(found) = read.query_row([code], voucher).optional()? else {
            return Ok(None);
        };
        let (of, redeemed) = (found.lot, found.redeemed);
        self.rows.vouchers.insert(code.0, CachedRow::stored(found));
        self.fetch_lot(of)?;
        let read = self.tables.statements.get(Sql::Redeemers)?;
        let redeemers = read
            .query_map([of], redeemer)?
            .collect::<Result<Vec<_>>>()?;
        self.rows.redeemers.extend(redeemers);
        Ok(redeemed.map(|(_, operation)| operation))
    }

    fn fetch_lot(&mut self, id: LotId) -> Result<()> {
        let read = self.tables.statements.get(Sql::Lot)?;
        if let Some(found) = read.query_row([id], lot).optional()? {
            self.rows.lots.insert(id, CachedRow::stored(found));
        }
        Ok(())
    }
}

impl BatchTables<'_> {
    /// Writes what has changed of vouchers.
    pub(super) fn of_vouchers(&mut self, rows: &Rows) -> Result<()> {
        for (lot, made_by, was_stored) in rows.changed_lots() {
            if was_stored {
                let values = params![lot.id, lot.is_void, lot.redeemed];
                self.statements.get(Sql::UpdateLot)?.execute(values)?;
            } else {
                let values = params![
                    lot.id,
                    lot.count,
                    lot.amount,
                    lot.expires_at,
                    lot.once_per_customer,
                    lot.is_void,
                    lot.redeemed,
                    lot.created_at,
                    lot.created_by,
                    made_by,
                ];
                self.statements.get(Sql::InsertLot)?.execute(values)?;
            }
            self.mark(Changed::Anything);
        }
        for (voucher, was_stored) in rows.changed_vouchers() {
            let (customer, operation) = voucher.redeemed.unzip();
            if was_stored {
                let values = params![voucher.code, customer, operation];
                self.statements.get(Sql::TakeVoucher)?.execute(values)?;
            } else {
                let values = params![
                    voucher.code,
                    voucher.lot,
                    voucher.number,
                    customer,
                    operation
                ];
                self.statements.get(Sql::InsertVoucher)?.execute(values)?;
            }
            self.mark(Changed::Anything);
        }
        Ok(())
    }
}

pub(super) fn lots(conn: &Connection) -> Result<Vec<(Lot, OperationId)>> {
    conn.prepare(concat!(select_lot!(), " ORDER BY l.created_at, l.id"))?
        .query_map([], lot)?
        .collect()
}

pub(super) fn all(conn: &Connection) -> Result<Vec<Voucher>> {
    conn.prepare(concat!(select_voucher!(), " ORDER BY v.lot, v.number"))?
        .query_map([], voucher)?
        .collect()
}

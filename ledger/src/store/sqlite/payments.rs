//! Payments in a file: what a batch writes of them, and what is read of them.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::batch::{BatchTables, Changed};
use super::rows::{Columns, select_payment};
use super::statements::Sql;
use crate::batch::rows::Rows;
use crate::store::payment_rows::{self, status_code};
use crate::value::reference;
use crate::{CustomerId, Payment, PersonalData};

pub(super) fn payment(row: &Row<'_>) -> Result<Payment> {
    Ok(payment_rows::payment(&mut Columns::of(row))?)
}

pub(super) fn addressee(row: &Row<'_>) -> Result<(String, CustomerId, Option<PersonalData>)> {
    Ok(payment_rows::addressee(&mut Columns::of(row))?)
}

impl BatchTables<'_> {
    /// Writes the payments that have changed.
    pub(super) fn payments(&mut self, rows: &Rows) -> Result<()> {
        for (folded, row) in rows.changed_payments() {
            let Some(payment) = &row.now else { continue };
            let registers = payment.registers;
            self.statements.get(Sql::PutPayment)?.execute(params![
                folded,
                payment.reference,
                payment.customer,
                payment.paid.currency,
                payment.paid.gross.parts(),
                payment.paid.tax.parts(),
                payment.credit,
                registers.refunded.parts(),
                registers.withdrawn.parts(),
                registers.reinstated.parts(),
                status_code(&payment.status),
                payment_rows::why(&payment.status),
                payment.actor,
                payment.at,
                payment.token,
                payment_rows::waiting(payment),
            ])?;
            self.mark(Changed::Anything);
        }
        Ok(())
    }
}

pub(super) fn find(conn: &Connection, spelled: &str) -> Result<Option<Payment>> {
    conn.prepare_cached(concat!(select_payment!(), " WHERE p.folded = ?1"))?
        .query_row([reference::folded(spelled)], payment)
        .optional()
}

pub(super) fn unapplied(conn: &Connection) -> Result<Vec<Payment>> {
    conn.prepare_cached(concat!(
        select_payment!(),
        " WHERE p.status = 2 OR p.waiting IS NOT NULL ORDER BY p.at, p.folded"
    ))?
    .query_map([], payment)?
    .collect()
}

pub(super) fn of_customer(conn: &Connection, customer: CustomerId) -> Result<Vec<Payment>> {
    conn.prepare_cached(concat!(
        select_payment!(),
        " WHERE p.customer = ?1 ORDER BY p.folded"
    ))?
    .query_map([customer], payment)?
    .collect()
}

pub(super) fn all(conn: &Connection) -> Result<Vec<Payment>> {
    conn.prepare(concat!(select_payment!(), " ORDER BY p.folded"))?
        .query_map([], payment)?
        .collect()
}

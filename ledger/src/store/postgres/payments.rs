//! Payments in a database: what a batch writes of them, and what is read of them.

use tokio_postgres::Row;

use super::link::Link;
use super::readers::Readers;
use super::rows::Columns;
use super::trouble::TransactionTrouble;
use super::writes::{TableWrite, Write};
use crate::batch::rows::Rows;
use crate::store::payment_rows::{self, payment_columns, status_code};
use crate::store::rows::Decoded;
use crate::value::reference;
use crate::{CustomerId, LedgerError, Payment, PersonalData, TokenId};

/// Selects what [`payment`] takes; a condition may follow.
pub(super) const SELECT_PAYMENT: &str = concat!("SELECT ", payment_columns!(), " FROM payments p");

pub(super) fn payment(row: &Row) -> Decoded<Payment> {
    payment_rows::payment(&mut Columns::of(row))
}

pub(super) fn addressee(row: &Row) -> Decoded<(String, CustomerId, Option<PersonalData>)> {
    payment_rows::addressee(&mut Columns::of(row))
}

/// The payments that have changed. A new one is never written over another.
pub(super) fn payments<'b>(rows: &'b Rows, writes: &mut Vec<Write<'b>>) {
    for is_new in [true, false] {
        let found: Vec<(&String, &Payment)> = rows
            .changed_payments()
            .filter(|(_, row)| row.was_stored != is_new)
            .filter_map(|(folded, row)| Some((folded, row.now.as_ref()?)))
            .collect();
        if found.is_empty() {
            continue;
        }
        let table = columns(TableWrite::of("payments", &found));
        writes.push(if is_new {
            table.insert("")
        } else {
            table.update("folded")
        });
    }
}

type PaymentRow<'batch> = (&'batch String, &'batch Payment);

fn columns<'a, 'b>(
    table: TableWrite<'a, 'b, PaymentRow<'b>>,
) -> TableWrite<'a, 'b, PaymentRow<'b>> {
    table
        .text("folded", |(folded, _)| (*folded).clone())
        .number("customer", |(_, payment)| payment.customer.to_i64())
        .number("refunded", |(_, payment)| {
            payment.registers.refunded.parts()
        })
        .number("withdrawn", |(_, payment)| {
            payment.registers.withdrawn.parts()
        })
        .number("reinstated", |(_, payment)| {
            payment.registers.reinstated.parts()
        })
        .number("status", |(_, payment)| status_code(&payment.status))
        .text("why", |(_, payment)| {
            payment_rows::why(&payment.status).cloned()
        })
        .text("waiting", |(_, payment)| payment_rows::waiting(payment))
        .text("reference", |(_, payment)| payment.reference.clone())
        .text("currency", |(_, payment)| payment.paid.currency.clone())
        .number("gross", |(_, payment)| payment.paid.gross.parts())
        .number("tax", |(_, payment)| payment.paid.tax.parts())
        .number("credit", |(_, payment)| payment.credit.picos())
        .text("actor", |(_, payment)| payment.actor.clone())
        .number("token", |(_, payment)| payment.token.map(TokenId::to_i64))
        .number("at", |(_, payment)| payment.at.millis())
}

pub(super) async fn by_reference(
    readers: &Readers,
    spelled: &str,
) -> Result<Option<Payment>, LedgerError> {
    let folded = reference::folded(spelled);
    // No stored text contains U+0000, and no parameter can carry it.
    if folded.contains('\0') {
        return Ok(None);
    }
    let folded = folded.as_str();
    let found = readers
        .with(|link| async move { read(&link, " WHERE p.folded = $1", &[&folded]).await })
        .await?;
    Ok(found.into_iter().next())
}

pub(super) async fn unapplied(readers: &Readers) -> Result<Vec<Payment>, LedgerError> {
    let which = " WHERE p.status = 2 OR p.waiting IS NOT NULL ORDER BY p.at, p.folded";
    readers
        .with(|link| async move { read(&link, which, &[]).await })
        .await
}

/// All payments, of one customer if it is given.
pub(super) async fn all(
    link: &Link,
    customer: Option<i64>,
) -> Result<Vec<Payment>, TransactionTrouble> {
    let of = " WHERE $1::bigint IS NULL OR p.customer = $1 ORDER BY p.folded";
    read(link, of, &[&customer]).await
}

async fn read(
    link: &Link,
    which: &str,
    values: &[&(dyn tokio_postgres::types::ToSql + Sync)],
) -> Result<Vec<Payment>, TransactionTrouble> {
    let rows = link
        .query(&format!("{SELECT_PAYMENT}{which}"), values)
        .await?;
    rows.iter().map(|row| Ok(payment(row)?)).collect()
}

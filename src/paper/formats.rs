//! Paper as documents for programs and as rows for spreadsheets. Pure.

use farebox_ledger::{Amount, csv};
use farebox_selling::paper::{ReceiptDocument, StatementDocument, UsedDocument};
use farebox_selling::value::{CustomerName, Instant, SignedUsd, Usd};
use serde_json::{Value, json};

use super::CustomerStatement;
use super::documents::{PaperDocument, signed};
use crate::config::Shop;

/// The columns of receipts and corrections.
pub const DOCUMENT_COLUMNS: [&str; 14] = [
    "number", "kind", "at", "customer", "payment", "currency", "net", "tax", "gross", "credit",
    "corrects", "name", "address", "plan",
];

/// The columns of a statement: one figure a row, then one row for each model and class.
pub const STATEMENT_COLUMNS: [&str; 6] = ["customer", "month", "what", "class", "requests", "usd"];

fn seller(shop: &Shop) -> Value {
    json!({ "name": shop.name, "contact": shop.contact, "address": shop.address, "tax_id": shop.tax_id })
}

/// A receipt or correction as JSON. Amounts of the payment are in its currency, `credit` is in US dollars.
pub fn document_json(document: &PaperDocument, shop: &Shop) -> Value {
    let personal = document.personal.as_ref();
    json!(ReceiptDocument {
        number: document.number.clone(),
        kind: document.kind.as_str().to_owned(),
        at: Instant(document.at),
        seller: seller(shop),
        customer: CustomerName(document.customer),
        name: personal.and_then(|data| data.name.clone()),
        address: personal.and_then(|data| data.address.clone()),
        reference: document.payment.clone(),
        currency: document.currency.clone(),
        net: signed(document.net()),
        tax: signed(document.tax),
        gross: signed(document.gross),
        credit: SignedUsd(document.credit),
        plan: document.plan.as_ref().map(ToString::to_string),
        corrects: document.corrects.clone(),
        reason: document.reason.map(str::to_owned),
    })
}

/// One row under [`DOCUMENT_COLUMNS`].
pub fn document_row(document: &PaperDocument) -> Vec<String> {
    let personal = document.personal.as_ref();
    let name = personal.and_then(|data| data.name.clone());
    let address = personal.and_then(|data| data.address.clone());
    vec![
        document.number.clone(),
        document.kind.as_str().to_owned(),
        document.at.to_string(),
        document.customer.to_string(),
        document.payment.clone(),
        document.currency.clone(),
        signed(document.net()),
        signed(document.tax),
        signed(document.gross),
        document.credit.to_string(),
        document.corrects.clone().unwrap_or_default(),
        name.unwrap_or_default(),
        address.unwrap_or_default(),
        document
            .plan
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    ]
}

/// A spreadsheet of receipts and corrections.
pub fn documents_csv(documents: &[PaperDocument]) -> String {
    let rows: Vec<_> = documents.iter().map(document_row).collect();
    csv::document(&DOCUMENT_COLUMNS, &rows)
}

/// A statement as JSON, in US dollars. `final` is false while the month runs.
pub fn statement_json(statement: &CustomerStatement, shop: &Shop) -> Value {
    let CustomerStatement {
        addressee, sums, ..
    } = statement;
    let personal = addressee.personal.as_ref();
    let used = sums.used.iter().map(|((model, class), used)| UsedDocument {
        model: model.clone(),
        class: (*class).to_owned(),
        requests: used.requests,
        usage: json!(used.usage),
        charged: Usd(used.charged),
    });
    json!(StatementDocument {
        customer: CustomerName(addressee.customer.id),
        name: personal.and_then(|data| data.name.clone()),
        address: personal.and_then(|data| data.address.clone()),
        seller: seller(shop),
        month: statement.month.to_string(),
        r#final: statement.is_final,
        opening: SignedUsd(sums.opening),
        paid: SignedUsd(sums.paid),
        promotional: SignedUsd(sums.promotional),
        refunded: SignedUsd(sums.refunded),
        adjusted: SignedUsd(sums.adjusted),
        moved: SignedUsd(sums.moved),
        charged: SignedUsd(sums.charged),
        expired: SignedUsd(sums.expired),
        voided: SignedUsd(sums.voided),
        reversed: SignedUsd(sums.reversed),
        written_off: SignedUsd(sums.written_off),
        closing: SignedUsd(sums.closing),
        used: used.collect(),
    })
}

/// How a figure stands in the equation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FigureSide {
    /// The balance before, and the sum.
    Balance,
    /// It gives money.
    Gives,
    /// It takes money.
    Takes,
}

/// The figures of a statement in the order of their equation.
pub(super) fn figures(statement: &CustomerStatement) -> [(&'static str, FigureSide, Amount); 12] {
    use FigureSide::{Balance, Gives, Takes};
    let sums = &statement.sums;
    [
        ("opening", Balance, sums.opening),
        ("paid", Gives, sums.paid),
        ("promotional", Gives, sums.promotional),
        ("refunded", Gives, sums.refunded),
        ("adjusted", Gives, sums.adjusted),
        ("moved", Gives, sums.moved),
        ("charged", Takes, sums.charged),
        ("expired", Takes, sums.expired),
        ("voided", Takes, sums.voided),
        ("reversed", Takes, sums.reversed),
        ("written off", Takes, sums.written_off),
        ("closing", Balance, sums.closing),
    ]
}

/// Rows under [`STATEMENT_COLUMNS`].
pub fn statement_rows(statement: &CustomerStatement) -> Vec<Vec<String>> {
    let place = [
        statement.addressee.customer.id.to_string(),
        statement.month.to_string(),
    ];
    let figures = figures(statement).into_iter().map(|(name, _, amount)| {
        [
            &place[..],
            &[
                name.to_owned(),
                String::new(),
                String::new(),
                amount.to_string(),
            ],
        ]
        .concat()
    });
    let used = statement.sums.used.iter().map(|((model, class), used)| {
        let cells = [
            model.clone(),
            (*class).to_owned(),
            used.requests.to_string(),
            used.charged.to_string(),
        ];
        [&place[..], &cells].concat()
    });
    figures.chain(used).collect()
}

/// A statement as a spreadsheet.
pub fn statement_csv(statement: &CustomerStatement) -> String {
    csv::document(&STATEMENT_COLUMNS, &statement_rows(statement))
}

//! Receipts and statements under `/api/v1`: as JSON, as a page for print, or as a spreadsheet.

use farebox_ledger::StatementMonth;
use serde_json::Value;

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use super::fields::of_field;
use super::{pages, reads};
use crate::clock;
use crate::paper::{self, PaperReader};

pub(super) async fn receipts(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer().await?;
    let found = paper::documents(call.ledger(), customer.id, PaperReader::Others).await?;
    let config = call.admin.front.proxy.config.current();
    let shop = &config.catalog.shop;
    Ok(match call.query.text("format").as_deref() {
        Some("html") => ApiReply::page(paper::documents_page(&found, shop)),
        Some("csv") => ApiReply::sheet(paper::documents_csv(&found)),
        _ => {
            let row = |document| paper::document_json(document, shop);
            let rows: Vec<Value> = found.iter().map(row).collect();
            pages::whole(&rows)
        }
    })
}

pub(super) async fn receipt(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let payment = reads::own_payment(call).await?;
    let found = paper::receipt_of(call.ledger(), &payment).await?;
    let document = found.ok_or_else(|| {
        let message = format!(
            "payment {:?} was not booked, so it has no receipt",
            payment.reference
        );
        ApiError::new(404, "receipt_not_found", message)
    })?;
    let config = call.admin.front.proxy.config.current();
    let shop = &config.catalog.shop;
    Ok(match call.query.text("format").as_deref() {
        Some("html") => ApiReply::page(paper::document_page(&document, shop)),
        Some("csv") => ApiReply::sheet(paper::documents_csv(&[document])),
        _ => paper::document_json(&document, shop).into(),
    })
}

pub(super) async fn statement(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer().await?;
    let now = clock::now();
    let month = match call.query.text("month") {
        Some(text) => text
            .parse::<StatementMonth>()
            .map_err(|why| of_field("month", &why.to_string()))?,
        None => StatementMonth::of(now),
    };
    let found = paper::statement(call.ledger(), customer, month, now).await?;
    let config = call.admin.front.proxy.config.current();
    let shop = &config.catalog.shop;
    Ok(match call.query.text("format").as_deref() {
        Some("html") => ApiReply::page(paper::statement_page(&found, shop)),
        Some("csv") => ApiReply::sheet(paper::statement_csv(&found)),
        _ => paper::statement_json(&found, shop).into(),
    })
}

//! Receipts and statements under `/api/v1`: as JSON, as a page for print, or as a spreadsheet.

use farebox_ledger::StatementMonth;
use farebox_selling::value::OneLine;
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use super::read::of_field;
use super::{pages, reads};
use crate::clock;
use crate::paper::{self, PaperReader};

/// How paper is printed.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct PaperQuery {
    /// json unless you say; html is for print
    #[schemars(extend("enum" = ["json", "html", "csv"]))]
    format: Option<String>,
}

/// Which statement.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MonthQuery {
    /// As 2026-11; this month unless you say
    month: Option<OneLine>,
}

pub(super) async fn receipts(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer().await?;
    let found = paper::documents(call.ledger(), customer.id, PaperReader::Others).await?;
    let config = call.admin.front.proxy.config.current();
    let shop = &config.catalog.shop;
    Ok(match call.read::<PaperQuery>()?.format.as_deref() {
        Some("html") => ApiReply::page(paper::documents_page(&found, shop)),
        Some("csv") => ApiReply::sheet(paper::documents_csv(&found)),
        _ => {
            let row = |document| paper::document_json(document, shop);
            pages::whole(found.iter().map(row))
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
    Ok(match call.read::<PaperQuery>()?.format.as_deref() {
        Some("html") => ApiReply::page(paper::document_page(&document, shop)),
        Some("csv") => ApiReply::sheet(paper::documents_csv(&[document])),
        _ => paper::document_json(&document, shop).into(),
    })
}

pub(super) async fn statement(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer().await?;
    let now = clock::now();
    let month = match call.read::<MonthQuery>()?.month {
        Some(OneLine(text)) => text
            .parse::<StatementMonth>()
            .map_err(|why| of_field("month", &why.to_string()))?,
        None => StatementMonth::of(now),
    };
    let found = paper::statement(call.ledger(), customer, month, now).await?;
    let config = call.admin.front.proxy.config.current();
    let shop = &config.catalog.shop;
    Ok(match call.read::<PaperQuery>()?.format.as_deref() {
        Some("html") => ApiReply::page(paper::statement_page(&found, shop)),
        Some("csv") => ApiReply::sheet(paper::statement_csv(&found)),
        _ => paper::statement_json(&found, shop).into(),
    })
}

//! Receipts, corrections and statements on the dashboard, for owners: as a page, a document or a spreadsheet, by the ending of the
//! path.

use farebox_ledger::{Customer, Ledger, StatementMonth};
use maud::Markup;
use serde_json::json;

use super::context::Context;
use crate::clock;
use crate::paper::{self, PaperReader, document_json, document_part, statement_part};
use crate::proxy::Failure;

/// An answer: a part of a page, or a file.
#[derive(Debug)]
pub(super) enum Paper {
    Page(Markup),
    /// Its content type and its text.
    File(&'static str, String),
}

/// The name without its ending, and the ending.
fn split(name: &str) -> (&str, &str) {
    match name.rsplit_once('.') {
        Some((name, ending)) => (name, ending),
        None => (name, ""),
    }
}

fn missing(what: &str) -> Failure {
    Failure::NoPath(format!("this customer has no {what}"))
}

/// The document with this number; `all` is every one.
///
/// # Errors
/// 404 for a number or an ending that there is not, 503 when the ledger cannot be read.
pub(super) async fn document(
    context: &Context,
    customer: &Customer,
    asked: &str,
) -> Result<Paper, Failure> {
    let (number, ending) = split(asked);
    let (ledger, shop): (&dyn Ledger, _) = (context.ledger.as_ref(), context.shop());
    let mut found = paper::documents(ledger, customer.id, PaperReader::Customer).await?;
    if number == "all" {
        return match ending {
            "csv" => Ok(Paper::File(CSV, paper::documents_csv(&found))),
            "json" => {
                let all = found.iter().map(|document| document_json(document, &shop));
                let text = json!({ "receipts": all.collect::<Vec<_>>() }).to_string();
                Ok(Paper::File(JSON, text))
            }
            _ => Err(missing("such file")),
        };
    }
    found.retain(|document| document.number == number);
    let document = found.pop().ok_or_else(|| missing("such document"))?;
    match ending {
        "" => Ok(Paper::Page(document_part(&document, &shop))),
        "json" => {
            let text = document_json(&document, &shop).to_string();
            Ok(Paper::File(JSON, text))
        }
        "csv" => Ok(Paper::File(CSV, paper::documents_csv(&[document]))),
        _ => Err(missing("such file")),
    }
}

const JSON: &str = "application/json";
const CSV: &str = "text/csv; charset=utf-8";

/// The statement of a month.
///
/// # Errors
/// 404 for what is no month, 503 when the ledger cannot be read.
pub(super) async fn statement(
    context: &Context,
    customer: &Customer,
    asked: &str,
) -> Result<Paper, Failure> {
    let (month, ending) = split(asked);
    let month: StatementMonth = month.parse().map_err(|_| missing("such month"))?;
    let now = clock::now();
    if !paper::months(customer, now).contains(&month) {
        return Err(missing("such month"));
    }
    let ledger: &dyn Ledger = context.ledger.as_ref();
    let statement = paper::statement(ledger, customer.clone(), month, now).await?;
    let shop = context.shop();
    match ending {
        "" => Ok(Paper::Page(statement_part(&statement, &shop))),
        "json" => {
            let text = paper::statement_json(&statement, &shop).to_string();
            Ok(Paper::File(JSON, text))
        }
        "csv" => Ok(Paper::File(CSV, paper::statement_csv(&statement))),
        _ => Err(missing("such file")),
    }
}

//! Paper as pages: the part that the dashboard shows, and a whole page that stands by itself and can be printed or sent.

use farebox_ledger::{Amount, CustomerId, PersonalData, StatementMonth, Timestamp};
use maud::{DOCTYPE, Markup, html};

use super::documents::{PaperDocument, PaperKind, signed};
use super::formats::{FigureSide, figures};
use super::{Addressee, CustomerStatement};
use crate::config::Shop;

/// Enough for a page that is sent or printed by itself.
const STYLE: &str = "body{font:11pt/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#000;background:#fff}\
h1{font-size:1.4rem}h2{font-size:1.05rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.3rem 1.2rem}dd{margin:0;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid #999;font-weight:400}\
.number{text-align:right}.sum>*{font-weight:600}.hidden{display:none}@page{margin:18mm 16mm}";

/// A receipt or correction, as part of a page.
pub fn document_part(document: &PaperDocument, shop: &Shop) -> Markup {
    let currency = &document.currency;
    let title = match document.kind {
        PaperKind::Receipt => "Receipt",
        PaperKind::Correction => "Correction",
    };
    html! {
        h1 { (title) " " (document.number) }
        section.card aria-label=(title) {
            dl.prices {
                (sold_by(shop))
                (addressed(document.customer, document.personal.as_ref()))
                dt { "Date" } dd { time datetime=(document.at) { (to_the_second(document.at)) } }
                @if let Some(corrects) = &document.corrects { dt { "Corrects" } dd { (corrects) } }
                @if let Some(reason) = document.reason { dt { "Why" } dd { (words(reason)) } }
                dt { "Payment" } dd { code { (document.payment) } }
                @if let Some(plan) = &document.plan { dt { "Plan" } dd { (plan) } }
            }
            table.lines {
                caption.hidden { "Amounts" }
                tbody {
                    tr { th scope="row" { "Net" } td.number { (signed(document.net())) " " (currency) } }
                    tr { th scope="row" { "Tax" } td.number { (signed(document.tax)) " " (currency) } }
                    tr.sum { th scope="row" { "Total" } td.number { (signed(document.gross)) " " (currency) } }
                    tr { th scope="row" { @if document.plan.is_some() { "Allowance" } @else { "Credit" } } td.number { (document.credit) " USD" } }
                }
            }
        }
    }
}

/// An instant for people, to the second.
fn to_the_second(at: Timestamp) -> String {
    let text = at.to_string();
    match text.split_once('T') {
        Some((day, time)) => format!("{day} {} UTC", time.get(..8).unwrap_or(time)),
        None => text,
    }
}

fn words(reason: &str) -> &'static str {
    match reason {
        "refund" => "Refunded by the seller",
        "dispute" => "Taken back by a dispute",
        _ => "Given back after a dispute",
    }
}

fn sold_by(shop: &Shop) -> Markup {
    html! {
        dt { "Seller" } dd { (shop.title()) @if let Some(contact) = &shop.contact { ", " (contact) } }
        @if let Some(address) = &shop.address { dt { "Seller's address" } dd { (address) } }
        @if let Some(number) = &shop.tax_id { dt { "Tax number" } dd { (number) } }
    }
}

fn addressed(customer: CustomerId, personal: Option<&PersonalData>) -> Markup {
    html! {
        dt { "Customer" } dd { code { (customer) } }
        @if let Some(data) = personal {
            @if let Some(name) = &data.name { dt { "Name" } dd { (name) } }
            @if let Some(address) = &data.address { dt { "Address" } dd { (address) } }
        }
    }
}

/// A statement, as part of a page.
pub fn statement_part(statement: &CustomerStatement, shop: &Shop) -> Markup {
    let used = &statement.sums.used;
    let Addressee { customer, personal } = &statement.addressee;
    html! {
        h1 { "Statement " (statement.month) }
        section.card aria-label="Statement" {
            dl.prices {
                (sold_by(shop))
                (addressed(customer.id, personal.as_ref()))
                dt { "Month" } dd { (statement.month) ", UTC" @if !statement.is_final { "; it is not over, and the figures move" } }
            }
            table.lines {
                caption.hidden { "What happened to the money" }
                tbody { @for (name, side, amount) in figures(statement) {
                    @if side == FigureSide::Balance || amount != Amount::ZERO {
                        tr.sum[name == "closing"] {
                            th scope="row" { (name) }
                            td.number { (signed_figure(side, amount)) " USD" }
                        }
                    }
                } }
            }
        }
        section.card aria-labelledby="used" {
            h2 #used { "Used, by model and class" }
            @if used.is_empty() { p.empty { "Nothing was used in this month." } } @else {
                table {
                    caption.hidden { "Used, by model and class" }
                    thead { tr {
                        th scope="col" { "Model" } th scope="col" { "Class" }
                        th.number scope="col" { "Requests" } th.number scope="col" { "USD" }
                    } }
                    tbody { @for ((model, class), used) in used { tr {
                        th scope="row" { (model) } td { (class) }
                        td.number { (used.requests) } td.number { (used.charged) }
                    } } }
                }
            }
        }
    }
}

/// A figure with the sign of what it did.
fn signed_figure(side: FigureSide, amount: Amount) -> String {
    let effect = match side {
        FigureSide::Balance => return amount.to_string(),
        FigureSide::Gives => Some(amount),
        FigureSide::Takes => amount.checked_neg(),
    };
    let effect = effect.unwrap_or(amount);
    match effect.checked_neg().filter(|_| effect.is_negative()) {
        Some(taken) => format!("− {taken}"),
        None => format!("+ {effect}"),
    }
}

/// A receipt or correction as a page of its own.
pub fn document_page(document: &PaperDocument, shop: &Shop) -> String {
    whole(&document.number, &document_part(document, shop))
}

/// Several of them, one after the other.
pub fn documents_page(documents: &[PaperDocument], shop: &Shop) -> String {
    let parts = html! { @for document in documents { (document_part(document, shop)) } };
    whole("Receipts", &parts)
}

/// A statement as a page of its own.
pub fn statement_page(statement: &CustomerStatement, shop: &Shop) -> String {
    let title = title(statement.month);
    whole(&title, &statement_part(statement, shop))
}

fn title(month: StatementMonth) -> String {
    format!("Statement {month}")
}

/// Parts as a page that stands by itself.
fn whole(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (maud::PreEscaped(STYLE)) }
            }
            body { (content) }
        }
    };
    page.into_string()
}

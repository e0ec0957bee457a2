//! Every request of the key, page by page, and the newest refusals with what helps.

use farebox_ledger::{Bill, Entry};
use maud::{Markup, html};

use super::shown;
use crate::customer::activity::Refused;
use crate::customer::receipt;
use crate::proxy::record;

/// The table of requests. Also a part of the overview.
pub(in crate::customer) fn rows(entries: &[Entry]) -> Markup {
    let titles = ["Time (UTC)", "Model", "Status", "Tokens", "USD", "First byte", "Request id"];
    html! { @if entries.is_empty() { p.empty { "No request yet. The Set up view has settings that are ready to paste." } } @else {
        table.stacked.requests role="table" {
            caption.hidden { "Requests, newest first" }
            thead role="rowgroup" { tr role="row" { @for title in titles {
                th scope="col" role="columnheader" class=[(title == "USD" || title == "First byte").then_some("number")] { (title) }
            } } }
            tbody role="rowgroup" { @for entry in entries { (row(entry)) } }
        }
    } }
}

fn row(entry: &Entry) -> Markup {
    let blank = Bill::default();
    let bill = entry.bill.as_ref().unwrap_or(&blank);
    let usage = bill.usage;
    let input = usage.input + usage.cache_read + usage.cache_write + usage.cache_write_1h;
    let good = bill.status < 400 && bill.end_reason.is_own_end();
    let id = record::request_id(entry.operation);
    html! {
        tr role="row" {
            td.time role="cell" data-label="Time" { (shown::time(entry.at)) }
            td.name role="cell" data-label="Model" { (bill.slug) }
            td role="cell" data-label="Status" {
                span class=(if good { "pill good" } else { "pill bad" }) title=(shown::explain(bill.end_reason.as_str())) {
                    (bill.status) " " (bill.end_reason.as_str().replace('_', " "))
                }
            }
            td role="cell" data-label="Tokens" {
                (shown::count(input)) " in"
                @if usage.cache_read > 0 { " (" (shown::count(usage.cache_read)) " cached)" }
                ", " (shown::count(usage.output + usage.reasoning)) " out"
            }
            td.number.cost role="cell" data-label="USD" { (shown::money(receipt::charged(entry))) }
            td.number role="cell" data-label="First byte" { @match bill.first_byte_ms {
                Some(ms) => (shown::duration(ms)),
                None => "–",
            } }
            td.id role="cell" data-label="Request id" { code { (id) } }
        }
    }
}

/// The view.
pub(in crate::customer) fn page(entries: &[Entry], older: Option<&str>, first: bool, refusals: &[Refused]) -> Markup {
    html! {
        h1 { "Requests" }
        section.card aria-label="Requests" {
            div #newest { (rows(entries)) }
            p.pages {
                @if !first { a href="/dashboard/requests" { "Newest" } }
                @if let Some(before) = older { a href=(format!("/dashboard/requests?before={before}")) { "Older" } }
            }
        }
        section.card aria-labelledby="export" {
            h2 #export { "Export" }
            form.inline method="get" action="/dashboard/requests.csv" {
                div { label for="from" { "First day" } input #from type="date" name="from"; }
                div { label for="to" { "Last day" } input #to type="date" name="to"; }
                button { "CSV" }
                button formaction="/dashboard/requests.json" { "JSON" }
            }
            p.hint { "Without days: the last 30. At most 366 days at once." }
        }
        section.card aria-labelledby="refused" {
            h2 #refused { "Refused requests" }
            p.hint { "The newest 50 since the gateway's start. A refused request costs nothing." }
            div #refusals { (self::refusals(refusals)) }
        }
    }
}

/// The newest refusals, each explained.
pub(in crate::customer) fn refusals(refusals: &[Refused]) -> Markup {
    html! { @if refusals.is_empty() { p.empty { "None." } } @else {
        ul.refusals { @for refused in refusals {
            li {
                p {
                    (shown::time(refused.at)) " "
                    span.pill.bad { (refused.status) " " (refused.reason.replace('_', " ")) } " "
                    span.name { (refused.slug) }
                }
                @if !refused.message.is_empty() { p { (refused.message) } }
                p.hint { (shown::explain(&refused.reason)) " " code { (record::request_id(refused.request)) } }
            }
        } }
    } }
}

//! One request as a receipt that can be printed: tokens times price, the hold, timings, and why it ended.
//!
//! Never shows the target, the provider's account or what the provider says of its own price: they are the operator's business.

use farebox_ledger::{Amount, Bill, BillLine, Evidence, JournalEntry, Timestamp};
use maud::{Markup, html};

use super::display;
use crate::config::{PriceUnit, show_price};
use crate::customer::receipt;
use crate::proxy::{LIMIT, LOST, REMOVED, WAITED, record};

/// The view, with where the money came from. The balance is the customer's, so a member does not see it.
pub(in crate::customer) fn page(
    entry: &JournalEntry,
    is_owner: bool,
    sources: Option<String>,
) -> Markup {
    let blank = Bill::default();
    let bill = entry.bill.as_ref().unwrap_or(&blank);
    let began = Timestamp::from_millis(entry.at.millis().saturating_sub(i64::from(bill.total_ms)));
    let instant = |at| display::format(at, "%b %d, %Y %H:%M:%S UTC");
    html! {
        h1 { "Receipt" }
        section.card aria-labelledby="charge" {
            h2 #charge { "Charge" }
            (lines(&bill.lines, receipt::charged(entry)))
            @if let Some(sources) = sources { p.hint { (sources) "." } }
            @if bill.loss.is_positive() {
                p.hint { "Not charged: another " (bill.loss) " USD, because a request never costs more than the key has." }
            }
            @if bill.exposure.is_positive() {
                p.hint { "Not charged: about " (bill.exposure.show(6)) " USD that the provider may still bill to us." }
            }
            @if let Some(hint) = bill.counted_by().and_then(counted) {
                p.hint { (hint) }
            }
        }
        section.card aria-labelledby="facts" {
            h2 #facts { "Request" }
            dl.prices {
                dt { "Request id" } dd { code { (record::request_id(entry.operation)) } }
                @if let Some(answer) = &bill.answer_id { dt { "Id in the answer" } dd { code { (answer) } } }
                dt { "Model" } dd { (bill.slug) " (" (bill.family) ")" }
                @if let Some(class) = bill.served.class() { dt { "Served as" } dd { (words(class)) } }
                dt { "Began" } dd { (instant(began)) }
                dt { "Ended" } dd { (instant(entry.at)) ", after " (display::duration(bill.total_ms)) }
                dt { "First byte" } dd { @match bill.first_byte_ms {
                    Some(ms) => { "after " (display::duration(ms)) }
                    None => "none",
                } }
                dt { "Status" } dd {
                    span class=(if receipt::is_good(bill) { "pill good" } else { "pill bad" }) {
                        (bill.status) " " (bill.end_reason.as_str().replace('_', " "))
                    }
                    " " (display::explain(bill.end_reason.as_str()))
                }
                @if let Some(removed) = receipt::fact(bill, REMOVED) { dt { "Taken out before it was sent" } dd { code { (removed) } } }
                @if let Some(lost) = receipt::fact(bill, LOST) { dt { "Lost in translation" } dd { code { (lost) } } }
                @if let Some(limit) = receipt::fact(bill, LIMIT) { dt { "Limit, lowered to what the money paid for" } dd { (limit) " tokens" } }
                @if let Some(waited) = receipt::fact(bill, WAITED) { dt { "Waited for held money" } dd { (waited) " ms" } }
                @if let Some(run) = bill.run() { dt { "Run" } dd { (run) } }
                dt { "Held while it ran" } dd { (bill.hold) " USD; what was not charged was given back" }
                @if is_owner { dt { "Balance after" } dd { (entry.balance_after) " USD" } }
            }
            p.hint.screen { a href="/dashboard/requests" { "All requests" } " · printed, this page is a receipt." }
        }
    }
}

fn lines(lines: &[BillLine], charge: Amount) -> Markup {
    let places = display::places(
        lines
            .iter()
            .map(|line| Amount::times(line.rate, line.count).unwrap_or_default())
            .chain([charge]),
    );
    html! {
        table.lines {
            caption.hidden { "What was charged" }
            thead { tr {
                th scope="col" { "What" }
                th.number scope="col" { "Count" }
                th.number scope="col" { "Price" }
                th.number scope="col" { "USD" }
            } }
            tbody {
                @for line in lines {
                    tr {
                        th scope="row" {
                            (line.what.replace('_', " "))
                            @if let Some(class) = line.class.as_deref() { ", " (words(class)) }
                        }
                        td.number { (display::count(line.count)) }
                        td.number { (price(line)) }
                        td.number { (display::aligned(Amount::times(line.rate, line.count).unwrap_or_default(), places)) }
                    }
                }
                tr.sum {
                    th scope="row" colspan="3" { "Charged" }
                    td.number.cost #charged { (display::aligned(charge, places)) }
                }
            }
        }
    }
}

/// A class with room between its words: `fast, us`.
fn words(class: &str) -> String {
    class.replace(',', ", ")
}

/// A rate as the catalog writes it: per million tokens, per picture or per request.
fn price(line: &BillLine) -> String {
    if matches!(line.what.as_ref(), "images" | "request") {
        format!("{} each", line.rate)
    } else {
        format!("{} / 1M", show_price(line.rate, PriceUnit::MillionTokens))
    }
}

/// The explanation of a count that is not simply the provider's.
const fn counted(evidence: Evidence) -> Option<&'static str> {
    Some(match evidence {
        Evidence::Provider => return None,
        Evidence::Local => "The provider sent no count, so the tokens were counted here.",
        Evidence::Disputed => {
            "The provider's count was implausible; the charge is limited by what was requested."
        }
        Evidence::Recovered => {
            "The gateway restarted while the request ran: the charge is the last known amount."
        }
        Evidence::Learned => {
            "You left before the provider counted, so the tokens were counted here. How many of them were cached is what your last finished request of this conversation showed."
        }
    })
}

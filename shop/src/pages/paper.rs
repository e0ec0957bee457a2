//! A receipt as a page that can be printed.

use maud::{Markup, html};

use super::Seller;
use crate::receipts::ReceiptPaper;

impl Seller<'_> {
    pub(crate) fn receipt(&self, paper: &ReceiptPaper) -> Markup {
        let buyer = match paper.buyer.as_str() {
            "" => "the buyer",
            named => named,
        };
        let content = html! {
            h1 { (paper.title) }
            section.card aria-label=(paper.title) {
                div.parties {
                    p { strong { "From" } "\n" (paper.seller) }
                    p { strong { "To" } "\n" (buyer) }
                    p { @for (name, value) in &paper.facts { (name) ": " (value) "\n" } }
                }
                table.stacked.lines role="table" {
                    caption.hidden { "What was sold" }
                    thead role="rowgroup" { tr role="row" {
                        @for title in COLUMNS { th scope="col" role="columnheader" { (title) } }
                    } }
                    tbody role="rowgroup" {
                        @for [what, rest @ ..] in &paper.lines { tr role="row" {
                            th.name scope="row" role="rowheader" { (what) }
                            @for (title, value) in COLUMNS.iter().skip(1).zip(rest) {
                                td.number role="cell" data-label=(title) { (value) }
                            }
                        } }
                    }
                }
                p { strong { "Total: " (paper.total) } }
            }
            p.screen.hint { "The browser prints it. A receipt that the payment processor sends by e-mail is for your records; this one counts." }
        };
        self.document(paper.title, &content, None)
    }
}

const COLUMNS: [&str; 5] = ["What", "Net", "Tax rate", "Tax", "Total"];

//! The first view: what is left, what was spent, and the newest requests. Its parts are also what an open page is sent.

use farebox_ledger::{Amount, Entry, Key, Status, Timestamp, UsageRow};
use maud::{Markup, html};

use super::chart::{Range, Spending};
use super::{requests, shown};

/// Everything the view shows.
#[derive(Debug)]
pub(in crate::customer) struct Overview {
    pub(in crate::customer) key: Key,
    pub(in crate::customer) range: Range,
    /// Of the last thirty days.
    pub(in crate::customer) rows: Vec<UsageRow>,
    /// Newest first.
    pub(in crate::customer) newest: Vec<Entry>,
    pub(in crate::customer) now: Timestamp,
}

impl Overview {
    /// The parts by the id of their place on the page.
    pub(in crate::customer) fn parts(&self) -> [(&'static str, Markup); 5] {
        let spending = Spending::of(&self.rows, self.range, self.now);
        [
            ("money", self.money()),
            ("ranges", self.ranges()),
            ("chart", spending.draw()),
            ("models", by_model(&spending)),
            ("newest", requests::rows(&self.newest)),
        ]
    }

    /// The view.
    pub(in crate::customer) fn page(&self) -> Markup {
        let [money, ranges, chart, models, newest] = self.parts().map(|(_, part)| part);
        let spending = Spending::of(&self.rows, self.range, self.now);
        html! {
            h1.hidden { "Overview" }
            section #money aria-label="Balance" aria-live="polite" { (money) }
            section.card aria-labelledby="spending" {
                h2 #spending { "Spending" }
                nav #ranges aria-label="Range of the chart" { (ranges) }
                div #chart { (chart) }
                details { summary { "The chart as a table" } (spending.table()) }
                div #models { (models) }
                p.hint { "Usage by day: " a href="/dashboard/usage.csv" { "CSV" } " · " a href="/dashboard/usage.json" { "JSON" } }
            }
            section.card aria-labelledby="newest-title" {
                h2 #newest-title { "Newest requests" }
                div #newest { (newest) }
                p.hint {
                    a href="/dashboard/requests" { "All requests" }
                    noscript { " · " a href="/dashboard" { "Reload" } " to see newer ones" }
                }
            }
        }
    }

    fn money(&self) -> Markup {
        let account = self.key.account;
        let expires = self.key.settings.expires_at;
        html! {
            dl.money-cards {
                div.card.main { dt { "Available" } dd #available { (shown::money(account.available())) " " span.unit { "USD" } } }
                div.card { dt { "Balance" } dd { (shown::money(account.balance())) } }
                div.card { dt { "Held by running requests" } dd { (shown::money(account.held)) } }
            }
            @if self.key.status(self.now) != Status::Active {
                p.problem { "This key is " (self.key.status(self.now)) ": requests with it are refused." }
            } @else if account.available() == Amount::ZERO {
                p.problem { "Out of balance: requests are refused with 429 until this same key is topped up." }
            }
            @if let Some(at) = expires { p.hint { "This key works until " (shown::time(at)) " UTC." } }
        }
    }

    fn ranges(&self) -> Markup {
        html! { ul.ranges { @for range in Range::ALL {
            li { a href=(format!("/dashboard?range={}", range.name())) aria-current=[(range == self.range).then_some("true")] {
                span { (range.title()) } " "
                strong { (shown::money(Spending::of(&self.rows, range, self.now).total)) }
            } }
        } } }
    }
}

fn by_model(spending: &Spending) -> Markup {
    html! { @if !spending.shares.is_empty() {
        table.stacked role="table" {
            caption.hidden { "Spending by model" }
            thead role="rowgroup" { tr role="row" {
                th scope="col" role="columnheader" { "Model" }
                @for title in ["Requests", "Input", "Cached", "Output", "USD"] {
                    th.number scope="col" role="columnheader" { (title) }
                }
            } }
            tbody role="rowgroup" { @for share in &spending.shares {
                @let usage = share.usage;
                tr role="row" {
                    th.name scope="row" role="rowheader" { (share.slug) }
                    td.number role="cell" data-label="Requests" { (shown::count(share.requests)) }
                    td.number role="cell" data-label="Input" { (shown::count(usage.input + usage.cache_write + usage.cache_write_1h + usage.cache_read)) }
                    td.number role="cell" data-label="Cached" { (shown::count(usage.cache_read)) }
                    td.number role="cell" data-label="Output" { (shown::count(usage.output + usage.reasoning)) }
                    td.number.cost role="cell" data-label="USD" { (shown::money(share.charge)) }
                }
            } }
        }
    } }
}

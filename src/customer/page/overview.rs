//! The first view: what is left, what was spent, and the newest requests. An open page gets its parts as updates.
//!
//! Rows of docs/interface.md: `balance_moves_on_the_dashboard`.

use std::sync::Arc;

use farebox_ledger::{
    Account, Amount, CustomerStatus, Key, KeyStatus, RunSum, Timestamp, UsageRow, UtcDay,
};
use maud::{Markup, html};

use super::chart::{Range, Spending};
use super::requests::KeyLabels;
use super::runway::{Runway, SpendingPace};
use super::table::{column, head, table};
use super::{caps, display, grants, pay, payments, plans, requests, runs};
use crate::config::Shop;
use crate::customer::newest::NewestRequests;
use crate::customer::recent::{month_of, spent_since};

/// A balance that lasts fewer days than this also counts as low.
const SHORT: i64 = 3;

/// The content of the view.
#[derive(Debug)]
pub(in crate::customer) struct Overview {
    pub(in crate::customer) key: Key,
    pub(in crate::customer) range: Range,
    /// For the last thirty days and for this month.
    pub(in crate::customer) rows: Vec<UsageRow>,
    /// This month's.
    pub(in crate::customer) runs: Vec<RunSum>,
    pub(in crate::customer) newest: NewestRequests,
    pub(in crate::customer) now: Timestamp,
    pub(in crate::customer) shop: Arc<Shop>,
    /// As the key's holder sees it.
    pub(in crate::customer) account: Account,
    /// Less available than this counts as low.
    pub(in crate::customer) low: Amount,
    /// The labels of the customer's keys, for an owner.
    pub(in crate::customer) labels: Option<KeyLabels>,
}

impl Overview {
    /// The parts by their element id on the page.
    pub(in crate::customer) fn parts(&self) -> [(&'static str, Markup); 5] {
        let spending = self.spending(self.range);
        [
            ("money", self.money()),
            ("ranges", self.ranges()),
            ("chart", spending.draw()),
            ("models", by_model(&spending)),
            (
                "newest",
                requests::newest(&self.newest, self.labels.as_ref()),
            ),
        ]
    }

    /// The view.
    pub(in crate::customer) fn page(&self) -> Markup {
        let [money, ranges, chart, models, newest] = self.parts().map(|(_, part)| part);
        let spending = self.spending(self.range);
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
                (runs::section(&self.runs))
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

    fn spending(&self, range: Range) -> Spending {
        Spending::of(&self.rows, range, self.now, self.first_use())
    }

    /// The hour of the key's first use; `None` when that was before the rows that were read.
    fn first_use(&self) -> Option<i64> {
        let first = self.rows.iter().map(|row| row.hour.hour()).min()?;
        // A refund lowers what was spent, and no row.
        (self.account.spent <= self.spent_since(first)).then_some(first)
    }

    /// Spending since an hour.
    fn spent_since(&self, hour: i64) -> Amount {
        spent_since(&self.rows, hour)
    }

    /// What is not yet charged, held or not.
    fn remaining(&self) -> Amount {
        self.key.remaining("", self.now)
    }

    /// How long the money lasts; `None` without spending.
    fn runway(&self) -> Option<Runway> {
        let pace = SpendingPace::of(self.now, self.first_use(), |hour| self.spent_since(hour));
        Runway::of(&self.key, pace, self.now)
    }

    /// Whether a cap leaves less than the purse has: that says nothing of how long the purse lasts.
    fn is_capped(&self) -> bool {
        self.remaining() < self.key.customer.account.balance()
    }

    /// Whether something is left, but not much or not for long.
    fn is_low(&self) -> bool {
        let left = self.remaining();
        left.is_positive()
            && !self.is_capped()
            && (left < self.low || self.runway().is_some_and(|runway| runway.days < SHORT))
    }

    fn money(&self) -> Markup {
        let account = self.account;
        let today = self.now.hour().div_euclid(24) * 24;
        let low = self.is_low();
        let expires = self.key.settings.expires_at;
        let used_up = plans::used_up(&self.key, self.now);
        html! {
            dl.money-cards {
                div.card.main.low[low] {
                    dt { "Available now" }
                    dd #available {
                        (display::money(self.key.spendable(self.now))) " " span.unit { "USD" }
                        @if low { " " span.pill.warn { "low" } }
                    }
                    (plans::available(&self.key, self.now))
                    (grants::available(&self.key, self.now))
                    dd.beside #held { (held(account.held)) }
                    @if let Some(runway) = self.runway() { dd.beside.runway { (runway.shown()) } }
                }
                div.card { dt { "Spent today (UTC)" } dd { (display::money(self.spent_since(today))) } }
                div.card { dt { "Spent this month" } dd { (display::money(self.spent_since(month_of(self.now)))) } }
            }
            p.hint { (whose(&self.key)) }
            @if self.key.status(self.now) != KeyStatus::Active {
                p.problem { "This key is " (self.key.status(self.now)) ": requests with it are refused." }
            } @else if self.key.customer.status != CustomerStatus::Active {
                p.problem { "This account is " (self.key.customer.status) ": requests with its keys are refused." }
            } @else if !self.key.customer.account.balance().is_positive() {
                p.problem { "Out of balance: requests are refused with " (self.shop.out_of_balance_status) " until the customer's balance is topped up." }
            } @else if !self.remaining().is_positive() && used_up.is_empty() {
                p.problem { "A cap leaves this key nothing to spend. Wait until it starts again, or ask for a higher one." }
            }
            @for words in used_up { p.problem { (words) } }
            @if self.key.is_owner { (payments::owed(self.key.customer.claim)) }
            (self.caps())
            (pay::ways(&self.shop, &self.key))
            @if let Some(at) = expires { p.hint { "This key works until " (display::time(at)) " UTC." } }
        }
    }

    /// What may be spent of plans, and by day, week, month and in all, with what is left of it. The customer's are the owner's business.
    fn caps(&self) -> Markup {
        let today = UtcDay::of(self.now);
        html! {
            (plans::bars(&self.key, self.now))
            (caps::bars(self.key.id.into(), &self.key.caps, today))
            @if self.key.is_owner { (caps::bars(self.key.customer.id.into(), &self.key.customer.caps, today)) }
        }
    }

    fn ranges(&self) -> Markup {
        html! { ul.ranges { @for range in Range::ALL {
            li { a href=(format!("/dashboard?range={}", range.name())) aria-current=[(range == self.range).then_some("true")] {
                span { (range.title()) } " "
                strong { (display::money(self.spending(range).total)) }
            } }
        } } }
    }
}

/// Whose money the cards show.
fn whose(key: &Key) -> &'static str {
    if key.is_owner {
        "The balance is the customer's: all its keys spend from it."
    } else {
        "What this key may spend of its customer's balance, and what it spent."
    }
}

/// What running requests hold, which is no part of what is available.
fn held(held: Amount) -> Markup {
    html! { @if held.is_positive() {
        "Running requests hold " (display::money(held)) " USD more; what they do not cost comes back."
    } @else {
        "Running requests hold nothing."
    } }
}

fn by_model(spending: &Spending) -> Markup {
    let places = display::places(spending.shares.iter().map(|share| share.charge));
    let columns = [
        head("Model"),
        column("Requests", "number"),
        column("Input", "number"),
        column("Cached", "number"),
        column("Output", "number"),
        column("USD", "number cost"),
    ];
    let rows = spending.shares.iter().map(|share| {
        let usage = share.usage;
        let counts = [
            share.requests,
            usage.prompt(),
            usage.cache_read,
            usage.all_output(),
        ];
        let counts = counts.map(|count| html! { (display::count(count)) });
        let mut cells = vec![html! { (share.slug) }];
        cells.extend(counts);
        cells.push(html! { (display::aligned(share.charge, places)) });
        cells
    });
    html! { @if !spending.shares.is_empty() { (table("stacked", "Spending by model", &columns, rows)) } }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{
        ByDefault, Caps, Customer, CustomerId, CustomerSettings, KeyId, KeyRecord, KeySettings,
        SecretHash,
    };

    use super::*;

    fn overview(left: &str, spent_this_week: &str) -> Overview {
        let usd = |text| Amount::from_usd_str(text).unwrap();
        // 2026-11-22, 02:00.
        let now = Timestamp::from_millis(1_795_312_800_000);
        let row = |hour, charge| UsageRow {
            hour: Timestamp::from_millis(hour * 3_600_000),
            slug: "a".to_owned(),
            requests: 1,
            charge,
            ..UsageRow::default()
        };
        let rows = vec![
            row(now.hour() - 26, usd(spent_this_week)),
            row(now.hour() - 24 * 20, usd("1.00")),
        ];
        let spent = spent_since(&rows, 0).checked_add(usd("0.50")).unwrap();
        let account = Account {
            credit: usd(left).checked_add(spent).unwrap(),
            spent,
            ..Account::default()
        };
        let id = KeyId::from_random(7);
        let customer = Customer {
            id: CustomerId::made_for(id),
            settings: CustomerSettings::default(),
            status: CustomerStatus::Active,
            account,
            claim: Amount::ZERO,
            caps: Caps::default(),
            defaults: ByDefault::default(),
            grants: farebox_ledger::Grants::default(),
            auto_top_up: None,
            personal: None,
            created_at: now,
            created_by: "tests".into(),
            token: None,
            last_entry_at: None,
        };
        let own = KeyRecord {
            id,
            belongs_to: customer.id,
            is_owner: true,
            made_by: None,
            counts_in: None,
            token: None,
            settings: KeySettings::default(),
            stored_status: KeyStatus::Active,
            secret: SecretHash::of("secret"),
            old_secret: None,
            caps: Caps::default(),
            defaults: ByDefault::default(),
            used_at: None,
            created_at: now,
            created_by: "tests".into(),
        };
        let key = Key {
            own,
            customer,
            of_maker: Caps::default(),
        };
        Overview {
            account,
            low: usd("1.00"),
            labels: None,
            key,
            range: Range::Month,
            rows,
            runs: Vec::new(),
            newest: NewestRequests::default(),
            now,
            shop: Arc::default(),
        }
    }

    #[test]
    fn the_runway_is_the_week_s_mean() {
        let days = |overview: &Overview| overview.runway().map(|runway| runway.days);
        assert_eq!(days(&overview("40.00", "7.00")), Some(40));
        assert_eq!(days(&overview("40.00", "0")), None);
        assert_eq!(days(&overview("0", "7.00")), None);
        assert!(
            !overview("40.00", "7.00").is_low()
                && overview("2.00", "7.00").is_low()
                && overview("0.99", "0").is_low()
        );
        assert!(
            !overview("0", "7.00").is_low(),
            "that is out of balance, not low"
        );
        let shown = |left: &str, spent: &str| overview(left, spent).money().into_string();
        let low = shown("2.00", "7.00");
        assert!(
            low.contains("card main low")
                && low
                    .contains("The balance lasts about 2 days at the mean use of the last 7 days."),
            "{low}"
        );
        for (left, lasts) in [
            ("0.99", "lasts less than a day at"),
            ("1.99", "lasts about a day at"),
            ("365.00", "lasts about 365 days at"),
            ("366.00", "lasts more than a year at"),
            ("9000000", "lasts more than a year at"),
        ] {
            let page = shown(left, "7.00");
            assert!(page.contains(lasts), "{left}: {page}");
        }
        let unused = shown("40.00", "0");
        assert!(!unused.contains("lasts"), "{unused}");
    }

    /// A member's is of its own room and use: what else is in the purse changes nothing.
    #[test]
    fn a_member_s_runway_tells_nothing_of_the_purse() {
        let mut page = overview("40.00", "7.00");
        page.key.own.is_owner = false;
        let shown = |page: &Overview| page.runway().map(Runway::shown).unwrap_or_default();
        assert_eq!(
            shown(&page),
            "This lasts about 40 days at this key's mean use of the last 7 days."
        );
        let day = UtcDay::of(page.now);
        let cap = |interval: &str, limit: &str, since: UtcDay| {
            serde_json::from_value::<Caps>(serde_json::json!([{ "interval": interval,
                "model": null, "limit": limit,
                "current": { "since": since, "charged": "1.00", "held": "0" } }]))
            .unwrap()
        };
        let mut under = |caps: Caps, credit: &str| {
            page.key.own.caps = caps;
            page.key.customer.account.credit = Amount::from_usd_str(credit).unwrap();
            page.money().into_string()
        };
        let total = cap("total", "6.00", UtcDay::default());
        let capped = under(total.clone(), "60");
        assert!(capped.contains("This lasts about 5 days at"), "{capped}");
        assert_eq!(capped, under(total, "90000"), "a fuller purse shows");
        // A dollar a day leaves four of this day's five.
        let daily = under(cap("day", "5.00", day), "60");
        assert!(
            daily.contains("This lasts until its cap starts again at this key's mean use"),
            "{daily}"
        );
    }

    #[test]
    fn what_running_requests_hold_is_said() {
        let mut page = overview("2.00", "7.00");
        let text = |page: &Overview| page.money().into_string();
        assert!(text(&page).contains("Running requests hold nothing."));
        page.account.held = Amount::from_usd_str("0.25").unwrap();
        page.key.customer.account = page.account;
        let held = text(&page);
        assert!(
            held.contains(r#"hold <span class="money">0.25</span> USD more"#)
                && held.contains(r#"id="available"><span class="money">1.75</span>"#),
            "{held}"
        );
    }

    #[test]
    fn whose_money_it_is_and_what_is_in_the_way_are_said() {
        let shown = |overview: &Overview| overview.money().into_string();
        let mut page = overview("2.00", "7.00");
        assert!(shown(&page).contains("The balance is the customer's"));
        page.key.own.is_owner = false;
        assert!(shown(&page).contains("What this key may spend of its customer's balance"));
        assert!(
            shown(&overview("0", "7.00")).contains("until the customer's balance is topped up")
        );
        let day = UtcDay::of(page.now);
        page.key.own.caps = serde_json::from_value(
            serde_json::json!([{ "interval": "day", "model": null, "limit": "1.00",
            "current": { "since": day, "charged": "1.00", "held": "0" } }]),
        )
        .unwrap();
        let capped = shown(&page);
        assert!(
            capped.contains("A cap leaves this key nothing to spend")
                && !capped.contains("Out of balance"),
            "{capped}"
        );
    }

    #[test]
    fn a_young_key_s_runway_is_the_pace_since_its_first_use() {
        let young = |hours_ago: i64, spent: &str| {
            let mut overview = overview("40.00", spent);
            overview.rows.truncate(1);
            overview.rows[0].hour =
                Timestamp::from_millis((overview.now.hour() - hours_ago) * 3_600_000);
            let spent = overview.rows[0].charge;
            overview.account.spent = spent;
            overview.account.credit = Amount::from_usd_str("40.00")
                .unwrap()
                .checked_add(spent)
                .unwrap();
            overview.key.customer.account = overview.account;
            overview
        };
        let shown = |overview: Overview| overview.runway().map(Runway::shown).unwrap_or_default();
        // Two days, seven dollars; a week's pace would be a dollar a day.
        assert_eq!(
            shown(young(47, "7.00")),
            "The balance lasts about 11 days at the mean use since the first request."
        );
        assert_eq!(
            shown(young(0, "20.00")),
            "The balance lasts about 2 days at the mean use since the first request.",
            "of the first hour, which counts as a day"
        );
        assert_eq!(
            young(200, "7.00").runway(),
            None,
            "a quiet week has no pace"
        );
    }

    #[test]
    fn today_and_this_month_begin_at_midnight_utc() {
        let overview = overview("40.00", "7.00");
        assert_eq!(
            display::format(
                Timestamp::from_millis(month_of(overview.now) * 3_600_000),
                "%F %T"
            ),
            "2026-11-01 00:00:00"
        );
        assert_eq!(
            overview.spent_since(month_of(overview.now)).to_string(),
            "8.00"
        );
        assert_eq!(
            overview.spent_since(overview.now.hour().div_euclid(24) * 24),
            Amount::ZERO
        );
    }
}

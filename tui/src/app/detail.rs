//! State of the page of one key or customer: facts, entries, payments, keys, models, running requests and acts.
//!
//! Everything on it comes from one result of the store; older pages of entries are appended. Results for another page or an older
//! query are dropped.

use std::collections::BTreeMap;

use farebox_ledger::{
    Amount, AuditRecord, GrantRecord, JournalEntry, OpenHold, Payment, RunSum, Scope, Timestamp,
    UsageRow,
};
use farebox_selling::subscription::SubscriptionDocument;

use super::list::{ListColumn, ListRow, orders, sorted};
use super::order::{ListOrder, ListState};
use super::party::{MemberKey, Party};
use super::tabs::{
    ACTS, ENTRIES, ENTRIES_OF_KEY, GRANTS, MEMBERS, MODEL_SUMS, ModelSum, PAYMENTS, PLANS, RUNNING,
    RUNS,
};

/// Entries read per page.
pub(crate) const PAGE: usize = 200;
/// The books of a page with at most this many entries are checked automatically.
// Four steps of reading. A longer history is added up only when somebody asks: it would keep the console reading for whoever only passes
// by.
pub(crate) const CHECK_UNASKED: i64 = 20_000;
const HOUR: i64 = 3_600_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tab {
    #[default]
    Entries,
    Payments,
    /// Of a customer.
    Grants,
    /// Of a customer.
    Plans,
    /// Of a customer.
    Keys,
    Models,
    Runs,
    Running,
    Acts,
    Charts,
}

/// The tabs of a key's page, in order, with their names.
const TABS_OF_KEY: &[(Tab, &str)] = &[
    (Tab::Entries, "all"),
    (Tab::Payments, "money in"),
    (Tab::Models, "models"),
    (Tab::Runs, "runs"),
    (Tab::Running, "running"),
    (Tab::Acts, "acts"),
    (Tab::Charts, "charts"),
];
/// Those of a customer's.
const TABS_OF_CUSTOMER: &[(Tab, &str)] = &[
    (Tab::Entries, "all"),
    (Tab::Payments, "money in"),
    (Tab::Grants, "grants"),
    (Tab::Plans, "plans"),
    (Tab::Keys, "keys"),
    (Tab::Models, "models"),
    (Tab::Runs, "runs"),
    (Tab::Running, "running"),
    (Tab::Acts, "acts"),
    (Tab::Charts, "charts"),
];

/// Whether the customer's entries sum up to its balance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum BalanceCheck {
    #[default]
    NotYet,
    /// Too many entries to check automatically.
    Long(i64),
    Running,
    Sound {
        entries: u64,
        balance: Amount,
        at: Timestamp,
    },
    Wrong {
        sum: Amount,
        balance: Amount,
    },
    Failed(String),
}

/// The store's answer for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetailData {
    pub(crate) of: Scope,
    /// When it was read.
    pub(crate) at: Timestamp,
    pub(crate) party: Option<Party>,
    /// Newest first.
    pub(crate) entries: Vec<JournalEntry>,
    pub(crate) entries_end: bool,
    /// The last 30 days.
    pub(crate) usage: Vec<UsageRow>,
    /// Of this month.
    pub(crate) runs: Vec<RunSum>,
    pub(crate) acts: Vec<AuditRecord>,
    pub(crate) holds: Vec<OpenHold>,
    /// Of a customer, oldest first.
    pub(crate) keys: Vec<MemberKey>,
    /// Of a customer: payments that could not be booked.
    pub(crate) unapplied: Vec<Payment>,
    /// Of a customer, newest first.
    pub(crate) grants: Vec<GrantRecord>,
}

/// The page.
#[derive(Debug)]
pub(crate) struct PartyDetail {
    pub(crate) of: Scope,
    at: Timestamp,
    pub(crate) party: Option<Party>,
    pub(crate) entries: Vec<JournalEntry>,
    pub(crate) entries_end: bool,
    pub(crate) usage: Vec<UsageRow>,
    /// Of this month.
    pub(crate) runs: Vec<RunSum>,
    pub(crate) acts: Vec<AuditRecord>,
    pub(crate) holds: Vec<OpenHold>,
    pub(crate) keys: Vec<MemberKey>,
    pub(crate) unapplied: Vec<Payment>,
    pub(crate) grants: Vec<GrantRecord>,
    /// Of a customer: subscriptions of which something can still come.
    pub(crate) plans: Vec<SubscriptionDocument>,
    pub(crate) tab: Tab,
    /// Of this tab.
    pub(crate) list: ListState,
    pub(crate) check: BalanceCheck,
    pub(crate) loaded: bool,
    pub(crate) loading_more: bool,
    pub(crate) error: Option<String>,
}

impl PartyDetail {
    /// An empty page, waiting for its answer. What a list already has is shown at once.
    pub(crate) fn new(of: Scope, party: Option<Party>) -> Self {
        Self {
            of,
            at: Timestamp::from_millis(0),
            party,
            entries: Vec::new(),
            entries_end: false,
            usage: Vec::new(),
            runs: Vec::new(),
            acts: Vec::new(),
            holds: Vec::new(),
            keys: Vec::new(),
            unapplied: Vec::new(),
            grants: Vec::new(),
            plans: Vec::new(),
            tab: Tab::Entries,
            list: ListState::default(),
            check: BalanceCheck::NotYet,
            loaded: false,
            loading_more: false,
            error: None,
        }
    }

    /// Applies an answer; the selection stays on its line and older pages are kept. Returns whether to check the books now.
    pub(crate) fn take(&mut self, data: DetailData) -> bool {
        if data.of != self.of {
            return false;
        }
        let at_top = self.list.selected == 0;
        let newest = self.entries.first().map_or(0, |entry| entry.position);
        let overlaps = data.entries.iter().any(|entry| entry.position == newest);
        let moves = self.tab == Tab::Entries && !self.list.order.sorts();
        if self.loaded && overlaps && moves && !at_top {
            self.list.selected += data
                .entries
                .iter()
                .filter(|entry| entry.position > newest)
                .count();
        }
        // Without an overlap there may be entries in between that nobody has read: the older pages are read again.
        if overlaps && self.entries.len() > data.entries.len() {
            let new: Vec<JournalEntry> = data
                .entries
                .into_iter()
                .filter(|entry| entry.position > newest)
                .collect();
            self.entries.splice(0..0, new);
        } else {
            (self.entries, self.entries_end) = (data.entries, data.entries_end);
        }
        self.plans = plans_of(data.party.as_ref(), data.at);
        (self.party, self.usage, self.acts, self.holds) =
            (data.party, data.usage, data.acts, data.holds);
        self.runs = data.runs;
        (self.keys, self.unapplied, self.grants) = (data.keys, data.unapplied, data.grants);
        (self.loaded, self.error, self.at) = (true, None, data.at);
        self.list.stay_in(self.rows());
        let count = self.entries.first().map_or(0, |entry| entry.seq);
        match &self.check {
            BalanceCheck::NotYet if count <= CHECK_UNASKED => {
                self.check = BalanceCheck::Running;
                true
            }
            BalanceCheck::NotYet => {
                self.check = BalanceCheck::Long(count);
                false
            }
            // What its customer paid has an entry that is not among a key's.
            BalanceCheck::Sound {
                entries, balance, ..
            } if count <= CHECK_UNASKED => {
                let customer = self.party.as_ref().map(Party::customer);
                let now = customer.map(|customer| customer.account.balance());
                *entries < count.unsigned_abs() || now.is_some_and(|now| now != *balance)
            }
            _ => false,
        }
    }

    /// Lines of the tab.
    pub(crate) fn rows(&self) -> usize {
        match self.tab {
            Tab::Entries => self.entries.len(),
            Tab::Payments => self.payments().count(),
            Tab::Grants => self.grants.len(),
            Tab::Plans => self.plans.len(),
            Tab::Keys => self.keys.len(),
            Tab::Models => self.by_model().len(),
            Tab::Runs => self.runs.len(),
            Tab::Running => self.holds.len(),
            Tab::Acts => self.acts.len(),
            Tab::Charts => 0,
        }
    }

    /// The tabs of this page, in order, with their names.
    pub(crate) const fn tabs(&self) -> &'static [(Tab, &'static str)] {
        match self.of {
            Scope::Key(_) => TABS_OF_KEY,
            Scope::Customer(_) => TABS_OF_CUSTOMER,
        }
    }

    /// Shows the next or previous tab, in a ring.
    pub(crate) fn step(&mut self, forward: bool) {
        let tabs = self.tabs();
        let here = tabs.iter().position(|(tab, _)| *tab == self.tab);
        let step = if forward { 1 } else { tabs.len() - 1 };
        let next = tabs.get((here.unwrap_or(0) + step) % tabs.len());
        self.show(next.map_or(self.tab, |(tab, _)| *tab));
    }

    /// Shows another tab, in the order in which its rows come.
    pub(crate) fn show(&mut self, tab: Tab) {
        (self.tab, self.list) = (tab, ListState::default());
    }

    /// The columns of entries: on a customer's page they name their keys.
    pub(crate) const fn entry_columns(&self) -> &'static [ListColumn<JournalEntry>] {
        match self.of {
            Scope::Key(_) => ENTRIES_OF_KEY,
            Scope::Customer(_) => ENTRIES,
        }
    }

    /// The orders of this tab's list.
    pub(crate) fn orders(&self) -> Vec<ListOrder> {
        match self.tab {
            Tab::Entries => orders(self.entry_columns()),
            Tab::Payments => orders(PAYMENTS),
            Tab::Grants => orders(GRANTS),
            Tab::Plans => orders(PLANS),
            Tab::Keys => orders(MEMBERS),
            Tab::Models => orders(MODEL_SUMS),
            Tab::Runs => orders(RUNS),
            Tab::Running => orders(RUNNING),
            Tab::Acts => orders(ACTS),
            Tab::Charts => Vec::new(),
        }
    }

    /// This tab's rows in the order in which they are shown.
    pub(crate) fn shown<'a, R: ListRow>(
        &self,
        columns: &[ListColumn<R>],
        rows: impl Iterator<Item = R::At<'a>>,
    ) -> Vec<R::At<'a>> {
        sorted(columns, rows.collect(), self.list.order, self.at)
    }

    /// The selected row, if this tab is shown.
    fn selected_of<'a, R: ListRow>(
        &self,
        tab: Tab,
        columns: &[ListColumn<R>],
        rows: impl Iterator<Item = R::At<'a>>,
    ) -> Option<R::At<'a>> {
        let shown = (self.tab == tab).then(|| self.shown(columns, rows))?;
        shown.get(self.list.selected).copied()
    }

    pub(crate) fn selected_entry(&self) -> Option<&JournalEntry> {
        // The columns of a key's page are the first of these, so both pages sort alike.
        self.selected_of(Tab::Entries, ENTRIES, self.entries.iter())
    }

    pub(crate) fn selected_hold(&self) -> Option<&OpenHold> {
        self.selected_of(Tab::Running, RUNNING, self.holds.iter())
    }

    /// The selected payment or act.
    pub(crate) fn selected_act(&self) -> Option<&AuditRecord> {
        let payment = self.selected_of(Tab::Payments, PAYMENTS, self.payments());
        payment.or_else(|| self.selected_of(Tab::Acts, ACTS, self.acts.iter()))
    }

    /// The selected grant of a customer.
    pub(crate) fn selected_grant(&self) -> Option<&GrantRecord> {
        self.selected_of(Tab::Grants, GRANTS, self.grants.iter())
    }

    /// The selected subscription of a customer.
    pub(crate) fn selected_plan(&self) -> Option<&SubscriptionDocument> {
        self.selected_of(Tab::Plans, PLANS, self.plans.iter())
    }

    /// The selected key of a customer.
    pub(crate) fn selected_member(&self) -> Option<&MemberKey> {
        self.selected_of(Tab::Keys, MEMBERS, self.keys.iter())
    }

    /// The id of the selected row, for copying.
    pub(crate) fn selected_name(&self) -> Option<String> {
        if let Some(entry) = self.selected_entry() {
            return Some(match entry.request() {
                Some(request) => format!("req_{request}"),
                None => format!("op_{}", entry.operation),
            });
        }
        if let Some(member) = self.selected_member() {
            return Some(member.key.id.to_string());
        }
        if let Some(grant) = self.selected_grant() {
            return Some(grant.grant.id.to_string());
        }
        if let Some(of) = self.selected_plan() {
            return Some(of.id.clone());
        }
        let hold = self.selected_hold();
        let request = hold.map(|hold| format!("req_{}", hold.request));
        request.or_else(|| {
            self.selected_act()
                .map(|act| format!("op_{}", act.operation))
        })
    }

    /// Acts that moved money, or were about payments that did not.
    pub(crate) fn payments(&self) -> impl Iterator<Item = &AuditRecord> {
        let moves = |act: &&AuditRecord| match act.act.as_str() {
            "create" => act.details.contains("\"credit\""),
            // It says that no money comes.
            "fail_top_up" => false,
            _ => act.is_of_money(),
        };
        self.acts.iter().filter(moves)
    }

    /// Charges of the last `hours` hours, including this one.
    pub(crate) fn spent(&self, now: Timestamp, hours: i64) -> Amount {
        let from = now.hour() - hours + 1;
        let sum = self
            .usage
            .iter()
            .filter(|row| row.hour.hour() >= from)
            .map(|row| row.charge.picos())
            .fold(0, i64::saturating_add);
        Amount::from_picos(sum)
    }

    /// Charges of each of the last `hours` hours, oldest first.
    pub(crate) fn chart(&self, now: Timestamp, hours: usize) -> Vec<u64> {
        let first = now.hour() - i64::try_from(hours).unwrap_or(0) + 1;
        let mut bars = vec![0_u64; hours];
        for row in &self.usage {
            if let Some(bar) = usize::try_from(row.hour.hour() - first)
                .ok()
                .and_then(|place| bars.get_mut(place))
            {
                *bar = bar.saturating_add(row.charge.picos().max(0).unsigned_abs());
            }
        }
        bars
    }

    /// The last seven days by model, highest charge first.
    pub(crate) fn by_model(&self) -> Vec<ModelSum> {
        let mut models: BTreeMap<&str, UsageRow> = BTreeMap::new();
        let week = self.at.hour() - 167;
        for row in self.usage.iter().filter(|row| row.hour.hour() >= week) {
            models
                .entry(&row.slug)
                .and_modify(|sum| sum.merge(row))
                .or_insert_with(|| row.clone());
        }
        let mut models: Vec<UsageRow> = models.into_values().collect();
        models.sort_by(|one, other| {
            other
                .charge
                .cmp(&one.charge)
                .then_with(|| one.slug.cmp(&other.slug))
        });
        let all = models.iter().map(|sum| sum.charge.picos());
        let all = Amount::from_picos(all.fold(0, i64::saturating_add));
        models
            .into_iter()
            .map(|sum| ModelSum { sum, all })
            .collect()
    }
}

/// The subscriptions of a customer, as they are at an instant.
fn plans_of(party: Option<&Party>, now: Timestamp) -> Vec<SubscriptionDocument> {
    let Some(customer) = party.map(Party::customer) else {
        return Vec::new();
    };
    let of = |of| SubscriptionDocument::of(of, customer, now);
    customer.grants.plans.iter().map(of).collect()
}

/// The first instant of a usage question over the last seven days.
pub(crate) fn week_before(now: Timestamp) -> Timestamp {
    Timestamp::from_millis((now.hour() - 167).saturating_mul(HOUR))
}

/// The first instant of a usage question over the last 24 hours.
pub(crate) fn day_before(now: Timestamp) -> Timestamp {
    Timestamp::from_millis((now.hour() - 23).saturating_mul(HOUR))
}

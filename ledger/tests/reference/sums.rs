//! Sums over entries: usage by hour, margins, slugs.

use std::collections::{BTreeMap, BTreeSet};

use super::State;
use crate::book::margin::{self, SlugHours, Summing};
use crate::value::tries::UNMETERED;
use crate::*;

/// Hour, key, slug, target and class of a row of the rollup.
type RollupPlace = (i64, i64, String, String, Served);

impl State {
    /// Which of these keys have ended.
    pub(super) fn ended(&self, keys: &[KeyId]) -> Vec<KeyId> {
        let has_ended = |id: &&KeyId| {
            self.whole(**id).is_some_and(|key| {
                key.stored_status != KeyStatus::Active
                    || key.customer.status != CustomerStatus::Active
            })
        };
        keys.iter().filter(has_ended).copied().collect()
    }

    /// Credit that nobody paid.
    pub(super) fn given(&self, customer: CustomerId) -> Amount {
        let Some(found) = self.customers.get(&customer) else {
            return Amount::ZERO;
        };
        let paid = self.of_customer(customer).filter(|entry| {
            matches!(
                entry.kind,
                EntryKind::TopUp | EntryKind::Reversal | EntryKind::Move
            )
        });
        let paid = Amount::checked_sum(paid.map(|entry| entry.amount)).unwrap_or_default();
        found.account.credit.checked_sub(paid).unwrap_or_default()
    }

    pub(super) fn usage(&self, key: KeyId, from: Timestamp, to: Timestamp) -> Vec<UsageRow> {
        let mut rows: BTreeMap<(i64, String), UsageRow> = BTreeMap::new();
        for (entry, bill) in self
            .of_key(key)
            .filter_map(|entry| Some((entry, entry.bill.as_ref()?)))
        {
            let hour = entry.at.hour();
            let start = Timestamp::from_millis(hour.saturating_mul(3_600_000));
            if hour < from.hour() || start >= to {
                continue;
            }
            let row = rows
                .entry((hour, bill.slug.clone()))
                .or_insert_with(|| UsageRow {
                    hour: start,
                    slug: bill.slug.clone(),
                    ..UsageRow::default()
                });
            for (target, _, more) in UsageRow::of(entry, bill) {
                let unmetered = if target == UNMETERED {
                    more.exposure
                } else {
                    Amount::ZERO
                };
                row.merge(&UsageRow { unmetered, ..more });
            }
        }
        rows.into_values().collect()
    }

    /// What requests cost by the runs that they name. Who comes after the first names of a month is one of the others.
    pub(super) fn usage_by_run(&self, query: &RunQuery) -> Vec<RunSum> {
        let (key, (first, last)) = (query.key, query.months);
        let mut names: BTreeMap<StatementMonth, BTreeSet<&str>> = BTreeMap::new();
        let mut sums: BTreeMap<(StatementMonth, &str), (u64, Amount)> = BTreeMap::new();
        for entry in self.of_customer(query.customer) {
            let Some(run) = entry.bill.as_ref().and_then(Bill::run) else {
                continue;
            };
            let month = StatementMonth::of(entry.at);
            let of_month = names.entry(month).or_default();
            let is_full = of_month.len() >= RunSum::MOST_NAMES as usize;
            let run = if is_full && !of_month.contains(run) {
                ""
            } else {
                run
            };
            if !run.is_empty() {
                of_month.insert(run);
            }
            if key.is_none_or(|key| entry.key == Some(key)) {
                let (requests, charge) = sums.entry((month, run)).or_default();
                *requests = requests.saturating_add(1);
                *charge = charge.checked_sub(entry.amount).unwrap_or_default();
            }
        }
        let all = sums
            .into_iter()
            .map(|((month, run), (requests, charge))| RunSum {
                month,
                run: run.to_owned(),
                requests,
                charge,
            });
        let mut found: Vec<_> = all
            .filter(|sum| (first..=last).contains(&sum.month))
            .collect();
        // Stable: names are in order already.
        found.sort_by_key(|sum| (sum.month, std::cmp::Reverse(sum.charge)));
        found
    }

    /// The rollup of these hours, by hour, key, slug, target and class.
    pub(super) fn rollup(&self, (first, last): (i64, i64)) -> BTreeMap<RollupPlace, UsageRow> {
        let mut rows: BTreeMap<RollupPlace, UsageRow> = BTreeMap::new();
        for (entry, bill) in self
            .entries
            .iter()
            .filter_map(|entry| Some((entry, entry.bill.as_ref()?)))
        {
            let hour = entry.at.hour();
            if (first..=last).contains(&hour) {
                for (target, served, more) in UsageRow::of(entry, bill) {
                    let place = (
                        hour,
                        entry.key.map_or(-1, KeyId::to_i64),
                        bill.slug.clone(),
                        target.to_owned(),
                        served.clone(),
                    );
                    rows.entry(place).or_default().merge(&more);
                }
            }
        }
        rows
    }

    pub(super) fn slug_hours(&self, from: Timestamp, to: Timestamp) -> Vec<SlugHour> {
        let mut sums = SlugHours::default();
        for ((hour, _, slug, ..), row) in &self.rollup(margin::hours(from, to)) {
            sums.add(*hour, slug, row);
        }
        sums.finish()
    }

    pub(super) fn margins(&self, query: MarginQuery) -> Margins {
        let (first, last) = query.hours();
        let mut sums = Summing::new(query);
        for ((hour, key, slug, target, served), row) in &self.rollup((first, last)) {
            let provider = target.split('/').next().unwrap_or_default();
            let (number, text) = match query.by {
                MarginBy::Key => (*key, String::new()),
                MarginBy::Customer => (self.payer_of(*key), String::new()),
                MarginBy::Day => (hour.div_euclid(24), String::new()),
                MarginBy::Slug => (0, slug.clone()),
                MarginBy::Target => (0, target.clone()),
                MarginBy::Provider => (0, provider.to_owned()),
                MarginBy::Account if served.account.is_empty() => (0, provider.to_owned()),
                MarginBy::Account => (0, format!("{provider}/{}", served.account)),
                MarginBy::Class => (0, served.class().unwrap_or("standard").to_owned()),
            };
            sums.add(number, &text, row);
        }
        sums.finish(self.own_costs(first, last))
    }

    fn payer_of(&self, key: i64) -> i64 {
        let key = KeyId::from_i64(key).and_then(|key| self.keys.get(&key));
        key.map_or(0, |key| key.belongs_to.to_i64())
    }

    pub(super) fn own_costs(&self, first: i64, last: i64) -> Vec<OwnCost> {
        let mut found: BTreeMap<(i64, String), Amount> = BTreeMap::new();
        for ((hour, target, _), cost) in &self.own_costs {
            if (first..=last).contains(hour) {
                let sum = found.entry((*hour, target.clone())).or_default();
                *sum = Amount::from_picos(sum.picos().saturating_add(cost.picos()));
            }
        }
        let own = |((hour, target), cost)| OwnCost { hour, target, cost };
        found.into_iter().map(own).collect()
    }

    pub(super) fn slug_use(&self, since: Timestamp) -> Vec<SlugUse> {
        let mut slugs: BTreeMap<&str, (BTreeSet<KeyId>, u64)> = BTreeMap::new();
        for entry in self
            .entries
            .iter()
            .filter(|entry| entry.at.hour() >= since.hour())
        {
            let Some(bill) = &entry.bill else { continue };
            let (keys, requests) = slugs.entry(&bill.slug).or_default();
            keys.extend(entry.key);
            *requests = requests.saturating_add(1);
        }
        let count = |keys: BTreeSet<KeyId>| u64::try_from(keys.len()).unwrap_or(u64::MAX);
        slugs
            .into_iter()
            .map(|(slug, (keys, requests))| SlugUse {
                slug: slug.to_owned(),
                keys: count(keys),
                requests,
            })
            .collect()
    }
}

//! Providers whose answers told other costs than the operator's own prices say: then the prices are stale, or the provider bills more.
//!
//! Covers this UTC day and the previous one, as this gateway saw them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::alerts::{self, Alert};
use crate::proxy::record::Record;
use farebox_ledger::{Timestamp, UtcDay, amount, lock};

/// Days of fewer requests say nothing.
const FEWEST: u64 = 100;
/// Percent of what `cost` says.
const MOST_APART: i128 = 2;

/// What answers told, by provider and UTC day.
#[derive(Debug, Default)]
pub struct ToldCosts(Mutex<BTreeMap<(String, UtcDay), ToldDay>>);

/// Of the answers that told a cost, both sums in picodollars.
#[derive(Debug, Clone, Copy, Default)]
struct ToldDay {
    requests: u64,
    told: i128,
    listed: i128,
}

impl ToldDay {
    fn differs(self) -> bool {
        let apart = (self.told - self.listed).abs();
        self.requests >= FEWEST && apart * 100 > self.listed * MOST_APART
    }
}

impl ToldCosts {
    pub(super) fn note(&self, record: &Record) {
        let provider = record.target.split('/').next().unwrap_or_default();
        if provider.is_empty() {
            return;
        }
        let mut days = lock(&self.0);
        let place = (provider.to_owned(), UtcDay::of(record.at));
        let day = days.entry(place).or_default();
        day.requests += 1;
        if let Some((told, listed)) = record.costs {
            day.told += i128::from(told.picos());
            day.listed += i128::from(listed.picos());
        }
    }

    /// What stands now.
    pub fn alerts(&self, now: Timestamp) -> Vec<Alert> {
        let today = UtcDay::of(now);
        let mut days = lock(&self.0);
        days.retain(|(_, day), _| *day == today || day.next() == today);
        let mut found: BTreeMap<&str, (UtcDay, ToldDay)> = BTreeMap::new();
        // Today's figures take the place of yesterday's.
        for ((provider, day), sums) in days.iter().filter(|(_, sums)| sums.differs()) {
            found.insert(provider, (*day, *sums));
        }
        let alert = |(provider, (day, sums)): (&str, (UtcDay, ToldDay))| {
            let [told, listed] = [sums.told, sums.listed].map(amount::exact);
            let why = format!(
                "{provider}: answers of {day} told costs of {told} USD, your `cost` says {listed} USD"
            );
            Alert::new(&alerts::COST_DIFFERS, provider, why)
                .with("provider", provider)
                .with("told", told)
                .with("listed", listed)
        };
        found.into_iter().map(alert).collect()
    }
}

//! Charges, costs and possible debts: sums over the hourly rollup by key, customer, slug, target, provider, account, class or UTC day.
//!
//! A margin is known only where answers tell their cost or the operator has given a target's prices, so each sum records separately
//! which charges have a known cost. Pure: the stores supply the rows; order and totals are decided here for all of them. Sums saturate, as the rollup does.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::{Amount, CustomerId, KeyId, OwnCost, Timestamp, UsageRow};

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;
/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// Hours of a day.
const HOURS: i64 = 24;

/// What each sum is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MarginBy {
    /// Each key.
    #[default]
    Key,
    /// Each customer.
    Customer,
    /// Each slug.
    Slug,
    /// Each `provider/model`; the empty one stands for requests that no target answered.
    Target,
    /// Each provider.
    Provider,
    /// Each account of a provider, `provider/account`; the provider alone where it has only one.
    Account,
    /// Each class that answers were served as: `fast`, `us`, `fast,us`, and `standard` for all others.
    Class,
    /// Each UTC day.
    Day,
}

/// The sort order of a page of sums: the largest first, names in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MarginOrder {
    /// Key id, customer id, slug, target, provider, account, class or day.
    Name,
    /// Charged.
    Charge,
    /// What it cost the operator.
    Cost,
    /// What providers may be owed beyond the charge.
    #[default]
    Exposure,
    /// Used but not paid.
    Loss,
    /// Charge less cost, if the cost is known.
    Margin,
}

/// A query for sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarginQuery {
    /// For what.
    pub by: MarginBy,
    /// From this instant (whole hours) …
    pub from: Timestamp,
    /// … until before this one.
    pub to: Timestamp,
    /// In which order.
    pub order: MarginOrder,
    /// Whether to reverse the order.
    pub reverse: bool,
    /// How many to return. The total is over all.
    pub limit: usize,
}

impl MarginQuery {
    /// The first and the last hour.
    pub(crate) fn hours(&self) -> (i64, i64) {
        hours(self.from, self.to)
    }
}

/// The first and the last hour of `[from, to)`.
pub(crate) fn hours(from: Timestamp, to: Timestamp) -> (i64, i64) {
    let last = Timestamp::from_millis(to.millis().saturating_sub(1));
    (from.hour(), last.hour())
}

/// The sums of one key, customer, slug, target, provider, account, class or day.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MarginRow {
    /// The id, the slug, target, provider, account or class, or the day as `2026-11-22`.
    pub name: String,
    /// Ended requests.
    pub requests: u64,
    /// Charged.
    pub charge: Amount,
    /// What it cost the operator, where that is known.
    pub cost: Amount,
    /// The part of the cost that the answers told.
    pub told: Amount,
    /// The part of the charge whose cost is known.
    pub priced: Amount,
    /// What providers may be owed beyond the charge, at the catalog's prices.
    pub exposure: Amount,
    /// Used but not paid.
    pub loss: Amount,
    /// What our own requests to targets in trouble cost. They belong to no key, so that no key's row has any.
    pub own: Amount,
}

impl MarginRow {
    /// Charge less cost and what our own requests cost; `None` where no cost is known.
    pub fn margin(&self) -> Option<Amount> {
        let known = self.cost != Amount::ZERO || self.priced != Amount::ZERO;
        let spent = self.cost.picos().saturating_add(self.own.picos());
        known.then(|| Amount::from_picos(self.priced.picos().saturating_sub(spent)))
    }

    /// Adds one hour of one key with one slug at one target.
    fn add(&mut self, row: &UsageRow) {
        // The rollup has no other sign that a cost is not known.
        let priced = if row.cost == Amount::ZERO {
            Amount::ZERO
        } else {
            row.charge
        };
        self.merge(&Self {
            name: String::new(),
            requests: row.requests,
            charge: row.charge,
            cost: row.cost,
            told: row.told,
            priced,
            exposure: row.exposure,
            loss: row.loss,
            own: Amount::ZERO,
        });
    }

    fn merge(&mut self, more: &Self) {
        self.requests = self.requests.saturating_add(more.requests);
        for (sum, more) in [
            (&mut self.charge, more.charge),
            (&mut self.cost, more.cost),
            (&mut self.told, more.told),
            (&mut self.priced, more.priced),
            (&mut self.exposure, more.exposure),
            (&mut self.loss, more.loss),
            (&mut self.own, more.own),
        ] {
            *sum = Amount::from_picos(sum.picos().saturating_add(more.picos()));
        }
    }
}

/// One hour of one slug, summed over all keys and targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlugHour {
    /// When the hour began.
    pub hour: Timestamp,
    /// Its sums; the name is the slug.
    pub sums: MarginRow,
}

/// Adds rows of the rollup up by hour and slug.
#[derive(Debug, Default)]
pub(crate) struct SlugHours(BTreeMap<(i64, String), MarginRow>);

impl SlugHours {
    /// Adds one row of the rollup.
    pub(crate) fn add(&mut self, hour: i64, slug: &str, row: &UsageRow) {
        self.0.entry((hour, slug.to_owned())).or_default().add(row);
    }

    /// By hour, then by slug.
    pub(crate) fn finish(self) -> Vec<SlugHour> {
        let named = |((hour, name), sums)| slug_hour(hour, MarginRow { name, ..sums });
        self.0.into_iter().map(named).collect()
    }
}

/// The sums of the slug in their name in an hour, which is counted since 1970.
pub(crate) const fn slug_hour(hour: i64, sums: MarginRow) -> SlugHour {
    SlugHour {
        hour: Timestamp::from_millis(hour.saturating_mul(HOUR)),
        sums,
    }
}

/// One page of sums.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Margins {
    /// In the order asked for.
    pub rows: Vec<MarginRow>,
    /// How many there are in all.
    pub count: usize,
    /// Over all of them.
    pub total: MarginRow,
}

/// The class of a row of the rollup, for both databases: what `Served::class` says, or `standard`.
const CLASS: &str = "CASE WHEN place = 'global' THEN tier WHEN tier = 'standard' THEN place ELSE tier || ',' || place END";

/// What each database calls parts of a row of the rollup `u`, whose key is `k`.
#[derive(Debug)]
pub(crate) struct RollupNames {
    pub(crate) slug: &'static str,
    pub(crate) target: &'static str,
    /// The part of the target before its first `/`.
    pub(crate) provider: &'static str,
    /// The hour's day, since 1970.
    pub(crate) day: &'static str,
}

impl MarginBy {
    /// What a row of the rollup is summed by, for both databases: a number, or else a text.
    pub(crate) fn columns(self, names: &RollupNames) -> (String, String) {
        let number = |sql: &str| (sql.to_owned(), "''".to_owned());
        let text = |sql: String| ("0".to_owned(), sql);
        match self {
            Self::Key => number("u.key"),
            Self::Customer => number("k.customer"),
            Self::Day => number(names.day),
            Self::Slug => text(names.slug.to_owned()),
            Self::Target => text(names.target.to_owned()),
            Self::Provider => text(names.provider.to_owned()),
            Self::Account => text(format!(
                "{} || CASE WHEN account = '' THEN '' ELSE '/' || account END",
                names.provider
            )),
            Self::Class => text(CLASS.to_owned()),
        }
    }

    /// The name of a sum.
    pub(crate) fn name(self, number: i64, text: String) -> String {
        match self {
            Self::Day => Timestamp::from_millis(number.saturating_mul(DAY))
                .to_string()
                .chars()
                .take(10)
                .collect(),
            Self::Key => {
                KeyId::from_i64(number).map_or_else(|| number.to_string(), |key| key.to_string())
            }
            Self::Customer => CustomerId::from_i64(number)
                .map_or_else(|| number.to_string(), |customer| customer.to_string()),
            Self::Slug | Self::Target | Self::Provider | Self::Account | Self::Class => text,
        }
    }
}

/// Sums by number (a key, a customer, a day) or by text (all others).
#[derive(Debug)]
pub(crate) struct Summing {
    query: MarginQuery,
    numbers: HashMap<i64, MarginRow>,
    names: HashMap<String, MarginRow>,
}

impl Summing {
    pub(crate) fn new(query: MarginQuery) -> Self {
        Self {
            query,
            numbers: HashMap::new(),
            names: HashMap::new(),
        }
    }

    /// Adds one row of the rollup, with what it is summed by.
    pub(crate) fn add(&mut self, number: i64, text: &str, row: &UsageRow) {
        let sum = match (text.is_empty(), self.names.get_mut(text)) {
            (true, _) => self.numbers.entry(number).or_default(),
            (false, Some(sum)) => sum,
            (false, None) => self.names.entry(text.to_owned()).or_default(),
        };
        sum.add(row);
    }

    pub(crate) fn finish(self, own: Vec<OwnCost>) -> Margins {
        let query = self.query;
        let named = |(number, row), text| MarginRow {
            name: query.by.name(number, text),
            ..row
        };
        let numbers = self.numbers.into_iter();
        let numbers = numbers.map(|sum| named(sum, String::new()));
        let names = self.names.into_iter();
        let rows = numbers.chain(names.map(|(text, row)| named((0, row), text)));
        page(query, rows.collect(), own)
    }
}

/// Adds what our own requests cost to the rows of their target, provider or day, which may have no other. They belong to no key and
/// have no class, so that only the total has them there.
fn add_own(by: MarginBy, rows: &mut Vec<MarginRow>, total: &mut MarginRow, own: Vec<OwnCost>) {
    for OwnCost { hour, target, cost } in own {
        let own = MarginRow {
            own: cost,
            ..MarginRow::default()
        };
        total.merge(&own);
        let name = match by {
            MarginBy::Key
            | MarginBy::Customer
            | MarginBy::Slug
            | MarginBy::Account
            | MarginBy::Class => continue,
            MarginBy::Target => target,
            MarginBy::Provider => target.split('/').next().unwrap_or_default().to_owned(),
            MarginBy::Day => by.name(hour.div_euclid(HOURS), String::new()),
        };
        match rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.merge(&own),
            None => rows.push(MarginRow { name, ..own }),
        }
    }
}

/// Adds our own requests, sorts, totals and truncates. Equal rows are ordered by name.
pub(crate) fn page(query: MarginQuery, mut rows: Vec<MarginRow>, own: Vec<OwnCost>) -> Margins {
    let mut total = MarginRow::default();
    rows.iter().for_each(|row| total.merge(row));
    add_own(query.by, &mut rows, &mut total, own);
    let value = |row: &MarginRow| match query.order {
        MarginOrder::Name => None,
        MarginOrder::Charge => Some(row.charge),
        MarginOrder::Cost => Some(row.cost),
        MarginOrder::Exposure => Some(row.exposure),
        MarginOrder::Loss => Some(row.loss),
        // Unknown margins come last in either direction.
        MarginOrder::Margin => row.margin(),
    };
    rows.sort_by(|one, other| {
        let (ours, theirs) = (value(one), value(other));
        let by_value = if query.reverse && ours.is_some() && theirs.is_some() {
            ours.cmp(&theirs)
        } else {
            theirs.cmp(&ours)
        };
        let by_name = one.name.cmp(&other.name);
        let backwards = query.reverse && query.order == MarginOrder::Name;
        by_value.then(if backwards {
            by_name.reverse()
        } else {
            by_name
        })
    });
    let count = rows.len();
    rows.truncate(query.limit);
    Margins { rows, count, total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_of_what_has_a_cost() {
        let picos = Amount::from_picos;
        let mut row = MarginRow::default();
        row.add(&UsageRow {
            charge: picos(10),
            exposure: picos(3),
            ..UsageRow::default()
        });
        assert_eq!(row.margin(), None, "no cost is known");
        row.add(&UsageRow {
            charge: picos(7),
            cost: picos(9),
            ..UsageRow::default()
        });
        assert_eq!(
            (row.charge, row.priced, row.margin()),
            (picos(17), picos(7), Some(picos(-2)))
        );
        row.add(&UsageRow {
            charge: picos(i64::MAX),
            ..UsageRow::default()
        });
        assert_eq!(row.charge, picos(i64::MAX), "saturating");
    }

    #[test]
    fn unknown_margins_come_last_either_way() {
        let row = |name: &str, charge: i64, cost: i64| {
            let (charge, cost) = (Amount::from_picos(charge), Amount::from_picos(cost));
            let priced = if cost == Amount::ZERO {
                Amount::ZERO
            } else {
                charge
            };
            MarginRow {
                name: name.to_owned(),
                charge,
                cost,
                priced,
                ..MarginRow::default()
            }
        };
        let rows = || {
            vec![
                row("unknown", 9, 0),
                row("bad", 1, 5),
                row("good", 9, 1),
                row("other", 1, 0),
            ]
        };
        let mut query = MarginQuery {
            by: MarginBy::Target,
            from: Timestamp::default(),
            to: Timestamp::default(),
            order: MarginOrder::Margin,
            reverse: false,
            limit: 9,
        };
        let names = |query| {
            page(query, rows(), Vec::new())
                .rows
                .into_iter()
                .map(|row| row.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(query), ["good", "bad", "other", "unknown"]);
        query.reverse = true;
        assert_eq!(names(query), ["bad", "good", "other", "unknown"]);
        query.order = MarginOrder::Name;
        assert_eq!(names(query), ["unknown", "other", "good", "bad"]);
    }

    #[test]
    fn own_requests_lower_the_margin_of_their_target_and_day_and_of_all() {
        let picos = Amount::from_picos;
        let own = |hour, target: &str, cost| OwnCost {
            hour,
            target: target.to_owned(),
            cost: picos(cost),
        };
        let sums = |by| {
            let query = MarginQuery {
                by,
                from: Timestamp::default(),
                to: Timestamp::default(),
                order: MarginOrder::Name,
                reverse: false,
                limit: 9,
            };
            let mut sums = Summing::new(query);
            let row = UsageRow {
                charge: picos(100),
                cost: picos(60),
                ..UsageRow::default()
            };
            let (number, text) = match by {
                MarginBy::Target => (0, "a/m"),
                MarginBy::Provider => (0, "a"),
                _ => (1, ""),
            };
            sums.add(number, text, &row);
            let own = vec![own(24, "a/m", 3), own(25, "a/m", 2), own(72, "b/m", 7)];
            let page = sums.finish(own);
            let shown = |row: &MarginRow| (row.own.picos(), row.margin().map(Amount::picos));
            assert_eq!(shown(&page.total), (12, Some(28)));
            page.rows.iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(sums(MarginBy::Key), [(0, Some(40))]);
        assert_eq!(sums(MarginBy::Target), [(5, Some(35)), (7, None)]);
        assert_eq!(sums(MarginBy::Provider), [(5, Some(35)), (7, None)]);
        assert_eq!(sums(MarginBy::Day), [(5, Some(35)), (7, None)]);
    }

    #[test]
    fn days_are_utc_and_names_are_stable() {
        let name = |by: MarginBy, number| by.name(number, String::new());
        assert_eq!(name(MarginBy::Day, 20_779), "2026-11-22");
        assert_eq!(name(MarginBy::Day, -1), "1969-12-31");
        let key = KeyId::from_random(7);
        assert_eq!(name(MarginBy::Key, key.to_i64()), key.to_string());
        let customer = CustomerId::from_random(7);
        let shown = name(MarginBy::Customer, customer.to_i64());
        assert_eq!(shown, customer.to_string());
    }
}

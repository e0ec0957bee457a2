//! Usage by day and model, or by run: whole UTC days, from the ledger's hourly sums, so that a long history costs no more than a short one.

use std::collections::BTreeMap;

use farebox_ledger::{
    Amount, Key, Ledger, RunSum, StatementMonth, Timestamp, Usage, UsageKind, UsageRow,
};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan};

use super::decimal_json::DecimalJson;
use super::dialects::Statement;
use super::runs;
use crate::proxy::Failure;
use farebox_ledger::csv;

/// The longest range served.
const MOST_DAYS: i32 = 366;
/// Days shown when no range is requested.
const USUAL_DAYS: i32 = 30;

/// Whole UTC days, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Days {
    from: Date,
    to: Date,
}

/// One day of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DayRow {
    pub(super) day: String,
    pub(super) slug: String,
    pub(super) requests: u64,
    pub(super) usage: Usage,
    pub(super) charge: Amount,
}

impl Days {
    /// The days that a query requests: `from` and `to` as days or instants.
    ///
    /// # Errors
    /// 400 for invalid days, for days in the wrong order, and for more than 366.
    pub(super) fn asked(
        from: Option<&str>,
        to: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let given = |name: &str, text: Option<&str>| {
            let text = text.filter(|text| !text.is_empty());
            text.map(|text| day(text).ok_or_else(|| bad(name, "write a day as 2026-11-21, in UTC")))
                .transpose()
        };
        let (from, to) = (given("from", from)?, given("to", to)?);
        let to = to.unwrap_or_else(|| date_of(now));
        let from = match from {
            Some(from) => from,
            None => to
                .checked_sub((USUAL_DAYS - 1).days())
                .map_err(|_| bad("to", "this day is out of range"))?,
        };
        let length = (to - from).get_days();
        match length {
            ..0 => Err(bad("from", "the first day is after the last one")),
            MOST_DAYS.. => Err(bad(
                "from",
                "a range has at most 366 days; ask for less at once",
            )),
            _ => Ok(Self { from, to }),
        }
    }

    /// The first instant.
    pub(super) fn start(self) -> Timestamp {
        first_instant(self.from)
    }

    /// The first instant after the last day.
    pub(super) fn end(self) -> Timestamp {
        Timestamp::from_millis(first_instant(self.to).millis().saturating_add(86_400_000))
    }

    /// The months of both ends.
    fn months(self) -> (StatementMonth, StatementMonth) {
        let month = |day| StatementMonth::of(first_instant(day));
        (month(self.from), month(self.to))
    }

    /// Both days, for a file's name.
    pub(super) fn shown(self) -> String {
        format!("{}_{}", self.from, self.to)
    }

    /// Sums of each day and model, oldest first; of an owner, where `all` says so, of every key of its customer.
    async fn read(self, ledger: &dyn Ledger, key: &Key, all: bool) -> Result<Vec<DayRow>, Failure> {
        let (from, to) = (self.start(), self.end());
        if !(all && key.is_owner) {
            return Ok(by_day(&ledger.usage(key.id, from, to).await?));
        }
        let of_all = ledger.usage_by_key(key.customer.id, from, to).await?;
        let rows: Vec<UsageRow> = of_all.into_values().flatten().collect();
        Ok(by_day(&rows))
    }
}

/// Usage as a query asks for it.
#[derive(Debug)]
pub(super) enum AskedUsage {
    ByDay(Vec<DayRow>),
    ByRun(Vec<RunSum>),
}

impl AskedUsage {
    /// What a query asks for, of one key; of an owner, where `all` says so, of every key of its customer.
    ///
    /// # Errors
    /// 400 for what nothing is summed by; when the ledger cannot be read.
    pub(super) async fn read(
        ledger: &dyn Ledger,
        key: &Key,
        (days, by): (Days, Option<&str>),
        all: bool,
    ) -> Result<Self, Failure> {
        match by {
            None | Some("" | "day") => Ok(Self::ByDay(days.read(ledger, key, all).await?)),
            Some("run") => Ok(Self::ByRun(
                runs::read(ledger, key, days.months(), all).await?,
            )),
            Some(_) => Err(bad("by", "by must be day or run")),
        }
    }

    /// The document of `/v1/usage`: the fields that wallet tools read, and these sums.
    pub(super) fn document(&self, statement: &Statement) -> String {
        let sums = match self {
            Self::ByDay(days) => {
                let rows = days.iter().map(day_document).collect();
                ("days", DecimalJson::List(rows))
            }
            Self::ByRun(sums) => ("runs", runs::document(sums)),
        };
        document(statement, sums)
    }

    pub(super) fn spreadsheet(&self) -> String {
        match self {
            Self::ByDay(days) => spreadsheet(days),
            Self::ByRun(sums) => runs::spreadsheet(sums),
        }
    }
}

fn bad(param: &str, message: &str) -> Failure {
    Failure::bad_query(param, message.to_owned())
}

fn day(text: &str) -> Option<Date> {
    let instant = || {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|at| at.to_zoned(TimeZone::UTC).date())
    };
    // Only the two documented forms, and only years that have a timestamp.
    let date = if text.len() == 10 {
        text.parse::<Date>().ok()
    } else {
        instant()
    };
    date.filter(|date| (1970..=9000).contains(&date.year()))
}

/// The UTC day of an instant.
pub(super) fn date_of(at: Timestamp) -> Date {
    let instant =
        jiff::Timestamp::UNIX_EPOCH.saturating_add(SignedDuration::from_millis(at.millis()));
    instant
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .to_zoned(TimeZone::UTC)
        .date()
}

fn first_instant(date: Date) -> Timestamp {
    let millis = date
        .to_zoned(TimeZone::UTC)
        .map_or(0, |zoned| zoned.timestamp().as_millisecond());
    Timestamp::from_millis(millis)
}

fn by_day(rows: &[UsageRow]) -> Vec<DayRow> {
    let mut days: BTreeMap<(Date, &str), DayRow> = BTreeMap::new();
    for row in rows {
        let date = date_of(row.hour);
        let sum = days.entry((date, &row.slug)).or_insert_with(|| DayRow {
            day: date.to_string(),
            slug: row.slug.clone(),
            requests: 0,
            usage: Usage::default(),
            charge: Amount::ZERO,
        });
        sum.requests += row.requests;
        sum.usage = sum.usage.and(row.usage);
        sum.charge = sum.charge.checked_add(row.charge).unwrap_or(sum.charge);
    }
    days.into_values().collect()
}

fn document(statement: &Statement, sums: (&'static str, DecimalJson)) -> String {
    let account = statement.account;
    DecimalJson::object([
        ("mode", "unrestricted".into()),
        ("isValid", statement.is_active().into()),
        ("balance", account.balance().into()),
        ("remaining", statement.remaining.into()),
        ("held", account.held.into()),
        ("unit", "USD".into()),
        // Refunds and adjustments count as payments: they change the balance and no day.
        (
            "refunds",
            "not part of any day; they are included in the balance".into(),
        ),
        sums,
    ])
    .document()
}

fn day_document(row: &DayRow) -> DecimalJson {
    DecimalJson::object([
        ("day", row.day.as_str().into()),
        ("model", row.slug.as_str().into()),
        ("requests", row.requests.into()),
        ("cost", row.charge.into()),
        ("usage", counts(&row.usage)),
    ])
}

/// Disjoint token counts.
pub(super) fn counts(usage: &Usage) -> DecimalJson {
    let kinds = UsageKind::FIRST.into_iter().chain(LATER_COUNTS);
    DecimalJson::Object(
        kinds
            .map(|kind| (kind.name(), usage[kind].into()))
            .collect(),
    )
}

/// What customers see of later counts: the last columns of a spreadsheet, because scripts count them.
pub(super) const LATER_COUNTS: [UsageKind; 1] = [UsageKind::CacheWrite12h];

fn spreadsheet(days: &[DayRow]) -> String {
    let header: Vec<&str> = ["day", "model", "requests"]
        .into_iter()
        .chain(UsageKind::FIRST.map(UsageKind::name))
        .chain(["cost"])
        .chain(LATER_COUNTS.map(UsageKind::name))
        .collect();
    let rows: Vec<Vec<String>> = days
        .iter()
        .map(|row| {
            let mut cells = vec![row.day.clone(), row.slug.clone(), row.requests.to_string()];
            cells.extend(UsageKind::FIRST.map(|kind| row.usage[kind].to_string()));
            cells.push(row.charge.to_string());
            cells.extend(LATER_COUNTS.map(|kind| row.usage[kind].to_string()));
            cells
        })
        .collect();
    csv::document(&header, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(from: Option<&str>, to: Option<&str>) -> Result<String, String> {
        // 2026-11-21T03:27:56Z
        let now = Timestamp::from_millis(1_795_231_676_000);
        Days::asked(from, to, now)
            .map(Days::shown)
            .map_err(|failure| failure.message())
    }

    #[test]
    fn ranges_are_whole_days_and_bounded() {
        assert_eq!(asked(None, None).unwrap(), "2026-10-23_2026-11-21");
        assert_eq!(
            asked(Some("2026-11-01"), Some("2026-11-01T23:59:59Z")).unwrap(),
            "2026-11-01_2026-11-01"
        );
        assert_eq!(
            asked(Some("2025-11-21"), None).unwrap(),
            "2025-11-21_2026-11-21"
        );
        assert_eq!(
            asked(Some(""), Some("2024-02-29")).unwrap(),
            "2024-01-31_2024-02-29"
        );
        for (from, to) in [
            ("2025-11-20", "2026-11-21"),
            ("2026-11-22", "2026-11-21"),
            ("0001-01-01", "2026-11-21"),
            ("2026-02-30", "2026-03-01"),
            ("yesterday", "2026-03-01"),
            ("9999-12-31", "9999-12-31"),
            ("-009999-01-01", "2026-01-01"),
        ] {
            assert!(asked(Some(from), Some(to)).is_err(), "{from} {to}");
        }
        let day = Days::asked(
            Some("2026-11-01"),
            Some("2026-11-01"),
            Timestamp::from_millis(0),
        )
        .unwrap();
        assert_eq!(day.end().millis() - day.start().millis(), 86_400_000);
    }
}

//! Plans: credit that comes every period, bounded in windows. Pure: what was bought, and when its periods begin.
//!
//! A subscription keeps the terms that it was sold at: what a file says later binds nobody who has paid. Each period is a grant, reckoned from
//! an anchor, so that a month that is cut short moves no month after it.

mod limit;
pub(crate) mod money_back;
mod subscription;
mod window;

pub use limit::PlanLimit;
pub use subscription::{
    PastPeriod, PlanNews, RunningPeriod, SoldPeriods, Subscription, SubscriptionState,
    SubscriptionStatus,
};
pub(crate) use subscription::{PeriodTurn, PlanTurn};
pub use window::{PlanWindow, Plans, WindowId, WindowPlace};

use std::fmt;
use std::str::FromStr;

use jiff::ToSpan as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use self::money_back::PaidPeriods;
use crate::value::id::number_of;
use crate::value::text::check_text;
use crate::{Act, Amount, CapInterval, CustomerId, Refusal, SubscriptionId, Timestamp, UtcDay};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// How long a period is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanPeriod {
    /// To the same day of the next month, or to its last day.
    Month,
    /// So many days.
    Days(u16),
}

impl PlanPeriod {
    /// Most days of one.
    pub const MOST_DAYS: u16 = 366;

    /// The instant that is so many periods after (or before) another one, by UTC's calendar.
    fn after(self, at: Timestamp, periods: i64) -> Timestamp {
        match self {
            Self::Days(days) => {
                let length = i64::from(days).saturating_mul(DAY);
                Timestamp::from_millis(at.millis().saturating_add(length.saturating_mul(periods)))
            }
            Self::Month => {
                let zoned = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
                let zoned = zoned.to_zoned(jiff::tz::TimeZone::UTC);
                let span = jiff::Span::new().try_months(periods).unwrap_or(0.month());
                let moved = zoned.saturating_add(span).timestamp();
                Timestamp::from_millis(moved.as_millisecond())
            }
        }
    }
}

/// `month`, `week`, `day`, `30d`.
impl fmt::Display for PlanPeriod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Month => out.write_str("month"),
            Self::Days(1) => out.write_str("day"),
            Self::Days(7) => out.write_str("week"),
            Self::Days(days) => write!(out, "{days}d"),
        }
    }
}

impl FromStr for PlanPeriod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let days = match text {
            "month" => return Ok(Self::Month),
            "week" => Some(7),
            "day" => Some(1),
            text => text
                .strip_suffix('d')
                .and_then(|digits| digits.parse().ok()),
        };
        let days = days.filter(|days| (1..=Self::MOST_DAYS).contains(days));
        days.map(Self::Days).ok_or_else(|| {
            format!(
                "{text:?} is no period: write \"month\", \"week\", \"day\", or days such as \"30d\", at most \"{}d\"",
                Self::MOST_DAYS
            )
        })
    }
}

/// How long a window of a plan counts before it starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WindowSpan {
    /// So many hours from the first request in it.
    Hours(u16),
    /// A day, week or month of UTC.
    Calendar(CapInterval),
}

impl WindowSpan {
    /// Most hours of one.
    pub const MOST_HOURS: u16 = 168;

    /// The window in which an instant lies, or of hours the one that it begins.
    pub(crate) fn around(self, now: Timestamp) -> (Timestamp, Timestamp) {
        match self {
            Self::Hours(hours) => {
                let length = i64::from(hours).saturating_mul(HOUR);
                let end = now.millis().saturating_add(length);
                (now, Timestamp::from_millis(end))
            }
            Self::Calendar(interval) => {
                let day = UtcDay::of(now);
                let end = interval.next(day).map_or(Timestamp::NEVER, UtcDay::begin);
                (interval.window(day).begin(), end)
            }
        }
    }

    /// How long it lasts, at least, in hours: which of two is the narrower.
    fn hours(self) -> u16 {
        match self {
            Self::Hours(hours) => hours,
            Self::Calendar(CapInterval::Day) => 24,
            Self::Calendar(CapInterval::Week) => 168,
            Self::Calendar(CapInterval::Month) => 672,
            Self::Calendar(CapInterval::Total) => u16::MAX,
        }
    }
}

/// `5h`, `day`, `week`, `month`.
impl fmt::Display for WindowSpan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hours(hours) => write!(out, "{hours}h"),
            Self::Calendar(interval) => interval.fmt(out),
        }
    }
}

impl FromStr for WindowSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = CapInterval::ALL
            .into_iter()
            .find(|interval| interval.as_str() == text && *interval != CapInterval::Total);
        let hours = || {
            let hours = text.strip_suffix('h')?.parse().ok()?;
            (1..=Self::MOST_HOURS).contains(&hours).then_some(hours)
        };
        let hours = || hours().map(Self::Hours);
        named.map(Self::Calendar).or_else(hours).ok_or_else(|| {
            format!(
                "{text:?} is no window: write \"day\", \"week\", \"month\", or hours from \"1h\" to \"{}h\"",
                Self::MOST_HOURS
            )
        })
    }
}

/// Written and read as the words that people write.
macro_rules! as_words {
    ($($name:ident),+) => {
        $(
            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                    out.collect_str(self)
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                    let text = String::deserialize(input)?;
                    text.parse().map_err(serde::de::Error::custom)
                }
            }
        )+
    };
}

as_words! { PlanPeriod, WindowSpan }

/// How much of a plan may be used within a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowBound {
    /// How long it counts.
    pub per: WindowSpan,
    /// How much, in US dollars.
    pub usd: Amount,
}

/// What pays when allowance or a window is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanAfter {
    /// The balance.
    #[default]
    Balance,
    /// Nothing, until there is more again.
    Stop,
}

/// What somebody buys. The format in which it is stored and hashed is frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTerms {
    /// The plan's name, which no other plan ever has.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What a whole unused allowance is worth, without tax.
    pub price: Amount,
    /// What may be used in a period.
    pub allowance: Amount,
    /// How long a period is.
    pub period: PlanPeriod,
    /// How much of it may be used when, from the narrowest to the widest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowBound>,
    /// The slugs that it is for; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// What pays when it is used up.
    #[serde(default)]
    pub after: PlanAfter,
    /// Most of what is left that moves into the next period.
    #[serde(default)]
    pub carry: Amount,
    /// How long a period may be used beyond its end while the next one is not paid, in milliseconds.
    #[serde(default)]
    pub grace: i64,
}

impl PlanTerms {
    /// Most windows of one plan.
    pub const MOST_WINDOWS: usize = 4;
    /// The longest grace, in milliseconds.
    pub const MOST_GRACE: i64 = 3 * DAY;
    /// Most that a name has.
    pub const MOST_NAME: usize = 64;

    /// Refuses what no plan can be.
    ///
    /// # Errors
    /// [`Refusal::Limit`] and others that say what is wrong.
    pub fn check(&self) -> Result<(), Refusal> {
        self.check_members().map_err(|(_, refusal)| refusal)
    }

    /// The same, with the member that is wrong.
    ///
    /// # Errors
    /// Its name, and what is wrong with it.
    pub fn check_members(&self) -> Result<(), (&'static str, Refusal)> {
        let limit = |member, text: String| Err((member, Refusal::Limit(text)));
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if self.name.is_empty()
            || self.name.len() > Self::MOST_NAME
            || !self.name.chars().all(is_plain)
        {
            return limit(
                "name",
                format!(
                    "{:?} is no plan's name: 1 to {} lower-case letters, digits, '-', '_' and '.'",
                    self.name,
                    Self::MOST_NAME
                ),
            );
        }
        check_text("a title", &self.title, 200, true).map_err(|refusal| ("title", refusal))?;
        let most = Amount::MAX_TOP_UP;
        if !self.allowance.is_positive() || self.allowance > most {
            return limit(
                "allowance",
                format!("an allowance is more than zero and at most {most}"),
            );
        }
        if self.price.is_negative() || self.price > most {
            return limit("price", format!("a price is at least 0 and at most {most}"));
        }
        if self.carry.is_negative() || self.carry > self.allowance {
            return limit(
                "carry",
                "what is carried is at least 0 and at most the allowance".to_owned(),
            );
        }
        if !(0..=Self::MOST_GRACE).contains(&self.grace) {
            return limit("grace", "a grace is at most 3 days".to_owned());
        }
        if self.models.as_ref().is_some_and(Vec::is_empty) {
            return limit(
                "models",
                "a plan is for at least one model; leave models out for all".to_owned(),
            );
        }
        self.check_windows().map_err(|refusal| ("windows", refusal))
    }

    fn check_windows(&self) -> Result<(), Refusal> {
        if self.windows.len() > Self::MOST_WINDOWS {
            return Err(Refusal::Limit(format!(
                "a plan has at most {} windows",
                Self::MOST_WINDOWS
            )));
        }
        let mut before: Option<&WindowBound> = None;
        for window in &self.windows {
            if !window.usd.is_positive() || window.usd > self.allowance {
                return Err(Refusal::Limit(format!(
                    "the window per {} is more than zero and at most the allowance of {}",
                    window.per, self.allowance
                )));
            }
            let is_wider = |narrow: &WindowBound| {
                narrow.per.hours() < window.per.hours() && narrow.usd <= window.usd
            };
            if let Some(narrow) = before.filter(|narrow| !is_wider(narrow)) {
                return Err(Refusal::Limit(format!(
                    "windows go from the narrowest to the widest, and none has less than a narrower one: {} per {} stands before {} per {}",
                    narrow.usd, narrow.per, window.usd, window.per
                )));
            }
            before = Some(window);
        }
        Ok(())
    }

    /// Whether it pays for a slug.
    pub fn is_for(&self, slug: &str) -> bool {
        let named = |models: &Vec<String>| models.iter().any(|model| model == slug);
        self.models.as_ref().is_none_or(named)
    }

    /// What so much of allowances is worth, rounded down.
    pub(crate) fn worth(&self, of_allowance: Amount) -> Amount {
        let whole = i128::from(of_allowance.picos()).saturating_mul(self.price.picos().into());
        let part = whole.checked_div(self.allowance.picos().into());
        let part = part.and_then(|picos| i64::try_from(picos).ok());
        part.map_or(Amount::ZERO, Amount::from_picos)
    }
}

/// From where periods are reckoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodAnchor {
    /// Where the period of this number begins.
    pub at: Timestamp,
    /// The number.
    pub number: u32,
    /// How long the periods are that are reckoned from it.
    pub period: PlanPeriod,
}

impl PeriodAnchor {
    /// Where a period begins. A month that is too short cuts the day to its last one, and only its own.
    pub fn begin(&self, number: u32) -> Timestamp {
        let periods = i64::from(number).saturating_sub(self.number.into());
        self.period.after(self.at, periods)
    }
}

/// Periods to sell or give. A subscription that is not known is started, one that is known renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanPurchase {
    /// Chosen by the caller, or derived from what a processor calls it.
    pub subscription: SubscriptionId,
    /// What each period gives.
    pub terms: PlanTerms,
    /// How many.
    pub periods: u32,
    /// What a processor that renews it calls it.
    pub processor: Option<String>,
    /// When the processor asked for the money, which may be before it was told that the subscription is ended.
    pub invoiced_at: Option<Timestamp>,
}

impl PlanPurchase {
    /// The subscription that a processor calls so.
    #[must_use]
    pub fn of_processor(name: &str) -> SubscriptionId {
        let hash = Sha256::new_with_prefix(b"farebox subscription").chain_update(name);
        SubscriptionId::from_random(number_of(hash))
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.terms.check()?;
        if self.periods == 0 || self.periods > Subscription::MOST_PERIODS {
            let most = Subscription::MOST_PERIODS;
            return Err(Refusal::Limit(format!(
                "between 1 and {most} periods are sold at a time"
            )));
        }
        if let Some(name) = &self.processor {
            check_text("a processor's name", name, 200, true)?;
        }
        Ok(())
    }

    /// What all of them give.
    pub fn allowance(&self) -> Amount {
        self.paid().allowance()
    }

    pub(crate) fn paid(&self) -> PaidPeriods {
        PaidPeriods {
            subscription: self.subscription,
            terms: self.terms.clone(),
            periods: self.periods,
            is_money: false,
            of_sold: Amount::ZERO,
            of_running: Amount::ZERO,
            of_used: Amount::ZERO,
        }
    }

    /// As they are queued, under the name of the payment that bought them; what was given is worth nothing.
    pub(crate) fn sold(&self, payment: Option<String>) -> SoldPeriods {
        let price = match payment {
            Some(_) => self.terms.price,
            None => Amount::ZERO,
        };
        SoldPeriods {
            count: self.periods,
            terms: PlanTerms {
                price,
                ..self.terms.clone()
            },
            payment,
            taken: Amount::ZERO,
        }
    }
}

/// A change of a customer's subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChange {
    /// Whose.
    pub customer: CustomerId,
    /// Which.
    pub subscription: SubscriptionId,
    /// What to change.
    pub change: PlanAct,
    /// By whom and when.
    pub act: Act,
}

/// The kinds of change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanAct {
    /// Give periods that nobody pays.
    Give(PlanPurchase),
    /// Have other terms from the next period that is not paid on, or at once: then what is unused of the running one becomes credit, and
    /// the next needs its own payment.
    Change {
        /// The new terms.
        terms: PlanTerms,
        /// Whether it takes effect at once.
        at_once: bool,
    },
    /// Stop its time.
    Pause,
    /// Let it go on.
    Resume,
    /// Renew it no more; what is paid still runs.
    End,
    /// Its owner wants it ended where a processor renews it.
    WantEnd,
}

#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;

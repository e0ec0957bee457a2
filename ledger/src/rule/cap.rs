//! Caps: how much may be spent within a day, a week, a month or in all, of one model or of all.
//!
//! Pure: the day is passed in. A cap is decided where the hold is, so it is exact: charged plus held of a window never grows past it.
//! Seller and owner each have a limit of their own in it, and the lesser one stands. So neither undoes what the other has set.
//! A hold belongs to the windows of the day on which it was opened, and so does its charge, however long it streams. Only the
//! current and the previous window of a cap are counted: nothing is admitted to an older one any more.

mod follow;
mod limits;
mod refusal;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use follow::{Behind, DefaultCap};
pub use limits::{CapLimits, CapMaker};
pub use refusal::CapReached;

use crate::rule::account::{less, sum};
use crate::rule::watch::cap_level;
use crate::value::text::check_text;
use crate::{Amount, CapInterval, OpenHold, Refusal, Scope, Timestamp, UtcDay};

/// A bound of what may be spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// When it starts again.
    pub interval: CapInterval,
    /// The slug that it is about; `None` is all.
    pub model: Option<String>,
    /// Most that may be charged and held in one window.
    pub limit: Amount,
}

impl Cap {
    fn is_of(&self, interval: CapInterval, model: Option<&str>) -> bool {
        self.interval == interval && self.model.as_deref() == model
    }

    fn is_for(&self, slug: &str) -> bool {
        self.model.as_deref().is_none_or(|model| model == slug)
    }
}

/// `5.00 USD per day`, `20.00 USD in all of MODEL`.
impl fmt::Display for Cap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interval {
            CapInterval::Total => write!(out, "{} USD in all", self.limit)?,
            interval => write!(out, "{} USD per {interval}", self.limit)?,
        }
        match &self.model {
            Some(model) => write!(out, " for {model}"),
            None => Ok(()),
        }
    }
}

/// What a cap counted in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapWindow {
    /// Its first day.
    pub since: UtcDay,
    /// Charged to requests that began in it.
    pub charged: Amount,
    /// Held by those that still run.
    pub held: Amount,
    /// How many per cent of the limit were told to be charged: 0, 80 or 100.
    #[serde(default, skip_serializing_if = "is_untold")]
    pub(crate) told: u8,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "what a skipped field is asked with"
)]
const fn is_untold(told: &u8) -> bool {
    *told == 0
}

/// Much of a cap is charged.
#[derive(Debug, Clone)]
pub(crate) struct CapNews {
    pub(crate) cap: Cap,
    pub(crate) window: CapWindow,
    /// In per cent.
    pub(crate) level: u8,
}

impl CapWindow {
    const fn empty(since: UtcDay) -> Self {
        Self {
            since,
            charged: Amount::ZERO,
            held: Amount::ZERO,
            told: 0,
        }
    }
}

/// A cap and its counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedCap {
    /// What stands.
    #[serde(flatten)]
    pub cap: Cap,
    /// Whose limit that is.
    #[serde(default, skip_serializing_if = "CapMaker::is_seller")]
    pub made_by: CapMaker,
    /// The limit of the other one, which is no lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Amount>,
    /// The seller's limit in it is a default of the house, which came with the act of this number; `None`: it is its own.
    #[serde(rename = "default", default, skip_serializing_if = "Option::is_none")]
    pub(crate) default_act: Option<i64>,
    /// The newest window in which something happened.
    pub current: CapWindow,
    /// The one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<CapWindow>,
}

impl CountedCap {
    /// Whether the seller's limit in it is a default, because nobody set one for this key or customer.
    pub const fn is_default(&self) -> bool {
        self.default_act.is_some()
    }

    /// One of the seller that begins on a day and counts what its window has seen so far.
    fn begun(cap: &Cap, today: UtcDay, spending: PastSpending<'_>) -> Self {
        let mut current = CapWindow::empty(cap.interval.window(today));
        let counts = |day: UtcDay| cap.interval == CapInterval::Total || day >= current.since;
        let mut charged = Amount::ZERO;
        for (hour, slug, charge) in spending.hours {
            if cap.is_for(slug) && counts(UtcDay::of(*hour)) {
                charged = sum(charged, *charge);
            }
        }
        let mut held = Amount::ZERO;
        for (hold, day) in spending.holds {
            if cap.is_for(&hold.slug) && counts(*day) {
                held = sum(held, hold.amount);
            }
        }
        (current.charged, current.held) = (charged, held);
        Self {
            cap: cap.clone(),
            made_by: CapMaker::Seller,
            beside: None,
            default_act: None,
            current,
            previous: None,
        }
    }

    /// The counts of the window that contains a day; `None` of one that is no longer counted.
    pub fn counts(&self, day: UtcDay) -> Option<CapWindow> {
        let since = self.cap.interval.window(day);
        if since > self.current.since {
            return Some(CapWindow::empty(since));
        }
        let known = [Some(self.current), self.previous];
        known
            .into_iter()
            .flatten()
            .find(|known| known.since == since)
    }

    /// What may still be charged in the window that contains a day, held or not.
    pub fn remaining(&self, day: UtcDay) -> Amount {
        let left = |counts: CapWindow| {
            let (limit, charged) = (self.cap.limit.picos(), counts.charged.picos());
            limit.saturating_sub(charged)
        };
        Amount::from_picos(self.counts(day).map_or(0, left).max(0))
    }

    /// What may still be held in the window that contains a day.
    pub fn room(&self, day: UtcDay) -> Amount {
        let left = |counts: CapWindow| {
            self.cap
                .limit
                .picos()
                .saturating_sub(counts.charged.picos())
                .saturating_sub(counts.held.picos())
        };
        Amount::from_picos(self.counts(day).map_or(0, left).max(0))
    }

    /// Whether it bounds requests for a slug.
    pub fn applies(&self, slug: &str) -> bool {
        self.cap.is_for(slug)
    }

    /// Whether a hold for a slug that was opened on a day counts in one of its windows.
    pub(crate) fn counts_in(&self, window: &CapWindow, slug: &str, day: UtcDay) -> bool {
        self.cap.is_for(slug) && self.cap.interval.window(day) == window.since
    }

    /// Changes the counts of the window that contains a day, and begins it if it is new.
    fn count(&mut self, day: UtcDay, change: impl FnOnce(&mut CapWindow)) {
        let since = self.cap.interval.window(day);
        if since > self.current.since {
            let empty = CapWindow::empty(since);
            self.previous = Some(std::mem::replace(&mut self.current, empty));
        }
        if let Some(window) = self.window(since) {
            change(window);
        }
    }

    /// The window that begins on a day, if it is still counted.
    fn window(&mut self, since: UtcDay) -> Option<&mut CapWindow> {
        let known = [Some(&mut self.current), self.previous.as_mut()];
        let mut known = known.into_iter().flatten();
        known.find(|known| known.since == since)
    }

    /// What is worth telling of the window that contains a day, once for each window and level.
    fn news(&mut self, day: UtcDay) -> Option<CapNews> {
        let (since, limit) = (self.cap.interval.window(day), self.cap.limit);
        let window = self.window(since)?;
        let level = cap_level(window.charged, limit);
        if level <= window.told {
            return None;
        }
        window.told = level;
        let window = *window;
        Some(CapNews {
            cap: self.cap.clone(),
            window,
            level,
        })
    }

    /// The limits of both.
    pub fn limits(&self) -> CapLimits {
        let standing = CapLimits::default().with(self.made_by, Some(self.cap.limit));
        standing.with(self.made_by.other(), self.beside)
    }

    /// Those that were set for this key or customer.
    fn own_limits(&self) -> CapLimits {
        match self.default_act {
            Some(_) => self.limits().with(CapMaker::Seller, None),
            None => self.limits(),
        }
    }

    /// Sets the limits of both; false if there are none. What is less of a higher limit can be told again.
    fn limit_to(&mut self, limits: CapLimits) -> bool {
        let Some((made_by, limit, beside)) = limits.standing() else {
            return false;
        };
        (self.made_by, self.cap.limit, self.beside) = (made_by, limit, beside);
        for window in std::iter::once(&mut self.current).chain(&mut self.previous) {
            window.told = window.told.min(cap_level(window.charged, limit));
        }
        true
    }

    /// What a refusal of `needed` more on a day says.
    pub fn reached(&self, scope: Scope, day: UtcDay, needed: Amount) -> CapReached {
        let counts = self
            .counts(day)
            .unwrap_or(CapWindow::empty(self.cap.interval.window(day)));
        CapReached {
            scope,
            cap: self.cap.clone(),
            made_by: self.made_by,
            needed,
            room: self.room(day),
            spent: counts.charged,
            held: counts.held,
            resets_at: self.cap.interval.next(day).map(UtcDay::begin),
            plan: None,
        }
    }
}

/// What audits say of a cap. The format is frozen: caps of sellers alone are written as before there were any of owners.
#[derive(Debug, Serialize)]
pub(crate) struct CapSetting {
    #[serde(flatten)]
    cap: Cap,
    #[serde(skip_serializing_if = "CapMaker::is_seller")]
    made_by: CapMaker,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Amount>,
}

/// The caps of a key or of a customer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Caps(Vec<CountedCap>);

/// What a key or customer spent and holds, for the counts of a new cap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PastSpending<'rows> {
    /// Charges by the first instant of their hour and by slug.
    pub(crate) hours: &'rows [(Timestamp, String, Amount)],
    /// Open holds and the days on which they were opened.
    pub(crate) holds: &'rows [(&'rows OpenHold, UtcDay)],
}

impl PastSpending<'_> {
    /// Of what is made now.
    pub(crate) const NONE: Self = Self {
        hours: &[],
        holds: &[],
    };

    /// Whether any request has used it, ended or not.
    pub(crate) const fn is_any(&self) -> bool {
        !self.hours.is_empty() || !self.holds.is_empty()
    }
}

impl Caps {
    /// Most caps that seller and owner each set for a key, and for a customer.
    // They are stored as one value, which each request that counts in one of them writes anew.
    pub const MOST: usize = 8;

    /// Those that the reference store counted.
    #[cfg(feature = "reference")]
    pub(crate) const fn of(all: Vec<CountedCap>) -> Self {
        Self(all)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All, in the order in which they were set.
    pub fn iter(&self) -> impl Iterator<Item = &CountedCap> {
        self.0.iter()
    }

    /// Every window that is counted, with its cap.
    pub(crate) fn windows(&self) -> impl Iterator<Item = (&CountedCap, &CapWindow)> {
        self.0.iter().flat_map(|counted| {
            let windows = std::iter::once(&counted.current).chain(&counted.previous);
            windows.map(move |window| (counted, window))
        })
    }

    /// What was set, without counts.
    /// Defaults come and go without an act on a key or customer, so they are no part of its state.
    pub(crate) fn settings(&self) -> Vec<CapSetting> {
        let own = self.0.iter().filter_map(|counted| {
            let (made_by, limit, beside) = counted.own_limits().standing()?;
            let cap = Cap {
                limit,
                ..counted.cap.clone()
            };
            Some(CapSetting {
                cap,
                made_by,
                beside,
            })
        });
        own.collect()
    }

    fn applying(&self, slug: &str) -> impl Iterator<Item = &CountedCap> {
        self.0
            .iter()
            .filter(move |counted| counted.cap.is_for(slug))
    }

    /// The cap with least room for a slug on a day, if one applies.
    pub fn tightest(&self, slug: &str, day: UtcDay) -> Option<&CountedCap> {
        self.applying(slug).min_by_key(|counted| counted.room(day))
    }

    /// What may still be held for a slug on a day: what is available, or less.
    pub fn room(&self, slug: &str, day: UtcDay, available: Amount) -> Amount {
        self.tightest(slug, day)
            .map_or(available, |counted| counted.room(day).min(available))
    }

    /// What may still be charged for a slug on a day: this balance, or less.
    pub fn remaining(&self, slug: &str, day: UtcDay, balance: Amount) -> Amount {
        let all = self.applying(slug).map(|counted| counted.remaining(day));
        all.fold(balance, Amount::min)
    }

    /// Counts another size of a hold that was opened on a day: `now` is what it had.
    pub(crate) fn resize(&mut self, slug: &str, day: UtcDay, now: Amount, to: Amount) {
        self.count(slug, day, |window| {
            window.held = sum(less(window.held, now), to);
        });
    }

    /// Counts the end of a hold that was opened on a day, and returns what is worth telling of it.
    pub(crate) fn end(
        &mut self,
        slug: &str,
        day: UtcDay,
        held: Amount,
        charge: Amount,
    ) -> Vec<CapNews> {
        self.count(slug, day, |window| {
            window.held = less(window.held, held);
            window.charged = sum(window.charged, charge);
        });
        let bounded = self.0.iter_mut().filter(|counted| counted.cap.is_for(slug));
        bounded.filter_map(|counted| counted.news(day)).collect()
    }

    /// Counts a refund of a charge whose request began on a day.
    pub(crate) fn refund(&mut self, slug: &str, day: UtcDay, amount: Amount) {
        self.count(slug, day, |window| {
            window.charged = less(window.charged, amount)
        });
    }

    fn count(&mut self, slug: &str, day: UtcDay, change: impl Fn(&mut CapWindow)) {
        for counted in self.0.iter_mut().filter(|counted| counted.cap.is_for(slug)) {
            counted.count(day, &change);
        }
    }

    /// Sets somebody's limit in a cap. A new cap counts what its window has seen so far.
    ///
    /// # Errors
    /// [`Refusal::Limit`] for a limit out of range or above the seller's, one cap too many, or a narrower interval above a wider one.
    pub(crate) fn set(
        &mut self,
        cap: &Cap,
        by: CapMaker,
        today: UtcDay,
        spending: PastSpending<'_>,
    ) -> Result<(), Refusal> {
        self.check(cap, by)?;
        if by == CapMaker::Seller {
            // Whoever has a cap of the seller's own has no defaults.
            self.drop_defaults();
        }
        let same =
            |counted: &&mut CountedCap| counted.cap.is_of(cap.interval, cap.model.as_deref());
        if let Some(known) = self.0.iter_mut().find(same) {
            known.limit_to(known.limits().with(by, Some(cap.limit)));
            return Ok(());
        }
        self.0.push(CountedCap {
            made_by: by,
            ..CountedCap::begun(cap, today, spending)
        });
        Ok(())
    }

    fn check(&self, cap: &Cap, by: CapMaker) -> Result<(), Refusal> {
        if !cap.limit.is_positive() {
            return Err(Refusal::Limit(
                "a cap must be more than zero; to stop a key, block it, and to stop a customer, suspend it".to_owned(),
            ));
        }
        if cap.limit > Amount::MAX_LIFETIME_CREDIT {
            let most = Amount::MAX_LIFETIME_CREDIT;
            return Err(Refusal::Limit(format!("a cap is at most {most}")));
        }
        if let Some(model) = &cap.model {
            check_text("a model", model, 200, true)?;
        }
        self.check_place(cap, by)?;
        // A seller's caps are compared with his own: he need not know what an owner has set. An owner's are compared with what was set for
        // the same key or customer: a default for all says nothing of what fits one.
        let others = self
            .0
            .iter()
            .filter(|counted| counted.cap.model == cap.model);
        let others = others.filter_map(|counted| {
            let own = counted.own_limits();
            let limit = match by {
                CapMaker::Seller => own.seller?,
                CapMaker::Owner => own.standing()?.1,
            };
            Some(Cap {
                limit,
                ..counted.cap.clone()
            })
        });
        let mut crossed = others.filter(|other| {
            let narrower = other.interval < cap.interval && other.limit > cap.limit;
            narrower || other.interval > cap.interval && other.limit < cap.limit
        });
        match crossed.next() {
            Some(other) => Err(Refusal::Limit(format!(
                "a cap of {cap} does not fit beside the cap of {other}: the shorter time would have the higher limit"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses an owner's limit above the seller's, and one cap too many.
    fn check_place(&self, cap: &Cap, by: CapMaker) -> Result<(), Refusal> {
        let model = cap.model.as_deref();
        let found = self.find(cap.interval, model);
        let known = found.map(CountedCap::limits).unwrap_or_default();
        if let (CapMaker::Owner, Some(seller)) = (by, known.seller)
            && cap.limit > seller
        {
            let set = Cap {
                limit: seller,
                ..cap.clone()
            };
            return Err(Refusal::Limit(format!(
                "the seller set a cap of {set}, which an owner can only lower"
            )));
        }
        let own = self
            .0
            .iter()
            .filter(|counted| counted.own_limits().of(by).is_some());
        let has_own = found.is_some_and(|found| found.own_limits().of(by).is_some());
        if !has_own && own.count() >= Self::MOST {
            let most = Self::MOST;
            return Err(Refusal::Limit(format!(
                "a key or customer has at most {most} caps"
            )));
        }
        Ok(())
    }

    fn find(&self, interval: CapInterval, model: Option<&str>) -> Option<&CountedCap> {
        self.0
            .iter()
            .find(|counted| counted.cap.is_of(interval, model))
    }

    /// Removes somebody's limit from a cap. The other one's stands then, and without one the cap is gone. A seller without a limit of his
    /// own removes the owner's.
    ///
    /// # Errors
    /// [`Refusal::NotApplicable`] if there is none, or an owner has none in it.
    pub(crate) fn clear(
        &mut self,
        interval: CapInterval,
        model: Option<&str>,
        by: CapMaker,
    ) -> Result<(), Refusal> {
        let Some(known) = self.find(interval, model) else {
            let of = model
                .map(|model| format!(" for {model}"))
                .unwrap_or_default();
            return Err(Refusal::NotApplicable(format!(
                "there is no cap of interval {interval}{of}"
            )));
        };
        let (limits, is_default) = (known.limits(), known.is_default());
        let left = match (by, limits.of(by)) {
            (CapMaker::Seller, Some(_)) if is_default => match limits.owner {
                Some(_) => limits.with(CapMaker::Owner, None),
                None => {
                    return Err(Refusal::NotApplicable(format!(
                        "the cap of {} is a default of catalog.toml; set another cap in its place",
                        known.cap
                    )));
                }
            },
            (_, Some(_)) => limits.with(by, None),
            (CapMaker::Seller, None) => CapLimits::default(),
            (CapMaker::Owner, None) => {
                return Err(Refusal::NotApplicable(format!(
                    "the seller set the cap of {}; an owner can lower it, and only the seller can remove it",
                    known.cap
                )));
            }
        };
        self.0
            .retain_mut(|counted| !counted.cap.is_of(interval, model) || counted.limit_to(left));
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Caps in the reference store: every window ever counted, in plain arithmetic.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::State;
use super::operations::{Done, amount, limit, not_applicable, picos};
use super::sources::HeldParts;
use crate::{
    Amount, Asker, Cap, CapInterval, CapMaker, CapReached, CapWindow, Caps, CountedCap, KeyId,
    Refusal, Scope, UtcDay, clock,
};

/// The place of the owner's limit.
const OWNER: usize = 1;

/// A cap, and what its windows counted: charged and held.
#[derive(Debug, Clone)]
pub(super) struct Capped {
    /// With the limit that stands.
    cap: Cap,
    /// The limits that seller and owner set.
    limits: [Option<Amount>; 2],
    /// The number of the default that is the seller's limit.
    default_act: Option<i64>,
    windows: BTreeMap<UtcDay, (i128, i128)>,
    /// How many per cent of the limit were told to be charged in a window.
    told: BTreeMap<UtcDay, u8>,
}

impl Capped {
    /// Limit, charged and held of the window of a day. Only the two newest windows still have room.
    pub(super) fn counts(&self, day: UtcDay) -> (i128, i128, i128) {
        let since = self.cap.interval.window(day);
        let (charged, held) = self.windows.get(&since).copied().unwrap_or_default();
        let newer = self
            .windows
            .range(since..)
            .filter(|(known, _)| **known > since);
        let is_old = newer.count() > usize::from(self.windows.contains_key(&since));
        let limit = if is_old { 0 } else { picos(self.cap.limit) };
        (limit, charged, held)
    }

    fn made_by(&self) -> CapMaker {
        let [seller, _] = self.limits;
        if seller == Some(self.cap.limit) {
            CapMaker::Seller
        } else {
            CapMaker::Owner
        }
    }

    /// The lesser limit stands; false if there is none. What is less of a higher one can be told again.
    fn stand(&mut self) -> bool {
        let Some(limit) = self.limits.into_iter().flatten().min() else {
            return false;
        };
        self.cap.limit = limit;
        for (since, told) in &mut self.told {
            let (charged, _) = self.windows.get(since).copied().unwrap_or_default();
            *told = (*told).min(level(charged, picos(limit)));
        }
        true
    }

    /// What is left of it without the seller's limit; false if that is nothing.
    fn without_seller(&mut self) -> bool {
        self.limits[0] = None;
        self.stand()
    }

    pub(super) fn room(&self, day: UtcDay) -> i128 {
        let (limit, charged, held) = self.counts(day);
        limit.saturating_sub(charged).saturating_sub(held).max(0)
    }

    fn shown(&self) -> Done<CountedCap> {
        let window = |(since, (charged, held)): (&UtcDay, &(i128, i128))| {
            Ok(CapWindow {
                since: *since,
                charged: amount(*charged)?,
                held: amount(*held)?,
                told: self.told.get(since).copied().unwrap_or_default(),
            })
        };
        let mut newest = self.windows.iter().rev().map(window);
        let none = || not_applicable("a cap counts at least one window");
        let [seller, owner] = self.limits;
        let made_by = self.made_by();
        let beside = match made_by {
            CapMaker::Seller => owner,
            CapMaker::Owner => seller,
        };
        Ok(CountedCap {
            cap: self.cap.clone(),
            made_by,
            beside,
            default_act: self.default_act,
            current: newest.next().ok_or_else(none)??,
            previous: newest.next().transpose()?,
        })
    }
}

/// The share of a limit that is worth telling, in per cent.
fn level(charged: i128, limit: i128) -> u8 {
    let shares = [100, 80].into_iter();
    let mut reached = shares
        .filter(|share| charged.saturating_mul(100) >= limit.saturating_mul(i128::from(*share)));
    reached.next().unwrap_or_default()
}

impl State {
    /// The cap that binds a key with least room for a slug.
    pub(super) fn tightest(&self, key: KeyId, slug: &str, day: UtcDay) -> Option<(Scope, &Capped)> {
        let scopes = self.scopes(key).into_iter();
        let caps = scopes.flat_map(|of| {
            let caps = self.caps.get(&of).into_iter().flatten();
            caps.map(move |capped| (of, capped))
        });
        caps.filter(|(_, capped)| capped.cap.model.as_ref().is_none_or(|model| model == slug))
            .min_by_key(|(_, capped)| capped.room(day))
    }

    /// Whose caps bound a key: its own, those of the owner key that made it, and those of its customer.
    pub(super) fn scopes(&self, key: KeyId) -> Vec<Scope> {
        let mut all = vec![Scope::Key(key)];
        if let Some(own) = self.keys.get(&key) {
            all.extend(own.counts_in.map(Scope::Key));
            all.push(Scope::Customer(own.belongs_to));
        }
        all
    }

    /// Whether anything bounds a key.
    pub(super) fn has_caps(&self, key: KeyId) -> bool {
        let scopes = self.scopes(key).into_iter();
        scopes
            .filter_map(|of| self.caps.get(&of))
            .any(|caps| !caps.is_empty())
    }

    /// What caps leave of an amount.
    pub(super) fn room(&self, key: KeyId, slug: &str, day: UtcDay, free: i128) -> i128 {
        let tightest = self.tightest(key, slug, day);
        tightest.map_or(free, |(_, capped)| capped.room(day).min(free))
    }

    /// What caps leave of a balance, whatever is held.
    pub(super) fn remaining(&self, key: KeyId, slug: &str, has: &HeldParts) -> Done<Amount> {
        let day = UtcDay::of(clock::now());
        let mut left = self.chargeable(self.key(key)?.belongs_to, slug, has);
        for scope in self.scopes(key) {
            let caps = self.caps.get(&scope).into_iter().flatten();
            for capped in
                caps.filter(|capped| capped.cap.model.as_ref().is_none_or(|model| model == slug))
            {
                let (limit, charged, _) = capped.counts(day);
                left = left.min(limit.saturating_sub(charged).max(0));
            }
        }
        amount(left)
    }

    /// What is said of `needed` more than a cap has room for.
    pub(super) fn cap_reached(
        &self,
        scope: Scope,
        capped: &Capped,
        day: UtcDay,
        needed: i128,
    ) -> Done<Refusal> {
        let (_, spent, held) = capped.counts(day);
        let next = capped.cap.interval.next(day);
        Ok(Refusal::CapReached(Box::new(CapReached {
            scope,
            cap: capped.cap.clone(),
            made_by: capped.made_by(),
            needed: amount(needed)?,
            room: amount(capped.room(day))?,
            spent: amount(spent)?,
            held: amount(held)?,
            resets_at: next.map(UtcDay::begin),
            plan: None,
        })))
    }

    /// Adds to what the windows of a day charged and hold.
    pub(super) fn count(
        &mut self,
        key: KeyId,
        slug: &str,
        day: UtcDay,
        charged: i128,
        held: i128,
    ) -> Done<()> {
        for of in self.scopes(key) {
            for capped in self.caps.entry(of).or_default() {
                if capped.cap.model.as_ref().is_none_or(|model| model == slug) {
                    let since = capped.cap.interval.window(day);
                    let newest = capped.windows.keys().next_back();
                    // A window that was over when the cap was set counts nothing.
                    if newest.is_some_and(|newest| since < *newest)
                        && !capped.windows.contains_key(&since)
                    {
                        continue;
                    }
                    let counts = capped.windows.entry(since).or_default();
                    counts.0 = counts.0.saturating_add(charged).max(0);
                    counts.1 = counts.1.saturating_add(held).max(0);
                }
            }
            self.show_caps(of)?;
        }
        Ok(())
    }

    /// What is told of the caps that bound a request of a day: each level once, in the two newest windows.
    pub(super) fn reached(
        &mut self,
        key: KeyId,
        slug: &str,
        day: UtcDay,
    ) -> Done<Vec<(Scope, Value)>> {
        let mut reached = Vec::new();
        for of in self.scopes(key) {
            for capped in self.caps.entry(of).or_default() {
                let bounds = capped.cap.model.as_ref().is_none_or(|model| model == slug);
                let (limit, charged, _) = capped.counts(day);
                let since = capped.cap.interval.window(day);
                let level = level(charged, limit);
                let told = capped.told.entry(since).or_default();
                if !bounds || limit == 0 || level <= *told {
                    continue;
                }
                *told = level;
                let cap = &capped.cap;
                let data = json!({
                    "scope": null, "interval": cap.interval.to_string(), "model": cap.model, "limit": cap.limit,
                    "charged": amount(charged)?, "percent": level, "since": since.begin(),
                    "resets_at": cap.interval.next(since).map(UtcDay::begin),
                });
                reached.push((of, data));
            }
            self.show_caps(of)?;
        }
        Ok(reached)
    }

    /// Puts the caps into the key or customer, as every store shows them.
    fn show_caps(&mut self, of: Scope) -> Done<()> {
        let shown: Done<Vec<CountedCap>> = self
            .caps
            .get(&of)
            .into_iter()
            .flatten()
            .map(Capped::shown)
            .collect();
        let shown = Caps::of(shown?);
        match of {
            Scope::Key(key) => {
                if let Some(key) = self.keys.get_mut(&key) {
                    key.caps = shown;
                }
            }
            Scope::Customer(customer) => {
                if let Some(customer) = self.customers.get_mut(&customer) {
                    customer.caps = shown;
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_limit(cap: &Cap) -> Done<()> {
        if !cap.limit.is_positive() {
            return Err(limit(
                "a cap must be more than zero; to stop a key, block it, and to stop a customer, suspend it",
            ));
        }
        if cap.limit > Amount::MAX_LIFETIME_CREDIT {
            let most = Amount::MAX_LIFETIME_CREDIT;
            return Err(Refusal::Limit(format!("a cap is at most {most}")));
        }
        Ok(())
    }

    pub(super) fn set_cap(&mut self, of: Scope, cap: &Cap, today: UtcDay) -> Done<()> {
        Self::check_limit(cap)?;
        let by = self.cap_maker();
        let known = self.caps.entry(of).or_default();
        let same = |capped: &&mut Capped| {
            (capped.cap.interval, &capped.cap.model) == (cap.interval, &cap.model)
        };
        let found = known.iter_mut().find(same).map(|capped| capped.limits);
        if let Some([Some(seller), _]) = found.filter(|_| by == OWNER)
            && cap.limit > seller
        {
            let limit_of = Cap {
                limit: seller,
                ..cap.clone()
            };
            return Err(limit(&format!(
                "the seller set a cap of {limit_of}, which an owner can only lower"
            )));
        }
        let sets = |capped: &Capped| {
            let is_own = by == OWNER || capped.default_act.is_none();
            is_own && capped.limits.get(by).is_some_and(Option::is_some)
        };
        let has_own = known
            .iter_mut()
            .find(same)
            .is_some_and(|capped| sets(capped));
        let own = known.iter().filter(|capped| sets(capped));
        if !has_own && own.count() >= 8 {
            return Err(limit("a key or customer has at most 8 caps"));
        }
        for capped in known.iter().filter(|capped| capped.cap.model == cap.model) {
            // A default of the house is nobody's choice for this key or customer.
            let seller = capped.limits[0].filter(|_| capped.default_act.is_none());
            let owner = capped.limits[1].filter(|_| by == OWNER);
            let Some(least) = seller.into_iter().chain(owner).min() else {
                continue;
            };
            let other = Cap {
                limit: least,
                ..capped.cap.clone()
            };
            let crossed = match other.interval.cmp(&cap.interval) {
                std::cmp::Ordering::Less => other.limit > cap.limit,
                std::cmp::Ordering::Equal => false,
                std::cmp::Ordering::Greater => other.limit < cap.limit,
            };
            if crossed {
                return Err(limit(&format!(
                    "a cap of {cap} does not fit beside the cap of {other}: the shorter time would have the higher limit"
                )));
            }
        }
        if by != OWNER {
            // Who sets one of his own has no defaults any more.
            known.retain_mut(|capped| {
                capped.default_act.take().is_none() || capped.without_seller()
            });
        }
        if let Some(capped) = known.iter_mut().find(same) {
            if let Some(own) = capped.limits.get_mut(by) {
                *own = Some(cap.limit);
            }
            capped.stand();
            return self.show_caps(of);
        }
        let mut limits = [None, None];
        if let Some(own) = limits.get_mut(by) {
            *own = Some(cap.limit);
        }
        let begun = Capped {
            limits,
            ..self.begun(of, cap, today)
        };
        self.caps.entry(of).or_default().push(begun);
        self.show_caps(of)
    }

    /// A cap that begins today and counts what its window has seen.
    fn begun(&self, of: Scope, cap: &Cap, today: UtcDay) -> Capped {
        let since = cap.interval.window(today);
        let applies = |slug: &str| cap.model.as_deref().is_none_or(|model| model == slug);
        let counts =
            |day: UtcDay| cap.interval == CapInterval::Total || cap.interval.window(day) >= since;
        let charged: i128 = self
            .entries
            .iter()
            .filter(|entry| entry.key.is_some_and(|key| self.scopes(key).contains(&of)))
            .filter(|entry| counts(UtcDay::of(entry.at)))
            .filter(|entry| entry.bill.as_ref().is_some_and(|bill| applies(&bill.slug)))
            .map(|entry| picos(entry.amount).saturating_neg())
            .sum();
        let held: i128 = self
            .holds
            .values()
            .filter(|held| self.scopes(held.open.key).contains(&of))
            .filter(|held| counts(held.day) && applies(&held.open.slug))
            .map(|held| picos(held.open.amount))
            .sum();
        Capped {
            cap: cap.clone(),
            limits: [Some(cap.limit), None],
            default_act: None,
            windows: BTreeMap::from([(since, (charged, held))]),
            told: BTreeMap::new(),
        }
    }

    /// The caps of the house bind whoever the seller set none for; the numbers tell which is which.
    pub(super) fn follow_caps(
        &mut self,
        of: Scope,
        house: &[(Cap, i64)],
        today: UtcDay,
    ) -> Done<()> {
        let known = self.caps.entry(of).or_default();
        let is_set = |capped: &Capped| capped.default_act.is_none() && capped.limits[0].is_some();
        let house = if known.iter().any(is_set) { &[] } else { house };
        let is_it = |capped: &Capped, cap: &Cap| {
            (capped.cap.interval, &capped.cap.model) == (cap.interval, &cap.model)
        };
        known.retain_mut(|capped| {
            let Some(number) = capped.default_act else {
                return true;
            };
            let mut standing = house.iter();
            if standing.any(|(cap, since)| number == *since && is_it(capped, cap)) {
                return true;
            }
            capped.default_act = None;
            capped.without_seller()
        });
        for (cap, number) in house {
            let known = self.caps.entry(of).or_default();
            match known.iter_mut().find(|capped| is_it(capped, cap)) {
                Some(capped) => {
                    (capped.limits[0], capped.default_act) = (Some(cap.limit), Some(*number));
                    capped.stand();
                }
                None => {
                    let begun = Capped {
                        default_act: Some(*number),
                        ..self.begun(of, cap, today)
                    };
                    self.caps.entry(of).or_default().push(begun);
                }
            }
        }
        self.show_caps(of)
    }

    pub(super) fn clear_cap(
        &mut self,
        of: Scope,
        interval: CapInterval,
        model: Option<&str>,
    ) -> Done<()> {
        let by = self.cap_maker();
        let known = self.caps.entry(of).or_default();
        let is_it = |capped: &Capped| {
            capped.cap.interval == interval && capped.cap.model.as_deref() == model
        };
        let Some(capped) = known.iter_mut().find(|capped| is_it(capped)) else {
            let of = model
                .map(|model| format!(" for {model}"))
                .unwrap_or_default();
            return Err(not_applicable(&format!(
                "there is no cap of interval {interval}{of}"
            )));
        };
        if let (0, Some(_), [_, None]) = (by, capped.default_act, capped.limits) {
            return Err(not_applicable(&format!(
                "the cap of {} is a default of catalog.toml; set another cap in its place",
                capped.cap
            )));
        }
        capped.limits = match (by, capped.limits) {
            (0, [seller, Some(_)]) if capped.default_act.is_some() => [seller, None],
            (OWNER, [_, None]) => {
                return Err(not_applicable(&format!(
                    "the seller set the cap of {}; an owner can lower it, and only the seller can remove it",
                    capped.cap
                )));
            }
            (OWNER, [seller, _]) => [seller, None],
            (_, [Some(_), owner]) => [None, owner],
            (_, [None, _]) => [None, None],
        };
        known.retain_mut(|capped| !is_it(capped) || capped.stand());
        self.fit_house(of)
    }

    /// Who sets and clears caps: seller or owner, by the place of their limits.
    fn cap_maker(&self) -> usize {
        match self.asked_by {
            Asker::Owner(_) => OWNER,
            Asker::House | Asker::Token(_) => 0,
        }
    }
}

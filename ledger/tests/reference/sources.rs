//! Where money comes from and goes to in the reference store: the pool and grants, in the order of use, in plain arithmetic. What the
//! pool has follows from the entries.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::operations::{Done, amount, picos};
use super::{Held, State};
use crate::{
    Amount, Customer, CustomerId, Grant, GrantId, GrantKind, GrantRecord, GrantStatus, Grants,
    JournalEntry, MoneyPart, PlanWindow, Plans, Refusal, WindowId,
};

/// Where money may come from, and how much of it: what is free, and what the hold in question has. `None` is the pool.
#[derive(Debug)]
struct Source {
    grant: Option<GrantId>,
    free: i128,
    own: i128,
    has_ended: bool,
    is_period: bool,
}

/// What a hold has of each grant in picodollars, where the rest is the pool's; and the windows that it stores, of each period in the order of
/// its plan.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldParts {
    of: BTreeMap<GrantId, i128>,
    pub(super) windows: Vec<(GrantId, Vec<WindowId>)>,
}

impl HeldParts {
    /// Nothing yet, in these windows.
    pub(super) fn storing(windows: Vec<(GrantId, Vec<WindowId>)>) -> Self {
        let of = BTreeMap::new();
        Self { of, windows }
    }

    /// Nothing any more, in the windows of a charge.
    pub(super) fn ended(entry: &JournalEntry) -> Self {
        let of_part = |part: &MoneyPart| Some((part.grant?, part.windows.clone()));
        Self::storing(entry.parts.iter().filter_map(of_part).collect())
    }

    pub(super) fn stored(&self) -> Vec<WindowId> {
        let all = self.windows.iter();
        all.flat_map(|(_, own)| own.iter().copied()).collect()
    }
}

impl std::ops::Deref for HeldParts {
    type Target = BTreeMap<GrantId, i128>;

    fn deref(&self) -> &Self::Target {
        &self.of
    }
}

impl std::ops::DerefMut for HeldParts {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.of
    }
}

/// What an entry names, and the grants that were made with it.
pub(super) type Made = (Vec<MoneyPart>, Vec<GrantRecord>);

/// What was given back to grants that have ended.
pub(super) type Lost = Vec<(GrantId, i128)>;

pub(super) fn is_open(grant: &Grant) -> bool {
    matches!(grant.status, GrantStatus::Pending | GrantStatus::Active) || picos(grant.held) > 0
}

pub(super) fn has_ended(grant: &Grant) -> bool {
    matches!(grant.status, GrantStatus::Expired | GrantStatus::Voided)
}

fn room(window: &PlanWindow) -> i128 {
    let used = picos(window.charged).saturating_add(picos(window.held));
    picos(window.bound).saturating_sub(used)
}

pub(super) fn free(grant: &Grant) -> i128 {
    picos(grant.remaining).saturating_sub(picos(grant.held))
}

/// Entries whose money did not come from the pool alone name where it came from.
pub(super) fn named(parts: Vec<(Option<GrantId>, i128)>) -> Done<Vec<MoneyPart>> {
    if parts.iter().all(|(grant, _)| grant.is_none()) {
        return Ok(Vec::new());
    }
    let part = |(grant, picos)| Ok(MoneyPart::of(grant, amount(picos)?));
    parts.into_iter().map(part).collect()
}

impl State {
    pub(super) fn of(&self, customer: CustomerId) -> impl Iterator<Item = &Grant> {
        let all = self.grants.values().map(|known| &known.grant);
        all.filter(move |grant| grant.customer == customer)
    }

    pub(super) fn edit(&mut self, id: GrantId, edit: impl FnOnce(&mut Grant)) {
        let Some(known) = self.grants.get_mut(&id) else {
            return;
        };
        edit(&mut known.grant);
        let customer = known.grant.customer;
        self.show_grants(customer);
    }

    /// Whether a request for a slug may take from a grant; without a slug, requests for any model.
    fn may_take(&self, grant: &Grant, slug: &str) -> bool {
        let named = |models: &Vec<String>| slug.is_empty() || models.contains(&slug.to_owned());
        let is_for = grant.models.as_ref().is_none_or(named);
        let may_pay = match grant.kind {
            GrantKind::Plan => self.running_as(grant.id).is_some(),
            GrantKind::Paid | GrantKind::Promotional => !self.stops(grant.customer, slug),
        };
        grant.status == GrantStatus::Active && is_for && may_pay
    }

    /// Puts the grants and plans into their customer, as every store shows them.
    pub(super) fn show_grants(&mut self, customer: CustomerId) {
        let open = self.of(customer).filter(|grant| is_open(grant));
        let plans = Plans::of(
            self.subscriptions_of(customer).cloned().collect(),
            self.windows_of(customer).cloned().collect(),
        );
        let shown = Grants::of(open.cloned().collect()).and(plans);
        if let Some(found) = self.customers.get_mut(&customer) {
            found.grants = shown;
        }
    }

    pub(super) fn holds_of(&self, customer: CustomerId) -> impl Iterator<Item = &Held> {
        let is_of = move |held: &&Held| self.is_in(customer.into(), held.open.key);
        self.holds.values().filter(is_of)
    }

    /// What entries gave the pool, less what they took from it and what is held of it.
    pub(super) fn pool_free(&self, customer: CustomerId) -> i128 {
        let holds = self.holds_of(customer);
        let held =
            holds.map(|held| picos(held.open.amount).saturating_sub(held.parts.values().sum()));
        self.pool(customer).saturating_sub(held.sum())
    }

    fn pool(&self, customer: CustomerId) -> i128 {
        let of_pool = |entry: &JournalEntry| {
            let parts = entry.parts.iter().filter(|part| part.grant.is_none());
            match entry.parts.is_empty() {
                true => picos(entry.amount),
                false => parts.map(|part| picos(part.amount)).sum(),
            }
        };
        self.of_customer(customer).map(of_pool).sum()
    }

    /// What a request for a slug may take, and its hold has, first what is used first.
    fn sources(&self, customer: CustomerId, slug: &str, hold: (i128, &HeldParts)) -> Vec<Source> {
        let (size, parts) = hold;
        let own = |id: GrantId| parts.get(&id).copied().unwrap_or_default();
        let mut all: Vec<&Grant> = self.of(customer).collect();
        all.retain(|grant| self.may_take(grant, slug) || own(grant.id) > 0);
        // Everything of before the pool has a lower priority, or the same one and either an end or no price.
        all.sort_by_key(|grant| (grant.effective_at, grant.id));
        all.sort_by_key(|grant| match grant.kind {
            GrantKind::Promotional => 0,
            GrantKind::Paid => 1,
            GrantKind::Plan => 2,
        });
        all.sort_by_key(|grant| (Reverse(grant.expires_at.is_some()), grant.expires_at));
        all.sort_by_key(|grant| grant.priority);
        let is_before_pool = |grant: &&Grant| {
            let is_free_of_charge = grant.kind == GrantKind::Promotional;
            grant.priority < 50
                || grant.priority == 50 && (grant.expires_at.is_some() || is_free_of_charge)
        };
        let place = all.iter().filter(|grant| is_before_pool(grant)).count();
        let source = |grant: &Grant| Source {
            grant: Some(grant.id),
            free: if self.may_take(grant, slug) {
                free(grant)
            } else {
                0
            },
            own: own(grant.id),
            has_ended: has_ended(grant),
            is_period: grant.kind == GrantKind::Plan,
        };
        let mut sources: Vec<Source> = all.into_iter().map(source).collect();
        let pool = Source {
            grant: None,
            free: match self.stops(customer, slug) {
                true => 0,
                false => self.pool_free(customer),
            },
            own: size.saturating_sub(parts.values().sum()),
            has_ended: false,
            is_period: false,
        };
        sources.insert(place, pool);
        sources
    }

    /// What a request for a slug with these windows may take: nothing while something is owed.
    pub(super) fn takable(&self, customer: CustomerId, slug: &str, has: &HeldParts) -> i128 {
        let owes = |found: &Customer| found.claim.is_positive();
        if self.customers.get(&customer).is_some_and(owes) {
            return 0;
        }
        let sources = self.sources(customer, slug, (0, &HeldParts::default()));
        let others = sources.iter().filter(|source| !source.is_period);
        let others: i128 = others.map(|source| source.free).sum();
        others.saturating_add(self.of_periods(customer, (slug, has), free, room))
    }

    /// What requests for a slug with these windows may be charged, held or not.
    pub(super) fn chargeable(&self, customer: CustomerId, slug: &str, has: &HeldParts) -> i128 {
        let remaining = |grant: &Grant| picos(grant.remaining);
        let left = |window: &PlanWindow| picos(window.bound).saturating_sub(picos(window.charged));
        let live = self
            .of(customer)
            .filter(|grant| grant.kind != GrantKind::Plan && self.may_take(grant, slug));
        let others: i128 = live.map(remaining).sum();
        let pool = match self.stops(customer, slug) {
            true => 0,
            false => self.pool(customer),
        };
        let of_periods = self.of_periods(customer, (slug, has), remaining, left);
        others.saturating_add(pool).saturating_add(of_periods)
    }

    /// What periods leave within their windows, which some of them share.
    fn of_periods(
        &self,
        customer: CustomerId,
        (slug, has): (&str, &HeldParts),
        of_grant: fn(&Grant) -> i128,
        of_window: fn(&PlanWindow) -> i128,
    ) -> i128 {
        let (mut all, mut taken) = (0_i128, BTreeMap::<WindowId, i128>::new());
        let periods = self
            .of(customer)
            .filter(|grant| grant.kind == GrantKind::Plan);
        for grant in periods.filter(|grant| self.may_take(grant, slug)) {
            let left = self.window_room(grant.id, has, |window| {
                let taken = taken.get(&window.id).copied().unwrap_or_default();
                of_window(window).saturating_sub(taken)
            });
            let left = left.min(of_grant(grant));
            for window in self.counts_in(
                grant.id,
                &HeldParts::storing(vec![(GrantId::from_random(0), has.stored())]),
            ) {
                let of_it = taken.entry(window).or_default();
                *of_it = of_it.saturating_add(left);
            }
            all = all.saturating_add(left);
        }
        all
    }

    /// What is free of a source as it is now.
    fn free_now(&self, source: &Source, parts: &HeldParts) -> i128 {
        let id = source.grant.filter(|_| source.is_period && source.free > 0);
        let Some(id) = id else {
            return source.free;
        };
        self.window_room(id, parts, room).min(source.free)
    }

    /// What was paid and is free.
    pub(super) fn paid_free(&self, customer: CustomerId) -> i128 {
        let paid = self
            .of(customer)
            .filter(|grant| grant.status == GrantStatus::Active && grant.kind == GrantKind::Paid);
        let paid: i128 = paid.map(free).sum();
        paid.saturating_add(self.pool_free(customer))
    }

    /// Refuses to take more from the pool than is free of it.
    pub(super) fn check_pool(&self, customer: CustomerId, taken: Amount) -> Done<()> {
        let free = self.pool_free(customer);
        if picos(taken) <= free {
            return Ok(());
        }
        Err(Refusal::Insufficient {
            needed: taken,
            available: amount(free)?,
            held: self.customer(customer)?.account.held,
        })
    }

    /// Holds more for a request, first what is used last. Returns all that it has of grants.
    pub(super) fn take(
        &mut self,
        customer: CustomerId,
        slug: &str,
        (now, parts): (i128, &HeldParts),
        more: i128,
    ) -> Done<HeldParts> {
        let (mut parts, mut left) = (parts.clone(), more);
        for source in self
            .sources(customer, slug, (now, &parts))
            .into_iter()
            .rev()
        {
            let taken = self.free_now(&source, &parts).min(left).max(0);
            left = left.saturating_sub(taken);
            if let (Some(id), true) = (source.grant, taken > 0) {
                let windows = self.counts_in(id, &parts);
                self.count_in(&windows, taken, 0)?;
                if !windows.is_empty() && parts.windows.iter().all(|(of, _)| *of != id) {
                    parts.windows.push((id, windows));
                }
                let own = parts.entry(id).or_default();
                *own = own.saturating_add(taken);
                let known = self.grants.get(&id).map(|known| picos(known.grant.held));
                let held = amount(known.unwrap_or_default().saturating_add(taken))?;
                self.edit(id, |grant| grant.held = held);
            }
        }
        Ok(parts)
    }

    /// Gives back some of what a request holds: first what is used first, and last what has ended.
    pub(super) fn give_back(
        &mut self,
        customer: CustomerId,
        slug: &str,
        (now, parts): (i128, &HeldParts),
        back: i128,
    ) -> Done<(HeldParts, Lost)> {
        let (mut parts, mut left, mut lost) = (parts.clone(), back, Lost::new());
        let mut sources = self.sources(customer, slug, (now, &parts));
        sources.sort_by_key(|source| source.has_ended);
        for source in sources {
            let given = source.own.min(left);
            left = left.saturating_sub(given);
            let Some(id) = source.grant.filter(|_| given > 0) else {
                continue;
            };
            parts.insert(id, source.own.saturating_sub(given));
            let windows = self.counts_in(id, &parts);
            self.count_in(&windows, given.saturating_neg(), 0)?;
            self.settle_part(id, given, 0)?;
            if source.has_ended {
                lost.push((id, given));
            }
        }
        parts.retain(|_, own| *own > 0);
        Ok((parts, lost))
    }

    /// Lets go of what a request holds of a grant, and takes from it what it is charged.
    fn settle_part(&mut self, id: GrantId, own: i128, charged: i128) -> Done<()> {
        let Some(known) = self.grants.get(&id).map(|known| known.grant.clone()) else {
            return Ok(());
        };
        let held = amount(picos(known.held).saturating_sub(own))?;
        let left = if has_ended(&known) {
            own.max(charged)
        } else {
            charged
        };
        let remaining = amount(picos(known.remaining).saturating_sub(left))?;
        let is_used_up = known.status == GrantStatus::Active
            && known.kind != GrantKind::Plan
            && picos(remaining) == 0;
        self.edit(id, |grant| {
            (grant.held, grant.remaining) = (held, remaining);
            if is_used_up {
                grant.status = GrantStatus::Exhausted;
            }
        });
        Ok(())
    }

    /// Ends a hold with a charge. Returns what its entry names, what is nobody's any more, and what is worth telling of plans.
    pub(super) fn charge(
        &mut self,
        customer: CustomerId,
        held: &Held,
        charge: i128,
    ) -> Done<(Vec<MoneyPart>, Lost, Vec<serde_json::Value>)> {
        let hold = (picos(held.open.amount), &held.parts);
        let (mut left, mut paid, mut lost) = (charge, Vec::new(), Lost::new());
        let mut news = Vec::new();
        for source in self.sources(customer, &held.open.slug, hold) {
            let free = self.free_now(&source, &held.parts);
            let taken = free.saturating_add(source.own).min(left);
            left = left.saturating_sub(taken);
            let mut part = MoneyPart::of(source.grant, amount(taken.saturating_neg())?);
            if let Some(id) = source.grant {
                part.windows = self.counts_in(id, &held.parts);
                self.count_in(&part.windows, source.own.saturating_neg(), taken)?;
                self.settle_part(id, source.own, taken)?;
                let back = source.own.saturating_sub(taken);
                if source.has_ended && back > 0 {
                    lost.push((id, back));
                }
            }
            if taken > 0 {
                news.extend(self.low_plans(&part));
                paid.push(part);
            }
        }
        if paid.iter().all(|part| part.grant.is_none()) {
            paid.clear();
        }
        Ok((paid, lost, news))
    }

    /// Takes from the pool, then from other paid grants what is used last, and says what an entry names.
    pub(super) fn take_paid(&mut self, customer: CustomerId, taken: i128) -> Done<Vec<MoneyPart>> {
        let of_pool = self.pool_free(customer).min(taken);
        let mut left = taken.saturating_sub(of_pool);
        let mut parts = Vec::from([(None, of_pool.saturating_neg())]);
        parts.retain(|_| of_pool > 0);
        let mut paid: Vec<Grant> = self.of(customer).cloned().collect();
        paid.retain(|grant| grant.status == GrantStatus::Active && grant.kind == GrantKind::Paid);
        // All of them have an end.
        paid.sort_by_key(|grant| {
            (
                grant.priority,
                grant.expires_at,
                grant.effective_at,
                grant.id,
            )
        });
        for grant in paid.iter().rev() {
            let taken = free(grant).min(left);
            left = left.saturating_sub(taken);
            if taken > 0 {
                self.settle_part(grant.id, 0, taken)?;
                parts.push((Some(grant.id), taken.saturating_neg()));
            }
        }
        named(parts)
    }
}

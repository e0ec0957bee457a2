//! Where money comes from and goes to in the reference store: the pool and grants, in the order of use, in plain arithmetic. What the
//! pool has follows from the entries.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::operations::{Done, amount, picos};
use super::{Held, State};
use crate::{
    Amount, Customer, CustomerId, Grant, GrantId, GrantKind, GrantRecord, GrantStatus, Grants,
    JournalEntry, MoneyPart, Refusal,
};

/// Where money may come from, and how much of it: what is free, and what the hold in question has. `None` is the pool.
#[derive(Debug)]
struct Source {
    grant: Option<GrantId>,
    free: i128,
    own: i128,
    has_ended: bool,
}

/// Picodollars of each grant; what is not here is the pool's.
pub(super) type HeldParts = BTreeMap<GrantId, i128>;

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

pub(super) fn free(grant: &Grant) -> i128 {
    picos(grant.remaining).saturating_sub(picos(grant.held))
}

fn is_for(grant: &Grant, slug: &str) -> bool {
    let named = |models: &Vec<String>| models.contains(&slug.to_owned());
    grant.status == GrantStatus::Active && grant.models.as_ref().is_none_or(named)
}

/// Entries whose money did not come from the pool alone name where it came from.
pub(super) fn named(parts: Vec<(Option<GrantId>, i128)>) -> Done<Vec<MoneyPart>> {
    if parts.iter().all(|(grant, _)| grant.is_none()) {
        return Ok(Vec::new());
    }
    let part = |(grant, picos)| {
        Ok(MoneyPart {
            grant,
            amount: amount(picos)?,
        })
    };
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

    /// Puts the grants into their customer, as every store shows them.
    pub(super) fn show_grants(&mut self, customer: CustomerId) {
        let open = self.of(customer).filter(|grant| is_open(grant));
        let shown = Grants::of(open.cloned().collect());
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
        all.retain(|grant| is_for(grant, slug) || own(grant.id) > 0);
        // Everything of before the pool has a lower priority, or the same one and either an end or no price.
        all.sort_by_key(|grant| (grant.effective_at, grant.id));
        all.sort_by_key(|grant| grant.kind == GrantKind::Paid);
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
            free: if is_for(grant, slug) { free(grant) } else { 0 },
            own: own(grant.id),
            has_ended: has_ended(grant),
        };
        let mut sources: Vec<Source> = all.into_iter().map(source).collect();
        let pool = Source {
            grant: None,
            free: self.pool_free(customer),
            own: size.saturating_sub(parts.values().sum()),
            has_ended: false,
        };
        sources.insert(place, pool);
        sources
    }

    /// What a request for a slug may take: nothing while something is owed.
    pub(super) fn takable(&self, customer: CustomerId, slug: &str) -> i128 {
        let owes = |found: &Customer| found.claim.is_positive();
        if self.customers.get(&customer).is_some_and(owes) {
            return 0;
        }
        let sources = self.sources(customer, slug, (0, &HeldParts::new()));
        sources.iter().map(|source| source.free).sum()
    }

    /// What requests for a slug may be charged, held or not.
    pub(super) fn chargeable(&self, customer: CustomerId, slug: &str) -> i128 {
        let live = self.of(customer).filter(|grant| is_for(grant, slug));
        let left: i128 = live.map(|grant| picos(grant.remaining)).sum();
        left.saturating_add(self.pool(customer))
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
            let taken = source.free.min(left).max(0);
            left = left.saturating_sub(taken);
            if let (Some(id), true) = (source.grant, taken > 0) {
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
        let is_used_up = known.status == GrantStatus::Active && picos(remaining) == 0;
        self.edit(id, |grant| {
            (grant.held, grant.remaining) = (held, remaining);
            if is_used_up {
                grant.status = GrantStatus::Exhausted;
            }
        });
        Ok(())
    }

    /// Ends a hold with a charge. Returns what its entry names, and what is nobody's any more.
    pub(super) fn charge(
        &mut self,
        customer: CustomerId,
        held: &Held,
        charge: i128,
    ) -> Done<(Vec<MoneyPart>, Lost)> {
        let hold = (picos(held.open.amount), &held.parts);
        let (mut left, mut paid, mut lost) = (charge, Vec::new(), Lost::new());
        for source in self.sources(customer, &held.open.slug, hold) {
            let taken = source.free.saturating_add(source.own).min(left);
            left = left.saturating_sub(taken);
            if taken > 0 {
                paid.push((source.grant, taken.saturating_neg()));
            }
            if let Some(id) = source.grant {
                self.settle_part(id, source.own, taken)?;
                let back = source.own.saturating_sub(taken);
                if source.has_ended && back > 0 {
                    lost.push((id, back));
                }
            }
        }
        Ok((named(paid)?, lost))
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

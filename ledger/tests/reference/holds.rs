//! Holds in the reference store: open, move, finish, recover.

use super::operations::{Done, amount, blank, limit, picos};
use super::sources::{HeldParts, Lost};
use super::{Held, State};
use crate::value::tries::UNMETERED;
use crate::{
    Account, Amount, Bill, EndReason, EndedHold, EntryKind, Evidence, Finish, HoldMove, HoldWay,
    JournalEntry, KeyId, NewHold, NewSize, OpenHold, Owed, Recovered, Refusal, Timestamp, UtcDay,
    clock,
};

/// The first way that makes a size, and the limit with which it does.
fn made(ways: &[HoldWay], size: Amount) -> Option<(usize, u64)> {
    ways.iter().enumerate().find_map(|(at, way)| {
        let beyond = picos(size).saturating_sub(picos(way.fixed));
        let limit = if picos(way.token) == 0 {
            (beyond == 0).then_some(way.most)
        } else {
            (0..=way.most)
                .find(|limit| i128::from(*limit).saturating_mul(picos(way.token)) == beyond)
        };
        Some((at, limit?))
    })
}

impl State {
    pub(super) fn open(&mut self, new: &NewHold) -> Done<crate::Held> {
        let today = UtcDay::of(clock::now());
        if let Some(Held {
            open, opened, day, ..
        }) = self.holds.get(&new.request)
        {
            let granted = made(&new.ways, *opened);
            let same = open.key == new.key
                && granted.is_some()
                && open.slug == new.slug
                && open.family == new.family
                && open.at == new.at;
            return if same {
                let parts = self.holds.get(&new.request).map(|held| held.parts.clone());
                let parts = parts.unwrap_or_default();
                let held = self.now_held(new.key, (&new.slug, *day), (*opened, &parts))?;
                Ok(crate::Held { granted, ..held })
            } else {
                Err(Refusal::OperationUsed(new.request))
            };
        }
        if self.entry(new.request).is_some() {
            return Err(Refusal::OperationUsed(new.request));
        }
        if self.key(new.key)?.belongs_to != new.customer {
            return Err(Refusal::NoSuchKey(new.key));
        }
        self.active(new.key, new.at)?;
        self.settle_grants(new.customer)?;
        let before = self.windows.clone();
        let none = self.begin_windows(new.customer, &new.slug, clock::now());
        let taken = self
            .chosen(new.key, (&new.slug, today), (0, &none), &new.ways)
            .and_then(|(size, granted)| {
                let (parts, _) = self.resize(new.key, (&new.slug, today), (0, &none), size)?;
                Ok((size, granted, parts))
            });
        if taken.is_err() {
            self.windows = before;
            self.show_grants(new.customer);
        }
        let (size, granted, parts) = taken?;
        let open = OpenHold {
            request: new.request,
            key: new.key,
            amount: amount(size)?,
            used: Amount::ZERO,
            slug: new.slug.clone(),
            family: new.family.clone(),
            at: new.at,
            epoch: self.epoch,
        };
        let held = Held {
            open,
            opened: amount(size)?,
            moves: 0,
            day: today,
            checkpoint: None,
            parts: parts.clone(),
        };
        self.holds.insert(new.request, held);
        let held = self.now_held(new.key, (&new.slug, today), (amount(size)?, &parts))?;
        Ok(crate::Held {
            granted: Some(granted),
            ..held
        })
    }

    /// What is held, and whether a cap binds.
    fn now_held(
        &self,
        key: KeyId,
        (slug, day): (&str, UtcDay),
        (size, parts): (Amount, &HeldParts),
    ) -> Done<crate::Held> {
        let free = self.takable(self.payer(key)?.id, slug, parts);
        let left = self.room(key, slug, day, free);
        Ok(crate::Held {
            amount: size,
            left: amount(left)?,
            by_cap: left < free,
            granted: None,
        })
    }

    /// The size that the first fitting way makes in place of `now`.
    fn chosen(
        &self,
        key: KeyId,
        (slug, day): (&str, UtcDay),
        (now, parts): (i128, &HeldParts),
        ways: &[HoldWay],
    ) -> Done<(i128, (usize, u64))> {
        let payer = self.payer(key)?;
        let (free, account) = (self.takable(payer.id, slug, parts), payer.account);
        let (mut left, mut held) = (free, picos(account.held));
        let tightest = self.tightest(key, slug, day);
        if let Some((_, capped)) = tightest
            && capped.room(day) < left
        {
            (left, held) = (capped.room(day), capped.counts(day).2);
        }
        let (left, alone) = (left.saturating_add(now), held <= now);
        let size = |way: &HoldWay, limit: i128| {
            picos(way.fixed).saturating_add(limit.saturating_mul(picos(way.token)))
        };
        let smallest = |way: &HoldWay| {
            let least = if alone { way.least } else { way.floor };
            size(way, i128::from(least.min(way.most)))
        };
        for (at, way) in ways.iter().enumerate() {
            let most = i128::from(way.most);
            // The largest limit that costs no more than this, found by trying.
            let largest = |money: i128| {
                (0..=most)
                    .rev()
                    .find(|limit| limit.saturating_mul(picos(way.token)) <= money)
            };
            let beyond = left.saturating_sub(picos(way.fixed));
            let part = if alone { 2 } else { 8 };
            let share =
                largest(beyond.div_euclid(part)).map(|share| share.max(i128::from(way.floor)));
            if let (Some(fits), Some(share)) = (largest(beyond), share)
                && left > 0
                && beyond >= 0
                && smallest(way) <= left
            {
                let limit = fits.min(share);
                let granted = (at, u64::try_from(limit).unwrap_or(0));
                return Ok((size(way, limit), granted));
            }
        }
        let needed = ways
            .iter()
            .map(smallest)
            .min()
            .unwrap_or(0)
            .saturating_sub(now);
        match tightest {
            Some((scope, capped)) if free > 0 && needed <= free => {
                Err(self.cap_reached(scope, capped, day, needed)?)
            }
            _ => Err(Refusal::Insufficient {
                needed: amount(needed)?,
                available: amount(free)?,
                held: account.held,
            }),
        }
    }

    fn resize(
        &mut self,
        key: KeyId,
        (slug, day): (&str, UtcDay),
        (now, parts): (i128, &HeldParts),
        size: i128,
    ) -> Done<(HeldParts, Lost)> {
        let customer = self.payer(key)?;
        let (customer, account) = (customer.id, customer.account);
        if size < 0 {
            return Err(limit("a hold must not be negative"));
        }
        let held = amount(picos(account.held).saturating_sub(now).saturating_add(size))?;
        self.count(key, slug, day, 0, size.saturating_sub(now))?;
        let more = size.saturating_sub(now);
        let done = if more < 0 {
            let back = more.saturating_neg();
            self.give_back(customer, slug, (now, parts), back)?
        } else {
            let parts = self.take(customer, slug, (now, parts), more)?;
            (parts, Lost::new())
        };
        self.set(customer, Account { held, ..account });
        Ok(done)
    }

    pub(super) fn move_to(&mut self, moved: &HoldMove) -> Done<crate::Held> {
        let request = moved.request;
        let held = self
            .holds
            .get(&request)
            .ok_or(Refusal::NoSuchHold(request))?;
        let (key, now, moves) = (held.open.key, held.open.amount, held.moves);
        let (slug, day, parts) = (held.open.slug.clone(), held.day, held.parts.clone());
        let customer = self.payer(key)?.id;
        self.settle_grants(customer)?;
        let active = self.active(key, moved.at).map(drop);
        let used = match &moved.checkpoint {
            Some(bill) => Some(bill.total()?),
            None => None,
        };
        if moved.number <= moves {
            let granted = match &moved.to {
                NewSize::Ways(ways) => made(ways, now),
                NewSize::Same | NewSize::Amount(_) => None,
            };
            let held = self.now_held(key, (&slug, day), (now, &parts))?;
            return Ok(crate::Held { granted, ..held });
        }
        let free = self.takable(customer, &slug, &parts);
        let mut granted = None;
        let size = match &moved.to {
            NewSize::Same => picos(now),
            NewSize::Ways(ways) => {
                active?;
                let (size, way) = self.chosen(key, (&slug, day), (picos(now), &parts), ways)?;
                granted = Some(way);
                size
            }
            NewSize::Amount(to) => {
                if *to > now {
                    active?;
                }
                let room = self.room(key, &slug, day, free).max(0);
                picos(*to).min(picos(now).saturating_add(room))
            }
        };
        // Whoever owes something has nothing but what is held.
        let owes = self.payer(key)?.claim.is_positive();
        let size = if owes { size.max(picos(now)) } else { size };
        let (parts, lost) = self.resize(key, (&slug, day), (picos(now), &parts), size)?;
        if let Some(held) = self.holds.get_mut(&request) {
            (held.open.amount, held.moves) = (amount(size)?, moved.number);
            held.parts = parts.clone();
            if let Some(used) = used {
                held.open.used = used;
                held.checkpoint.clone_from(&moved.checkpoint);
            }
        }
        if !lost.is_empty() {
            let cause = format!("farebox move {}", moved.number);
            let cause = request.derived(cause.as_bytes());
            self.lose(customer, cause, lost)?;
            self.tell_of_balance(customer, cause)?;
        }
        let held = self.now_held(key, (&slug, day), (amount(size)?, &parts))?;
        Ok(crate::Held { granted, ..held })
    }

    pub(super) fn finish(&mut self, finish: &Finish) -> Done<EndedHold> {
        let request = finish.request;
        if let Some(held) = self.holds.get(&request) {
            let held = held.clone();
            return self.end(&held, finish.clone());
        }
        let entry = self.entry(request).ok_or(Refusal::NoSuchHold(request))?;
        let bill = entry.bill.as_ref().ok_or(Refusal::NoSuchHold(request))?;
        let key = entry.key.ok_or(Refusal::NoSuchHold(request))?;
        Ok(EndedHold {
            charge: amount(picos(entry.amount).saturating_neg())?,
            loss: bill.loss,
            remaining: self.remaining(key, &bill.slug, &HeldParts::ended(entry))?,
        })
    }

    /// A bill that is refused for its size is replaced by the last checkpoint's counts.
    pub(super) fn resolve(&mut self, finish: &Finish) -> Done<EndedHold> {
        let refused = match self.finish(finish) {
            Err(Refusal::Limit(_)) => finish.clone(),
            outcome => return outcome,
        };
        let counted = self
            .holds
            .get(&finish.request)
            .and_then(|held| held.checkpoint.clone())
            .unwrap_or_default();
        let mut bill = refused.bill;
        bill.evidence = Some(Evidence::Disputed);
        (bill.usage, bill.lines) = (counted.usage, counted.lines);
        if bill.check_facts().is_err() {
            (bill.exposure, bill.cost) = (counted.exposure, counted.cost);
            bill.facts = counted.facts;
            (bill.provider_cost, bill.cost_source) = (counted.provider_cost, counted.cost_source);
        }
        self.finish(&Finish { bill, ..refused })
    }

    pub(super) fn end(&mut self, held: &Held, finish: Finish) -> Done<EndedHold> {
        let (hold, day) = (&held.open, held.day);
        let customer = self.payer(hold.key)?.id;
        self.settle_grants(customer)?;
        let account = self.customer(customer)?.account;
        let cost = finish.bill.total()?;
        if cost.is_negative() {
            return Err(limit("a cost must not be negative"));
        }
        if cost > Amount::MAX_COST {
            let text = format!("a cost of {cost} for one request is implausible");
            return Err(Refusal::Limit(text));
        }
        let free = self.takable(customer, &hold.slug, &held.parts);
        let beyond = self.room(hold.key, &hold.slug, day, free);
        let payable = picos(hold.amount).saturating_add(beyond);
        let charge = picos(cost).min(payable);
        let loss = amount(picos(cost).saturating_sub(charge))?;
        let after = Account {
            spent: amount(picos(account.spent).saturating_add(charge))?,
            held: amount(picos(account.held).saturating_sub(picos(hold.amount)))?,
            ..account
        };
        let bill = Bill {
            hold: hold.amount,
            loss,
            ..finish.bill
        };
        self.count(
            hold.key,
            &hold.slug,
            day,
            charge,
            picos(hold.amount).saturating_neg(),
        )?;
        let reached = self.reached(hold.key, &hold.slug, day)?;
        let (parts, lost, low) = self.charge(customer, held, charge)?;
        let owed = self.customer(customer)?.claim.is_positive();
        let mut entry = JournalEntry {
            operation: finish.request,
            parts,
            kind: EntryKind::Charge,
            amount: amount(charge.saturating_neg())?,
            at: self.dated(customer, finish.at),
            actor: "gateway".to_owned(),
            bill: Some(bill),
            ..blank(customer, Some(hold.key))
        };
        if self.has_caps(hold.key) {
            entry.set_day(day);
        }
        self.enter(customer, after, entry)?;
        self.holds.remove(&finish.request);
        let remaining = self.remaining(hold.key, &hold.slug, &held.parts)?;
        self.lose(customer, finish.request, lost)?;
        self.tell_of_caps(customer, finish.request, reached);
        self.tell_of_low(customer, finish.request, low);
        self.collect(customer, finish.request, finish.at)?;
        self.tell_of_balance(customer, finish.request)?;
        Ok(EndedHold {
            charge: amount(charge)?,
            loss,
            remaining: match owed {
                true => self.remaining(hold.key, &hold.slug, &held.parts)?,
                false => remaining,
            },
        })
    }

    pub(super) fn recover(&mut self, epoch: i64, now: Timestamp) -> Done<Option<Recovered>> {
        let dead = self.holds.values().filter(|held| held.open.epoch < epoch);
        let dead: Vec<Held> = dead.take(500).cloned().collect();
        let mut done = Recovered {
            epoch,
            ..Recovered::default()
        };
        for held in &dead {
            let open = &held.open;
            let mut bill = held.checkpoint.clone().unwrap_or_else(|| Bill {
                slug: open.slug.clone(),
                family: open.family.clone(),
                ..Bill::default()
            });
            (bill.evidence, bill.end_reason) = (Some(Evidence::Recovered), EndReason::Recovered);
            let known = picos(open.used).saturating_add(picos(bill.exposure));
            let exposure = amount(picos(open.amount).saturating_sub(known).max(0))?;
            let owed = Owed {
                exposure,
                cost: None,
            };
            bill.owe(UNMETERED, owed);
            let finish = Finish {
                request: open.request,
                bill,
                at: now,
            };
            let finished = self.end(held, finish)?;
            let count = if finished.charge.is_positive() {
                &mut done.settled
            } else {
                &mut done.released
            };
            *count = count.saturating_add(1);
        }
        Ok((!dead.is_empty()).then_some(done))
    }
}

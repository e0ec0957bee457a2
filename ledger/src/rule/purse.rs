//! What a request of one key may spend: the money of its customer, in the order of use, within the caps of both, and of the owner key
//! that made it. Pure.

use crate::rule::account::HoldEffect;
use crate::rule::cap::CapNews;
use crate::rule::grant::{GrantLoss, windows};
use crate::rule::hold::{HoldRoom, HoldWay};
use crate::{
    Account, Amount, CapReached, Caps, CountedCap, Customer, CustomerId, Grants, Held, KeyId,
    MoneyPart, PlanNews, Refusal, Scope, Timestamp, UtcDay,
};

/// What a request of one key may spend: the customer's money, within the caps of both, and of the key in whose caps it counts, too.
#[derive(Debug, Clone)]
pub(crate) struct KeyPurse {
    pub(crate) account: Account,
    pub(crate) grants: Grants,
    /// What requests have given back to grants that have ended; it is booked next.
    pub(crate) losses: Vec<GrantLoss>,
    /// What is worth telling of the use of plans.
    pub(crate) news: Vec<PlanNews>,
    pub(crate) of_key: Caps,
    /// None of a key that counts in no other's.
    pub(crate) of_maker: Caps,
    pub(crate) of_customer: Caps,
    key: KeyId,
    maker: Option<KeyId>,
    customer: CustomerId,
    /// The customer owes something: what is held is all that it has, and stays held until its request ends.
    owes: bool,
}

impl KeyPurse {
    /// Of a key, with the caps of the key in whose caps it counts, if it does.
    pub(crate) fn of(
        (key, of_key): (KeyId, &Caps),
        (maker, of_maker): (Option<KeyId>, &Caps),
        customer: &Customer,
    ) -> Self {
        Self {
            account: customer.account,
            grants: customer.grants.clone(),
            losses: Vec::new(),
            news: Vec::new(),
            of_key: of_key.clone(),
            of_maker: of_maker.clone(),
            of_customer: customer.caps.clone(),
            key,
            maker,
            customer: customer.id,
            owes: customer.claim.is_positive(),
        }
    }

    /// Of a key without caps.
    #[cfg(test)]
    pub(crate) fn without_caps(key: KeyId, customer: &Customer) -> Self {
        let mut purse = Self::bounded_by(Caps::default());
        (purse.key, purse.customer) = (key, customer.id);
        (purse.account, purse.grants) = (customer.account, customer.grants.clone());
        purse.of_customer = customer.caps.clone();
        purse.owes = customer.claim.is_positive();
        purse
    }

    /// Rich, and bounded by a key's caps alone.
    #[cfg(test)]
    pub(crate) fn bounded_by(caps: Caps) -> Self {
        let key = KeyId::from_random(1);
        let credit = Amount::MAX_LIFETIME_CREDIT;
        Self {
            account: Account {
                credit,
                ..Account::default()
            },
            grants: Grants::default(),
            losses: Vec::new(),
            news: Vec::new(),
            of_key: caps,
            of_maker: Caps::default(),
            of_customer: Caps::default(),
            key,
            maker: None,
            customer: CustomerId::made_for(key),
            owes: false,
        }
    }

    /// Whether any cap counts.
    pub(crate) const fn has_caps(&self) -> bool {
        !self.of_key.is_empty() || !self.of_maker.is_empty() || !self.of_customer.is_empty()
    }

    /// Whether a request changes more than the account.
    pub(crate) const fn counts_more(&self) -> bool {
        self.has_caps() || !self.grants.is_empty()
    }

    /// What a request opened now stores of plans that it may take from. Most customers have none.
    pub(crate) fn begin(&mut self, slug: &str, now: Timestamp) -> Vec<MoneyPart> {
        if self.grants.plans.is_empty() {
            return Vec::new();
        }
        self.grants.begin(self.customer, slug, now)
    }

    /// What a request for a slug with these parts may take. Who owes something may take nothing: what is free then was not paid, and pays no claim.
    fn available(&self, slug: &str, parts: &[MoneyPart]) -> Amount {
        if self.grants.is_empty() {
            self.account.available()
        } else if self.owes {
            Amount::ZERO
        } else {
            (self.grants).available(self.counted(), slug, &windows(parts))
        }
    }

    /// The account without what is booked next.
    fn counted(&self) -> Account {
        let lost = self.losses.iter().map(|loss| loss.amount.picos());
        let lost = lost.fold(self.account.credit.picos(), i64::saturating_sub);
        Account {
            credit: Amount::from_picos(lost),
            ..self.account
        }
    }

    /// What may still be held for a slug in the windows of a day, by a request with these parts.
    pub(crate) fn room(&self, slug: &str, day: UtcDay, parts: &[MoneyPart]) -> Amount {
        let available = self.available(slug, parts);
        let each = self.caps().map(|(_, caps)| caps);
        each.fold(available, |left, caps| caps.room(slug, day, left))
    }

    /// What may still be charged for a slug in the windows of a day, held or not, to a request with these parts.
    pub(crate) fn remaining(&self, slug: &str, day: UtcDay, parts: &[MoneyPart]) -> Amount {
        let balance = if self.grants.is_empty() {
            self.account.balance()
        } else {
            (self.grants).balance(self.counted(), slug, &windows(parts))
        };
        let each = self.caps().map(|(_, caps)| caps);
        each.fold(balance, |left, caps| caps.remaining(slug, day, left))
    }

    /// The first of these ways for which there is room, in place of what a request holds already. Without room it is refused even if
    /// nothing is asked for, as an empty balance refuses it.
    ///
    /// # Errors
    /// [`Refusal::Insufficient`] first, then [`Refusal::CapReached`] of the cap with least room; nothing is counted then.
    pub(crate) fn hold(
        &mut self,
        (slug, day): (&str, UtcDay),
        (now, parts): (Amount, &mut Vec<MoneyPart>),
        ways: &[HoldWay],
    ) -> Result<Held, Refusal> {
        let room = self.hold_room(slug, day, (now, parts));
        let fits = |(at, way): (usize, &HoldWay)| {
            let limit = way.limit_in(room)?;
            Some((way.amount(limit)?, (at, limit)))
        };
        let found = ways.iter().enumerate().find_map(fits);
        match found.filter(|_| room.left.is_positive()) {
            Some((amount, granted)) => Ok(Held {
                granted: Some(granted),
                ..self.resize((slug, day), (now, parts), amount)?
            }),
            None => {
                let needs = ways.iter().map(|way| way.needs(room.alone));
                let needed = needs.min().unwrap_or_default();
                let needed = needed.checked_sub(now).unwrap_or(needed);
                Err(self.refusal((slug, day), parts, needed))
            }
        }
    }

    /// Gives a hold that was opened on a day another size, as far as there is room.
    pub(crate) fn move_to(
        &mut self,
        (slug, day): (&str, UtcDay),
        (now, parts): (Amount, &mut Vec<MoneyPart>),
        to: Amount,
    ) -> Result<Held, Refusal> {
        let most = self.hold_room(slug, day, (now, parts)).left.max(now);
        self.resize((slug, day), (now, parts), to.min(most))
    }

    fn resize(
        &mut self,
        (slug, day): (&str, UtcDay),
        (now, parts): (Amount, &mut Vec<MoneyPart>),
        to: Amount,
    ) -> Result<Held, Refusal> {
        let to = if self.owes { to.max(now) } else { to };
        let before = self.account;
        self.account = before.resize(now, to)?;
        if !self.grants.is_empty() {
            let more = to.picos().saturating_sub(now.picos());
            if more >= 0 {
                self.grants
                    .hold(before, slug, parts, Amount::from_picos(more));
            } else {
                let back = Amount::from_picos(more.saturating_neg());
                let lost = self.grants.give_back(slug, (now, parts), back);
                self.losses.extend(lost);
            }
        }
        for (_, caps) in self.caps_mut() {
            caps.resize(slug, day, now, to);
        }
        Ok(self.held((slug, day), (to, parts)))
    }

    /// What is held, and by what it is bound.
    pub(crate) fn held(
        &self,
        (slug, day): (&str, UtcDay),
        (amount, parts): (Amount, &[MoneyPart]),
    ) -> Held {
        let left = self.room(slug, day, parts);
        Held {
            amount,
            left,
            by_cap: left < self.available(slug, parts),
            granted: None,
        }
    }

    /// What a request finds that holds this much already.
    fn hold_room(&self, slug: &str, day: UtcDay, (now, parts): (Amount, &[MoneyPart])) -> HoldRoom {
        let (mut left, mut held) = (self.available(slug, parts), self.account.held);
        if let Some((_, cap)) = self.tightest(slug, day)
            && cap.room(day) < left
        {
            left = cap.room(day);
            held = cap.counts(day).map_or(Amount::ZERO, |window| window.held);
        }
        HoldRoom {
            left: left.checked_add(now).unwrap_or(left),
            alone: held <= now,
        }
    }

    /// Counts the end of a hold that was opened on a day, and returns what is worth telling of whose caps.
    fn end(
        &mut self,
        slug: &str,
        day: UtcDay,
        held: Amount,
        charge: Amount,
    ) -> Vec<(Scope, CapNews)> {
        let each = self.caps_mut();
        each.flat_map(|(scope, caps)| {
            let news = caps.end(slug, day, held, charge).into_iter();
            news.map(move |news| (scope, news))
        })
        .collect()
    }

    /// Whose caps bind it: its own, those of the key that it counts in, its customer's.
    fn caps(&self) -> impl Iterator<Item = (Scope, &Caps)> {
        let of_maker = self.maker.map(|maker| (Scope::Key(maker), &self.of_maker));
        let own = (Scope::Key(self.key), &self.of_key);
        let of_customer = (Scope::Customer(self.customer), &self.of_customer);
        [Some(own), of_maker, Some(of_customer)]
            .into_iter()
            .flatten()
    }

    /// The same, to count in them.
    fn caps_mut(&mut self) -> impl Iterator<Item = (Scope, &mut Caps)> {
        let of_maker = &mut self.of_maker;
        let of_maker = self.maker.map(|maker| (Scope::Key(maker), of_maker));
        let own = (Scope::Key(self.key), &mut self.of_key);
        let of_customer = (Scope::Customer(self.customer), &mut self.of_customer);
        [Some(own), of_maker, Some(of_customer)]
            .into_iter()
            .flatten()
    }

    /// A refund gives room back in the windows of the day of its charge.
    pub(crate) fn refund(&mut self, slug: &str, day: UtcDay, amount: Amount) {
        for (_, caps) in self.caps_mut() {
            caps.refund(slug, day, amount);
        }
    }

    /// The cap with least room.
    fn tightest(&self, slug: &str, day: UtcDay) -> Option<(Scope, &CountedCap)> {
        self.caps()
            .filter_map(|(scope, caps)| Some((scope, caps.tightest(slug, day)?)))
            .min_by_key(|(_, counted)| counted.room(day))
    }

    /// Why nothing is held. The balance is judged first: a cap that starts again would not help.
    fn refusal(&self, (slug, day): (&str, UtcDay), parts: &[MoneyPart], needed: Amount) -> Refusal {
        let available = self.available(slug, parts);
        match self.tightest(slug, day) {
            Some((scope, cap)) if available.is_positive() && needed <= available => {
                Refusal::CapReached(Box::new(cap.reached(scope, day, needed)))
            }
            Some(_) | None => match self.plan_limit(slug, parts, needed) {
                Some(reached) => Refusal::CapReached(Box::new(reached)),
                None => Refusal::Insufficient {
                    needed,
                    available,
                    held: self.account.held,
                },
            },
        }
    }

    /// What of a plan refuses so much, where more money is there.
    fn plan_limit(&self, slug: &str, parts: &[MoneyPart], needed: Amount) -> Option<CapReached> {
        let limit = (self.grants).plan_limit(self.counted(), slug, &windows(parts))?;
        let room = self.available(slug, parts);
        Some(CapReached::of_plan(limit, self.customer, (needed, room)))
    }

    /// Pays what ends a hold that was opened on a day, and returns where its charge came from and what is worth telling of whose caps.
    pub(crate) fn pay(
        &mut self,
        (slug, day): (&str, UtcDay),
        (held, parts): (Amount, &[MoneyPart]),
        ending: &HoldEffect,
    ) -> (Vec<MoneyPart>, Vec<(Scope, CapNews)>) {
        let reached = self.end(slug, day, held, ending.charge);
        let before = std::mem::replace(&mut self.account, ending.account);
        if self.grants.is_empty() {
            return (Vec::new(), reached);
        }
        let charge = (self.grants).charge(before, slug, (held, parts), ending.charge);
        self.losses.extend(charge.losses);
        self.news.extend(charge.news);
        (charge.parts, reached)
    }
}

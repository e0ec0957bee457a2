//! The order in which a customer's money is used: what holds take, charges pay, and time does to grants. Pure.
//!
//! A hold takes from the end of the order, so that what is used first stays free; a charge goes through it from the beginning. A
//! customer's account has the sums of pool and grants together, so the pool is what the grants leave of it. A period of a plan is a grant
//! that is bounded by windows, too, and may let nothing but periods pay.

use super::{Grant, GrantKind, GrantStatus, MoneyPart};
use crate::rule::account::{less, sum};
use crate::rule::plan::{PlanLimit, PlanNews, PlanWindow, Subscription};
use crate::{Account, Amount, CustomerId, GrantId, Plans, Refusal, Timestamp, WindowId};

/// The place of a source in the order of use: priority, end, promotional before paid, beginning, id. The pool is the first of what is
/// paid, has no end and no priority of its own.
pub(super) type UsePlace<'grant> = (
    u8,
    Timestamp,
    GrantKind,
    Option<(Timestamp, &'grant GrantId)>,
);

const POOL: UsePlace<'static> = (Grant::PRIORITY, Timestamp::NEVER, GrantKind::Paid, None);

/// Where money can come from: a grant by its index, or the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MoneySource {
    Pool,
    Grant(usize),
}

/// What was given back to a grant that has ended: nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrantLoss {
    pub(crate) grant: GrantId,
    pub(crate) status: GrantStatus,
    pub(crate) amount: Amount,
}

/// How a charge is paid, and what of the hold's parts is nobody's afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GrantCharge {
    /// In the order of use, positive; empty if the pool paid all.
    pub(crate) parts: Vec<MoneyPart>,
    pub(crate) losses: Vec<GrantLoss>,
    /// What is worth telling of the use of plans.
    pub(crate) news: Vec<PlanNews>,
}

/// A customer's grants of which something can still come: those that begin later, that can be used, and that have ended while running
/// requests hold some of them.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Grants {
    pub(super) all: Vec<Grant>,
    /// The subscriptions whose periods are among them, and what was used of them in windows.
    pub plans: Plans,
}

// Each request copies its customer, and most have none.
impl Clone for Grants {
    fn clone(&self) -> Self {
        if self.is_empty() {
            return Self::default();
        }
        Self {
            all: self.all.clone(),
            plans: self.plans.clone(),
        }
    }
}

impl Grants {
    /// Most that a customer has at a time.
    // All of them are read and sorted with each request.
    pub const MOST: usize = 32;

    /// Those of one customer.
    pub fn of(mut open: Vec<Grant>) -> Self {
        open.sort_by_key(|grant| grant.id);
        Self {
            all: open,
            plans: Plans::default(),
        }
    }

    /// With what the customer has of plans.
    #[must_use]
    pub fn and(self, plans: Plans) -> Self {
        Self { plans, ..self }
    }

    /// Whether there are none, and no plans.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty() && self.plans.is_empty()
    }

    /// All, by their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.all.iter()
    }

    /// Those that can be used at an instant, in the order of use.
    pub fn usable(&self) -> Vec<&Grant> {
        let live = self
            .all
            .iter()
            .filter(|grant| grant.status == GrantStatus::Active);
        let mut live: Vec<_> = live.collect();
        live.sort_by(|a, b| a.place().cmp(&b.place()));
        live
    }

    pub(crate) fn get(&self, id: GrantId) -> Option<&Grant> {
        self.all.iter().find(|grant| grant.id == id)
    }

    /// Takes a grant as it is.
    pub(crate) fn put(&mut self, grant: Grant) {
        self.all.retain(|known| known.id != grant.id);
        self.all.push(grant);
        self.all.sort_by_key(|grant| grant.id);
    }

    /// Those of which something can still come.
    pub(crate) fn open(mut self) -> Self {
        self.all.retain(Grant::is_open);
        self.plans = self.plans.open();
        self
    }

    /// When something happens next without anybody's doing, [`Timestamp::NEVER`] if only requests can change them; `None` if there are none.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        let of_grants = self.all.iter().map(Grant::next_at);
        let of_plans = self.plans.iter().map(Subscription::next_at);
        let next = of_grants.chain(of_plans).min();
        next.or_else(|| (!self.is_empty()).then_some(Timestamp::NEVER))
    }

    /// What the pool has of an account, held or not.
    pub fn pool(&self, account: Account) -> Amount {
        let counted = self
            .all
            .iter()
            .filter(|grant| grant.status != GrantStatus::Pending);
        counted.fold(account.balance(), |pool, grant| less(pool, grant.remaining))
    }

    /// What the pool has of an account that is not held.
    pub fn pool_free(&self, account: Account) -> Amount {
        let counted = self
            .all
            .iter()
            .filter(|grant| grant.status != GrantStatus::Pending);
        counted.fold(account.available(), |pool, grant| less(pool, grant.free()))
    }

    /// What of an account a request for a slug may take that has these windows; without a slug, requests for any model.
    pub fn available(&self, account: Account, slug: &str, has: &[WindowId]) -> Amount {
        let free = self.live(slug, has, Grant::free, PlanWindow::room);
        if self.plans.stop(slug) {
            free
        } else {
            sum(free, self.pool_free(account))
        }
    }

    /// What of plans binds a request that has these windows, where more money is there.
    pub(crate) fn plan_limit(
        &self,
        account: Account,
        slug: &str,
        has: &[WindowId],
    ) -> Option<PlanLimit> {
        if self.plans.is_empty() {
            return None;
        }
        if !self.plans.may_stop(slug) {
            let live = self.all.iter().filter(|grant| self.may_take(grant, slug));
            let all = live.map(Grant::free).fold(self.pool_free(account), sum);
            if all <= self.available(account, slug, has) {
                return None;
            }
        }
        self.plans.opens_next(slug, has, |id| {
            let grant = self.get(id)?;
            let left = grant.remaining.min(grant.amount);
            Some((less(grant.amount, left), grant.held))
        })
    }

    /// What of an account requests for a slug may be charged that have these windows, held or not.
    pub fn balance(&self, account: Account, slug: &str, has: &[WindowId]) -> Amount {
        let left = self.live(slug, has, |grant| grant.remaining, PlanWindow::remaining);
        if self.plans.stop(slug) {
            left
        } else {
            sum(left, self.pool(account))
        }
    }

    /// What grants leave for a slug, by what each and each window has.
    fn live(
        &self,
        slug: &str,
        has: &[WindowId],
        of_grant: fn(&Grant) -> Amount,
        of_window: fn(&PlanWindow) -> Amount,
    ) -> Amount {
        // Two periods may share windows, where one has ended and was bought again.
        let mut plans = self.plans.clone();
        let live = self.all.iter().filter(|grant| self.may_take(grant, slug));
        live.fold(Amount::ZERO, |all, grant| {
            let left = of_grant(grant);
            if grant.kind != GrantKind::Plan {
                return sum(all, left);
            }
            let left = left.min(plans.room(grant.id, has, of_window));
            let own = plans.windows_of(grant.id, has);
            plans.count(&own, |window| window.bound = less(window.bound, left));
            sum(all, left)
        })
    }

    /// Whether a request for a slug may take from a grant that nothing of it holds; without a slug, requests for any model.
    fn may_take(&self, grant: &Grant, slug: &str) -> bool {
        grant.status == GrantStatus::Active
            && (slug.is_empty() || grant.is_for(slug))
            && match grant.kind {
                GrantKind::Plan => {
                    let running = self.plans.running(grant.id);
                    running.is_some_and(|running| running.live_period().is_some())
                }
                GrantKind::Promotional | GrantKind::Paid => !self.plans.stop(slug),
            }
    }

    /// What is free of a grant for a request that has these windows.
    fn free_for(&self, grant: &Grant, slug: &str, has: &[WindowId]) -> Amount {
        match (self.may_take(grant, slug), grant.kind) {
            (false, _) => Amount::ZERO,
            (true, GrantKind::Plan) => {
                let room = self.plans.room(grant.id, has, PlanWindow::room);
                grant.free().min(room)
            }
            (true, GrantKind::Promotional | GrantKind::Paid) => grant.free(),
        }
    }

    /// What is free of the pool for requests for a slug.
    fn pool_for(&self, account: Account, slug: &str) -> Amount {
        if self.plans.stop(slug) {
            Amount::ZERO
        } else {
            self.pool_free(account)
        }
    }

    /// The windows of a hold that is opened now, which it stores as parts of nothing yet.
    pub(crate) fn begin(
        &mut self,
        customer: CustomerId,
        slug: &str,
        now: Timestamp,
    ) -> Vec<MoneyPart> {
        let begun = self.plans.begin(customer, slug, now).into_iter();
        let part = |(grant, windows)| MoneyPart {
            windows,
            ..MoneyPart::of(Some(grant), Amount::ZERO)
        };
        begun.map(part).collect()
    }

    /// What was paid, is free and may go back: the pool, then what else was paid.
    pub(crate) fn paid_free(&self, account: Account) -> Amount {
        let paid = self
            .all
            .iter()
            .filter(|grant| grant.status == GrantStatus::Active && grant.kind == GrantKind::Paid);
        paid.map(Grant::free).fold(self.pool_free(account), sum)
    }

    /// Everything that a request for a slug may take from, with what its hold has of grants that have ended, in the order of use.
    fn sources(&self, slug: &str, parts: &[MoneyPart]) -> Vec<MoneySource> {
        let held = |id: GrantId| parts.iter().any(|part| part.grant == Some(id));
        let all = self.all.iter().enumerate();
        let usable = all.filter(|(_, grant)| held(grant.id) || self.may_take(grant, slug));
        let mut sources: Vec<_> = usable.map(|(at, _)| MoneySource::Grant(at)).collect();
        sources.push(MoneySource::Pool);
        sources.sort_by(|a, b| self.place(*a).cmp(&self.place(*b)));
        sources
    }

    fn place(&self, source: MoneySource) -> UsePlace<'_> {
        match source {
            MoneySource::Pool => POOL,
            MoneySource::Grant(at) => self.all.get(at).map_or(POOL, Grant::place),
        }
    }

    /// Holds more for a request for a slug, from the end of the order. `account` is as before; what it has available is at least this.
    pub(crate) fn hold(
        &mut self,
        account: Account,
        slug: &str,
        parts: &mut Vec<MoneyPart>,
        more: Amount,
    ) {
        let (mut left, pool) = (more, self.pool_for(account, slug));
        let has = windows(parts);
        for source in self.sources(slug, parts).into_iter().rev() {
            match source {
                MoneySource::Pool => left = less(left, pool.min(left)),
                MoneySource::Grant(at) => {
                    let Some(grant) = self.all.get(at) else {
                        continue;
                    };
                    let (id, taken) = (grant.id, self.free_for(grant, slug, &has).min(left));
                    let own = self.windows_in(id, parts, &has);
                    self.plans
                        .count(&own, |window| window.held = sum(window.held, taken));
                    if let Some(grant) = self.all.get_mut(at) {
                        grant.held = sum(grant.held, taken);
                    }
                    left = less(left, taken);
                    add(parts, (id, taken), own);
                }
            }
        }
    }

    /// The windows in which a period counts for a request: its own, or of one that has begun since, those that the request has of its plan.
    fn windows_in(&self, id: GrantId, parts: &[MoneyPart], has: &[WindowId]) -> Vec<WindowId> {
        let own = parts.iter().find(|part| part.grant == Some(id));
        match own.filter(|part| !part.windows.is_empty()) {
            Some(part) => part.windows.clone(),
            None => self.plans.windows_of(id, has),
        }
    }

    /// Gives back some of what a hold of this size has: what is used first becomes free first, and what has ended last.
    pub(crate) fn give_back(
        &mut self,
        slug: &str,
        (held, parts): (Amount, &mut Vec<MoneyPart>),
        back: Amount,
    ) -> Vec<GrantLoss> {
        let mut losses = Vec::new();
        let of_grants = parts
            .iter()
            .fold(Amount::ZERO, |all, part| sum(all, part.amount));
        let (mut left, of_pool) = (back, less(held, of_grants));
        let (ended, live): (Vec<_>, Vec<_>) =
            self.sources(slug, parts)
                .into_iter()
                .partition(|source| match source {
                    MoneySource::Pool => false,
                    MoneySource::Grant(at) => self.all.get(*at).is_some_and(Grant::has_ended),
                });
        for source in live.into_iter().chain(ended) {
            let MoneySource::Grant(at) = source else {
                left = less(left, of_pool.min(left));
                continue;
            };
            let Some(grant) = self.all.get_mut(at) else {
                continue;
            };
            let Some(part) = parts.iter_mut().find(|part| part.grant == Some(grant.id)) else {
                continue;
            };
            let given = part.amount.min(left);
            part.amount = less(part.amount, given);
            grant.held = less(grant.held, given);
            self.plans
                .count(&part.windows, |window| window.settle(given, Amount::ZERO));
            left = less(left, given);
            if grant.has_ended() {
                grant.remaining = less(grant.remaining, given);
                losses.extend(loss(grant, given));
            }
        }
        parts.retain(|part| part.amount.is_positive() || !part.windows.is_empty());
        losses
    }

    /// Ends a hold of this size with a charge that there is room for. `account` is as before.
    pub(crate) fn charge(
        &mut self,
        account: Account,
        slug: &str,
        (held, parts): (Amount, &[MoneyPart]),
        charge: Amount,
    ) -> GrantCharge {
        let of_grants = parts
            .iter()
            .fold(Amount::ZERO, |all, part| sum(all, part.amount));
        let of_pool = sum(self.pool_for(account, slug), less(held, of_grants));
        let (mut left, mut done, has) = (charge, GrantCharge::default(), windows(parts));
        for source in self.sources(slug, parts) {
            let part = match source {
                MoneySource::Pool => MoneyPart::of(None, of_pool.min(left)),
                MoneySource::Grant(at) => match self.charge_grant(at, (slug, &has), parts, left) {
                    Some((part, back)) => {
                        done.losses.extend(back);
                        part
                    }
                    None => continue,
                },
            };
            if part.amount.is_positive() {
                left = less(left, part.amount);
                done.news.extend(self.news(&part));
                done.parts.push(part);
            }
        }
        if done.parts.iter().all(|part| part.grant.is_none()) {
            done.parts.clear();
        }
        done
    }

    /// What is worth telling after a part of a charge.
    fn news(&mut self, part: &MoneyPart) -> Vec<PlanNews> {
        let windows = self.plans.news(&part.windows);
        let grant = part
            .grant
            .and_then(|id| self.all.iter().find(|of| of.id == id));
        let used = grant
            .filter(|grant| grant.kind == GrantKind::Plan)
            .map(|grant| (grant.id, less(grant.amount, grant.remaining)));
        let of_allowance = used.and_then(|(id, used)| self.plans.running_mut(id)?.news(used));
        windows.into_iter().chain(of_allowance).collect()
    }

    /// Charges one grant as much as it has, and gives back what the hold had of it beyond.
    fn charge_grant(
        &mut self,
        at: usize,
        (slug, has): (&str, &[WindowId]),
        parts: &[MoneyPart],
        left: Amount,
    ) -> Option<(MoneyPart, Option<GrantLoss>)> {
        let grant = self.all.get(at)?;
        let own = parts.iter().find(|part| part.grant == Some(grant.id));
        let held = own.map_or(Amount::ZERO, |part| part.amount);
        let taken = sum(held, self.free_for(grant, slug, has)).min(left);
        let windows = self.windows_in(grant.id, parts, has);
        self.plans
            .count(&windows, |window| window.settle(held, taken));
        let grant = self.all.get_mut(at)?;
        grant.held = less(grant.held, held);
        grant.remaining = less(grant.remaining, taken);
        let mut back = None;
        if grant.has_ended() {
            let given = less(held, taken);
            grant.remaining = less(grant.remaining, given);
            back = loss(grant, given);
        } else if grant.remaining == Amount::ZERO && grant.kind != GrantKind::Plan {
            grant.status = GrantStatus::Exhausted;
        }
        let part = MoneyPart {
            windows,
            ..MoneyPart::of(Some(grant.id), taken)
        };
        Some((part, back))
    }

    /// Takes what goes back of payments: from the pool, then from other paid grants, first those that are used last. At most
    /// [`paid_free`](Self::paid_free); what was taken of the pool and of each, positive.
    pub(crate) fn take_paid(&mut self, account: Account, amount: Amount) -> Vec<MoneyPart> {
        let of_pool = self.pool_free(account).min(amount);
        let mut left = less(amount, of_pool);
        let mut parts = vec![MoneyPart::of(None, of_pool)];
        let ids: Vec<GrantId> = self.usable().iter().rev().map(|grant| grant.id).collect();
        for id in ids {
            let Some(grant) = self.all.iter_mut().find(|grant| grant.id == id) else {
                continue;
            };
            let taken = grant.free().min(left);
            if grant.kind == GrantKind::Paid && taken.is_positive() {
                grant.remaining = less(grant.remaining, taken);
                if grant.remaining == Amount::ZERO {
                    grant.status = GrantStatus::Exhausted;
                }
                left = less(left, taken);
                parts.push(MoneyPart::of(Some(id), taken));
            }
        }
        parts.retain(|part| part.amount.is_positive());
        if parts.iter().all(|part| part.grant.is_none()) {
            parts.clear();
        }
        parts
    }

    /// Takes back what is left of a grant, and returns what was free of it.
    pub(crate) fn void(&mut self, id: GrantId) -> Option<(Grant, Amount)> {
        let mut grant = self.get(id)?.clone();
        let free = match grant.status {
            GrantStatus::Pending => {
                grant.remaining = Amount::ZERO;
                Amount::ZERO
            }
            GrantStatus::Active => grant.free(),
            GrantStatus::Exhausted | GrantStatus::Expired | GrantStatus::Voided => return None,
        };
        (grant.status, grant.remaining) = (GrantStatus::Voided, grant.held);
        self.put(grant.clone());
        Some((grant, free))
    }

    /// Refuses one more than there may be.
    pub(crate) fn check_room(&self) -> Result<(), Refusal> {
        let live = self.all.iter().filter(|grant| match grant.status {
            GrantStatus::Pending | GrantStatus::Active => grant.kind != GrantKind::Plan,
            GrantStatus::Exhausted | GrantStatus::Expired | GrantStatus::Voided => false,
        });
        if live.count() < Self::MOST {
            return Ok(());
        }
        Err(Refusal::NotApplicable(format!(
            "a customer has at most {} grants at a time; void one that is no longer needed, or wait until one is used up",
            Self::MOST
        )))
    }
}

fn loss(grant: &Grant, amount: Amount) -> Option<GrantLoss> {
    amount.is_positive().then_some(GrantLoss {
        grant: grant.id,
        status: grant.status,
        amount,
    })
}

/// Adds what a hold takes of a grant to its parts.
fn add(parts: &mut Vec<MoneyPart>, (grant, amount): (GrantId, Amount), windows: Vec<WindowId>) {
    if !amount.is_positive() {
        return;
    }
    match parts.iter_mut().find(|part| part.grant == Some(grant)) {
        Some(part) => part.amount = sum(part.amount, amount),
        None => parts.push(MoneyPart {
            windows,
            ..MoneyPart::of(Some(grant), amount)
        }),
    }
}

/// The windows of a hold with these parts.
pub(crate) fn windows(parts: &[MoneyPart]) -> Vec<WindowId> {
    let all = parts.iter().flat_map(|part| part.windows.iter().copied());
    all.collect()
}

/// The parts of a charge that a refund gives back: those that were taken last, first. `before` is what was refunded of it already.
pub(crate) fn refunded_parts(
    charged: Amount,
    parts: &[MoneyPart],
    before: Amount,
    amount: Amount,
) -> Vec<MoneyPart> {
    let pool = [MoneyPart::of(None, charged)];
    let parts = if parts.is_empty() { &pool } else { parts };
    let (mut skip, mut left, mut back) = (before, amount, Vec::new());
    for part in parts.iter().rev() {
        let of_part = Amount::from_picos(part.amount.picos().saturating_abs());
        let skipped = of_part.min(skip);
        skip = less(skip, skipped);
        let given = less(of_part, skipped).min(left);
        left = less(left, given);
        if given.is_positive() {
            back.push(MoneyPart {
                amount: given,
                ..part.clone()
            });
        }
    }
    back
}

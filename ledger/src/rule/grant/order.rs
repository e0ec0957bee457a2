//! The order in which a customer's money is used: what holds take, charges pay, and time does to grants. Pure.
//!
//! A hold takes from the end of the order, so that what is used first stays free; a charge goes through it from the beginning. A
//! customer's account has the sums of pool and grants together, so the pool is what the grants leave of it.

use super::{Grant, GrantKind, GrantStatus, MoneyPart, days_before};
use crate::rule::account::{less, sum};
use crate::{Account, Amount, GrantId, OperationId, Refusal, Timestamp};

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

/// What a grant does by itself when its time comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GrantTurn {
    /// It can be used from now on.
    Begins,
    /// Its end is so many days away.
    Nears(u32),
    /// It ends; so much of it was free.
    Ends(Amount),
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
}

/// A customer's grants of which something can still come: those that begin later, that can be used, and that have ended while running
/// requests hold some of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// Most that a customer has at a time.
    // All of them are read and sorted with each request.
    pub const MOST: usize = 32;

    /// Those of one customer.
    pub fn of(mut open: Vec<Grant>) -> Self {
        open.sort_by_key(|grant| grant.id);
        Self(open)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All, by their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// Those that can be used at an instant, in the order of use.
    pub fn usable(&self) -> Vec<&Grant> {
        let live = self
            .0
            .iter()
            .filter(|grant| grant.status == GrantStatus::Active);
        let mut live: Vec<_> = live.collect();
        live.sort_by(|a, b| a.place().cmp(&b.place()));
        live
    }

    pub(crate) fn get(&self, id: GrantId) -> Option<&Grant> {
        self.0.iter().find(|grant| grant.id == id)
    }

    /// Takes a grant as it is.
    pub(crate) fn put(&mut self, grant: Grant) {
        self.0.retain(|known| known.id != grant.id);
        self.0.push(grant);
        self.0.sort_by_key(|grant| grant.id);
    }

    /// Those of which something can still come.
    pub(crate) fn open(mut self) -> Self {
        self.0.retain(Grant::is_open);
        self
    }

    /// When something happens next without anybody's doing, [`Timestamp::NEVER`] if only requests can change them; `None` if there are none.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        self.0.iter().map(Grant::next_at).min()
    }

    /// What the pool has of an account, held or not.
    pub fn pool(&self, account: Account) -> Amount {
        let counted = self
            .0
            .iter()
            .filter(|grant| grant.status != GrantStatus::Pending);
        counted.fold(account.balance(), |pool, grant| less(pool, grant.remaining))
    }

    /// What the pool has of an account that is not held.
    pub fn pool_free(&self, account: Account) -> Amount {
        let counted = self
            .0
            .iter()
            .filter(|grant| grant.status != GrantStatus::Pending);
        counted.fold(account.available(), |pool, grant| less(pool, grant.free()))
    }

    fn live_for<'all>(&'all self, slug: &'all str) -> impl Iterator<Item = &'all Grant> {
        let live = self
            .0
            .iter()
            .filter(|grant| grant.status == GrantStatus::Active);
        live.filter(move |grant| slug.is_empty() || grant.is_for(slug))
    }

    /// What of an account a request for a slug may take; without a slug, requests for any model.
    pub fn available(&self, account: Account, slug: &str) -> Amount {
        let free = self.live_for(slug).map(Grant::free);
        free.fold(self.pool_free(account), sum)
    }

    /// What of an account requests for a slug may be charged, held or not.
    pub fn balance(&self, account: Account, slug: &str) -> Amount {
        let left = self.live_for(slug).map(|grant| grant.remaining);
        left.fold(self.pool(account), sum)
    }

    /// What was paid, is free and may go back: the pool, then what else was paid.
    pub(crate) fn paid_free(&self, account: Account) -> Amount {
        let paid = self
            .0
            .iter()
            .filter(|grant| grant.status == GrantStatus::Active && grant.kind == GrantKind::Paid);
        paid.map(Grant::free).fold(self.pool_free(account), sum)
    }

    /// Everything that a request for a slug may take from, with what its hold has of grants that have ended, in the order of use.
    fn sources(&self, slug: &str, parts: &[MoneyPart]) -> Vec<MoneySource> {
        let held = |id: GrantId| parts.iter().any(|part| part.grant == Some(id));
        let all = self.0.iter().enumerate();
        let usable = all.filter(|(_, grant)| {
            held(grant.id) || grant.status == GrantStatus::Active && grant.is_for(slug)
        });
        let mut sources: Vec<_> = usable.map(|(at, _)| MoneySource::Grant(at)).collect();
        sources.push(MoneySource::Pool);
        sources.sort_by(|a, b| self.place(*a).cmp(&self.place(*b)));
        sources
    }

    fn place(&self, source: MoneySource) -> UsePlace<'_> {
        match source {
            MoneySource::Pool => POOL,
            MoneySource::Grant(at) => self.0.get(at).map_or(POOL, Grant::place),
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
        let (mut left, pool) = (more, self.pool_free(account));
        for source in self.sources(slug, parts).into_iter().rev() {
            match source {
                MoneySource::Pool => left = less(left, pool.min(left)),
                MoneySource::Grant(at) => {
                    let Some(grant) = self.0.get_mut(at) else {
                        continue;
                    };
                    if grant.status != GrantStatus::Active {
                        continue;
                    }
                    let taken = grant.free().min(left);
                    grant.held = sum(grant.held, taken);
                    left = less(left, taken);
                    add(parts, grant.id, taken);
                }
            }
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
                    MoneySource::Grant(at) => self.0.get(*at).is_some_and(Grant::has_ended),
                });
        for source in live.into_iter().chain(ended) {
            let MoneySource::Grant(at) = source else {
                left = less(left, of_pool.min(left));
                continue;
            };
            let Some(grant) = self.0.get_mut(at) else {
                continue;
            };
            let Some(part) = parts.iter_mut().find(|part| part.grant == Some(grant.id)) else {
                continue;
            };
            let given = part.amount.min(left);
            part.amount = less(part.amount, given);
            grant.held = less(grant.held, given);
            left = less(left, given);
            if grant.has_ended() {
                grant.remaining = less(grant.remaining, given);
                losses.extend(loss(grant, given));
            }
        }
        parts.retain(|part| part.amount.is_positive());
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
        let of_pool = sum(self.pool_free(account), less(held, of_grants));
        let (mut left, mut done) = (charge, GrantCharge::default());
        for source in self.sources(slug, parts) {
            let taken = match source {
                MoneySource::Pool => of_pool.min(left),
                MoneySource::Grant(at) => {
                    let Some(grant) = self.0.get_mut(at) else {
                        continue;
                    };
                    let own = parts.iter().find(|part| part.grant == Some(grant.id));
                    let own = own.map_or(Amount::ZERO, |part| part.amount);
                    let free = if grant.status == GrantStatus::Active && grant.is_for(slug) {
                        grant.free()
                    } else {
                        Amount::ZERO
                    };
                    let taken = sum(own, free).min(left);
                    grant.held = less(grant.held, own);
                    grant.remaining = less(grant.remaining, taken);
                    if grant.has_ended() {
                        let back = less(own, taken);
                        grant.remaining = less(grant.remaining, back);
                        done.losses.extend(loss(grant, back));
                    } else if grant.remaining == Amount::ZERO {
                        grant.status = GrantStatus::Exhausted;
                    }
                    taken
                }
            };
            if taken.is_positive() {
                left = less(left, taken);
                let grant = match source {
                    MoneySource::Pool => None,
                    MoneySource::Grant(at) => self.0.get(at).map(|grant| grant.id),
                };
                done.parts.push(MoneyPart {
                    grant,
                    amount: taken,
                });
            }
        }
        if done.parts.iter().all(|part| part.grant.is_none()) {
            done.parts.clear();
        }
        done
    }

    /// Takes what goes back of payments: from the pool, then from other paid grants, first those that are used last. At most
    /// [`paid_free`](Self::paid_free); what was taken of the pool and of each, positive.
    pub(crate) fn take_paid(&mut self, account: Account, amount: Amount) -> Vec<MoneyPart> {
        let of_pool = self.pool_free(account).min(amount);
        let mut left = less(amount, of_pool);
        let mut parts = vec![MoneyPart {
            grant: None,
            amount: of_pool,
        }];
        let ids: Vec<GrantId> = self.usable().iter().rev().map(|grant| grant.id).collect();
        for id in ids {
            let Some(grant) = self.0.iter_mut().find(|grant| grant.id == id) else {
                continue;
            };
            let taken = grant.free().min(left);
            if grant.kind == GrantKind::Paid && taken.is_positive() {
                grant.remaining = less(grant.remaining, taken);
                if grant.remaining == Amount::ZERO {
                    grant.status = GrantStatus::Exhausted;
                }
                left = less(left, taken);
                parts.push(MoneyPart {
                    grant: Some(id),
                    amount: taken,
                });
            }
        }
        parts.retain(|part| part.amount.is_positive());
        if parts.iter().all(|part| part.grant.is_none()) {
            parts.clear();
        }
        parts
    }

    /// The next thing that has happened by an instant without anybody's doing, with its operation and the grant as it is then.
    pub(crate) fn turn(&self, now: Timestamp) -> Option<(OperationId, GrantTurn, Grant)> {
        let due = self.0.iter().filter(|grant| grant.next_at() <= now);
        let mut grant = due.min_by_key(|grant| (grant.next_at(), grant.id))?.clone();
        let (at, turn, what) = match (grant.status, grant.expires_at) {
            (GrantStatus::Pending, _) => {
                grant.status = GrantStatus::Active;
                (grant.effective_at, GrantTurn::Begins, "begins".to_owned())
            }
            (GrantStatus::Active, Some(end)) if end <= now => {
                let free = grant.free();
                (grant.remaining, grant.status) = (grant.held, GrantStatus::Expired);
                (end, GrantTurn::Ends(free), "ends".to_owned())
            }
            (GrantStatus::Active, Some(end)) => {
                let days = grant.notice(now)?;
                grant.told = Some(days);
                let turn = GrantTurn::Nears(days);
                (days_before(end, days), turn, format!("nears {days}"))
            }
            (GrantStatus::Active, None)
            | (GrantStatus::Exhausted | GrantStatus::Expired | GrantStatus::Voided, _) => {
                return None;
            }
        };
        Some((grant.operation_at(at, &what), turn, grant))
    }

    /// As they are at an instant, with the account: what nobody has booked yet is reckoned in.
    pub(crate) fn at(mut self, mut account: Account, now: Timestamp) -> (Self, Account) {
        while let Some((_, turn, grant)) = self.turn(now) {
            match turn {
                GrantTurn::Begins => account.credit = sum(account.credit, grant.remaining),
                GrantTurn::Ends(free) => account.credit = less(account.credit, free),
                GrantTurn::Nears(_) => {}
            }
            self.put(grant);
        }
        (self.open(), account)
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
        let live = self.0.iter().filter(|grant| match grant.status {
            GrantStatus::Pending | GrantStatus::Active => true,
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
fn add(parts: &mut Vec<MoneyPart>, grant: GrantId, amount: Amount) {
    if !amount.is_positive() {
        return;
    }
    match parts.iter_mut().find(|part| part.grant == Some(grant)) {
        Some(part) => part.amount = sum(part.amount, amount),
        None => parts.push(MoneyPart {
            grant: Some(grant),
            amount,
        }),
    }
}

/// The parts of a charge that a refund gives back: those that were taken last, first. `before` is what was refunded of it already.
pub(crate) fn refunded_parts(
    charged: Amount,
    parts: &[MoneyPart],
    before: Amount,
    amount: Amount,
) -> Vec<MoneyPart> {
    let pool = [MoneyPart {
        grant: None,
        amount: charged,
    }];
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
                grant: part.grant,
                amount: given,
            });
        }
    }
    back
}

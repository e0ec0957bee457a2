//! What time does to grants and to periods of plans. Pure.

use super::order::Grants;
use super::{Grant, GrantKind, GrantStatus, days_before};
use crate::rule::account::{less, sum};
use crate::rule::plan::{PeriodTurn, PlanTurn, Subscription};
use crate::{Account, Amount, OperationId, Timestamp};

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

/// What happens next without anybody's doing, with the grant or subscription as it is then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MoneyTurn {
    Grant(GrantTurn, Grant),
    Plan(PlanTurn, Box<Subscription>),
}

/// What the beginning of a period does to grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BegunPeriod {
    /// The period.
    pub(crate) grant: Grant,
    /// Its subscription, which knows what of the one before has moved on.
    pub(crate) subscription: Subscription,
    /// What of the one before moves into it.
    pub(crate) moved: Amount,
    /// The one before, and what of it is lost.
    pub(crate) before: Option<(Grant, Amount)>,
}

impl Grants {
    /// The next thing that has happened by an instant without anybody's doing, with its operation.
    pub(crate) fn turn(&self, now: Timestamp) -> Option<(OperationId, MoneyTurn)> {
        let of_grants = self.all.iter().map(Grant::next_at).min();
        let of_plans = self.plans.iter().map(Subscription::next_at).min();
        let plan_first = of_plans.is_some_and(|plan| of_grants.is_none_or(|grant| plan < grant));
        if plan_first {
            self.plan_turn(now)
        } else {
            self.grant_turn(now)
        }
    }

    fn plan_turn(&self, now: Timestamp) -> Option<(OperationId, MoneyTurn)> {
        let due = self.plans.iter().filter(|of| of.next_at() <= now);
        let subscription = due.min_by_key(|of| (of.next_at(), of.id))?;
        let at = subscription.next_at();
        let (turn, next) = subscription.turn(now)?;
        let what = match &turn {
            PlanTurn::Begins(period) => format!("begins {}", period.running.number),
            PlanTurn::Lapses => format!("lapses {}", subscription.state.last),
        };
        let instant = OperationId::new(at, 0);
        let operation =
            instant.derived(format!("farebox plan {} {what}", subscription.id).as_bytes());
        Some((operation, MoneyTurn::Plan(turn, Box::new(next))))
    }

    fn grant_turn(&self, now: Timestamp) -> Option<(OperationId, MoneyTurn)> {
        let due = self.all.iter().filter(|grant| grant.next_at() <= now);
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
        let operation = grant.operation_at(at, &what);
        Some((operation, MoneyTurn::Grant(turn, grant)))
    }

    /// As they are at an instant, with the account: what nobody has booked yet is reckoned in.
    pub(crate) fn at(mut self, mut account: Account, now: Timestamp) -> (Self, Account) {
        while let Some((_, turn)) = self.turn(now) {
            match turn {
                MoneyTurn::Grant(turn, grant) => {
                    match turn {
                        GrantTurn::Begins => account.credit = sum(account.credit, grant.remaining),
                        GrantTurn::Ends(free) => account.credit = less(account.credit, free),
                        GrantTurn::Nears(_) => {}
                    }
                    self.put(grant);
                }
                MoneyTurn::Plan(PlanTurn::Begins(period), next) => {
                    let begun = self.begun(&period, *next);
                    account.credit = sum(account.credit, period.allowance);
                    if let Some((before, lost)) = begun.before {
                        account.credit = less(account.credit, lost);
                        self.put(before);
                    }
                    self.put(begun.grant);
                    self.plans.put(begun.subscription);
                }
                MoneyTurn::Plan(PlanTurn::Lapses, next) => {
                    if let Some((over, lost)) = self.over(&next) {
                        account.credit = less(account.credit, lost);
                        self.put(over);
                    }
                    self.plans.put(*next);
                }
            }
        }
        let customer = self.plans.iter().next().map(|of| of.customer);
        if let Some(customer) = customer {
            self.plans.begin(customer, "", now);
        }
        (self.open(), account)
    }

    /// What the beginning of a period does to its grants.
    pub(crate) fn begun(&self, period: &PeriodTurn, mut of: Subscription) -> BegunPeriod {
        let running = &period.running;
        let before = period.before.as_ref();
        let before = before.and_then(|before| Some((before, self.get(before.grant)?)));
        let (moved, before) = match before {
            Some((terms, grant)) => {
                let moved = grant.free().min(terms.terms.carry);
                let lost = less(grant.free(), moved);
                of.moved = moved;
                (moved, Some((ended(grant, GrantStatus::Expired), lost)))
            }
            None => (Amount::ZERO, None),
        };
        let grant = Grant {
            id: running.grant,
            customer: of.customer,
            kind: GrantKind::Plan,
            amount: period.allowance,
            priority: Grant::OF_PLANS,
            effective_at: running.begins,
            expires_at: of.lives_until(),
            models: running.terms.models.clone(),
            remaining: sum(period.allowance, moved),
            held: Amount::ZERO,
            status: GrantStatus::Active,
            told: None,
        };
        BegunPeriod {
            grant,
            subscription: of,
            moved,
            before,
        }
    }

    /// The period that ran before a subscription came to this, as it is when it is over, and what of it is lost.
    pub(crate) fn over(&self, next: &Subscription) -> Option<(Grant, Amount)> {
        let running = self.plans.get(next.id)?.state.running.as_ref()?;
        let grant = self.get(running.grant)?;
        Some((ended(grant, GrantStatus::Expired), grant.free()))
    }
}

/// A grant of which nothing but what running requests hold is left.
pub(crate) fn ended(grant: &Grant, status: GrantStatus) -> Grant {
    Grant {
        remaining: grant.held,
        status,
        ..grant.clone()
    }
}

//! Grants: given, taken back, and what time does to them. Whatever changes a customer's account books first what has happened to its
//! grants by then.

use serde_json::json;

use super::grant_books::{book_part, book_part_by, insert, promotional, put, refunded_until};
use super::{check_unused, claims, news, plan_periods, references, write_act};
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::{grant_act, plan_act};
use crate::rule::account::less;
use crate::rule::grant::{GrantLoss, GrantTurn, MoneyTurn, refunded_parts};
use crate::table::needs::RowName;
use crate::value::text::clean;
use crate::{
    Amount, Credit, Customer, CustomerId, EntryKind, EventKind, Grant, GrantAnswer, GrantId,
    GrantKind, GrantName, GrantRecord, GrantStatus, Grants, JournalEntry, MoneyPart, NewGrant,
    OperationId, Refusal, SettleGrants, Subscription, VoidGrant,
};

/// Whether time has done something to a customer's grants that is not booked. Most have none.
pub(super) fn is_due(rows: &Rows, customer: &Customer) -> bool {
    (customer.grants.next_at()).is_some_and(|next| next <= rows.now())
}

/// Books what time has done to a customer's grants.
pub(super) fn settle(rows: &mut Rows, customer: CustomerId) -> Result<(), Refusal> {
    let now = rows.now();
    let turned = |rows: &Rows| {
        let stored = rows.customer(customer).ok()?;
        stored.customer.grants.turn(now)
    };
    while let Some((operation, turn)) = turned(rows) {
        match turn {
            MoneyTurn::Grant(turn, grant) => turn_to(rows, operation, &turn, grant)?,
            MoneyTurn::Plan(turn, next) => plan_periods::turn_to(rows, operation, turn, *next)?,
        }
    }
    Ok(())
}

fn turn_to(
    rows: &mut Rows,
    operation: OperationId,
    turn: &GrantTurn,
    mut grant: Grant,
) -> Result<(), Refusal> {
    let (customer, account) = (
        grant.customer,
        rows.customer(grant.customer)?.customer.account,
    );
    let (kind, event, amount, after) = match turn {
        GrantTurn::Begins => match account.give_back(grant.amount) {
            Ok(after) => (
                entry_kind(grant.kind),
                EventKind::GrantGiven,
                grant.amount,
                after,
            ),
            // Its customer was paid so much meanwhile that it can get no more in its lifetime.
            Err(_) => {
                (grant.status, grant.remaining) = (GrantStatus::Voided, Amount::ZERO);
                put(rows, grant)?;
                return Ok(());
            }
        },
        GrantTurn::Ends(free) => {
            let less = free.checked_neg().unwrap_or_default();
            let after = if free.is_positive() {
                account.adjust(less)?
            } else {
                account
            };
            (EntryKind::Expired, EventKind::GrantExpired, less, after)
        }
        GrantTurn::Nears(days) => {
            let data = json!({ "grant": grant.id, "remaining": grant.remaining, "days": days, "expires_at": grant.expires_at });
            put(rows, grant)?;
            rows.tell(customer, operation, EventKind::GrantExpiring, &data);
            return Ok(());
        }
    };
    let data = told(&grant, amount);
    let id = grant.id;
    put(rows, grant)?;
    if amount != Amount::ZERO {
        let entry = book_part(rows, customer, operation, (kind, id, amount), after)?;
        if kind == EntryKind::TopUp {
            news::topped_up(rows, &entry);
        }
    }
    rows.tell(customer, operation, event, &data);
    claims::collect(rows, customer, operation, rows.now());
    news::judge_balance(rows, customer, operation);
    Ok(())
}

/// What events say of a grant.
fn told(grant: &Grant, amount: Amount) -> serde_json::Value {
    json!({
        "grant": grant.id,
        "kind": grant.kind,
        "amount": amount,
        "remaining": grant.remaining,
        "expires_at": grant.expires_at,
        "models": grant.models,
    })
}

/// Books what was given back to grants that have ended.
pub(super) fn lose(
    rows: &mut Rows,
    customer: CustomerId,
    cause: OperationId,
    losses: Vec<GrantLoss>,
) -> Result<(), Refusal> {
    for loss in losses {
        let moved = plan_periods::follow(rows, customer, cause, &loss)?;
        let GrantLoss {
            grant,
            status,
            amount,
        } = loss;
        let amount = less(amount, moved);
        if !amount.is_positive() {
            continue;
        }
        let kind = match status {
            GrantStatus::Voided => EntryKind::Void,
            GrantStatus::Pending
            | GrantStatus::Active
            | GrantStatus::Exhausted
            | GrantStatus::Expired => EntryKind::Expired,
        };
        let taken = amount.checked_neg().unwrap_or_default();
        let after = rows.customer(customer)?.customer.account.adjust(taken)?;
        let operation = cause.derived(format!("farebox back to {grant}").as_bytes());
        book_part(rows, customer, operation, (kind, grant, taken), after)?;
    }
    Ok(())
}

/// The grant of an upward correction, with what its entry names.
pub(super) fn corrected(
    rows: &mut Rows,
    credit: &Credit,
    customer: CustomerId,
) -> Result<(Vec<MoneyPart>, Vec<GrantRecord>), Refusal> {
    let Some(id) = credit.gives() else {
        return Ok((Vec::new(), Vec::new()));
    };
    let grant = promotional(rows, (id, customer), credit.amount, None);
    let part = MoneyPart::of(Some(id), credit.amount);
    let made = insert(rows, grant, GrantName(None), &credit.actor)?;
    Ok((vec![part], vec![made]))
}

/// Gives back what a refund returns of grants, and returns what its entry names: to the same grants, or to new ones for what has ended.
pub(super) fn give_back(
    rows: &mut Rows,
    credit: &Credit,
    charge: &JournalEntry,
    refunded: Amount,
) -> Result<(Vec<MoneyPart>, Vec<GrantRecord>), Refusal> {
    let mut made = Vec::new();
    if charge.parts.is_empty() {
        return Ok((Vec::new(), made));
    }
    let charged = charge.amount.checked_neg().unwrap_or_default();
    let mut parts = refunded_parts(charged, &charge.parts, refunded, credit.amount);
    let customer = charge.customer;
    for (number, part) in parts.iter_mut().enumerate() {
        let Some(id) = part.grant else { continue };
        let now = rows.now();
        let open = rows.customer(customer)?.customer.grants.get(id).cloned();
        let stored = || {
            rows.tables
                .get::<GrantRecord>(&id)
                .map(|kept| kept.grant.clone())
        };
        // It may have been used up by this very batch.
        let changed = || rows.changes.grants.get(&id).cloned();
        let known = open.or_else(changed).or_else(stored);
        let known = known.ok_or(Refusal::NoSuchGrant(id))?;
        let mut all = rows.customer(customer)?.customer.grants.clone();
        if !part.windows.is_empty() {
            let amount = part.amount;
            (all.plans).count(&part.windows, |window| window.give_room(amount));
            rows.set_grants(customer, all);
        }
        if known.can_take_back(now) {
            let remaining = known
                .remaining
                .checked_add(part.amount)
                .unwrap_or(known.remaining);
            let status = GrantStatus::Active;
            put(
                rows,
                Grant {
                    remaining,
                    status,
                    ..known
                },
            )?;
            continue;
        }
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let new = GrantId::derived(credit.operation, number);
        let grant = promotional(rows, (new, customer), part.amount, known.models);
        let plans = &rows.customer(customer)?.customer.grants.plans;
        let running = plans.of_period(id).and_then(Subscription::lives_until);
        let grant = Grant {
            expires_at: Some(running.unwrap_or_else(|| refunded_until(rows))),
            ..grant
        };
        made.push(insert(rows, grant, GrantName(None), &credit.actor)?);
        part.grant = Some(new);
    }
    if parts.iter().all(|part| part.grant.is_none()) {
        parts.clear();
    }
    Ok((parts, made))
}

fn give(rows: &mut Rows, new: &NewGrant) -> Result<GrantAnswer, Refusal> {
    new.check()?;
    let of_reference = rows.grant_by_reference(&new.reference);
    let known = of_reference.or_else(|| rows.tables.get(&new.id)).cloned();
    if let Some(known) = known {
        if new.repeats(&known) {
            return answer(rows, known.grant.id, true);
        }
        // Under its reference below: what has it is told there.
        if rows.grant_by_reference(&new.reference).is_none() {
            return Err(Refusal::OperationUsed(new.act.operation));
        }
    }
    references::check_reference(rows, &new.reference)?;
    book(rows, new)?;
    answer(rows, new.id, false)
}

/// What the entry is that begins a grant: what was paid is in no way less a payment.
const fn entry_kind(kind: GrantKind) -> EntryKind {
    match kind {
        GrantKind::Paid => EntryKind::TopUp,
        GrantKind::Promotional | GrantKind::Plan => EntryKind::Grant,
    }
}

/// Gives a grant. What was paid is booked as a top-up.
pub(super) fn book(rows: &mut Rows, new: &NewGrant) -> Result<(), Refusal> {
    let customer = new.customer;
    rows.customer(customer)?.customer.check_open()?;
    new.check_times(rows.now())?;
    check_unused(rows, new.act.operation)?;
    settle(rows, customer)?;
    let stored = &rows.customer(customer)?.customer;
    let grant = new.grant(rows.now());
    stored.grants.check_room()?;
    // What begins later is looked at as if it began now, so that nobody is promised what cannot be given.
    let after = stored.account.top_up(new.amount)?;
    let name = GrantName(Some(crate::value::reference::normal(&new.reference)));
    let is_active = grant.status == GrantStatus::Active;
    let data = told(&grant, new.amount);
    let kind = entry_kind(grant.kind);
    let made = insert(rows, grant, name.clone(), &new.act.actor)?;
    let of = (customer, new.act.operation);
    let begun = if is_active {
        let told = ((name.0, None), (new.act.actor.clone(), new.act.at));
        let part = (kind, new.id, new.amount);
        Some(book_part_by(rows, of, part, after, told)?)
    } else {
        None
    };
    write_act(rows, grant_act::grant(&new.act, &made), customer)?;
    if let Some(entry) = begun {
        if kind == EntryKind::TopUp {
            news::topped_up(rows, &entry);
        }
        rows.tell(customer, of.1, EventKind::GrantGiven, &data);
    }
    claims::collect(rows, customer, new.act.operation, new.act.at);
    news::judge_balance(rows, customer, new.act.operation);
    Ok(())
}

fn void(rows: &mut Rows, void: &VoidGrant) -> Result<GrantAnswer, Refusal> {
    let known = rows.tables.get::<GrantRecord>(&void.grant);
    let known = known.filter(|known| known.grant.customer == void.customer);
    let known = known.ok_or(Refusal::NoSuchGrant(void.grant))?;
    if known.grant.status == GrantStatus::Voided {
        return answer(rows, void.grant, true);
    }
    check_unused(rows, void.act.operation)?;
    settle(rows, void.customer)?;
    let stored = &rows.customer(void.customer)?.customer;
    let (mut grants, account) = (stored.grants.clone(), stored.account);
    let Some((grant, free)) = grants.void(void.grant) else {
        let known = rows.tables.get::<GrantRecord>(&void.grant);
        let status = known.map_or("gone", |known| known.grant.status.as_str());
        return Err(Refusal::NotApplicable(format!(
            "grant {} is {status}: nothing is left to take back",
            void.grant
        )));
    };
    let taken = free.checked_neg().unwrap_or_default();
    let after = if free.is_positive() {
        account.adjust(taken)?
    } else {
        account
    };
    let period_of = grants.plans.running(void.grant).cloned();
    rows.set_grants(void.customer, grants);
    let (customer, operation) = (void.customer, void.act.operation);
    if free.is_positive() {
        let part = (EntryKind::Void, void.grant, taken);
        let told = ((None, None), (void.act.actor.clone(), void.act.at));
        book_part_by(rows, (customer, operation), part, after, told)?;
    }
    write_act(rows, grant_act::void_grant(void, taken), customer)?;
    rows.tell(
        customer,
        operation,
        EventKind::GrantVoided,
        &told(&grant, taken),
    );
    if let Some(mut subscription) = period_of {
        subscription.lose_period();
        let act = plan_periods::beside(&void.act);
        plan_periods::keep(rows, subscription, &act, plan_act::GOES_BACK)?;
        // What else is paid begins where nothing runs any more.
        settle(rows, customer)?;
    }
    news::judge_balance(rows, customer, operation);
    answer(rows, void.grant, false)
}

fn answer(rows: &Rows, id: GrantId, repeated: bool) -> Result<GrantAnswer, Refusal> {
    let known = rows.tables.get::<GrantRecord>(&id);
    let record = known.ok_or(Refusal::NoSuchGrant(id))?.clone();
    let customer = rows.customer(record.grant.customer)?.customer.clone();
    Ok(GrantAnswer {
        grant: record,
        customer,
        repeated,
    })
}

/// Refuses to take more than the pool has free.
pub(super) fn check_pool(
    grants: &Grants,
    account: crate::Account,
    taken: Amount,
) -> Result<(), Refusal> {
    let available = grants.pool_free(account);
    if taken <= available {
        return Ok(());
    }
    Err(Refusal::Insufficient {
        needed: taken,
        available,
        held: account.held,
    })
}

impl LedgerOperation for NewGrant {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        let needs = Needs::administrative(self.customer.into(), [Some(self.act.operation), None]);
        Needs {
            references: [Some(&self.reference), None],
            ..needs
        }
        .with([RowName::Grant(self.id)])
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        give(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for NewGrant {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.refused()
    }
}

impl LedgerOperation for VoidGrant {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs::administrative(self.customer.into(), [Some(self.act.operation), None])
            .with([RowName::Grant(self.grant)])
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        void(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

impl AskableOperation for VoidGrant {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, _: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        by.refused()
    }
}

impl LedgerOperation for SettleGrants {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            customers: [Some(self.customer), None],
            ..Needs::default()
        }
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        settle(rows, self.customer).map(Outcome::from)
    }

    fn clean(&mut self) {}
}

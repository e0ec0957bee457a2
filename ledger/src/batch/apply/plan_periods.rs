//! Periods of plans: what time does to them, and what is stored and told of subscriptions.

use serde_json::{Value, json};

use super::claims::entry;
use super::grant_books::{self, CLOCK, book_part, insert};
use super::{append, append_named, claims, news, write_act};
use crate::batch::rows::Rows;
use crate::book::plan_act;
use crate::rule::account::less;
use crate::rule::grant::{BegunPeriod, GrantLoss};
use crate::rule::plan::{PeriodTurn, PlanTurn};
use crate::{
    Act, Amount, CustomerId, EntryKind, EventKind, Grant, GrantId, GrantName, JournalEntry,
    MoneyPart, OperationId, PlanNews, PlanTerms, Refusal, Subscription, SubscriptionStatus,
};

/// Books what time has done to a subscription.
pub(super) fn turn_to(
    rows: &mut Rows,
    operation: OperationId,
    turn: PlanTurn,
    next: Subscription,
) -> Result<(), Refusal> {
    let act = Act {
        operation,
        actor: CLOCK.to_owned(),
        at: rows.now(),
    };
    let customer = next.customer;
    match turn {
        PlanTurn::Begins(period) => begin(rows, &act, &period, next)?,
        PlanTurn::Lapses => {
            let over = rows.customer(customer)?.customer.grants.over(&next);
            if let Some((over, lost)) = over {
                lose(rows, (operation, EntryKind::Expired), over, lost)?;
            }
            let is_told = next.state.status == SubscriptionStatus::Lapsed;
            keep(rows, next.clone(), &act, plan_act::LAPSES)?;
            if is_told {
                tell(rows, &next, operation, EventKind::PlanLapsed, json!({}));
            }
        }
    }
    claims::collect(rows, customer, operation, act.at);
    news::judge_balance(rows, customer, operation);
    Ok(())
}

fn begin(
    rows: &mut Rows,
    act: &Act,
    period: &PeriodTurn,
    next: Subscription,
) -> Result<(), Refusal> {
    let (customer, operation) = (next.customer, act.operation);
    let stored = &rows.customer(customer)?.customer;
    let (begun, account) = (stored.grants.begun(period, next), stored.account);
    let BegunPeriod {
        mut grant,
        subscription,
        moved,
        before,
    } = begun;
    let into = grant.id;
    // One that was paid as much in its lifetime as anybody can be gets no more.
    let after = account.give_back(period.allowance).ok();
    if after.is_none() {
        grant.remaining = moved;
    }
    let record = insert(rows, grant, GrantName(None), &act.actor)?;
    if let Some(after) = after {
        let what = (EntryKind::Grant, into, period.allowance);
        book_part(rows, customer, operation, what, after)?;
    }
    if let Some((before, lost)) = before {
        carry(rows, customer, operation, (before.id, into, moved))?;
        lose(rows, (operation, EntryKind::Expired), before, lost)?;
    }
    let written = plan_act::leaves(act, plan_act::BEGINS, &subscription, &[record]);
    put(rows, subscription)?;
    write_act(rows, written, customer)
}

/// Moves money from one period into the next: two entries with one name, which the first one takes.
fn carry(
    rows: &mut Rows,
    customer: CustomerId,
    cause: OperationId,
    (from, into, moved): (GrantId, GrantId, Amount),
) -> Result<(), Refusal> {
    if !moved.is_positive() {
        return Ok(());
    }
    let out = cause.derived(b"farebox carried out");
    let taken = moved.checked_neg().unwrap_or_default();
    let account = rows.customer(customer)?.customer.account;
    for (operation, grant, amount, after) in [
        (out, from, taken, account.adjust(taken)?),
        (cause.derived(b"farebox carried in"), into, moved, account),
    ] {
        let what = (EntryKind::Carry, amount, after.balance());
        let by = (CLOCK.to_owned(), rows.now());
        let name = Some(format!("carry {out}"));
        let made = entry(rows, (customer, operation), what, (name, None), by)?;
        let parts = vec![MoneyPart::of(Some(grant), amount)];
        let (made, head) = (
            JournalEntry { parts, ..made },
            rows.customer(customer)?.head,
        );
        if operation == out {
            append(rows, made, &head, after);
        } else {
            append_named(rows, made, &head, after);
        }
    }
    Ok(())
}

/// Stores a period's grant that is over, and books what is lost of it.
pub(super) fn lose(
    rows: &mut Rows,
    (cause, kind): (OperationId, EntryKind),
    over: Grant,
    lost: Amount,
) -> Result<(), Refusal> {
    let (customer, id) = (over.customer, over.id);
    grant_books::put(rows, over)?;
    if lost.is_positive() {
        let amount = lost.checked_neg().unwrap_or_default();
        let operation = cause.derived(format!("farebox over {id}").as_bytes());
        let after = rows.customer(customer)?.customer.account.adjust(amount)?;
        book_part(rows, customer, operation, (kind, id, amount), after)?;
    }
    Ok(())
}

/// What of a loss is none, because it follows its period: into the next one, or into credit.
pub(super) fn follow(
    rows: &mut Rows,
    customer: CustomerId,
    cause: OperationId,
    loss: &GrantLoss,
) -> Result<Amount, Refusal> {
    let now = rows.now();
    let plans = &rows.customer(customer)?.customer.grants.plans;
    let Some(mut of) = plans.of_period(loss.grant).cloned() else {
        return Ok(Amount::ZERO);
    };
    let before = of.moved;
    let moved = of.follows(loss.grant, loss.amount, now);
    let (past, running) = (of.state.past.clone(), of.state.running.clone());
    let (Some(past), true) = (past, moved.is_positive()) else {
        return Ok(Amount::ZERO);
    };
    let after = of.moved;
    put(rows, of)?;
    let operation = cause.derived(format!("farebox follows {}", loss.grant).as_bytes());
    if let Some(terms) = past.becomes_credit {
        let credit = less(terms.worth(after), terms.worth(before));
        book_credit(rows, customer, operation, &terms, credit)?;
        return Ok(Amount::ZERO);
    }
    let Some(running) = running else {
        return Ok(Amount::ZERO);
    };
    let into = rows.customer(customer)?.customer.grants.get(running.grant);
    let Some(into) = into.cloned() else {
        return Ok(Amount::ZERO);
    };
    carry(rows, customer, operation, (loss.grant, into.id, moved))?;
    let remaining = into.remaining.checked_add(moved).unwrap_or(into.remaining);
    grant_books::put(rows, Grant { remaining, ..into })?;
    Ok(moved)
}

/// The unused part of a period that was given up for another plan becomes credit.
pub(super) fn book_credit(
    rows: &mut Rows,
    customer: CustomerId,
    operation: OperationId,
    terms: &PlanTerms,
    credit: Amount,
) -> Result<(), Refusal> {
    if !credit.is_positive() {
        return Ok(());
    }
    let after = (rows.customer(customer)?.customer.account).give_back(credit)?;
    let reason = format!("the unused part of a period of {}", terms.name);
    let what = (EntryKind::Adjust, credit, after.balance());
    let by = (CLOCK.to_owned(), rows.now());
    let made = entry(rows, (customer, operation), what, (None, Some(reason)), by)?;
    let head = rows.customer(customer)?.head;
    append(rows, made, &head, after);
    Ok(())
}

pub(super) fn put(rows: &mut Rows, subscription: Subscription) -> Result<(), Refusal> {
    let customer = subscription.customer;
    let mut grants = rows.customer(customer)?.customer.grants.clone();
    grants.plans.put(subscription);
    rows.set_grants(customer, grants);
    Ok(())
}

/// The act beside that of a payment or a grant: what it leaves of the subscription.
pub(super) fn beside(act: &Act) -> Act {
    Act {
        operation: act.operation.derived(b"farebox plan"),
        ..act.clone()
    }
}

/// Stores a subscription as an act leaves it, and writes this act.
pub(super) fn keep(
    rows: &mut Rows,
    subscription: Subscription,
    act: &Act,
    word: &'static str,
) -> Result<(), Refusal> {
    let customer = subscription.customer;
    let written = plan_act::leaves(act, word, &subscription, &[]);
    put(rows, subscription)?;
    write_act(rows, written, customer)
}

pub(super) fn tell(
    rows: &mut Rows,
    of: &Subscription,
    cause: OperationId,
    kind: EventKind,
    more: Value,
) {
    let mut data = json!({
        "subscription": of.id,
        "plan": of.state.terms.name,
        "title": of.state.terms.title,
        "status": of.state.status,
        "ends_at": of.state.running.as_ref().map(|running| running.ends),
        "paid_until": of.paid_until(),
        "processor": of.state.processor,
    });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    rows.tell(of.customer, cause, kind, &data);
}

/// Tells of plans and windows of which a charge has used up much.
pub(super) fn low(rows: &mut Rows, customer: CustomerId, cause: OperationId, all: Vec<PlanNews>) {
    for news in all {
        let data = json!({
            "subscription": news.subscription,
            "plan": news.plan,
            "per": news.per,
            "bound": news.bound,
            "used": news.used,
            "percent": news.level,
            "opens_at": news.opens_at,
        });
        rows.tell(customer, cause, EventKind::PlanLow, &data);
    }
}

//! Plans: periods that are sold and given, and what acts make of subscriptions. What time does to them is in `plan_periods`, what goes
//! back of their payments in `plan_money`.

use serde_json::{Value, json};

use super::acting::refused;
use super::claims::entry;
use super::plan_periods::{beside, book_credit, keep, lose, tell};
use super::{
    append, check_unused, claims, delegation, grant_books, grants, news, references, write_act,
};
use crate::batch::asker::BoundedAsker;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::{audit, plan_act};
use crate::rule::grant::ended;
use crate::table::needs::RowName;
use crate::value::reference;
use crate::value::text::clean;
use crate::{
    Act, Amount, CustomerId, EntryKind, EventKind, Grant, GrantId, GrantStatus, JournalEntry,
    NewPayment, OperationId, PlanAct, PlanAnswer, PlanChange, PlanPurchase, PlanTerms, Refusal,
    Subscription, SubscriptionId, SubscriptionStatus,
};

/// What can be changed or ended.
const NOT_ENDED: [SubscriptionStatus; 3] = [
    SubscriptionStatus::Active,
    SubscriptionStatus::Lapsed,
    SubscriptionStatus::Paused,
];

/// A customer's subscription, whether or not anything can still come of it.
fn known(
    rows: &Rows,
    customer: CustomerId,
    id: SubscriptionId,
) -> Result<Option<Subscription>, Refusal> {
    let open = rows.customer(customer)?.customer.grants.plans.get(id);
    let known = open.or_else(|| rows.tables.get(&id)).cloned();
    match known {
        Some(of) if of.customer != customer => Err(Refusal::NotApplicable(format!(
            "subscription {id} is of another customer"
        ))),
        known => Ok(known),
    }
}

/// The subscription with what is sold now, and whether it is new.
fn sold(
    rows: &Rows,
    customer: CustomerId,
    purchase: &PlanPurchase,
    (payment, act): (Option<String>, &Act),
) -> Result<(Subscription, bool), Refusal> {
    purchase.check()?;
    let stored = &rows.customer(customer)?.customer;
    stored.check_open()?;
    let before = known(rows, customer, purchase.subscription)?;
    let is_new = before.is_none();
    let made = || {
        let ids = (purchase.subscription, customer);
        Subscription::new(ids, &purchase.terms, (&act.actor, rows.now()))
    };
    let mut of = before.unwrap_or_else(made);
    if of.state.status == SubscriptionStatus::Ended {
        let asked_before = purchase.invoiced_at.zip(of.state.ended_at);
        if asked_before.is_none_or(|(asked, end)| asked >= end) {
            of.check_status(&[], "renewed")?;
        }
    } else {
        check_beside(rows, &of, &purchase.terms)?;
    }
    if payment.is_some() {
        of.state.terms = purchase.terms.clone();
        of.state.token = rows.asked_by.token().or(of.state.token);
    }
    if let Some(name) = &purchase.processor {
        of.state.processor = Some(name.clone());
    }
    of.sell(purchase.sold(payment))?;
    Ok((of, is_new))
}

/// Refuses a subscription beside those that a customer has.
fn check_beside(rows: &Rows, of: &Subscription, terms: &PlanTerms) -> Result<(), Refusal> {
    let plans = &rows.customer(of.customer)?.customer.grants.plans;
    let others = plans
        .iter()
        .filter(|other| other.id != of.id && other.counts());
    let others: Vec<_> = others.collect();
    if let Some(other) = others
        .iter()
        .find(|other| other.state.terms.name == terms.name)
    {
        return Err(Refusal::NotApplicable(format!(
            "customer {} has {} already, as subscription {}: renew that one",
            of.customer, terms.name, other.id
        )));
    }
    if others.len() >= Subscription::MOST {
        return Err(Refusal::NotApplicable(format!(
            "a customer has at most {} subscriptions that are not ended; end one first",
            Subscription::MOST
        )));
    }
    Ok(())
}

/// Queues what was sold or given, and begins it if nothing runs.
fn sell(
    rows: &mut Rows,
    (of, is_new): (Subscription, bool),
    act: &Act,
    more: Value,
) -> Result<(), Refusal> {
    let (customer, id) = (of.customer, of.id);
    keep(rows, of, act, plan_act::SELLS)?;
    grants::settle(rows, customer)?;
    let kind = if is_new {
        EventKind::PlanStarted
    } else {
        EventKind::PlanRenewed
    };
    let plans = &rows.customer(customer)?.customer.grants.plans;
    if let Some(of) = plans.get(id).cloned() {
        tell(rows, &of, act.operation, kind, more);
    }
    Ok(())
}

/// Books a payment for periods: under its name stands an entry of nothing, because its credit comes with each period.
pub(super) fn pay(
    rows: &mut Rows,
    new: &NewPayment,
    purchase: &PlanPurchase,
) -> Result<JournalEntry, Refusal> {
    references::check_payable_name(rows, &new.reference)?;
    check_unused(rows, new.act.operation)?;
    grants::settle(rows, new.customer)?;
    let name = reference::normal(&new.reference);
    let sale = sold(rows, new.customer, purchase, (Some(name.clone()), &new.act))?;
    let price = purchase.paid().price();
    let booked = delegation::booked(rows, purchase.allowance(), true)?;
    delegation::count(rows, booked);
    let made = receipt(rows, new.customer, &new.act, &name, purchase)?;
    write_act(rows, audit::payment(new), new.customer)?;
    let more = json!({ "periods": purchase.periods, "payment": name, "price": price });
    sell(rows, sale, &beside(&new.act), more)?;
    Ok(made)
}

/// Gives a period for a voucher.
pub(super) fn redeem(
    rows: &mut Rows,
    (customer, act): (CustomerId, &Act),
    terms: &PlanTerms,
    name: &str,
) -> Result<JournalEntry, Refusal> {
    check_unused(rows, act.operation)?;
    references::check_reference(rows, name)?;
    rows.customer(customer)?.customer.check_open()?;
    grants::settle(rows, customer)?;
    let plans = &rows.customer(customer)?.customer.grants.plans;
    let subscription = plans
        .iter()
        .find(|of| of.counts() && of.state.terms.name == terms.name)
        .map_or_else(|| SubscriptionId::derived(act.operation), |of| of.id);
    let purchase = PlanPurchase {
        subscription,
        terms: terms.clone(),
        periods: 1,
        processor: None,
        invoiced_at: None,
    };
    let sale = sold(rows, customer, &purchase, (None, act))?;
    let made = receipt(rows, customer, act, name, &purchase)?;
    sell(rows, sale, act, json!({ "periods": 1, "voucher": name }))?;
    Ok(made)
}

/// The entry of nothing that has a sale's name.
fn receipt(
    rows: &mut Rows,
    customer: CustomerId,
    act: &Act,
    name: &str,
    purchase: &PlanPurchase,
) -> Result<JournalEntry, Refusal> {
    let account = rows.customer(customer)?.customer.account;
    let reason = match purchase.periods {
        1 => format!("a period of {}", purchase.terms.name),
        count => format!("{count} periods of {}", purchase.terms.name),
    };
    let what = (EntryKind::Grant, Amount::ZERO, account.balance());
    let texts = (Some(reference::normal(name)), Some(reason));
    let by = (act.actor.clone(), act.at);
    let made = entry(rows, (customer, act.operation), what, texts, by)?;
    let head = rows.customer(customer)?.head;
    append(rows, made.clone(), &head, account);
    Ok(made)
}

// --- what people change ---

fn change(rows: &mut Rows, change: &PlanChange) -> Result<PlanAnswer, Refusal> {
    let word = plan_act::word(&change.change);
    if let Some(known) = rows.act(change.act.operation) {
        let left = plan_act::left(known).map(|(id, _)| id);
        if known.act == word && left == Some(change.subscription) {
            return answer(rows, change, true);
        }
    }
    check_unused(rows, change.act.operation)?;
    grants::settle(rows, change.customer)?;
    let (now, act) = (rows.now(), &change.act);
    if let PlanAct::Give(purchase) = &change.change {
        if purchase.subscription != change.subscription {
            let text = "periods are given to the subscription that is changed";
            return Err(Refusal::NotApplicable(text.to_owned()));
        }
        let sale = sold(rows, change.customer, purchase, (None, act))?;
        sell(rows, sale, act, json!({ "periods": purchase.periods }))?;
        return answer(rows, change, false);
    }
    let known = known(rows, change.customer, change.subscription)?;
    let mut of = known.ok_or(Refusal::NoSuchSubscription(change.subscription))?;
    let event = match &change.change {
        PlanAct::Give(_) => EventKind::PlanRenewed,
        PlanAct::Change { terms, at_once } => {
            terms.check()?;
            check_beside(rows, &of, terms)?;
            if *at_once {
                let given_up = of.change_now(terms.clone())?;
                give_up(rows, &mut of, given_up.map(|period| period.grant), act)?;
            } else {
                of.check_status(&NOT_ENDED, "changed")?;
                of.state.terms = terms.clone();
            }
            EventKind::PlanChanged
        }
        PlanAct::Pause => {
            of.pause(now)?;
            EventKind::PlanPaused
        }
        PlanAct::Resume => {
            of.resume(now)?;
            EventKind::PlanChanged
        }
        PlanAct::End => {
            of.end(now)?;
            EventKind::PlanEnded
        }
        PlanAct::WantEnd => {
            of.check_status(&NOT_ENDED, "ended")?;
            of.state.end_wanted = true;
            EventKind::PlanEndWanted
        }
    };
    set_end(rows, &of)?;
    keep(rows, of.clone(), act, word)?;
    tell(
        rows,
        &of,
        act.operation,
        event,
        json!({ "actor": act.actor }),
    );
    claims::collect(rows, change.customer, act.operation, act.at);
    news::judge_balance(rows, change.customer, act.operation);
    // What is paid begins at once where nothing runs.
    grants::settle(rows, change.customer)?;
    answer(rows, change, false)
}

/// The running period goes for what its unused part is worth.
fn give_up(
    rows: &mut Rows,
    of: &mut Subscription,
    period: Option<GrantId>,
    act: &Act,
) -> Result<(), Refusal> {
    let grants = &rows.customer(of.customer)?.customer.grants;
    let grant = period.and_then(|id| grants.get(id)).cloned();
    let terms = (of.state.past.as_ref()).and_then(|past| past.becomes_credit.clone());
    let (Some(grant), Some(terms)) = (grant, terms) else {
        return Ok(());
    };
    let (free, operation) = (grant.free(), act.operation);
    let over = ended(&grant, GrantStatus::Voided);
    lose(rows, (operation, EntryKind::Void), over, free)?;
    of.moved = free.min(terms.allowance);
    let operation = operation.derived(b"farebox credit");
    book_credit(rows, of.customer, operation, &terms, terms.worth(of.moved))
}

/// The end of the running period's grant is what its subscription says; of a paused one there is none.
fn set_end(rows: &mut Rows, of: &Subscription) -> Result<(), Refusal> {
    let Some(running) = &of.state.running else {
        return Ok(());
    };
    let grants = &rows.customer(of.customer)?.customer.grants;
    let Some(grant) = grants.get(running.grant).cloned() else {
        return Ok(());
    };
    let expires_at = of.lives_until();
    grant_books::put(
        rows,
        Grant {
            expires_at,
            ..grant
        },
    )
}

fn answer(rows: &Rows, change: &PlanChange, repeated: bool) -> Result<PlanAnswer, Refusal> {
    let known = known(rows, change.customer, change.subscription)?;
    Ok(PlanAnswer {
        subscription: known.ok_or(Refusal::NoSuchSubscription(change.subscription))?,
        customer: rows.customer(change.customer)?.customer.clone(),
        repeated,
    })
}

impl LedgerOperation for PlanChange {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        Some(self)
    }

    fn needs(&self) -> Needs<'_> {
        Needs::administrative(self.customer.into(), [Some(self.act.operation), None])
            .with([RowName::Subscription(self.subscription)])
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        change(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
    }
}

/// Of an owner: that it wants no more renewals. Of a token that sells: what a processor tells it of what it sold.
impl AskableOperation for PlanChange {
    fn id(&self) -> OperationId {
        self.act.operation
    }

    fn check_asked(&self, rows: &Rows, by: BoundedAsker) -> Result<(), Refusal> {
        match (by, &self.change) {
            (BoundedAsker::Owner(key), PlanAct::WantEnd)
                if rows.key(key)?.belongs_to == self.customer =>
            {
                Ok(())
            }
            (
                BoundedAsker::Seller(token),
                PlanAct::End
                | PlanAct::Change {
                    terms: _,
                    at_once: false,
                },
            ) => match known(rows, self.customer, self.subscription)? {
                Some(of) if of.state.token != Some(token) => {
                    refused("this token did not sell this subscription")
                }
                Some(_) | None => Ok(()),
            },
            (
                BoundedAsker::Owner(_) | BoundedAsker::Seller(_),
                PlanAct::Give(_)
                | PlanAct::Change {
                    terms: _,
                    at_once: _,
                }
                | PlanAct::Pause
                | PlanAct::Resume
                | PlanAct::End
                | PlanAct::WantEnd,
            ) => by.refused(),
        }
    }
}

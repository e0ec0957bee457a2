//! Auto top-up: a customer's rule that asks for money, and a payment that it asked for and that failed.

use farebox_ledger::{
    Act, Amount, AutoTopUpState, Customer, CustomerAct, CustomerId, Refill, Timestamp, TopUpRule,
    TopUpWish,
};
use serde_json::{Value, json};

use super::{Deed, customers};

/// A rule that wants an amount, or what is missing to a target.
///
/// # Errors
/// What to say instead.
pub fn rule(
    threshold: Amount,
    amount: Option<Amount>,
    target: Option<Amount>,
    per_month: u32,
) -> Result<TopUpRule, &'static str> {
    let refill = match (amount, target) {
        (Some(amount), None) => Refill::Amount(amount),
        (None, Some(target)) => Refill::Target(target),
        _ => return Err("give either an amount or a target, the balance to top up to"),
    };
    Ok(TopUpRule {
        threshold,
        refill,
        per_month,
    })
}

/// Sets a rule, or another one.
pub fn set(customer: CustomerId, rule: TopUpRule, act: Act) -> Deed {
    customers::change(customer, CustomerAct::SetAutoTopUp(rule), act)
}

/// Removes a customer's rule.
pub fn clear(customer: CustomerId, act: Act) -> Deed {
    customers::change(customer, CustomerAct::ClearAutoTopUp, act)
}

/// Notes that the payment failed that a rule asked for under this reference; `None` if it is no such reference.
pub fn failed(reference: &str, reason: Option<String>, act: Act) -> Option<Deed> {
    let (customer, number) = TopUpWish::named(reference)?;
    let failed = CustomerAct::FailTopUp { number, reason };
    Some(customers::change(customer, failed, act))
}

/// A customer's rule and what it is doing; null without one.
pub fn document(customer: &Customer, now: Timestamp) -> Value {
    let auto = customer.auto_top_up.as_ref();
    let Some((auto, rule)) = auto.and_then(|auto| Some((auto, auto.rule?))) else {
        return Value::Null;
    };
    let state = auto.state(now);
    let (amount, target) = match rule.refill {
        Refill::Amount(amount) => (Some(amount), None),
        Refill::Target(target) => (None, Some(target)),
    };
    let (pending, until, why) = match state {
        Some(AutoTopUpState::Pending(wish)) => {
            let reference = TopUpWish::reference(customer.id, wish.number);
            (Some((reference, wish.amount)), Some(wish.until()), None)
        }
        Some(AutoTopUpState::Resting(until) | AutoTopUpState::UsedUp(until)) => {
            (None, Some(until), None)
        }
        Some(AutoTopUpState::Off(why)) => (None, None, Some(why)),
        Some(AutoTopUpState::Ready) | None => (None, None, None),
    };
    let pending =
        pending.map(|(reference, amount)| json!({ "reference": reference, "amount": amount }));
    json!({
        "threshold": rule.threshold,
        "amount": amount,
        "target": target,
        "per_month": rule.per_month,
        "status": state.map(AutoTopUpState::as_str),
        "why": why,
        "until": until,
        "pending": pending,
        "asked_this_month": auto.wishes(now),
        "failures": auto.failures(now),
    })
}

/// The same for people, in one line.
pub fn words(customer: &Customer, now: Timestamp) -> Option<String> {
    let auto = customer.auto_top_up.as_ref()?;
    let (rule, state) = (auto.rule?, auto.state(now)?);
    Some(format!("{rule}: {}", state.words(customer.id)))
}

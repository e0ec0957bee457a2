//! Operations on behalf of a token or an owner key: what a token may do and how much of it, and what a repetition is answered.

use super::acting::{check_acts, check_owner, refused};
use super::apply;
use crate::batch::answer::KeptAnswer;
use crate::batch::operation::{Answered, Asked, Asker, ExpectedAct, Once, Operation, Outcome};
use crate::batch::rows::Rows;
use crate::rule::auto_top_up::TopUpWish;
use crate::rule::payment::PaymentAddressee;
use crate::rule::token_day::TokenDeed;
use crate::{
    Amount, Change, Credit, CreditKind, CustomerAct, CustomerId, KeyChange, NewKey, Refusal, Scope,
    Token, TokenDay, TokenId, TokenRole,
};

/// Applies what is asked for, once.
pub(super) fn asked(rows: &mut Rows, asked: &Asked) -> Result<Answered, Refusal> {
    if !asked.operation.is_administrative() {
        let text = "no token asks for this";
        return Err(Refusal::NotAllowed(text.to_owned()));
    }
    if let Some(token) = asked.by.token() {
        rows.api_token(token)?.check_active(asked.at)?;
    }
    let mut is_known = false;
    if let Some(once) = &asked.once {
        match repeated(rows, asked, once)? {
            Some(answered) if answered.is_replay() => return Ok(answered),
            found => is_known = found.is_some(),
        }
    }
    check_unchanged(rows, asked)?;
    match asked.by {
        Asker::House => {}
        Asker::Token(token) => check_allowed(rows, rows.api_token(token)?, &asked.operation)?,
        Asker::Owner(key) => check_owner(rows, key, &asked.operation)?,
    }
    rows.asked_by = asked.by;
    let outcome = apply(rows, &asked.operation);
    rows.asked_by = Asker::House;
    let outcome = outcome?;
    let answer = asked.once.as_ref().map(|once| once.answer.of(&outcome));
    if let (Some(once), Some(answer), false) = (&asked.once, &answer, is_known) {
        let token = asked.by.token();
        let kept = KeptAnswer {
            token,
            at: asked.at,
            operation: asked.operation.id(),
            body: once.body,
            answer: answer.clone(),
        };
        rows.keep_answer(once.id(token), kept);
    }
    Ok(Answered {
        outcome: Some(outcome),
        answer,
    })
}

/// What an earlier request with the same key was answered. It is no replay if it was this very operation, whose commit got no answer.
fn repeated(rows: &Rows, asked: &Asked, once: &Once) -> Result<Option<Answered>, Refusal> {
    let id = once.id(asked.by.token());
    if rows.is_running(id) {
        return Err(Refusal::StillRunning);
    }
    let forgotten = KeptAnswer::forgotten(asked.at);
    let Some(known) = rows.answer(id).filter(|known| known.at > forgotten) else {
        return Ok(None);
    };
    if known.body != once.body {
        return Err(Refusal::KeyOfOtherBody);
    }
    let is_this = known.operation.is_some() && known.operation == asked.operation.id();
    Ok(Some(Answered {
        outcome: is_this.then_some(Outcome::Done),
        answer: Some(known.answer.clone()),
    }))
}

/// Refuses a change of what was changed since the caller read it. By this very operation it was, if its commit got no answer.
fn check_unchanged(rows: &Rows, asked: &Asked) -> Result<(), Refusal> {
    let Some(ExpectedAct { of, position }) = asked.expected else {
        return Ok(());
    };
    let is_done = asked
        .operation
        .id()
        .is_some_and(|id| rows.act(id).is_some());
    let last = rows.last_act(of);
    if last == position || is_done {
        return Ok(());
    }
    Err(Refusal::ChangedSince {
        of,
        last,
        expected: position,
    })
}

/// Refuses what a token's role does not cover.
fn check_allowed(rows: &Rows, token: &Token, operation: &Operation) -> Result<(), Refusal> {
    match token.role {
        TokenRole::Manage => Ok(()),
        TokenRole::Read => refused("a token that reads changes nothing"),
        TokenRole::Sell => check_sale(rows, token.id, operation),
    }
}

/// What a token that sells may do.
fn check_sale(rows: &Rows, token: TokenId, operation: &Operation) -> Result<(), Refusal> {
    match operation {
        Operation::Credit(credit) if credit.kind == CreditKind::TopUp => {
            let owner = match credit.to {
                Scope::Key(key) => rows.key(key)?.belongs_to,
                Scope::Customer(customer) => customer,
            };
            rows.customer(owner)?.customer.check_active()
        }
        // Whose money cannot be booked is kept as unapplied.
        Operation::Pay(_) | Operation::PayFirst(_) | Operation::CreateCustomer(_) => Ok(()),
        Operation::Enrol(both) => check_bare(&both.1),
        Operation::Create(new) => {
            check_bare(new)?;
            check_first_key(rows, token, new)
        }
        Operation::Reverse(new) => match rows.payment(&new.payment) {
            Some(payment) if payment.token == Some(token) => Ok(()),
            Some(_) => refused("this token reverses only payments that it booked itself"),
            // Said as to everybody, so that it is told again when the payment has come.
            None if rows.entry_by_reference(&new.payment).is_none() => Ok(()),
            None => refused("this token reverses only payments that it booked itself"),
        },
        // Who charges a card says that it failed.
        Operation::ChangeCustomer(change)
            if matches!(change.change, CustomerAct::FailTopUp { .. }) =>
        {
            Ok(())
        }
        Operation::Change(change) => check_reissue(rows, token, change),
        _ => refused("a token that sells may not do this"),
    }
}

fn check_bare(new: &NewKey) -> Result<(), Refusal> {
    if new.first_credit.is_some() {
        return refused("a token that sells books payments, not credit with a key");
    }
    Ok(())
}

/// The first key of a customer that the token made has the customer's own ten symbols: so there cannot be a second one.
fn check_first_key(rows: &Rows, token: TokenId, new: &NewKey) -> Result<(), Refusal> {
    let Some(id) = new.within.customer else {
        return refused("a token that sells creates a key for a customer that it made");
    };
    check_own(rows, token, id)?;
    rows.customer(id)?.customer.check_active()?;
    if new.id != id.first_key() || new.within.made_by.is_some() {
        return refused("a token that sells creates a customer's first key, and no further ones");
    }
    Ok(())
}

fn check_reissue(rows: &Rows, token: TokenId, change: &KeyChange) -> Result<(), Refusal> {
    let is_reissue = matches!(change.change, Change::Reissue { .. });
    if is_reissue && rows.key(change.key)?.token == Some(token) {
        return check_acts(rows, change.key);
    }
    refused(
        "a token that sells reissues unused keys that it made, and changes nothing else of keys",
    )
}

fn check_own(rows: &Rows, token: TokenId, customer: CustomerId) -> Result<(), Refusal> {
    if rows.customer(customer)?.customer.token == Some(token) {
        return Ok(());
    }
    refused("this token did not make this customer")
}

/// Whether a token that sells asks.
pub(super) fn sells(rows: &Rows) -> Result<bool, Refusal> {
    match rows.asked_by.token() {
        Some(token) => Ok(rows.api_token(token)?.role == TokenRole::Sell),
        None => Ok(false),
    }
}

/// The day of the token that asks, with one more deed; `None` if none asks that is bounded. Nothing is counted before it is stored.
pub(super) fn counted(rows: &Rows, deed: TokenDeed) -> Result<Option<TokenDay>, Refusal> {
    let Some(id) = rows.asked_by.token() else {
        return Ok(None);
    };
    let token = rows.api_token(id)?;
    let day = rows.token_today(id).with(token, deed)?;
    Ok(token.daily.map(|_| day))
}

/// The same for credit, for a payment or not.
pub(super) fn booked(
    rows: &Rows,
    amount: Amount,
    is_payment: bool,
) -> Result<Option<TokenDay>, Refusal> {
    if !amount.is_positive() {
        return Ok(None);
    }
    counted(rows, TokenDeed::Books { amount, is_payment })
}

/// Stores what [`counted`] has counted.
pub(super) fn count(rows: &mut Rows, day: Option<TokenDay>) {
    if let Some(day) = day {
        rows.put_token_day(day);
    }
}

/// Whom a payment is addressed to if it does not say so. A token that sells books the money of anybody onto anybody's customer: only
/// the payment of a wish is the customer's own.
pub(super) fn addressee(rows: &Rows, credit: &Credit) -> Result<PaymentAddressee, Refusal> {
    if sells(rows)? && !TopUpWish::is_reference(&credit.reference) {
        return Ok(PaymentAddressee::Nobody);
    }
    Ok(PaymentAddressee::Customer)
}

/// Refuses a payment that a token which sells cannot book: of a customer that is not active.
pub(super) fn check_payable(rows: &Rows, customer: CustomerId) -> Result<(), Refusal> {
    if sells(rows)? {
        rows.customer(customer)?.customer.check_active()?;
    }
    Ok(())
}

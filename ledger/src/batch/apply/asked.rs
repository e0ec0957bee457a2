//! Operations on behalf of a token: what it may do, how much it may credit, and what a repetition is answered.

use super::apply;
use crate::batch::answer::KeptAnswer;
use crate::batch::operation::{Answered, Asked, ExpectedAct, Once, Operation, Outcome};
use crate::batch::rows::Rows;
use crate::{
    Amount, Change, CreditKind, CustomerAct, CustomerId, KeyChange, NewKey, Refusal, Scope, Token,
    TokenId, TokenRole,
};

/// Applies what a token asks for, once.
pub(super) fn asked(rows: &mut Rows, asked: &Asked) -> Result<Answered, Refusal> {
    if !asked.operation.is_administrative() {
        let text = "no token asks for this";
        return Err(Refusal::NotAllowed(text.to_owned()));
    }
    let token = asked.token.map(|id| rows.api_token(id).cloned());
    let token = token.transpose()?;
    if let Some(token) = &token {
        token.check_active(asked.at)?;
    }
    let mut is_known = false;
    if let Some(once) = &asked.once {
        match repeated(rows, asked, once)? {
            Some(answered) if answered.is_replay() => return Ok(answered),
            found => is_known = found.is_some(),
        }
    }
    if let Some(token) = &token {
        check_allowed(rows, token, &asked.operation)?;
    }
    check_unchanged(rows, asked)?;
    rows.asked_by = asked.token;
    let outcome = apply(rows, &asked.operation);
    rows.asked_by = None;
    let outcome = outcome?;
    let answer = asked.once.as_ref().map(|once| once.answer.of(&outcome));
    if let (Some(once), Some(answer), false) = (&asked.once, &answer, is_known) {
        let kept = KeptAnswer {
            token: asked.token,
            at: asked.at,
            operation: asked.operation.id(),
            body: once.body,
            answer: answer.clone(),
        };
        rows.keep_answer(once.id(asked.token), kept);
    }
    Ok(Answered {
        outcome: Some(outcome),
        answer,
    })
}

/// What an earlier request with the same key was answered. It is no replay if it was this very operation, whose commit got no answer.
fn repeated(rows: &Rows, asked: &Asked, once: &Once) -> Result<Option<Answered>, Refusal> {
    let id = once.id(asked.token);
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
    if new.id != id.first_key() || new.within.made_by.is_some() {
        return refused("a token that sells creates a customer's first key, and no further ones");
    }
    Ok(())
}

fn check_reissue(rows: &Rows, token: TokenId, change: &KeyChange) -> Result<(), Refusal> {
    let is_reissue = matches!(change.change, Change::Reissue { .. });
    if is_reissue && rows.key(change.key)?.token == Some(token) {
        return Ok(());
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

fn refused(why: &str) -> Result<(), Refusal> {
    Err(Refusal::NotAllowed(why.to_owned()))
}

/// The token that asks, with so much more credited today; `None` if none asks. Nothing is counted before it is stored.
pub(super) fn sold(rows: &Rows, amount: Amount) -> Result<Option<Token>, Refusal> {
    let Some(id) = rows.asked_by.filter(|_| amount.is_positive()) else {
        return Ok(None);
    };
    let mut token = rows.api_token(id)?.clone();
    token.sell(amount, rows.today())?;
    Ok(Some(token))
}

/// Stores what [`sold`] has counted.
pub(super) fn count(rows: &mut Rows, sold: Option<Token>) {
    if let Some(token) = sold.filter(|token| token.daily.is_some()) {
        rows.put_api_token(token);
    }
}

/// Refuses a payment that a token which sells cannot book: of a customer that is not active.
pub(super) fn check_payable(rows: &Rows, customer: CustomerId) -> Result<(), Refusal> {
    let Some(id) = rows.asked_by else {
        return Ok(());
    };
    match rows.api_token(id)?.role {
        TokenRole::Sell => rows.customer(customer)?.customer.check_active(),
        TokenRole::Read | TokenRole::Manage => Ok(()),
    }
}

//! Operations on behalf of a token or an owner key: what a token may do and how much of it, and what a repetition is answered.

use super::acting::{check_acts, refused};
use crate::batch::asker::{Asker, BoundedAsker};
use crate::batch::needs::{Few, Needs};
use crate::batch::operation::{AskableOperation, Asked, ExpectedAct, LedgerOperation, Once};
use crate::batch::outcome::{Answered, Outcome};
use crate::batch::rows::Rows;
use crate::rule::answer::KeptAnswer;
use crate::rule::auto_top_up::TopUpWish;
use crate::rule::payment::PaymentAddressee;
use crate::rule::token_day::TokenDeed;
use crate::table::needs::RowName;
use crate::{Amount, Credit, CustomerId, KeyId, OperationId, Refusal, Token, TokenDay, TokenRole};

/// Applies what is asked for, once.
fn asked(rows: &mut Rows, asked: &Asked) -> Result<Answered, Refusal> {
    let Some(askable) = asked.operation.askable() else {
        let text = "no token asks for this";
        return Err(Refusal::NotAllowed(text.to_owned()));
    };
    if let Some(token) = asked.by.token() {
        // Before the stored answers: a token that was revoked gets none of them, either.
        rows.api_token(token)?.check_active(asked.at)?;
    }
    let mut is_known = false;
    if let Some(once) = &asked.once {
        if let Asker::Owner(key) = asked.by {
            check_acts(rows, key)?;
        }
        // Before anything is judged: what the first request did may have changed what it would be judged by.
        match repeated(rows, asked, once, askable.id())? {
            Some(answered) if answered.is_replay() => return Ok(answered),
            found => is_known = found.is_some(),
        }
    }
    check_unchanged(rows, asked, askable.id())?;
    match asked.by {
        Asker::House => {}
        Asker::Token(token) => check_token(rows, rows.api_token(token)?, askable)?,
        Asker::Owner(key) => check_owner(rows, key, askable)?,
    }
    rows.asked_by = asked.by;
    let outcome = asked.operation.apply(rows);
    // Whatever came of it: the rows go on to the next operation.
    rows.asked_by = Asker::House;
    let outcome = outcome?;
    let answer = asked.once.as_ref().map(|once| once.answer.of(&outcome));
    if let (Some(once), Some(answer), false) = (&asked.once, &answer, is_known) {
        let token = asked.by.token();
        rows.keep_answer(KeptAnswer {
            id: once.id(asked.by),
            token,
            at: asked.at,
            operation: Some(askable.id()),
            body: once.body,
            answer: answer.clone(),
        });
    }
    Ok(Answered {
        outcome: Some(outcome),
        answer,
    })
}

/// What an earlier request with the same key was answered. It is no replay if it was this very operation, whose commit got no answer.
fn repeated(
    rows: &Rows,
    asked: &Asked,
    once: &Once,
    operation: OperationId,
) -> Result<Option<Answered>, Refusal> {
    let id = once.id(asked.by);
    if rows.running.contains(&id) {
        return Err(Refusal::StillRunning);
    }
    let forgotten = KeptAnswer::forgotten(asked.at);
    let known = rows.tables.get::<KeptAnswer>(&id);
    let Some(known) = known.filter(|known| known.at > forgotten) else {
        return Ok(None);
    };
    if known.body != once.body {
        return Err(Refusal::KeyOfOtherBody);
    }
    let is_this = known.operation == Some(operation);
    Ok(Some(Answered {
        outcome: is_this.then_some(Outcome::Done),
        answer: Some(known.answer.clone()),
    }))
}

/// Refuses a change of what was changed since the caller read it. By this very operation it was, if its commit got no answer.
fn check_unchanged(rows: &Rows, asked: &Asked, operation: OperationId) -> Result<(), Refusal> {
    let Some(ExpectedAct { of, position }) = asked.expected else {
        return Ok(());
    };
    let last = rows.last_act(of);
    if last == position || rows.act(operation).is_some() {
        return Ok(());
    }
    Err(Refusal::ChangedSince {
        of,
        last,
        expected: position,
    })
}

/// Refuses what a token's role does not cover.
fn check_token(
    rows: &Rows,
    token: &Token,
    operation: &dyn AskableOperation,
) -> Result<(), Refusal> {
    match token.role {
        TokenRole::Manage => Ok(()),
        TokenRole::Read => refused("a token that reads changes nothing"),
        TokenRole::Sell => operation.check_asked(rows, BoundedAsker::Seller(token.id)),
    }
}

/// Refuses what an owner key may not do.
fn check_owner(rows: &Rows, owner: KeyId, operation: &dyn AskableOperation) -> Result<(), Refusal> {
    check_acts(rows, owner)?;
    if !rows.key(owner)?.is_owner {
        return refused("only an owner key manages keys and caps");
    }
    operation.check_asked(rows, BoundedAsker::Owner(owner))
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
        rows.tables.put(day);
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

impl LedgerOperation for Asked {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        let (mut needs, token) = (self.operation.needs(), self.by.token());
        let once = self.once.as_ref();
        needs.rows.extend(token.map(RowName::Token));
        (needs.rows).extend(once.map(|once| RowName::Answer(once.id(self.by))));
        needs.last_act = self.expected.map(|expected| expected.of);
        needs.keys = with_asker(needs.keys, self.by.key());
        needs
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        asked(rows, self).map(Outcome::from)
    }

    fn clean(&mut self) {
        self.operation.clean();
    }
}

/// These keys, and the one that asks. What an owner asks for names at most one other.
fn with_asker(keys: Few<KeyId>, asker: Option<KeyId>) -> Few<KeyId> {
    match (keys, asker) {
        ([None, second], Some(asker)) => [Some(asker), second],
        ([first, None], Some(asker)) if first != Some(asker) => [first, Some(asker)],
        (keys, _) => keys,
    }
}

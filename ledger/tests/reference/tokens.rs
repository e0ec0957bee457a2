//! Tokens of the admin API in the reference store: what they may do, and what a repetition is answered, decided here once more.

use super::operations::{Done, not_applicable, picos};
use super::{State, next};
use crate::batch::operation::{Operation, Outcome};
use crate::book::house_act::{self, HouseSubject};
use crate::{
    Act, Amount, Answered, ApiAnswer, Asked, AuditRecord, Change, CreditKind, CustomerAct,
    CustomerId, CustomerStatus, HouseAct, NewToken, Once, OperationId, Refusal, Scope, SecretHash,
    Timestamp, Token, TokenId, TokenRole, UtcDay, clock,
};

/// A day in milliseconds.
const DAY: i64 = 86_400_000;

/// Token, path and key.
pub(super) type AnswerName = (Option<TokenId>, String, String);

/// What a request was answered.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    at: Timestamp,
    operation: Option<OperationId>,
    body: SecretHash,
    answer: ApiAnswer,
}

fn not_allowed(why: &str) -> Refusal {
    Refusal::NotAllowed(why.to_owned())
}

impl State {
    fn token(&self, id: TokenId) -> Done<&Token> {
        self.tokens.get(&id).ok_or(Refusal::NoSuchToken(id))
    }

    fn house_act(&self, operation: OperationId) -> Option<&HouseAct> {
        self.house_acts
            .iter()
            .find(|act| act.operation == operation)
    }

    pub(super) fn is_house_act(&self, operation: OperationId) -> bool {
        self.house_act(operation).is_some()
    }

    pub(super) fn create_token(&mut self, new: &NewToken) -> Done<Token> {
        let known = self.house_act(new.act.operation);
        let known = known.filter(|act| act.act == "create_token");
        if let Some(HouseSubject::Token(token)) = known.map(|act| act.of) {
            return self.token(token).cloned();
        }
        self.check_unused(new.act.operation)?;
        new.check()?;
        if self.tokens.contains_key(&new.id) {
            return Err(not_applicable(&format!("token id {} is taken", new.id)));
        }
        if self.tokens.values().any(|token| token.label == new.label) {
            return Err(not_applicable(&format!(
                "there is, or was, a token {:?}: acts name tokens by their labels, so choose another",
                new.label
            )));
        }
        let token = Token {
            id: new.id,
            label: new.label.clone(),
            role: new.role,
            daily: new.daily,
            expires_at: new.expires_at,
            is_revoked: false,
            secret: new.secret,
            sold: None,
            created_at: new.act.at,
            created_by: new.act.actor.clone(),
        };
        self.tokens.insert(new.id, token.clone());
        let details = house_act::created_token(new).to_string();
        self.write_house_act(
            HouseSubject::Token(new.id),
            "create_token",
            &new.act,
            details,
        );
        Ok(token)
    }

    pub(super) fn revoke_token(&mut self, id: TokenId, act: &Act) -> Done<Token> {
        let known = self.house_act(act.operation);
        if known
            .is_none_or(|known| known.act != "revoke_token" || known.of != HouseSubject::Token(id))
        {
            self.check_unused(act.operation)?;
            self.token(id)?;
            if let Some(token) = self.tokens.get_mut(&id) {
                token.is_revoked = true;
            }
            self.write_house_act(
                HouseSubject::Token(id),
                "revoke_token",
                act,
                "{}".to_owned(),
            );
        }
        self.token(id).cloned()
    }

    pub(super) fn write_house_act(
        &mut self,
        of: HouseSubject,
        word: &str,
        act: &Act,
        details: String,
    ) {
        self.house_acts.push(HouseAct {
            seq: next(self.house_acts.len()),
            at: act.at,
            actor: act.actor.clone(),
            act: word.to_owned(),
            of,
            operation: act.operation,
            details,
        });
    }

    pub(super) fn asked(&mut self, asked: &Asked) -> Done<Answered> {
        let is_act = matches!(
            asked.operation,
            Operation::Create(_)
                | Operation::Change(_)
                | Operation::Credit(_)
                | Operation::CreateCustomer(_)
                | Operation::Enrol(_)
                | Operation::ChangeCustomer(_)
                | Operation::Move(_)
                | Operation::Pay(_)
                | Operation::PayFirst(_)
                | Operation::Reverse(_)
                | Operation::EndUnapplied(_)
                | Operation::CreateLink { .. }
                | Operation::CreateLot(_)
                | Operation::VoidLot { .. }
        );
        if !is_act {
            return Err(not_allowed("no token asks for this"));
        }
        let token = asked.token.map(|id| self.token(id).cloned()).transpose()?;
        if let Some(token) = &token {
            let stopped = token.status(asked.at);
            if stopped != crate::TokenStatus::Active {
                return Err(Refusal::TokenStopped(stopped));
            }
        }
        let name = |once: &Once| (asked.token, once.path.clone(), once.key.clone());
        let mut is_known = false;
        if let Some(once) = &asked.once {
            let oldest = asked.at.millis().saturating_sub(DAY);
            let known = self.answers.get(&name(once));
            if let Some(known) = known.filter(|known| known.at.millis() > oldest) {
                if known.body != once.body {
                    return Err(Refusal::KeyOfOtherBody);
                }
                if known.operation != asked.operation.id() {
                    return Ok(Answered {
                        outcome: None,
                        answer: Some(known.answer.clone()),
                    });
                }
                is_known = true;
            }
        }
        match token.as_ref().map(|token| (token.role, token.id)) {
            Some((TokenRole::Read, _)) => {
                return Err(not_allowed("a token that reads changes nothing"));
            }
            Some((TokenRole::Sell, id)) => self.check_sale(id, &asked.operation)?,
            Some((TokenRole::Manage, _)) | None => {}
        }
        if let Some(expected) = &asked.expected {
            let last = self.last_act(expected.of);
            let is_done = (asked.operation.id()).is_some_and(|id| self.audited(id).is_some());
            if last != expected.position && !is_done {
                return Err(Refusal::ChangedSince {
                    of: expected.of,
                    last,
                    expected: expected.position,
                });
            }
        }
        self.asked_by = asked.token;
        let outcome = self.apply(&asked.operation);
        self.asked_by = None;
        let outcome = outcome?;
        let answer = asked.once.as_ref().map(|once| once.answer.of(&outcome));
        if let (Some(once), Some(answer), false) = (&asked.once, &answer, is_known) {
            let oldest = asked.at.millis().saturating_sub(DAY);
            self.answers.retain(|_, kept| kept.at.millis() > oldest);
            let kept = Kept {
                at: asked.at,
                operation: asked.operation.id(),
                body: once.body,
                answer: answer.clone(),
            };
            self.answers.insert(name(once), kept);
        }
        Ok(Answered {
            outcome: Some(outcome),
            answer,
        })
    }

    fn check_sale(&self, token: TokenId, operation: &Operation) -> Done<()> {
        let not_with_money = "a token that sells books payments, not credit with a key";
        let own_payments = "this token reverses only payments that it booked itself";
        match operation {
            Operation::Credit(credit) if credit.kind == CreditKind::TopUp => {
                let customer = match credit.to {
                    Scope::Key(key) => self.key(key)?.belongs_to,
                    Scope::Customer(customer) => customer,
                };
                self.check_served(customer)
            }
            Operation::Pay(_) | Operation::PayFirst(_) | Operation::CreateCustomer(_) => Ok(()),
            Operation::Enrol(both) if both.1.first_credit.is_none() => Ok(()),
            Operation::Enrol(_) => Err(not_allowed(not_with_money)),
            Operation::Create(new) => {
                if new.first_credit.is_some() {
                    return Err(not_allowed(not_with_money));
                }
                let Some(id) = new.within.customer else {
                    return Err(not_allowed(
                        "a token that sells creates a key for a customer that it made",
                    ));
                };
                if self.customer(id)?.token != Some(token) {
                    return Err(not_allowed("this token did not make this customer"));
                }
                if new.id.to_i64() != id.to_i64() || new.within.made_by.is_some() {
                    return Err(not_allowed(
                        "a token that sells creates a customer's first key, and no further ones",
                    ));
                }
                Ok(())
            }
            Operation::Reverse(new) => {
                let is_own = self
                    .payment(&new.payment)
                    .map(|payment| payment.token == Some(token));
                match is_own {
                    Some(true) => Ok(()),
                    None if self.named(&new.payment).is_none() => Ok(()),
                    _ => Err(not_allowed(own_payments)),
                }
            }
            Operation::Change(change)
                if matches!(change.change, Change::Reissue { .. })
                    && self.key(change.key)?.token == Some(token) =>
            {
                Ok(())
            }
            Operation::ChangeCustomer(change)
                if matches!(change.change, CustomerAct::FailTopUp { .. }) =>
            {
                Ok(())
            }
            Operation::Change(_) => Err(not_allowed(
                "a token that sells reissues unused keys that it made, and changes nothing else of keys",
            )),
            _ => Err(not_allowed("a token that sells may not do this")),
        }
    }

    /// The last act on a key, or on a customer itself, that was not about money.
    pub(super) fn last_act(&self, of: Scope) -> i64 {
        let is_money = |act: &str| {
            let acts = "top_up adjust refund write_off move unapplied assign return reverse";
            acts.split(' ').any(|one| one == act)
        };
        let is_of = |record: &&AuditRecord| match of {
            Scope::Key(key) => record.key == Some(key),
            Scope::Customer(customer) => record.customer == customer && record.key.is_none(),
        };
        let found = self.audit.iter().rev().filter(is_of);
        let mut found = found.filter(|record| !is_money(&record.act));
        found.next().map_or(0, |record| record.position)
    }

    fn check_served(&self, customer: CustomerId) -> Done<()> {
        match self.customer(customer)?.status {
            CustomerStatus::Active => Ok(()),
            stopped => Err(Refusal::CustomerStopped(stopped)),
        }
    }

    /// Refuses what the token that asks may not credit today.
    pub(super) fn check_daily(&self, more: Amount) -> Done<()> {
        let Some(token) = self.asked_by.filter(|_| more > Amount::ZERO) else {
            return Ok(());
        };
        let token = self.token(token)?;
        let Some(daily) = token.daily else {
            return Ok(());
        };
        let sold = token.sold_on(UtcDay::of(clock::now()));
        if picos(sold).saturating_add(picos(more)) > picos(daily) {
            return Err(Refusal::DailyReached {
                token: token.id,
                daily,
                sold,
                amount: more,
            });
        }
        Ok(())
    }

    /// Counts what the token that asks has credited.
    pub(super) fn count_daily(&mut self, more: Amount) {
        let today = UtcDay::of(clock::now());
        let token = self.asked_by.filter(|_| more > Amount::ZERO);
        let token = token.and_then(|id| self.tokens.get_mut(&id));
        if let Some(token) = token.filter(|token| token.daily.is_some()) {
            let sold = token.sold_on(today);
            token.sold = sold.checked_add(more).map(|sold| (today, sold));
        }
    }

    /// Refuses a payment that a token which sells cannot book.
    pub(super) fn check_payable(&self, customer: CustomerId) -> Done<()> {
        match self.asked_by.map(|id| self.token(id)).transpose()? {
            Some(token) if token.role == TokenRole::Sell => self.check_served(customer),
            _ => Ok(()),
        }
    }
}

/// The outcome of an operation that a token asked for.
pub(super) fn answered(done: Answered) -> Outcome {
    Outcome::Answered(Box::new(done))
}

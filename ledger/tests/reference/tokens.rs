//! Tokens of the admin API in the reference store: what they may do, and what a repetition is answered, decided here once more.

use super::operations::{Done, not_applicable, picos};
use super::{State, next};
use crate::batch::operation::Operation;
use crate::batch::outcome::Outcome;
use crate::book::house_act::{self, HouseSubject};
use crate::{
    Act, Amount, Answered, ApiAnswer, Asked, Asker, AuditRecord, Change, CreditKind, CustomerAct,
    CustomerEdit, CustomerId, CustomerStatus, DailyBound, DailyReached, HouseAct, KeyEdit, KeyId,
    Membership, NewToken, Once, OperationId, PlanAct, Refusal, Said, Scope, SecretHash, Timestamp,
    Token, TokenDay, TokenId, TokenRole, UtcDay, clock,
};

/// A day in milliseconds.
const DAY: i64 = 86_400_000;

/// Token, path and key.
pub(super) type AnswerName = (Option<TokenId>, Option<KeyId>, String, String);

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
    pub(super) fn token(&self, id: TokenId) -> Done<&Token> {
        self.tokens.get(&id).ok_or(Refusal::NoSuchToken(id))
    }

    pub(super) fn tokens_by_age(&self) -> Vec<Token> {
        let mut found: Vec<Token> = self.tokens.values().cloned().collect();
        found.sort_by_key(|token| (token.created_at, token.id));
        found
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
                | Operation::ChangePlan(_)
                | Operation::Move(_)
                | Operation::Pay(_)
                | Operation::PayFirst(_)
                | Operation::Reverse(_)
                | Operation::EndUnapplied(_)
                | Operation::CreateLink(_)
                | Operation::Visit(_)
                | Operation::Reserve(_)
                | Operation::EndReservation(_)
                | Operation::CreateLot(_)
                | Operation::VoidLot(_)
        );
        if !is_act {
            return Err(not_allowed("no token asks for this"));
        }
        let id = asked.by.token();
        let token = id.map(|id| self.token(id).cloned()).transpose()?;
        if let Some(token) = &token {
            let stopped = token.status(asked.at);
            if stopped != crate::TokenStatus::Active {
                return Err(Refusal::TokenStopped(stopped));
            }
        }
        let name = |once: &Once| (id, asked.by.key(), once.path.clone(), once.key.clone());
        let mut is_known = false;
        if let Some(once) = &asked.once {
            if let Asker::Owner(owner) = asked.by {
                self.active(owner, clock::now())?;
            }
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
        match token.as_ref().map(|token| (token.role, token.id)) {
            Some((TokenRole::Read, _)) => {
                return Err(not_allowed("a token that reads changes nothing"));
            }
            Some((TokenRole::Sell, id)) => self.check_sale(id, &asked.operation)?,
            Some((TokenRole::Manage, _)) | None => {}
        }
        if let Asker::Owner(owner) = asked.by {
            self.check_owner(owner, &asked.operation)?;
        }
        self.asked_by = asked.by;
        let outcome = self.apply(&asked.operation);
        self.asked_by = Asker::House;
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
        let not_with_list = "a token that sells gives nobody a price list";
        match operation {
            Operation::Credit(credit) if credit.kind == CreditKind::TopUp => {
                let customer = match credit.to {
                    Scope::Key(key) => self.key(key)?.belongs_to,
                    Scope::Customer(customer) => customer,
                };
                self.check_served(customer)
            }
            Operation::CreateCustomer(new) if new.settings.price_list.is_some() => {
                Err(not_allowed(not_with_list))
            }
            Operation::Pay(_)
            | Operation::PayFirst(_)
            | Operation::CreateCustomer(_)
            | Operation::Reserve(_)
            | Operation::EndReservation(_)
            | Operation::Visit(_) => Ok(()),
            Operation::Enrol(both) if both.key.first_credit.is_none() => {
                match both.customer.settings.price_list {
                    None => Ok(()),
                    Some(_) => Err(not_allowed(not_with_list)),
                }
            }
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
                self.check_served(id)?;
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
                self.active(change.key, clock::now()).map(drop)
            }
            Operation::ChangeCustomer(change)
                if matches!(change.change, CustomerAct::FailTopUp { .. }) =>
            {
                Ok(())
            }
            Operation::ChangeCustomer(change)
                if matches!(
                    change.change,
                    CustomerAct::SetAutoTopUp(..) | CustomerAct::ClearAutoTopUp
                ) =>
            {
                self.check_agreed(change.customer, token)
            }
            Operation::ChangePlan(change)
                if matches!(
                    change.change,
                    PlanAct::End | PlanAct::Change { at_once: false, .. }
                ) =>
            {
                let of = self.subscriptions.get(&change.subscription);
                if of.is_none_or(|of| of.state.token == Some(token)) {
                    return Ok(());
                }
                Err(not_allowed("this token did not sell this subscription"))
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
            let acts = "top_up adjust refund write_off move unapplied assign return reverse unapplied_reversal";
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

    /// The token that asks, if what it does in a day is counted.
    fn counted_token(&self) -> Option<Token> {
        let token = self.tokens.get(&self.asked_by.token()?)?;
        token.daily.is_some().then(|| token.clone())
    }

    fn today(&self, token: TokenId) -> TokenDay {
        let today = UtcDay::of(clock::now());
        let known = self.token_days.get(&(token, today)).copied();
        known.unwrap_or(TokenDay::empty(token, today))
    }

    /// The most of something that a token may do today.
    fn most(&self, token: &Token, what: DailyBound) -> Option<i128> {
        let daily = picos(token.daily?);
        if what != DailyBound::Credit && token.role != TokenRole::Sell {
            return None;
        }
        Some(match what {
            DailyBound::Credit | DailyBound::Reversed => daily,
            DailyBound::Customers | DailyBound::Keys | DailyBound::Reissues => {
                daily.checked_div(1_000_000_000_000).unwrap_or(0).max(20)
            }
            DailyBound::ReversedPayments => {
                let today = UtcDay::of(clock::now()).number();
                let days = self.token_days.values();
                let days = days.filter(|day| day.token == token.id);
                let days = days.filter(|day| today.saturating_sub(day.day.number()) < 60);
                days.map(|day| i128::from(day.payments)).sum()
            }
            DailyBound::Unapplied => 200,
        })
    }

    /// Refuses what the token that asks may not do so much of today.
    pub(super) fn check_daily(&self, what: DailyBound, more: i128) -> Done<()> {
        let Some(token) = self.counted_token() else {
            return Ok(());
        };
        let day = self.today(token.id);
        let done = i128::from(day.done(what));
        let reserved = match what {
            DailyBound::Credit => self.reserved_by(token.id),
            _ => 0,
        };
        match self.most(&token, what) {
            Some(most) if done.saturating_add(more).saturating_add(reserved) > most => {
                let number = |of: i128| i64::try_from(of).unwrap_or(i64::MAX);
                Err(Refusal::DailyReached(Box::new(DailyReached {
                    token: token.id,
                    what,
                    most: number(most),
                    done: number(done),
                    reserved: number(reserved),
                    more: number(more),
                    ends_at: day.day.next().begin(),
                })))
            }
            _ => Ok(()),
        }
    }

    /// Counts what the token that asks has done.
    pub(super) fn count_daily(&mut self, what: DailyBound, more: i128) {
        let Some(token) = self.counted_token() else {
            return;
        };
        let mut day = self.today(token.id);
        let sum = i128::from(day.done(what)).saturating_add(more);
        let sum = i64::try_from(sum).unwrap_or(i64::MAX);
        match what {
            DailyBound::Credit => day.booked = Amount::from_picos(sum),
            DailyBound::Customers => day.customers = sum,
            DailyBound::Keys => day.keys = sum,
            DailyBound::Reissues => day.reissues = sum,
            DailyBound::Reversed => day.reversed = Amount::from_picos(sum),
            DailyBound::ReversedPayments => day.reversed_payments = sum,
            DailyBound::Unapplied => day.unapplied = sum,
        }
        self.token_days.insert((token.id, day.day), day);
    }

    /// Checks and counts one of these.
    pub(super) fn one_more(&mut self, what: DailyBound) -> Done<()> {
        self.check_daily(what, 1)?;
        self.count_daily(what, 1);
        Ok(())
    }

    /// Refuses what the token that asks may not credit today.
    pub(super) fn check_booked(&self, more: Amount) -> Done<()> {
        self.check_daily(DailyBound::Credit, picos(more).max(0))
    }

    /// Counts what the token that asks has credited, for a payment or not.
    pub(super) fn count_booked(&mut self, more: Amount, is_payment: bool) {
        if more <= Amount::ZERO {
            return;
        }
        self.count_daily(DailyBound::Credit, picos(more));
        if let (Some(token), true) = (self.counted_token(), is_payment) {
            let mut day = self.today(token.id);
            day.payments = day.payments.saturating_add(1);
            self.token_days.insert((token.id, day.day), day);
        }
    }

    /// Whether a token that sells asks.
    pub(super) fn is_sold(&self) -> bool {
        let token = self.asked_by.token().and_then(|id| self.tokens.get(&id));
        token.is_some_and(|token| token.role == TokenRole::Sell)
    }

    /// Refuses what an owner key may not ask for.
    fn check_owner(&self, owner: KeyId, operation: &Operation) -> Done<()> {
        let own = self.active(owner, clock::now())?;
        let nothing_else = "an owner key sets caps and the low balance of its customer and ends its auto top-up, and nothing else";
        if !self.key(owner)?.is_owner {
            return Err(not_allowed("only an owner key manages keys and caps"));
        }
        match operation {
            Operation::Create(new) => {
                let within = Membership {
                    customer: Some(own.id),
                    is_owner: false,
                    made_by: Some(owner),
                };
                if new.within != within || new.first_credit.is_some() {
                    let text = "an owner key makes members of its own customer, without credit";
                    return Err(not_allowed(text));
                }
            }
            Operation::Change(change) => {
                if self.key(change.key)?.belongs_to != own.id {
                    return Err(Refusal::NoSuchKey(change.key));
                }
                let is_made = self.key(change.key)?.counts_in == Some(owner);
                match &change.change {
                    Change::Block if change.key == owner => {
                        return Err(not_allowed(
                            "an owner key does not block itself; rotate it instead, or block it with another owner key",
                        ));
                    }
                    Change::Edit(KeyEdit {
                        models: Said::Keep,
                        expires_at: Said::Keep,
                        rate: Said::Keep,
                        concurrency: Said::Keep,
                        ..
                    })
                    | Change::SetPurse(_)
                    | Change::Revoke
                    | Change::Reissue { .. }
                        if is_made => {}
                    Change::Edit(_)
                    | Change::SetPurse(_)
                    | Change::Revoke
                    | Change::Reissue { .. } => {
                        return Err(not_allowed(
                            "an owner key rotates, blocks, unblocks and bounds keys, names, reissues and revokes those that it made, and \
                             changes nothing else of them",
                        ));
                    }
                    _ => {}
                }
            }
            Operation::ChangeCustomer(change) => {
                if change.customer != own.id {
                    return Err(Refusal::NoSuchCustomer(change.customer));
                }
                match &change.change {
                    CustomerAct::SetCap(_)
                    | CustomerAct::ClearCap { .. }
                    | CustomerAct::ClearAutoTopUp => {}
                    CustomerAct::Edit(edit) => {
                        let mut others = edit.clone();
                        others.low_balance = Said::Keep;
                        if others != CustomerEdit::default() {
                            return Err(not_allowed(nothing_else));
                        }
                    }
                    _ => return Err(not_allowed(nothing_else)),
                }
            }
            Operation::CreateLink(new) if new.key == owner => {}
            _ => return Err(not_allowed("an owner key may not do this")),
        }
        Ok(())
    }

    /// Refuses a payment that a token which sells cannot book.
    pub(super) fn check_payable(&self, customer: CustomerId) -> Done<()> {
        if self.is_sold() {
            self.check_served(customer)?;
        }
        Ok(())
    }
}

/// The outcome of an operation that a token asked for.
pub(super) fn answered(done: Answered) -> Outcome {
    Outcome::Answered(Box::new(done))
}

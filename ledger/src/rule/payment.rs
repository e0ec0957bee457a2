//! Payments, and what of them goes back. Pure.
//!
//! Processors tell about money that goes back in cumulative amounts, more than once and in any order. So a payment keeps the largest
//! of each kind that was ever told, and everything else follows from these three registers: what is due, and therefore what has to be
//! booked when they move. What is due and not there is the customer's claim; it is owed before anything can be spent.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

use crate::value::gross::Gross;
use crate::value::reference;
use crate::value::text::{check_text, is_unseen};
use crate::{
    Account, Act, Amount, CustomerId, NewCustomer, OperationId, PaidPeriods, PersonalData,
    PlanPurchase, Refusal, ReservationId, Timestamp, TokenId,
};

/// What was paid, and in what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PaidSum {
    /// Three letters, as in `EUR`.
    pub currency: String,
    /// What was paid, tax included.
    pub gross: Gross,
    /// The part of `gross` that is tax.
    pub tax: Gross,
}

impl PaidSum {
    /// What a top-up without particulars was: its amount, in US dollars, without tax. What no currency can
    /// express is rounded down, to at least its smallest part.
    #[must_use]
    pub fn in_usd(amount: Amount) -> Self {
        let parts = amount.picos().div_euclid(100_000_000);
        Self {
            currency: "USD".to_owned(),
            gross: Gross::from_parts(parts.max(1)).unwrap_or_default(),
            tax: Gross::ZERO,
        }
    }

    /// Checks that it can be a payment.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let is_code =
            self.currency.len() == 3 && self.currency.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_code {
            let text = "a currency is three capital letters, as in EUR";
            return Err(Refusal::NotApplicable(text.to_owned()));
        }
        if !self.gross.is_positive() {
            let text = "a payment's gross amount must be more than zero";
            return Err(Refusal::Limit(text.to_owned()));
        }
        if self.tax >= self.gross {
            let text = "a payment's tax must be less than its gross amount";
            return Err(Refusal::Limit(text.to_owned()));
        }
        Ok(())
    }
}

/// What was told about money that goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReversalKind {
    /// The seller paid it back.
    Refund,
    /// A dispute took it.
    Dispute,
    /// A dispute gave it back.
    DisputeWon,
}

impl ReversalKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refund => "refund",
            Self::Dispute => "dispute",
            Self::DisputeWon => "dispute_won",
        }
    }
}

/// Of each kind, the largest cumulative amount that was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Registers {
    /// Paid back by the seller.
    pub refunded: Gross,
    /// Taken by disputes.
    pub withdrawn: Gross,
    /// Given back by disputes.
    pub reinstated: Gross,
}

impl Registers {
    /// Takes in what was told.
    pub fn tell(&mut self, kind: ReversalKind, cumulative: Gross) {
        let register = match kind {
            ReversalKind::Refund => &mut self.refunded,
            ReversalKind::Dispute => &mut self.withdrawn,
            ReversalKind::DisputeWon => &mut self.reinstated,
        };
        *register = cumulative.max(*register);
    }

    /// The largest of a kind.
    const fn of(&self, kind: ReversalKind) -> Gross {
        match kind {
            ReversalKind::Refund => self.refunded,
            ReversalKind::Dispute => self.withdrawn,
            ReversalKind::DisputeWon => self.reinstated,
        }
    }

    /// What of a payment of this size has gone back.
    pub fn reversed(&self, gross: Gross) -> Gross {
        let disputed = self
            .withdrawn
            .parts()
            .saturating_sub(self.reinstated.parts())
            .max(0);
        let back = self.refunded.parts().saturating_add(disputed);
        Gross::from_parts(back.min(gross.parts())).unwrap_or(gross)
    }

    /// What of the credit that a payment bought is due: its share, rounded down, and all of it for all of the payment.
    pub fn due(&self, paid: &PaidSum, credit: Amount) -> Amount {
        let reversed = self.reversed(paid.gross);
        if reversed >= paid.gross {
            return credit;
        }
        let share = i128::from(credit.picos())
            .checked_mul(reversed.parts().into())
            .and_then(|share| share.checked_div(paid.gross.parts().into()));
        share
            .and_then(|picos| i64::try_from(picos).ok())
            .map_or(credit, Amount::from_picos)
    }
}

/// What was told about money that goes back, and is not booked: a bound of the token that told it refused it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingReversal {
    /// What kind.
    pub kind: ReversalKind,
    /// The largest cumulative amount that was told.
    pub cumulative: Gross,
    /// The name of the message that told it.
    pub reference: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// `refund of 5.95 (re_1) is not booked`.
impl fmt::Display for WaitingReversal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            cumulative,
            reference,
            ..
        } = self;
        let kind = kind.as_str();
        write!(out, "{kind} of {cumulative} ({reference}) is not booked")
    }
}

/// Where a payment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum PaymentStatus {
    /// Its credit was booked.
    Booked,
    /// Its money came, and its credit could not be booked.
    Unapplied {
        /// Why not.
        why: String,
    },
    /// It could not be booked, and its money was sent back.
    Returned,
}

/// A payment that has particulars: of the shop, or one of which something went back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Its own name, unique in the ledger.
    pub reference: String,
    /// Whose it is.
    pub customer: CustomerId,
    /// In the payer's currency, for receipts: what is credited does not follow from it.
    pub paid: PaidSum,
    /// The credit that it bought.
    pub credit: Amount,
    /// The periods of a plan, if it bought such: then its credit is what they give, and none of it is the pool's.
    pub plan: Option<Box<PaidPeriods>>,
    /// What went back.
    pub registers: Registers,
    /// What went back and is not booked yet; at most one of each kind.
    pub waiting: Vec<WaitingReversal>,
    /// Where it is.
    pub status: PaymentStatus,
    /// Who told the ledger about it first.
    pub actor: String,
    /// The token of the admin API that told it; `None` if it was told here.
    pub token: Option<TokenId>,
    /// When.
    pub at: Timestamp,
}

impl Payment {
    /// Whether its money came and could not be booked.
    pub(crate) const fn is_unapplied(&self) -> bool {
        match self.status {
            PaymentStatus::Unapplied { .. } => true,
            PaymentStatus::Booked | PaymentStatus::Returned => false,
        }
    }

    /// Takes in what was told. What waited for as much waits no more.
    pub(crate) fn tell(&mut self, kind: ReversalKind, cumulative: Gross) {
        self.registers.tell(kind, cumulative);
        let booked = self.registers.of(kind);
        self.waiting
            .retain(|waiting| waiting.kind != kind || waiting.cumulative > booked);
    }

    /// What of this kind is not booked yet.
    pub(crate) fn waits_for(&self, kind: ReversalKind) -> Option<&WaitingReversal> {
        self.waiting.iter().find(|waiting| waiting.kind == kind)
    }

    /// Keeps what was told without booking it.
    pub(crate) fn wait(&mut self, new: &NewReversal) {
        let told = WaitingReversal {
            kind: new.kind,
            cumulative: new.cumulative,
            reference: reference::normal(&new.reference),
            at: new.act.at.millis(),
        };
        match self.waiting.iter_mut().find(|known| known.kind == new.kind) {
            Some(known) if known.cumulative < told.cumulative => *known = told,
            Some(_) => {}
            None => self.waiting.push(told),
        }
    }

    /// What entries have taken for what is due of it: of periods, what was used at its price, and nothing of those that had not begun.
    pub(crate) fn taken(&self) -> Amount {
        match &self.plan {
            Some(plan) => plan.taken(),
            None => self.due(),
        }
    }

    /// What of its credit is due. Nothing is while it is not booked: then it gave none.
    pub fn due(&self) -> Amount {
        match self.status {
            PaymentStatus::Booked => self.registers.due(&self.paid, self.credit),
            PaymentStatus::Unapplied { .. } | PaymentStatus::Returned => Amount::ZERO,
        }
    }
}

/// Whom a payment's receipt is addressed to. It stands beside the books, as all personal data does, and goes with its customer's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PaymentAddressee {
    /// Whoever paid said nothing.
    Nobody,
    /// Whoever paid.
    Buyer(PersonalData),
    /// The customer, as it is described now, if it is: it paid itself, or its seller booked the payment.
    Customer,
    /// As it is, and now of this customer, to whom the payment was assigned.
    Unchanged,
}

/// Whom the receipts of a customer's payments are addressed to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addressees(BTreeMap<String, Option<PersonalData>>);

impl Addressees {
    /// By the folded references of payments.
    #[must_use]
    pub fn new(rows: Vec<(String, CustomerId, Option<PersonalData>)>) -> Self {
        let named = rows.into_iter().map(|(folded, _, data)| (folded, data));
        Self(named.collect())
    }

    /// The addressee of a payment, which may be nobody. `None` for a payment from before payments had addressees, or before its customer had
    /// a name.
    pub fn of(&self, payment: &str) -> Option<Option<&PersonalData>> {
        self.0.get(&reference::folded(payment)).map(Option::as_ref)
    }
}

/// What somebody was asked to pay, tax included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedSum {
    /// In which currency.
    pub currency: String,
    /// How much.
    pub gross: Gross,
}

/// A payment to book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPayment {
    /// Who gets the credit.
    pub customer: CustomerId,
    /// In the payer's currency, for receipts: what is credited does not follow from it.
    pub paid: PaidSum,
    /// The credit that it buys; positive.
    pub credit: Amount,
    /// Its own name; unique in the ledger, ignoring case and surrounding spaces.
    pub reference: String,
    /// Whom its receipt is addressed to, if whoever paid said so.
    pub addressee: Option<PersonalData>,
    /// What whoever paid was asked for, if that is known: another sum is not booked.
    pub expected: Option<AskedSum>,
    /// What was reserved for it, if anything was.
    pub reservation: Option<ReservationId>,
    /// The periods of a plan, if it buys such: its credit is what they give.
    pub plan: Option<Box<PlanPurchase>>,
    /// Why the catalog does not sell what was paid: then the money is kept as unapplied.
    pub unsold: Option<String>,
    /// By whom and when.
    pub act: Act,
}

/// A customer to create together with its first payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstPayment {
    /// The customer.
    pub customer: NewCustomer,
    /// Its first payment.
    pub payment: NewPayment,
}

impl NewPayment {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        reference::check(&self.reference)?;
        PersonalData::check_new(self.addressee.as_ref())?;
        check_text("an actor", &self.act.actor, 200, false)?;
        if let Some(plan) = &self.plan {
            plan.check()?;
            if plan.allowance() != self.credit {
                let text = format!(
                    "{} periods of {} give {}, not {}",
                    plan.periods,
                    plan.terms.name,
                    plan.allowance(),
                    self.credit
                );
                return Err(Refusal::NotApplicable(text));
            }
        }
        self.paid.check()
    }

    /// Refuses to book what the catalog does not sell.
    pub(crate) fn check_sold(&self) -> Result<(), Refusal> {
        let why = self.unsold.clone();
        why.map_or(Ok(()), |why| Err(Refusal::NotApplicable(why)))
    }

    /// Refuses to book another sum than was asked for.
    pub(crate) fn check_sum(&self) -> Result<(), Refusal> {
        let PaidSum {
            currency,
            gross,
            tax: _,
        } = &self.paid;
        match &self.expected {
            Some(asked) if (currency, gross) != (&asked.currency, &asked.gross) => {
                Err(Refusal::NotApplicable(format!(
                    "{gross} {currency} was paid where {} {} was asked",
                    asked.gross, asked.currency
                )))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a payment that is known, with the reason of its credit's entry, is this one. It may have been assigned to another customer
    /// meanwhile, of which its processor knows nothing.
    pub(crate) fn repeats(&self, known: &Payment, reason: Option<&str>) -> bool {
        self.is_same_sum(known)
            && (self.customer == known.customer || reason == Some(&*assigned(self.customer)))
    }

    /// Whether a payment that is known is of the same money.
    pub(crate) fn is_same_sum(&self, known: &Payment) -> bool {
        let plan = known.plan.as_ref().map(|plan| plan.subscription);
        (&self.paid, self.credit) == (&known.paid, known.credit)
            && plan == self.plan.as_ref().map(|plan| plan.subscription)
    }

    /// As it is stored.
    pub(crate) fn payment(&self, status: PaymentStatus) -> Payment {
        Payment {
            reference: reference::normal(&self.reference),
            customer: self.customer,
            paid: self.paid.clone(),
            credit: self.credit,
            plan: self.plan.as_ref().map(|plan| Box::new(plan.paid())),
            registers: Registers::default(),
            waiting: Vec::new(),
            status,
            actor: self.act.actor.clone(),
            token: None,
            at: self.act.at,
        }
    }
}

/// What a processor told about money that goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReversal {
    /// The payment's reference.
    pub payment: String,
    /// What kind.
    pub kind: ReversalKind,
    /// All of this kind so far, tax included: in the payment's currency, or in that of `whole`.
    pub cumulative: Gross,
    /// What the processor says that the payment was, in whatever currency: the same part of it went back.
    pub whole: Option<Gross>,
    /// The name of this message; no entry but its own ever carries it.
    pub reference: String,
    /// By whom and when.
    pub act: Act,
}

impl NewReversal {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        reference::check(&self.payment)?;
        reference::check(&self.reference)?;
        if reference::is_same_reference(&self.payment, &self.reference) {
            let text = "a reversal needs a reference of its own, not its payment's";
            return Err(Refusal::NotApplicable(text.to_owned()));
        }
        if self.whole == Some(Gross::ZERO) {
            let text = "a part of nothing cannot go back: say what the payment was";
            return Err(Refusal::Limit(text.to_owned()));
        }
        check_text("an actor", &self.act.actor, 200, false)
    }

    /// The same in the payment's own currency, rounded down; all of it for all that the processor names.
    pub(crate) fn in_currency_of(&self, paid: &PaidSum) -> Self {
        let part = |whole: Gross| {
            let part = i128::from(paid.gross.parts())
                .checked_mul(self.cumulative.parts().min(whole.parts()).into())
                .and_then(|part| part.checked_div(whole.parts().into()));
            let part = part.and_then(|part| i64::try_from(part).ok());
            part.and_then(Gross::from_parts).unwrap_or(paid.gross)
        };
        Self {
            cumulative: self.whole.map_or(self.cumulative, part),
            whole: None,
            ..self.clone()
        }
    }

    /// Why its entry was made, of a payment with this reference.
    pub(crate) fn reason(&self, payment: &str) -> String {
        let kind = self.kind.as_str();
        format!("{kind} of payment {payment}, {} so far", self.cumulative)
    }
}

/// What happens to a payment that could not be booked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnappliedAct {
    /// The payment's reference.
    pub payment: String,
    /// What to do with it.
    pub end: UnappliedEnd,
    /// By whom and when.
    pub act: Act,
}

/// The two ends of a payment that could not be booked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnappliedEnd {
    /// Book its credit on a customer.
    Assign(CustomerId),
    /// Its money was sent back.
    Return {
        /// How and why, for the audit.
        reason: String,
    },
}

impl UnappliedEnd {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Assign(_) => Ok(()),
            Self::Return { reason } if reason.chars().any(is_unseen) => {
                let text = "a reason must not contain characters that cannot be seen";
                Err(Refusal::NotApplicable(text.to_owned()))
            }
            Self::Return { reason } => check_text("a reason", reason, 1000, true),
        }
    }
}

/// An account with what is owed before anything can be spent. A claim stands only while nothing that was paid is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) account: Account,
    pub(crate) claim: Amount,
    /// What of the account was paid and is free.
    pub(crate) payable: Amount,
}

impl Claimed {
    /// Changes what is due by a difference, and returns what this takes from the account (negative) or gives to it.
    pub(crate) fn move_due(self, before: Amount, after: Amount) -> Result<(Self, Amount), Refusal> {
        let too_large = || Refusal::Limit("the amounts are too large".to_owned());
        let more = after.checked_sub(before).ok_or_else(too_large)?;
        let claim = self.claim.checked_add(more).ok_or_else(too_large)?;
        if claim.is_negative() {
            // More was taken than is due now.
            let given = claim.checked_neg().ok_or_else(too_large)?;
            let account = self.account.give_back(given)?;
            let claim = Amount::ZERO;
            let paid = Self {
                account,
                claim,
                ..self
            };
            return Ok((paid, given));
        }
        Self { claim, ..self }.collect()
    }

    /// Pays the claim with what is available, and returns what this takes from the account: zero or negative.
    pub(crate) fn collect(self) -> Result<(Self, Amount), Refusal> {
        let taken = self.claim.min(self.payable);
        if !taken.is_positive() {
            return Ok((self, Amount::ZERO));
        }
        let too_large = || Refusal::Limit("the amounts are too large".to_owned());
        let less = taken.checked_neg().ok_or_else(too_large)?;
        let collected = Self {
            account: self.account.adjust(less)?,
            claim: self.claim.checked_sub(taken).ok_or_else(too_large)?,
            payable: self.payable.checked_sub(taken).ok_or_else(too_large)?,
        };
        Ok((collected, less))
    }
}

/// Why the credit of a payment that was told for this customer was booked later, on whom it was assigned to.
pub(crate) fn assigned(told_for: CustomerId) -> String {
    format!("paid for {told_for}")
}

/// The operation of the entry that pays a claim out of what another operation made available: derived, so that a repetition finds
/// it.
pub(crate) fn collection_of(cause: OperationId) -> OperationId {
    cause.derived(b"farebox claim")
}

#[cfg(test)]
#[path = "payment/tests.rs"]
mod tests;

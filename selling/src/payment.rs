//! Money: top-ups, corrections, refunds, moves, payments and what of them goes back; and their documents.

use farebox_ledger::{
    Account, Amount, AskedSum, CreditKind, CustomerId, Ledger, LedgerError, Moved, NewMove,
    NewPayment, NewReversal, OperationId, PaidSum, Payment, PaymentMoved, PaymentStatus, Posted,
    Refusal, ReversalKind, Scope, Timestamp, UnappliedAct, UnappliedEnd, WaitingReversal, clock,
    document,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::customer::{CustomerDocument, personal};
use super::entry::EntryDocument;
use super::key::KeyDocument;
use super::value::{
    Currency, CustomerName, Instant, OneLine, PaidAmount, ReservationName, SignedUsd, Usd, Word,
    Worded,
};
use super::{Deed, Doer, SellerAct, Unfit, reads};

/// Book a payment, once. One that cannot be booked is stored as unapplied and answered with 202
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct TopUp {
    /// The credit that it buys, in USD without tax, as 25 or 25.50
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true))]
    pub amount: Usd,
    /// The payment's own name, as your processor's id of it; unique
    #[cfg_attr(feature = "clap", arg(long))]
    pub reference: OneLine,
    /// What was paid in, as EUR; USD unless you say
    #[cfg_attr(feature = "clap", arg(long, value_name = "CODE", requires = "gross"))]
    pub currency: Option<Currency>,
    /// What was paid, tax included, in that currency, as 11.90; the credit unless you say
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "AMOUNT",
            value_parser = some,
            requires = "currency",
            allow_negative_numbers = true
        )
    )]
    pub gross: Option<PaidAmount>,
    /// The tax in it; none unless you say
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "AMOUNT",
            requires = "gross",
            allow_negative_numbers = true
        )
    )]
    pub tax: Option<PaidAmount>,
    /// What the buyer was asked to pay, in which currency; a payment of another sum is stored as unapplied
    #[cfg_attr(feature = "clap", arg(skip))]
    pub expected_currency: Option<Currency>,
    /// And how much, tax included
    #[cfg_attr(feature = "clap", arg(skip))]
    pub expected_gross: Option<PaidAmount>,
    /// What was reserved for it, which ends
    #[cfg_attr(feature = "clap", arg(skip))]
    pub reservation: Option<ReservationName>,
    /// Whom the receipt is addressed to; kept beside the books
    #[cfg_attr(feature = "clap", arg(skip))]
    pub name: Option<OneLine>,
    /// And where
    #[cfg_attr(feature = "clap", arg(skip))]
    pub address: Option<String>,
}

impl SellerAct for TopUp {
    type Of = Scope;
    const EXAMPLE: &'static str =
        r#"{"amount":"10","reference":"pi_1001","currency":"EUR","gross":"11.90","tax":"1.90"}"#;

    async fn deed(self, of: Scope, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let customer = payer(of, doer.ledger).await?;
        let said = (self.currency, self.gross, self.tax);
        let paid = paid_sum(said)?.unwrap_or_else(|| PaidSum::in_usd(self.amount.0));
        let expected = asked_sum(self.expected_currency, self.expected_gross)?;
        Ok(NewPayment {
            customer,
            paid,
            expected,
            credit: self.amount.0,
            reference: self.reference.0,
            addressee: personal(self.name, self.address, Vec::new()),
            reservation: self.reservation.map(Into::into),
            plan: None,
            unsold: None,
            act: doer.act(),
        }
        .into())
    }

    fn after(&self, account: Account) -> Option<Result<Account, Refusal>> {
        Some(account.top_up(self.amount.0))
    }
}

/// What was paid, if it is said.
pub(crate) fn paid_sum(
    said: (Option<Currency>, Option<PaidAmount>, Option<PaidAmount>),
) -> Result<Option<PaidSum>, Unfit> {
    match said {
        (Some(currency), Some(gross), tax) => Ok(Some(PaidSum {
            currency: currency.0,
            gross: gross.0,
            tax: tax.map(Into::into).unwrap_or_default(),
        })),
        (None, None, None) => Ok(None),
        (Some(_), None, _) | (None, Some(_), _) | (None, None, Some(_)) => {
            let why = "`currency` and `gross` go together, and `tax` with them: what was paid, tax included";
            Err(Unfit::Incomplete(None, why))
        }
    }
}

/// What the buyer was asked to pay, if it is said.
pub(crate) fn asked_sum(
    currency: Option<Currency>,
    gross: Option<PaidAmount>,
) -> Result<Option<AskedSum>, Unfit> {
    match (currency, gross) {
        (Some(currency), Some(gross)) => Ok(Some(AskedSum {
            currency: currency.0,
            gross: gross.0,
        })),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => {
            let why = "`expected_currency` and `expected_gross` go together: what the buyer was asked to pay";
            Err(Unfit::Incomplete(None, why))
        }
    }
}

/// Whose a payment is: a key's is its customer's, unless nobody can use the key any more.
async fn payer(of: Scope, ledger: &dyn Ledger) -> Result<CustomerId, LedgerError> {
    match of {
        Scope::Customer(customer) => Ok(customer),
        Scope::Key(key) => {
            let key = reads::key(ledger, key).await?;
            key.check_payable()?;
            Ok(key.belongs_to)
        }
    }
}

/// A command that tells of nothing is a slip.
#[cfg(feature = "clap")]
pub(crate) fn some(text: &str) -> Result<PaidAmount, String> {
    match text.parse()? {
        PaidAmount(farebox_ledger::Gross::ZERO) => {
            Err("type more than zero, like 11.90".to_owned())
        }
        paid => Ok(paid),
    }
}

/// Take in what went back of a payment: a refund, a dispute, or a dispute that was won. What a daily bound refuses is kept and answered with 202
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Reverse {
    /// The reference of the payment that went back
    #[cfg_attr(feature = "clap", arg(value_name = "PAYMENT_REFERENCE"))]
    pub payment: OneLine,
    /// Which way: refund (you paid it back), dispute (one took it) or dispute-won (one gave it back)
    #[cfg_attr(feature = "clap", arg(long))]
    pub kind: Word<WayBack>,
    /// All of it that went back this way so far, tax included, as 11.90: in the payment's currency, or in that of `whole`
    #[cfg_attr(
        feature = "clap",
        arg(value_parser = some, allow_negative_numbers = true)
    )]
    pub cumulative: PaidAmount,
    /// What your processor says that the whole payment was: the same part of it went back, rounded down, whatever it was paid in
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "AMOUNT", value_parser = some, allow_negative_numbers = true)
    )]
    pub whole: Option<PaidAmount>,
    /// The name of this message; unique
    #[cfg_attr(feature = "clap", arg(long))]
    pub reference: OneLine,
}

/// How a payment went back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WayBack {
    /// The seller paid it back
    Refund,
    /// A dispute took it
    Dispute,
    /// A dispute gave it back
    DisputeWon,
}

impl Worded for WayBack {
    const ALL: &'static [Self] = &[Self::Refund, Self::Dispute, Self::DisputeWon];
}

impl From<ReversalKind> for WayBack {
    fn from(kind: ReversalKind) -> Self {
        match kind {
            ReversalKind::Refund => Self::Refund,
            ReversalKind::Dispute => Self::Dispute,
            ReversalKind::DisputeWon => Self::DisputeWon,
        }
    }
}

impl From<WayBack> for ReversalKind {
    fn from(way: WayBack) -> Self {
        match way {
            WayBack::Refund => Self::Refund,
            WayBack::Dispute => Self::Dispute,
            WayBack::DisputeWon => Self::DisputeWon,
        }
    }
}

impl SellerAct for Reverse {
    /// Whose payment it must be, if that is said.
    type Of = Option<CustomerId>;
    const EXAMPLE: &'static str =
        r#"{"payment":"pi_1001","kind":"refund","cumulative":"5.95","reference":"re_1001"}"#;

    async fn deed(self, of: Option<CustomerId>, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        if let Some(customer) = of
            && let Some(known) = doer.ledger.payment(&self.payment.0).await?
            && known.customer != customer
        {
            return Err(Unfit::OfAnother(self.payment.0, known.customer));
        }
        Ok(NewReversal {
            payment: self.payment.0,
            kind: self.kind.0.into(),
            cumulative: self.cumulative.0,
            whole: self.whole.map(Into::into),
            reference: self.reference.0,
            act: doer.act(),
        }
        .into())
    }
}

/// Correct a customer's credit in either direction. Upwards it is a promotional grant without an end, unless it was paid
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Adjust {
    /// USD with a sign, as +2.50 or -10; at most what is available can be taken
    #[cfg_attr(
        feature = "clap",
        arg(allow_hyphen_values = true, value_name = "±AMOUNT")
    )]
    pub amount: SignedUsd,
    /// Why, for the journal
    #[cfg_attr(feature = "clap", arg(long))]
    pub reason: OneLine,
    /// Its own name: a repeated one is applied only once, for ever
    #[cfg_attr(feature = "clap", arg(long))]
    pub reference: OneLine,
    /// What it gives was paid, and counts as a payment does
    #[cfg_attr(feature = "clap", arg(long, action = clap::ArgAction::SetTrue))]
    pub paid: Option<bool>,
}

impl SellerAct for Adjust {
    type Of = Scope;
    const EXAMPLE: &'static str =
        r#"{"amount":"+2.50","reason":"a slow day","reference":"sorry-1001"}"#;

    async fn deed(self, of: Scope, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let (reason, is_paid) = (self.reason.0, self.paid.unwrap_or_default());
        if is_paid && self.amount.0.is_negative() {
            let why = "only credit that is given can be paid; leave it out to take some";
            return Err(Unfit::Member("paid", why));
        }
        let kind = CreditKind::Adjust { reason, is_paid };
        Ok(Deed::of_credit(
            of,
            kind,
            self.amount.0,
            self.reference.0,
            doer.act(),
        ))
    }

    fn after(&self, account: Account) -> Option<Result<Account, Refusal>> {
        Some(account.adjust(self.amount.0))
    }
}

/// Give money back for one charged request
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Refund {
    /// USD; at most the charge, less earlier refunds of it
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true))]
    pub amount: Usd,
    /// Why, for the journal
    #[cfg_attr(feature = "clap", arg(long))]
    pub reason: OneLine,
    /// Its own name: a repeated one is applied only once, for ever
    #[cfg_attr(feature = "clap", arg(long))]
    pub reference: OneLine,
}

impl SellerAct for Refund {
    type Of = OperationId;
    const EXAMPLE: &'static str =
        r#"{"amount":"0.00001","reason":"a broken answer","reference":"rf-1001"}"#;

    async fn deed(self, request: OperationId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let charge = doer.ledger.entry(request).await?;
        let charge = charge.filter(|entry| entry.bill.is_some());
        let charge = charge.ok_or(Unfit::NoCharge(request))?;
        let customer = Scope::Customer(charge.customer);
        let to = charge.key.map_or(customer, Scope::Key);
        let reason = self.reason.0;
        let kind = CreditKind::Refund { request, reason };
        Ok(Deed::of_credit(
            to,
            kind,
            self.amount.0,
            self.reference.0,
            doer.act(),
        ))
    }

    /// As if nothing of the charge had been given back yet: only the ledger knows what was.
    fn after(&self, account: Account) -> Option<Result<Account, Refusal>> {
        let (amount, any) = (self.amount.0, OperationId::from_bytes([0; 16]));
        Some(account.refund(amount, any, amount, Amount::ZERO))
    }
}

/// Move paid money that no request holds to another customer
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[schemars(rename = "Move")]
pub struct MoveMoney {
    /// Who gets it
    pub into: CustomerName,
    /// USD; paid money that no request holds
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true))]
    pub amount: Usd,
    /// Its own name: a repeated one is applied only once, for ever
    #[cfg_attr(feature = "clap", arg(long))]
    pub reference: OneLine,
}

impl SellerAct for MoveMoney {
    type Of = CustomerId;
    const EXAMPLE: &'static str =
        r#"{"into":"c_9k2m4n6p8q","amount":"1","reference":"one-purse-1001"}"#;

    async fn deed(self, from: CustomerId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        Ok(NewMove {
            from,
            into: self.into.0,
            amount: self.amount.0,
            reference: self.reference.0,
            act: doer.act(),
        }
        .into())
    }

    fn after(&self, account: Account) -> Option<Result<Account, Refusal>> {
        let given = account.give(Account::default(), self.amount.0);
        Some(given.map(|(giver, _)| giver))
    }
}

/// Book an unapplied payment on a customer
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Assign {
    /// Who gets its credit
    #[cfg_attr(feature = "clap", arg(long, value_name = "CUSTOMER"))]
    pub to: CustomerName,
}

impl SellerAct for Assign {
    type Of = String;
    const EXAMPLE: &'static str = r#"{"to":"c_7f3q9d2xw1"}"#;

    async fn deed(self, payment: String, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let (end, act) = (UnappliedEnd::Assign(self.to.0), doer.act());
        Ok(UnappliedAct { payment, end, act }.into())
    }
}

/// Note that an unapplied payment's money was sent back
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Return {
    /// How it was sent back and why, for the audit
    #[cfg_attr(feature = "clap", arg(long))]
    pub reason: OneLine,
}

impl SellerAct for Return {
    type Of = String;
    const EXAMPLE: &'static str = r#"{"reason":"sent back by bank transfer"}"#;

    async fn deed(self, payment: String, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let reason = self.reason.0;
        let (end, act) = (UnappliedEnd::Return { reason }, doer.act());
        Ok(UnappliedAct { payment, end, act }.into())
    }
}

// --- documents ---

/// A payment, and what of it went back
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Payment")]
pub struct PaymentDocument {
    /// Its own name
    pub reference: String,
    /// Whose it is
    pub customer: CustomerName,
    /// Where it is
    #[schemars(extend("enum" = ["booked", "unapplied", "returned"]))]
    pub status: &'static str,
    /// Why it could not be booked
    pub why: Option<String>,
    /// What was paid in
    pub currency: String,
    /// What was paid, tax included
    pub gross: PaidAmount,
    /// The tax in it
    pub tax: PaidAmount,
    /// The credit that it buys
    pub amount: Usd,
    /// The periods of a plan that it buys, if it does: their allowance is the credit
    pub plan: Option<PaidPlanDocument>,
    /// What you paid back so far
    pub refunded: PaidAmount,
    /// What disputes took so far
    pub withdrawn: PaidAmount,
    /// What disputes gave back so far
    pub reinstated: PaidAmount,
    /// What of its credit is due because it went back
    pub reversed: Usd,
    /// What went back and is not booked, because a token's daily bound refused it: tell it yourself
    pub waiting: Vec<WaitingDocument>,
    /// Who told about it first
    pub actor: String,
    /// When
    pub at: Instant,
}

/// What a payment buys of a plan
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PaidPlanDocument {
    /// The subscription
    pub subscription: String,
    /// The plan's name
    pub name: String,
    /// How many periods
    pub periods: u32,
}

/// What went back of a payment and is not booked
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct WaitingDocument {
    /// What kind
    pub kind: Word<ReversalKind>,
    /// All of it so far
    pub cumulative: PaidAmount,
    /// The name of the message that told it
    pub reference: String,
    /// When it was told
    pub at: Instant,
}

impl From<&Payment> for PaymentDocument {
    fn from(payment: &Payment) -> Self {
        let (status, why) = status(payment);
        let waiting = |waiting: &WaitingReversal| WaitingDocument {
            kind: Word(waiting.kind),
            cumulative: PaidAmount(waiting.cumulative),
            reference: waiting.reference.clone(),
            at: Instant(Timestamp::from_millis(waiting.at)),
        };
        let plan = payment.plan.as_ref().map(|paid| PaidPlanDocument {
            subscription: paid.subscription.to_string(),
            name: paid.terms.name.clone(),
            periods: paid.periods,
        });
        Self {
            reference: payment.reference.clone(),
            customer: CustomerName(payment.customer),
            plan,
            status,
            why: why.map(str::to_owned),
            currency: payment.paid.currency.clone(),
            gross: PaidAmount(payment.paid.gross),
            tax: PaidAmount(payment.paid.tax),
            amount: Usd(payment.credit),
            refunded: PaidAmount(payment.registers.refunded),
            withdrawn: PaidAmount(payment.registers.withdrawn),
            reinstated: PaidAmount(payment.registers.reinstated),
            reversed: Usd(payment.due()),
            waiting: payment.waiting.iter().map(waiting).collect(),
            actor: payment.actor.clone(),
            at: Instant(payment.at),
        }
    }
}

/// The word for where a payment is, and why it is not booked.
pub fn status(payment: &Payment) -> (&'static str, Option<&str>) {
    match &payment.status {
        PaymentStatus::Booked => ("booked", None),
        PaymentStatus::Unapplied { why } => ("unapplied", Some(why)),
        PaymentStatus::Returned => ("returned", None),
    }
}

/// A payment that moved
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PaymentMoved")]
pub struct PaymentMovedDocument {
    /// The payment as it is now
    pub payment: PaymentDocument,
    /// The entry that was made; null if nothing had to be booked
    #[schemars(with = "Option<EntryDocument>")]
    pub entry: Option<Value>,
    /// Whose it is, as it is now; null for a token that may not read it
    pub customer: Option<CustomerDocument>,
}

impl From<&PaymentMoved> for PaymentMovedDocument {
    fn from(moved: &PaymentMoved) -> Self {
        Self {
            payment: (&moved.payment).into(),
            entry: moved.entry.as_ref().map(document::json),
            customer: Some((&moved.customer).into()),
        }
    }
}

/// A correction that was booked
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Posted")]
pub struct PostedDocument {
    /// The entry
    #[schemars(with = "EntryDocument")]
    pub entry: Value,
    /// Whose it is, as it is now
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerDocument>,
    /// The key that it names, as it is now
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyDocument>,
}

impl From<&Posted> for PostedDocument {
    fn from(posted: &Posted) -> Self {
        let named = posted.key.as_ref();
        Self {
            entry: document::json(&posted.entry),
            customer: named.is_none().then(|| (&posted.customer).into()),
            key: named.map(|key| KeyDocument::of(key, clock::now())),
        }
    }
}

/// Money that went to another customer
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Moved")]
pub struct MovedDocument {
    /// Who gave, as it is now
    pub from: CustomerDocument,
    /// Who got, as it is now
    pub into: CustomerDocument,
}

impl From<&Moved> for MovedDocument {
    fn from(moved: &Moved) -> Self {
        Self {
            from: (&moved.from).into(),
            into: (&moved.into).into(),
        }
    }
}

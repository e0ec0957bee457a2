//! Plans: periods to sell or give, and what becomes of subscriptions.

use farebox_ledger::text::visible;
use farebox_ledger::{
    Amount, CustomerId, NewPayment, Outcome, PaidSum, Payment, PaymentStatus, PlanAct, PlanChange,
    PlanPurchase, PlanTerms, SubscriptionId, clock,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::customer::{CustomerDocument, personal};
use super::entry::EntryDocument;
use super::payment::{PaymentDocument, PaymentMovedDocument, asked_sum, paid_sum};
use super::subscription::{self, SubscriptionDocument};
use super::value::{Count, Currency, Instant, OneLine, PaidAmount, ReservationName, Usd};
use super::{Deed, Doer, SellerAct, Unfit, reads};

/// Sell periods of a plan, once, or give them. A payment that cannot be booked is stored as unapplied and answered with 202
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SellPlan {
    /// The plan's name
    pub plan: OneLine,
    /// How many periods, at most 24; 1 unless you say
    #[cfg_attr(feature = "clap", arg(long, value_name = "NUMBER"))]
    pub periods: Option<Count>,
    /// The payment's own name, as your processor's id of it; unique
    #[cfg_attr(feature = "clap", arg(long, required_unless_present = "given"))]
    pub reference: Option<OneLine>,
    /// Nobody pays: the periods are given, and worth nothing when they are changed or paid back
    #[cfg_attr(feature = "clap", arg(long, action = clap::ArgAction::SetTrue))]
    pub given: Option<bool>,
    /// What was paid in, as EUR; USD unless you say
    #[cfg_attr(feature = "clap", arg(long, value_name = "CODE", requires = "gross"))]
    pub currency: Option<Currency>,
    /// What was paid, tax included, in that currency, as 23.80; the plan's price unless you say
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "AMOUNT", value_parser = super::payment::some, requires = "currency", allow_negative_numbers = true)
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
    /// What a processor that renews it calls the subscription
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub processor: Option<OneLine>,
    /// When the processor asked for the money: a payment from before the subscription was ended still renews it
    #[cfg_attr(feature = "clap", arg(skip))]
    pub invoiced_at: Option<Instant>,
    /// The allowance of a period that it was sold at; if the plan gives another one by now, the payment is stored as unapplied
    #[cfg_attr(feature = "clap", arg(skip))]
    pub allowance: Option<Usd>,
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

/// What is bought: known periods, or only so much allowance.
struct SoldTerms {
    terms: Option<PlanTerms>,
    subscription: SubscriptionId,
    /// Why the catalog does not sell it.
    unsold: Option<String>,
}

impl SellerAct for SellPlan {
    type Of = CustomerId;
    const EXAMPLE: &'static str = r#"{"plan":"coder","periods":1,"reference":"pi_3001","currency":"EUR","gross":"23.80","tax":"3.80"}"#;

    async fn deed(self, customer: CustomerId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        match (&self.reference, self.given.unwrap_or_default()) {
            (Some(_), true) => {
                let why = "nobody pays for what is given; leave out the reference";
                Err(Unfit::Member("reference", why))
            }
            (None, true) => self.give(customer, doer).await,
            (Some(OneLine(reference)), false) => {
                let reference = reference.clone();
                self.sell(customer, reference, doer).await
            }
            (None, false) => {
                let why = "write `reference`, the payment's own name, or `given` if nobody pays";
                Err(Unfit::Incomplete(Some("reference"), why))
            }
        }
    }
}

impl SellPlan {
    fn periods(&self) -> u32 {
        self.periods.map_or(1, |Count(periods)| periods)
    }

    fn purchase(&self, subscription: SubscriptionId, terms: PlanTerms) -> PlanPurchase {
        PlanPurchase {
            subscription,
            terms,
            periods: self.periods(),
            processor: self.processor.clone().map(Into::into),
            invoiced_at: self.invoiced_at.map(Into::into),
        }
    }

    async fn give(self, customer: CustomerId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        if (&self.currency, &self.gross, &self.tax) != (&None, &None, &None) {
            let why = "nobody pays for what is given; leave out what was paid";
            return Err(Unfit::Member("gross", why));
        }
        let sold = self.sold(customer, doer).await?;
        let terms = match (sold.terms, sold.unsold) {
            (Some(terms), None) => terms,
            (_, why) => return Err(unknown_plan(&why.unwrap_or_default())),
        };
        Ok(PlanChange {
            customer,
            subscription: sold.subscription,
            change: PlanAct::Give(self.purchase(sold.subscription, terms)),
            act: doer.act(),
        }
        .into())
    }

    async fn sell(
        self,
        customer: CustomerId,
        reference: String,
        doer: &Doer<'_>,
    ) -> Result<Deed, Unfit> {
        let known = doer.ledger.payment(&reference).await?;
        let sold = match known.and_then(|known| self.told_again(known)) {
            Some(sold) => sold,
            None => self.sold(customer, doer).await?,
        };
        let said = (self.currency.clone(), self.gross, self.tax);
        let price = sold
            .terms
            .as_ref()
            .map_or(Amount::ZERO, |terms| terms.price);
        let paid = match paid_sum(said)? {
            Some(paid) => paid,
            None if price.is_positive() => PaidSum::in_usd(self.of_all(price)),
            None => {
                let why = "there is no price to go by; write `currency` and `gross`, what was paid, tax included";
                return Err(Unfit::Incomplete(Some("gross"), why));
            }
        };
        let each = match (&sold.terms, self.allowance) {
            (Some(terms), _) => terms.allowance,
            (None, each) => each.map_or(Amount::ZERO, Into::into),
        };
        let plan = sold
            .terms
            .map(|terms| self.purchase(sold.subscription, terms));
        Ok(NewPayment {
            customer,
            paid,
            expected: asked_sum(self.expected_currency.clone(), self.expected_gross)?,
            credit: self.of_all(each),
            reference,
            addressee: personal(self.name, self.address, Vec::new()),
            reservation: self.reservation.map(Into::into),
            plan: plan.map(Box::new),
            unsold: sold.unsold,
            act: doer.act(),
        }
        .into())
    }

    /// So much for each period.
    fn of_all(&self, each: Amount) -> Amount {
        Amount::from_picos(each.picos().saturating_mul(self.periods().into()))
    }

    /// What a payment bought that was told before: whatever became of plan and subscription, it is the same.
    fn told_again(&self, known: Payment) -> Option<SoldTerms> {
        match (known.plan, &known.status) {
            (Some(paid), _) if paid.terms.name == self.plan.0 => Some(SoldTerms {
                terms: Some(paid.terms),
                subscription: paid.subscription,
                unsold: None,
            }),
            (None, PaymentStatus::Unapplied { why }) if self.allowance.is_some() => {
                Some(SoldTerms {
                    terms: None,
                    subscription: new_subscription(),
                    unsold: Some(why.clone()),
                })
            }
            (
                Some(_) | None,
                PaymentStatus::Booked | PaymentStatus::Returned | PaymentStatus::Unapplied { .. },
            ) => None,
        }
    }

    /// What the catalog sells, for the subscription that it is of. What it does not sell, or at another allowance, is as this subscription
    /// has it.
    async fn sold(&self, customer: CustomerId, doer: &Doer<'_>) -> Result<SoldTerms, Unfit> {
        let plans = reads::customer(doer.ledger, customer).await?.grants.plans;
        let name = &self.plan.0;
        let had = plans
            .iter()
            .find(|of| of.counts() && of.state.terms.name == *name);
        let of_processor = self.processor.as_ref();
        let of_processor = of_processor.map(|OneLine(name)| PlanPurchase::of_processor(name));
        let known = had.or_else(|| plans.get(of_processor?));
        let subscription = known.map(|of| of.id).or(of_processor);
        let subscription = subscription.unwrap_or_else(new_subscription);
        let sold_at = self.allowance.map(|Usd(amount)| amount);
        let is_sold_at = |terms: &PlanTerms| sold_at.is_none_or(|at| at == terms.allowance);
        let why = match terms(doer, name) {
            Ok(terms) if is_sold_at(&terms) => {
                return Ok(SoldTerms {
                    terms: Some(terms),
                    subscription,
                    unsold: None,
                });
            }
            Ok(terms) => format!(
                "a period of {name} gives {} by now, not {}",
                terms.allowance,
                sold_at.unwrap_or_default()
            ),
            Err(why) => why,
        };
        let terms = known.map(|of| of.state.terms.clone());
        let terms = terms.filter(|terms| terms.name == *name && is_sold_at(terms));
        if terms.is_none() && sold_at.is_none() {
            return Err(unknown_plan(&why));
        }
        Ok(SoldTerms {
            terms,
            subscription,
            unsold: Some(why),
        })
    }
}

fn new_subscription() -> SubscriptionId {
    SubscriptionId::from_random(u64::from_be_bytes(clock::random()))
}

/// What a plan gives now, or why there is none of this name.
fn terms(doer: &Doer<'_>, name: &str) -> Result<PlanTerms, String> {
    match doer.sold {
        Some(sold) => sold.plan(name),
        None => Err("what is sold is not known here".to_owned()),
    }
}

/// The terms of a plan that is sold.
pub(crate) fn sold_terms(doer: &Doer<'_>, OneLine(name): &OneLine) -> Result<PlanTerms, Unfit> {
    terms(doer, name).map_err(|why| unknown_plan(&why))
}

fn unknown_plan(why: &str) -> Unfit {
    Unfit::Wrong(format!("plan: {}", visible(why)))
}

/// Have other terms from the next period that is not paid on; or at once: then what is unused of the running one becomes credit, and the
/// next needs its own payment
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[schemars(rename = "ChangePlan")]
pub struct HaveOtherPlan {
    /// The name of the plan from then on
    pub plan: OneLine,
    /// At once
    #[cfg_attr(feature = "clap", arg(long, action = clap::ArgAction::SetTrue))]
    pub at_once: Option<bool>,
}

impl SellerAct for HaveOtherPlan {
    type Of = SubscriptionId;
    const EXAMPLE: &'static str = r#"{"plan":"team"}"#;

    async fn deed(self, of: SubscriptionId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let change = PlanAct::Change {
            terms: sold_terms(doer, &self.plan)?,
            at_once: self.at_once.unwrap_or_default(),
        };
        on_subscription(of, change, doer).await
    }
}

/// Acts of one word.
macro_rules! changes_of_plans {
    ($($(#[$said:meta])* $name:ident: $change:expr;)*) => {$(
        $(#[$said])*
        #[derive(Debug, Deserialize, JsonSchema)]
        pub struct $name {}

        impl SellerAct for $name {
            type Of = SubscriptionId;

            async fn deed(self, of: SubscriptionId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
                on_subscription(of, $change, doer).await
            }
        }
    )*};
}

changes_of_plans! {
    /// Stop a subscription's time: what is left of days and allowance stays
    PausePlan: PlanAct::Pause;
    /// Let a paused subscription go on: what is left is as long as it was
    ResumePlan: PlanAct::Resume;
    /// Renew a subscription no more; what is paid still runs
    EndPlan: PlanAct::End;
    /// Ask the seller to end a subscription where a processor renews it
    WantPlanEnd: PlanAct::WantEnd;
}

async fn on_subscription(
    id: SubscriptionId,
    change: PlanAct,
    doer: &Doer<'_>,
) -> Result<Deed, Unfit> {
    let customer = subscription::find(doer.ledger, id).await?.customer.id;
    Ok(PlanChange {
        customer,
        subscription: id,
        change,
        act: doer.act(),
    }
    .into())
}

// --- documents ---

/// Periods that were sold or given
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PlanSold")]
pub struct PlanSoldDocument {
    /// The payment as it is now; null if nobody paid
    pub payment: Option<PaymentDocument>,
    /// The entry of nothing that has the payment's name; null if it could not be booked
    #[schemars(with = "Option<EntryDocument>")]
    pub entry: Option<Value>,
    /// Whose it is, as it is now; null for a token that may not read it
    pub customer: Option<CustomerDocument>,
    /// The subscription as it is now; null if there is none, and for a token that may not read it
    pub subscription: Option<SubscriptionDocument>,
}

impl PlanSoldDocument {
    /// What a sale or a gift came to; `None` if the outcome is of neither.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Payment(moved) => {
                let PaymentMovedDocument {
                    payment,
                    entry,
                    customer,
                } = (&**moved).into();
                let bought = moved.payment.plan.as_ref();
                let plans = &moved.customer.grants.plans;
                let subscription = bought.and_then(|bought| plans.get(bought.subscription));
                let shown = |of| SubscriptionDocument::of(of, &moved.customer, clock::now());
                Some(Self {
                    payment: Some(payment),
                    entry,
                    customer,
                    subscription: subscription.map(shown),
                })
            }
            Outcome::PlanAnswer(answer) => Some(Self {
                payment: None,
                entry: None,
                customer: Some((&answer.customer).into()),
                subscription: Some((&**answer).into()),
            }),
            Outcome::Done
            | Outcome::Key(_)
            | Outcome::Customer(_)
            | Outcome::Posted(_)
            | Outcome::Moved(_)
            | Outcome::Token(_)
            | Outcome::Lot(_)
            | Outcome::GrantAnswer(_)
            | Outcome::Reservation(_)
            | Outcome::Answered(_)
            | Outcome::Held(_)
            | Outcome::Finished(_)
            | Outcome::Epoch(_)
            | Outcome::Recovered(_)
            | Outcome::Owner(_) => None,
        }
    }
}

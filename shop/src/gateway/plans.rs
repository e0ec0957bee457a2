//! Plans, as the gateway's API tells of them and takes their periods: what is sold, what a customer has, and what becomes of it.

use farebox_ledger::{Amount, CustomerId, PlanPurchase, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiFailure, GatewayApi, Page, Topped, addressed, known, sum_of};
use crate::plan_row::PlanRow;
use crate::processor::PaidPeriod;
use crate::settings::CreditOffer;

/// A subscription, as its owner is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct OwnPlan {
    pub(crate) id: String,
    pub(crate) plan: String,
    pub(crate) title: String,
    pub(crate) status: String,
    /// What can be used now.
    pub(crate) period: Option<OwnPeriod>,
    pub(crate) paid_until: Option<Timestamp>,
    /// What the processor that renews it calls it.
    pub(crate) processor: Option<String>,
}

/// The period that runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct OwnPeriod {
    pub(crate) allowance: Amount,
    pub(crate) remaining: Amount,
}

impl OwnPlan {
    /// Whether nothing renews it any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.status == "ended"
    }

    /// Whether a processor renews it.
    pub(crate) fn is_renewed(&self) -> bool {
        self.processor.is_some() && !self.has_ended()
    }

    /// Whether that is the plan of an offer.
    pub(crate) fn renews(&self, offer: &CreditOffer) -> bool {
        self.is_renewed() && offer.plan.as_ref() == Some(&self.plan)
    }
}

impl GatewayApi {
    /// The plans on sale.
    pub(crate) async fn plans(&self) -> Result<Vec<PlanRow>, ApiFailure> {
        let page: Page<PlanRow> = self.get(self.url(&["plans"])?).await?;
        Ok(page.data)
    }

    /// What a customer has of plans; `None` if it is not there, or not for this token to read.
    pub(crate) async fn plans_of(
        &self,
        customer: CustomerId,
    ) -> Result<Option<Vec<OwnPlan>>, ApiFailure> {
        let url = self.url(&["customers", &customer.to_string(), "plans"])?;
        let page: Result<Page<OwnPlan>, ApiFailure> = self.get(url).await;
        match page {
            Err(ApiFailure::Away(why)) if why.contains(" 403 not_yours ") => Ok(None),
            page => Ok(known(page)?.map(|page| page.data)),
        }
    }

    /// Books the payment of a period, or has it stored as unapplied: its status says which.
    pub(crate) async fn sell_period(
        &self,
        customer: CustomerId,
        period: &PaidPeriod,
        is_named: bool,
    ) -> Result<String, ApiFailure> {
        let (paid, checkout) = (&period.paid, &period.paid.checkout);
        let mut body = sum_of(paid);
        body["plan"] = json!(checkout.offer.plan);
        body["allowance"] = json!(checkout.offer.credit);
        body["processor"] = json!(period.subscription);
        body["invoiced_at"] = json!(period.invoiced_at);
        if is_named {
            addressed(&mut body, checkout);
        }
        // What was kept for the checkout is free for its first period.
        if let Some(reservation) = checkout.reservation.as_ref().filter(|_| period.is_first) {
            body["reservation"] = json!(reservation);
        }
        let url = self.url(&["customers", &customer.to_string(), "plans"])?;
        let once = format!("plan:{}:{is_named}", paid.id);
        let sold: Topped = self.post(url, &body, &once).await?;
        Ok(sold.status())
    }

    /// What the gateway calls a processor's subscription: a customer may have had the plan before the processor renewed it.
    pub(crate) async fn subscription_of(
        &self,
        customer: CustomerId,
        processor: &str,
    ) -> Result<(String, Option<OwnPlan>), ApiFailure> {
        let plans = self.plans_of(customer).await?.unwrap_or_default();
        let is_it = |of: &OwnPlan| of.processor.as_deref() == Some(processor);
        let found = plans.into_iter().find(is_it);
        let usual = || PlanPurchase::of_processor(processor).to_string();
        let id = found.as_ref().map_or_else(usual, |of| of.id.clone());
        Ok((id, found))
    }

    /// Has a subscription be another plan from its next period on.
    pub(crate) async fn change_plan(
        &self,
        subscription: &str,
        plan: &str,
        once: &str,
    ) -> Result<(), ApiFailure> {
        let url = self.url(&["subscriptions", subscription, "change"])?;
        let told: Value = self.post(url, &json!({ "plan": plan }), once).await?;
        drop(told);
        Ok(())
    }

    /// Ends a subscription; what is paid still runs.
    pub(crate) async fn end_plan(&self, subscription: &str, once: &str) -> Result<(), ApiFailure> {
        let url = self.url(&["subscriptions", subscription, "end"])?;
        let told: Value = self.post(url, &json!({}), once).await?;
        drop(told);
        Ok(())
    }
}

//! What the gateway asks of the shop: automatic top-ups, with the rule of a customer and what became of each wish, and ends of plans.

use farebox_ledger::{Amount, CustomerId, Timestamp, clock};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiFailure, GatewayApi, known};

/// A wish, as an event tells it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Wish {
    pub(crate) reference: String,
    /// Afterwards nobody waits for it.
    pub(crate) until: Timestamp,
}

/// What an event asks of the shop.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", content = "data")]
pub(crate) enum ShopWish {
    #[serde(rename = "top_up.wanted")]
    TopUp(Wish),
    #[serde(rename = "plan.end_wanted")]
    PlanEnd {
        /// What the processor that renews it calls the subscription; none if nobody does.
        processor: Option<String>,
    },
}

/// A wish as it stands now.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct WishState {
    pub(crate) customer: CustomerId,
    /// The credit.
    pub(crate) amount: Amount,
    pub(crate) status: String,
    pub(crate) processor_ref: Option<String>,
}

/// When, how much and how often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<'a> {
    pub(crate) threshold: Amount,
    pub(crate) amount: Amount,
    pub(crate) per_month: u8,
    /// What the owner of the card agreed to.
    pub(crate) agreed: &'a str,
}

#[derive(Deserialize)]
struct WishEvents {
    data: Vec<WishEvent>,
    has_more: bool,
    next_cursor: Option<String>,
}

/// An event that asks something of the shop.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct WishEvent {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) asks: ShopWish,
}

/// Whoever came by a link of the dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct VisitOfOwner {
    pub(crate) customer: CustomerId,
    pub(crate) until: Timestamp,
}

impl GatewayApi {
    /// Wishes of a type after an event, where to go on, and whether there are more.
    pub(crate) async fn wishes(
        &self,
        kind: &str,
        after: Option<&str>,
    ) -> Result<(Vec<WishEvent>, Option<String>, bool), ApiFailure> {
        let mut url = self.url(&["events"])?;
        url.query_pairs_mut()
            .append_pair("type", kind)
            .append_pair("limit", "200");
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after", after);
        }
        let page: WishEvents = self.get(url).await?;
        let last = page.data.last().map(|event| event.id.clone());
        let next = page.next_cursor.or(last).or(after.map(str::to_owned));
        Ok((page.data, next, page.has_more))
    }

    /// A wish as it stands now; `None` if no rule of this shop asks for it.
    pub(crate) async fn wish(&self, reference: &str) -> Result<Option<WishState>, ApiFailure> {
        known(self.get(self.url(&["top-ups", reference])?).await)
    }

    /// Says that nothing was charged for a wish, and why.
    pub(crate) async fn fail_wish(&self, reference: &str, why: &str) -> Result<(), ApiFailure> {
        let url = self.url(&["top-ups", reference, "failed"])?;
        let body = json!({ "reason": why });
        let once = format!("failed:{reference}");
        let told: Result<Value, ApiFailure> = self.post(url, &body, &once).await;
        match told {
            // It was booked, or failed by time, or is said again in other words.
            Err(ApiFailure::Refused(404 | 409 | 422, ..)) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Sets the rule to which a buyer agreed.
    pub(crate) async fn set_rule(
        &self,
        customer: CustomerId,
        rule: Rule<'_>,
        once: &str,
    ) -> Result<(), ApiFailure> {
        let url = self.url(&["customers", &customer.to_string(), "auto-top-up"])?;
        let body = json!({ "threshold": rule.threshold, "amount": rule.amount,
            "per_month": rule.per_month, "processor_ref": rule.agreed });
        let set: Result<Value, ApiFailure> = self.post(url, &body, once).await;
        set.map(drop)
    }

    /// Ends it.
    pub(crate) async fn end_rule(&self, customer: CustomerId) -> Result<(), ApiFailure> {
        let url = self.url(&["customers", &customer.to_string(), "auto-top-up"])?;
        self.answer(Method::DELETE, url, None).await.map(drop)
    }

    /// The owner whom a link of the dashboard brought, once.
    pub(crate) async fn visit(&self, link: &str) -> Result<Option<VisitOfOwner>, ApiFailure> {
        let url = self.url(&["visits"])?;
        // A key of its own each time: an answer that is repeated would let in the next one, too.
        let once = hex::encode(clock::random::<16>());
        known(self.post(url, &json!({ "link": link }), &once).await)
    }
}

//! Plans of an owner: what is left of them, and the way to the processor's page about card and cancelling.

use farebox_door::FormFields;
use farebox_ledger::CustomerId;
use salvo::http::StatusCode;
use salvo::prelude::{Depot, Request, Response};

use super::{ShopDesk, own_form};
use crate::answer;
use crate::gateway::plans::OwnPlan;

impl ShopDesk {
    /// What an owner has of plans; nothing while the gateway does not say.
    pub(super) async fn plans_of(&self, customer: CustomerId) -> Vec<OwnPlan> {
        match self.api.plans_of(customer).await {
            Ok(plans) => plans.unwrap_or_default(),
            Err(failure) => {
                tracing::warn!(?failure, "the gateway does not tell of plans");
                Vec::new()
            }
        }
    }

    /// Sends an owner to the processor's page of a subscription.
    pub(super) async fn portal(
        &self,
        req: &Request,
        form: &FormFields,
        depot: &Depot,
        res: &mut Response,
    ) {
        let buyer = own_form(req, form);
        let owned = form.get("customer").and_then(|id| id.parse().ok());
        let owned = buyer.and_then(|buyer| {
            let owned = owned.filter(|of| buyer.owns(req.headers(), *of, &self.secret));
            let why = "Only its owner sees a customer's plans: open this page from the dashboard.";
            owned.map(|of| (buyer, of)).ok_or_else(|| why.to_owned())
        });
        let (buyer, customer): (_, CustomerId) = match owned {
            Ok(owned) => owned,
            Err(told) => {
                let page = self.seller().notice("Refused", &told);
                return answer::page(res, StatusCode::FORBIDDEN, page);
            }
        };
        let Some(_place) = self.place(req, &buyer, depot).await else {
            return self.busy(res);
        };
        let mut plans = self.plans_of(customer).await.into_iter();
        let found = plans.find(|of| of.id == form.text("subscription"));
        let back = format!("{}/?customer={customer}", self.public_url);
        let page = match found.and_then(|of| of.processor) {
            Some(name) => self.processor.portal(&name, &back).await,
            None => Ok(None),
        };
        match page {
            Ok(Some(page)) => answer::page(res, StatusCode::OK, self.seller().onward(&page)),
            Ok(None) => {
                let text = "This plan is not renewed by a card that was given here.";
                let page = self.seller().notice("Ask the seller", text);
                answer::page(res, StatusCode::NOT_FOUND, page);
            }
            Err(away) => self.processor_away(res, &away.0),
        }
    }
}

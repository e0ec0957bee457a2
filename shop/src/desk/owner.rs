//! Owners of customers: who comes from the dashboard by a link that works once, and who ends an automatic top-up.

use farebox_door::{FormFields, Visit};
use farebox_ledger::CustomerId;
use salvo::http::StatusCode;
use salvo::prelude::{Depot, Request, Response};

use super::{ShopDesk, own_form};
use crate::answer;
use crate::buyer::Buyer;
use crate::gateway::ApiFailure;

impl ShopDesk {
    /// Lets in whom a link of the dashboard brought.
    pub(super) async fn owner(&self, req: &Request, link: &str, depot: &Depot, res: &mut Response) {
        let is_link = link.len() == 64 && link.bytes().all(|byte| byte.is_ascii_hexdigit());
        let may_ask = Visit::of(depot).is_some_and(|visit| visit.call_as_stranger().is_ok());
        if !may_ask {
            return self.busy(res);
        }
        let visit = if is_link {
            self.api.visit(link).await
        } else {
            Ok(None)
        };
        match visit {
            Ok(Some(visit)) => {
                let known = Buyer::of(req.headers());
                let buyer = known.clone().unwrap_or_else(Buyer::new);
                answer::see_other(res, &format!("/?customer={}", visit.customer));
                if known.is_none() {
                    answer::cookie(res, &buyer.cookie());
                }
                answer::cookie(res, &buyer.owner_cookie(&visit, &self.secret));
            }
            Ok(None) => {
                let text = "This link was used, or is older than five minutes. Open the shop from the dashboard again.";
                let page = self.seller().notice("A link works once", text);
                answer::page(res, StatusCode::NOT_FOUND, page);
            }
            Err(failure) => self.gateway_away(res, &failure),
        }
    }

    /// Ends an automatic top-up: of the customer that a purchase of this browser made, or that it owns.
    pub(super) async fn stop(
        &self,
        req: &Request,
        form: &FormFields,
        depot: &Depot,
        res: &mut Response,
    ) {
        let buyer = match own_form(req, form) {
            Ok(buyer) => buyer,
            Err(told) => {
                let page = self.seller().notice("Refused", &told);
                return answer::page(res, StatusCode::FORBIDDEN, page);
            }
        };
        let owned = form.get("customer").and_then(|id| id.parse().ok());
        let owned = owned.filter(|customer| buyer.owns(req.headers(), *customer, &self.secret));
        let customer: Option<CustomerId> = match owned {
            Some(customer) => Some(customer),
            None => {
                let id = form.text("checkout").to_owned();
                let Some(own) = self.own_purchase(req, depot, res, id).await else {
                    return;
                };
                own.has_key().then_some(own.customer)
            }
        };
        let ended = match customer {
            Some(customer) => self.api.end_rule(customer).await,
            None => Err(not_its_own()),
        };
        let (status, title, text) = match ended {
            Ok(()) | Err(ApiFailure::Refused(404, ..)) => (
                StatusCode::OK,
                "Automatic top-up is off",
                "The card is not charged any more.",
            ),
            Err(ApiFailure::Refused(..)) => (
                StatusCode::FORBIDDEN,
                "Ask the seller",
                "This automatic top-up was not set here, so it cannot be ended here.",
            ),
            Err(failure) => return self.gateway_away(res, &failure),
        };
        let page = self.seller().told(title, text);
        answer::page(res, status, page);
    }
}

fn not_its_own() -> ApiFailure {
    let code = "not_yours".to_owned();
    ApiFailure::Refused(403, code, String::new(), serde_json::Value::Null)
}

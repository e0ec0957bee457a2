//! What a buyer comes back to: the page of a purchase, its key and its receipt.

use farebox_door::FormFields;
use farebox_ledger::{CustomerId, Timestamp, clock};
use salvo::http::StatusCode;
use salvo::prelude::{Depot, Request, Response};

use super::{ShopDesk, own_form};
use crate::answer;
use crate::buyer::{Buyer, OWNER_LIFETIME};
use crate::currency;
use crate::gateway::ApiFailure;
use crate::gateway::plans::OwnPlan;
use crate::gateway::wishes::VisitOfOwner;
use crate::lookups::KnownCheckout;
use crate::pages::PurchasePage;
use crate::processor::FoundCheckout;
use crate::receipts;

/// A purchase that this browser began, and its payment.
pub(super) struct OwnPurchase {
    found: FoundCheckout,
    reference: String,
    pub(super) customer: CustomerId,
    pub(super) buyer: Buyer,
    id: String,
}

/// Why a checkout is not shown.
enum NotLookedUp {
    Busy,
    Away(String),
    /// It was asked for a moment ago: the page looks again.
    Asked,
    Nothing,
}

impl ShopDesk {
    /// What whoever made a purchase has of plans, who owns the customer that it made from now on.
    async fn plans_after(
        &self,
        req: &Request,
        own: &OwnPurchase,
        res: &mut Response,
    ) -> Vec<OwnPlan> {
        let customer = own.customer;
        let is_made = own.has_key()
            && (self.api.has_made(own.external(), customer).await).unwrap_or_default();
        if is_made {
            let until = i64::from(OWNER_LIFETIME).saturating_mul(1_000);
            let until = Timestamp::from_millis(clock::now().millis().saturating_add(until));
            let visit = VisitOfOwner { customer, until };
            answer::cookie(res, &own.buyer.owner_cookie(&visit, &self.secret));
        }
        if is_made || own.buyer.owns(req.headers(), customer, &self.secret) {
            self.plans_of(customer).await
        } else {
            Vec::new()
        }
    }

    /// The page of a purchase.
    pub(super) async fn bought(&self, req: &Request, depot: &Depot, res: &mut Response) {
        let id = req.query::<String>("checkout").unwrap_or_default();
        let Some(own) = self.own_purchase(req, depot, res, id).await else {
            return;
        };
        let has = self.plans_after(req, &own, res).await;
        let offer = &own.found.checkout.offer;
        let on_sale = self.on_sale().await;
        let page = PurchasePage {
            reference: &own.reference,
            checkout: &own.id,
            proof: &own.buyer.proof(),
            customer: own.customer,
            has_key: own.has_key(),
            again: own.has_key() && own.found.checkout.again.is_some(),
            paid: currency::shown(&own.found.checkout.currency, offer.price),
            what: match &offer.plan {
                Some(name) => {
                    let plan = on_sale.plans.iter().find(|plan| plan.name == *name);
                    format!("{} was", plan.map_or(name, |plan| &plan.title))
                }
                None => format!("{} USD of credit were", offer.credit),
            },
            has: &has,
        };
        answer::page(res, StatusCode::OK, self.seller().purchase(&page));
    }

    /// A purchase, if it is this browser's and stands in the books; else the answer is written.
    pub(super) async fn own_purchase(
        &self,
        req: &Request,
        depot: &Depot,
        res: &mut Response,
        id: String,
    ) -> Option<OwnPurchase> {
        // Nobody is asked for whom nothing would be shown.
        let Some(buyer) = Buyer::of(req.headers()) else {
            answer::page(res, StatusCode::FORBIDDEN, self.seller().stranger(&id));
            return None;
        };
        let found = match self.looked_up(req, &buyer, depot, &id).await {
            Ok(found) => found,
            Err(why) => {
                self.not_found(res, why);
                return None;
            }
        };
        if buyer.mark() != found.checkout.buyer {
            let page = self.seller().stranger(&found.payment.unwrap_or(id));
            answer::page(res, StatusCode::FORBIDDEN, page);
            return None;
        }
        if let Some(cookie) = buyer.has_paid(req, &self.secret) {
            answer::cookie(res, &cookie);
        }
        let Some(reference) = found.payment.clone() else {
            answer::page(res, StatusCode::OK, self.seller().waiting(None));
            return None;
        };
        match self.api.payment(&reference).await {
            Ok(Some(payment)) if payment.status == "booked" => Some(OwnPurchase {
                found,
                reference,
                customer: payment.customer,
                buyer,
                id,
            }),
            Ok(Some(_)) => {
                let text = format!(
                    "Your payment arrived and could not be booked. It is kept; ask the seller, and name {reference}."
                );
                let page = self.seller().notice("Ask the seller", &text);
                answer::page(res, StatusCode::OK, page);
                None
            }
            Ok(None) => {
                let page = self.seller().waiting(Some(&reference));
                answer::page(res, StatusCode::OK, page);
                None
            }
            Err(failure) => {
                self.gateway_away(res, &failure);
                None
            }
        }
    }

    /// A checkout by its id, from what callbacks told or from the processor.
    async fn looked_up(
        &self,
        req: &Request,
        buyer: &Buyer,
        depot: &Depot,
        id: &str,
    ) -> Result<FoundCheckout, NotLookedUp> {
        let mut known = self.lookups.known(id);
        if known == KnownCheckout::Due {
            let place = self.place(req, buyer, depot).await;
            let _place = place.ok_or(NotLookedUp::Busy)?;
            if self.lookups.takes(id) {
                let found = self.processor.find(id).await;
                let found = found.map_err(|away| NotLookedUp::Away(away.0))?;
                let found = found.filter(|found| found.checkout.shop == self.id);
                self.lookups.note(
                    id,
                    found.map_or(KnownCheckout::Nothing, |found| {
                        KnownCheckout::Found(Box::new(found))
                    }),
                );
            }
            known = self.lookups.known(id);
        }
        match known {
            KnownCheckout::Found(found) => Ok(*found),
            KnownCheckout::Nothing => Err(NotLookedUp::Nothing),
            KnownCheckout::Asked | KnownCheckout::Due => Err(NotLookedUp::Asked),
        }
    }

    fn not_found(&self, res: &mut Response, why: NotLookedUp) {
        match why {
            NotLookedUp::Busy => self.busy(res),
            NotLookedUp::Away(why) => self.processor_away(res, &why),
            NotLookedUp::Asked => answer::page(res, StatusCode::OK, self.seller().waiting(None)),
            NotLookedUp::Nothing => {
                let page = (self.seller()).notice("Not found", "There is no such purchase.");
                answer::page(res, StatusCode::NOT_FOUND, page);
            }
        }
    }

    /// Makes the key of a first purchase, or replaces it before its first use, and shows it.
    pub(super) async fn key(
        &self,
        req: &Request,
        form: &FormFields,
        depot: &Depot,
        res: &mut Response,
    ) {
        if let Err(told) = own_form(req, form) {
            let page = self.seller().notice("Refused", &told);
            return answer::page(res, StatusCode::FORBIDDEN, page);
        }
        let id = form.text("checkout").to_owned();
        let Some(own) = self.own_purchase(req, depot, res, id).await else {
            return;
        };
        if !own.has_key() {
            let text = "This purchase topped up a customer that has its keys already.";
            let page = self.seller().notice("No new key", text);
            return answer::page(res, StatusCode::CONFLICT, page);
        }
        let fresh = hex::encode(clock::random::<16>());
        let made = self.api.first_key(own.customer, own.external(), &fresh);
        match made.await {
            Ok(Some((_, secret))) => {
                let back = format!("/bought?checkout={}", own.id);
                let model = self.first_model().await;
                let has = self.plans_after(req, &own, res).await;
                let has = (&*has, &*own.buyer.proof());
                let page = (self.seller()).key(&secret, own.customer, &back, model.as_deref(), has);
                answer::page(res, StatusCode::OK, page);
            }
            Ok(None) => {
                let text = "This key is in use, so it is not shown again. Sign in with it; if it is lost, ask the seller.";
                let page = self.seller().notice("Your key is in use", text);
                answer::page(res, StatusCode::CONFLICT, page);
            }
            Err(ApiFailure::Refused(status, code, message, _)) => {
                tracing::warn!(status, code, message, "the gateway made no key");
                let text = format!("The key could not be made: {message}");
                let page = self.seller().notice("Ask the seller", &text);
                answer::page(res, StatusCode::CONFLICT, page);
            }
            Err(failure) => self.gateway_away(res, &failure),
        }
    }

    pub(super) async fn receipt(&self, req: &Request, depot: &Depot, res: &mut Response) {
        let id = req.query::<String>("checkout").unwrap_or_default();
        let Some(own) = self.own_purchase(req, depot, res, id).await else {
            return;
        };
        match self.api.receipt(&own.reference).await {
            Ok(Some(document)) => {
                let page = self.seller().receipt(&receipts::paper(&document));
                answer::page(res, StatusCode::OK, page);
            }
            Ok(None) => {
                let text = "The receipt is not there yet.";
                let page = self.seller().notice("No receipt", text);
                answer::page(res, StatusCode::NOT_FOUND, page);
            }
            Err(failure) => self.gateway_away(res, &failure),
        }
    }
}

impl OwnPurchase {
    /// The external id of the customer that it made, if it made one.
    pub(super) fn external(&self) -> &str {
        let subscription = self.found.subscription.as_deref();
        subscription.unwrap_or(&self.reference)
    }

    /// A top-up that named a customer brings no key; one whose customer was not there made its own.
    pub(super) fn has_key(&self) -> bool {
        self.found.checkout.customer != Some(self.customer)
    }
}

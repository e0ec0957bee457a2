//! The gateway's admin API, as far as a sell token reaches: the only thing that the shop changes anywhere.

pub(crate) mod plans;
pub(crate) mod wishes;

use farebox_ledger::{Amount, CustomerId, Timestamp};
use farebox_toml::HiddenText;
use reqwest::{Method, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::checkout::Checkout;
use crate::client::{self, below};
use crate::processor::PaidCheckout;

/// The gateway's API.
#[derive(Debug)]
pub(crate) struct GatewayApi {
    pub(crate) client: reqwest::Client,
    /// The admin listener.
    pub(crate) base: String,
    pub(crate) token: HiddenText,
}

/// Why the gateway did not do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApiFailure {
    /// It may do it later: it is away, busy, or does not know this token.
    Away(String),
    /// It refuses: the status, the code, the reason, and what goes with it.
    Refused(u16, String, String, Value),
}

/// The token that asks, and how much it may still sell.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct SellToken {
    pub(crate) role: String,
    /// The most that one checkout can reserve; `None` is without bound.
    pub(crate) most_reservable: Option<Amount>,
    pub(crate) highest_balance: Amount,
}

/// The seller, as the gateway's catalog describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct GatewaySeller {
    pub(crate) pay_url: Option<String>,
    /// Where customers reach the gateway.
    pub(crate) public_url: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) tax_id: Option<String>,
    pub(crate) terms_url: Option<String>,
    pub(crate) privacy_url: Option<String>,
}

/// Credit that is kept for one checkout.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ReservedCredit {
    pub(crate) id: String,
    pub(crate) until: Timestamp,
}

/// What a reservation is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservedFor<'a> {
    pub(crate) credit: Amount,
    pub(crate) customer: Option<CustomerId>,
    /// The plan that is begun, if it is one.
    pub(crate) plan: Option<&'a str>,
    /// The one that goes on, if it is not new.
    pub(crate) goes_on: Option<&'a str>,
}

/// A payment, as far as the shop shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct BookedPayment {
    pub(crate) customer: CustomerId,
    pub(crate) status: String,
}

/// One model on sale.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ModelRow {
    pub(crate) model: String,
    pub(crate) customer_slug: String,
    pub(crate) provider: String,
    pub(crate) best_path: String,
    pub(crate) service_price: String,
}

#[derive(Deserialize)]
struct Named<T> {
    id: T,
}

#[derive(Deserialize)]
struct OfCustomer {
    external_id: Option<String>,
    #[serde(default)]
    keys: Vec<Named<String>>,
}

#[derive(Deserialize)]
struct MadeKey {
    id: String,
    secret: Option<String>,
}

#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
}

#[derive(Deserialize)]
struct Topped {
    payment: Option<BookedPayment>,
}

impl Topped {
    fn status(self) -> String {
        self.payment
            .map_or_else(|| "booked".to_owned(), |payment| payment.status)
    }
}

impl GatewayApi {
    /// The customer of this external id.
    pub(crate) async fn customer_of(
        &self,
        external_id: &str,
    ) -> Result<Option<CustomerId>, ApiFailure> {
        let mut url = self.url(&["customers"])?;
        url.query_pairs_mut()
            .append_pair("external_id", external_id);
        let page: Page<Named<CustomerId>> = self.get(url).await?;
        Ok(page.data.into_iter().next().map(|customer| customer.id))
    }

    /// Makes the customer of a first purchase. The personal data is what the buyer typed.
    pub(crate) async fn make_customer(
        &self,
        external_id: &str,
        checkout: Option<&Checkout>,
    ) -> Result<CustomerId, ApiFailure> {
        // Labels are chained, so they name nobody.
        let mut body = json!({ "label": "Shop customer", "external_id": external_id });
        if let Some(checkout) = checkout {
            addressed(&mut body, checkout);
        }
        let once = format!("customer:{external_id}:{}", checkout.is_some());
        let made: Named<CustomerId> = self.post(self.url(&["customers"])?, &body, &once).await?;
        Ok(made.id)
    }

    /// Books a payment, or has it stored as unapplied: its status says which. Its receipt is addressed to the buyer, if that is wanted.
    pub(crate) async fn top_up(
        &self,
        customer: CustomerId,
        paid: &PaidCheckout,
        is_named: bool,
    ) -> Result<String, ApiFailure> {
        let (checkout, reference) = (&paid.checkout, &paid.reference);
        let mut body = sum_of(paid);
        body["amount"] = json!(checkout.offer.credit);
        if is_named {
            addressed(&mut body, checkout);
        }
        if let Some(reservation) = &checkout.reservation {
            body["reservation"] = json!(reservation);
        }
        let url = self.url(&["customers", &customer.to_string(), "top-ups"])?;
        let once = format!("top-up:{reference}:{is_named}");
        let topped: Topped = self.post(url, &body, &once).await?;
        Ok(topped.status())
    }

    /// Tells what went back of a payment.
    pub(crate) async fn reverse(
        &self,
        customer: CustomerId,
        body: &Value,
        once: &str,
    ) -> Result<(), ApiFailure> {
        let url = self.url(&["customers", &customer.to_string(), "reversals"])?;
        let _: Value = self.post(url, body, once).await?;
        Ok(())
    }

    /// A payment by its reference.
    pub(crate) async fn payment(
        &self,
        reference: &str,
    ) -> Result<Option<BookedPayment>, ApiFailure> {
        known(self.get(self.url(&["payments", reference])?).await)
    }

    /// The receipt of a payment, as the gateway writes it.
    pub(crate) async fn receipt(&self, reference: &str) -> Result<Option<Value>, ApiFailure> {
        known(
            self.get(self.url(&["payments", reference, "receipt"])?)
                .await,
        )
    }

    /// The first key of the customer that a purchase made, with a secret that was never shown: a new key, or a new secret of the one
    /// that was not used yet. `None` once it was used. A payment that was assigned to somebody else opens nothing there.
    pub(crate) async fn first_key(
        &self,
        customer: CustomerId,
        reference: &str,
        fresh: &str,
    ) -> Result<Option<(String, String)>, ApiFailure> {
        let of = customer.to_string();
        let found: OfCustomer = self.get(self.url(&["customers", &of])?).await?;
        if found.external_id.as_deref() != Some(reference) {
            let why = "this purchase made no customer of its own".to_owned();
            let code = "not_yours".to_owned();
            return Err(ApiFailure::Refused(409, code, why, Value::Null));
        }
        let key = match found.keys.into_iter().next() {
            Some(key) => key.id,
            None => {
                let body = json!({ "label": "first key", "owner": true });
                let url = self.url(&["customers", &of, "keys"])?;
                let made: MadeKey = self.post(url, &body, "first-key").await?;
                match made.secret {
                    Some(secret) => return Ok(Some((made.id, secret))),
                    None => made.id,
                }
            }
        };
        let url = self.url(&["keys", &key, "reissue"])?;
        let again: Result<MadeKey, ApiFailure> = self.post(url, &json!({}), fresh).await;
        match again {
            Ok(made) => Ok(made.secret.map(|secret| (made.id, secret))),
            Err(ApiFailure::Refused(409, ..)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Whether a customer is the one that a purchase made.
    pub(crate) async fn has_made(
        &self,
        external_id: &str,
        customer: CustomerId,
    ) -> Result<bool, ApiFailure> {
        let made = self.customer_of(external_id).await?;
        Ok(made == Some(customer))
    }

    /// What is on sale.
    pub(crate) async fn models(&self) -> Result<Vec<ModelRow>, ApiFailure> {
        let page: Page<ModelRow> = self.get(self.url(&["models"])?).await?;
        Ok(page.data)
    }

    /// What a customer is offered, at its prices.
    pub(crate) async fn models_of(
        &self,
        customer: CustomerId,
    ) -> Result<Vec<ModelRow>, ApiFailure> {
        let mut url = self.url(&["models"])?;
        url.query_pairs_mut()
            .append_pair("customer", &customer.to_string());
        let page: Page<ModelRow> = self.get(url).await?;
        Ok(page.data)
    }

    /// The token that this shop sells with.
    pub(crate) async fn token(&self) -> Result<SellToken, ApiFailure> {
        self.get(self.url(&["token"])?).await
    }

    /// The seller.
    pub(crate) async fn seller(&self) -> Result<GatewaySeller, ApiFailure> {
        self.get(self.url(&["shop"])?).await
    }

    /// Keeps credit for a checkout, so that its payment can be booked.
    pub(crate) async fn reserve(
        &self,
        of: ReservedFor<'_>,
        until: Timestamp,
        once: &str,
    ) -> Result<ReservedCredit, ApiFailure> {
        let mut body = json!({ "credit": of.credit, "until": until });
        if let Some(customer) = of.customer {
            body["customer"] = json!(customer);
        }
        if let Some(plan) = of.plan {
            body["plan"] = json!(plan);
        }
        if let Some(id) = of.goes_on {
            body["id"] = json!(id);
        }
        self.post(self.url(&["reservations"])?, &body, once).await
    }

    /// Ends a reservation whose checkout nobody will pay.
    pub(crate) async fn release(&self, reservation: &str) -> Result<(), ApiFailure> {
        let url = self.url(&["reservations", reservation])?;
        self.answer(Method::DELETE, url, None).await.map(drop)
    }

    fn url(&self, parts: &[&str]) -> Result<Url, ApiFailure> {
        let parts = [&["api", "v1"], parts].concat();
        below(&self.base, &parts)
            .ok_or_else(|| ApiFailure::Away("the gateway's address is not usable".to_owned()))
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, url: Url) -> Result<T, ApiFailure> {
        self.ask(Method::GET, url, None).await
    }

    async fn post<T: serde::de::DeserializeOwned>(
        &self,
        url: Url,
        body: &Value,
        once: &str,
    ) -> Result<T, ApiFailure> {
        self.ask(Method::POST, url, Some((body, once))).await
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        sent: Option<(&Value, &str)>,
    ) -> Result<T, ApiFailure> {
        let body = self.answer(method, url, sent).await?;
        serde_json::from_slice(&body)
            .map_err(|error| away(format!("its answer cannot be read: {error}")))
    }

    async fn answer(
        &self,
        method: Method,
        url: Url,
        sent: Option<(&Value, &str)>,
    ) -> Result<Vec<u8>, ApiFailure> {
        let mut request = self
            .client
            .request(method, url)
            .bearer_auth(self.token.reveal());
        if let Some((body, once)) = sent {
            request = request
                .header("idempotency-key", once)
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let reply = client::send(request).await.map_err(away)?;
        if (200..300).contains(&reply.status) {
            return Ok(reply.body);
        }
        let mut said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let text = |name: &str| {
            let found = said.pointer(&format!("/error/{name}"));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (code, message) = (text("code"), text("message"));
        let details = said.pointer_mut("/error/details").map(Value::take);
        Err(match reply.status {
            // A token can be replaced, and a limit passes; the processor tells again until then.
            401 | 403 | 408 | 421 | 429 | 500.. => {
                away(format!("{} {code} {message}", reply.status))
            }
            status => ApiFailure::Refused(status, code, message, details.unwrap_or_default()),
        })
    }
}

fn away(why: String) -> ApiFailure {
    ApiFailure::Away(format!("the gateway: {why}"))
}

/// What was paid, and what was asked for.
fn sum_of(paid: &PaidCheckout) -> Value {
    let checkout = &paid.checkout;
    let mut body = json!({
        "reference": paid.reference,
        "currency": paid.currency,
        "gross": paid.gross,
        "expected_currency": checkout.currency,
        "expected_gross": checkout.offer.price,
    });
    if paid.is_as_asked() {
        body["tax"] = json!(checkout.offer.tax);
    }
    body
}

/// Adds what the buyer typed about itself.
fn addressed(body: &mut Value, checkout: &Checkout) {
    for (name, value) in [("name", &checkout.name), ("address", &checkout.address)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
}

fn known<T>(answer: Result<T, ApiFailure>) -> Result<Option<T>, ApiFailure> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(ApiFailure::Refused(404, ..)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

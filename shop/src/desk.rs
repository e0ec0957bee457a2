//! The shop's paths: what a buyer's browser asks, and the processor's callbacks.

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{CustomerId, clock, text};
use salvo::http::StatusCode;
use salvo::prelude::{Request, Response, Router, handler};
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::answer;
use crate::booking::{self, Booking};
use crate::buyer::Buyer;
use crate::checkout::{ADDRESS, Checkout, NAME};
use crate::gateway::{ApiFailure, GatewayApi, ModelRow};
use crate::pages::{self, PricePage, PurchasePage, Seller};
use crate::processor::{BadMessage, FoundCheckout, Processor, ProcessorMessage, Ways};
use crate::settings::ShopSettings;

/// The largest form and the largest callback.
const LARGEST: usize = 512 << 10;
/// Calls to the processor at once: anybody can begin a checkout.
const AT_ONCE: usize = 16;
/// How long a list of models is shown before it is asked for again.
const FRESH: Duration = Duration::from_secs(30);

/// Everything the paths need.
pub(crate) struct ShopDesk {
    pub(crate) settings: ShopSettings,
    /// Its name at the processor.
    id: String,
    /// Where buyers reach the shop.
    pub(crate) public_url: String,
    pub(crate) api: GatewayApi,
    pub(crate) processor: Box<dyn Processor>,
    places: Semaphore,
    models: Mutex<Option<(Instant, Vec<ModelRow>)>>,
}

/// One path.
#[derive(Debug, Clone, Copy)]
enum DeskPath {
    Prices,
    Checkout,
    Bought,
    Key,
    Receipt,
    Callback,
    Style,
    Health,
}

struct DeskHandler(Arc<ShopDesk>, DeskPath);

/// Every path.
pub(crate) fn router(desk: &Arc<ShopDesk>) -> Router {
    let at = |path: DeskPath| DeskHandler(Arc::clone(desk), path);
    let on = |path: &str| Router::with_path(path.to_owned());
    let router = Router::new()
        .get(at(DeskPath::Prices))
        .push(on("checkout").post(at(DeskPath::Checkout)))
        .push(on("bought").get(at(DeskPath::Bought)))
        .push(on("key").post(at(DeskPath::Key)))
        .push(on("receipt").get(at(DeskPath::Receipt)))
        .push(on("webhook").post(at(DeskPath::Callback)))
        .push(on("page.css").get(at(DeskPath::Style)))
        .push(on("healthz").get(at(DeskPath::Health)));
    match desk.processor.pages() {
        Some(pages) => router.push(pages),
        None => router,
    }
}

#[handler]
impl DeskHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        req.set_secure_max_size(LARGEST);
        let Self(desk, path) = self;
        match path {
            DeskPath::Prices => desk.prices(req, res, StatusCode::OK, None).await,
            DeskPath::Checkout => desk.checkout(req, res).await,
            DeskPath::Bought => desk.bought(req, res).await,
            DeskPath::Key => desk.key(req, res).await,
            DeskPath::Receipt => desk.receipt(req, res).await,
            DeskPath::Callback => desk.callback(req, res).await,
            DeskPath::Style => answer::style(res, pages::STYLE),
            DeskPath::Health => answer::line(res, StatusCode::OK, "ok"),
        }
    }
}

/// A purchase that this browser began, and its payment.
struct OwnPurchase {
    found: FoundCheckout,
    reference: String,
    customer: CustomerId,
    buyer: Buyer,
    id: String,
}

impl ShopDesk {
    pub(crate) fn new(
        settings: ShopSettings,
        (id, public_url): (String, String),
        api: GatewayApi,
        processor: Box<dyn Processor>,
    ) -> Self {
        Self {
            settings,
            id,
            public_url,
            api,
            processor,
            places: Semaphore::new(AT_ONCE),
            models: Mutex::new(None),
        }
    }

    fn seller(&self) -> Seller<'_> {
        Seller(&self.settings)
    }

    async fn prices(
        &self,
        req: &mut Request,
        res: &mut Response,
        status: StatusCode,
        told: Option<&str>,
    ) {
        let known = Buyer::of(req.headers());
        let buyer = known.clone().unwrap_or_else(Buyer::new);
        // A form that was refused brings whom it was about.
        let customer = match told {
            Some(_) => req.form::<String>("customer").await,
            None => req.query::<String>("customer"),
        };
        let (proof, models) = (buyer.proof(), self.models().await);
        let once = hex::encode(clock::random::<16>());
        let page = PricePage {
            proof: &proof,
            once: &once,
            // Whether somebody has this id is not told to whoever types it.
            customer: customer.and_then(|id| id.parse().ok()),
            models: models.as_deref(),
            told,
        };
        answer::page(res, status, self.seller().prices(&page));
        if known.is_none() {
            answer::cookie(res, &buyer.cookie());
        }
    }

    /// What the gateway sells; the last list while it is away.
    async fn models(&self) -> Option<Vec<ModelRow>> {
        let mut kept = self.models.lock().await;
        let is_fresh = |at: &Instant| at.elapsed() < FRESH;
        if kept.as_ref().is_none_or(|(at, _)| !is_fresh(at)) {
            match self.api.models().await {
                Ok(models) => *kept = Some((Instant::now(), models)),
                Err(failure) => tracing::warn!(?failure, "the gateway does not list its models"),
            }
        }
        kept.as_ref().map(|(_, models)| models.clone())
    }

    /// The model of a first request: one that is best on chat, if there is one.
    async fn first_model(&self) -> Option<String> {
        let models = self.models().await?;
        let chat = models.iter().find(|row| row.best_path == "chat");
        chat.or(models.first()).map(|row| row.customer_slug.clone())
    }

    /// Begins a checkout and sends the browser to pay.
    async fn checkout(&self, req: &mut Request, res: &mut Response) {
        let checkout = match self.asked(req).await {
            Ok(checkout) => checkout,
            Err(told) => {
                return self
                    .prices(req, res, StatusCode::UNPROCESSABLE_ENTITY, Some(&told))
                    .await;
            }
        };
        let left = match checkout.customer {
            Some(customer) => format!("{}/?customer={customer}", self.public_url),
            None => format!("{}/", self.public_url),
        };
        let back = Ways {
            paid: format!("{}/bought?checkout=", self.public_url),
            left,
            what: format!(
                "{} USD of credit at {}",
                checkout.offer.credit, self.settings.name
            ),
        };
        let Ok(_place) = self.places.try_acquire() else {
            return self.busy(res);
        };
        match self.processor.begin(&checkout, &back).await {
            Ok(page) => answer::page(res, StatusCode::OK, self.seller().onward(&page)),
            Err(away) => self.processor_away(res, &away.0),
        }
    }

    fn busy(&self, res: &mut Response) {
        let text =
            "Many people are buying at the moment. Nothing was charged; try again in a moment.";
        let page = self.seller().notice("Busy", text);
        answer::page(res, StatusCode::SERVICE_UNAVAILABLE, page);
    }

    fn processor_away(&self, res: &mut Response, why: &str) {
        tracing::warn!(why, "the payment processor is not available");
        let text = "The payment processor does not answer at the moment. Nothing was charged by this page; try again later.";
        let page = self.seller().notice("Payment is not available", text);
        answer::page(res, StatusCode::SERVICE_UNAVAILABLE, page);
    }

    fn gateway_away(&self, res: &mut Response, failure: &ApiFailure) {
        tracing::warn!(?failure, "the gateway is not available");
        // The page asks again by itself: a payment is never lost on the way.
        answer::page(
            res,
            StatusCode::SERVICE_UNAVAILABLE,
            self.seller().waiting(None),
        );
    }

    /// What the form of the price page asks for.
    async fn asked(&self, req: &mut Request) -> Result<Checkout, String> {
        let buyer = self.own_form(req).await?;
        let field = async |req: &mut Request, name: &str| {
            let text = req.form::<String>(name).await.unwrap_or_default();
            text.trim().to_owned()
        };
        let offer = field(req, "offer").await.parse::<usize>().ok();
        let offer = offer.and_then(|at| self.settings.offers.get(at));
        let offer = offer.ok_or("Choose how much credit you want.")?.clone();
        let customer = match field(req, "customer").await.as_str() {
            "" => None,
            id => Some(
                id.parse()
                    .map_err(|_| "This is no customer's id, as in c_7f3q9d2xw1.".to_owned())?,
            ),
        };
        let name = of_receipt("name", field(req, "name").await, NAME)?;
        let address = of_receipt("address", field(req, "address").await, ADDRESS)?;
        let once = field(req, "once").await;
        if once.is_empty() || once.len() > 64 || !once.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Err("This form is not complete. Try again.".to_owned());
        }
        Ok(Checkout {
            shop: self.id.clone(),
            offer,
            currency: self.settings.currency.clone(),
            customer,
            name,
            address,
            buyer: buyer.mark(),
            once,
        })
    }

    /// The buyer whose own page posted a form.
    async fn own_form(&self, req: &mut Request) -> Result<Buyer, String> {
        let buyer = Buyer::of(req.headers()).ok_or(
            "Your browser sent no cookie, and without one the key could not be shown to you alone. Allow cookies for this page and try again.",
        )?;
        let proof = req.form::<String>("proof").await.unwrap_or_default();
        if proof != buyer.proof() {
            return Err("This form did not come from this page. Try again.".to_owned());
        }
        Ok(buyer)
    }

    /// The page of a purchase.
    async fn bought(&self, req: &mut Request, res: &mut Response) {
        let id = req.query::<String>("checkout").unwrap_or_default();
        let Some(own) = self.own_purchase(req, res, id).await else {
            return;
        };
        let offer = &own.found.checkout.offer;
        let page = PurchasePage {
            reference: &own.reference,
            checkout: &own.id,
            proof: &own.buyer.proof(),
            customer: own.customer,
            has_key: own.has_key(),
            paid: format!("{} {}", offer.price, own.found.checkout.currency),
            credit: offer.credit.to_string(),
        };
        answer::page(res, StatusCode::OK, self.seller().purchase(&page));
    }

    /// A purchase, if it is this browser's and stands in the books; else the answer is written.
    async fn own_purchase(
        &self,
        req: &Request,
        res: &mut Response,
        id: String,
    ) -> Option<OwnPurchase> {
        let found = {
            let Ok(_place) = self.places.try_acquire() else {
                self.busy(res);
                return None;
            };
            self.processor.find(&id).await
        };
        let found = match found {
            Ok(found) => found.filter(|found| found.checkout.shop == self.id),
            Err(away) => {
                self.processor_away(res, &away.0);
                return None;
            }
        };
        let Some(found) = found else {
            let page = (self.seller()).notice("Not found", "There is no such purchase.");
            answer::page(res, StatusCode::NOT_FOUND, page);
            return None;
        };
        let buyer = Buyer::of(req.headers()).filter(|buyer| buyer.mark() == found.checkout.buyer);
        let Some(buyer) = buyer else {
            let reference = found.payment.unwrap_or(id);
            let page = self.seller().stranger(&reference);
            answer::page(res, StatusCode::FORBIDDEN, page);
            return None;
        };
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

    /// Makes the key of a first purchase, or replaces it before its first use, and shows it.
    async fn key(&self, req: &mut Request, res: &mut Response) {
        if let Err(told) = self.own_form(req).await {
            let page = self.seller().notice("Refused", &told);
            return answer::page(res, StatusCode::FORBIDDEN, page);
        }
        let id = req.form::<String>("checkout").await.unwrap_or_default();
        let Some(own) = self.own_purchase(req, res, id).await else {
            return;
        };
        if !own.has_key() {
            let text = "This purchase topped up a customer that has its keys already.";
            let page = self.seller().notice("No new key", text);
            return answer::page(res, StatusCode::CONFLICT, page);
        }
        let label = own.found.checkout.name.as_deref().unwrap_or("first key");
        let fresh = hex::encode(clock::random::<16>());
        match self
            .api
            .first_key(own.customer, &own.reference, label, &fresh)
            .await
        {
            Ok(Some((_, secret))) => {
                let back = format!("/bought?checkout={}", own.id);
                let model = self.first_model().await;
                let page = (self.seller()).key(&secret, own.customer, &back, model.as_deref());
                answer::page(res, StatusCode::OK, page);
            }
            Ok(None) => {
                let text = "This key is in use, so it is not shown again. Sign in with it; if it is lost, ask the seller.";
                let page = self.seller().notice("Your key is in use", text);
                answer::page(res, StatusCode::CONFLICT, page);
            }
            Err(ApiFailure::Refused(status, code, message)) => {
                tracing::warn!(status, code, message, "the gateway made no key");
                let text = format!("The key could not be made: {message}");
                let page = self.seller().notice("Ask the seller", &text);
                answer::page(res, StatusCode::CONFLICT, page);
            }
            Err(failure) => self.gateway_away(res, &failure),
        }
    }

    async fn receipt(&self, req: &mut Request, res: &mut Response) {
        let id = req.query::<String>("checkout").unwrap_or_default();
        let Some(own) = self.own_purchase(req, res, id).await else {
            return;
        };
        match self.api.receipt(&own.reference).await {
            Ok(Some(document)) => {
                let page = self.seller().receipt(&receipt_lines(&document));
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

    /// A callback of the processor: it is acknowledged only when the books have it.
    async fn callback(&self, req: &mut Request, res: &mut Response) {
        let Ok(body) = req.payload_with_max_size(LARGEST).await.cloned() else {
            return answer::line(res, StatusCode::BAD_REQUEST, "the body did not arrive");
        };
        let now = clock::now().millis() / 1_000;
        let message = self.processor.message(req.headers(), &body, now).await;
        let booking = match message {
            Ok(ProcessorMessage::Paid(paid)) => booking::book(&self.api, &self.id, &paid).await,
            Ok(ProcessorMessage::Back(back)) => booking::take_back(&self.api, &back).await,
            Ok(ProcessorMessage::Nothing(why)) => Booking::Done(why),
            Err(BadMessage::Forged(why)) => {
                tracing::warn!(why, "refused a callback");
                return answer::line(res, StatusCode::BAD_REQUEST, why);
            }
            Err(BadMessage::Unreadable(why)) => Booking::Wrong(why),
            Err(BadMessage::Away(away)) => Booking::Later(away.0),
        };
        let (status, text) = match booking {
            Booking::Done(text) => {
                tracing::info!(text, "callback");
                (StatusCode::OK, text)
            }
            Booking::Later(text) => {
                tracing::warn!(text, "a callback has to come again");
                (StatusCode::SERVICE_UNAVAILABLE, text)
            }
            Booking::Wrong(text) => {
                tracing::error!(text, "a callback needs somebody to look at it");
                (StatusCode::UNPROCESSABLE_ENTITY, text)
            }
        };
        answer::line(res, status, &text);
    }
}

impl OwnPurchase {
    /// A top-up that named a customer brings no key; one whose customer was not there made its own.
    fn has_key(&self) -> bool {
        self.found.checkout.customer != Some(self.customer)
    }
}

/// What a receipt may say of a buyer: one line, all of whose characters can be seen.
fn of_receipt(what: &str, typed: String, most: usize) -> Result<Option<String>, String> {
    if typed.chars().count() > most || typed.len() > 480 {
        return Err(format!("The {what} is too long."));
    }
    if typed.chars().any(text::is_unseen) || typed.contains(text::SECRET_PREFIX) {
        return Err(format!(
            "The {what} contains characters that cannot be printed. Type it again."
        ));
    }
    Ok(Some(typed).filter(|typed| !typed.is_empty()))
}

/// An instant for people, to the second.
fn to_the_second(at: &str) -> String {
    match at.split_once('T') {
        Some((day, time)) => format!("{day} {} UTC", time.get(..8).unwrap_or(time)),
        None => at.to_owned(),
    }
}

/// The lines of a receipt for people, from the gateway's document.
fn receipt_lines(document: &Value) -> Vec<(&'static str, String)> {
    let text = |name: &str| match document.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        _ => None,
    };
    let currency = text("currency").unwrap_or_default();
    let money = |name: &str| text(name).map(|sum| format!("{sum} {currency}"));
    let usd = text("credit").map(|sum| format!("{sum} USD"));
    [
        ("Number", text("number")),
        ("Date", text("at").map(|at| to_the_second(&at))),
        ("Customer", text("customer")),
        ("Name", text("name")),
        ("Address", text("address")),
        ("Payment", text("reference")),
        ("Net", money("net")),
        ("Tax", money("tax")),
        ("Total", money("gross")),
        ("Credit", usd),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

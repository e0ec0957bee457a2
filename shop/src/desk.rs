//! The shop's paths: what a buyer's browser asks, and the processor's callbacks.

mod callback;

use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use farebox_door::byte_room::ByteRoom;
use farebox_door::{
    BodyRule, CallPlace, CallPlaces, Door, DoorPath, FormFields, Method, PathCaller, TurnAway,
    TurnedAway, UnreadBody, Visit, memory,
};
use farebox_ledger::{CustomerId, clock, text};
use farebox_toml::HiddenText;
use salvo::http::StatusCode;
use salvo::prelude::{Depot, Request, Response, handler};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::answer;
use crate::buyer::Buyer;
use crate::checkout::{ADDRESS, Checkout, NAME};
use crate::gateway::{ApiFailure, GatewayApi, ModelRow};
use crate::pages::{self, PricePage, PurchasePage, Seller};
use crate::processor::{FoundCheckout, Processor, Ways};
use crate::receipts;
use crate::settings::{ShopSettings, Storefront};

/// The largest callback.
const CALLBACK: usize = 512 << 10;
/// The most bytes of bodies in flight; less where the process may have little memory.
const BODY_BYTES_IN_FLIGHT: usize = 64 << 20;
/// How long a list of models is shown before it is asked for again.
const FRESH: Duration = Duration::from_secs(30);

/// Everything the paths need.
pub(crate) struct ShopDesk {
    settings: ShopSettings,
    /// What is in force of offers and texts.
    pub(crate) front: watch::Sender<Arc<Storefront>>,
    /// Its name at the processor.
    id: String,
    /// Where buyers reach the shop.
    pub(crate) public_url: String,
    pub(crate) api: GatewayApi,
    pub(crate) processor: Box<dyn Processor>,
    /// Signs what only the way back from a payment leads to.
    secret: HiddenText,
    /// Places for calls to the processor: anybody can begin a checkout.
    calls: CallPlaces<ShopCaller>,
    room: Arc<ByteRoom>,
    /// Numbers for addresses, which nobody outside can choose.
    peers: RandomState,
    models: Mutex<Option<(Instant, Option<Vec<ModelRow>>)>>,
}

/// Who has the processor asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ShopCaller {
    /// Whoever paid here: the mark of its browser.
    Buyer(String),
    /// Anybody, by address.
    Stranger(Option<IpAddr>),
}

/// What answers on a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeskTask {
    Prices,
    Checkout,
    Bought,
    Key,
    Receipt,
    Callback,
    Style,
    Health,
}

struct DeskHandler(Arc<ShopDesk>, DeskTask);

const fn form(path: &'static str) -> DoorPath {
    DoorPath::new(Method::Post, path, BodyRule::Form, PathCaller::Anybody)
}

/// Every path; the processor may have some of its own.
pub(crate) const PATHS: [(DoorPath, DeskTask); 8] = [
    (DoorPath::read("/", PathCaller::Anybody), DeskTask::Prices),
    (form("/checkout"), DeskTask::Checkout),
    (
        DoorPath::read("/bought", PathCaller::Anybody),
        DeskTask::Bought,
    ),
    (form("/key"), DeskTask::Key),
    (
        DoorPath::read("/receipt", PathCaller::Anybody),
        DeskTask::Receipt,
    ),
    (
        DoorPath::new(
            Method::Post,
            "/webhook",
            BodyRule::Json(CALLBACK),
            PathCaller::Signer,
        ),
        DeskTask::Callback,
    ),
    (
        DoorPath::read("/page.css", PathCaller::Anybody),
        DeskTask::Style,
    ),
    (
        DoorPath::read("/healthz", PathCaller::Monitor),
        DeskTask::Health,
    ),
];

/// The door of all of them.
pub(crate) fn door(desk: &Arc<ShopDesk>) -> Door {
    let trusted = desk.settings.trusted_proxies.clone();
    let door = Door::new(Arc::new(ShopWords), trusted, Arc::default());
    let door = PATHS.into_iter().fold(door, |door, (path, task)| {
        door.path(path, DeskHandler(Arc::clone(desk), task))
    });
    desk.processor.pages(door)
}

/// How the shop says that a request is turned away.
struct ShopWords;

impl TurnAway for ShopWords {
    fn turn_away(&self, why: TurnedAway, _: &Request, _: &Depot, res: &mut Response) {
        let status = StatusCode::from_u16(why.status()).unwrap_or_default();
        answer::line(res, status, why.message());
        if let Some(seconds) = why.retry_after() {
            res.headers_mut().insert("retry-after", seconds.into());
        }
    }
}

#[handler]
impl DeskHandler {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let Self(desk, path) = self;
        let form = match path {
            DeskTask::Checkout | DeskTask::Key => UnreadBody::of(depot).form().await,
            _ => Ok(FormFields::default()),
        };
        let form = match form {
            Ok(form) => form,
            Err(fault) => return answer::fault(res, fault),
        };
        match path {
            DeskTask::Prices => {
                let customer = req.query::<String>("customer");
                desk.prices(req, res, customer, None).await;
            }
            DeskTask::Checkout => desk.checkout(req, &form, depot, res).await,
            DeskTask::Bought => desk.bought(req, depot, res).await,
            DeskTask::Key => desk.key(req, &form, depot, res).await,
            DeskTask::Receipt => desk.receipt(req, depot, res).await,
            DeskTask::Callback => desk.callback(req, depot, res).await,
            DeskTask::Style => answer::style(res, pages::STYLE),
            DeskTask::Health => answer::line(res, StatusCode::OK, "ok"),
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
        secret: HiddenText,
    ) -> Self {
        let front = watch::Sender::new(Arc::new(settings.storefront.clone()));
        Self {
            settings,
            front,
            id,
            public_url,
            api,
            processor,
            secret,
            calls: CallPlaces::default(),
            room: ByteRoom::new(memory::share_of_flight(1, 1, BODY_BYTES_IN_FLIGHT)),
            peers: RandomState::new(),
            models: Mutex::new(None),
        }
    }

    fn front(&self) -> Arc<Storefront> {
        Arc::clone(&self.front.borrow())
    }

    fn seller(&self) -> Seller<'_> {
        Seller {
            front: self.front(),
            gateway: &self.settings.gateway_url,
        }
    }

    async fn prices(
        &self,
        req: &Request,
        res: &mut Response,
        customer: Option<String>,
        told: Option<&str>,
    ) {
        let known = Buyer::of(req.headers());
        let buyer = known.clone().unwrap_or_else(Buyer::new);
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
        let status = told.map_or(StatusCode::OK, |_| StatusCode::UNPROCESSABLE_ENTITY);
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
            let before = kept.take().and_then(|(_, models)| models);
            let models = match self.api.models().await {
                Ok(models) => Some(models),
                Err(failure) => {
                    tracing::warn!(?failure, "the gateway does not list its models");
                    before
                }
            };
            // One that does not answer keeps one buyer waiting, not each.
            *kept = Some((Instant::now(), models));
        }
        kept.as_ref().and_then(|(_, models)| models.clone())
    }

    /// The model of a first request: one that is best on chat, if there is one.
    async fn first_model(&self) -> Option<String> {
        let models = self.models().await?;
        let chat = models.iter().find(|row| row.best_path == "chat");
        chat.or(models.first()).map(|row| row.customer_slug.clone())
    }

    /// Begins a checkout and sends the browser to pay.
    async fn checkout(&self, req: &Request, form: &FormFields, depot: &Depot, res: &mut Response) {
        let asked = own_form(req, form)
            .and_then(|buyer| self.asked(&buyer, form).map(|checkout| (buyer, checkout)));
        let (buyer, checkout) = match asked {
            Ok(asked) => asked,
            Err(told) => {
                // A form that was refused brings whom it was about.
                let customer = form.get("customer").map(str::to_owned);
                return self.prices(req, res, customer, Some(&told)).await;
            }
        };
        let left = match checkout.customer {
            Some(customer) => format!("{}/?customer={customer}", self.public_url),
            None => format!("{}/", self.public_url),
        };
        let back = Ways {
            paid: format!(
                "{}/bought?paid={}&checkout=",
                self.public_url,
                buyer.paid(&self.secret)
            ),
            left,
            what: format!(
                "{} USD of credit at {}",
                checkout.offer.credit,
                self.front().name
            ),
        };
        let Some(_place) = self.place(req, &buyer, depot).await else {
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

    /// A place for a call to the processor. Who paid here has places that strangers do not take; strangers have a budget besides.
    async fn place(
        &self,
        req: &Request,
        buyer: &Buyer,
        depot: &Depot,
    ) -> Option<CallPlace<ShopCaller>> {
        if buyer.has_paid(req, &self.secret).is_some() {
            return self.calls.of_known(ShopCaller::Buyer(buyer.mark())).await;
        }
        let visit = Visit::of(depot)?;
        visit.call_as_stranger().ok()?;
        let peer = ShopCaller::Stranger(visit.sender.peer());
        self.calls.of_stranger(peer).await
    }

    /// What the form of the price page asks for.
    fn asked(&self, buyer: &Buyer, form: &FormFields) -> Result<Checkout, String> {
        let field = |name: &str| form.text(name).trim().to_owned();
        let front = self.front();
        let offer = front.offer(&field("offer"));
        let offer = offer.ok_or("Choose how much credit you want: this offer is not there.")?;
        let customer = match field("customer").as_str() {
            "" => None,
            id => Some(
                id.parse()
                    .map_err(|_| "This is no customer's id, as in c_7f3q9d2xw1.".to_owned())?,
            ),
        };
        let name = of_receipt("name", field("name"), NAME)?;
        let address = of_receipt("address", field("address"), ADDRESS)?;
        let once = field("once");
        if once.is_empty() || once.len() > 64 || !once.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Err("This form is not complete. Try again.".to_owned());
        }
        Ok(Checkout {
            shop: self.id.clone(),
            offer: offer.clone(),
            currency: front.currency.clone(),
            customer,
            name,
            address,
            buyer: buyer.mark(),
            once,
        })
    }

    /// The page of a purchase.
    async fn bought(&self, req: &Request, depot: &Depot, res: &mut Response) {
        let id = req.query::<String>("checkout").unwrap_or_default();
        let Some(own) = self.own_purchase(req, depot, res, id).await else {
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
        depot: &Depot,
        res: &mut Response,
        id: String,
    ) -> Option<OwnPurchase> {
        // Nobody is asked for whom nothing would be shown.
        let Some(buyer) = Buyer::of(req.headers()) else {
            answer::page(res, StatusCode::FORBIDDEN, self.seller().stranger(&id));
            return None;
        };
        let found = {
            let Some(_place) = self.place(req, &buyer, depot).await else {
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

    /// Makes the key of a first purchase, or replaces it before its first use, and shows it.
    async fn key(&self, req: &Request, form: &FormFields, depot: &Depot, res: &mut Response) {
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
        let made = self.api.first_key(own.customer, &own.reference, &fresh);
        match made.await {
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

    async fn receipt(&self, req: &Request, depot: &Depot, res: &mut Response) {
        let id = req.query::<String>("checkout").unwrap_or_default();
        let Some(own) = self.own_purchase(req, depot, res, id).await else {
            return;
        };
        match self.api.receipt(&own.reference).await {
            Ok(Some(document)) => {
                let page = self.seller().receipt(&receipts::lines(&document));
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
    /// A top-up that named a customer brings no key; one whose customer was not there made its own.
    fn has_key(&self) -> bool {
        self.found.checkout.customer != Some(self.customer)
    }
}

/// The buyer whose own page posted a form.
fn own_form(req: &Request, form: &FormFields) -> Result<Buyer, String> {
    let buyer = Buyer::of(req.headers()).ok_or(
        "Your browser sent no cookie, and without one the key could not be shown to you alone. Allow cookies for this page and try again.",
    )?;
    if form.text("proof") != buyer.proof() {
        return Err("This form did not come from this page. Try again.".to_owned());
    }
    Ok(buyer)
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

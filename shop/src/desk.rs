//! The shop's paths: what a buyer's browser asks, and the processor's callbacks.

mod callback;
mod checkout;
mod owner;
mod plans;
mod purchase;

use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farebox_door::byte_room::ByteRoom;
use farebox_door::{
    BodyRule, CallPlace, CallPlaces, Door, DoorPath, FormFields, Method, PathCaller, TurnAway,
    TurnedAway, UnreadBody, Visit, memory,
};
use farebox_ledger::{clock, lock};
use farebox_toml::HiddenText;
use salvo::http::StatusCode;
use salvo::prelude::{Depot, Request, Response, handler};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::answer;
use crate::buyer::Buyer;
use crate::gateway::{ApiFailure, GatewayApi, GatewaySeller, ModelRow};
use crate::lookups::Lookups;
use crate::pages::{self, PricePage, Seller};
use crate::plan_row::PlanRow;
use crate::preflight::PROVED;
use crate::processor::Processor;
use crate::reservation::ReservedCheckouts;
use crate::settings::{ShopSettings, Storefront};

/// The largest callback.
const CALLBACK: usize = 512 << 10;
/// The most bytes of bodies in flight; less where the process may have little memory.
const BODY_BYTES_IN_FLIGHT: usize = 64 << 20;
/// How long a list of models is shown before it is asked for again.
const FRESH: Duration = Duration::from_secs(30);

/// What the shop says of its health until then.
const UNPROVED: &str = "ok; no callback proved the webhook's secret yet";

/// Everything the paths need.
pub(crate) struct ShopDesk {
    settings: ShopSettings,
    /// What is in force of offers and texts.
    pub(crate) front: watch::Sender<Arc<Storefront>>,
    /// Its name at the processor.
    pub(crate) id: String,
    /// Where buyers reach the shop.
    pub(crate) public_url: String,
    pub(crate) api: GatewayApi,
    pub(crate) processor: Box<dyn Processor>,
    /// Signs what only the way back from a payment leads to.
    secret: HiddenText,
    /// Places for calls to the processor: anybody can begin a checkout.
    calls: CallPlaces<ShopCaller>,
    reservations: ReservedCheckouts,
    /// What callbacks told of checkouts.
    lookups: Lookups,
    /// Whether a callback showed that the webhook's secret is the right one.
    is_proved: AtomicBool,
    room: Arc<ByteRoom>,
    /// Numbers for addresses, which nobody outside can choose.
    peers: RandomState,
    on_sale: Mutex<Option<(Instant, Arc<OnSale>)>>,
    /// The seller as the gateway last described it.
    known: std::sync::Mutex<Arc<GatewaySeller>>,
}

/// What the gateway last said that it sells.
#[derive(Debug, Default)]
struct OnSale {
    /// `None` while it never answered.
    models: Option<Vec<ModelRow>>,
    plans: Vec<PlanRow>,
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
    Stop,
    Portal,
    Receipt,
    Callback,
    Style,
    Script,
    Health,
}

struct DeskHandler(Arc<ShopDesk>, DeskTask);

const fn form(path: &'static str) -> DoorPath {
    DoorPath::new(Method::Post, path, BodyRule::Form, PathCaller::Anybody)
}

/// Every path; the processor may have some of its own.
pub(crate) const PATHS: [(DoorPath, DeskTask); 11] = [
    (DoorPath::read("/", PathCaller::Anybody), DeskTask::Prices),
    (form("/checkout"), DeskTask::Checkout),
    (
        DoorPath::read("/bought", PathCaller::Anybody),
        DeskTask::Bought,
    ),
    (form("/key"), DeskTask::Key),
    (form("/stop"), DeskTask::Stop),
    (form("/portal"), DeskTask::Portal),
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
        DoorPath::read("/page.js", PathCaller::Anybody),
        DeskTask::Script,
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
            DeskTask::Checkout | DeskTask::Key | DeskTask::Stop | DeskTask::Portal => {
                UnreadBody::of(depot).form().await
            }
            _ => Ok(FormFields::default()),
        };
        let form = match form {
            Ok(form) => form,
            Err(fault) => return answer::fault(res, fault),
        };
        match path {
            DeskTask::Prices => {
                if let Some(link) = req.query::<String>("link") {
                    return desk.owner(req, &link, depot, res).await;
                }
                let customer = req.query::<String>("customer");
                desk.prices(req, res, customer, None).await;
            }
            DeskTask::Checkout => desk.checkout(req, &form, depot, res).await,
            DeskTask::Bought => desk.bought(req, depot, res).await,
            DeskTask::Key => desk.key(req, &form, depot, res).await,
            DeskTask::Stop => desk.stop(req, &form, depot, res).await,
            DeskTask::Portal => desk.portal(req, &form, depot, res).await,
            DeskTask::Receipt => desk.receipt(req, depot, res).await,
            DeskTask::Callback => desk.callback(req, depot, res).await,
            DeskTask::Style => answer::asset(res, "text/css; charset=utf-8", pages::STYLE),
            DeskTask::Script => answer::asset(res, "text/javascript; charset=utf-8", pages::SCRIPT),
            DeskTask::Health => desk.health(res),
        }
    }
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
            reservations: ReservedCheckouts::default(),
            lookups: Lookups::default(),
            is_proved: AtomicBool::new(false),
            room: ByteRoom::new(memory::share_of_flight(1, 1, BODY_BYTES_IN_FLIGHT)),
            peers: RandomState::new(),
            on_sale: Mutex::new(None),
            known: std::sync::Mutex::default(),
        }
    }

    /// It serves; and whether callbacks are known to be believed, which `--check` reads.
    fn health(&self, res: &mut Response) {
        let proved = self.is_proved.load(Ordering::Relaxed);
        let text = if proved { PROVED } else { UNPROVED };
        answer::line(res, StatusCode::OK, text);
    }

    fn front(&self) -> Arc<Storefront> {
        Arc::clone(&self.front.borrow())
    }

    fn seller(&self) -> Seller<'_> {
        Seller {
            front: self.front(),
            gateway: &self.settings.gateway_url,
            known: Arc::clone(&lock(&self.known)),
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
        let (proof, on_sale) = (buyer.proof(), self.on_sale().await);
        let once = hex::encode(clock::random::<16>());
        // Whether somebody has this id is not told to whoever types it.
        let customer = customer.and_then(|id| id.parse().ok());
        let owns = |customer| buyer.owns(req.headers(), customer, &self.secret);
        let owned = customer.filter(|customer| owns(*customer));
        let has = match owned {
            Some(customer) => self.plans_of(customer).await,
            None => Vec::new(),
        };
        // An owner sees its own prices, and never others: those of its account may be another list's.
        let own = match owned {
            Some(customer) => Some(self.api.models_of(customer).await.ok()),
            None => None,
        };
        let models = own.as_ref().unwrap_or(&on_sale.models);
        let mut sold = self.front().with(&on_sale.plans);
        if customer != owned {
            sold.offers.retain(|offer| offer.plan.is_none());
        }
        sold.offers
            .retain(|offer| !has.iter().any(|of| of.renews(offer)));
        let page = PricePage {
            proof: &proof,
            once: &once,
            customer,
            is_owner: owned.is_some(),
            sold: &sold,
            plans: &on_sale.plans,
            has: &has,
            models: models.as_deref(),
            told,
        };
        let status = told.map_or(StatusCode::OK, |_| StatusCode::UNPROCESSABLE_ENTITY);
        answer::page(res, status, self.seller().prices(&page));
        if known.is_none() {
            answer::cookie(res, &buyer.cookie());
        }
    }

    /// What the gateway sells, and who; the last that it said while it is away.
    async fn on_sale(&self) -> Arc<OnSale> {
        let mut kept = self.on_sale.lock().await;
        if let Some((at, known)) = &*kept
            && at.elapsed() < FRESH
        {
            return Arc::clone(known);
        }
        let before = kept.take().map(|(_, known)| known).unwrap_or_default();
        let plans = async {
            match self.front().has_plans() {
                true => self.api.plans().await,
                false => Ok(Vec::new()),
            }
        };
        let (models, plans, seller) = tokio::join!(self.api.models(), plans, self.api.seller());
        if let Ok(seller) = seller {
            *lock(&self.known) = Arc::new(seller);
        }
        let failures = [models.as_ref().err(), plans.as_ref().err()];
        for failure in failures.into_iter().flatten() {
            tracing::warn!(?failure, "the gateway does not list what it sells");
        }
        let now = Arc::new(OnSale {
            models: models.ok().or_else(|| before.models.clone()),
            plans: plans.unwrap_or_else(|_| before.plans.clone()),
        });
        // One that does not answer keeps one buyer waiting, not each.
        *kept = Some((Instant::now(), Arc::clone(&now)));
        now
    }

    /// The model of a first request: one that is best on chat, if there is one.
    async fn first_model(&self) -> Option<String> {
        let on_sale = self.on_sale().await;
        let models = on_sale.models.as_ref()?;
        let chat = models.iter().find(|row| row.best_path == "chat");
        chat.or(models.first()).map(|row| row.customer_slug.clone())
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

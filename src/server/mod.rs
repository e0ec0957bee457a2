//! Room 2: the front door, and the only room that knows salvo. Every path is on this page.
//!
//! Whatever is not listed here is answered with a 404 that names the right base URL. A path that reaches an upstream goes
//! through `generate`, and so through a hold and a settlement.

mod account;
pub mod admin;
mod auth;
mod body;
mod connections;
mod failure;
mod forwarded;
mod free;
mod generate;
mod guarded;
mod listen;
mod models;
mod paths;
mod request_id;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use farebox_ledger::{KeyId, SharedLedger};
use farebox_protocol::Family;
use ipnet::IpNet;
use salvo::catcher::Catcher;
use salvo::prelude::{CatchPanic, Router, Service};

use crate::byte_room::ByteRoom;
use crate::customer::{Act, Activity, Context, DIALECTS, Dashboard, Export, Form, Read, Room, SCRIPT, STYLE, View};
use crate::proxy::rate_limit::RateLimits;
use crate::proxy::{Failure, Proxy, Record};
pub use connections::{ConnectionCounts, Connections};
pub use listen::{Listening, listen, serve};
use request_id::Arrival;
pub use tls::{Tls, TlsError, TlsFiles};

/// Bytes of request bodies in flight over all requests.
pub const BODY_BYTES_IN_FLIGHT: usize = 512 * 1024 * 1024;

/// What the front door works with.
#[derive(Debug)]
pub struct Front {
    /// The spine.
    pub proxy: Arc<Proxy>,
    /// The limits of each key.
    pub rate_limits: Arc<RateLimits>,
    /// Room for request bodies.
    pub body_room: Arc<ByteRoom>,
    /// The customers' connections.
    pub connections: Arc<Connections>,
    /// The only base of printed URLs; the `Host` header is never used.
    pub public_url: String,
    /// The customer's side.
    pub context: Arc<Context>,
    /// Only from these addresses do forwarded headers count.
    pub trusted_proxies: Vec<IpNet>,
}

impl Front {
    /// A front door for a spine, at an address; `activity` is told of its requests.
    #[must_use]
    pub fn new(
        proxy: Arc<Proxy>,
        activity: Arc<Activity>,
        public_url: String,
        address: SocketAddr,
        trusted_proxies: Vec<IpNet>,
        connections: Arc<Connections>,
    ) -> Arc<Self> {
        let body_room = ByteRoom::new(BODY_BYTES_IN_FLIGHT);
        let rate_limits = Arc::new(RateLimits::default());
        let context = Arc::new(Context::new(&proxy, Arc::clone(&rate_limits), activity, public_url.clone(), address));
        Arc::new(Self { proxy, rate_limits, body_room, connections, public_url, context, trusted_proxies })
    }

    /// Reports a request for which no money was held.
    fn refused(&self, failure: Failure, family: Family, arrival: &Arrival, key: Option<KeyId>) -> Failure {
        let record = Record::refused(&failure, family, key, arrival.id, arrival.instant, arrival.origin);
        self.proxy.observer.ended(Arc::new(record));
        failure
    }

    fn ledger(&self) -> &SharedLedger {
        &self.proxy.ledger
    }
}

/// Every path of the customers' listener.
#[must_use]
pub fn service(front: &Arc<Front>) -> Service {
    let generate = |family| generate::Generate::new(Arc::clone(front), family);
    let models = |list| models::Models::new(Arc::clone(front), list);
    let account = |read| account::Account::new(Arc::clone(front), read);
    let mut router = Router::new()
        // OpenAI-style clients, at {base}/v1
        .push(Router::with_path("v1/models").get(models(models::List::OpenAi)))
        .push(Router::with_path("v1/models/{slug}").get(models(models::List::One)))
        .push(Router::with_path("v1/chat/completions").post(generate(Family::Chat)))
        .push(Router::with_path("v1/responses").post(generate(Family::Responses)))
        // one's own account, with the key
        .push(Router::with_path("v1/usage").get(account(Read::Usage)))
        .push(Router::with_path("v1/generation").get(account(Read::Receipt)))
        // native clients, at {base}/native
        .push(Router::with_path("native/v1/models").get(models(models::List::Native)))
        .push(Router::with_path("native/v1/messages").post(generate(Family::Messages)))
        .push(Router::with_path("native/messages").post(generate(Family::Messages)))
        .push(Router::with_path("native/v1/messages/count_tokens").post(free::CountTokens::new(Arc::clone(front))))
        // probes, without a key
        .push(Router::new().head(free::probe))
        .push(Router::with_path("v1").head(free::probe))
        .push(Router::with_path("native").head(free::probe))
        .push(Router::with_path("api/hello").head(free::probe))
        .push(Router::with_path("native/api/hello").head(free::probe));
    // the same account where other tools look for it
    for dialect in DIALECTS {
        for path in dialect.paths {
            router = router.push(Router::with_path(*path).get(account(Read::Account(dialect))));
        }
    }
    let door = |room| Dashboard::new(Arc::clone(&front.context), room);
    let router = router
        // the customer's page
        .push(Router::with_path("dashboard").get(door(Room::View(View::Overview))))
        .push(Router::with_path("dashboard/requests").get(door(Room::View(View::Requests))))
        .push(Router::with_path("dashboard/payments").get(door(Room::View(View::Payments))))
        .push(Router::with_path("dashboard/setup").get(door(Room::View(View::Setup))))
        .push(Router::with_path("dashboard/models").get(door(Room::View(View::Models))))
        .push(Router::with_path("dashboard/live").get(door(Room::Live)))
        .push(Router::with_path("dashboard/usage.csv").get(door(Room::Export(Export::Usage(Form::Csv)))))
        .push(Router::with_path("dashboard/usage.json").get(door(Room::Export(Export::Usage(Form::Json)))))
        .push(Router::with_path("dashboard/requests.csv").get(door(Room::Export(Export::Requests(Form::Csv)))))
        .push(Router::with_path("dashboard/requests.json").get(door(Room::Export(Export::Requests(Form::Json)))))
        .push(Router::with_path("dashboard/enter").get(door(Room::Enter)).post(door(Room::Act(Act::Enter))))
        .push(Router::with_path("dashboard/login").post(door(Room::Act(Act::Login))))
        .push(Router::with_path("dashboard/logout").post(door(Room::Act(Act::Logout))))
        .push(Router::with_path("dashboard/logout-everywhere").post(door(Room::Act(Act::LogoutEverywhere))))
        .push(Router::with_path("dashboard/test").post(door(Room::Act(Act::Test))))
        .push(Router::with_path("dashboard/page.css").get(door(Room::Asset(&STYLE))))
        .push(Router::with_path("dashboard/page.js").get(door(Room::Asset(&SCRIPT))));
    Service::new(router)
        .hoop(request_id::AssignRequestId::new(Arc::clone(front)))
        .hoop(CatchPanic::new())
        .catcher(Catcher::default().hoop(paths::NotFound::new(Arc::clone(front))))
}

//! The HTTP front door; uses salvo. Every path is in the table of [`routes`].
//!
//! An unknown path is answered with a 404 that names the right base URL. A path that reaches an upstream goes through `generate`,
//! and so through a hold and a settlement; counting tokens is the one that is free.

mod account;
pub mod admin;
mod auth;
mod body;
mod certificate;
mod connections;
mod cors;
mod decompress;
mod failure;
mod free;
mod funds;
mod generate;
mod guard;
mod listen;
mod made_keys;
mod models;
mod once;
mod paths;
mod request_id;
mod router_list;
pub mod routes;
mod tls;
mod vouchers;
mod workers;

use std::net::SocketAddr;
use std::sync::Arc;

use farebox_door::{Strangers, TurnAway, TurnedAway, memory};
use farebox_ledger::SharedLedger;
use farebox_protocol::Family;
use farebox_protocol::paths::family_of;
use ipnet::IpNet;
use salvo::catcher::Catcher;
use salvo::http::HeaderValue;
use salvo::http::header::CONNECTION;
use salvo::prelude::{CatchPanic, Depot, Request, Response, Service};

use crate::customer::{Activity, Context};
use crate::proxy::rate_limit::RateLimits;
use crate::proxy::{Failure, LARGEST_BODY, Proxy, Record, RefusedFacts};
pub use certificate::CertificateTrouble;
use connections::Crowded;
pub use connections::{ConnectionCounts, Connections};
use farebox_door::byte_room::ByteRoom;
pub use listen::{Listening, listen, serve};
use request_id::Arrival;
pub use tls::{Tls, TlsError, TlsFiles};
pub use workers::Workers;

/// The most bytes of request bodies in flight over all requests; less where the process may have little memory.
const BODY_BYTES_IN_FLIGHT: usize = 512 * 1024 * 1024;

/// What every handler needs.
#[derive(Debug)]
pub struct Front {
    /// What serves requests to models.
    pub proxy: Arc<Proxy>,
    /// The rate limits of each key.
    pub rate_limits: Arc<RateLimits>,
    /// Memory for request bodies.
    pub body_room: Arc<ByteRoom>,
    /// The customers' connections.
    pub connections: Arc<Connections>,
    /// What strangers have used of their budget.
    pub strangers: Arc<Strangers>,
    /// The only base of printed URLs; the `Host` header is never used.
    pub public_url: String,
    /// The customer's side.
    pub context: Arc<Context>,
    /// Forwarded headers count only from these addresses.
    pub trusted_proxies: Vec<IpNet>,
    /// Web pages from these origins may use customers' paths.
    pub cors_origins: Vec<String>,
}

impl Front {
    /// An HTTP front door for a proxy, at an address; `activity` records its requests.
    #[must_use]
    pub fn new(
        proxy: Arc<Proxy>,
        activity: Arc<Activity>,
        public_url: String,
        address: SocketAddr,
        trusted_proxies: Vec<IpNet>,
        cors_origins: Vec<String>,
        connections: Arc<Connections>,
    ) -> Arc<Self> {
        let body_room = ByteRoom::of_wholes(
            memory::share_of_flight(2, 3, BODY_BYTES_IN_FLIGHT),
            LARGEST_BODY,
        );
        let rate_limits = Arc::new(RateLimits::default());
        let context = Arc::new(Context::new(
            &proxy,
            Arc::clone(&rate_limits),
            activity,
            public_url.clone(),
            address,
        ));
        Arc::new(Self {
            proxy,
            rate_limits,
            body_room,
            connections,
            strangers: Arc::default(),
            public_url,
            context,
            trusted_proxies,
            cors_origins,
        })
    }

    /// Reports a refused request, unless its settlement did, and adds the seller's words.
    fn refused(
        &self,
        failure: Failure,
        family: Family,
        arrival: &Arrival,
        known: RefusedFacts,
    ) -> Failure {
        let failure = failure.told_by(&self.proxy.config.current().catalog.shop);
        if !known.held {
            let record = Record::refused(
                &failure,
                family,
                known,
                arrival.id,
                arrival.instant,
                arrival.origin,
            );
            self.proxy.observer.ended(Arc::new(record));
        }
        failure
    }

    /// Answers a request of a peer that has as many under way, or as many connections, as it may have.
    fn crowded(&self, why: Crowded, req: &Request, depot: &Depot, res: &mut Response) {
        let (family, arrival) = (family_of(req.uri().path()), Arrival::of(depot));
        if why == Crowded::Connections {
            res.headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let known = RefusedFacts::default();
        let failure = self.refused(Failure::Crowded, family, &arrival, known);
        failure::answer(res, &failure, family, &arrival);
    }

    fn ledger(&self) -> &SharedLedger {
        &self.proxy.ledger
    }
}

impl TurnAway for Front {
    fn turn_away(&self, why: TurnedAway, req: &Request, depot: &Depot, res: &mut Response) {
        let (path, arrival) = (req.uri().path(), Arrival::of(depot));
        let family = family_of(path);
        let failure = self.refused(why.into(), family, &arrival, RefusedFacts::default());
        failure::answer(res, &failure, family, &arrival);
        if path.starts_with("/dashboard") || path == "/prices" {
            // A person reads it, and a page would be work.
            failure::headers(res, vec![("content-type", "text/plain".to_owned())]);
            res.body(format!("{}\n", failure.message()));
        }
    }
}

/// Every path of the customers' listener.
pub fn service(front: &Arc<Front>) -> Service {
    routes::door(front)
        .service()
        .hoop(request_id::AssignRequestId::new(Arc::clone(front)))
        .hoop_when(cors::headers(front.cors_origins.clone()), {
            let open = !front.cors_origins.is_empty();
            move |req, _| open && cors::covers(req)
        })
        .hoop(CatchPanic::new())
        .catcher(Catcher::default().hoop(paths::NotFound::new(Arc::clone(front))))
}

//! A request under way on a connection, from its complete head to the end of its answer.
//!
//! It begins as a stranger's, with a place in their pool. From when it shows a key its connection is safe, until the key is known to be
//! none, or until it has ended: looking a key up may take long on a busy gateway, and whoever waits for that is no stranger. Behind
//! a trusted proxy one connection carries many peers, so requests are counted per forwarded peer.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use farebox_door::{UnreadBody, peer};
use farebox_ledger::{Amount, Key, lock};
use salvo::BoxedError;
use salvo::http::ResBody;
use salvo::hyper::body::{Body, Frame};
use salvo::prelude::{Depot, Request, Response};

use super::{Connection, Connections, OpenConnections, Rank, Ticket};
use crate::customer::Guest;
use crate::proxy::{ConnectionFate, holder};
use farebox_door::byte_room::Holder;

/// A request under way, until dropped.
#[derive(Debug)]
pub(in crate::server) struct BusyRequest {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
    /// The peer behind a trusted proxy.
    forwarded: Option<IpAddr>,
    /// Locked before the lock of all connections, never behind it.
    standing: Mutex<RequestStanding>,
}

/// What a request is taken for.
#[derive(Debug)]
enum RequestStanding {
    Stranger(Ticket),
    /// That of somebody whose key is being looked up.
    Claimed,
    /// A customer's, which makes its connection safe.
    Safe(Holder),
    /// A customer's who has as many safe connections as a customer may have.
    Known,
}

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Crowded {
    /// Its peer behind a trusted proxy has as many requests under way as it may have.
    Requests,
    /// Its connection is one more than its peer, or all together, may have.
    Connections,
}

impl Connections {
    /// Notes that a request's head is complete; its connection is busy until the returned value is dropped. `client` is where it
    /// came from, as a trusted proxy says. `None` for a connection that was just closed.
    ///
    /// # Errors
    /// [`Crowded`].
    pub(in crate::server) fn begin(
        self: &Arc<Self>,
        address: SocketAddr,
        client: Option<IpAddr>,
    ) -> Result<Option<Arc<BusyRequest>>, Crowded> {
        let is_proxy = self.is_proxy(address.ip());
        let mut open = self.lock();
        let Some(connection) = open.by_address.get(&address).map(Arc::clone) else {
            return Ok(None);
        };
        // The connection may not be read again before the answer begins, so that nobody else would say so.
        open.leave_heads(&connection);
        if connection.is_excess {
            return Err(Crowded::Connections);
        }
        let forwarded = client.filter(|_| is_proxy).map(peer);
        if let Some(peer) = forwarded {
            let running = open.forwarded.entry(peer).or_default();
            if *running >= self.limits.of_peer {
                self.crowded.fetch_add(1, Ordering::Relaxed);
                return Err(Crowded::Requests);
            }
            *running += 1;
        }
        connection.begun.fetch_add(1, Ordering::Relaxed);
        connection.busy.fetch_add(1, Ordering::AcqRel);
        let pool = &mut open.strangers;
        let ticket = self.crowd(pool, forwarded.unwrap_or(connection.peer), &connection);
        Ok(Some(Arc::new(BusyRequest {
            connections: Arc::clone(self),
            connection,
            forwarded,
            standing: Mutex::new(RequestStanding::Stranger(ticket)),
        })))
    }
}

impl BusyRequest {
    /// Notes whose request it is: its connection is safe until it ends.
    pub(super) fn belongs(&self, to: Holder, pays: bool) {
        let mut standing = lock(&self.standing);
        let mut open = self.connections.lock();
        match *standing {
            RequestStanding::Stranger(ticket) => drop(open.strangers.leave(ticket)),
            RequestStanding::Claimed => self.give_up_claim(&mut open),
            RequestStanding::Safe(_) | RequestStanding::Known => return,
        }
        let rank = if pays { Rank::Paying } else { Rank::Customer };
        let safe = open.safe.entry(to).or_default();
        *standing = if *safe < self.connections.limits.safe {
            *safe += 1;
            self.connection.safe.fetch_add(1, Ordering::Relaxed);
            RequestStanding::Safe(to)
        } else {
            RequestStanding::Known
        };
        open.leave_line(&self.connection);
        self.connection.place.set_rank(rank);
        open.line_up(&self.connection);
    }

    /// Looking its key up has ended.
    fn give_up_claim(&self, open: &mut OpenConnections) {
        open.claims = open.claims.saturating_sub(1);
        self.connection.safe.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Guest for BusyRequest {
    fn claims(&self) {
        let mut standing = lock(&self.standing);
        let RequestStanding::Stranger(ticket) = *standing else {
            return;
        };
        let mut open = self.connections.lock();
        if open.claims >= self.connections.limits.claims {
            return;
        }
        open.claims += 1;
        open.strangers.leave(ticket);
        self.connection.safe.fetch_add(1, Ordering::Relaxed);
        open.leave_line(&self.connection);
        *standing = RequestStanding::Claimed;
    }

    fn is_refused(&self) {
        let mut standing = lock(&self.standing);
        if !matches!(*standing, RequestStanding::Claimed) {
            return;
        }
        let mut open = self.connections.lock();
        self.give_up_claim(&mut open);
        let pool = &mut open.strangers;
        let peer = self.forwarded.unwrap_or(self.connection.peer);
        let ticket = self.connections.crowd(pool, peer, &self.connection);
        *standing = RequestStanding::Stranger(ticket);
        open.line_up(&self.connection);
    }

    fn connection(&self) -> ConnectionFate {
        self.connection.fate.clone()
    }

    fn belongs_to(&self, key: &Key) {
        self.belongs(
            holder(key.customer.id),
            key.customer.account.balance() > Amount::ZERO,
        );
    }
}

impl Drop for BusyRequest {
    fn drop(&mut self) {
        self.connection.busy.fetch_sub(1, Ordering::AcqRel);
        self.connection.fate.rest();
        let standing = lock(&self.standing);
        let mut open = self.connections.lock();
        match *standing {
            RequestStanding::Stranger(ticket) => {
                open.strangers.leave(ticket);
            }
            RequestStanding::Claimed => self.give_up_claim(&mut open),
            RequestStanding::Safe(customer) => {
                self.connection.safe.fetch_sub(1, Ordering::Relaxed);
                if let Some(safe) = open.safe.get_mut(&customer) {
                    *safe = safe.saturating_sub(1);
                    if *safe == 0 {
                        open.safe.remove(&customer);
                    }
                }
            }
            RequestStanding::Known => {}
        }
        if let Some(peer) = self.forwarded
            && let Some(running) = open.forwarded.get_mut(&peer)
        {
            *running = running.saturating_sub(1);
            if *running == 0 {
                open.forwarded.remove(&peer);
            }
        }
        // Used a moment ago.
        open.line_up(&self.connection);
    }
}

/// Notes that a request's head is complete, and keeps it where handlers find it.
///
/// # Errors
/// [`Crowded`].
pub(in crate::server) fn begin(
    connections: &Arc<Connections>,
    req: &Request,
    client: Option<IpAddr>,
    depot: &mut Depot,
) -> Result<Option<Arc<BusyRequest>>, Crowded> {
    let Some(address) = req.remote_addr().clone().into_std() else {
        return Ok(None);
    };
    let busy = connections.begin(address, client)?;
    if let Some(busy) = &busy {
        // A stranger whose body is still arriving keeps its place until it has gone.
        UnreadBody::keep(depot, Arc::clone(busy));
        let guest: Arc<dyn Guest> = Arc::<BusyRequest>::clone(busy);
        depot.insert_typed(guest);
    }
    Ok(busy)
}

/// Calls of the API, which together leave connections to those who ask whether the gateway is well.
const OF_API: Holder = Holder(1);

/// The same for a request of the operator, whose connection is safe at once, or, of the API, from its token on.
pub(in crate::server) fn begin_of_operator(
    connections: &Arc<Connections>,
    req: &Request,
    depot: &mut Depot,
) -> Option<Arc<BusyRequest>> {
    let address = req.remote_addr().clone().into_std()?;
    let busy = connections.begin(address, None).ok().flatten()?;
    UnreadBody::keep(depot, Arc::clone(&busy));
    if req.uri().path().starts_with("/api/") {
        depot.insert_typed(Arc::clone(&busy));
    } else {
        busy.belongs(Holder::default(), true);
    }
    Some(busy)
}

/// Notes that a request of the API showed a good token.
pub(in crate::server) fn showed_token(depot: &Depot) {
    if let Ok(busy) = depot.get_typed::<Arc<BusyRequest>>() {
        busy.belongs(OF_API, true);
    }
}

/// The request under way that a handler serves.
pub(in crate::server) fn of(depot: &Depot) -> Option<Arc<dyn Guest>> {
    depot.get_typed::<Arc<dyn Guest>>().ok().map(Arc::clone)
}

/// Keeps the connection busy until a streamed answer has been sent; other answers are sent at once.
pub(in crate::server) fn hold(res: &mut Response, busy: Option<Arc<BusyRequest>>) {
    if matches!(res.body, ResBody::Stream(_)) {
        let body = res.take_body();
        res.body(ResBody::Boxed(Box::pin(BusyBody { body, _busy: busy })));
    }
}

struct BusyBody {
    body: ResBody,
    _busy: Option<Arc<BusyRequest>>,
}

impl Body for BusyBody {
    type Data = Bytes;
    type Error = BoxedError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxedError>>> {
        Body::poll_frame(Pin::new(&mut self.body), context).map_err(Into::into)
    }
}

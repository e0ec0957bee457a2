//! Limits the connections of one listener, in total and per peer, and picks the one to close for a new one.
//!
//! A peer is an IPv4 address or an IPv6 /64. At a limit the connection that has been idle longest is closed and the new one is
//! accepted, so a peer that opens connections without using them only displaces its own. A connection with a request
//! under way is never closed; if all have one, the new connection is refused.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use ipnet::IpNet;
use salvo::BoxedError;
use salvo::conn::ConnCtrl;
use salvo::http::ResBody;
use salvo::hyper::body::{Body, Frame};
use salvo::prelude::{Request, Response};

/// Most connections, however many descriptors there are: an idle one costs about 20 KB.
const MOST: usize = 16_384;
/// A peer that is not a trusted proxy gets at most this part of them.
const PART: usize = 4;
/// Connections of the admin listener.
const MOST_OF_OPERATOR: usize = 64;
/// Descriptors reserved for the ledger, the log, both listeners, the files and admin connections.
const KEPT_BACK: usize = 128;
/// Connections examined to find an idle one.
const LOOKS: usize = 32;

/// The connections of one listener.
#[derive(Debug)]
pub struct Connections {
    most: usize,
    most_of_peer: usize,
    exempt: Vec<IpNet>,
    open: Mutex<Open>,
    refused: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// All of them, the least recently used first.
    all: BTreeMap<u64, Arc<Connection>>,
    peers: HashMap<IpAddr, BTreeMap<u64, Arc<Connection>>>,
    by_address: HashMap<SocketAddr, Arc<Connection>>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    address: SocketAddr,
    peer: IpAddr,
    /// Its position in the order of use.
    at: AtomicU64,
    ctrl: ConnCtrl,
    /// Requests under way: the head is complete and the answer not yet sent.
    busy: AtomicUsize,
    /// Requests begun so far.
    begun: AtomicU64,
    /// Whether it was busy since the last search for an idle connection.
    used: AtomicBool,
}

/// The place of one connection; given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

/// The listener's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Open now.
    pub open: usize,
    /// Most that may be open at once.
    pub most: usize,
    /// Most that one peer may have open.
    pub most_of_peer: usize,
    /// New connections that were refused.
    pub refused: u64,
    /// Idle connections closed for a new one.
    pub evicted: u64,
}

impl Connections {
    /// Limits for a process that may open this many descriptors; half of them are for upstreams.
    #[must_use]
    pub fn with_descriptors(descriptors: usize, exempt: Vec<IpNet>) -> Arc<Self> {
        let most = (descriptors.saturating_sub(KEPT_BACK) / 2).clamp(8, MOST);
        Self::new(most, most / PART, exempt)
    }

    /// Limits for the admin listener.
    #[must_use]
    pub fn of_operator() -> Arc<Self> {
        Self::new(MOST_OF_OPERATOR, MOST_OF_OPERATOR, Vec::new())
    }

    fn new(most: usize, most_of_peer: usize, exempt: Vec<IpNet>) -> Arc<Self> {
        let (open, refused, evicted) = Default::default();
        Arc::new(Self {
            most,
            most_of_peer,
            exempt,
            open,
            refused,
            evicted,
        })
    }

    /// The counters, for an observer.
    #[must_use]
    pub fn counts(&self) -> ConnectionCounts {
        ConnectionCounts {
            open: self.lock().all.len(),
            most: self.most,
            most_of_peer: self.most_of_peer,
            refused: self.refused.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    /// A place for a connection from `address`, or `None` if it must be closed at once.
    pub(super) fn admit(self: &Arc<Self>, address: SocketAddr, ctrl: ConnCtrl) -> Option<Place> {
        let (peer, ip) = (peer(address.ip()), address.ip().to_canonical());
        let exempt = self.exempt.iter().any(|net| net.contains(&ip));
        let mut open = self.lock();
        let peer_is_full = !exempt
            && open
                .peers
                .get(&peer)
                .is_some_and(|own| own.len() >= self.most_of_peer);
        if peer_is_full && !self.make_way(&mut open, Some(peer))
            || open.all.len() >= self.most && !self.make_way(&mut open, None)
        {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let connection = Arc::new(Connection {
            address,
            peer,
            at: AtomicU64::default(),
            ctrl,
            busy: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
            used: AtomicBool::new(false),
        });
        open.insert(Arc::clone(&connection));
        Some(Place {
            connections: Arc::clone(self),
            connection,
        })
    }

    /// Closes an idle connection, of one peer or of all. Connections used since the last search get a second chance.
    fn make_way(&self, open: &mut Open, of: Option<IpAddr>) -> bool {
        for _ in 0..LOOKS {
            let oldest = match of {
                Some(peer) => open.peers.get(&peer).and_then(|own| own.first_key_value()),
                None => open.all.first_key_value(),
            };
            let Some(connection) = oldest.map(|(_, connection)| Arc::clone(connection)) else {
                return false;
            };
            open.remove(&connection);
            let used = connection.used.swap(false, Ordering::Relaxed);
            if used || connection.busy.load(Ordering::Acquire) > 0 {
                open.insert(connection);
                continue;
            }
            connection.ctrl.abort();
            self.evicted.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        false
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn insert(&mut self, connection: Arc<Connection>) {
        let at = self.next;
        self.next += 1;
        connection.at.store(at, Ordering::Relaxed);
        self.peers
            .entry(connection.peer)
            .or_default()
            .insert(at, Arc::clone(&connection));
        self.by_address
            .insert(connection.address, Arc::clone(&connection));
        self.all.insert(at, connection);
    }

    /// Removes a connection, unless it was already closed for a new one.
    fn remove(&mut self, connection: &Connection) {
        let at = connection.at.load(Ordering::Relaxed);
        if self.all.remove(&at).is_none() {
            return;
        }
        self.by_address.remove(&connection.address);
        if let Some(own) = self.peers.get_mut(&connection.peer) {
            own.remove(&at);
            if own.is_empty() {
                self.peers.remove(&connection.peer);
            }
        }
    }
}

impl Connections {
    /// Notes that a request's head is complete; its connection is busy until the returned value is dropped.
    pub(super) fn begin(&self, address: SocketAddr) -> Option<Busy> {
        let connection = Arc::clone(self.lock().by_address.get(&address)?);
        connection.begun.fetch_add(1, Ordering::Relaxed);
        connection.used.store(true, Ordering::Relaxed);
        Some(Busy::new(connection))
    }
}

/// A request under way on a connection, until dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Connection>);

/// Notes that the request's head is complete.
pub(super) fn begin(connections: &Connections, req: &Request) -> Option<Busy> {
    connections.begin(req.remote_addr().clone().into_std()?)
}

/// Keeps the connection busy until a streamed answer has been sent; other answers are sent at once.
pub(super) fn hold(res: &mut Response, busy: Option<Busy>) {
    if matches!(res.body, ResBody::Stream(_)) {
        let body = res.take_body();
        res.body(ResBody::Boxed(Box::pin(BusyBody { body, _busy: busy })));
    }
}

struct BusyBody {
    body: ResBody,
    _busy: Option<Busy>,
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

impl Busy {
    fn new(connection: Arc<Connection>) -> Self {
        connection.busy.fetch_add(1, Ordering::AcqRel);
        Self(connection)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Place {
    /// Requests begun so far.
    pub(super) fn begun(&self) -> u64 {
        self.connection.begun.load(Ordering::Relaxed)
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.connection.busy.load(Ordering::Acquire) > 0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.connection);
    }
}

/// What counts as one peer: an IPv6 host usually has a whole /64.
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection from an address, on a port of its own.
    fn admit(
        connections: &Arc<Connections>,
        address: &str,
        port: u16,
    ) -> Option<(Place, ConnCtrl)> {
        let ctrl = ConnCtrl::new();
        connections
            .admit(from(address, port), ctrl.clone())
            .map(|place| (place, ctrl))
    }

    fn from(address: &str, port: u16) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), port)
    }

    #[test]
    fn a_peer_at_its_bound_pushes_out_its_own_oldest_idle_connection() {
        let connections = Connections::new(40, 10, Vec::new());
        let (_stranger, stranger) = admit(&connections, "192.0.2.9", 1).unwrap();
        let own: Vec<_> = (0..10)
            .map(|port| admit(&connections, "192.0.2.1", port).unwrap())
            .collect();
        let _busy = connections.begin(from("192.0.2.1", 0)).unwrap();
        let (_newcomer, _) = admit(&connections, "192.0.2.1", 10).unwrap();
        assert!(!own[0].1.is_aborted(), "a request is under way");
        assert!(own[1].1.is_aborted());
        assert!(!stranger.is_aborted());
        let counts = connections.counts();
        assert_eq!(
            (
                counts.open,
                counts.most_of_peer,
                counts.evicted,
                counts.refused
            ),
            (11, 10, 1, 0)
        );
    }

    #[test]
    fn one_that_was_used_lately_has_a_second_chance() {
        let connections = Connections::new(8, 2, Vec::new());
        let (_used, used) = admit(&connections, "192.0.2.1", 1).unwrap();
        let (_unused, unused) = admit(&connections, "192.0.2.1", 2).unwrap();
        drop(connections.begin(from("192.0.2.1", 1)));
        let (_third, _) = admit(&connections, "192.0.2.1", 3).unwrap();
        assert!(unused.is_aborted() && !used.is_aborted());
        let (_fourth, _) = admit(&connections, "192.0.2.1", 4).unwrap();
        assert!(used.is_aborted(), "one chance, not two");
    }

    #[test]
    fn when_all_are_busy_the_newcomer_is_refused() {
        let connections = Connections::new(8, 2, Vec::new());
        let _open: Vec<_> = (1..3)
            .map(|port| admit(&connections, "2001:db8::1", port).unwrap())
            .collect();
        let busy: Vec<_> = (1..3)
            .map(|port| connections.begin(from("2001:db8::1", port)).unwrap())
            .collect();
        assert!(
            admit(&connections, "2001:db8::ffff:1", 9).is_none(),
            "the same /64"
        );
        assert!(admit(&connections, "2001:db8:0:1::1", 9).is_some());
        drop(busy);
        assert!(admit(&connections, "2001:db8::2", 9).is_some());
        assert_eq!(connections.counts().refused, 1);
    }

    #[test]
    fn places_come_back_and_trusted_proxies_have_no_bound_of_their_own() {
        let connections = Connections::new(8, 2, vec!["10.0.0.0/8".parse().unwrap()]);
        let proxy: Vec<_> = (0..8)
            .map(|port| admit(&connections, "10.1.2.3", port).unwrap())
            .collect();
        assert_eq!(connections.counts().open, 8);
        let _newcomer = admit(&connections, "192.0.2.1", 1).unwrap();
        assert_eq!(
            (connections.counts().open, connections.counts().evicted),
            (8, 1),
            "over all there is a bound"
        );
        drop(proxy);
        assert_eq!(connections.counts().open, 1);
        let open = connections.lock();
        assert_eq!((open.peers.len(), open.by_address.len()), (1, 1));
    }

    #[test]
    fn half_of_the_descriptors_are_for_upstreams() {
        let of = |descriptors| {
            Connections::with_descriptors(descriptors, Vec::new())
                .counts()
                .most
        };
        assert_eq!((of(1_024), of(1 << 20), of(0)), (448, MOST, 8));
    }
}

//! Limits the connections of one listener, in total and per peer, and picks the one to close for a new one.
//!
//! A peer is an IPv4 address or an IPv6 /64. At a limit a connection is closed and the new one is accepted: a stranger's first,
//! whatever it is doing, then an idle one of a customer, then an idle one of a customer with money; of each the one that was
//! used least recently. A connection with a customer's request under way is safe, and so is one whose key is being looked up; if all
//! are, the new connection is one too many: its first request is turned away with a status. What we close is free for its customer.
//! What strangers send slowly (heads, forms, bodies) has small pools of its own (`pool.rs`), so that they use up neither memory
//! nor the places of others.

mod busy;
mod line;
mod pool;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use farebox_door::peer;
use farebox_ledger::lock;
use ipnet::IpNet;
use salvo::conn::ConnCtrl;

use crate::proxy::ConnectionFate;
pub(super) use busy::{Crowded, begin, begin_of_operator, hold, of, showed_token};
use farebox_door::byte_room::Holder;
use line::{ConnectionLine, Rank};
use pool::{StrangerPool, Ticket};

/// Most connections, however many descriptors there are: an idle one costs about 20 KB.
const MOST: usize = 16_384;
/// A peer gets at most this part of them, and so do the requests of one peer of a trusted proxy.
const PART: usize = 4;
/// A trusted proxy gets at most this part of them: it carries many peers, and one that is broken must not keep the others out.
const PART_OF_PROXY: usize = 2;
/// Strangers' heads, and their requests, get this part of them: complete ones need a place for microseconds only.
const PART_OF_STRANGERS: usize = 8;
/// The least and the most places of such a pool. An unfinished head may take 64 KiB of memory.
const POOL: (usize, usize) = (8, 256);
/// Connections of one customer that are safe, and at most a quarter of all: with few descriptors two customers could otherwise
/// take every place.
const MOST_SAFE: usize = 256;
/// Connections whose keys are being looked up: at most this part of all, so that strangers with made-up keys do not keep all of them safe.
const PART_OF_CLAIMS: usize = 2;
/// Connections beyond the limits that wait to be turned away with a status: this part of all.
const PART_OF_EXCESS: usize = 16;
/// Connections of the admin listener.
const MOST_OF_OPERATOR: usize = 64;
/// Of these, so many are not for calls of the API: whoever asks whether the gateway is well always gets one.
const OF_MONITORS: usize = 16;
/// Descriptors reserved for the ledger, the log, both listeners, the files and admin connections.
const KEPT_BACK: usize = 128;

/// The connections of one listener.
#[derive(Debug)]
pub struct Connections {
    limits: ConnectionLimits,
    proxies: Vec<IpNet>,
    open: Mutex<OpenConnections>,
    refused: AtomicU64,
    evicted: AtomicU64,
    crowded: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct ConnectionLimits {
    all: usize,
    of_peer: usize,
    of_proxy: usize,
    safe: usize,
    claims: usize,
    /// 0: those beyond the limits are closed at once.
    excess: usize,
}

#[derive(Debug)]
struct OpenConnections {
    by_address: HashMap<SocketAddr, Arc<Connection>>,
    /// Those that may be closed.
    line: ConnectionLine,
    peers: HashMap<IpAddr, Peer>,
    /// Safe connections of each customer.
    safe: HashMap<Holder, usize>,
    /// Requests whose keys are being looked up.
    claims: usize,
    /// Requests under way of each peer of a trusted proxy.
    forwarded: HashMap<IpAddr, usize>,
    /// Connections beyond the limits.
    excess: StrangerPool,
    /// Strangers' unfinished heads.
    heads: StrangerPool,
    /// Strangers' requests under way: forms, and bodies that are read only to be dropped.
    strangers: StrangerPool,
}

/// The connections of one peer.
#[derive(Debug, Default)]
struct Peer {
    open: usize,
    /// Those that may be closed.
    line: ConnectionLine,
}

#[derive(Debug)]
pub(super) struct Connection {
    address: SocketAddr,
    peer: IpAddr,
    ctrl: ConnCtrl,
    fate: ConnectionFate,
    /// It came when its peer, or all together, had as many as they may have.
    is_excess: bool,
    /// Its place among strangers' unfinished heads; changed only under the lock.
    head: Mutex<Option<Ticket>>,
    /// Its place in the lines; changed only under the lock.
    place: line::LinePlace,
    /// Requests under way: the head is complete and the answer not yet sent.
    busy: AtomicUsize,
    /// How many of them make it safe.
    safe: AtomicUsize,
    /// Requests begun so far.
    begun: AtomicU64,
}

/// The place of one connection; given back when dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
    /// Among those beyond the limits.
    excess: Option<Ticket>,
}

/// The listener's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections that are open now.
    pub open: usize,
    /// Of these, safe from being closed.
    pub safe: usize,
    /// Strangers' unfinished heads.
    pub heads: usize,
    /// Strangers' requests under way.
    pub strangers: usize,
    /// Most that may be open at once.
    pub most: usize,
    /// Most that one peer may have open.
    pub most_of_peer: usize,
    /// Most that one trusted proxy may have open.
    pub most_of_proxy: usize,
    /// Most of one customer that are safe.
    pub most_safe: usize,
    /// Most unfinished heads, and as many requests, of strangers.
    pub most_of_strangers: usize,
    /// New connections that were refused.
    pub refused: u64,
    /// Connections closed for a new one.
    pub evicted: u64,
    /// Strangers' connections closed because a pool was full.
    pub crowded: u64,
}

impl Connections {
    /// Limits for a process that may open this many descriptors; half of them are for upstreams.
    #[must_use]
    pub fn with_descriptors(descriptors: usize, proxies: Vec<IpNet>) -> Arc<Self> {
        let all = (descriptors.saturating_sub(KEPT_BACK) / 2).clamp(8, MOST);
        let limits = ConnectionLimits {
            all,
            of_peer: all / PART,
            of_proxy: all / PART_OF_PROXY,
            safe: (all / PART).min(MOST_SAFE),
            claims: all / PART_OF_CLAIMS,
            excess: (all / PART_OF_EXCESS).max(1),
        };
        let pool = (all / PART_OF_STRANGERS).clamp(POOL.0, POOL.1);
        Self::new(limits, pool, proxies)
    }

    /// Limits for the admin listener.
    #[must_use]
    pub fn of_operator() -> Arc<Self> {
        let all = MOST_OF_OPERATOR;
        let limits = ConnectionLimits {
            all,
            of_peer: all,
            of_proxy: all,
            safe: all - OF_MONITORS,
            claims: all,
            excess: 0,
        };
        // Programs of the operator's may open many at once.
        Self::new(limits, all, Vec::new())
    }

    /// `pool`: places of strangers' heads, and as many of their requests.
    fn new(limits: ConnectionLimits, pool: usize, proxies: Vec<IpNet>) -> Arc<Self> {
        let open = OpenConnections {
            by_address: HashMap::new(),
            line: ConnectionLine::default(),
            peers: HashMap::new(),
            safe: HashMap::new(),
            claims: 0,
            forwarded: HashMap::new(),
            excess: StrangerPool::new(limits.excess),
            heads: StrangerPool::new(pool),
            strangers: StrangerPool::new(pool),
        };
        let (refused, evicted, crowded) = Default::default();
        Arc::new(Self {
            limits,
            proxies,
            open: Mutex::new(open),
            refused,
            evicted,
            crowded,
        })
    }

    /// The counters, for an observer.
    pub fn counts(&self) -> ConnectionCounts {
        let open = self.lock();
        ConnectionCounts {
            open: open.by_address.len(),
            safe: open.safe.values().sum(),
            heads: open.heads.len(),
            strangers: open.strangers.len(),
            most: self.limits.all,
            most_of_peer: self.limits.of_peer,
            most_of_proxy: self.limits.of_proxy,
            most_safe: self.limits.safe,
            most_of_strangers: open.heads.most(),
            refused: self.refused.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
            crowded: self.crowded.load(Ordering::Relaxed),
        }
    }

    /// A place for a connection from `address`, or `None` if it must be closed at once.
    pub(super) fn admit(
        self: &Arc<Self>,
        address: SocketAddr,
        ctrl: ConnCtrl,
    ) -> Option<ConnectionPlace> {
        let peer = peer(address.ip());
        let most = if self.is_proxy(address.ip()) {
            self.limits.of_proxy
        } else {
            self.limits.of_peer
        };
        let mut open = self.lock();
        let peer_is_full = open.peers.get(&peer).is_some_and(|own| own.open >= most);
        // A full peer makes way itself: closed for it, the connection of another would give it more than its part.
        let is_excess = peer_is_full && !self.make_way(&mut open, Some(peer))
            || open.placed() >= self.limits.all && !self.make_way(&mut open, None);
        if is_excess {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        if is_excess && self.limits.excess == 0 {
            return None;
        }
        let connection = Arc::new(Connection {
            address,
            peer,
            ctrl,
            fate: ConnectionFate::default(),
            is_excess,
            head: Mutex::default(),
            place: line::LinePlace::default(),
            busy: AtomicUsize::new(0),
            safe: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
        });
        open.by_address.insert(address, Arc::clone(&connection));
        let excess = is_excess.then(|| open.turn_away(&connection));
        if !is_excess {
            open.peers.entry(peer).or_default().open += 1;
            open.line_up(&connection);
        }
        Some(ConnectionPlace {
            connections: Arc::clone(self),
            connection,
            excess,
        })
    }

    /// Closes a connection, of one peer or of all.
    fn make_way(&self, open: &mut OpenConnections, of: Option<IpAddr>) -> bool {
        let line = match of {
            Some(peer) => open.peers.get(&peer).map(|own| &own.line),
            None => Some(&open.line),
        };
        let closed = line.and_then(|line| line.in_order().find(|connection| connection.close()));
        let Some(connection) = closed.map(Arc::clone) else {
            return false;
        };
        open.remove(&connection);
        self.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Closes every connection, because the gateway stops: what still runs on one is free.
    pub(super) fn close_all(&self) {
        self.lock().by_address.values().for_each(|connection| {
            connection.close();
        });
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.proxies.iter().any(|net| net.contains(&address))
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        lock(&self.open)
    }
}

impl Connection {
    /// Closes it, unless an answer on it is being paid for, or it is closed already.
    fn close(&self) -> bool {
        let closes = self.fate.close();
        if closes {
            self.ctrl.abort();
        }
        closes
    }
}

impl OpenConnections {
    /// How many have a place.
    fn placed(&self) -> usize {
        self.by_address.len().saturating_sub(self.excess.len())
    }

    /// The connection's head is complete, or its connection is gone.
    fn leave_heads(&mut self, connection: &Connection) {
        if let Some(ticket) = lock(&connection.head).take() {
            self.heads.leave(ticket);
        }
    }

    /// Lets a connection beyond the limits wait for its first request, to turn it away with a status.
    fn turn_away(&mut self, connection: &Arc<Connection>) -> Ticket {
        let (ticket, pushed_out) = self.excess.enter(connection.peer, Arc::clone(connection));
        if let Some(oldest) = pushed_out {
            self.remove(&oldest);
            oldest.close();
        }
        ticket
    }

    /// Puts a connection at the end of the lines of its rank, unless it is safe or closed.
    fn line_up(&mut self, connection: &Arc<Connection>) {
        self.leave_line(connection);
        if !self.is_open(connection) || connection.safe.load(Ordering::Relaxed) > 0 {
            return;
        }
        self.line.push(connection);
        if let Some(own) = self.peers.get_mut(&connection.peer) {
            own.line.follow(connection);
        }
    }

    fn leave_line(&mut self, connection: &Connection) {
        if let Some(own) = self.peers.get_mut(&connection.peer) {
            own.line.remove(connection);
        }
        self.line.remove(connection);
        connection.place.leave();
    }

    /// Whether it still has a place: one with its address may be another by now.
    fn is_open(&self, connection: &Connection) -> bool {
        self.by_address
            .get(&connection.address)
            .is_some_and(|open| std::ptr::eq(Arc::as_ptr(open), connection))
    }

    /// Removes a connection, unless it was already closed for a new one.
    fn remove(&mut self, connection: &Connection) {
        self.leave_line(connection);
        if !self.is_open(connection) {
            return;
        }
        self.by_address.remove(&connection.address);
        if connection.is_excess {
            return;
        }
        if let Some(own) = self.peers.get_mut(&connection.peer) {
            own.open = own.open.saturating_sub(1);
            if own.open == 0 {
                self.peers.remove(&connection.peer);
            }
        }
    }
}

impl ConnectionPlace {
    /// Requests begun so far.
    pub(super) fn begun(&self) -> u64 {
        self.connection.begun.load(Ordering::Relaxed)
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.connection.busy.load(Ordering::Acquire) > 0
    }

    /// A place among strangers' unfinished heads; none is needed on a connection that a customer has used.
    pub(super) fn unfinished_head(&self) -> Option<UnfinishedHead> {
        if self.connection.place.rank() != Rank::Stranger {
            return None;
        }
        let (connection, connections) = (&self.connection, &self.connections);
        let heads = &mut connections.lock().heads;
        let ticket = connections.crowd(heads, connection.peer, connection);
        *lock(&connection.head) = Some(ticket);
        Some(UnfinishedHead {
            connections: Arc::clone(connections),
            connection: Arc::clone(connection),
        })
    }
}

impl Connections {
    /// Takes a place in a pool of strangers; if it is full, the connection that has been in it for longest is closed.
    fn crowd(&self, pool: &mut StrangerPool, peer: IpAddr, newcomer: &Arc<Connection>) -> Ticket {
        let (ticket, pushed_out) = pool.enter(peer, Arc::clone(newcomer));
        if let Some(oldest) = pushed_out {
            oldest.close();
            self.crowded.fetch_add(1, Ordering::Relaxed);
        }
        ticket
    }
}

/// The place of an unfinished head; given back when dropped, or when its request begins.
#[derive(Debug)]
pub(super) struct UnfinishedHead {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Drop for UnfinishedHead {
    fn drop(&mut self) {
        self.connections.lock().leave_heads(&self.connection);
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        open.remove(&self.connection);
        if let Some(ticket) = self.excess {
            open.excess.leave(ticket);
        }
    }
}

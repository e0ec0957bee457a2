//! A small pool for something that strangers may have under way, or for connections beyond the limits; a newcomer to a full one pushes
//! out the oldest of the peer with the most places. A peer that fills the pool pushes out its own, and what takes long gives way to what
//! does not.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::Connection;

/// One kind of thing that strangers do.
#[derive(Debug)]
pub(super) struct StrangerPool {
    most: usize,
    next: u64,
    all: BTreeMap<u64, (IpAddr, Arc<Connection>)>,
    peers: HashMap<IpAddr, usize>,
}

/// A place in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

impl StrangerPool {
    pub(super) fn new(most: usize) -> Self {
        let (next, all, peers) = Default::default();
        Self {
            most,
            next,
            all,
            peers,
        }
    }

    pub(super) const fn most(&self) -> usize {
        self.most
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes a place; returns the connection that has to be closed for it.
    pub(super) fn enter(
        &mut self,
        peer: IpAddr,
        connection: Arc<Connection>,
    ) -> (Ticket, Option<Arc<Connection>>) {
        let pushed_out = if self.all.len() >= self.most {
            self.push_out()
        } else {
            None
        };
        self.next += 1;
        self.all.insert(self.next, (peer, connection));
        *self.peers.entry(peer).or_default() += 1;
        (Ticket(self.next), pushed_out)
    }

    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Arc<Connection>> {
        let (peer, connection) = self.all.remove(&ticket.0)?;
        if let Some(own) = self.peers.get_mut(&peer) {
            *own -= 1;
            if *own == 0 {
                self.peers.remove(&peer);
            }
        }
        Some(connection)
    }

    fn push_out(&mut self) -> Option<Arc<Connection>> {
        let most = self.peers.values().max()?;
        let of_greediest = |(_, (peer, _)): &(&u64, &(IpAddr, Arc<Connection>))| {
            self.peers.get(peer).is_some_and(|own| own == most)
        };
        let (number, _) = self.all.iter().find(of_greediest)?;
        self.leave(Ticket(*number))
    }
}

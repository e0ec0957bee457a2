//! The connections that may be closed for a new one, in the order in which they would be.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::Connection;

/// Whose a connection is. Lower ranks are closed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Nobody has shown a key on it.
    Stranger,
    /// A customer without money.
    Customer,
    /// A customer with money.
    Paying,
}

impl Rank {
    const ALL: [Self; 3] = [Self::Stranger, Self::Customer, Self::Paying];
}

/// Where a connection stands. Changed only under the lock of all connections; read without it.
#[derive(Debug, Default)]
pub(super) struct LinePlace {
    rank: AtomicU8,
    /// Its number in the line of its rank; 0 when it is in none.
    number: AtomicU64,
}

impl LinePlace {
    pub(super) fn rank(&self) -> Rank {
        let rank = usize::from(self.rank.load(Ordering::Relaxed));
        Rank::ALL.get(rank).copied().unwrap_or(Rank::Stranger)
    }

    /// Only while the connection is in no line.
    pub(super) fn set_rank(&self, rank: Rank) {
        self.rank.store(rank as u8, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.number.store(0, Ordering::Relaxed);
    }
}

/// The line of each rank, the least recently used connection first.
#[derive(Debug, Default)]
pub(super) struct ConnectionLine {
    ranks: [BTreeMap<u64, Arc<Connection>>; 3],
    last: u64,
}

impl ConnectionLine {
    /// All of them, the one to close first at the beginning.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.ranks.iter().flat_map(BTreeMap::values)
    }

    /// Gives a connection the next number, and puts it at the end.
    pub(super) fn push(&mut self, connection: &Arc<Connection>) {
        self.last += 1;
        connection.place.number.store(self.last, Ordering::Relaxed);
        self.follow(connection);
    }

    /// Puts a connection in at the number that another line gave it.
    pub(super) fn follow(&mut self, connection: &Arc<Connection>) {
        let number = connection.place.number.load(Ordering::Relaxed);
        if let Some(line) = self.ranks.get_mut(connection.place.rank() as usize) {
            line.insert(number, Arc::clone(connection));
        }
    }

    /// Takes a connection out.
    pub(super) fn remove(&mut self, connection: &Connection) {
        let number = connection.place.number.load(Ordering::Relaxed);
        if let Some(line) = self.ranks.get_mut(connection.place.rank() as usize) {
            line.remove(&number);
        }
    }
}

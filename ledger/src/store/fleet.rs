//! What is known of the gateways that share a ledger, and of the database's servers, for operators.
//!
//! Nothing is decided by it: the store itself decides which gateways are alive and which server it uses.

use crate::Timestamp;

/// A running gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Its epoch; every start gets a new one.
    pub epoch: i64,
    /// Machine and process.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// Hashes of its catalog and routes; empty until it has reported them.
    pub configuration: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Milliseconds since its last renewal, by the store's clock.
    pub silent_ms: i64,
    /// Requests that began in the second before that renewal.
    pub per_second: u64,
    /// Its holds that were open then.
    pub holds: u64,
}

impl Gateway {
    /// Whether these gateways run different files. One that has not reported any yet does not count.
    pub fn differ(gateways: &[Self]) -> bool {
        let mut told = gateways
            .iter()
            .map(|gateway| &gateway.configuration)
            .filter(|told| !told.is_empty());
        told.next()
            .is_some_and(|first| told.any(|other| other != first))
    }
}

/// A server of the ledger's database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Server {
    /// Host and port, as in the address.
    pub place: String,
    /// Its `cluster_name`; empty if it did not answer.
    pub name: String,
    /// The identifier of its cluster, which a standby has in common with its primary; empty if it did not answer.
    pub system: String,
    /// Its timeline. Every promotion begins a new one.
    pub timeline: Option<u32>,
    /// How many seconds a standby that this process reads is behind.
    pub behind: Option<u64>,
    /// Whether this process uses it.
    pub used: bool,
    /// Whether it takes writes although another one is used: it must be fenced.
    pub stale: bool,
    /// Its state in words.
    pub state: String,
}

impl Server {
    /// The state without its numbers, which change all the time.
    pub(crate) fn kind(&self) -> &str {
        let numbers = |character: char| character.is_ascii_digit();
        self.state.split(numbers).next().unwrap_or_default()
    }
}

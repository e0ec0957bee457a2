//! What the gateways that share a ledger report about themselves, for operators.
//!
//! Nothing is decided by it: the store itself decides which gateways are alive.

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
    #[must_use]
    pub fn differ(gateways: &[Self]) -> bool {
        let mut told = gateways
            .iter()
            .map(|gateway| &gateway.configuration)
            .filter(|told| !told.is_empty());
        told.next()
            .is_some_and(|first| told.any(|other| other != first))
    }
}

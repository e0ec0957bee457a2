//! What the gateways that share a ledger say of themselves, for operators.
//!
//! Nothing is decided by it: who is alive and who is not is the store's own affair.

use crate::Timestamp;

/// A gateway that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Its run; every start has another.
    pub epoch: i64,
    /// Machine and process.
    pub name: String,
    /// Of the program.
    pub version: String,
    /// Hashes of its catalog and routes; empty until it has reported them.
    pub configuration: String,
    /// Since when.
    pub started_at: Timestamp,
    /// Since its last renewal, in milliseconds of the store's clock.
    pub silent_ms: i64,
    /// Requests that began in the second before that renewal.
    pub per_second: u64,
    /// Its holds that were open then.
    pub holds: u64,
}

impl Gateway {
    /// Whether not all of these gateways run the same files. One that has reported none yet does not count.
    #[must_use]
    pub fn differ(gateways: &[Self]) -> bool {
        let mut told = gateways.iter().map(|gateway| &gateway.configuration).filter(|told| !told.is_empty());
        told.next().is_some_and(|first| told.any(|other| other != first))
    }
}

//! Events as documents; the ledger writes them.

use schemars::JsonSchema;
use serde_json::Value;

use super::value::{CustomerName, Instant};

/// An event
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Event")]
pub struct EventDocument {
    /// The same however often it comes to you
    pub id: String,
    /// What happened
    pub r#type: String,
    /// When
    pub timestamp: Instant,
    /// Whose it is
    pub customer: Option<CustomerName>,
    /// Its place among the customer's events
    pub seq: Option<u64>,
    /// More of it, by type
    pub data: Value,
}

//! How what the gateway itself knows is described: its seller, and what became of a request.

use farebox_ledger::{JournalEntry, document};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::entry::EntryDocument;

/// What became of a request
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Request")]
pub struct RequestDocument {
    /// Our id
    pub request_id: Option<String>,
    /// What this gateway remembers of it
    pub record: Option<Value>,
    /// Its hold, while it runs
    pub running: Option<Value>,
    /// Where it is, while it runs
    pub under_way: Option<Value>,
    /// Its charge
    #[schemars(with = "Option<EntryDocument>")]
    pub entry: Option<Value>,
}

impl From<&JournalEntry> for RequestDocument {
    fn from(entry: &JournalEntry) -> Self {
        Self {
            request_id: entry.request().map(document::request_id),
            entry: Some(document::json(entry)),
            ..Self::default()
        }
    }
}

/// The seller, as `[shop]` of the catalog says
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Shop")]
pub struct ShopDocument {
    /// Its name
    pub name: Option<String>,
    /// Whom to ask
    pub contact: Option<String>,
    /// Where to pay
    pub pay_url: Option<String>,
    /// A sentence of its own
    pub note: Option<String>,
    /// Its address, for paper
    pub address: Option<String>,
    /// Its tax number, for paper
    pub tax_id: Option<String>,
    /// Its terms
    pub terms_url: Option<String>,
    /// How it treats personal data
    pub privacy_url: Option<String>,
    /// Where customers reach this gateway
    pub public_url: String,
}

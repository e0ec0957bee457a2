//! What became of a request, of which the gateway itself knows most.

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

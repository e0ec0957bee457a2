//! How what the gateway itself knows is described: its models, and what became of a request.

use schemars::JsonSchema;
use serde_json::Value;

use super::entry::EntryDocument;

/// What became of a request
#[derive(Debug, JsonSchema)]
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
    pub entry: Option<EntryDocument>,
}

/// A model that is sold
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Model")]
pub struct ModelDocument {
    /// Its name
    pub model: String,
    /// What customers write
    pub customer_slug: String,
    /// Who makes it
    pub provider: String,
    /// chat, responses or native
    pub best_path: String,
    /// What it is best for
    pub best_environments: Vec<String>,
    /// What it costs
    pub service_price: String,
}

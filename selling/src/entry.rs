//! Journal entries and sums of them, as documents. What an entry is as JSON, the ledger says.

use farebox_ledger::{KeyId, MarginRow, Margins, UsageRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::value::{CustomerName, Instant, KeyName, SignedUsd, Usd};

/// A journal entry; charges have more members
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Entry", extend("additionalProperties" = true))]
pub struct EntryDocument {
    /// Its place among the customer's entries
    pub seq: u64,
    /// The key that it is about
    pub key: Option<KeyName>,
    /// top_up, charge, refund, adjust, grant, carry, expired, void, reversal, move, write_off
    pub kind: String,
    /// What it adds to the balance, or takes from it
    pub amount: SignedUsd,
    /// The balance after it
    pub balance_after: Usd,
    /// The request that it charges or refunds
    pub request_id: Option<String>,
    /// The model
    pub slug: Option<String>,
    /// What was counted
    pub usage: Option<Value>,
    /// Count × rate of everything that was bought
    pub lines: Option<Value>,
    /// What was held for it
    pub hold: Option<Usd>,
    /// Used and not paid
    pub loss: Option<Usd>,
    /// Who counted
    pub evidence: Option<String>,
    /// The payment's own name
    pub reference: Option<String>,
    /// Why
    pub reason: Option<String>,
    /// Who: an operator, a token's label, or the gateway
    pub actor: String,
    /// When
    pub at: Instant,
    /// Whose it is
    pub customer: CustomerName,
    /// Where its money came from, or went, in the order of use; only if a grant is among it
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartDocument>,
}

/// Money of one grant, or of the balance beside them
#[derive(Debug, JsonSchema)]
#[schemars(inline)]
pub struct PartDocument {
    /// The grant; null is the balance beside all grants
    pub grant: Option<String>,
    /// How much, with the entry's sign
    pub amount: SignedUsd,
}

/// An hour of a key with a model
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Usage")]
pub struct UsageDocument {
    /// The key
    pub key: KeyName,
    /// The hour's first instant
    pub hour: Instant,
    /// The model
    pub slug: String,
    /// Requests that ended
    pub requests: u64,
    /// Tokens by kind
    pub usage: Value,
    /// What they cost
    pub charge: Usd,
}

impl UsageDocument {
    /// One row of a key.
    pub fn of(key: KeyId, row: &UsageRow) -> Self {
        Self {
            key: KeyName(key),
            hour: Instant(row.hour),
            slug: row.slug.clone(),
            requests: row.requests,
            usage: serde_json::json!(row.usage),
            charge: Usd(row.charge),
        }
    }
}

/// Sums of one key, customer, slug, target, provider, account, class or day
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MarginRow")]
pub struct MarginDocument {
    /// The key's or customer's id, the slug, target, provider, account or class, or the day
    pub name: String,
    /// Requests that ended
    pub requests: u64,
    /// Charged
    pub charge: Usd,
    /// What answers told that they cost, else at your own prices; where one is known
    pub cost: Usd,
    /// The part of the cost that answers told
    pub told: Usd,
    /// The part of the charge whose cost is known
    pub priced: Usd,
    /// What providers may be owed beyond the charge
    pub exposure: Usd,
    /// Used but not paid
    pub loss: Usd,
    /// What the gateway's own requests cost
    pub own: Usd,
    /// Charge less cost, where it is known
    pub margin: Option<SignedUsd>,
}

impl From<&MarginRow> for MarginDocument {
    fn from(row: &MarginRow) -> Self {
        Self {
            name: row.name.clone(),
            requests: row.requests,
            charge: Usd(row.charge),
            cost: Usd(row.cost),
            told: Usd(row.told),
            priced: Usd(row.priced),
            exposure: Usd(row.exposure),
            loss: Usd(row.loss),
            own: Usd(row.own),
            margin: row.margin().map(SignedUsd),
        }
    }
}

/// Charges, cost and possible debts, and their sum
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Margin")]
pub struct MarginsDocument {
    /// The largest first
    pub rows: Vec<MarginDocument>,
    /// How many rows there are
    pub count: usize,
    /// Over all of them
    pub total: MarginDocument,
}

impl From<&Margins> for MarginsDocument {
    fn from(margins: &Margins) -> Self {
        Self {
            rows: margins.rows.iter().map(Into::into).collect(),
            count: margins.count,
            total: (&margins.total).into(),
        }
    }
}

//! Receipts and statements as documents; the gateway's `paper` fills them in.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::value::{CustomerName, Instant, SignedUsd, Usd};

/// A receipt, or a correction of one
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Receipt")]
pub struct ReceiptDocument {
    /// Customer, generation, and place among its documents, without gaps
    pub number: String,
    /// receipt or correction
    pub kind: String,
    /// When the books took it in
    pub at: Instant,
    /// Name, contact, address and tax number of the seller
    pub seller: Value,
    /// Whose it is
    pub customer: CustomerName,
    /// Name on receipts
    pub name: Option<String>,
    /// Address on receipts
    pub address: Option<String>,
    /// The payment's own name
    pub reference: String,
    /// What was paid in
    pub currency: String,
    /// Without tax
    #[schemars(with = "SignedUsd")]
    pub net: String,
    /// The tax
    #[schemars(with = "SignedUsd")]
    pub tax: String,
    /// Tax included
    #[schemars(with = "SignedUsd")]
    pub gross: String,
    /// The credit, in USD; of a plan what its periods give
    pub credit: SignedUsd,
    /// The plan whose periods were paid, as: Coder, monthly, period 3: 2027-01-30 to 2027-02-28
    pub plan: Option<String>,
    /// The number of the receipt that it corrects
    pub corrects: Option<String>,
    /// Why it corrects
    pub reason: Option<String>,
}

/// A month of a customer
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Statement")]
pub struct StatementDocument {
    /// Whose it is
    pub customer: CustomerName,
    /// Name on receipts
    pub name: Option<String>,
    /// Address on receipts
    pub address: Option<String>,
    /// Name, contact, address and tax number of the seller
    pub seller: Value,
    /// Which month, in UTC
    pub month: String,
    /// Whether the month is over
    pub r#final: bool,
    /// The balance before it
    pub opening: SignedUsd,
    /// Payments
    pub paid: SignedUsd,
    /// Credit that was given
    pub promotional: SignedUsd,
    /// Charges that were given back
    pub refunded: SignedUsd,
    /// Corrections
    pub adjusted: SignedUsd,
    /// From and to other customers
    pub moved: SignedUsd,
    /// Requests
    pub charged: SignedUsd,
    /// Credit whose time was over
    pub expired: SignedUsd,
    /// Credit that was taken back
    pub voided: SignedUsd,
    /// Payments that went back
    pub reversed: SignedUsd,
    /// What was left when it was closed
    pub written_off: SignedUsd,
    /// The balance after it
    pub closing: SignedUsd,
    /// By model and class
    pub used: Vec<UsedDocument>,
}

/// What was used of one model and class
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct UsedDocument {
    /// The model's slug
    pub model: String,
    /// The class that it was served as
    pub class: String,
    /// Requests that ended
    pub requests: u64,
    /// Tokens by kind
    pub usage: Value,
    /// What they cost
    pub charged: Usd,
}

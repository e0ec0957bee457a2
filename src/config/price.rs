//! Prices of models and targets: exact rates for each class of tokens. `read/price.rs` parses and prints them.

use farebox_ledger::Amount;

/// Prices of a model: picodollars per token, and size tiers that reprice the whole request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// Rates below every tier.
    pub base: Rates,
    /// Tiers by rising `above_input`: the last one whose bound the request's input exceeds applies.
    pub tiers: Vec<(u64, Rates)>,
}

/// Picodollars per unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Fresh input token.
    pub input: Amount,
    /// Output token.
    pub output: Amount,
    /// Input token read from a cache; the input rate when unset.
    pub cache_read: Amount,
    /// Input token written to a cache; the input rate when unset.
    pub cache_write: Amount,
    /// Input token written for one hour; requests that ask for it are refused when unset.
    pub cache_write_1h: Option<Amount>,
    /// Reasoning token; the output rate when unset.
    pub reasoning: Amount,
    /// One picture; zero when unset.
    pub per_image: Amount,
    /// One request; zero when unset.
    pub per_request: Amount,
}
